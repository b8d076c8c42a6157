"""Weights that a kernel scales before it multiplies: in which type, and by which power of two f16 holds them.

    in the activation type   where (q - z) * s rounds once there, as `dequantize()` rounded once
    in f32                   else, by the steps of `dequantize()`, rounded at the end

With f16, weights come times 2^-p, and the accumulators times 2^p (`lowlp_runtime.weight_range`): 2^-p goes to what is
multiplied least often.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from lowlp.numeric.codec import prescale_of
from lowlp.numeric.dtypes import dtype
from lowlp_runtime.operand_arrays import exponent_that_fits
from lowlp_runtime.weight_range import Fit, bounds_of

from .schedule import Schedule
from .spec import LinearSpec, prescale

E4M3_UNSCALE: Final = 256.0
"""What scales of e4m3 are divided by where a shift makes them f16: the biases of the exponents differ by 8."""

_LARGEST_OF_LATTICES: Final = 4.0
_LARGEST_E4M3: Final = 448.0
# Of f16.
_F16_BIAS: Final = 15
_LEAST_NORMAL: Final = 2.0**-14
_LEAST_SUBNORMAL: Final = 2.0**-24


def prescale_of_codes(spec: LinearSpec) -> float:
    """The power of two by which codes are multiplied, so that the activation type holds them."""
    return 1.0 if spec.table or spec.vectors or spec.is_of_integers else prescale(dtype(spec.weight), spec.activation)


def kept_factor(spec: LinearSpec) -> float:
    """The power of two by which codes of e8m0 scales are multiplied in f16, so that it has their bits where the codes
    have them and decoding takes no multiplication: it is taken off accumulators at the end of a tile.

    The same bits as without, but for results below 2^-110, of which f32 then has fewer. 1 where it is not done: where
    other blocks get accumulators, in f16 perhaps; experts have whole tiles.
    """
    is_plain = not spec.corrector and not spec.table and not spec.scale2
    if not spec.experts or spec.scale != "e8m0" or not is_plain or spec.activation != "f16":
        return 1.0
    exponent_bits = dtype(spec.weight).exponent_bits
    return 2.0 ** ((1 << (exponent_bits - 1)) - 1 - _F16_BIAS) if exponent_bits else 1.0


@functools.lru_cache(maxsize=4096)
def can_scale_weights(spec: LinearSpec) -> bool:
    """Whether (q - z) * s in the activation type is `dequantize()` rounded once: the type holds s and every q - z; and
    where a number multiplies the product later, a second scale or what e4m3 leaves, every product."""
    if spec.is_of_bytes or spec.vectors or not _holds_scales(spec) or prescale_of_codes(spec) != 1.0:
        return False
    if spec.offsets or spec.zeros not in ("", "int8", "uint8") or (spec.table and spec.scale2):
        return False
    if spec.table:
        # Those of rows and groups are loaded one by one, where a tensor's are multiplied by a power of two at once.
        return spec.scale != "e4m3" and spec.table == "tensor"
    code = dtype(spec.weight)
    if spec.zeros:
        zero = np.iinfo(spec.zeros)
        values = np.arange(code.min - zero.max, code.max - zero.min + 1, dtype=np.float64)
    else:
        values = _finite_values(spec)
    if spec.scale == "e4m3":
        return prescale_of(values, spec.activation) == 1.0 and _keeps_products(spec, values)
    return not spec.scale2 and prescale_of(values, spec.activation) == 1.0


def _keeps_products(spec: LinearSpec, values: np.ndarray) -> bool:
    """Whether products of values and scales of e4m3 over `E4M3_UNSCALE`, by which accumulators are multiplied, are in
    the activation type what products of the scales themselves are; with a second scale, exactly."""
    scales = dtype("f8e4m3").decode(np.arange(0x7F, dtype=np.uint8)).astype(np.float64)
    products = np.outer(values, scales).reshape(-1)
    if spec.scale2:
        return prescale_of(products / E4M3_UNSCALE, spec.activation) == 1.0
    if spec.activation == "bf16":
        return True
    with np.errstate(over="ignore"):
        small = (products / E4M3_UNSCALE).astype(np.float16).astype(np.float64)
        return bool(np.array_equal((small * E4M3_UNSCALE).astype(np.float16), products.astype(np.float16)))


def can_scale_rows(spec: LinearSpec) -> bool:
    """Whether all that is left to do with a row's accumulators at their end is to multiply them by one scale. Zero
    points, and what makes bipolar codes numbers, cost on weights what scales cost there too."""
    is_plain = not spec.is_of_bytes and not spec.vectors and not spec.super_scale
    return is_plain and spec.groups == 1 and not spec.corrector and not spec.is_bipolar


def _holds_scales(spec: LinearSpec) -> bool:
    """Whether the activation type holds all scales; f16 those of e8m0, which come times 2^-p, where they are known to
    be such, and of experts."""
    if spec.scale == "e8m0":
        return spec.activation == "bf16" or (spec.activation == "f16" and (spec.f16_powers or bool(spec.experts)))
    return spec.scale in (spec.activation, "e4m3")


def holds_weights(spec: LinearSpec, stored: Mapping[str, Any]) -> bool:
    """Whether the activation type holds the weights as they are meant: none is infinite there, and they are not tiny.

    stored  arrays of the weights by name
    """
    if spec.activation != "f16":
        return True
    elements = {"scales": spec.scale, "zeros": spec.zeros, "offsets": spec.offsets}
    elements |= {"super_scales": spec.super_scale, "super_offsets": spec.super_scale}
    largest = 1.0 if spec.table else 0.0
    if spec.vectors is not None:
        largest = _largest_sum(spec, stored)
    elif not spec.table:
        largest = float(np.abs(_finite_values(spec)).max())
    return largest == 0.0 or exponent_that_fits(str(Fit("weights", largest)), elements, stored) == 0


def _largest_sum(spec: LinearSpec, stored: Mapping[str, Any]) -> float:
    """A bound of the sums of entries of all books, in absolute value."""
    vectors = spec.vectors
    assert vectors is not None
    factor = bounds_of("book_scales", {}, stored).largest if vectors.has_book_scales else 1.0
    if vectors.lattices:
        return _LARGEST_OF_LATTICES * factor * vectors.books
    entries = np.asarray(stored["codebooks"])
    element = str(vectors.entries)
    if element == "f8e4m3":
        return _LARGEST_E4M3 * factor * vectors.books
    if entries.dtype.kind == "i":
        return 128.0 * factor * vectors.books
    return bounds_of("codebooks", {"codebooks": element}, stored).largest * factor * vectors.books


def _has_lost_powers(scales: np.ndarray, exponent: int, largest: float) -> bool:
    """Whether some scales of e8m0 times 2^-p are less than f16 has, or are 2^-127, which kernels take for 0, while f16
    may have their weights, codes of up to `largest` times as much."""
    # By the bias of e8m0; half of the least subnormal number rounds to 0, which is even.
    least = max(1, 127 + exponent - 24)
    least_weights = 127 + exponent - 24 - 1 - math.ceil(math.log2(largest))
    exponents = np.asarray(scales).view(np.uint8)
    return bool(((exponents < least) & (exponents >= least_weights)).any())


def _finite_values(spec: LinearSpec) -> np.ndarray:
    """The numbers that codes of a type mean."""
    code = dtype(spec.weight)
    decoded = code.decode(np.arange(1 << code.bits, dtype=np.uint8))
    return decoded[np.isfinite(decoded)].astype(np.float64)


def fit_of(spec: LinearSpec, schedule: Schedule | None) -> Fit | None:
    """What a kernel multiplies by 2^-p, so that f16 holds the weights that it scales; None where it scales none, where
    the type has the range of f32, and where every product of a code and a scale is exact.

    schedule  None: of a kernel without stages
    """
    if (
        spec.vectors
        or schedule is None
        or not schedule.stages
        or schedule.scales_on != "weights"
        or spec.activation != "f16"
    ):
        return None
    in_f16 = can_scale_weights(spec)
    if in_f16 and spec.scale == "e4m3":
        return None
    what = "weights" if not in_f16 or spec.scale == "e8m0" else "entries" if spec.table else "scales"
    if spec.table:
        return Fit(what, 1.0)
    # Bipolar codes are scaled by 2 s, which f16 is to hold too.
    return Fit(what, max(float(np.abs(_finite_values(spec)).max()), 2.0 if spec.is_bipolar else 0.0))


def keeps_values(spec: LinearSpec, fit: Fit, stored: Mapping[str, Any], least_value: float) -> bool:
    """Whether results of f16, with rows of I for x, are `dequantize()` rounded once by kernels that multiply weights by
    2^-p, as far as scales tell.

    They are where p = 0. Else f16 holds 11 bits of weights that are normal numbers times 2^-p, and results that are
    normal numbers take all of them; others would be rounded once more, which powers of two times few bits are not.

    stored       arrays of the weights by name
    least_value  the least unscaled value, without zero point, that is not 0
    """
    elements = {"scales": spec.scale, "zeros": spec.zeros, "offsets": spec.offsets}
    elements |= {"super_scales": spec.super_scale, "super_offsets": spec.super_scale}
    exponent = exponent_that_fits(str(fit), elements, stored)
    if spec.scale == "e8m0" and can_scale_weights(spec):
        return not _has_lost_powers(stored["scales"], exponent, fit.largest)
    if exponent == 0:
        return True
    if spec.offsets or spec.zeros in ("f16", "bf16", "f32"):
        # What is left of two numbers of their size may be of any size.
        return False
    least_scale = bounds_of("scales", elements, stored).least
    least = least_scale * least_value
    for name in ("super_scales", "scale2"):
        if stored.get(name) is not None:
            least *= bounds_of(name, elements, stored).least
    if spec.scale == "e8m0" and not spec.table and not spec.scale2:
        # A code's few bits times a power of two: exact unless it is less than f16 has.
        return math.ldexp(least, -exponent) >= _LEAST_SUBNORMAL
    factors = {"weights": least, "scales": least_scale, "entries": least_value}
    is_normal = math.ldexp(least, -max(exponent, 0)) >= _LEAST_NORMAL
    return is_normal and math.ldexp(factors[fit.what], -exponent) >= _LEAST_NORMAL
