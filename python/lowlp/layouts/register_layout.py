"""Layouts: which thread holds which element of a tile.

A layout is a function from a thread t and a local index i to the index of an element (Tilus, section 4 and
appendix A). Layouts are written as products of primitives:

    >>> L = lowlp.local(2, 1).spatial(8, 4).local(1, 2)      # operand A of mma.m16n8k8
    >>> L.shape, L.num_threads, L.num_local
    ((16, 8), 32, 4)
    >>> L(6, 3)                                              # thread 6, its value 3
    (9, 5)
    >>> print(lowlp.local(2, 3).draw())
         0    1    2
    0  0:0  0:1  0:2
    1  0:3  0:4  0:5

The algebra itself is a C++ library that the compiler shares; this module gives it names, checks and documentation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

import lowlp._layout as _layout
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

if TYPE_CHECKING:
    from .shared_layout import SharedLayout

__all__ = ["Layout", "column_local", "column_spatial", "from_modes", "layout", "local", "reduce", "spatial"]

_T = TypeVar("_T")

# Beyond these a table or a drawing is of no use, and takes memory until there is none.
_MAX_TABLE_NUMBERS = 2**28
_MAX_DRAWN = 2**20

# The library counts in 64 bits.
_INT64_LIMIT = 2**63


def _call(function: Callable[..., _T], *arguments: object) -> _T:
    """Calls the library; its errors become ours."""
    for text in arguments:
        # The library quotes the byte that is wrong, which may be a part of another character.
        if isinstance(text, str) and not text.isascii():
            raise LowlpValueError(f"layout must be text of ASCII characters; found {text!a:.80}")
    try:
        return function(*arguments)
    except ValueError as error:
        raise LowlpValueError(str(error)) from None


def _int(argument: str, value: object) -> int:
    """An integer argument; NumPy's integers are fine, bool and float are not."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise LowlpTypeError(f"{argument} must be an integer; found {value!r}")
    number = operator.index(value)
    if not -_INT64_LIMIT <= number < _INT64_LIMIT:
        raise LowlpValueError(f"{argument} must fit in 64 bits; found {number}")
    return number


