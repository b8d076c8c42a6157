"""Which types activations are quantised to, and how numbers of them are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import ml_dtypes
import numpy as np

from lowlp.numeric.dtypes import DType, int2, library_name, named_dtype
from lowlp_runtime.errors import LowlpValueError

FLOATS: Final[dict[str, np.dtype[Any]]] = {
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8e5m2": np.dtype(ml_dtypes.float8_e5m2),
}
TERNARY: Final = "ternary"
ALLOWED: Final = "int2 to int8, uint1 to uint8, bipolar1 to bipolar8, ternary, f8e4m3 or f8e5m2"


@dataclass(frozen=True)
class ActivationKind:
    """A type of quantised activations.

    dtype    the type of the codes; int2 for ternary
    ternary  only -1, 0 and 1 are used
    """

    dtype: DType
    ternary: bool = False

    @property
    def name(self) -> str:
        """As users give it."""
        return TERNARY if self.ternary else self.dtype.name

    @property
    def is_float(self) -> bool:
        """Codes are floats of 8 bits."""
        return self.dtype.is_float

    @property
    def is_bipolar(self) -> bool:
        """A code u means 2 u - (2^b - 1)."""
        return not self.dtype.is_float and not self.dtype.is_integer

    @property
    def is_unsigned(self) -> bool:
        """A code u means u less a zero point."""
        return self.dtype.is_integer and not self.dtype.is_signed

    @property
    def stored(self) -> np.dtype[Any]:
        """The type of arrays of codes."""
        if self.is_float:
            return FLOATS[self.dtype.name]
        return np.dtype(np.int8 if self.dtype.is_integer and self.dtype.is_signed else np.uint8)

    @property
    def low(self) -> int:
        """The least code as it is stored, of integers."""
        return int(self.dtype.min) if self.dtype.is_integer and self.dtype.is_signed else 0

    @property
    def high(self) -> int:
        """The largest code as it is stored, of integers."""
        return self.low + (1 << self.dtype.bits) - 1

    @property
    def largest(self) -> int:
        """The number that max|x| becomes with a scale that is symmetric: 127 for int8, 128 - 1 above the zero point of
        128 for uint8, 255 for bipolar8, 448 for f8e4m3."""
        if self.dtype.is_integer:
            return (1 << (self.dtype.bits - 1)) - 1
        return int(self.dtype.max)


def activation_kind(dtype: object, argument: str = "dtype") -> ActivationKind:
    """The kind with this name, or of this type; `argument` is what errors call it. Raises `LowlpValueError` and
    `LowlpTypeError`."""
    if library_name(dtype) == TERNARY:
        return ActivationKind(int2, ternary=True)
    found = named_dtype(dtype, argument)
    one_of = found.name in FLOATS or (not found.is_float and found.bits <= 8 and found.name != "int1")
    if not one_of:
        hint = "; uint1 and bipolar1 have one bit" if found.name == "int1" else ""
        raise LowlpValueError(f"{argument}: activations are {ALLOWED}, got {found.name}{hint}")
    return ActivationKind(found)
