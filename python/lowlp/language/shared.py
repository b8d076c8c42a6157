"""Shared memory: tiles that a block keeps, and copies into them (Tilus, section 5, table 1 and appendix B)."""

from __future__ import annotations

from collections.abc import Sequence

from lowlp._mlir import ir
from lowlp.errors import LowlpError
from lowlp.layouts.register_layout import Layout
from lowlp.layouts.shared_layout import SharedLayout, shared_layout
from lowlp.numeric.dtypes import DType

from .free_layouts import Choice, coalesced
from .scalars import Scalar, as_index, describe, is_int
from .source import type_error, value_error
from .tiles import GlobalView, Tile, as_dtype, as_extents, as_tile, emit_tile, held_as, named_or_default
from .tracing import Trace, TracedValue, current_trace

MAX_GROUPS = 7


class SharedTile(TracedValue):
    """A tile in the block's shared memory: elements of `dtype`, placed by `layout`."""

    __slots__ = ("dtype", "layout")

    def __init__(self, trace: Trace, value: ir.Value, element: DType, layout: SharedLayout) -> None:
        super().__init__(trace, value)
        self.dtype = element
        self.layout = layout

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the tile."""
        return self.layout.shape

    def describe(self) -> str:
        """What the value is, for messages."""
        return f"a shared tile of {self.dtype} with layout {self.layout}"

    def like(self, value: ir.Value) -> SharedTile:
        """Another value of the same type, of the innermost region."""
        return SharedTile(self._trace, value, self.dtype, self.layout)


def alloc_shared(
    dtype: str | DType, shape: Sequence[int], layout: SharedLayout | Layout | str | None = None
) -> SharedTile:
    """A tile in the block's shared memory, for as long as the block runs (Tilus, table 1: AllocateShared).

    dtype   the type of the elements; those narrower than 8 bits are packed without gaps
    shape   its extents; a first dimension of stages is one more offset of loads, stores and copies
    layout  where elements lie, such as `lowlp.local(3, 1, 1).swizzle(lowlp.local(16, 32), dim=1).local(1, 8)`;
            row-major if left out

    What it holds at first is undefined. Raises KernelTypeError and KernelValueError for other arguments.
    """
    trace = current_trace("ll.alloc_shared")
    element, extents = as_dtype("dtype", dtype), as_extents("shape", shape)
    try:
        placed = shared_layout(f"local({', '.join(map(str, extents))})" if layout is None else layout)
    except LowlpError as error:
        make = type_error if isinstance(error, TypeError) else value_error
        raise make(f"layout: {error}") from None
    if placed.shape != tuple(extents):
        raise value_error(f"shape: {extents} is not the shape of the layout, {list(placed.shape)}")
    text = f"!lowlp.shared<{'x'.join(map(str, extents))}x{element.mlir}, {placed}>"
    operation = trace.emit("lowlp.alloc_shared", [trace.type(text)])
    return SharedTile(trace, operation.results[0], element, placed)


def as_shared(argument: str, value: object) -> SharedTile:
    """A shared tile. Raises KernelTypeError for anything else."""
    if not isinstance(value, SharedTile):
        raise type_error(f"{argument}: must be a tile made by ll.alloc_shared, found {describe(value)}")
    return value


def as_offsets(argument: str, offsets: object, rank: int) -> list[Scalar]:
    """`rank` offsets as scalars. Raises KernelTypeError and KernelValueError for anything else."""
    if isinstance(offsets, str) or not isinstance(offsets, Sequence):
        raise type_error(f"{argument}: must be a list of ints and index scalars, found {describe(offsets)}")
    if len(offsets) != rank:
        raise value_error(f"{argument}: expected one for each of the {rank} dimensions, found {len(offsets)}")
    return [as_index(f"{argument}[{dim}]", offset) for dim, offset in enumerate(offsets)]


def _check_rank(argument: str, rank: int, available: int) -> None:
    if rank > available:
        raise value_error(f"{argument}: has {rank} dimensions, but only {available} are there")


def _promise(in_bounds: bool) -> dict[str, ir.Attribute]:
    return {"in_bounds": ir.UnitAttr.get()} if in_bounds else {}


def load_shared(
    source: SharedTile,
    *,
    offsets: Sequence[int | Scalar],
    layout: Layout | str | None = None,
    shape: Sequence[int] | None = None,
    in_bounds: bool = False,
) -> Tile:
    """A tile loaded from shared memory into registers (Tilus, table 1: LoadShared).

    offsets    where the tile begins, for each dimension of the shared tile; it lies along the last dimensions
    layout     how threads hold the tile, whose shape is the layout's; or, to leave that to the compiler,
    shape      its extents
    in_bounds  promises that all of the tile lies in the shared tile; else elements outside are zero

    Raises KernelTypeError and KernelValueError for other arguments.
    """
    shared = as_shared("source", source)
    starts = as_offsets("offsets", offsets, len(shared.shape))
    held, choice = named_or_default(layout, shape, shared.dtype)
    _check_rank("layout", len(held.shape), len(shared.shape))
    return emit_tile("lowlp.load_shared", shared.dtype, held, [shared, *starts], _promise(in_bounds), choice)


def store_shared(
    tile: Tile, destination: SharedTile, *, offsets: Sequence[int | Scalar], in_bounds: bool = False
) -> None:
    """Stores a tile to shared memory (Tilus, table 1: StoreShared); see `load_shared` for offsets and in_bounds.

    Elements outside of the shared tile are not written. Other threads see the others after `synchronize`. Raises
    KernelTypeError unless both have one element type, KernelTypeError and KernelValueError for other arguments.
    """
    value, shared = as_tile("tile", tile), as_shared("destination", destination)
    starts = as_offsets("offsets", offsets, len(shared.shape))
    if value.dtype != shared.dtype:
        raise type_error(
            f"tile: element types must match: the tile holds {value.dtype}, shared memory {shared.dtype}; use ll.cast"
        )
    _check_rank("tile", len(value.shape), len(shared.shape))
    if value.choice is not Choice.NAMED:
        value = held_as(value, coalesced(value.shape, value.dtype.bits, value.layout.num_threads), Choice.DEFAULT)
    operands = [operand.ir_value for operand in (value, shared, *starts)]
    current_trace("ll.store_shared").emit("lowlp.store_shared", [], operands, _promise(in_bounds))


def synchronize() -> None:
    """Waits until all threads of the block are here; then they see what was written before."""
    current_trace("ll.synchronize").emit("lowlp.synchronize")


def synchronize_warpgroups() -> None:
    """Waits until the 128 threads of the own warpgroup are here; then each sees what they wrote before.

    Warpgroups do not wait for each other. The block has whole ones, which the verifier checks.
    """
    current_trace("ll.synchronize_warpgroups").emit("lowlp.synchronize_warpgroups")


def check_part(view: GlobalView, shared: SharedTile, extents: Sequence[int]) -> None:
    """Raises KernelTypeError or KernelValueError unless a part of these extents may lie in both."""
    if view.dtype != shared.dtype:
        raise type_error(f"view: element types must match: it holds {view.dtype}, shared memory {shared.dtype}")
    _check_rank("shape", len(extents), min(view.rank, len(shared.shape)))
    for extent, available in zip(extents, shared.shape[-len(extents) :], strict=True):
        if extent > available:
            raise value_error(f"shape: {list(extents)} is larger than the shared tile, {list(shared.shape)}")


def copy_async(
    view: GlobalView,
    destination: SharedTile,
    *,
    view_offsets: Sequence[int | Scalar],
    offsets: Sequence[int | Scalar],
    shape: Sequence[int],
    in_bounds: bool = False,
) -> None:
    """Begins to copy a part of a view to shared memory (Tilus, table 1: CopyAsync).

    view_offsets  where the part begins in the view, for each of its dimensions
    offsets       where it begins in the shared tile, for each of its dimensions
    shape         the extents of the part, which lies along the last dimensions of both
    in_bounds     promises that all of the part lies in the view; else elements outside arrive as zero

    It has arrived after a `copy_async_wait` that waits for its group and, for other threads, `synchronize`. Raises
    KernelTypeError and KernelValueError for other arguments.
    """
    if not isinstance(view, GlobalView):
        raise type_error(f"view: must be a view made by ll.view_global, found {describe(view)}")
    shared = as_shared("destination", destination)
    source_starts = as_offsets("view_offsets", view_offsets, view.rank)
    starts = as_offsets("offsets", offsets, len(shared.shape))
    extents = as_extents("shape", shape)
    check_part(view, shared, extents)
    attributes = _promise(in_bounds) | {
        "shape": ir.DenseI64ArrayAttr.get(extents),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(source_starts), 1, len(starts)]),
    }
    operands = [operand.ir_value for operand in (view, *source_starts, shared, *starts)]
    current_trace("ll.copy_async").emit("lowlp.copy_async", [], operands, attributes)


def copy_async_commit() -> None:
    """Makes one group of all copies since the last commit (Tilus, table 1: CopyAsyncCommitGroup)."""
    current_trace("ll.copy_async_commit").emit("lowlp.copy_async_commit")


def copy_async_wait(n: int) -> None:
    """Waits until all but the last `n` groups, 0 to 7, have arrived (Tilus, table 1: CopyAsyncWaitGroup)."""
    trace = current_trace("ll.copy_async_wait")
    if not is_int(n) or not 0 <= n <= MAX_GROUPS:
        raise value_error(f"n: must be an int from 0 to {MAX_GROUPS}, found {describe(n)}")
    trace.emit("lowlp.copy_async_wait", attributes={"n": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), n)})
