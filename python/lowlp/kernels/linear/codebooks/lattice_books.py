"""Vectors of QuIP#'s lattices, computed in registers from words of nibbles (`lattice_tables`).

1024 bytes are what each byte of a code is looked up in, with 32 copies of each word without bank conflicts. Elements 2j
and 2j + 1 of a vector are fields j and j + 4, 16 bits apart. Where they are bits of the mantissa of a number whose unit
there is 1/2, a mask and an OR, one LOP3, make both numbers, and one subtraction the values. Words come rotated by one
bit: of f16 fields 0 and 1 are then in their place, 2 and 3 after a rotation by 8 bits; of bf16, whose mantissa is
shorter, each after one by 4 more. So 8 values of e8p in f16 take 2 lookups, an XOR, a rotation, 4 LOP3 and 4
subtractions, all exact.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local
from lowlp.numeric.vectors import Vectors

from .book_sums import Placed
from .lattice_tables import SHIFTS, TABLES, first_tables, shape_of_tables

_PAIRS: Final = 4
"""Of elements of a vector."""
PLACED_LATTICE: Final = Placed(middle=16, unit=1 / 4)
_LOWEST: Final = {"e8p": 0x00010001, "e81b": 0}
"""The lowest bits of numbers p of two elements, of which a nibble n is 2 n."""


class _Halves(NamedTuple):
    """How a type of 16 bits takes nibbles into its mantissa.

    bases  of the numbers whose mantissa has a field of 4 bits from bit 1, and from bit 5, where the unit is 1/2
    """

    bases: tuple[float, ...]
    one: int
    mantissa: int

    def bits(self, number: float) -> int:
        """Of the number, twice beside each other; of those that have one."""
        exponent = int(np.floor(np.log2(number)))
        fraction = (number / 2.0**exponent - 1) * 2**self.mantissa
        assert fraction == int(fraction), "units are 1/4 or less"
        half = self.one + (exponent << self.mantissa) + int(fraction)
        return half << 16 | half


class _Fields(NamedTuple):
    """Of each pair of elements: bits, but for those of its field zeros; which of the places the field is at."""

    bits: ll.Tile
    place: ll.Tile


_HALVES: Final = {"f16": _Halves((256.0, 16.0), 0x3C00, 10), "bf16": _Halves((32.0,), 0x3F80, 7)}


class LatticeBooks:
    """The tables of computed books in their caches, as kernels look vectors up.

    dtype      of the vectors, f16 or bf16
    codebooks  the operand
    codes      how threads hold the codes of a chunk, one for each vector, [rows, vectors]
    """

    def __init__(self, vectors: Vectors, dtype: str, codebooks: Any, codes: Layout) -> None:
        self.vectors, self.dtype, self.codes = vectors, dtype, codes
        tables, words, size = shape_of_tables(vectors)
        self.words_of = {}
        for name, first in first_tables(vectors).items():
            count = TABLES[name]
            shape, at = ([tables, words, size], first) if count == 1 else ([tables // count, count, words, size], 0)
            self.words_of[name] = ll.load_codebook(ll.view_global(codebooks, shape=shape), offsets=[at])

    def lookup(self, tile: ll.Tile, book: int, chunk: int) -> ll.Tile:
        """The vectors of a book, [rows, K], of bytes of codes [chunk, byte, rows, vectors]."""
        return self._values(self._words(tile, book, chunk), SHIFTS[self.vectors.lattices[book]])

    def placed(self, tile: ll.Tile, book: int, chunk: int) -> ll.Tile:
        """The same as halves, f16, whose bits are numbers p of `PLACED_LATTICE` times their part of 1, 16."""
        halves = _HALVES["f16"]
        fields = self._fields(self._words(tile, book, chunk), halves)
        lowest = (fields.place * 15 + 1) * _LOWEST[self.vectors.lattices[book]]
        return ll.view(fields.bits | lowest, dtype="f16", layout=self.values)

    @property
    def parts_of_placed(self) -> ll.Tile:
        """By what the halves of `placed` are multiplied to be p times the least subnormal."""
        one, sixteenth = (_HALVES["f16"].bits(number) for number in (1.0, 1 / 16))
        place = self._pair() % len(_HALVES["f16"].bases)
        return ll.view(one - place * (one - sixteenth), dtype="f16", layout=self.values)

    def _words(self, tile: ll.Tile, book: int, chunk: int) -> ll.Tile:
        """The words of nibbles of a book's vectors."""
        name = self.vectors.lattices[book]
        first = sum(TABLES[before] for before in self.vectors.lattices[:book])
        words = self._looked_up(tile, name, 0, [chunk, first])
        for number in range(1, TABLES[name]):
            words = words ^ self._looked_up(tile, name, number, [chunk, first + number])
        return words

    def _looked_up(self, tile: ll.Tile, name: str, table: int, part: list[int]) -> ll.Tile:
        found = ll.lookup_vectors(tile, self.words_of[name], book=table, part=part)
        return ll.view(found, dtype="uint32", layout=self.codes)

    def _pair(self) -> ll.Tile:
        """The pair of elements that a register has: constants of each."""
        return ll.iota(1, layout=self.codes * local(1, _PAIRS), dtype="uint32") % _PAIRS

    def _fields(self, words: ll.Tile, halves: _Halves) -> _Fields:
        """The fields of words, each a pair's."""
        pair = self._pair()
        place = pair % len(halves.bases)
        spread = ll.view(words, dtype="uint32", layout=_with_pairs(self.codes, 1))
        spread = ll.broadcast_to(spread, _with_pairs(self.codes, _PAIRS))
        spread = ll.view(spread, dtype="uint32", layout=pair.layout)
        turned = ll.funnel_shift(spread, spread, (pair - place) * 4, direction="right")
        return _Fields(turned & (place * 15 + 1) * 0x001E001E, place)

    def _values(self, words: ll.Tile, shift: float) -> ll.Tile:
        """The values of words."""
        halves = _HALVES[self.dtype]
        bits, place = self._fields(words, halves)
        base = halves.bits(halves.bases[0])
        minus = halves.bits(halves.bases[0] + shift)
        step = halves.bits(halves.bases[0]) - halves.bits(halves.bases[-1])
        less = minus - halves.bits(halves.bases[-1] + shift)
        taken = ll.view(minus - place * less, dtype=self.dtype, layout=self.values)
        return ll.view(bits | base - place * step, dtype=self.dtype, layout=self.values) - taken

    @property
    def values(self) -> Layout:
        """How threads hold the vectors of a chunk."""
        return self.codes * local(1, 2 * _PAIRS)


def _with_pairs(codes: Layout, pairs: int) -> Layout:
    """The layout with a dimension of so many in each thread after it."""
    return codes.unsqueeze(2) * local(1, 1, pairs)
