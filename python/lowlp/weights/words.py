"""Packed words of a matrix, made and read a band of rows at a time.

A band is a number of whole units, so that its words are a slice of all words: neither the codes nor the values of a
whole matrix need to exist at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.codec import Table
from lowlp.numeric.dtypes import DType
from lowlp.numeric.vectors import Vectors
from lowlp.weights.families import FAMILIES, are_placed_alike, family_for
from lowlp.weights.packing import find_placement, pack_by, stored_form, unpack_by

Words = NDArray[np.uint32]
Codes = NDArray[np.uint8]

# Codes of a band that is packed by all processors: a few megabytes.
BAND_ELEMENTS = 1 << 22
# Words begin at a line of a cache; kernels need 16 bytes.
_ALIGN_BYTES = 64


@dataclass(frozen=True)
class WordsForm:
    """What packed words depend on.

    n, k        the weights' shape [N, K]
    group_size  weights of a row that share a scale; K where a row, or all, share one
    code        type or table of the codes, or what vectors they are
    family      for which compute type they are placed, one of `FAMILIES`
    experts     None for weights [N, K]; E for [E, N, K], whose rows count on: those of matrix e begin at e N, and each
                matrix fills whole units
    """

    n: int
    k: int
    group_size: int
    code: DType | Table | Vectors
    family: str
    experts: int | None = None

    @cached_property
    def placement(self) -> Any:
        """The placement of the packed format, in the units of such a matrix."""
        return find_placement(self.code, FAMILIES[self.family]).for_matrix(self.n, self.k)

    @cached_property
    def shape_of_matrix(self) -> tuple[int, ...]:
        """The shape of the words of one matrix."""
        return tuple(self.placement.packed_shape(self.n, self.k))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the words, those of a matrix after those of the one before."""
        units, *rest = self.shape_of_matrix
        return ((self.experts or 1) * units, *rest)

    @property
    def public_shape(self) -> tuple[int, ...]:
        """The shape of the words as users see them: with E first, where there are experts."""
        return self.shape if self.experts is None else (self.experts, *self.shape_of_matrix)

    @property
    def rows(self) -> int:
        """The rows of all matrices."""
        return (self.experts or 1) * self.n

    @property
    def unit_rows(self) -> int:
        """Rows of a unit."""
        return int(self.placement.unit_rows)

    @property
    def unit_k(self) -> int:
        """Weights of a row in a unit."""
        return int(self.placement.unit_k)

    @property
    def _flip(self) -> int:
        """What turns codes into stored ones."""
        return stored_form(self.code)[1]

    def of(self, n: int, k: int | None = None, group_size: int | None = None) -> WordsForm:
        """The same for another shape."""
        return replace(self, n=n, k=k or self.k, group_size=group_size or self.group_size)

    def bands(self, elements: int, within: slice | None = None) -> Sequence[slice]:
        """All rows, or those of a range, in bands of whole units with at most so many weights, or of one unit; the
        first and the last band of a range may have parts of units."""
        rows = max(1, elements // (self.k * self.unit_rows)) * self.unit_rows
        starts = range(0, self.n, rows)
        firsts = range(0, self.rows, self.n)
        bands = [slice(first + start, first + min(start + rows, self.n)) for first in firsts for start in starts]
        if within is None:
            return bands
        cut = [slice(max(band.start, within.start), min(band.stop, within.stop)) for band in bands]
        return [band for band in cut if band.start < band.stop]

    def units(self, rows: slice) -> slice:
        """The units along N that hold some rows of one matrix."""
        matrix, start = divmod(rows.start, self.n)
        first, stop = matrix * self.shape_of_matrix[0], rows.stop - matrix * self.n
        return slice(first + start // self.unit_rows, first - (-stop // self.unit_rows))

    def codes(self, words: Words, rows: slice, num_threads: int = 0) -> Codes:
        """The codes, uint8 [rows, K], of some rows of one matrix; of vectors as `columns_of_codes` has them."""
        before = rows.start % self.n % self.unit_rows
        n = before + rows.stop - rows.start
        found: Codes = unpack_by(
            self.placement, words[self.units(rows)], n, self.k, self._flip, num_threads=num_threads
        )
        return found[before:]

    def codes_of_units(self, words: Words, units: NDArray[np.intp]) -> Codes:
        """The codes of all rows of some units of one matrix [N, K], with those of padding."""
        found: Codes = unpack_by(
            self.placement, words[units], len(units) * self.unit_rows, self.k, self._flip, num_threads=1
        )
        return found

    def all_codes(self, words: Words) -> Codes:
        """The codes, uint8 [N, K] or [E, N, K]; of vectors their columns."""
        matrices = [self.codes(words, slice(first, first + self.n)) for first in range(0, self.rows, self.n)]
        return matrices[0] if self.experts is None else np.stack(matrices)

    def place(self, row: int, column: int) -> list[int]:
        """A weight of all rows by the indices that users have for it."""
        return [row, column] if self.experts is None else [*divmod(row, self.n), column]

    def packed(self, codes: Any, num_threads: int = 0) -> Any:
        """The words of a band of codes, where the codes are: in numpy, or on a GPU."""
        return pack_by(self.placement, codes, self._flip, num_threads=num_threads)

    def pack_from(self, read: Callable[[slice], Any], out: Words | None = None) -> Words:
        """The words of all rows, a band at a time; `read` gives the codes of a band."""
        words = empty_words(self.shape) if out is None else out
        for rows in self.bands(BAND_ELEMENTS):
            words[self.units(rows)] = self.packed(read(rows))
        return words

    def in_units_of(self, words: Words, placement: Any) -> Words:
        """The words of these weights [N, K], which `words` has in units of `placement`: the same array where those are
        the form's own."""
        if placement == self.placement:
            return words

        def read(rows: slice) -> Codes:
            units = slice(rows.start // placement.unit_rows, -(-rows.stop // placement.unit_rows))
            before = rows.start % placement.unit_rows
            n = before + rows.stop - rows.start
            codes: Codes = unpack_by(placement, words[units], n, self.k, self._flip)
            return codes[before:]

        return self.pack_from(read)

    def repacked(self, words: Words, family: str) -> Words:
        """The words of these weights in another family; the same array where both place every bit alike."""
        if are_placed_alike(self.code, self.family, family):
            return words
        return replace(self, family=family).pack_from(lambda rows: self.codes(words, rows))


def form_for(shape: tuple[int, ...], group_size: int, code: DType | Table | Vectors, activation: object) -> WordsForm:
    """The form of weights (N, K) or (E, N, K) for a type of activations, as `families.family_for` has it."""
    *outer, n, k = shape
    return WordsForm(n, k, group_size, code, family_for(code, activation), outer[0] if outer else None)


def empty_words(shape: Sequence[int]) -> Words:
    """uint32 of this shape, uninitialised, which begin at a line of a cache."""
    count = math.prod(shape)
    memory = np.empty(4 * count + _ALIGN_BYTES, np.uint8)
    skipped = -memory.ctypes.data % _ALIGN_BYTES
    return memory[skipped : skipped + 4 * count].view(np.uint32).reshape(shape)


def repacked_apart(form: WordsForm, words: Words, family: str, parts: int) -> Words:
    """The words of `parts` equal ranges of rows, each padded to whole units, one after the other, in a family. Units
    are those of the whole matrix."""
    placement = replace(form, family=family).placement
    n = form.n // parts
    rows = max(1, BAND_ELEMENTS // (form.k * placement.unit_rows)) * placement.unit_rows
    units, *rest = placement.packed_shape(n, form.k)
    apart = empty_words((parts * units, *rest))
    for number, start in itertools.product(range(parts), range(0, n, rows)):
        stop = min(start + rows, n)
        codes = form.codes(words, slice(number * n + start, number * n + stop))
        first = number * units
        band = slice(first + start // placement.unit_rows, first - (-stop // placement.unit_rows))
        apart[band] = pack_by(placement, codes, stored_form(form.code)[1])
    return apart
