"""`QuantizedTensor`: codes, how a code becomes a value, and the scales of its groups.

    value[n, k] = scale[n, g] * (q[n, k] - zero[n, g])        g = k // group_size
    value[n, k] = (scale[n, g] * q[n, k]) + offset[n, g]
    value[n, k] = scale2 * (scale[n, g] * q[n, k])

q is the number that a code means in its type, or its entry of a table. Sources: Tilus (arXiv 2504.12984), section 6,
for the affine form; FLUTE (arXiv 2407.10960) for tables; offsets are those of MLX and GGUF; float zero points those of
HQQ; scale2 is that of NVFP4.
"""

import math
import threading
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.codec import MAX_CODE_BITS, Codec, Table, prescale_of
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.numeric.tables import TABLE_TYPES, check_table_shape, table_bits, table_of
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

T = TypeVar("T")
# Kinds of calls that weights remember; they differ by M above all.
_MAX_CALLS = 256

# Elements that are worked on at a time: few enough to stay in a core's cache as float32.
BLOCK_ELEMENTS = 1 << 18
_NAMES = {kind: name for name, kind in SCALE_DTYPES.items()}


def code_dtype(value: "str | DType") -> DType:
    """The type of that name, or the type itself. Raises `LowlpValueError` where its codes exceed 8 bits."""
    found = named_dtype(value, "dtype")
    if found.bits > MAX_CODE_BITS:
        raise LowlpValueError(f"dtype: {found.name} has {found.bits} bits; a code has 1..{MAX_CODE_BITS}")
    return found


def table_dtype(value: "str | DType | None", bits: int) -> DType:
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


def group_of(k: int, group_size: int | str | None) -> tuple[int, int | Literal["channel", "tensor"]]:
    """The weights of a row that share a scale, and the group as a `Codec` names it. Raises as `group_size_of`."""
    if isinstance(group_size, str):
        if group_size != "tensor":
            raise LowlpTypeError(
                f"group_size: expected an int, or None for a whole row, got {group_size!r}; the one name is 'tensor'"
            )
        return k, "tensor"
    size = group_size_of(k, group_size)
    return size, "channel" if group_size is None or group_size == -1 else size


