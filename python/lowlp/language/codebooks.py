"""Codebooks: vectors that codes name, and the caches that they are read from (VQ-LLM, section V)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lowlp._mlir import ir
from lowlp.layouts.register_layout import local
from lowlp.numeric.dtypes import DType

from .instructions import access, cast
from .reductions import part_of
from .scalars import Scalar, describe, is_int
from .source import type_error, value_error
from .tiles import GlobalView, Tile, as_dtype, as_named_tile, as_tile, emit_tile, require_dtype
from .tracing import Trace, TracedValue, current_trace

_ENTRY_DTYPES: Final = ("f16", "bf16", "int8", "f8e4m3")
_CODE_DTYPES: Final = (*(f"uint{bits}" for bits in range(1, 9)), "uint16", "uint32")


@dataclass(frozen=True)
class CodebookCache:
    """Where the entries of a codebook are kept: what `lowlp-place-codebooks` decides where nobody asks for another.

    shared      entries of each book that are in shared memory, from the first on
    copies      of each of these, a power of two up to 32
    line_bytes  from one of these to the next; as many as its copies take if left out
    book_bytes  from a book to the next. If left out, books lie within lines that have room for all of them, else one
                after the other
    registers   entries of each book that every thread has in registers, from the first on; at most 8

    All others are read from global memory.
    """

    shared: int = 0
    copies: int = 1
    line_bytes: int | None = None
    book_bytes: int | None = None
    registers: int = 0

    def mlir(self, books: int, entry_bytes: int) -> str:
        """The attribute of the block dialect, for so many books."""
        copies = self.copies * entry_bytes
        line = copies if self.line_bytes is None else self.line_bytes
        book = self.book_bytes
        if book is None:
            book = copies if line >= books * copies else self.shared * line  # within lines, or one after the other
        if not self.shared:
            line = self.line_bytes or 0
        if books == 1 or not self.shared:
            book = self.book_bytes or 0
        return (
            f"#lowlp.codebook_cache<registers = {self.registers}, shared = {self.shared}, copies = {self.copies}, "
            f"line_bytes = {line}, book_bytes = {book}>"
        )


class Codebook(TracedValue):
    """Codebooks in their cache: `shape` is [books, entries, values], or [entries, values] of one. Each is used until
    `switch_codebook` puts another in its place; loops carry it and branches merge it, as they do tiles.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, trace: Trace, value: ir.Value, element: DType, shape: Sequence[int]) -> None:
        super().__init__(trace, value)
        self.dtype = element
        self.shape = tuple(shape)

    @property
    def vector(self) -> int:
        """The values of an entry."""
        return self.shape[-1]

    def describe(self) -> str:
        """What the value is, for messages."""
        return f"a codebook of {self.dtype} of shape {list(self.shape)}"

    def like(self, value: ir.Value) -> Codebook:
        """Another value of the same type, of the innermost region."""
        return Codebook(self._trace, value, self.dtype, self.shape)

    def is_like(self, other: Codebook) -> bool:
        """True when both have one type."""
        return (self.dtype, self.shape) == (other.dtype, other.shape)


def _as_codebook(value: object) -> Codebook:
    if not isinstance(value, Codebook):
        raise type_error(f"codebook: must be made by ll.load_codebook, found {describe(value)}")
    return value


def _leading(view: object, offsets: object) -> tuple[GlobalView, list[Scalar], tuple[int, ...]]:
    """The view, offsets along its first dimensions, and the extents of the others."""
    if not isinstance(view, GlobalView):
        raise type_error(f"view: must be a view made by ll.view_global, found {describe(view)}")
    if isinstance(offsets, str) or not isinstance(offsets, Sequence):
        raise type_error(f"offsets: must be a list of ints and index scalars, found {describe(offsets)}")
    rank = view.rank - len(offsets)
    if rank not in (2, 3):
        raise value_error(
            f"offsets: the view's last 2 or 3 dimensions are the codebook, [books,] entries and values, so that one of "
            f"{view.rank} dimensions takes {view.rank - 3} or {view.rank - 2} offsets, found {len(offsets)}"
        )
    shape = view.shape[len(offsets) :]
    known = tuple(extent for extent in shape if extent is not None)
    if len(known) != len(shape):
        raise value_error(f"view: the extents of a codebook must be ints, but are {list(shape)}")
    _, starts = access(view, "view", [*offsets, *[0] * rank])
    return view, starts[: len(offsets)], known


