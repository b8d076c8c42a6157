"""`Codec`: what the codes of a tensor mean, as data.

    value = (s * (q - z)) * s2      or      (s * q) + b      with q a number of the code's type or T[code]
    value = s * (C_0[q_0] + ...)      with vectors of weights that are entries of codebooks
    value = (S * s) * (q - z)       or      ((S * s) * q) + (B * b)      with integers s, b and super-scales S, B

A codec names the type or lookup table of the codes, the group that shares a scale, and the types of scales, zero
points and offsets. It holds no weights: it keys whatever is made once for all tensors of a kind. Its rules and its text
are the C++ library's (dialect/include/lowlp/Numeric/Codec.h), and `#lowlp.codec` in the compiler is the same object.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from lowlp import _layout
from lowlp.numeric.dtypes import DType, dtype_among
from lowlp.numeric.native_view import NativeView
from lowlp.numeric.vectors import Vectors, vectors_of
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

MAX_CODE_BITS: Final[int] = _layout.MAX_CODE_BITS
"""Of codes that are numbers, and of those that tensors hold."""
MAX_INDEX_BITS: Final[int] = _layout.MAX_INDEX_BITS
"""Of indices of a lookup table, in packed words."""
MAX_GROUP_SIZE: Final = 2**63 - 1
"""Of groups and super-groups; these may be longer than a row."""
SCOPES: Final[tuple[str, ...]] = tuple(_layout.TABLE_SCOPES)
SCALE_TYPES: Final[tuple[str, ...]] = tuple(_layout.SCALE_TYPES)
ZERO_TYPES: Final[tuple[str, ...]] = tuple(_layout.ZERO_TYPES)
OFFSET_TYPES: Final[tuple[str, ...]] = tuple(_layout.OFFSET_TYPES)


@dataclass(frozen=True)
class _ComputeType:
    """The numbers of a type that tensor cores multiply: multiples of 2^least with at most `bits` significant bits, from
    `low` to `high`."""

    bits: int
    least: int
    low: float
    high: float


_COMPUTE_TYPES: Final = {
    "f16": _ComputeType(11, -24, -65504.0, 65504.0),
    "bf16": _ComputeType(8, -133, -(2.0**128 - 2.0**120), 2.0**128 - 2.0**120),
    "int8": _ComputeType(8, 0, -128.0, 127.0),
    "f8e4m3": _ComputeType(4, -9, -448.0, 448.0),
}
COMPUTE_TYPES: Final = tuple(_COMPUTE_TYPES)
"""The types in which tensor cores may take unscaled values."""


def prescale_of(values: NDArray[np.floating], compute: str | DType) -> float | None:
    """The power of two, of all that serve the one nearest to 1, by which every one of `values` becomes a number of the
    type `compute`, subnormals included; None where there is none.

    values   finite, exact in float64
    compute  'f16', 'bf16', 'int8' or 'f8e4m3'
    """
    held = _COMPUTE_TYPES[dtype_among(compute, "compute", COMPUTE_TYPES)]
    exact = np.unique(np.asarray(values, np.float64))
    exact = exact[exact != 0]
    if not exact.size:
        return 1.0
    # value = odd * 2^exponent, from the 53 bits of float64's mantissa.
    mantissa, exponent = np.frexp(exact)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    odd_bits = 53 - trailing
    if odd_bits.max() > held.bits:
        return None
    least = held.least - int((exponent - odd_bits).min())
    low, high = float(exact.min()), float(exact.max())

    def fits(power: int) -> bool:
        return bool(held.low <= np.ldexp(low, power) and np.ldexp(high, power) <= held.high)

    # Powers from `least` to some largest one serve; the smallest magnitudes fit first.
    if least >= 0:
        return 2.0**least if fits(least) else None
    power = 0
    while power > least and not fits(power):
        power -= 1
    return 2.0**power if fits(power) else None


class Table(NativeView):
    """The lookup table of a codec; immutable, and equal to another exactly when all its fields are.

    bits     of a code, 1 to 16
    element  'f16' or 'f32'
    scope    'tensor': one table; 'channel': one for each row; 'group': one for each group of a row
    entries  of the one table of a tensor, the 2**bits finite values by code, rounded to float32; None: the tensor holds
             them
    """

    __slots__ = ()

    def __init__(self, bits: int, element: str, scope: str, entries: Iterable[float] | None = None) -> None:
        values = None if entries is None else [float(entry) for entry in entries]
        try:
            field = _layout.CodecField.of_table(bits, str(element), str(scope), values)
        except ValueError as error:
            raise LowlpValueError(str(error)) from None
        object.__setattr__(self, "_held", field)

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return int(self._held.bits)

    @property
    def element(self) -> str:
        """The type of the entries."""
        return str(self._held.table[1])

    @property
    def scope(self) -> str:
        """What has a table of its own."""
        return str(self._held.table[2])

    @property
    def entries(self) -> tuple[float, ...] | None:
        """The values by code, or None."""
        entries = self._held.table[3]
        return None if entries is None else tuple(entries)

    def __reduce__(self) -> tuple[type[Table], tuple[object, ...]]:
        return Table, (self.bits, self.element, self.scope, self.entries)

    def __repr__(self) -> str:
        return f"Table({self})"

    def __str__(self) -> str:
        """`lut4:f32:6f1c03aa`, with the first digits of a hash of the values; `lut3:f16:group`."""
        if self.entries is None:
            return str(self._held.text)
        digest = hashlib.sha256(np.asarray(self.entries, "<f4").tobytes()).hexdigest()
        return f"lut{self.bits}:{self.element}:{digest[:8]}"


class Codec(NativeView):
    """What codes mean; immutable, and equal to another exactly when all its fields are.

    code     the type of the codes, a `DType` of 1 to 8 bits, or their `Table`, or `Vectors`, which have scales only
    group    weights of a row that share a scale; 'channel': a whole row; 'tensor': all weights
    scale    type of the scales: 'f16', 'bf16', 'f32', 'e8m0', 'e4m3'
    zeros    type of the zero points, or None: 'int8', 'uint8', 'int16', 'f16', 'bf16', 'f32'; integers only
    offsets  type of the offsets, or None: 'f16', 'bf16', 'f32'; excludes zeros and scale2
    scale2   whether there is a second scale, a float32 number for the whole tensor
    super_scale  type of the super-scales, or None: 'f16', 'bf16', 'f32'. Scales are then integers, 'uint4', 'int6',
             'uint8' or 'int8', and so may offsets be, whose super-offsets have the type of super-scales: 'uint4'
             or 'int6' where scales are, else of 8 bits
    super_group  weights of a row that share a super-scale, a multiple of the group; 'channel': a whole row

    Printed, `int6 g128 f16`, `uint4 channel bf16 zeros:uint8`, `f4e2m1 g16 e4m3 scale2`, `lut4:f32:6f1c03aa g64 f16`,
    `uint4 g32 uint8 offsets:uint8 super:f16:g256`, `vec8:2x8:f16 channel f16`.
    A new codec is data: a `Table` with other entries needs no code. Raises `LowlpValueError` for fields that do not go
    together and `LowlpTypeError` for a code that is neither a type nor a table nor vectors.
    """

    __slots__ = ()

    def __init__(
        self,
        code: DType | Table | Vectors,
        group: int | Literal["channel", "tensor"],
        scale: str = "f16",
        zeros: str | None = None,
        offsets: str | None = None,
        scale2: bool = False,
        super_scale: str | None = None,
        super_group: int | Literal["channel"] = "channel",
    ) -> None:
        if not isinstance(group, int | str) or isinstance(group, bool):
            raise LowlpValueError(f"group: must be a positive int, 'channel' or 'tensor', got {group!r}")
        if not isinstance(scale, str):
            raise LowlpValueError(f"scale: must be one of {', '.join(SCALE_TYPES)}, got {scale!r}")
        if not isinstance(super_group, int | str) or isinstance(super_group, bool):
            raise LowlpValueError(f"super_group: must be a positive int or 'channel', got {super_group!r}")
        for name, size in (("group", group), ("super_group", super_group)):
            if isinstance(size, int) and size > MAX_GROUP_SIZE:
                raise LowlpValueError(f"{name}: must be at most 2^63 - 1, got an int of {size.bit_length()} bits")
        try:
            held = _layout.Codec.create(
                _field_of(code), group, scale, zeros, offsets, bool(scale2), super_scale, super_group
            )
        except ValueError as error:
            raise LowlpValueError(str(error)) from None
        object.__setattr__(self, "_held", held)

    @staticmethod
    def parse(text: str) -> Codec:
        """The codec of a text such as 'int6 g128 f16' or 'lut2:f32[-1, 0, 0.5, 1] g64 f16', as `text` prints it.
        Raises `LowlpValueError`."""
        try:
            return _codec_of(_layout.Codec.parse(text))
        except ValueError as error:
            raise LowlpValueError(str(error)) from None

    @staticmethod
    def codes_alone(code: DType | Table | Vectors) -> Codec:
        """Codes without scales: what a kernel sees that scales by itself."""
        try:
            return _codec_of(_layout.Codec.codes_alone(_field_of(code)))
        except ValueError as error:
            raise LowlpValueError(str(error)) from None

    @property
    def code(self) -> DType | Table | Vectors:
        """The type of the codes, or their table, or what vectors they are."""
        field = self._held.field
        if field.vectors is not None:
            return vectors_of(field)
        if field.number is not None:
            return DType(field.number.name)
        table = object.__new__(Table)
        object.__setattr__(table, "_held", field)
        return table

    @property
    def group(self) -> int | Literal["channel", "tensor"]:
        """Weights of a row that share a scale, 'channel' or 'tensor'."""
        group: int | Literal["channel", "tensor"] = self._held.group
        return group

    @property
    def scale(self) -> str:
        """The type of the scales; '' where there are none."""
        return self._held.scale or ""

    @property
    def zeros(self) -> str | None:
        """The type of the zero points, or None."""
        zeros: str | None = self._held.zeros
        return zeros

    @property
    def offsets(self) -> str | None:
        """The type of the offsets, or None."""
        offsets: str | None = self._held.offsets
        return offsets

    @property
    def scale2(self) -> bool:
        """Whether there is a second scale."""
        return int(self._held.scale_levels) == 2 and self.super_scale is None

    @property
    def super_scale(self) -> str | None:
        """The type of the super-scales, or None."""
        return None if self._held.super is None else str(self._held.super[0])

    @property
    def super_group(self) -> int | Literal["channel"] | None:
        """Weights of a row that share a super-scale, or 'channel'; None without super-scales."""
        return None if self._held.super is None else self._held.super[1]

    @property
    def bits(self) -> int:
        """Bits of a code; of vectors of that of a book."""
        return int(self._held.field.bits)

    @property
    def table(self) -> Table | None:
        """The table; None for other codes."""
        code = self.code
        return code if isinstance(code, Table) else None

    @property
    def vectors(self) -> Vectors | None:
        """What vectors the codes are; None for codes of one weight."""
        return vectors_of(self._held.field) if self._held.field.vectors is not None else None

    @property
    def text(self) -> str:
        """All fields as text that `parse` reads, the entries of a table among them."""
        return str(self._held.text)

    def for_kernel(self, k: int) -> Codec:
        """The form in which one kernel serves all codecs that differ by its arguments: tables without entries, and a
        group of all `k` weights of a row as 'channel'."""
        return _codec_of(self._held.for_kernel(k))

    def values(self) -> NDArray[np.float32]:
        """The unscaled values of the codes 0 to 2**bits - 1, float32, exact; NaN and infinity where a code means these.

        Raises `LowlpValueError` for tables that only the tensor knows, and for vectors.
        """
        code = self.code
        if isinstance(code, Vectors):
            raise LowlpValueError(
                f"codec: codes of {self} stand for {code.vector} weights; the tensor's `codebooks` hold them"
            )
        if isinstance(code, DType):
            return code.decode(np.arange(1 << self.bits, dtype=np.uint8))
        if code.entries is None:
            raise LowlpValueError(f"codec: {self} has a table for each {code.scope}; the tensor's `lut` holds them")
        return np.asarray(code.entries, np.float32)

    def prescale(self, compute: str | DType) -> float | None:
        """The power of two by which all finite unscaled values become exact numbers of the type `compute`, subnormals
        included; of several the one nearest to 1. None where no power does.

        compute  'f16', 'bf16', 'int8' or 'f8e4m3'
        """
        values = self.values()
        return prescale_of(values[np.isfinite(values)], compute)

    @property
    def exact_in(self) -> tuple[str, ...]:
        """The types of `COMPUTE_TYPES` that hold every unscaled value up to a common power of two."""
        return tuple(name for name in COMPUTE_TYPES if self.prescale(name) is not None)

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Codec.parse, (self.text,)

    def __repr__(self) -> str:
        return f"Codec({self})"

    def __str__(self) -> str:
        return str(self._held.text_with(str(self.code)))


def _field_of(code: object) -> Any:
    if isinstance(code, Table | Vectors):
        return code._held
    if not isinstance(code, DType):
        raise LowlpTypeError(f"code: expected a DType, a Table or Vectors, got {type(code).__name__}")
    return _layout.CodecField.of_number(code._format)


def _codec_of(held: Any) -> Codec:
    codec = object.__new__(Codec)
    object.__setattr__(codec, "_held", held)
    return codec
