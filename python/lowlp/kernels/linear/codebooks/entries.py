"""What the entries of codebooks take, by which schedules and programs are chosen."""

from __future__ import annotations

import math
from typing import Final

from lowlp.numeric.vectors import Vectors

from ..spec import LinearSpec
from .lattice_tables import WORD_BYTES

_PASSES_OF_SPREAD: Final = {
    "copies": {4: 2.16, 8: 2.05, 16: 1.85, 32: 2.20},
    "one copy": {4: 3.15, 8: 2.92, 16: 2.54, 32: 3.52},
    "exchange": {4: 2.79, 8: 2.46, 16: 2.19, 32: 3.13},
}
"""Means over random codes, by the bytes of an entry (`spread_codes`)."""
_LEAST_LOOKUPS: Final = 180
"""In a book, for a byte of it, with which second copies pay: 47 million weights of AQLM-3 with entries of a byte."""
_LARGE: Final = 1 << 16
_MOST_SHARED_BYTES: Final = 1 << 17
"""Books that take more stay in global memory."""


def entry_bytes(spec: LinearSpec) -> int:
    """Of what a lookup reads; of computed books words."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return WORD_BYTES
    return vectors.vector * (1 if has_bytes(spec) else 2)


def has_bytes(spec: LinearSpec) -> bool:
    """Whether entries are of 8 bits."""
    return spec.vectors is not None and spec.vectors.entries in ("int8", "f8e4m3")


def cached_shape(spec: LinearSpec, second_copies: bool = False) -> tuple[int, ...]:
    """Of the books of a block in their cache, [books, entries, v]; of books that are one [entries, v]."""
    vectors = spec.vectors
    assert vectors is not None and not vectors.lattices
    books, entries, vector = vectors.books, 1 << vectors.bits, vectors.vector
    if vectors.spread == "exchange":
        return books * entries, vector
    return books, entries << (second_copies or needs_second_copies(spec)), vector


def bytes_of_entries(spec: LinearSpec, second_copies: bool = False) -> int:
    """Of all books of a block, as they are cached, once."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return math.prod(spec.shape_of_books)
    return math.prod(cached_shape(spec, second_copies)[:-1]) * entry_bytes(spec)


def is_worth_spreading(vectors: Vectors | None, n: int, k: int) -> bool:
    """Whether weights [n, k] with spread codes take less with few rows of x: always where two books are one; of two
    copies of entries, which each block takes into shared memory first, where it looks up so much more, and never where
    blocks of weights have books of their own."""
    if vectors is None or not vectors.can_spread:
        return False
    if vectors.as_spread().spread == "exchange":
        return True
    if vectors.block:
        return False
    bytes_of_book = vectors.vector * (1 if vectors.has_book_scales else 2) << vectors.bits
    return n * k // vectors.vector >= _LEAST_LOOKUPS * bytes_of_book


def has_second_copies(spec: LinearSpec) -> bool:
    """Whether codes name one of two copies of an entry."""
    return spec.vectors is not None and spec.vectors.spread == "copies"


def needs_second_copies(spec: LinearSpec) -> bool:
    """Whether a cache always has both copies of entries: blocks' books are copied as they are."""
    return has_second_copies(spec) and bool(spec.shape_of_books[:-3])


def can_keep(spec: LinearSpec, second_copies: bool) -> bool:
    """Whether a cache may have both copies of entries, or one, as `Schedule.second_copies` says."""
    return has_second_copies(spec) if second_copies else not needs_second_copies(spec)


def spread_passes(spec: LinearSpec, second_copies: bool = False) -> float | None:
    """Passes of a phase that reads entries by codes that are spread; None where they are not."""
    vectors = spec.vectors
    assert vectors is not None
    if not vectors.spread:
        return None
    kind = "one copy" if has_second_copies(spec) and not second_copies else vectors.spread
    return _PASSES_OF_SPREAD[kind][entry_bytes(spec)]


def has_large_books(spec: LinearSpec, second_copies: bool = False) -> bool:
    """Whether books leave little room in shared memory for what else lies there."""
    return spec.vectors is not None and _LARGE < bytes_of_entries(spec, second_copies) <= _MOST_SHARED_BYTES


def are_global(spec: LinearSpec, shared_bytes: int = _MOST_SHARED_BYTES) -> bool:
    """Whether entries stay in global memory, where a block has so much shared memory."""
    return spec.vectors is not None and bytes_of_entries(spec) > min(_MOST_SHARED_BYTES, shared_bytes)
