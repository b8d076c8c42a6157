"""The instructions of a thread block on views and tiles (Tilus, section 5 and table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from lowlp._mlir import ir
from lowlp.layouts.register_layout import Layout
from lowlp.numeric.dtypes import DType

from .free_layouts import Choice, coalesced, fragments
from .scalars import Scalar, as_index, describe, is_int
from .source import type_error, value_error
from .tiles import (
    ARITHMETIC_DTYPES,
    GlobalView,
    Pointer,
    Tile,
    as_dtype,
    as_layout,
    as_named_tile,
    as_tile,
    emit_tile,
    held_as,
    named_or_default,
    splat,
)
from .tracing import current_trace


def block_indices() -> tuple[Scalar, ...]:
    """The indices of this block in the grid, one index scalar for each extent (Tilus, table 1: BlockIndices).

    A tuple also for a grid of one extent: `(bi,) = ll.block_indices()`.
    """
    trace = current_trace("ll.block_indices")
    operation = trace.emit("lowlp.block_indices", [trace.type("index")] * trace.grid_rank)
    return tuple(Scalar(trace, result, "index", nonnegative=True) for result in operation.results)


def _extents(argument: str, values: object, least: int) -> tuple[list[int | None], list[ir.Value]]:
    """Numbers known now, None for the others, and the values of those."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise type_error(f"{argument}: must be a list of ints and index scalars, found {describe(values)}")
    static: list[int | None] = []
    dynamic: list[ir.Value] = []
    for dim, value in enumerate(values):
        if is_int(value):
            if value < least:
                raise value_error(f"{argument}[{dim}]: must be at least {least}, found {value}")
            static.append(int(value))
        else:
            dynamic.append(as_index(f"{argument}[{dim}]", value).ir_value)
            static.append(None)
    return static, dynamic


def view_global(
    source: Pointer, *, shape: Sequence[int | Scalar], strides: Sequence[int | Scalar] | None = None
) -> GlobalView:
    """A pointer seen as a tensor (Tilus, table 1: ViewGlobal).

    shape    extents, ints or index scalars; they bound every access
    strides  elements from one index to the next, for each dimension; 0 broadcasts; row-major if left out

    The view is used where it is visible and is no loop-carried value. Raises KernelTypeError and KernelValueError for
    other arguments.
    """
    trace = current_trace("ll.view_global")
    if not isinstance(source, Pointer):
        raise type_error(f"source: must be a pointer parameter, found {describe(source)}")
    static_shape, dynamic_shape = _extents("shape", shape, 1)
    if not static_shape:
        raise value_error("shape: must have at least one dimension")
    static_strides, dynamic_strides = _extents("strides", strides if strides is not None else [], 0)
    if strides is not None and len(static_strides) != len(static_shape):
        raise value_error(f"strides: expected one for each of the {len(static_shape)} dimensions, found {len(strides)}")
    unit = static_strides.index(1) if 1 in static_strides else len(static_shape) - 1
    unknown = ir.ShapedType.get_dynamic_size()
    attributes = {
        "staticShape": [unknown if extent is None else extent for extent in static_shape],
        "staticStrides": [unknown if stride is None else stride for stride in static_strides],
    }
    dims = "x".join("?" if extent is None else str(extent) for extent in static_shape)
    operation = trace.emit(
        "lowlp.view_global",
        [trace.type(f"!lowlp.global<{dims}x{source.dtype.mlir}>")],
        [source.ir_value, *dynamic_shape, *dynamic_strides],
        {name: ir.DenseI64ArrayAttr.get(numbers) for name, numbers in attributes.items() if numbers}
        | {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dynamic_shape), len(dynamic_strides)])},
    )
    return GlobalView(trace, operation.results[0], source.dtype, static_shape, unit - len(static_shape))


def access(view: object, argument: str, offsets: object) -> tuple[GlobalView, list[Scalar]]:
    """The view and the offsets of an access; raises an error that names the argument."""
    if not isinstance(view, GlobalView):
        raise type_error(f"{argument}: must be a view made by ll.view_global, found {describe(view)}")
    if isinstance(offsets, str) or not isinstance(offsets, Sequence):
        raise type_error(f"offsets: must be a list of ints and index scalars, found {describe(offsets)}")
    if len(offsets) != view.rank:
        raise value_error(f"offsets: expected one for each of the view's {view.rank} dimensions, found {len(offsets)}")
    return view, [as_index(f"offsets[{dim}]", offset) for dim, offset in enumerate(offsets)]


def check_rank(tile_rank: int, view: GlobalView) -> None:
    """Raises KernelValueError where a tile has more dimensions than the view."""
    if tile_rank > view.rank:
        raise value_error(f"layout: the tile has {tile_rank} dimensions, but the view has only {view.rank}")


