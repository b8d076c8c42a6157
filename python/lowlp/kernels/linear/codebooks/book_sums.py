"""Sums of the entries of several books, which `wgmma` then multiplies, in as few instructions as they take.

    f16, bf16         entries are added as they are; of f16 they leave room for the sums (operand transform 'sums')
    e4m3              the sum of entry_r * f_r in f16, f_r being the scales of the books over the largest
    int8, e8p, e81b   numbers p_r, whose values are (p_r - middle) * unit, are placed in halves as they are: the bits of
                      subnormals. A multiply-add for each book makes values of f16 and scales them

Where it is known which book has the largest scale, of all blocks (`LinearSpec.largest_book`), its entries of e4m3 are
taken as they are, and of numbers a second multiply-add is an addition too:

    sum = p_b * f_b + (p_a - middle * (1 + f_b))        b another book, a that with the largest scale

f_b is a multiple of 2^-10, 1 at most in magnitude, so that all but the last addition is exact; it is off by 2^-11 at
most.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lowlp import language as ll

_LEAST_SCALE: Final = 2.0**-126
_LEAST_RATIO: Final = 2.0**-13
"""Of scales of e4m3 that f16 has with all of its bits."""
_MOST_SPREAD: Final = 2.0
"""Of other books' entries of int8 over that of the one whose scale is the largest: their factors are off by 2^-11."""
_HEADROOM: Final = 2.0**5
"""By which sums of entries of e4m3, at most 4 x 448, are multiplied: f16 then rounds small ones less."""
_GRID: Final = 1.5 * 2.0**13
"""A number of f32 whose unit in the last place is 2^-10."""
_SUBNORMAL: Final = 2.0**-24
"""What a subnormal f16 is times the number that its bits are."""
_MOST_FACTOR: Final = 2.0**15
_UNKNOWN: Final = -1


class Placed(NamedTuple):
    """What a number p of bits of a subnormal means: (p - middle) * unit. The middle is a power of two."""

    middle: float
    unit: float


class Factors(NamedTuple):
    """What sums of entries take, as it is loaded once.

    order     of the books
    of_books  in this order a tile of one f16 each, by which numbers or entries are multiplied, None for 1; () where all
              entries are added as they are
    begins    of placed numbers in this order what their products are added to before they are added to the sum; None
              where that is the sum itself
    unscale   what a sum of products is multiplied by in the end
    """

    order: tuple[int, ...]
    of_books: tuple[ll.Tile | None, ...]
    begins: tuple[ll.Tile | None, ...]
    unscale: Any


def largest_book(scales: NDArray[Any], entries: NDArray[Any] | None) -> int:
    """The book whose scale is the largest in magnitude in all blocks; -1: sums cannot rely on one.

    scales   [.., R] of R books
    entries  [.., R, entries, values of each] of int8 or e4m3; None of lattices
    """
    magnitudes = np.abs(scales.astype(np.float64)).reshape(-1, scales.shape[-1])
    found = int(magnitudes.sum(axis=0).argmax())
    largest = magnitudes[:, found : found + 1]
    is_known = bool((magnitudes <= largest).all())
    if entries is None:
        return found if is_known else _UNKNOWN
    if entries.dtype == np.int8:
        squares = np.square(entries, dtype=np.float32)
        of_books = squares.mean(axis=(*range(squares.ndim - 3), -2, -1))
        is_known &= bool((of_books <= _MOST_SPREAD**2 * of_books[found]).all())
    else:
        is_known &= bool(((magnitudes == 0) | (magnitudes >= _LEAST_RATIO * largest)).all())
    return found if is_known else _UNKNOWN


def plain_factors(count: int, unscale: Any) -> Factors:
    """For entries of so many books that are added as they are."""
    return Factors(tuple(range(count)), (), (), unscale)


def factors_of_entries(scales: list[ll.Scalar], largest: int) -> Factors:
    """For entries of e4m3 with these scales of books, of which `largest` is known to be that; -1: none is."""
    if len(scales) == 1:
        return plain_factors(1, scales[0])
    if largest != _UNKNOWN:
        order, ratios, unscale = _over_largest(scales, largest)
        return Factors(order, (None, *(ll.cast(ratio, "f16") for ratio in ratios)), (), unscale)
    most = _most(scales)
    shares = [ll.cast(_one(scale / most * _HEADROOM), "f16") for scale in scales]
    return Factors(tuple(range(len(scales))), tuple(shares), (), most * (1 / _HEADROOM))


def factors_of_placed(scales: list[ll.Scalar], placed: Placed, largest: int) -> Factors:
    """The same for placed numbers, of two books or more."""
    of_unit = _SUBNORMAL * _MOST_FACTOR
    if largest == _UNKNOWN:
        most = _most(scales)
        factors = tuple(ll.cast(_one(scale / most * _MOST_FACTOR), "f16") for scale in scales)
        begins: tuple[ll.Tile | None, ...] = tuple(factor * (-placed.middle * _SUBNORMAL) for factor in factors)
        return Factors(tuple(range(len(scales))), factors, begins, most * (placed.unit / of_unit))
    order, ratios, unscale = _over_largest(scales, largest)
    second, *others = ratios
    second = (second + _GRID) - _GRID
    factors = tuple(ll.cast(ratio * _MOST_FACTOR, "f16") for ratio in (_one(1.0), second, *others))
    joined = ll.cast((second + 1.0) * (-placed.middle * of_unit), "f16")
    begins = (joined, None, *(factor * (-placed.middle * _SUBNORMAL) for factor in factors[2:]))
    return Factors(order, factors, begins, unscale * (placed.unit / of_unit))


def sum_of_placed(numbers: list[ll.Tile], parts: ll.Tile | None, factors: Factors) -> ll.Tile:
    """The sum of all books' values, of numbers in the order of the books.

    parts  a constant for each number, by which its factor is multiplied; None: 1
    """
    made = [factor if parts is None or factor is None else factor * parts for factor in factors.of_books]
    first, *others = (numbers[book] for book in factors.order)
    total = ll.fma(first, made[0], factors.begins[0])
    for number, factor, begin in zip(others, made[1:], factors.begins[1:], strict=True):
        total = ll.fma(number, factor, total) if begin is None else total + ll.fma(number, factor, begin)
    return total


def sum_of_entries(entries: list[ll.Tile], factors: Factors) -> ll.Tile:
    """The sum of all books' entries, times their factors if there are any, of entries in the order of the books."""
    if not factors.of_books:
        total = entries[0]
        for entry in entries[1:]:
            total = total + entry
        return total
    first, *others = (entries[book] for book in factors.order)
    factor, *rest = factors.of_books
    total = first if factor is None else first * factor
    for entry, factor in zip(others, rest, strict=True):
        total = ll.fma(entry, factor, total)
    return total


def _over_largest(scales: list[ll.Scalar], largest: int) -> tuple[tuple[int, ...], list[ll.Tile], ll.Scalar]:
    """The order of books with that first, the scales of the others over its own, and its own."""
    order = (largest, *(book for book in range(len(scales)) if book != largest))
    first = _one(scales[largest])
    # Where it is 0, so are the others.
    divisor = ll.where(ll.equal(first, 0.0), 1.0, first)
    return order, [_one(scales[book]) / divisor for book in order[1:]], scales[largest]


def _most(scales: list[ll.Scalar]) -> Any:
    """The largest magnitude, and no less than a number by which f32 divides."""
    most: Any = _LEAST_SCALE
    for scale in scales:
        most = ll.maximum(most, ll.maximum(scale, scale * -1.0))
    return most


def _one(number: Any) -> ll.Tile:
    return ll.full(number, "f32", shape=[1])
