"""Tiles whose layout the user has not named: who has chosen the one that they have, and what it is at first.

The layouts themselves are chosen by the library that the compiler shares (dialect/lib/Layout/TileLayouts.cpp): what
memory and matrix instructions like best. The pass `lowlp-infer-layouts` moves such tiles to the layouts that the
instructions around them need. Without it, at `-O0`, they stay as they are here, and conversions stand between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from lowlp.layouts.register_layout import Layout
from lowlp.layouts.tile_layouts import coalesce, find_fragments, hold_packed_units

FREE_LAYOUT: Final = "lowlp.free_layout"
"""The attribute of an op whose result has a layout that nobody named."""


class Choice(IntEnum):
    """Who has chosen the layout of a tile. Where two tiles meet, the higher choice is kept."""

    DEFAULT = 0
    """Nobody: any layout will do."""
    NEEDED = 1
    """An instruction, such as a product."""
    NAMED = 2
    """The user."""


def coalesced(shape: Sequence[int], bits: int, num_threads: int, dim: int = -1) -> Layout:
    """Consecutive threads hold consecutive vectors of up to 16 bytes along `dim`, then along the dimensions before."""
    return coalesce(shape, bits, num_threads, dim)


class Fragments(NamedTuple):
    """How `lowlp.dot` may hold its operands and its result, which is held as c."""

    a: Layout
    b: Layout
    c: Layout


def fragments(
    m: int, n: int, k: int, bits: int, num_threads: int, *, by_warpgroups: bool = False
) -> Iterator[Fragments]:
    """The ways to share a product [m, k] x [k, n] of elements of `bits` bits among warps, best first."""
    return (Fragments(*way) for way in find_fragments(m, n, k, bits, num_threads, by_warpgroups))


def packed_units(rows: int, k: int, tiles_of_unit: int, steps_of_unit: int, num_threads: int) -> Layout | None:
    """How operand a of `dot` is taken from packed units of `tiles_of_unit` tiles of 16 rows by `steps_of_unit` steps
    along K; None if rows and k are no whole units."""
    return hold_packed_units(rows, k, tiles_of_unit, steps_of_unit, num_threads)
