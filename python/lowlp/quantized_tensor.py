"""`QuantizedTensor`: codes, how a code becomes a value, and the scales of its groups.

    value[n, k] = scale[n, g] * (q[n, k] - zero[n, g])        g = k // group_size
    value[n, k] = (scale[n, g] * q[n, k]) + offset[n, g]

Source of the affine form: Tilus (arXiv 2504.12984), section 6; offsets are those of MLX and GGUF.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lowlp.dtypes import DType, named_dtype
from lowlp.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

T = TypeVar("T")

MAX_CODE_BITS = 8
# Elements that are worked on at a time: few enough to stay in a core's cache as float32.
BLOCK_ELEMENTS = 1 << 18


def code_dtype(value: "str | DType") -> DType:
    """The type of that name, or the type itself. Raises `LowlpValueError` where its codes exceed 8 bits."""
    found = named_dtype(value, "dtype")
    if found.bits > MAX_CODE_BITS:
        raise LowlpValueError(f"dtype: {found.name} has {found.bits} bits; a code has 1..{MAX_CODE_BITS}")
    return found


_PLANNED = {"scale2": "second-level scales", "lut": "tables of values"}


def refuse_planned(**arguments: object) -> None:
    """Raises `LowlpValueError` for an argument that has a name and no meaning yet, unless it is None."""
    for name, value in arguments.items():
        if value is not None:
            raise LowlpValueError(f"{name}: {_PLANNED[name]} are not offered yet; expected None, got {value!r:.40}")


def group_size_of(k: int, group_size: int | None) -> int:
    """`group_size` as a number: None and -1 mean all of K. Raises where K is no multiple of it."""
    if group_size is None or (group_size == -1 and not isinstance(group_size, bool)):
        return k
    if not isinstance(group_size, int | np.integer) or isinstance(group_size, bool):
        raise LowlpTypeError(f"group_size: expected an int, or None for a whole row, got {group_size!r}")
    if group_size < 1 or k % group_size:
        raise LowlpValueError(f"group_size: must divide K = {k} (or be None or -1 for a whole row), got {group_size}")
    return int(group_size)


class QuantizedTensor:
    """Weights [N, K] (PyTorch's out_features, in_features) held as codes of 1 to 8 bits.

    codes       uint8 [N, K]: the low b bits of each, the others 0; two's complement if the type is signed
    dtype       name or `DType` of the codes ('uint4', 'int6', 'f6e3m2', 'bipolar2', ...)
    scales      [N, K / group_size], float16, bfloat16 or float32, finite
    zeros       optional, integer types only: [N, K / group_size], integers (in -32768..32767) or floats of those types;
                in the units of q
    offsets     optional, excludes zeros: [N, K / group_size], floats of those types; in the units of the weights
    group_size  a divisor of K; None or -1: one group a row
    scale2, lut None: second-level scales and tables of values are not offered yet

    Arrays are numpy's or PyTorch's on the CPU. They are kept without a copy where possible, and read-only: do not
    change them afterwards. Raises `LowlpTypeError` for other types of arguments or elements and `LowlpValueError`
    for a wrong shape, a code of more than b bits or one that means NaN or infinity, and scales, zeros or offsets
    that are not finite.
    """

    def __init__(
        self,
        codes: object,
        *,
        dtype: "str | DType",
        scales: object,
        zeros: object = None,
        offsets: object = None,
        group_size: int | None = None,
        scale2: None = None,
        lut: None = None,
    ) -> None:
        refuse_planned(scale2=scale2, lut=lut)
        self._dtype = code_dtype(dtype)
        self._codes = _codes(codes, self._dtype)
        n, k = self._codes.shape
        self._group_size = group_size_of(k, group_size)
        expected = (n, k // self._group_size)
        self._scales = _per_group(scales, "scales", expected)
        if zeros is not None and offsets is not None:
            raise LowlpValueError("zeros, offsets: at most one of them may be given, got both")
        if zeros is not None and not self._dtype.is_integer:
            raise LowlpValueError(f"zeros: allowed for integer types only, got dtype {self._dtype.name}; use offsets")
        self._zeros = None if zeros is None else _per_group(zeros, "zeros", expected, integers=True)
        self._offsets = None if offsets is None else _per_group(offsets, "offsets", expected)
        # Reentrant: what a GPU needs is made from what the host needs.
        self._lock = threading.RLock()
        self._prepared: dict[str, Any] = {}

    @property
    def codes(self) -> NDArray[np.uint8]:
        """uint8 [N, K], read-only."""
        return self._codes

    @property
    def scales(self) -> AnyArray:
        """[N, K / group_size], float16, bfloat16 or float32, read-only."""
        return self._scales

    @property
    def zeros(self) -> AnyArray | None:
        """[N, K / group_size], integers or floats, read-only; None without zero points."""
        return self._zeros

    @property
    def offsets(self) -> AnyArray | None:
        """[N, K / group_size], floats, read-only; None without offsets."""
        return self._offsets

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        n, k = self._codes.shape
        return n, k

    @property
    def dtype(self) -> DType:
        """The type of the codes."""
        return self._dtype

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return int(self._dtype.bits)

    @property
    def group_size(self) -> int:
        """Weights of a row that share a scale; K for one group a row."""
        return self._group_size

    @property
    def nbytes(self) -> int:
        """Bytes with the codes packed at b bits, and scales, zeros and offsets as they are."""
        extras = (self._scales, self._zeros, self._offsets)
        return (self._codes.size * self.bits + 7) // 8 + sum(part.nbytes for part in extras if part is not None)

    def dequantize(self) -> NDArray[np.float32]:
        """The exact meaning of the weights, float32 [N, K].

        Computed in float32, rounding after each step, in this order: `s * (q - z)`, or `(s * q) + b`.
        """
        n, k = self.shape
        result = np.empty((n, k), np.float32)
        table = np.ascontiguousarray(self._dtype.decode(np.arange(1 << self.bits, dtype=np.uint8)), np.float32)
        rows = max(1, BLOCK_ELEMENTS // k)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, n, rows):
                part = slice(start, min(start + rows, n))
                values = result[part]
                # Codes were checked to index the table; 'clip' spares numpy its own check.
                np.take(table, self._codes[part], out=values, mode="clip")
                grouped = values.reshape(values.shape[0], -1, self._group_size)
                if self._zeros is not None:
                    grouped -= self._zeros[part].astype(np.float32)[:, :, None]
                grouped *= self._scales[part].astype(np.float32)[:, :, None]
                if self._offsets is not None:
                    grouped += self._offsets[part].astype(np.float32)[:, :, None]
        return result

    def prepared(self, key: str, make: Callable[[], T]) -> T:
        """What a kernel needs of these weights on one device, made by `make` at the first call with `key` and kept."""
        with self._lock:
            if key not in self._prepared:
                self._prepared[key] = make()
            value: T = self._prepared[key]
        return value

    def __repr__(self) -> str:
        more = "".join(
            f", {name}" for name, part in (("zeros", self._zeros), ("offsets", self._offsets)) if part is not None
        )
        return (
            f"QuantizedTensor({self._dtype.name}, shape={self.shape}, group_size={self._group_size}, "
            f"scales={self._scales.dtype.name}{more}, nbytes={self.nbytes})"
        )


def _read_only(array: AnyArray) -> AnyArray:
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def _codes(codes: object, dtype: DType) -> NDArray[np.uint8]:
    array = as_host_array(codes, "codes")
    if array.dtype != np.uint8:
        raise LowlpTypeError(f"codes: expected uint8 (the low {dtype.bits} bits), got {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise LowlpValueError(f"codes: expected shape [N, K] with N, K >= 1, got {list(array.shape)}")
    largest = int(array.max())
    if largest >= 1 << dtype.bits:
        mask = (1 << dtype.bits) - 1
        raise LowlpValueError(
            f"codes: must be in 0..{mask} for {dtype.name}, got {largest}; mask with `& {mask:#x}` to keep the low bits"
        )
    every = np.arange(1 << dtype.bits, dtype=np.uint8)
    refused = every[~np.isfinite(dtype.decode(every))]
    if refused.size:
        # The refused codes are few: compare with each, a block of rows at a time.
        rows = max(1, BLOCK_ELEMENTS // array.shape[1])
        for start in range(0, array.shape[0], rows):
            for code in refused:
                found = np.argwhere(array[start : start + rows] == code)
                if found.size:
                    row, column = int(found[0][0]) + start, int(found[0][1])
                    raise LowlpValueError(
                        f"codes: [{row}, {column}] is {int(code):#x}, NaN or infinity in {dtype.name}"
                    )
    return _read_only(array)


def _per_group(value: object, name: str, expected: tuple[int, int], integers: bool = False) -> AnyArray:
    array = as_host_array(value, name)
    is_integer = integers and array.dtype.kind in "iu"
    if not is_integer and array.dtype not in FLOAT_DTYPES.values():
        allowed = "float16, bfloat16 or float32" + (" or an integer type" if integers else "")
        raise LowlpTypeError(f"{name}: expected elements of {allowed}, got {array.dtype}")
    if array.shape != expected:
        raise LowlpValueError(f"{name}: expected shape [N, K / group_size] = {list(expected)}, got {list(array.shape)}")
    if not is_integer:
        _check_finite(array, name)
    elif array.dtype.itemsize > 1:
        low, high = int(array.min()), int(array.max())
        if low < -(2**15) or high >= 2**15:
            raise LowlpValueError(f"{name}: must be in -32768..32767, got {low if low < -(2**15) else high}")
        array = array.astype(np.int16)
    return _read_only(array)


def _check_finite(array: Any, name: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        row, group = (int(index) for index in np.argwhere(~finite)[0])
        raise LowlpValueError(f"{name}: must be finite, got {float(array[row, group])} at [{row}, {group}]")
