"""Bits of tiles of integers; `& | ^ ~ << >> // %` are operators of `Tile`."""

from __future__ import annotations

from typing import Any

from lowlp._mlir import ir
from lowlp.numeric.dtypes import dtype

from .source import type_error, value_error
from .tiles import INTEGER_DTYPES, Tile, as_tile, emit_tile, match_tiles, require_dtype
from .tracing import current_trace

_WORDS = ("int32", "uint32")


def _count(name: str, tile: object) -> Tile:
    source = as_tile("tile", tile)
    require_dtype(name, source, INTEGER_DTYPES)
    return emit_tile(f"lowlp.{name}", dtype("int32"), source.layout, [source])


def popcount(tile: Tile) -> Tile:
    """How many bits of each element are set, as int32. Raises KernelTypeError unless the tile is of integers."""
    return _count("popcount", tile)


def count_leading_zeros(tile: Tile) -> Tile:
    """How many bits of each element are clear above the highest that is set, as int32; of 0 all.

    Raises KernelTypeError unless the tile is of integers.
    """
    return _count("count_leading_zeros", tile)


def funnel_shift(low: Any, high: Any, amount: Any, *, direction: str, clamp: bool = False) -> Tile:
    """32 bits out of the 64 bits `high : low`, element by element (PTX ISA, shf).

    low, high, amount  tiles of int32 or uint32, at least one of them; the others may be numbers
    direction          'left': the upper half after a shift to the left; 'right': the lower half after one to the right
    clamp              amounts beyond 32 count as 32, which gives the other word; else they are taken modulo 32

    With low and high the same it rotates. Raises KernelTypeError and KernelValueError for other arguments.
    """
    if direction not in ("left", "right"):
        raise value_error(f"direction: must be 'left' or 'right', found {direction!r}")
    if not isinstance(clamp, bool):
        raise type_error(f"clamp: must be a bool, found {clamp!r}")
    tiles = match_tiles("funnel_shift", (low, high, amount), _WORDS)
    i32 = current_trace("ll.funnel_shift").type("i32")
    attributes: dict[str, ir.Attribute] = {
        "direction": ir.IntegerAttr.get(i32, int(direction == "right")),
        "mode": ir.IntegerAttr.get(i32, int(clamp)),
    }
    return emit_tile("lowlp.funnel_shift", tiles[0].dtype, tiles[0].layout, tiles, attributes)
