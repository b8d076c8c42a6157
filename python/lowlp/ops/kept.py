"""What an operation keeps for weights, as long as these live: kernels, prepared calls and copies on a GPU.

It belongs to the operation: the weights know nothing of it, and copies and pickles of them have none of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class KeptFor(Generic[T]):
    """A value for each object, by identity, which goes when the object does."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: dict[int, T] = {}

    def of(self, owner: object) -> T:
        """The owner's value, made at the first use."""
        # The finalizer runs before another object can have this identity.
        found = self._values.get(id(owner))
        if found is not None:
            return found
        found = self._values.setdefault(id(owner), self._make())
        weakref.finalize(owner, self._values.pop, id(owner), None).atexit = False
        return found
