"""What the entries of codebooks take, by which schedules and programs are chosen."""

from __future__ import annotations

import math
from typing import Final

from ..spec import LinearSpec
from .lattice_tables import WORD_BYTES

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


def bytes_of_entries(spec: LinearSpec) -> int:
    """Of all books of a block, once."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return math.prod(spec.shape_of_books)
    return (vectors.books << vectors.bits) * entry_bytes(spec)


def are_global(spec: LinearSpec, shared_bytes: int = _MOST_SHARED_BYTES) -> bool:
    """Whether entries stay in global memory, where a block has so much shared memory."""
    return spec.vectors is not None and bytes_of_entries(spec) > min(_MOST_SHARED_BYTES, shared_bytes)
