"""What an operation keeps for weights, as long as these live: kernels, bound calls and copies on a GPU.

It belongs to the operation: the weights know nothing of it, and copies and pickles of them have none of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class KeptFor(Generic[T]):
    """A value for each object, by identity, which goes when the object does.

    make  makes a value
    drop  is called with the value when its object goes; None: nothing is
    """

    def __init__(self, make: Callable[[], T], drop: Callable[[T], None] | None = None) -> None:
        self._make, self._drop = make, drop
        self._values: dict[int, T] = {}

    def of(self, owner: object) -> T:
        """The owner's value, made at the first use."""
        found = self._values.get(id(owner))
        if found is None:
            found = self._values.setdefault(id(owner), self._make())
            # Runs before another object can have this identity.
            weakref.finalize(owner, self._forget, id(owner)).atexit = False
        return found

    def _forget(self, identity: int) -> None:
        found = self._values.pop(identity, None)
        if found is not None and self._drop is not None:
            self._drop(found)
