"""Instructions on the dimensions of tiles: indices, reductions, broadcasts, transpositions."""

from __future__ import annotations

from collections.abc import Sequence

from lowlp._mlir import ir
from lowlp.errors import LowlpError
from lowlp.layouts.register_layout import Layout
from lowlp.numeric.dtypes import DType

from .free_layouts import Choice
from .scalars import describe, is_int
from .source import type_error, value_error
from .tiles import (
    COMPUTE_DTYPES,
    Tile,
    as_dtype,
    as_layout,
    as_named_tile,
    as_tile,
    emit_tile,
    named_or_default,
    repeat,
    require_dtype,
)
from .tracing import current_trace

_KINDS = {"sum": 0, "max": 1, "min": 2}


def _as_dim(dim: object, rank: int) -> int:
    """The number of a dimension, counted from the first one."""
    if not is_int(dim):
        raise type_error(f"dim: must be an int, found {describe(dim)}")
    number: int = int(dim)  # type: ignore[call-overload]
    if not -rank <= number < rank:
        raise value_error(f"dim: must be from {-rank} to {rank - 1}, found {number}")
    return number % rank


def iota(
    dim: int,
    *,
    layout: Layout | str | None = None,
    shape: Sequence[int] | None = None,
    dtype: str | DType = "f32",
) -> Tile:
    """A tile that holds each element's index along one dimension; comparisons with it make masks.

    layout  how threads hold the tile; the extent of the dimension is at most 2**24 for f32, 2**31 for integers
    shape   its extents instead, to leave the layout to the compiler
    dtype   'f32', 'int32' or 'uint32'

    Raises KernelTypeError and KernelValueError for other arguments.
    """
    current_trace("ll.iota")
    element = as_dtype("dtype", dtype)
    tile_layout, choice = named_or_default(layout, shape, element)
    number = _as_dim(dim, tile_layout.rank)
    if element.name not in ("f32", "int32", "uint32"):
        raise value_error(f"dtype: must be one of f32, int32, uint32, found {element}")
    largest = 2**31 if element.is_integer else 2**24
    if tile_layout.shape[number] > largest:
        raise value_error(f"dim: {element} holds indices of extents up to {largest}, found {tile_layout.shape[number]}")
    attributes = {"dim": ir.IntegerAttr.get(current_trace("ll.iota").type("i64"), number)}
    return emit_tile("lowlp.iota", element, tile_layout, [], attributes, choice)


def _reduce(name: str, tile: object, dim: object, keep_dims: bool) -> Tile:
    source = as_tile("tile", tile)
    require_dtype(name, source, (*COMPUTE_DTYPES, "int32", "uint32"))
    number = _as_dim(dim, source.layout.rank)
    trace = current_trace(f"ll.{name}")
    attributes = {
        "kind": ir.IntegerAttr.get(trace.type("i32"), _KINDS[name]),
        "dim": ir.IntegerAttr.get(trace.type("i64"), number),
    }
    layout = source.layout.reduce([number], keep_dims=keep_dims)
    result = emit_tile("lowlp.reduce", source.dtype, layout, [source], attributes)
    result.reduced_dim = None if keep_dims else number
    return result


def reduce_sum(tile: Tile, dim: int, *, keep_dims: bool = False) -> Tile:
    """The sums of a tile's elements along one dimension, in f32; f16 and bf16 are rounded once, at the end.

    Sums of int32 and uint32 wrap around.

    dim        the dimension; -1 is the last. What several warps hold of it goes through shared memory
    keep_dims  the dimension stays, with extent 1, so that arithmetic with the tile repeats the result along it

    The order of the additions depends on the layout alone; see `lowlp.reduce` in the reference of the dialect. Raises
    KernelTypeError and KernelValueError for other arguments.
    """
    return _reduce("sum", tile, dim, keep_dims)


def reduce_max(tile: Tile, dim: int, *, keep_dims: bool = False) -> Tile:
    """The largest elements along one dimension, NaN where there is one; see `ll.sum` for dim and keep_dims."""
    return _reduce("max", tile, dim, keep_dims)


