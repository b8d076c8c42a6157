"""Layouts of shared memory: where the elements of a tile lie.

A layout of one thread maps an address, counted in elements, to the index of an element. It may be swizzled, so that
threads which read a column meet different banks (Tilus, appendix B):

    >>> S = lowlp.local(3, 1, 1).swizzle(lowlp.local(16, 32), dim=1).local(1, 8)
    >>> S.shape                                              # 3 stages of 16 x 256
    (3, 16, 256)
    >>> S.address_of(0, 5, 16)                               # chunk 2 of row 5 lies where chunk 2 ^ 5 = 7 would
    1336

With (i, j) the index within the factor, whose extent along the dimension that changes is E, a power of two:

    swizzle(factor, dim=1): (i, j) -> (i, j ^ ((i >> log_step) % E))
    swizzle(factor, dim=0): (i, j) -> (i ^ ((j >> log_step) % E), j)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import lowlp._layout as _layout
from lowlp_runtime.errors import LowlpTypeError

from .register_layout import Layout, _call, _int, _varargs

__all__ = ["SharedLayout", "shared_layout", "swizzle"]


class SharedLayout:
    """A function from an address to an element of a tile; immutable.

    Made by `Layout.swizzle`, `lowlp.swizzle` and `shared_layout`. Equal when the layouts without the swizzle are equal
    and the same digits are swizzled.
    """

    __slots__ = ("_impl",)

    _impl: Any

    def __init__(self) -> None:
        raise LowlpTypeError("a SharedLayout is made by Layout.swizzle, lowlp.swizzle or shared_layout")

    @classmethod
    def _wrap(cls, impl: Any) -> SharedLayout:
        self = object.__new__(cls)
        object.__setattr__(self, "_impl", impl)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a SharedLayout is immutable; {name!r} cannot be set")

    def __reduce__(self) -> tuple[Callable[[str], SharedLayout], tuple[str]]:
        return shared_layout, (str(self),)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tile."""
        return tuple(self._impl.shape)

    def __call__(self, address: int) -> tuple[int, ...]:
        """The index of the element at `address`. Raises LowlpValueError where there is none."""
        return tuple(_call(self._impl.evaluate, _int("address", address)))

    def address_of(self, *index: int | Iterable[int]) -> int:
        """The address of an element, counted in elements. Raises LowlpValueError for an index outside of the shape."""
        return int(_call(self._impl.address_of, _varargs("index", index)))

    def local(self, *shape: int | Iterable[int]) -> SharedLayout:
        """self * lowlp.local(*shape): each element becomes a tile in row-major order."""
        return self._compose("local", shape)

    def column_local(self, *shape: int | Iterable[int]) -> SharedLayout:
        """self * lowlp.column_local(*shape): as `local`, but the first dimension varies fastest."""
        return self._compose("column_local", shape)

    def _compose(self, name: str, shape: tuple[int | Iterable[int], ...]) -> SharedLayout:
        extents = ", ".join(str(extent) for extent in _varargs("shape", shape))
        return shared_layout(f"{self}.{name}({extents})")

    def __str__(self) -> str:
        return str(self._impl)

    def __repr__(self) -> str:
        return f"shared_layout({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedLayout) and bool(self._impl == other._impl)

    def __hash__(self) -> int:
        return hash(self._impl)


def shared_layout(text: str | Layout | SharedLayout) -> SharedLayout:
    """The layout that `text` describes, `local(3, 1, 1).swizzle(local(16, 32), dim=1).local(1, 8)` for example.

    Raises LowlpValueError with the position of what is wrong, or if a Layout has more than one thread.
    """
    if isinstance(text, SharedLayout):
        return text
    if not isinstance(text, str | Layout):
        raise LowlpTypeError(f"layout must be a str, a Layout or a SharedLayout; found {type(text).__name__}")
    return SharedLayout._wrap(_call(_layout.parse_shared_layout, str(text)))


def swizzle(factor: Layout, *, dim: int, log_step: int = 0) -> SharedLayout:
    """The layout `factor`, of one thread and two dimensions, swizzled along `dim` (Tilus, appendix B).

    Raises LowlpValueError unless dim is 0 or 1, log_step 0 to 62, and the factor's extent along dim a power of two.
    """
    return _swizzle("", factor, dim, log_step)


def _swizzle(outer: str, factor: Layout, dim: int, log_step: int) -> SharedLayout:
    """`outer` is the text of the layout outside, with its dot, or empty."""
    if not isinstance(factor, Layout):
        raise LowlpTypeError(f"factor must be a Layout; found {type(factor).__name__}")
    numbers = f"dim={_int('dim', dim)}, log_step={_int('log_step', log_step)}"
    return shared_layout(f"{outer}swizzle({factor}, {numbers})")
