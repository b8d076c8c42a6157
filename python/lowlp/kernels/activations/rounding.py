"""How tiles of f32 [rows, numbers] become codes, step for step as `lowlp.activations.quantize` says.

A number t is rounded to an integer by adding 1.5 * 2^23: the sum has units of 1 in its last place, and its lowest byte
is the integer's, in two's complement. Sums of codes are sums of these words, less what each has above.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final

import numpy as np

from lowlp import language as ll
from lowlp.activations.quantize import LEAST_SCALE, Rule

_MAGIC: Final = 1.5 * 2**23
_F32_MANTISSA: Final = 23
_F32_BIAS: Final = 127
_MAGIC_BITS: Final = struct.unpack("<I", struct.pack("<f", _MAGIC))[0]


@dataclass(frozen=True)
class Extremes:
    """What scales are made of, each [rows, 1] of f32, of finite rows; 0 of others.

    is_finite  where a row holds neither NaN nor infinities
    low        the least number, at most 0; None where scales are symmetric
    high       the largest number, at least 0; the largest magnitude where scales are symmetric
    """

    is_finite: ll.Tile
    low: ll.Tile | None
    high: ll.Tile


def extremes_of(x: ll.Tile, symmetric: bool) -> Extremes:
    """Of the rows of a tile."""
    if symmetric:
        return finite_extremes(None, ll.max(ll.abs(x), 1, keep_dims=True))
    return finite_extremes(ll.min(x, 1, keep_dims=True), ll.max(x, 1, keep_dims=True))


def finite_extremes(least: ll.Tile | None, most: ll.Tile) -> Extremes:
    """Of rows whose least and largest numbers these are; None: `most` is the largest magnitude."""
    if least is None:
        finite = most < math.inf
        return Extremes(finite, None, ll.where(finite, most, 0.0))
    low, high = ll.minimum(least, 0.0), ll.maximum(most, 0.0)
    finite = ll.maximum(-low, high) < math.inf
    return Extremes(finite, ll.where(finite, low, 0.0), ll.where(finite, high, 0.0))


def scales_of(rule: Rule, found: Extremes) -> ll.Tile:
    """The scale of each row."""
    symmetric = found.low is None
    span = found.high if symmetric else found.high - found.low
    steps = rule.kind.largest if symmetric else rule.kind.high - rule.kind.low
    clipped = span if rule.clip == 1 else span * float(np.float32(rule.clip))
    scales = ll.maximum(clipped / float(steps), float(LEAST_SCALE))
    return ll.where(ll.equal(span, 0.0), 1.0, scales)


def zeros_of(rule: Rule, found: Extremes, inverse: ll.Tile) -> ll.Tile | None:
    """The zero point of each row as f32, of scales that are not symmetric; else None."""
    if found.low is None:
        return None
    kind = rule.kind
    clipped = found.low if rule.clip == 1 else found.low * float(np.float32(rule.clip))
    steps = (-clipped * inverse + _MAGIC) - _MAGIC
    zeros: ll.Tile = ll.clamp(steps, 0.0, float(kind.high - kind.low)) + float(kind.low)
    return zeros


@dataclass(frozen=True)
class Codes:
    """Codes of a tile, and the sum of those of each row, int32 [rows, 1]; None for floats."""

    codes: ll.Tile
    sums: ll.Tile | None


def codes_of(rule: Rule, x: ll.Tile, inverse: ll.Tile, zeros: ll.Tile | None) -> Codes:
    """Codes of finite numbers."""
    kind, exact = rule.kind, x * inverse
    if kind.is_float:
        return Codes(_as_float(rule, exact), None)
    if kind.is_bipolar:
        exact = (exact + float(kind.high)) * 0.5
    shifted = exact + _MAGIC
    if zeros is not None:
        shifted = shifted + zeros
    elif kind.is_unsigned:
        shifted = shifted + float(code_of_zero(rule))
    if zeros is not None or rule.scale == "given" or rule.clip != 1:
        most = 1 if kind.ternary else kind.high
        shifted = ll.clamp(shifted, _MAGIC + rule.least, _MAGIC + most)
    words = ll.view(shifted, dtype="uint32", layout=shifted.layout)
    codes = ll.cast(words & 255, "uint8")
    if kind.low:
        codes = ll.view(codes, dtype="int8", layout=codes.layout)
    total = ll.sum(ll.view(words, dtype="int32", layout=words.layout), 1, keep_dims=True)
    return Codes(codes, total - _as_int32(_MAGIC_BITS * words.shape[1]))


def _as_float(rule: Rule, exact: ll.Tile) -> ll.Tile:
    """Floats of 8 bits, in half of the instructions of a cast, which also knows NaN and infinities.

    A magnitude of the exponent e, or of the least normal number, is rounded by adding 1.5 * 2^23 times the unit of that
    exponent. The sum counts units; codes count them too, from the code at which the exponent begins.
    """
    dtype, layout = rule.kind.dtype, exact.layout
    dropped, bias = _F32_MANTISSA - dtype.mantissa_bits, 2 ** (dtype.exponent_bits - 1) - 1
    magnitude = ll.abs(exact)
    if rule.scale == "given" or rule.clip != 1:
        # Else the largest one is a rounding above what its type has at most, which is rounded away.
        magnitude = ll.minimum(magnitude, float(rule.kind.largest))
    normal = ll.view(ll.maximum(magnitude, 2.0 ** (1 - bias)), dtype="uint32", layout=layout)
    exponent = normal & (0xFF << _F32_MANTISSA)
    magic = exponent + ((dropped << _F32_MANTISSA) | 1 << (_F32_MANTISSA - 1))
    counted = ll.view(magnitude + ll.view(magic, dtype="f32", layout=layout), dtype="uint32", layout=layout)
    begin = (_F32_BIAS - bias + 1) << dtype.mantissa_bits
    code = counted + (exponent >> dropped) - begin
    sign = ll.view(exact, dtype="uint32", layout=layout) >> 24
    codes = ll.cast((code & 0x7F) | (sign & 0x80), "uint8")
    return ll.view(codes, dtype=dtype, layout=layout)


def code_of_zero(rule: Rule) -> int:
    """What the number 0 becomes, without zero points of rows."""
    kind = rule.kind
    if kind.is_bipolar:
        return int(np.rint(np.float32(kind.high) * np.float32(0.5)))
    return 1 << (kind.dtype.bits - 1) if kind.is_unsigned else 0


def sums_of_row(rule: Rule, sums: ll.Tile, zeros: ll.Tile | None, beyond: int) -> ll.Tile:
    """Sums of codes without those of so many zeros beyond the end of a row."""
    if not beyond:
        return sums
    if zeros is not None:
        return sums - ll.cast(zeros, "int32") * beyond
    return sums - code_of_zero(rule) * beyond


def _as_int32(number: int) -> int:
    """The number modulo 2^32, as int32 has it."""
    low = number % 2**32
    return low - 2**32 if low >> 31 else low