def reduce_min(tile: Tile, dim: int, *, keep_dims: bool = False) -> Tile:
    """The smallest elements along one dimension, NaN where there is one; see `ll.sum` for dim and keep_dims."""
    return _reduce("min", tile, dim, keep_dims)


for _function in (reduce_sum, reduce_max, reduce_min):
    # Python's own errors about arguments name them as users do: `max() got an unexpected keyword argument 'axis'`.
    _function.__name__ = _function.__qualname__ = _function.__name__.removeprefix("reduce_")


def broadcast_to(tile: Tile, layout: Layout | str) -> Tile:
    """The tile repeated along its dimensions of extent 1, and along leading ones that it lacks.

    layout  how threads hold the result; each of them must hold already what it needs for it, since nothing moves

    Raises VerificationError, which names thread and element, where one does not; KernelTypeError and KernelValueError
    for other arguments.
    """
    return repeat(as_tile("tile", tile), as_layout("layout", layout))


def convert_layout(tile: Tile, layout: Layout | str) -> Tile:
    """The same tile held in another layout of the same shape.

    layout  how threads hold the result; any layout of the tile's shape

    The compiler takes the cheapest way: none where only the order of registers changes, shuffles within warps, or
    shared memory; `CompiledKernel.report()` says which. Raises KernelTypeError and KernelValueError for other
    arguments.
    """
    source, target = as_tile("tile", tile), as_layout("layout", layout)
    if target.shape != source.shape:
        raise value_error(f"layout: must have the shape of the tile, {list(source.shape)}, found {list(target.shape)}")
    return emit_tile("lowlp.convert_layout", source.dtype, target, [source], choice=Choice.NAMED)


def transpose(tile: Tile, dims: Sequence[int] | None = None) -> Tile:
    """The tile with its dimensions in another order, which costs nothing.

    dims  dimension k of the result is dimension dims[k] of the tile; the reverse order if left out

    Raises KernelTypeError and KernelValueError for other arguments.
    """
    source = as_tile("tile", tile)
    rank = len(source.shape)
    order = list(reversed(range(rank))) if dims is None else list(dims)
    if not all(is_int(dim) for dim in order):
        raise type_error(f"dims: must be ints, found {describe(dims)}")
    order = [dim + rank if dim < 0 else dim for dim in order]
    try:
        layout = source.layout.permute(order)
    except LowlpError as error:
        raise value_error(f"dims: {error}") from None
    attributes = {"permutation": ir.DenseI64ArrayAttr.get(order)}
    return emit_tile("lowlp.transpose", source.dtype, layout, [source], attributes)


def part_of(argument: str, what: str, tile: Tile, indices: object) -> tuple[Layout, ir.Attribute]:
    """How the part of a tile with these first indices is held, and the indices as an attribute; the tile, whose layout
    is named, is `what` in messages."""
    if isinstance(indices, str) or not isinstance(indices, Sequence) or not all(is_int(index) for index in indices):
        raise type_error(f"{argument}: must be a list of ints, found {describe(indices)}")
    shape = tile.shape
    if not 0 < len(indices) < len(shape):
        raise value_error(
            f"{argument}: must name at least one and fewer than all of the {len(shape)} dimensions of {what}, "
            f"found {list(indices)}"
        )
    if not all(0 <= index < extent for index, extent in zip(indices, shape, strict=False)):
        raise value_error(
            f"{argument}: must be at least 0 and less than {list(shape[: len(indices)])}, found {list(indices)}"
        )
    return tile.layout.reduce([*range(len(indices))]), ir.DenseI64ArrayAttr.get([int(index) for index in indices])


def part(tile: Tile, indices: Sequence[int]) -> Tile:
    """The part of a tile with these first indices, which costs nothing: of [4, 2, 16, 4], `[3, 0]` takes 16 x 4.

    Every thread must hold these dimensions whole. `view` in front names what is to be taken apart: a tile held as
    `local(1, 2).spatial(8, 4)` is its left and its right half as `local(2, 1, 1).spatial(1, 8, 4)`.

    Raises KernelTypeError and KernelValueError for other arguments, VerificationError where threads share a dimension.
    """
    source = as_named_tile("tile", tile)
    layout, found = part_of("indices", "the tile", source, indices)
    return emit_tile("lowlp.part", source.dtype, layout, [source], {"indices": found})
