"""Books of entries in global memory and in their cache, and the lookup of codes, which may be spread
(docs/packed-format.md, "Codes that are spread").

    spread      in global memory, of a block    in the cache
    ''          [R, 2**b, v]                    the same
    'copies'    [R, 2 * 2**b, v]                the same, with `Schedule.second_copies`; else each book alone, [2**b, v]
    'exchange'  [2, 2**b, v]                    [2 * 2**b, v], of which both codes of a vector name any entry

Of blocks at once the books of four are together, [4, 2**b, v] (`blocks_at_once`).
"""

from __future__ import annotations

from typing import Any, Final

from lowlp import language as ll
from lowlp_runtime.spread_books import entries_at
from lowlp_runtime.vector_order import LANES

from ..schedule import Schedule
from ..spec import LinearSpec
from .blocks_at_once import STAGGERED
from .book_sums import Placed
from .entries import cached_shape, spread_passes

PLACED_INT8: Final = Placed(middle=128, unit=1)


class EntryBooks:
    """How a block takes and reads its books.

    spec       of vectors that are entries
    codebooks  the operand
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule, codebooks: ll.Pointer) -> None:
        vectors = spec.vectors
        assert vectors is not None
        self.spec, self.vectors = spec, vectors
        self.second_copies = schedule.second_copies
        self.is_apart = vectors.spread == "copies" and not self.second_copies
        self.is_staggered = schedule.blocks_at_once > 1
        *blocks, books, entries, vector = spec.shape_of_books
        blocks = blocks or [1, 1]
        cached = cached_shape(spec, self.second_copies)
        if self.is_staggered:
            blocks, books = [blocks[0], blocks[1] // LANES], LANES
            cached = (LANES, entries, vector)
        self.view = ll.view_global(codebooks, shape=[*blocks, *cached])
        self.entries = ll.view_global(codebooks, shape=[*blocks, books * entries, vector])
        if self.is_apart:
            of_book = entries * vector
            strides = [blocks[1] * books * of_book, books * of_book, of_book, vector, 1]
            shape = [*blocks, books, 1 << vectors.bits, vector]
            self.view = ll.view_global(codebooks, shape=shape, strides=strides)

    def load(self, block: list[Any], cache: ll.CodebookCache | None = None) -> Any:
        """The books of a block of rows and K, in their cache: one value, or one for each book."""
        passes = spread_passes(self.spec, self.second_copies)
        spread = None if passes is None else round(100 * passes)
        # Beside the second copies of one book another one would have no room.
        if self.is_apart:
            blocks = [[*block, book] for book in range(self.vectors.books)]
            return tuple(ll.load_codebook(self.view, offsets=each, cache=cache, spread=spread) for each in blocks)
        return ll.load_codebook(self.view, offsets=block, cache=cache, spread=spread)

    def placed(self, codes: ll.Tile, books: Any, book: int, number: int) -> ll.Tile:
        """The entries q of int8 as halves whose bits are q + 128."""
        raised = ll.cast(self.lookup(codes, books, book, number, "int8"), "int16") + 128
        return ll.view(raised, dtype="f16", layout=raised.layout)

    def lookup(self, codes: ll.Tile, books: Any, book: int, number: int, dtype: str) -> ll.Tile:
        """The vectors of a book that codes [numbers, books, rows, codes] of a number name. Of blocks at once `book` is
        the turn, which says for each lane which book it is."""
        if self.is_staggered:
            return ll.lookup_vectors(codes, books, book=book, staggered=STAGGERED, part=[number, 0], dtype=dtype)
        if self.is_apart:
            places = ll.cast(ll.part(codes, [number, book]), "uint32")
            return ll.lookup_vectors(entries_at(places, self.vectors.bits), books[book], dtype=dtype)
        of_one = 0 if self.vectors.spread == "exchange" else book
        return ll.lookup_vectors(codes, books, book=of_one, part=[number, book], dtype=dtype)
