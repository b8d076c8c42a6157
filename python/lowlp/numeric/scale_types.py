"""The types of scales, and how the exact scale of a group becomes one that is stored.

    f16, bf16, f32   floats
    e8m0             powers of two from 2^-127 to 2^127 (OCP MX 1.0, section 5.4.1): `ml_dtypes.float8_e8m0fnu`
    e4m3             OCP's FN form, up to 448: `ml_dtypes.float8_e4m3fn`; as a rule with a second scale of the tensor

A scale is rounded up where the nearest one is smaller, so that no weight lies outside the range of the codes. Two
published formats do otherwise, and so does this module for them:

    OCP MX   e8m0 scales of f4e2m1, f6e2m3, f6e3m2, f8e4m3, f8e5m2 and int8 (OCP MX 1.0, section 6.3): the largest
             power of two at most max|w|, over the largest power of two of the type; what exceeds its range becomes its
             largest value
    NVFP4    e4m3 scales of f4e2m1: the nearest (arXiv 2509.25149, appendix on quantisation)
"""

from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.dtypes import DType, library_name, named_dtype
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray
from lowlp_runtime.errors import LowlpValueError

SCALE_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    **FLOAT_DTYPES,
    "e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
}
"""Scale type -> the numpy type of an array of scales."""

E4M3_MAX: Final = 448.0
_E4M3_SMALLEST: Final = 2.0**-9
_OTHER_NAMES: Final = {"f8e4m3": "e4m3", "float8_e4m3fn": "e4m3", "float8_e8m0fnu": "e8m0"}
# Element types of OCP MX 1.0 (table 1; int8 is its MXINT8) and the exponent of their largest power of two. MXINT8
# counts in 2^-6, and has the powers of two up to 1: the same as the int8 code 64.
_MX_EXPONENTS: Final = {"f4e2m1": 2, "f6e2m3": 2, "f6e3m2": 4, "f8e4m3": 8, "f8e5m2": 15, "int8": 6}
_E8M0_LIMIT: Final = 127


def scale_type(value: object, argument: str = "scale_dtype") -> str:
    """The name of a scale type, given by that or another name, or as a `DType`; raises for anything else."""
    name = library_name(value)
    if name is not None:
        found = _OTHER_NAMES.get(name, name)
        if found in SCALE_DTYPES:
            return found
    try:
        found = named_dtype(value, argument).name
    except LowlpValueError:
        found = ""
    found = _OTHER_NAMES.get(found, found)
    if found not in SCALE_DTYPES:
        got = value.name if isinstance(value, DType) else value
        raise LowlpValueError(f"{argument}: must be one of {', '.join(SCALE_DTYPES)}, got {got!r:.40}")
    return found


def is_mx(code: str, scale: str) -> bool:
    """Whether codes of type `code` with scales of type `scale` are a format of OCP MX 1.0."""
    return scale == "e8m0" and code in _MX_EXPONENTS


def is_nvfp4(code: str, scale: str) -> bool:
    """Whether codes of type `code` with scales of type `scale` are NVFP4's."""
    return (code, scale) == ("f4e2m1", "e4m3")


def mx_scale(largest: NDArray[np.float32], code: str) -> AnyArray:
    """The e8m0 scales of an OCP MX format for groups whose largest magnitudes are `largest`; 1 for groups of zeros."""
    exponent = np.frexp(largest)[1] - 1 - _MX_EXPONENTS[code]
    return _power_of_two(np.where(largest > 0, exponent, 0))


def round_up(exact: NDArray[np.float32], scale: str) -> AnyArray:
    """The stored scales for positive exact ones: the nearest, or the next one up where the nearest is smaller by more
    than float32's own noise. Raises `LowlpValueError` where the type has no scale as large."""
    if scale == "e8m0":
        # A power of two alone has the mantissa 1/2; the factor forgives noise just above it.
        mantissa, exponent = np.frexp(exact * np.float32(1 - 2.0**-22))
        return _power_of_two(np.where(mantissa == 0.5, exponent - 1, exponent), exact)
    with np.errstate(over="ignore"):
        stored = exact.astype(SCALE_DTYPES[scale])
    # A positive float's successor has the successor of its bits; so has e4m3, whose last one is NaN.
    bits = stored.view(f"u{stored.dtype.itemsize}")
    bits += (stored.astype(np.float32) < exact * np.float32(1 - 2.0**-22)).astype(bits.dtype)
    if not np.isfinite(stored).all():
        allowed = {"f16": "use scale_dtype='bf16' or 'f32'"}.get(scale, "make the weights smaller")
        raise LowlpValueError(f"scale_dtype: a scale of {float(exact.max()):g} is out of range of {scale}; {allowed}")
    found: AnyArray = stored
    return found


def round_to_e4m3(exact: NDArray[np.float32]) -> AnyArray:
    """The nearest positive e4m3 scales, at most 448."""
    return np.clip(exact, np.float32(_E4M3_SMALLEST), np.float32(E4M3_MAX)).astype(SCALE_DTYPES["e4m3"])


def _power_of_two(exponent: NDArray[Any], exact: NDArray[np.float32] | None = None) -> AnyArray:
    """2^exponent as e8m0, at least 2^-127; beyond 2^127 an error if `exact` is given, else 2^127."""
    if exact is not None and ((exponent > _E8M0_LIMIT) | ~np.isfinite(exact)).any():
        raise LowlpValueError(
            f"scale_dtype: a scale of {float(exact.max()):g} is out of range of e8m0; make the weights smaller"
        )
    bits = np.clip(exponent, -_E8M0_LIMIT, _E8M0_LIMIT) + _E8M0_LIMIT
    scales: AnyArray = bits.astype(np.uint8).view(SCALE_DTYPES["e8m0"])
    return scales