def load_global(
    view: GlobalView,
    *,
    offsets: Sequence[int | Scalar],
    layout: Layout | str | None = None,
    shape: Sequence[int] | None = None,
    in_bounds: bool = False,
) -> Tile:
    """A tile loaded from global memory into registers (Tilus, table 1: LoadGlobal).

    offsets    where the tile begins, for each dimension of the view; it lies along the view's last dimensions
    layout     how threads hold the tile, whose shape is the layout's; or, to leave that to the compiler,
    shape      its extents
    in_bounds  promises that all of the tile lies in the view; else elements outside are zero

    Raises KernelTypeError and KernelValueError for other arguments.
    """
    source, starts = access(view, "view", offsets)
    held, choice = named_or_default(layout, shape, source.dtype, source.contiguous)
    check_rank(held.rank, source)
    attributes: dict[str, ir.Attribute] = {"in_bounds": ir.UnitAttr.get()} if in_bounds else {}
    return emit_tile("lowlp.load_global", source.dtype, held, [source, *starts], attributes, choice)


def store_global(tile: Tile, view: GlobalView, *, offsets: Sequence[int | Scalar], in_bounds: bool = False) -> None:
    """Stores a tile to global memory (Tilus, table 1: StoreGlobal); see `load_global` for offsets and in_bounds.

    Elements outside of the view are not written. Raises KernelTypeError unless tile and view have one element type,
    KernelTypeError and KernelValueError for other arguments.
    """
    value = as_tile("tile", tile)
    destination, starts = access(view, "view", offsets)
    if value.dtype != destination.dtype:
        raise type_error(
            f"tile: element types must match: the tile holds {value.dtype}, the view {destination.dtype}; use ll.cast"
        )
    check_rank(len(value.shape), destination)
    if value.choice is not Choice.NAMED:
        dim = max(destination.contiguous, -len(value.shape))
        held = coalesced(value.shape, value.dtype.bits, value.layout.num_threads, dim)
        value = held_as(value, held, Choice.DEFAULT)
    attributes: dict[str, ir.Attribute] = {"in_bounds": ir.UnitAttr.get()} if in_bounds else {}
    operands = [operand.ir_value for operand in (value, destination, *starts)]
    current_trace("ll.store_global").emit("lowlp.store_global", [], operands, attributes)


def full(
    value: float | Scalar,
    dtype: str | DType,
    *,
    layout: Layout | str | None = None,
    shape: Sequence[int] | None = None,
) -> Tile:
    """A tile with one value everywhere (Tilus, table 1: AllocateRegister with an initial value).

    value   a number; or an f32 scalar for a tile of f32, an index scalar for one of integers, which keeps its low bits
    dtype   'f16', 'bf16', 'f32', 'int16', 'uint16', 'int32' or 'uint32'
    layout  how threads hold the tile, whose shape is the layout's; or, to leave that to the compiler,
    shape   its extents

    Raises KernelValueError for a number beyond the range of dtype, KernelTypeError and KernelValueError for other
    arguments.
    """
    current_trace("ll.full")
    element = as_dtype("dtype", dtype)
    if element.name not in ARITHMETIC_DTYPES:
        raise value_error(f"dtype: must be one of {', '.join(ARITHMETIC_DTYPES)}, found {element}; cast the tile after")
    return splat("value", value, element, *named_or_default(layout, shape, element))


def cast(tile: Tile, dtype: str | DType) -> Tile:
    """The tile with its elements converted, in the same layout (Tilus, table 1: Cast).

    Rounds to nearest, ties to even; towards integers and types of at most 8 bits values saturate, and NaN becomes 0 as
    an integer. Raises KernelTypeError and KernelValueError for other arguments.
    """
    source = as_tile("tile", tile)
    return emit_tile("lowlp.cast", as_dtype("dtype", dtype), source.layout, [source])


def view(tile: Tile, *, dtype: str | DType, layout: Layout | str) -> Tile:
    """The same registers seen as another element type and layout, which costs nothing (Tilus, section 6.2).

    Raises KernelValueError unless threads, and bits per thread, stay as they are.
    """
    source = as_named_tile("tile", tile)
    element, tile_layout = as_dtype("dtype", dtype), as_layout("layout", layout)
    bits = element.bits * tile_layout.num_local
    if bits != source.bits_per_thread:
        raise value_error(
            f"a view must keep the bits per thread: source holds {source.bits_per_thread}, result holds {bits}"
        )
    return emit_tile("lowlp.view", element, tile_layout, [source])


def accumulator_dtype(a: DType, b: DType) -> str:
    """What products of the two types add up to; '' where no instruction multiplies them."""
    names = {a.name, b.name}
    if (len(names) == 1 and names <= {"f16", "bf16"}) or names <= {"f8e4m3", "f8e5m2"}:
        return "f32"
    return "int32" if names <= {"int8", "uint8"} or names == {"uint1"} else ""


