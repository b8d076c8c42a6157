"""What the codes of a tensor mean: their type or lookup table, and what groups have; checked, and without the codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from lowlp.numeric.codec import MAX_CODE_BITS, Codec, Table
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.numeric.lookup_tables import TABLE_TYPES, check_table_shape, table_bits, table_of
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.weights.column_order import column_order
from lowlp.weights.second_scales import SecondScale, kept_scale, second_scale_of
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

Group = int | Literal["channel", "tensor"]
_NAMES = {kind: name for name, kind in SCALE_DTYPES.items()}


def code_dtype(value: object) -> DType:
    """The type of that name, or the type itself. Raises `LowlpValueError` where its codes exceed 8 bits."""
    found = named_dtype(value, "dtype")
    if found.bits > MAX_CODE_BITS:
        raise LowlpValueError(f"dtype: {found.name} has {found.bits} bits; a code has 1..{MAX_CODE_BITS}")
    return found


def table_dtype(value: object, bits: int) -> DType:
    """The type of the codes of a table: unsigned integers. Raises `LowlpValueError` where `value` names another one."""
    found = named_dtype(f"uint{bits}" if value is None else value, "dtype")
    if found.name != f"uint{bits}":
        raise LowlpValueError(
            f"dtype: must be None or uint{bits} with a lut of {1 << bits} values, got {found.name}; the lut gives the "
            "values"
        )
    return found


def group_size_of(k: int, group_size: int | None) -> int:
    """`group_size` as a number: None and -1 mean all of K. Raises where K is no multiple of it."""
    if group_size is None or (group_size == -1 and not isinstance(group_size, bool)):
        return k
    if not isinstance(group_size, int | np.integer) or isinstance(group_size, bool):
        raise LowlpTypeError(f"group_size: expected an int, or None for a whole row, got {group_size!r}")
    if group_size < 1 or k % group_size:
        raise LowlpValueError(f"group_size: must divide K = {k} (or be None or -1 for a whole row), got {group_size}")
    return int(group_size)


def group_of(k: int, group_size: int | str | None) -> tuple[int, Group]:
    """The weights of a row that share a scale, and the group as a `Codec` names it. Raises as `group_size_of`."""
    if isinstance(group_size, str):
        if group_size != "tensor":
            raise LowlpTypeError(
                f"group_size: expected an int, or None for a whole row, got {group_size!r}; the one name is 'tensor'"
            )
        return k, "tensor"
    size = group_size_of(k, group_size)
    return size, "channel" if group_size is None or group_size == -1 else size


def shape_of_words(shape: object) -> tuple[int, ...]:
    """(N, K) or (E, N, K) as ints. Raises `LowlpTypeError` and `LowlpValueError`, which name `shape`."""
    if not isinstance(shape, tuple | list) or not all(
        isinstance(extent, int | np.integer) and not isinstance(extent, bool) for extent in shape
    ):
        raise LowlpTypeError(f"shape: expected (N, K) or (E, N, K), got {shape!r:.40}")
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise LowlpValueError(
            f"shape: expected (N, K) or (E, N, K) with extents of at least 1, got {tuple(shape)!r:.40}"
        )
    return tuple(int(extent) for extent in shape)


@dataclass(frozen=True, eq=False)
class Meaning:
    """The type of the codes, their groups, and the arrays that `QuantizedTensor` describes, read-only; with experts
    those of all rows, [E N, ...]; what groups have in the order in which columns are packed (`column_order`)."""

    dtype: DType
    group_size: int
    group: Group
    scales: AnyArray
    zeros: AnyArray | None = None
    offsets: AnyArray | None = None
    scale2: SecondScale | None = None
    lut: AnyArray | None = None
    permutation: AnyArray | None = None

    def arrays(self) -> Iterator[tuple[str, AnyArray]]:
        """What there is of scales, zeros, offsets, scale2, lut and permutation, by name."""
        for name in ("scales", "zeros", "offsets", "scale2", "lut", "permutation"):
            array = getattr(self, name)
            if array is not None:
                yield name, np.atleast_1d(array) if name == "scale2" else array

    @property
    def codec(self) -> Codec:
        """The codec."""
        return Codec(
            self.code,
            self.group,
            _type_name(self.scales),
            None if self.zeros is None else _type_name(self.zeros),
            None if self.offsets is None else _type_name(self.offsets),
            self.scale2 is not None,
        )

    @property
    def code(self) -> DType | Table:
        """The type of the codes, or their table."""
        return self.dtype if self.lut is None else table_code(self.lut)

    def is_by_row(self, name: str, array: AnyArray) -> bool:
        """Whether an array has an entry for each row, in place of one for all."""
        if name in ("lut", "scale2", "permutation"):
            return {"lut": array.ndim > 1, "scale2": array.size > 1, "permutation": False}[name]
        return self.group != "tensor"

    def of_rows(self, rows: slice) -> Meaning:
        """That of some rows."""
        changed = {}
        for name, array in self.arrays():
            if self.is_by_row(name, array):
                changed[name] = kept_scale(array[rows]) if name == "scale2" else array[rows]
        return replace(self, **cast(Any, changed))

    def of_columns(self, columns: slice) -> Meaning:
        """That of some columns, which are whole groups where there are several in a row."""
        if not isinstance(self.group, int):
            return replace(self, group_size=columns.stop - columns.start)
        groups = slice(columns.start // self.group_size, columns.stop // self.group_size)
        changed = {}
        for name, array in self.arrays():
            if name in ("scales", "zeros", "offsets") or (name == "lut" and array.ndim == 3):
                changed[name] = read_only(array[:, groups])
        return replace(self, **cast(Any, changed))


def meaning_of(
    shape: tuple[int, ...],
    *,
    dtype: str | DType | None,
    scales: object,
    zeros: object,
    offsets: object,
    group_size: int | str | None,
    scale2: object,
    lut: object,
    g_idx: object = None,
    permutation: object = None,
) -> Meaning:
    """The arguments of `QuantizedTensor`, checked against each other and the shape (N, K) or (E, N, K)."""
    *outer, k = shape
    table = None if lut is None else read_only(table_of(lut))
    code = code_type(dtype, table)
    size, group = group_of(k, group_size)
    expected = _Expected((*outer, k // size), "[N, K / group_size]" if len(outer) == 1 else "[E, N, K / group_size]")
    if group == "tensor":
        expected = _Expected((1, 1), "[1, 1] with group_size='tensor'")
    if table is not None:
        check_tables(table, shape, size)
    found = Meaning(
        code,
        size,
        group,
        _per_group(scales, "scales", expected),
        None if zeros is None else _per_group(zeros, "zeros", expected),
        None if offsets is None else _per_group(offsets, "offsets", expected),
        None if scale2 is None else second_scale_of(scale2, tuple(outer)),
        table,
        column_order(k, size, g_idx, permutation),
    )
    found.codec  # noqa: B018  refuses what does not go together
    return found


def check_tables(table: AnyArray, shape: tuple[int, ...], group_size: int) -> None:
    """Raises `LowlpValueError` unless there are as many tables as weights of this shape may have."""
    if len(shape) == 2:
        check_table_shape(table, shape[0], shape[1] // group_size)
    elif table.ndim > 1:
        raise LowlpValueError(f"lut: expected one table [2**b] for weights [E, N, K], got shape {list(table.shape)}")


def code_type(dtype: str | DType | None, table: AnyArray | None) -> DType:
    """The type of the codes, from the arguments `dtype` and `lut`."""
    if table is not None:
        return table_dtype(dtype, table_bits(table))
    if dtype is None:
        raise LowlpTypeError("dtype: expected a name such as 'int6' or a DType, or a lut instead, got None")
    return code_dtype(dtype)


def read_only(array: AnyArray) -> AnyArray:
    """A contiguous view of an array, or a copy, that cannot be written."""
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


class _Expected(NamedTuple):
    """The shape that scales, zeros and offsets must have, and how errors say it."""

    shape: tuple[int, ...]
    text: str


def _type_name(array: AnyArray) -> str:
    return _NAMES.get(array.dtype, array.dtype.name)


def table_code(lut: AnyArray) -> Table:
    """Tables as a codec has them."""
    element = next(name for name, kind in TABLE_TYPES.items() if kind == lut.dtype)
    if lut.ndim > 1:
        return Table(table_bits(lut), element, "channel" if lut.ndim == 2 else "group")
    # The sum makes -0 a 0, so that equal tables print alike.
    return Table(table_bits(lut), element, "tensor", tuple((lut.astype(float) + 0.0).tolist()))


def _per_group(value: object, name: str, expected: _Expected) -> AnyArray:
    """Scales, zeros or offsets, checked."""
    array = as_host_array(value, name)
    is_integer = name == "zeros" and array.dtype.kind in "iu"
    if not is_integer and array.dtype not in (SCALE_DTYPES if name == "scales" else FLOAT_DTYPES).values():
        allowed = {
            "scales": "float16, bfloat16, float32, float8_e8m0fnu or float8_e4m3fn",
            "zeros": "float16, bfloat16 or float32 or an integer type",
            "offsets": "float16, bfloat16 or float32",
        }[name]
        hint = "; a view of bytes as one of the last two makes them scales" * (
            name == "scales" and array.dtype == np.uint8
        )
        raise LowlpTypeError(f"{name}: expected elements of {allowed}, got {array.dtype}{hint}")
    if array.shape != expected.shape:
        raise LowlpValueError(
            f"{name}: expected shape {expected.text} = {list(expected.shape)}, got {list(array.shape)}"
        )
    if not is_integer:
        _check_finite(array, name)
    elif array.dtype.itemsize > 1:
        low, high = int(array.min()), int(array.max())
        if low < -(2**15) or high >= 2**15:
            raise LowlpValueError(f"{name}: must be in -32768..32767, got {low if low < -(2**15) else high}")
        array = array.astype(np.int16)
    return read_only(array.reshape(-1, array.shape[-1]))


def _check_finite(array: Any, name: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        place = [int(index) for index in np.argwhere(~finite)[0]]
        raise LowlpValueError(f"{name}: must be finite, got {float(array[tuple(place)])} at {place}")