def _ints(argument: str, values: object) -> list[int]:
    """A sequence of integers, or one integer alone."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return [_int(argument, values)]
    return [_int(argument, value) for value in values]


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _varargs(argument: str, values: tuple[int | Iterable[int], ...]) -> list[int]:
    """The integers of f(2, 3) and of f((2, 3)) alike."""
    if len(values) == 1:
        return _ints(argument, values[0])
    return [_int(argument, value) for value in values]


class Layout:
    """A function from (thread, local index) to an element of a tile; immutable.

    Two layouts are equal exactly when they are the same function; equal layouts have equal text and equal hashes.
    Products put the left layout outside: `f * g` is a tile of f's shape, each element of which is a tile of g
    (Tilus, definition 4). Where ranks differ the lower one gets leading dimensions of extent 1 (definition 5).
    Make layouts with `local`, `spatial`, `column_local`, `column_spatial`, `layout` and `from_modes`.
    """

    __slots__ = ("_impl",)

    _impl: Any

    def __init__(self) -> None:
        raise LowlpTypeError("a Layout is made by local, spatial, column_local, column_spatial, layout or from_modes")

    @classmethod
    def _wrap(cls, impl: Any) -> Layout:
        self = object.__new__(cls)
        object.__setattr__(self, "_impl", impl)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Layout is immutable; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Layout is immutable; {name!r} cannot be deleted")

    def __reduce__(self) -> tuple[Callable[[str], Layout], tuple[str]]:
        return layout, (str(self),)

    # What a layout is.

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tile."""
        return tuple(self._impl.shape)

    @property
    def rank(self) -> int:
        """The number of dimensions, at least 1."""
        return len(self.shape)

    @property
    def num_threads(self) -> int:
        """The number of threads over which the tile is spread."""
        return int(self._impl.num_threads)

    @property
    def num_local(self) -> int:
        """The number of elements that each thread holds."""
        return int(self._impl.num_locals)

    @property
    def num_elements(self) -> int:
        """The number of elements of the tile; fewer than threads times locals when there are replicas."""
        return int(self._impl.num_elements)

    @property
    def has_replicas(self) -> bool:
        """True when elements are held by more than one thread."""
        return bool(self._impl.has_replicas)

    @property
    def mode_extents(self) -> tuple[tuple[int, ...], ...]:
        """For each dimension the extents of its modes (the digits of the index), outermost first."""
        return tuple(tuple(extents) for extents in self._impl.mode_extents)

    @property
    def thread_digits(self) -> tuple[tuple[int | None, int], ...]:
        """The digits of the thread index as (mode, extent), most significant first; a replica has the mode None."""
        return tuple(self._impl.thread_digits)

    @property
    def local_digits(self) -> tuple[tuple[int | None, int], ...]:
        """The digits of the local index as (mode, extent), most significant first."""
        return tuple(self._impl.local_digits)

    def __call__(self, thread: int, local: int) -> tuple[int, ...]:
        """The index of the element that `thread` holds at `local`.

        Raises LowlpValueError unless 0 <= thread < num_threads and 0 <= local < num_local.
        """
        return tuple(_call(self._impl.evaluate, _int("thread", thread), _int("local", local)))

    def table(self) -> npt.NDArray[np.int64]:
        """All of the function as an int64 array [num_threads, num_local, rank]: table()[t, i] is self(t, i).

        Raises LowlpValueError where it would hold more than 2**28 numbers (2 GiB).
        """
        self._require_at_most(_MAX_TABLE_NUMBERS // self.rank, "a table")
        array: npt.NDArray[np.int64] = self._impl.table()
        return array

    def _require_at_most(self, limit: int, what: str) -> None:
        count = self.num_threads * self.num_local
        if count > limit:
            raise LowlpValueError(f"{what} takes layouts of at most {limit} elements; {self} has {count}")

    def threads_holding(self, *index: int | Iterable[int]) -> list[tuple[int, int]]:
        """Every (thread, local index) that holds the element, in order of threads.

        Raises LowlpValueError unless the index has one number a dimension and is within the shape.
        """
        return list(_call(self._impl.threads_holding, _varargs("index", index)))

    def contiguous_locals(self, dim: int) -> int:
        """The largest v such that local indices from any multiple of v on hold v consecutive elements along `dim`.

        The first of them is at a multiple of v too, so that the layout allows vector accesses of v elements.
        """
        return int(_call(self._impl.contiguous_locals, _int("dim", dim)))

    def draw(self) -> str:
        """A table with `thread:local` in each cell (Tilus, figure 4).

        Raises LowlpValueError above rank 2 and above 2**20 elements, each counted once for every thread that holds it.
        """
        self._require_at_most(_MAX_DRAWN, "a drawing")
        return str(_call(self._impl.draw))

    def __str__(self) -> str:
        return str(self._impl)

    def __repr__(self) -> str:
        return f"lowlp.layout({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and bool(self._impl == other._impl)

    def __hash__(self) -> int:
        return hash(self._impl)

    # Layouts from layouts.

    def __mul__(self, inner: Layout) -> Layout:
        """The composition with `inner` inside (Tilus, definition 4)."""
        if not isinstance(inner, Layout):
            return NotImplemented
        return Layout._wrap(_call(self._impl.compose, inner._impl))

    def __truediv__(self, inner: Layout) -> Layout:
        """The layout h with self == h * inner (Tilus, definition 6). Raises LowlpValueError when there is none."""
        if not isinstance(inner, Layout):
            return NotImplemented
        return Layout._wrap(_call(self._impl.divide_right, inner._impl))

    def left_divide(self, outer: Layout) -> Layout:
        """The layout h with self == outer * h. Raises LowlpValueError when there is none."""
        if not isinstance(outer, Layout):
            raise LowlpTypeError(f"outer must be a Layout; found {type(outer).__name__}")
        return Layout._wrap(_call(self._impl.divide_left, outer._impl))

    def local(self, *shape: int | Iterable[int]) -> Layout:
        """self * lowlp.local(*shape)."""
        return self * local(*shape)

    def spatial(self, *shape: int | Iterable[int]) -> Layout:
        """self * lowlp.spatial(*shape)."""
        return self * spatial(*shape)

    def column_local(self, *shape: int | Iterable[int]) -> Layout:
        """self * lowlp.column_local(*shape)."""
        return self * column_local(*shape)

    def column_spatial(self, *shape: int | Iterable[int]) -> Layout:
        """self * lowlp.column_spatial(*shape)."""
        return self * column_spatial(*shape)

    def reduce(self, dims: int | Iterable[int], keep_dims: bool = False) -> Layout:
        """The layout of the tile reduced over `dims` (Tilus, appendix B).

        Elements of a thread that fall together are kept once; threads that fall together keep a copy each. The
        dimensions go away, or stay with extent 1 when `keep_dims`; when all go away one of extent 1 stays. Raises
        LowlpValueError when a dimension is out of range or named twice.
        """
        return Layout._wrap(_call(self._impl.reduce, _ints("dims", dims), bool(keep_dims)))

    def swizzle(self, factor: Layout, *, dim: int, log_step: int = 0) -> SharedLayout:
        """self * lowlp.swizzle(factor, dim, log_step), a layout of shared memory; see `lowlp.shared_layouts`."""
        from .shared_layout import _swizzle

        return _swizzle(f"{self}.", factor, dim, log_step)

    def permute(self, *dims: int | Iterable[int]) -> Layout:
        """Dimension k of the result is dimension dims[k], as in `numpy.transpose`."""
        return Layout._wrap(_call(self._impl.permute, _varargs("dims", dims)))

    def reshape(self, *shape: int | Iterable[int]) -> Layout:
        """The same elements, in row-major order, in a tile of another shape.

        Raises LowlpValueError when the number of elements differs, or when the result is no layout because a
        dimension would end within a digit that it does not divide.
        """
        return Layout._wrap(_call(self._impl.reshape, _varargs("shape", shape)))

    def squeeze(self, *dims: int | Iterable[int]) -> Layout:
        """Drops dimensions of extent 1; one stays if all are dropped."""
        return Layout._wrap(_call(self._impl.squeeze, _varargs("dims", dims)))

    def unsqueeze(self, *dims: int | Iterable[int]) -> Layout:
        """Adds dimensions of extent 1; `dims` are their numbers in the result, as in `numpy.expand_dims`."""
        return Layout._wrap(_call(self._impl.unsqueeze, _varargs("dims", dims)))

    def broadcast(self, rank: int) -> Layout:
        """Prepends dimensions of extent 1 up to `rank` (Tilus, definition 5)."""
        return Layout._wrap(_call(self._impl.broadcast, _int("rank", rank)))

    def reinterpret(self, *, from_bits: int, to_bits: int) -> Layout:
        """The layout through which the same register bits are loaded as elements of `to_bits` (Tilus, section 6.2).

        With n units of to_bits a thread and T threads: local(n / n1).spatial(T).local(n1), where
        n1 = gcd(n, 128 / to_bits). Raises LowlpValueError when a thread's bits are no multiple of to_bits.
        """
        arguments = _int("from_bits", from_bits), _int("to_bits", to_bits)
        return Layout._wrap(_call(self._impl.reinterpret, *arguments))

    def same_bits_per_thread(self, bits: int, other: Layout, other_bits: int) -> bool:
        """True when both have the same threads and each holds the same bits, so that a view moves nothing."""
        if not isinstance(other, Layout):
            raise LowlpTypeError(f"other must be a Layout; found {type(other).__name__}")
        arguments = self._impl, _int("bits", bits), other._impl, _int("other_bits", other_bits)
        return bool(_call(_layout.same_bits_per_thread, *arguments))

    def exchanged_bytes(self, result: Layout, bits: int) -> int:
        """Bytes of shared memory that a tile of elements of 1 to 32 bits takes on its way to another layout, where it
        goes by shared memory: those of its elements, and padding that spreads rows over the banks.

        Raises LowlpValueError unless both have the same shape and the same threads, whole warps.
        """
        if not isinstance(result, Layout):
            raise LowlpTypeError(f"result must be a Layout; found {type(result).__name__}")
        return int(_call(_layout.exchanged_bytes, self._impl, result._impl, _int("bits", bits)))


def local(*shape: int | Iterable[int]) -> Layout:
    """One thread that holds the whole tile in row-major order (Tilus, definition 2)."""
    return Layout._wrap(_call(_layout.local, _varargs("shape", shape)))


def spatial(*shape: int | Iterable[int]) -> Layout:
    """One element a thread, threads in row-major order (Tilus, definition 3)."""
    return Layout._wrap(_call(_layout.spatial, _varargs("shape", shape)))


def column_local(*shape: int | Iterable[int]) -> Layout:
    """As `local`, but the first dimension varies fastest (Tilus, section 4.2)."""
    return Layout._wrap(_call(_layout.column_local, _varargs("shape", shape)))


def column_spatial(*shape: int | Iterable[int]) -> Layout:
    """As `spatial`, but the first dimension varies fastest (Tilus, section 4.2)."""
    return Layout._wrap(_call(_layout.column_spatial, _varargs("shape", shape)))


def reduce(layout: Layout, dims: int | Iterable[int], keep_dims: bool = False) -> Layout:
    """`layout.reduce(dims, keep_dims)`, as the paper writes it (Tilus, appendix B)."""
    if not isinstance(layout, Layout):
        raise LowlpTypeError(f"layout must be a Layout; found {type(layout).__name__}")
    return layout.reduce(dims, keep_dims)


def from_modes(
    mode_extents: Sequence[Sequence[int]],
    thread_digits: Sequence[tuple[int | None, int]],
    local_digits: Sequence[tuple[int | None, int]],
) -> Layout:
    """The layout with these modes; the inverse of the three properties of the same names.

    Modes are numbered from 0 through all dimensions. Raises LowlpValueError unless every mode is the digit of one
    index, once and with its own extent, and replicas (mode None) are digits of the thread index.
    """

    def digits(argument: str, pairs: Sequence[tuple[int | None, int]]) -> list[tuple[int | None, int]]:
        if not _is_sequence(pairs) or not all(_is_sequence(pair) and len(pair) == 2 for pair in pairs):
            raise LowlpTypeError(f"{argument} must be a sequence of pairs (mode, extent); found {pairs!r:.60}")
        return [(None if mode is None else _int(argument, mode), _int(argument, extent)) for mode, extent in pairs]

    if not _is_sequence(mode_extents):
        raise LowlpTypeError(f"mode_extents must be a sequence of sequences of integers; found {mode_extents!r:.60}")
    extents = [_ints("mode_extents", dim) for dim in mode_extents]
    threads, locals_ = digits("thread_digits", thread_digits), digits("local_digits", local_digits)
    return Layout._wrap(_call(_layout.from_modes, extents, threads, locals_))


def layout(text: str | Layout) -> Layout:
    """The layout that a text describes, or the layout itself.

    text: factors and changes joined by dots, as in `local(2, 1).spatial(8, 4).local(1, 2)`,
    `reduce(spatial(1, 1, 4), dims=[2]).local(1, 4)` or `column_spatial(2, 3).reshape(6)`.

    `layout(str(L)) == L` for every layout L. Raises LowlpValueError with the position of what is wrong.
    """
    if isinstance(text, Layout):
        return text
    if not isinstance(text, str):
        raise LowlpTypeError(f"text must be a str or a Layout; found {type(text).__name__}")
    return Layout._wrap(_call(_layout.parse_layout, text))