def load_codebook(
    view: GlobalView,
    *,
    offsets: Sequence[int | Scalar] = (),
    frequencies: Sequence[int] | None = None,
    cache: CodebookCache | None = None,
    spread: int | None = None,
    asynchronous: bool = False,
) -> Codebook:
    """Takes a codebook from global memory into its cache; all threads do it together (VQ-LLM, section V: Load).

    view         of f16, bf16, int8 or f8e4m3, contiguous; its last dimensions are the codebook: [books,] entries and 2,
                 4, 8 or 16 values of each. Books may also lie side by side, entry by entry, strides [values, books *
                 values, 1], with a cache that has all entries in shared memory
    offsets      which codebook, for each dimension in front of these; the CPU target checks that it is there
    frequencies  how often each entry is accessed, in all books; entries are stored most frequent first
                 (`lowlp.weights.codebook_order`), so these must not increase
    cache        where entries are kept; left out, the compiler decides, and `report()` says why
    spread       codes were chosen for entries with one copy in shared memory, which are then given no more: the passes
                 of lanes that look up together, in hundredths, at least 100 (docs/packed-format.md)
    asynchronous of books that lie side by side: begins a group of asynchronous copies, and does not wait. Before the
                 first lookup stand `copy_async_wait`, for that group, and `synchronize`

    Raises KernelTypeError and KernelValueError for other arguments, VerificationError for shapes that are no codebook.
    """
    trace = current_trace("ll.load_codebook")
    source, starts, shape = _leading(view, offsets)
    if source.dtype.name not in _ENTRY_DTYPES:
        raise type_error(f"view: entries must be one of {', '.join(_ENTRY_DTYPES)}, found {source.describe()}")
    attributes: dict[str, ir.Attribute] = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(starts), 0]),
    }
    if frequencies is not None:
        counts = [int(count) for count in frequencies]
        attributes["frequencies"] = ir.DenseI64ArrayAttr.get(counts)
    if cache is not None:
        if not isinstance(cache, CodebookCache):
            raise type_error(f"cache: must be an ll.CodebookCache, found {describe(cache)}")
        books = math.prod(shape[:-2])
        attributes["cache"] = ir.Attribute.parse(cache.mlir(books, shape[-1] * source.dtype.bits // 8))
    if spread is not None:
        attributes["spread"] = ir.IntegerAttr.get(trace.type("i64"), int(spread))
    if asynchronous:
        attributes["asynchronous"] = ir.UnitAttr.get()
    result = trace.type(f"!lowlp.codebook<{'x'.join(map(str, shape))}x{source.dtype.mlir}>")
    operands = [operand.ir_value for operand in (source, *starts)]
    operation = trace.emit("lowlp.load_codebook", [result], operands, attributes)
    return Codebook(trace, operation.results[0], source.dtype, shape)


def switch_codebook(
    codebook: Codebook, view: GlobalView, *, offsets: Sequence[int | Scalar] = (), entries: Tile | None = None
) -> Codebook:
    """Puts another codebook of the same shape in the place of one; all threads do it together (VQ-LLM, section V).

    The codebook before must not be used any more: `book = ll.switch_codebook(book, ...)`. View and offsets are as for
    `load_codebook`.

    entries  what the view has there, loaded before, so that nobody waits for memory: a tile [rows, values] whose row
             b E + e is entry e of book b of E entries each. Every thread holds rows whole, and rows after the last
             entry count for nothing: with T threads `local(n, 1).spatial(T, 1).local(1, values)`

    Raises KernelTypeError and KernelValueError for other arguments, VerificationError where the codebook before is used
    after all, or where entries are held otherwise.
    """
    trace = current_trace("ll.switch_codebook")
    before = _as_codebook(codebook)
    source, starts, shape = _leading(view, offsets)
    if (source.dtype, shape) != (before.dtype, before.shape):
        raise value_error(f"view: must hold {before.describe()}, found {source.describe()}")
    loaded = [] if entries is None else [as_tile("entries", entries)]
    sizes = ir.DenseI32ArrayAttr.get([1, 1, len(starts), len(loaded)])
    operands = [operand.ir_value for operand in (before, source, *starts, *loaded)]
    attributes = {"operandSegmentSizes": sizes}
    operation = trace.emit("lowlp.switch_codebook", [before.ir_value.type], operands, attributes)
    return before.like(operation.results[0])


def _as_number(argument: str, value: object, end: int) -> int:
    if not is_int(value):
        raise type_error(f"{argument}: must be an int, found {describe(value)}")
    number: int = int(value)  # type: ignore[call-overload]
    if not -end <= number < end:
        raise value_error(f"{argument}: must be from {-end} to {end - 1}, found {number}")
    return number % end


def lookup_vectors(
    codes: Tile,
    codebook: Codebook,
    *,
    book: int = 0,
    along: int = -1,
    book_along: int | None = None,
    staggered: Sequence[int] | None = None,
    part: Sequence[int] | None = None,
    dtype: str | DType | None = None,
) -> Tile:
    """The vectors that codes name, in place of the codes along one dimension (VQ-LLM, section V: Access).

    codes       unsigned integers of any width; each must be the number of an entry, which the CPU target checks
    book        the number of the book
    along       the dimension that is v times as long in the result, v being the values of an entry: codes [rows, K / v]
                become values [rows, K]
    book_along  a dimension of the codes whose indices have a book each: index j has book `book` + j
    staggered   (r, m0, m1, ...): books are exchanged by the index i along dimension r, which makes lanes that read the
                same columns of different rows read different books: index j has book `book` + (j ^ x), of which bit b
                of x is the parity of i & mb. Without `book_along` all have book `book` ^ x, so that lanes which have
                columns side by side read books of their own
    part        leading indices of a larger tile of codes, whose rest is looked up: of codes [4, 2, 16, 4], `[3, 0]`
                takes 16 x 4. Every thread must hold these dimensions whole
    dtype       'f16' or 'bf16', to which entries of int8 and f8e4m3 are converted exactly; the type of the entries if
                left out

    The layout of the result is that of the codes, times `lowlp.local` of v along the dimension. With v = 8,
    `local(2, 1).spatial(8, 4)` becomes `local(2, 1).spatial(8, 4).local(1, 8)`, an operand a of `dot`, whose operand b
    is then `column_spatial(4, 8).local(8, 1)`. Raises VerificationError where layouts do not fit, KernelTypeError and
    KernelValueError for other arguments.
    """
    tile, source = as_tile("codes", codes), _as_codebook(codebook)
    require_dtype("codes", tile, _CODE_DTYPES)
    held = tile.layout
    attributes: dict[str, ir.Attribute] = {}
    if part is not None:
        held, attributes["part"] = part_of("part", "the codes", as_named_tile("codes", tile), part)
    dim = _as_number("along", along, held.rank)
    i64 = current_trace("ll.lookup_vectors").type("i64")
    books = source.shape[0] if len(source.shape) == 3 else 1
    attributes["book"] = ir.IntegerAttr.get(i64, _as_number("book", book, books))
    attributes["along"] = ir.IntegerAttr.get(i64, dim)
    if book_along is not None:
        attributes["book_along"] = ir.IntegerAttr.get(i64, _as_number("book_along", book_along, held.rank))
    if staggered is not None:
        attributes["staggered"] = ir.DenseI64ArrayAttr.get([int(number) for number in staggered])
    vector = local(*(source.vector if number == dim else 1 for number in range(held.rank)))
    values = emit_tile("lowlp.lookup_vectors", source.dtype, held * vector, [tile, source], attributes)
    if dtype is None or as_dtype("dtype", dtype) == source.dtype:
        return values
    return cast(values, dtype)