class QuantizedTensor:
    """Weights [N, K] (PyTorch's out_features, in_features) held as codes of 1 to 8 bits.

    codes       uint8 [N, K]: the low b bits of each, the others 0; two's complement if the type is signed
    dtype       name or `DType` of the codes ('uint4', 'int6', 'f6e3m2', 'bipolar2', ...); with `lut` None or 'uint{b}'
    scales      [N, K / group_size], finite: float16, bfloat16 or float32, or the types float8_e8m0fnu and
                float8_e4m3fn of `ml_dtypes` or PyTorch; [1, 1] with group_size='tensor'
    zeros       optional, integer types only: of the shape of scales, integers (in -32768..32767) or float16, bfloat16
                or float32; in the units of q
    offsets     optional, excludes zeros and scale2: of the shape of scales, float16, bfloat16 or float32; in the units
                of the weights
    group_size  a divisor of K; None or -1: one group a row; 'tensor': one group in all
    scale2      optional, a finite number, or an array or tensor of one, rounded to float32: multiplies all weights
    lut         optional, values of the codes, finite float16 or float32: [2**b], one table a row [N, 2**b], or one a
                group [N, K / group_size, 2**b]; a list of numbers becomes float32

    Arrays are numpy's or PyTorch's on the CPU. They are kept without a copy where possible, and read-only: do not
    change them afterwards. Raises `LowlpTypeError` for other types of arguments or elements and `LowlpValueError`
    for a wrong shape, a code of more than b bits or one that means NaN or infinity, and scales, zeros, offsets or
    tables that are not finite.
    """

    def __init__(
        self,
        codes: object,
        *,
        dtype: "str | DType | None" = None,
        scales: object,
        zeros: object = None,
        offsets: object = None,
        group_size: int | Literal["tensor"] | None = None,
        scale2: object = None,
        lut: object = None,
    ) -> None:
        self._lut = None if lut is None else _read_only(table_of(lut))
        if self._lut is not None:
            self._dtype = table_dtype(dtype, table_bits(self._lut))
        elif dtype is None:
            raise LowlpTypeError("dtype: expected a name such as 'int6' or a DType, or a lut instead, got None")
        else:
            self._dtype = code_dtype(dtype)
        self._codes = _codes(codes, self._dtype)
        n, k = self._codes.shape
        self._group_size, group = group_of(k, group_size)
        expected = Expected((n, k // self._group_size), "[N, K / group_size]")
        if group == "tensor":
            expected = Expected((1, 1), "[1, 1] with group_size='tensor'")
        if self._lut is not None:
            check_table_shape(self._lut, n, k // self._group_size)
        self._scales = _per_group(scales, "scales", expected)
        self._zeros = None if zeros is None else _per_group(zeros, "zeros", expected)
        self._offsets = None if offsets is None else _per_group(offsets, "offsets", expected)
        self._scale2 = None if scale2 is None else _scale2(scale2)
        self._codec = Codec(
            self._dtype if self._lut is None else _table(self._lut),
            group,
            _type_name(self._scales),
            None if self._zeros is None else _type_name(self._zeros),
            None if self._offsets is None else _type_name(self._offsets),
            self._scale2 is not None,
        )
        # Reentrant: what a GPU needs is made from what the host needs.
        self._lock = threading.RLock()
        self._prepared: dict[str, Any] = {}
        self._calls: dict[object, Any] = {}

    @property
    def codec(self) -> Codec:
        """What the codes mean, without the weights: equal for tensors that one kernel serves."""
        return self._codec

    @property
    def codes(self) -> NDArray[np.uint8]:
        """uint8 [N, K], read-only."""
        return self._codes

    @property
    def scales(self) -> AnyArray:
        """[N, K / group_size], or [1, 1] for the whole tensor; read-only."""
        return self._scales

    @property
    def zeros(self) -> AnyArray | None:
        """Of the shape of scales, integers or floats, read-only; None without zero points."""
        return self._zeros

    @property
    def offsets(self) -> AnyArray | None:
        """Of the shape of scales, floats, read-only; None without offsets."""
        return self._offsets

    @property
    def scale2(self) -> np.float32 | None:
        """The second scale, of the whole tensor; None without one."""
        return self._scale2

    @property
    def lut(self) -> AnyArray | None:
        """[2**b], [N, 2**b] or [N, K / group_size, 2**b], float16 or float32, read-only; None without tables."""
        return self._lut

    @property
    def shape(self) -> tuple[int, int]:
        """(N, K)."""
        n, k = self._codes.shape
        return n, k

    @property
    def dtype(self) -> DType:
        """The type of the codes; with a table, which gives them another meaning, 'uint{b}'."""
        return self._dtype

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return int(self._dtype.bits)

    @property
    def group_size(self) -> int:
        """Weights of a row that share a scale; K for one group a row or one in all."""
        return self._group_size

    @property
    def nbytes(self) -> int:
        """Bytes with the codes packed at b bits, and scales, zeros, offsets and tables as they are."""
        extras = (self._scales, self._zeros, self._offsets, self._scale2, self._lut)
        return (self._codes.size * self.bits + 7) // 8 + sum(part.nbytes for part in extras if part is not None)

    def prescale(self, compute: str | DType) -> float | None:
        """As `Codec.prescale`, over all tables of this tensor where there are several."""
        if self._lut is None:
            return self._codec.prescale(compute)
        return prescale_of(self._lut, compute)

    def dequantize(self) -> NDArray[np.float32]:
        """The exact meaning of the weights, float32 [N, K].

        Computed in float32, rounding after each step, in this order: `s * (q - z)`, or `(s * q) + b`; with a second
        scale `s2 * (s * (q - z))`.
        """
        n, k = self.shape
        result = np.empty((n, k), np.float32)
        table = self._values()
        groups = k // self._group_size
        rows = max(1, BLOCK_ELEMENTS // k)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, n, rows):
                part = slice(start, min(start + rows, n))
                values = result[part]
                # Codes were checked to index the table; 'clip' spares numpy its own check.
                np.take(table, self._places(part), out=values, mode="clip")
                grouped = values.reshape(values.shape[0], groups, self._group_size)
                if self._zeros is not None:
                    grouped -= self._spread(self._zeros, part)
                grouped *= self._spread(self._scales, part)
                if self._scale2 is not None:
                    grouped *= self._scale2
                if self._offsets is not None:
                    grouped += self._spread(self._offsets, part)
        return result

    def _values(self) -> NDArray[np.float32]:
        """The unscaled values by code, of all tables one after the other."""
        if self._lut is not None:
            return self._lut.astype(np.float32).reshape(-1)
        return np.ascontiguousarray(self._dtype.decode(np.arange(1 << self.bits, dtype=np.uint8)), np.float32)

    def _places(self, part: slice) -> NDArray[Any]:
        """Where in `_values` the values of these rows are."""
        codes = self._codes[part]
        if self._lut is None or self._lut.ndim == 1:
            return codes
        tables_per_row = 1 if self._lut.ndim == 2 else self._lut.shape[1]
        first = np.arange(part.start * tables_per_row, part.stop * tables_per_row, dtype=np.intp) << self.bits
        grouped = codes.reshape(codes.shape[0], tables_per_row, -1)
        return (grouped + first.reshape(-1, tables_per_row, 1)).reshape(codes.shape)

    def _spread(self, array: AnyArray, part: slice) -> NDArray[np.float32]:
        """What groups have, for these rows: float32 [rows, groups, 1], or [1, 1, 1] for the whole tensor."""
        rows = array if self._codec.group == "tensor" else array[part]
        return rows.astype(np.float32)[:, :, None]

    def prepared(self, key: str, make: Callable[[], T]) -> T:
        """What a kernel needs of these weights on one device, made by `make` at the first call with `key` and kept."""
        with self._lock:
            if key not in self._prepared:
                self._prepared[key] = make()
            value: T = self._prepared[key]
        return value

    def kept_call(self, key: object) -> Any:
        """What `keep_call` kept for `key`, or None."""
        return self._calls.get(key)

    def keep_call(self, key: object, call: T) -> T:
        """Keeps with these weights what `linear` found out for one kind of calls, and returns it."""
        if len(self._calls) >= _MAX_CALLS:
            self._calls.clear()
        self._calls[key] = call
        return call

    def __repr__(self) -> str:
        parts = (("zeros", self._zeros), ("offsets", self._offsets), ("scale2", self._scale2))
        more = "".join(f", {name}" for name, part in parts if part is not None)
        group = "tensor" if self._codec.group == "tensor" else self._group_size
        code = self._dtype.name if self._lut is None else f"lut {list(self._lut.shape)}"
        return (
            f"QuantizedTensor({code}, shape={self.shape}, group_size={group!r}, "
            f"scales={self._scales.dtype.name}{more}, nbytes={self.nbytes})"
        )


class Expected(NamedTuple):
    """The shape that scales, zeros and offsets must have, and how errors say it."""

    shape: tuple[int, int]
    text: str


def _read_only(array: AnyArray) -> AnyArray:
    view = np.ascontiguousarray(array).view()
    view.setflags(write=False)
    return view


def _type_name(array: AnyArray) -> str:
    return _NAMES.get(array.dtype, array.dtype.name)


def _table(lut: AnyArray) -> Table:
    element = next(name for name, kind in TABLE_TYPES.items() if kind == lut.dtype)
    if lut.ndim > 1:
        return Table(table_bits(lut), element, "channel" if lut.ndim == 2 else "group")
    # The sum makes -0 a 0, so that equal tables print alike.
    return Table(table_bits(lut), element, "tensor", tuple((lut.astype(float) + 0.0).tolist()))


def _scale2(value: object) -> np.float32:
    if isinstance(value, bool | np.bool_ | str | list | tuple):
        raise LowlpTypeError(f"scale2: expected a number, got {value!r:.40}")
    array = np.asarray(value) if isinstance(value, float | int) else as_host_array(value, "scale2")
    if array.dtype.kind not in "fiu" and array.dtype != FLOAT_DTYPES["bf16"]:
        raise LowlpTypeError(f"scale2: expected a number, got elements of {array.dtype}")
    if array.size != 1:
        raise LowlpValueError(f"scale2: expected one number for the whole tensor, got shape {list(array.shape)}")
    with np.errstate(over="ignore"):
        number = array.reshape(()).astype(np.float32)[()]
    if not math.isfinite(number):
        raise LowlpValueError(f"scale2: must be finite in float32, got {array.reshape(())[()]}")
    return np.float32(number)


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


def _per_group(value: object, name: str, expected: Expected) -> AnyArray:
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
    return _read_only(array)


def _check_finite(array: Any, name: str) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        row, group = (int(index) for index in np.argwhere(~finite)[0])
        raise LowlpValueError(f"{name}: must be finite, got {float(array[row, group])} at [{row}, {group}]")
