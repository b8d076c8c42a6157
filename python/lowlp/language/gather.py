"""Accesses at places that the device reads: scalars, rows named by a tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lowlp._mlir import ir
from lowlp.layouts.register_layout import Layout

from .free_layouts import Choice
from .instructions import access, check_rank
from .scalars import Scalar, as_index, describe, is_int
from .shared import SharedTile
from .source import type_error, value_error
from .tiles import (
    INTEGER_DTYPES,
    GlobalView,
    Tile,
    as_tile,
    emit_tile,
    extended_by,
    extends,
    held_as,
    named_or_default,
    require_dtype,
)
from .tracing import current_trace

_SCALAR_DTYPES: Final = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "f16", "bf16", "f32")


def _promise(in_bounds: bool) -> dict[str, ir.Attribute]:
    return {"in_bounds": ir.UnitAttr.get()} if in_bounds else {}


def _check_list(offsets: object) -> None:
    if isinstance(offsets, str) or not isinstance(offsets, Sequence):
        raise type_error(f"offsets: must be a list of ints and index scalars, found {describe(offsets)}")


def load_scalar(source: GlobalView | SharedTile, *, offsets: Sequence[int | Scalar], in_bounds: bool = False) -> Scalar:
    """One element of a view or a shared tile: an index if it is an integer, else an f32.

    offsets    which element, one for each dimension
    in_bounds  promises that it lies in the view; else an element outside is 0

    All threads read the same element, so that loop bounds, offsets and conditions may depend on it: work lists, page
    tables. Nobody may write it meanwhile; after a write of the same block stands `synchronize`. Raises
    KernelTypeError for other types than integers of 8, 16 and 32 bits, f16, bf16 and f32.
    """
    trace = current_trace("ll.load_scalar")
    if not isinstance(source, GlobalView | SharedTile):
        raise type_error(f"source: must be a view or a shared tile, found {describe(source)}")
    if source.dtype.name not in _SCALAR_DTYPES:
        allowed = f"{', '.join(_SCALAR_DTYPES[:-1])} or {_SCALAR_DTYPES[-1]}"
        raise type_error(f"source: must hold {allowed}, found {source.describe()}")
    _check_list(offsets)
    if len(offsets) != len(source.shape):
        raise value_error(f"offsets: expected one for each of the {len(source.shape)} dimensions, found {len(offsets)}")
    starts = [as_index(f"offsets[{dim}]", offset) for dim, offset in enumerate(offsets)]
    kind = "index" if source.dtype.is_integer else "f32"
    operands = [operand.ir_value for operand in (source, *starts)]
    operation = trace.emit("lowlp.load_scalar", [trace.type(kind)], operands, _promise(in_bounds))
    return Scalar(trace, operation.results[0], kind, nonnegative=kind == "index" and not source.dtype.is_signed)


def _indexed(indices: object, dim: object, held: Layout, in_bounds: bool) -> tuple[Tile, dict[str, ir.Attribute]]:
    """The index tile and the attributes that gathers and scatters of tiles held so have."""
    tile, rank = as_tile("indices", indices), held.rank
    require_dtype("indices", tile, INTEGER_DTYPES)
    if not is_int(dim):
        raise type_error(f"dim: must be an int, found {describe(dim)}")
    number = int(dim)  # type: ignore[call-overload]
    if not -rank <= number < rank:
        raise value_error(f"dim: must be from {-rank} to {rank - 1}, found {number}")
    if tile.choice is not Choice.NAMED and extends(tile.shape, held.shape):
        tile = held_as(tile, extended_by(tile.shape, held), Choice.NEEDED)
    i64 = current_trace("indices").type("i64")
    return tile, _promise(in_bounds) | {"dim": ir.IntegerAttr.get(i64, number % rank)}


def gather_global(
    view: GlobalView,
    indices: Tile,
    *,
    dim: int,
    offsets: Sequence[int | Scalar],
    layout: Layout | str | None = None,
    shape: Sequence[int] | None = None,
    in_bounds: bool = False,
) -> Tile:
    """A tile loaded from global memory whose places along one dimension a tile names: rows of an expert, pages.

    indices    integers; of the tile's shape, or 1 along dimensions on which they do not depend. With dim=0, element
               (i, j) comes from [offsets[0] + indices[i], offsets[1] + j]. Each thread must hold the indices that it
               needs: for the layout L of the tile, `L.reduce([1], keep_dims=True)` is one that fits; indices whose
               layout is left to the compiler are brought there
    dim        the dimension of the tile; -1 is the last
    offsets    as for `load_global`
    layout     how threads hold the tile, whose shape is the layout's; or, to leave that to the compiler,
    shape      its extents
    in_bounds  promises that all elements lie in the view; else elements outside are zero, so that -1 reads zeros

    Raises VerificationError where a thread lacks an index, KernelTypeError and KernelValueError for other arguments.
    """
    source, starts = access(view, "view", offsets)
    held, choice = named_or_default(layout, shape, source.dtype, source.contiguous)
    check_rank(held.rank, source)
    tile, attributes = _indexed(indices, dim, held, in_bounds)
    return emit_tile("lowlp.gather_global", source.dtype, held, [source, *starts, tile], attributes, choice)


def scatter_global(
    tile: Tile,
    view: GlobalView,
    indices: Tile,
    *,
    dim: int,
    offsets: Sequence[int | Scalar],
    in_bounds: bool = False,
) -> None:
    """Stores a tile to places that a tile names along one dimension; see `gather_global`.

    Elements outside of the view are not written, so that -1 writes nothing. No two elements may go to one place. Raises
    KernelTypeError unless tile and view have one element type, and what `gather_global` raises.
    """
    value = as_tile("tile", tile)
    destination, starts = access(view, "view", offsets)
    if value.dtype != destination.dtype:
        raise type_error(
            f"tile: element types must match: the tile holds {value.dtype}, the view {destination.dtype}; use ll.cast"
        )
    check_rank(len(value.shape), destination)
    numbers, attributes = _indexed(indices, dim, value.layout, in_bounds)
    operands = [operand.ir_value for operand in (value, destination, *starts, numbers)]
    current_trace("ll.scatter_global").emit("lowlp.scatter_global", [], operands, attributes)
