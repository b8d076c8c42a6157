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

from ..schedule import Schedule
from ..spec import LinearSpec
from .blocks_at_once import layout_of_group
from .entries import cached_shape
from .spread_books import EntryBooks

_MOST_BYTES: Final = 64
"""Of entries that a thread holds."""


def _entries_layout(spec: LinearSpec, schedule: Schedule) -> Layout:
    """How threads hold the entries of all books of a block, or of a group of these, [entries, values], whole ones
    each."""
    threads = schedule.threads
    if schedule.blocks_at_once > 1:
        return layout_of_group(spec, threads)
    *entries, vector = cached_shape(spec)
    rounds = -(-math.prod(entries) // threads)
    return local(rounds, 1) * spatial(threads, 1) * local(1, vector)


def loads_ahead(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether threads have registers for the books of the next block."""
    vectors = spec.vectors
    if vectors is None or vectors.lattices or not spec.book_columns or spec.book_columns >= spec.k:
        return False
    bytes_of_value = 1 if vectors.entries in ("int8", "f8e4m3") else 2
    return _entries_layout(spec, schedule).num_local * bytes_of_value <= _MOST_BYTES


class NextBooks:
    """Loads books, and puts them in the place of those before."""

    def __init__(self, spec: LinearSpec, schedule: Schedule, books: EntryBooks) -> None:
        self.books, self.layout = books.view, _entries_layout(spec, schedule)
        self.entries = books.entries if loads_ahead(spec, schedule) else None

    def load(self, block_of_rows: Any, block_of_k: Any) -> ll.Tile | None:
        """The entries of a block's books; None where they do not fit in registers."""
        if self.entries is None:
            return None
        return ll.load_global(self.entries, offsets=[block_of_rows, block_of_k, 0, 0], layout=self.layout)

    def switch(self, before: ll.Codebook, block_of_rows: Any, block_of_k: Any, loaded: ll.Tile | None) -> ll.Codebook:
        """The books of a block in the place of those before, where `load` has loaded them."""
        return ll.switch_codebook(before, self.books, offsets=[block_of_rows, block_of_k], entries=loaded)
