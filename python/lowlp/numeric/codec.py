"""`Codec`: what the codes of a tensor mean, as data.

    value = (s * (q - z)) * s2      or      (s * q) + b      with q a number of the code's type or T[code]

A codec names the type or table of the codes, the group that shares a scale, and the types of scales, zero points and
offsets. It holds no weights: it keys whatever is made once for all tensors of a kind.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.dtypes import DType, dtype_among
from lowlp.numeric.scale_types import SCALE_DTYPES
from lowlp.numeric.tables import TABLE_TYPES
from lowlp_runtime.errors import LowlpValueError

MAX_CODE_BITS: Final = 8
SCOPES: Final = ("tensor", "channel", "group")
ZERO_TYPES: Final = ("int8", "uint8", "int16", "f16", "bf16", "f32")
OFFSET_TYPES: Final = ("f16", "bf16", "f32")


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


@dataclass(frozen=True)
class Table:
    """The table of a codec.

    bits     of a code, 1 to 8
    element  'f16' or 'f32'
    scope    'tensor': one table; 'channel': one for each row; 'group': one for each group of a row
    entries  of one table, the 2**bits values by code; None for several: the tensor holds them
    """

    bits: int
    element: str
    scope: str
    entries: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= MAX_CODE_BITS:
            raise LowlpValueError(f"bits: must be in 1..{MAX_CODE_BITS}, got {self.bits}")
        if self.element not in TABLE_TYPES:
            raise LowlpValueError(f"element: must be one of {', '.join(TABLE_TYPES)}, got {self.element!r}")
        if self.scope not in SCOPES:
            raise LowlpValueError(f"scope: must be one of {', '.join(SCOPES)}, got {self.scope!r}")
        if (self.entries is not None) != (self.scope == "tensor"):
            raise LowlpValueError(f"entries: given exactly for the scope 'tensor', got the scope {self.scope!r}")
        if self.entries is not None and len(self.entries) != 1 << self.bits:
            raise LowlpValueError(f"entries: expected {1 << self.bits} of {self.bits} bits, got {len(self.entries)}")

    def __str__(self) -> str:
        """`lut4:f32:6f1c03aa`, with the first digits of a hash of the values; `lut3:f16:group`."""
        if self.entries is None:
            return f"lut{self.bits}:{self.element}:{self.scope}"
        digest = hashlib.sha256(np.asarray(self.entries, "<f4").tobytes()).hexdigest()
        return f"lut{self.bits}:{self.element}:{digest[:8]}"


@dataclass(frozen=True)
class Codec:
    """What codes mean; immutable, and equal to another exactly when all its fields are.

    code     the type of the codes, a `DType` of 1 to 8 bits, or their `Table`
    group    weights of a row that share a scale; 'channel': a whole row; 'tensor': all weights
    scale    type of the scales: 'f16', 'bf16', 'f32', 'e8m0', 'e4m3'
    zeros    type of the zero points, or None: 'int8', 'uint8', 'int16', 'f16', 'bf16', 'f32'; integers only
    offsets  type of the offsets, or None: 'f16', 'bf16', 'f32'; excludes zeros and scale2
    scale2   whether there is a second scale, a float32 number for the whole tensor

    Printed, `int6 g128 f16`, `uint4 channel bf16 zeros:uint8`, `f4e2m1 g16 e4m3 scale2`, `lut4:f32:6f1c03aa g64 f16`.
    Raises `LowlpValueError` for fields that do not go together.
    """

    code: DType | Table
    group: int | Literal["channel", "tensor"]
    scale: str = "f16"
    zeros: str | None = None
    offsets: str | None = None
    scale2: bool = False

    def __post_init__(self) -> None:
        if self.code.bits > MAX_CODE_BITS:
            raise LowlpValueError(f"dtype: {self.code} has {self.code.bits} bits; a code has 1..{MAX_CODE_BITS}")
        if self.group not in ("channel", "tensor") and (not isinstance(self.group, int) or self.group < 1):
            raise LowlpValueError(f"group: must be a positive int, 'channel' or 'tensor', got {self.group!r}")
        for name, allowed in (("scale", SCALE_DTYPES), ("zeros", ZERO_TYPES), ("offsets", OFFSET_TYPES)):
            found = getattr(self, name)
            if found not in allowed and (found is not None or name == "scale"):
                raise LowlpValueError(f"{name}: must be one of {', '.join(allowed)}, got {found!r}")
        if self.zeros is not None and self.offsets is not None:
            raise LowlpValueError("zeros, offsets: at most one of them may be given, got both")
        if self.zeros is not None and (isinstance(self.code, Table) or not self.code.is_integer):
            what = f"{self.bits}-bit table" if isinstance(self.code, Table) else self.code.name
            raise LowlpValueError(f"zeros: allowed for integer types only, got dtype {what}; use offsets")
        if self.scale2 and self.offsets is not None:
            raise LowlpValueError("scale2, offsets: at most one of them may be given, got both")

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.code.bits

    @property
    def table(self) -> Table | None:
        """The table; None for codes of a type."""
        return self.code if isinstance(self.code, Table) else None

    def values(self) -> NDArray[np.float32]:
        """The unscaled values of the codes 0 to 2**bits - 1, float32, exact; NaN and infinity where a code means these.

        Raises `LowlpValueError` for a table a channel or a group, which only the tensor knows.
        """
        if isinstance(self.code, DType):
            return self.code.decode(np.arange(1 << self.bits, dtype=np.uint8))
        if self.code.entries is None:
            raise LowlpValueError(
                f"codec: {self} has a table for each {self.code.scope}; the tensor's `lut` holds them"
            )
        return np.asarray(self.code.entries, np.float32)

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

    def __str__(self) -> str:
        group = f"g{self.group}" if isinstance(self.group, int) else self.group
        parts = [str(self.code), group, self.scale]
        parts += [f"{name}:{kind}" for name, kind in (("zeros", self.zeros), ("offsets", self.offsets)) if kind]
        return " ".join(parts + ["scale2"] * self.scale2)
