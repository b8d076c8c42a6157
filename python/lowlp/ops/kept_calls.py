"""Calls on CUDA tensors that are made ready once: a later call of the same kind finds what the first has made.

A kind is all that decides a kernel, its numbers and its results, and whether an argument has to be copied: identity of
the cache, types, shapes, strides and devices of tensors, and other arguments with their types (1 is no bool).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lowlp_runtime.kept import KeptFor

T = TypeVar("T")
_MOST_CALLS = 256


def kind_of(tensor: Any) -> Any:
    """Of a tensor, or None. Raises AttributeError for what is no tensor."""
    return None if tensor is None else (tensor.dtype, tensor.shape, tensor.stride(), tensor.get_device())


class KeptCalls(Generic[T]):
    """Values by kinds of calls, for as long as an object lives whose identity is the first of each kind."""

    def __init__(self) -> None:
        self._calls: dict[Any, T] = {}
        self._keys: KeptFor[list[Any]] = KeptFor(list, self._drop)
        self._lock = threading.Lock()

    def find(self, key: Callable[[], Any]) -> T | None:
        """What is kept for a key; None for none, and for arguments that no call has."""
        try:
            return self._calls.get(key())
        except (AttributeError, TypeError):
            return None

    def keep(self, owner: object, key: Any, call: T) -> None:
        """Keeps a value, at most so many for an owner."""
        with self._lock:
            keys = self._keys.of(owner)
            if len(keys) >= _MOST_CALLS:
                self._drop(keys)
            keys.append(key)
            self._calls[key] = call

    def _drop(self, keys: list[Any]) -> None:
        while keys:
            self._calls.pop(keys.pop(), None)
