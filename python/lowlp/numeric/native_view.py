"""Immutable views of objects of the C++ library, which decides what is equal."""

from __future__ import annotations

from typing import Any


class NativeView:
    """A view of an object of the C++ library: equal to another of its class exactly when what they hold is."""

    __slots__ = ("_held",)
    _held: Any

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; {name!r} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and bool(self._held == other._held)

    def __hash__(self) -> int:
        return hash(self._held)
