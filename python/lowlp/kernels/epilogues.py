"""What is done with the accumulators of a product before they are stored: the `epilogue` of `linear`.

All functions work on tiles of f32, in f32; NaN stays NaN. The exponential is that of `ll.exp`, quotients are rounded to
nearest.
"""

from __future__ import annotations

import math
from typing import Final

from lowlp import language as ll

# The tail of the normal distribution, Q(t) = exp(-t^2 / 2) * (a polynomial in u without a constant), where
# u = 1 / (1 + 0.265 t) and t is in [0, 14]. A minimax fit of degree 9: 1.4e-8 of Q, and 4e-7 where all is f32.
_TAIL_SLOPE: Final = 0.265
_TAIL: Final = (
    0.030624479601566456,
    -0.1433006634423025,
    0.21595041114458974,
    -0.11428644225929549,
    0.13655491421565527,
    0.060895036650811404,
    0.1025550839537582,
    0.10526677943650806,
    0.10574039732526515,
)
# From here on Q is 0 in f32.
_LAST_OF_TAIL: Final = 14.5
GPT_OSS_SLOPE: Final = 1.702
GPT_OSS_LIMIT: Final = 7.0


def _inverse(x: ll.Tile) -> ll.Tile:
    """1 / x of numbers from 1 on, within a relative error of 2^-21: two instructions, where a quotient that is rounded
    to nearest takes ten and a branch, for which ptxas spills."""
    root = ll.rsqrt(x)
    return root * root


def relu(x: ll.Tile) -> ll.Tile:
    """The larger of x and 0, exact."""
    result: ll.Tile = ll.maximum(x, 0.0)
    return result


def silu(x: ll.Tile) -> ll.Tile:
    """x / (1 + e^-x), within a relative error of 1e-6; what is beyond -88.7 becomes -0, an error of 3e-37."""
    return x * _inverse(ll.exp(-x) + 1.0)


def gelu(x: ll.Tile) -> ll.Tile:
    """x times the probability that a normal number is less than x (Hendrycks and Gimpel, arXiv 1606.08415), within a
    relative error of 1e-6 on both sides of 0."""
    magnitude = ll.minimum(ll.abs(x), _LAST_OF_TAIL)
    u = _inverse(ll.fma(magnitude, _TAIL_SLOPE, 1.0))
    polynomial = ll.fma(u, _TAIL[0], _TAIL[1])
    for coefficient in _TAIL[2:]:
        polynomial = ll.fma(polynomial, u, coefficient)
    square = magnitude * magnitude
    # What the rounding of the square lost counts, as the exponent goes up to 100.
    lost = ll.fma(magnitude, magnitude, -square)
    power = ll.exp(square * -0.5)
    tail = ll.fma(power * -0.5, lost, power) * (polynomial * u)
    return x * ll.where(x < 0.0, tail, 1.0 - tail)


def gelu_tanh(x: ll.Tile) -> ll.Tile:
    """0.5 x (1 + tanh(z)) with z = sqrt(2 / pi) (x + 0.044715 x^3) (as `gelu`, section 2), which is x / (1 + e^-2z);
    within a relative error of 1e-6, and of 1e-5 below -3, where z is rounded at a large number."""
    root = math.sqrt(2 / math.pi)
    minus_two_z = x * ll.fma(x * x, -2 * root * 0.044715, -2 * root)
    return x * _inverse(ll.exp(minus_two_z) + 1.0)


def gpt_oss(gate: ll.Tile, up: ll.Tile) -> ll.Tile:
    """(up + 1) gate / (1 + e^(-1.702 gate)), with gate at most 7 and up in -7 to 7, as `GptOssExperts` of transformers
    has it; within a relative error of 1e-6, and of 1e-5 of a gate below -7, whose product is rounded at a large
    number."""
    gate = ll.minimum(gate, GPT_OSS_LIMIT)
    up = ll.maximum(ll.minimum(up, GPT_OSS_LIMIT), -GPT_OSS_LIMIT)
    return gate * _inverse(ll.exp(gate * -GPT_OSS_SLOPE) + 1.0) * (up + 1.0)


def applied(epilogue: str, accumulators: tuple[ll.Tile, ...]) -> ll.Tile:
    """The result of an epilogue of `spec.EPILOGUES`, of one tile of accumulators; for those `GATED` of gate and up."""
    if epilogue == "silu_mul":
        gate, up = accumulators
        return silu(gate) * up
    if epilogue == "gpt_oss":
        return gpt_oss(*accumulators)
    (x,) = accumulators
    functions = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}
    return functions[epilogue](x) if epilogue else x