def dot(a: Tile, b: Tile, c: Tile) -> Tile:
    """a * b + c (Tilus, table 1: Dot).

    a  [M, K] of f16, bf16, f8e4m3, f8e5m2, int8, uint8 or uint1
    b  [K, N] of the same type, or of another one of the same kind: 8-bit floats mix, and 8-bit integers
    c  [M, N] of f32 for floats, of int32 for integers, whose sums wrap around; the result has its type. With S times
       the rows, [S M, N], K is cut into S equal slices, and rows s M to (s + 1) M get the product of slice s alone

    The layouts must divide by the fragments of mma.sync m16n8k16, of 8-bit types m16n8k32, of uint1 m16n8k256,
    or m16n8k128 where K is no multiple of 256; see
    `lowlp.dot` in the reference of the dialect. Tiles whose layout is left to the compiler are held as the others need,
    with the warps in a grid of rows by columns of the accumulators. 8-bit floats need sm_89 or newer.

    Raises KernelTypeError for element types, KernelValueError for shapes that do not fit.
    """
    tiles = {name: as_tile(name, tile) for name, tile in (("a", a), ("b", b), ("c", c))}
    for name, tile in tiles.items():
        if len(tile.shape) != 2:
            raise value_error(f"{name}: must have 2 dimensions, found {len(tile.shape)}")
    dtype_of_c = accumulator_dtype(a.dtype, b.dtype)
    if not dtype_of_c:
        raise type_error(
            "a and b must both hold f16, both bf16, both uint1, 8-bit integers, or f8e4m3 and f8e5m2, "
            f"found {a.dtype} and {b.dtype}"
        )
    if c.dtype.name != dtype_of_c:
        raise type_error(f"c must hold {dtype_of_c}, found {c.dtype}")
    (m, k), (k_of_b, n) = a.shape, b.shape
    if k != k_of_b:
        raise value_error(f"K must match: a is [{m}, {k}], b is [{k_of_b}, {n}]")
    if c.shape[0] % m or c.shape[1] != n:
        raise value_error(f"c must be [{m}, {n}], or a multiple of the rows, found {list(c.shape)}")
    slices = c.shape[0] // m
    if k % slices:
        raise value_error(f"c has rows for {slices} slices of K, which do not divide K = {k}")
    if any(tile.choice is not Choice.NAMED for tile in (a, b, c)):
        a, b, c = _as_fragments(a, b, c)
    return emit_tile("lowlp.dot", c.dtype, c.layout, [a, b, c])


def _as_fragments(a: Tile, b: Tile, c: Tile) -> list[Tile]:
    """The operands held as a product needs them: as the user has named, and else as most of them are held already."""
    tiles = (a, b, c)
    (m, k), n = a.shape, b.shape[1]
    step = 8 * (32 // a.dtype.bits)
    hint = "name the layouts of a, b and c to have it otherwise"
    if c.shape[0] != m:
        raise value_error(f"c has rows for {c.shape[0] // m} slices of K: name the layouts of a, b and c")
    for name, extent, unit in (("M", m, 16), ("N", n, 8), ("K", k, step)):
        if extent % unit:
            raise value_error(f"{name} must be a multiple of {unit} for {a.dtype}, found {extent}; {hint}")
    trace = current_trace("ll.dot")
    num_threads = trace.num_threads
    ways = list(fragments(m, n, k, a.dtype.bits, num_threads, by_warpgroups=trace.has_warpgroups))
    if not ways:
        raise value_error(
            f"{num_threads // 32} warps cannot share {m} x {n} accumulators in equal parts of 16 x 8 and their "
            "multiples: change the extents or num_threads, or name the layouts of a, b and c"
        )

    def agreement(way: Sequence[Layout]) -> tuple[bool, int]:
        """Whether the way has all that the user has named, and how many tiles stay as an instruction needs them."""
        same = [tile.choice for tile, layout in zip(tiles, way, strict=True) if tile.layout == layout]
        named = sum(tile.choice is Choice.NAMED for tile in tiles)
        return same.count(Choice.NAMED) == named, same.count(Choice.NEEDED)

    best = max(ways, key=agreement)
    for name, tile, layout in zip("abc", tiles, best, strict=True):
        if tile.choice is Choice.NAMED and tile.layout != layout:
            raise value_error(
                f"the layout of {name}, {tile.layout}, is none that the other operands can follow; one that they can "
                f"is {layout}; or name the layouts of a, b and c"
            )
    return [held_as(tile, layout, Choice.NEEDED) for tile, layout in zip(tiles, best, strict=True)]
