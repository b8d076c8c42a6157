"""Sums of the entries of several books, which `wgmma` then multiplies, in as few instructions as they take.

f16, bf16         entries are added as they are; of f16 they leave room for the sums (operand transform 'sums')
e4m3              the sum of entry_r * f_r in f16, f_r being the scales of the books over the largest; or over the
                  first, where that is known to do (`are_near`), whose entries then are taken as they are
int8, e8p, e81b   numbers p_r, whose values are (p_r - middle) * unit, are placed in halves as they are: the bits of
                  subnormals. One multiply-add for each of two books then makes values of f16, and scales and adds
                  them:

    sum = p_1 * f_1 + (p_0 * f_0 - middle * (f_0 + f_1))

f_0 is a power of two and f_1 a multiple of 2^-10, none above 1 in magnitude, so that all but the last addition is
exact, and f_1 is off by 2^-11 of the larger of both at most. Further books add value_r * f_r.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lowlp import language as ll
from lowlp.layouts.register_layout import spatial

_LEAST_SCALE: Final = 2.0**-126
_LEAST_SHARE: Final = 2.0**-40
"""Of the larger of two scales that is as good as none."""
_HEADROOM: Final = 2.0**5
"""By which sums of entries of e4m3, at most 4 x 448, are multiplied: f16 then rounds small ones less."""
_MOST_RATIO: Final = 128.0
_GRID: Final = 1.5 * 2.0**13
"""A number of f32 whose unit in the last place is 2^-10."""
_SUBNORMAL: Final = 2.0**-24
"""What a subnormal f16 is times the number that its bits are."""
_MOST_FACTOR: Final = 2.0**15
_EXPONENT_BITS: Final = 0x7F800000
_MANTISSA_BITS: Final = 0x007FFFFF


class Placed(NamedTuple):
    """What a number p of bits of a subnormal means: (p - middle) * unit."""

    middle: float
    unit: float


class Factors(NamedTuple):
    """What sums of entries take, as it is loaded once.

    of_books  a tile of one f16 for each book, by which its numbers or entries are multiplied, None for 1; () where all
              entries are added as they are
    begin     what sums of placed numbers begin with; None of others
    unscale   what a sum of products is multiplied by in the end
    """

    of_books: tuple[ll.Tile | None, ...]
    begin: ll.Tile | None
    unscale: Any


def are_near(scales: NDArray[Any]) -> bool:
    """Whether f16 has all sums of entries of e4m3 that are multiplied by the scales [.., R] of their books over that of
    the first: 448 x (1 + 128) at most."""
    magnitudes = np.abs(scales.astype(np.float64))
    most = _MOST_RATIO / max(1, magnitudes.shape[-1] - 1)
    return bool((magnitudes <= most * magnitudes[..., :1]).all())


def factors_of_entries(scales: list[ll.Scalar], near: bool) -> Factors:
    """For entries of e4m3 with these scales of books.

    near  `are_near` is known of them
    """
    if len(scales) == 1:
        return Factors((), None, scales[0])
    if near:
        first = ll.full(scales[0], "f32", shape=[1])
        # Where the first is 0, so are the others.
        divisor = ll.where(ll.equal(first, 0.0), 1.0, first)
        ratios = [ll.cast(ll.full(scale, "f32", shape=[1]) / divisor, "f16") for scale in scales[1:]]
        return Factors((None, *ratios), None, scales[0])
    largest: Any = _LEAST_SCALE
    for scale in scales:
        largest = ll.maximum(largest, _magnitude(scale))
    shares = [ll.full(scale / largest * _HEADROOM, "f32", shape=[1]) for scale in scales]
    return Factors(tuple(ll.cast(share, "f16") for share in shares), None, largest * (1 / _HEADROOM))


def factors_of_placed(scales: list[ll.Scalar], placed: Placed, threads: int) -> Factors:
    """For numbers whose bits are those of subnormals, of books with these scales, two or more, in so many threads."""
    # Each thread computes them.
    layout = spatial(threads).reduce([0], keep_dims=True)

    def one(number: Any) -> ll.Tile:
        return ll.full(number, "f32", layout=layout)

    others: Any = _magnitude(scales[1])
    for scale in scales[2:]:
        others = ll.maximum(others, _magnitude(scale))
    # A first scale of nothing, by which the others could not be divided, is the least that adds nothing.
    first, least = one(scales[0]), one(others * _LEAST_SHARE + _LEAST_SCALE)
    none = ll.equal(one(ll.maximum(others, _magnitude(scales[0]))), 0.0)
    first = ll.where(ll.abs(first) < least, least, first)
    whole = ll.maximum(_power_of_two_from(one(others) / ll.abs(first)), 1.0) * first
    shares = [_on_grid(first / whole), _on_grid(one(scales[1]) / whole)]
    begin = (shares[0] + shares[1]) * (-placed.middle * _SUBNORMAL * _MOST_FACTOR)
    of_books = [share * _MOST_FACTOR for share in shares]
    # Those of the others multiply values.
    of_value = _SUBNORMAL * _MOST_FACTOR / placed.unit
    of_books += [one(scale) / whole * of_value for scale in scales[2:]]
    unscale = ll.where(none, 0.0, whole * (1 / of_value))
    return Factors(tuple(ll.cast(factor, "f16") for factor in of_books), ll.cast(begin, "f16"), unscale)


def sum_of_placed(placed: list[ll.Tile], values: list[ll.Tile], factors: Factors, parts: ll.Tile | None) -> ll.Tile:
    """The sum of the first two books' numbers and the values of the others.

    parts  a constant for each element, by which its factor is multiplied; None: 1
    """
    total = factors.begin
    for numbers, factor in zip(placed, factors.of_books, strict=False):
        assert factor is not None
        total = ll.fma(numbers, factor if parts is None else factor * parts, total)
    for entries, factor in zip(values, factors.of_books[len(placed) :], strict=True):
        assert factor is not None
        total = ll.fma(entries, factor, total)
    assert total is not None
    return total


def sum_of_entries(entries: list[ll.Tile], factors: Factors) -> ll.Tile:
    """The sum of all books' entries, times their factors if there are any."""
    if not factors.of_books:
        total = entries[0]
        for entry in entries[1:]:
            total = total + entry
        return total
    first, *others = factors.of_books
    total = entries[0] if first is None else entries[0] * first
    for entry, factor in zip(entries[1:], others, strict=True):
        assert factor is not None
        total = ll.fma(entry, factor, total)
    return total


def _magnitude(number: Any) -> Any:
    return ll.maximum(number, number * -1.0)


def _on_grid(number: ll.Tile) -> ll.Tile:
    """The next multiple of 2^-10, of numbers up to 1."""
    return (number + _GRID) - _GRID


def _power_of_two_from(number: ll.Tile) -> ll.Tile:
    """The least power of two that is no less than the positive number."""
    bits = ll.view(number, dtype="uint32", layout=number.layout)
    return ll.view((bits + _MANTISSA_BITS) & _EXPONENT_BITS, dtype="f32", layout=number.layout)
