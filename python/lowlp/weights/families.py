"""Fragment families: the compute type for whose matrix instructions packed words are placed.

The packed format has a placement for each format of codes and each family, and most of them differ: words of one family
are no words of another. A tensor therefore belongs to one family, and is repacked for another.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from lowlp.activations.kinds import ALLOWED, TERNARY, activation_kind
from lowlp.numeric.codec import Table
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp.numeric.vectors import Vectors
from lowlp.weights.packing import PLANES, find_placement
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

FAMILIES: Final = {"f16": "f16", "bf16": "bf16", "s8": "int8", "e4m3": "f8e4m3", "b1": PLANES}
"""Family -> the compute type by which its placements are named."""

_FAMILY_OF: Final = {compute: family for family, compute in FAMILIES.items()}
_ALLOWED: Final = ", ".join(FAMILIES)
# f16 has 5 exponent bits.
_F16_EXPONENT_BITS: Final = 5


def family_named(value: object, argument: str = "activation") -> str:
    """The family of that name, or of activations of that type: 's8' and 'int8' are the same.

    value  'f16', 'bf16', 's8', 'e4m3' or 'b1' (planes of single bits), or a type of activations, as a name or `DType`:
           quantised integers of 1 to 8 bits and 'ternary' are bytes of s8, and f8e5m2 is of e4m3

    Raises `LowlpTypeError` and `LowlpValueError`, which name `argument`.
    """
    if isinstance(value, str):
        if value in FAMILIES:
            return value
    elif not isinstance(value, DType):
        raise LowlpTypeError(f"{argument}: expected the name of a family ({_ALLOWED}) or a DType, got {value!r:.40}")
    try:
        if value != TERNARY and (found := named_dtype(value, argument).name) in _FAMILY_OF:
            return _FAMILY_OF[found]
        return "e4m3" if activation_kind(value, argument).is_float else "s8"
    except LowlpValueError:
        raise LowlpValueError(
            f"{argument}: must be one of {_ALLOWED}, or a type of quantised activations ({ALLOWED}), "
            f"got {str(value)!r:.40}"
        ) from None


def family_for(code: DType | Table | Vectors, activation: object) -> str:
    """The family of weights of these codes: that of `activation`; with None f16, or bf16 for floats with more exponent
    bits than f16 has. Raises as `family_named`, and `LowlpValueError` where the format has no such placement."""
    if activation is None:
        too_wide = isinstance(code, DType) and code.is_float and code.exponent_bits > _F16_EXPONENT_BITS
        return "bf16" if too_wide else "f16"
    family = family_named(activation)
    try:
        find_placement(code, FAMILIES[family])
    except LowlpValueError:
        raise LowlpValueError(
            f"activation: the packed format has no placement of {code} for family {family}; use 'f16' or 'bf16'"
        ) from None
    return family


@lru_cache(maxsize=256)
def are_placed_alike(code: DType | Table | Vectors, family: str, other: str) -> bool:
    """Whether words of one family are, bit for bit, words of the other."""
    if family == other:
        return True
    first, second = (find_placement(code, FAMILIES[name]) for name in (family, other))
    if (first.unit_rows, first.parts) != (second.unit_rows, second.parts):
        return False
    return bool(np.array_equal(first.places(), second.places()))
