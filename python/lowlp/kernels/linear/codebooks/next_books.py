"""The books of the next block of weights along K, which threads load while those of one are in use.

Where weights have books of their own for each block of K, a block of the grid would wait for memory at the end of each
(`lowlp.switch_codebook`). So threads hold the next entries in registers meanwhile, and only write them to shared memory
there.
"""

from __future__ import annotations

import math
from typing import Any, Final

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp.numeric.vectors import Vectors

from ..spec import LinearSpec

_MOST_BYTES: Final = 64
"""Of entries that a thread holds."""


def _entries_layout(vectors: Vectors, threads: int) -> Layout:
    """How threads hold the entries of all books of a block, [entries, values], whole ones each."""
    rounds = -(-(vectors.books << vectors.bits) // threads)
    return local(rounds, 1) * spatial(threads, 1) * local(1, vectors.vector)


def loads_ahead(spec: LinearSpec, threads: int) -> bool:
    """Whether threads have registers for the books of the next block."""
    vectors = spec.vectors
    if vectors is None or vectors.lattices or not spec.book_columns or spec.book_columns >= spec.k:
        return False
    bytes_of_value = 1 if vectors.entries in ("int8", "f8e4m3") else 2
    return _entries_layout(vectors, threads).num_local * bytes_of_value <= _MOST_BYTES


class NextBooks:
    """Loads books, and puts them in the place of those before.

    books    a view [blocks of rows, blocks of K, books, entries, values]
    threads  of a block of the grid
    """

    def __init__(self, spec: LinearSpec, codebooks: ll.Pointer, books: Any, threads: int) -> None:
        vectors = spec.vectors
        assert vectors is not None
        self.books, self.layout, self.entries = books, _entries_layout(vectors, threads), None
        if loads_ahead(spec, threads):
            *blocks, count, entries, values = spec.shape_of_books
            rows = math.prod((count, entries))
            self.entries = ll.view_global(codebooks, shape=[*(blocks or [1, 1]), rows, values])

    def load(self, block_of_rows: Any, block_of_k: Any) -> ll.Tile | None:
        """The entries of a block's books; None where they do not fit in registers."""
        if self.entries is None:
            return None
        return ll.load_global(self.entries, offsets=[block_of_rows, block_of_k, 0, 0], layout=self.layout)

    def switch(self, before: ll.Codebook, block_of_rows: Any, block_of_k: Any, loaded: ll.Tile | None) -> ll.Codebook:
        """The books of a block in the place of those before, where `load` has loaded them."""
        return ll.switch_codebook(before, self.books, offsets=[block_of_rows, block_of_k], entries=loaded)
