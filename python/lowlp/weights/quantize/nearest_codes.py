"""The codes of the nearest values, for blocks of weights that were divided by their scales."""

import functools
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.array_ops import ArrayOps, NumpyOps
from lowlp.numeric.dtypes import DType
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.lookup_tables import sorted_tables


class Encoder(Protocol):
    """Makes codes of quotients: weights over scales."""

    def encode(self, block: Any, rows: slice, shift: Any) -> Any:
        """The codes, uint8, of float32 quotients [rows, groups, group_size], which it may overwrite.

        rows   which rows of the matrix they are
        shift  None, or zero points, float32 [rows, groups, 1]: added to the quotients
        """

    def values(self, codes: Any, rows: slice) -> Any:
        """The unscaled float32 values of codes [rows, groups, group_size]."""


class IntegerEncoder:
    """Integers low..high, to nearest with ties to even.

    Whole zero points are added to the rounded quotients, others before.
    """

    def __init__(self, ops: ArrayOps, dtype: DType, low: int, high: int, whole_shift: bool = True) -> None:
        self._ops, self._low, self._high, self._whole_shift = ops, low, high, whole_shift
        self._signed = dtype.is_signed
        self._mask = (1 << dtype.bits) - 1
        self._table = ops.put(dtype.decode(np.arange(1 << dtype.bits, dtype=np.uint8)))

    def encode(self, block: Any, rows: slice, shift: Any) -> Any:
        if shift is not None and not self._whole_shift:
            block += shift
        self._ops.round_(block)
        if shift is not None and self._whole_shift:
            block += shift
        self._ops.clip_(block, self._low, self._high)
        codes = self._ops.as_bytes(block, self._signed)
        if self._signed:
            codes &= self._mask
        return codes

    def values(self, codes: Any, rows: slice) -> Any:
        return self._ops.take(self._table, codes)


@functools.lru_cache(maxsize=8)
def _encode_table(dtype: DType) -> NDArray[np.uint8]:
    """Codes by the upper 16 bits of a float32 and one bit that tells whether any of the lower 16 is set.

    These 17 bits decide the code. The values of a float or bipolar type of at most 8 bits have at most 8 significant
    bits, neighbours of that many have midpoints of no more (two floats of 1 + 6 bits: 8; two odd integers: the even one
    between them), and the upper half of a float32 holds 8. So the lower half only tells which side of a midpoint it is.
    """
    upper = np.arange(1 << 17, dtype=np.uint32)
    values = ((upper >> 1 << 16) | (upper & 1)).view(np.float32)
    return dtype.encode(np.where(np.isnan(values), np.float32(0), values))


class TypeEncoder:
    """`DType.encode` of floats and bipolar types, several times as fast, by one table."""

    def __init__(self, ops: ArrayOps, dtype: DType) -> None:
        self._ops = ops
        self._codes = ops.put(_encode_table(dtype))
        self._values = ops.put(dtype.decode(np.arange(1 << dtype.bits, dtype=np.uint8)))

    def encode(self, block: Any, rows: slice, shift: Any) -> Any:
        bits = self._ops.bits(block)
        index = bits >> 15
        index &= 0x1FFFE
        index |= self._ops.as_int32((bits & 0xFFFF) != 0)
        return self._ops.take(self._codes, index)

    def values(self, codes: Any, rows: slice) -> Any:
        return self._ops.take(self._values, codes)


def encode_fast(values: NDArray[np.float32], dtype: DType) -> NDArray[np.uint8]:
    """`dtype.encode` of float32 values none of which is NaN."""
    codes: NDArray[np.uint8] = TypeEncoder(NumpyOps(), dtype).encode(np.ascontiguousarray(values), slice(0), None)
    return codes


class TableEncoder:
    """The nearest entry of a table; midway between two the lower one, of equal ones that of the lowest code.

    A binary search over the midpoints, the same steps for all numbers of a block, whichever table each has.
    """

    def __init__(self, ops: ArrayOps, table: AnyArray) -> None:
        """table  [2**b], [N, 2**b] or [N, K / group_size, 2**b]"""
        self._ops = ops
        self._shape = table.shape[:-1]
        self._size = table.shape[-1]
        codes, limits = sorted_tables(table)
        self._codes = ops.put(codes.reshape(-1))
        self._limits = ops.put(limits.reshape(-1))
        self._table = ops.put(table.astype(np.float32).reshape(-1))

    def encode(self, block: Any, rows: slice, shift: Any) -> Any:
        place = self._first(block, rows)
        step = self._size // 2
        while step:
            above = block > self._ops.take(self._limits, place + (step - 1))
            place = place + self._ops.as_int32(above) * step
            step //= 2
        return self._ops.take(self._codes, place)

    def values(self, codes: Any, rows: slice) -> Any:
        return self._ops.take(self._table, self._first(codes, rows) + self._ops.as_int32(codes))

    def _first(self, block: Any, rows: slice) -> Any:
        """Where the table of each number starts: int64, [rows, groups, 1] or of fewer groups."""
        if not self._shape:
            return self._ops.put(np.zeros((1, 1, 1), np.int64))
        # Of [N] tables or [N, groups], those of these rows.
        tables = np.arange(int(np.prod(self._shape)), dtype=np.int64).reshape(*self._shape, 1)[rows]
        return self._ops.put(tables.reshape(tables.shape[0], -1, 1) * self._size)
