"""Entries that have two places in a book, of which packed codes name one (docs/packed-format.md, "Codes that are
spread"): the second of each is one further on, so that it lies in the next bank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def second_places(codes: Any, bits: int) -> Any:
    """The second places of the entries that codes of so many bits name: an array of integers, or one."""
    entries = 1 << bits
    return (codes + 1) % entries + entries


def entries_at(places: Any, bits: int) -> Any:
    """The entries at places, first and second ones."""
    return (places - (places >> bits)) & ((1 << bits) - 1)


def with_second_places(books: NDArray[Any]) -> NDArray[Any]:
    """Books [.., 2**b, v] as [.., 2 * 2**b, v], by place."""
    import numpy as np

    return np.concatenate([books, np.roll(books, 1, axis=-2)], axis=-2)
