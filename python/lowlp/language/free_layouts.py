"""Layouts for tiles whose layout the user has not named: what memory and matrix instructions like best.

The pass `lowlp-infer-layouts` moves such tiles to the layouts that the instructions around them need. Without it, at
`-O0`, they stay as they are here, and conversions stand between them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from lowlp.layouts.register_layout import Layout, column_local, column_spatial, local, spatial

FREE_LAYOUT: Final = "lowlp.free_layout"
"""The attribute of an op whose result has a layout that nobody named."""
_VECTOR_BITS: Final = 128
_REGISTER_BITS: Final = 32
_WARP: Final = 32
# Tiles of 16 rows of a packed unit, and its steps of 16 along K.
_UNIT_TILES: Final = (1, 2, 4)
_UNIT_STEPS: Final = 4


class Choice(IntEnum):
    """Who has chosen the layout of a tile. Where two tiles meet, the higher choice is kept."""

    DEFAULT = 0
    """Nobody: any layout will do."""
    NEEDED = 1
    """An instruction, such as a product."""
    NAMED = 2
    """The user."""


def coalesced(shape: Sequence[int], bits: int, num_threads: int, dim: int = -1) -> Layout:
    """Consecutive threads hold consecutive vectors of up to 16 bytes along `dim`, then along the dimensions before.

    A tile that has fewer elements than there are threads, or extents that share no factors with their number, is held
    several times. Of all vectors that keep most threads busy the longest is taken.
    """
    rank = len(shape)
    order = [d for d in range(rank) if d != dim % rank] + [dim % rank]
    extents = [shape[d] for d in order]

    def spread(vector: int) -> list[int]:
        """The threads along each dimension."""
        left = num_threads
        threads: list[int] = []
        for extent in (extents[-1] // vector, *reversed(extents[:-1])):
            threads.insert(0, math.gcd(left, extent))
            left //= threads[0]
        return threads

    sizes = [size for size in (1, 2, 4, 8, 16, 32, 64, 128) if size * bits <= _VECTOR_BITS and extents[-1] % size == 0]
    vector = max(sizes, key=lambda size: (math.prod(spread(size)), size))
    threads = spread(vector)
    inner = [1] * (rank - 1) + [vector]
    rest = [extent // count // size for extent, count, size in zip(extents, threads, inner, strict=True)]
    replicas = spatial(num_threads // math.prod(threads), *[1] * rank).reduce([0])
    layout = replicas.local(*rest).spatial(*threads).local(*inner)
    return layout.permute(*(order.index(d) for d in range(rank)))


class Fragments(NamedTuple):
    """How `lowlp.dot` may hold its operands and its result, which is held as c."""

    a: Layout
    b: Layout
    c: Layout


def fragments(
    m: int, n: int, k: int, bits: int, num_threads: int, *, by_warpgroups: bool = False
) -> Iterator[Fragments]:
    """The ways to share a product [m, k] x [k, n] of elements of `bits` bits among warps, best first.

    The warps are a grid of rows by columns; each makes its part of the sums, with all of K (PTX ISA, "Matrix Fragments
    for mma.m16n8k16"). The best grid is one in which a warp needs the fewest rows of a and columns of b; by warpgroups
    one in which each warp has 16 rows, as `lowlp.wgmma` demands. For each grid a may also be held in the order of
    packed units.
    """
    elements = _REGISTER_BITS // bits
    warps, steps = num_threads // _WARP, k // (8 * elements)
    grids = [
        (rows, warps // rows)
        for rows in range(1, warps + 1)
        if warps % rows == 0 and m % (16 * rows) == 0 and n % (8 * (warps // rows)) == 0
    ]

    def rank(grid: tuple[int, int]) -> tuple[bool, int, int]:
        of_warpgroups = by_warpgroups and warps % 4 == 0 and grid == (m // 16, 1)
        return not of_warpgroups, m // grid[0] + n // grid[1], -grid[0]

    for rows, columns in sorted(grids, key=rank):
        grid = spatial(rows, 1, columns)
        tiles = m // 16 // rows
        b = grid.reduce([0]).local(steps, n // 8 // columns)
        c = spatial(rows, columns).local(tiles, n // 8 // columns)
        for of_unit in _UNIT_TILES:
            if tiles % of_unit or (of_unit > 1 and steps % _UNIT_STEPS):
                continue
            units = local(tiles, steps)
            if of_unit > 1:
                units = local(tiles // of_unit, steps // _UNIT_STEPS).local(of_unit, _UNIT_STEPS)
            yield Fragments(
                grid.reduce([2]) * units * column_local(2, 2).spatial(8, 4).local(1, elements),
                b * local(2, 1) * column_spatial(4, 8).local(elements, 1),
                c.local(2, 1).spatial(8, 4).local(1, 2),
            )


def packed_units(rows: int, k: int, tiles_of_unit: int, num_threads: int) -> Layout | None:
    """How operand a of `dot` is taken from packed units of `tiles_of_unit` tiles of 16 rows; None if rows and k are no
    whole units. The warps share the rows, and hold them several times where there are more warps than units.
    """
    if rows % (16 * tiles_of_unit) or k % (16 * _UNIT_STEPS):
        return None
    units, warps = rows // 16 // tiles_of_unit, num_threads // _WARP
    sharing = math.gcd(units, warps)
    grid = spatial(sharing, 1, warps // sharing).reduce([2])
    held = grid.local(units // sharing, k // 16 // _UNIT_STEPS).local(tiles_of_unit, _UNIT_STEPS)
    return held * column_local(2, 2).spatial(8, 4).local(1, 2)
