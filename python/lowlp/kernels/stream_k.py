"""Work that blocks share: all stages of all tiles of y^T, cut into ranges of equal length (Stream-K), or whole tiles in
waves, after those that are shared.

Ranges of equal length begin anywhere along K, and so all of x is in use at a time. Aligned ones are quarters of a tile,
or thirds, halves and so on: many blocks then begin at the same stage, and what one brings to the L2 cache others find
there.

A block takes its range from the end to the begin. A tile whose stages belong to several blocks is summed by the one of
highest index, which comes to it last, in the order of the blocks. It waits only for blocks of lower index, which came
to the tile first. So the order of additions follows from shape and schedule alone, and the launch makes progress
however many blocks are resident.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp_runtime.tiles import FEW_IDLE

CUTS: Final = ((1, 4), (1, 3), (1, 2), (2, 3), (3, 4), (1, 1))
"""Of a tile, the fractions that are aligned shares, from the least to all of it."""
LEAST_ALIGNED_STAGES: Final = 4
"""Of tiles that aligned shares cut, so that no part is empty."""


class Cut(NamedTuple):
    """Tiles are cut into `of` equal parts, and a block has `parts` of them."""

    parts: ll.Scalar
    of: ll.Scalar


class Share(NamedTuple):
    """The stages from `begin` up to `end`: the part of `block`, of `total` stages that `shares` blocks have."""

    block: ll.Scalar
    total: ll.Scalar
    shares: ll.Scalar
    begin: ll.Scalar
    end: ll.Scalar
    in_waves: bool = False
    """Whether whole tiles follow those that are shared."""
    cut: Cut | None = None
    """Of aligned shares; None for those of equal length."""

    def first_block(self, tile: ll.Scalar, first_stage: ll.Scalar) -> ll.Scalar:
        """The block that has the first stage of a tile."""
        if self.cut:
            return small(tile * self.cut.of) // self.cut.parts
        return small((first_stage + 1) * self.shares - 1) // self.total


class TilePart(NamedTuple):
    """The stages of a tile that a block has: from number `begin` up to `end`, counted from the first stage of the first
    tile."""

    tile: ll.Scalar
    begin: ll.Scalar
    end: ll.Scalar


@dataclass(frozen=True)
class Waves:
    """A share of the first tiles, and after them whole tiles, each `blocks` tiles from the one before."""

    share: Share
    blocks: ll.Scalar
    stages_of_tile: int
    whole_tiles: ll.Scalar

    @property
    def count(self) -> ll.Scalar:
        """Of how many tiles the block has stages."""
        return small(self._tiles_of_share + self.whole_tiles)

    @property
    def _tiles_of_share(self) -> ll.Scalar:
        share, stages = self.share, self.stages_of_tile
        has_some = ll.minimum(share.end - share.begin, 1)
        return small(has_some * (small(share.end + stages - 1) // stages - share.begin // stages))

    def part(self, done: ll.Scalar | int) -> TilePart:
        """What comes after the parts of `done` tiles: those of the share from its end on, then the whole tiles."""
        share, stages, shared = self.share, self.stages_of_tile, self._tiles_of_share
        done = small(done)
        is_whole = ll.minimum(ll.maximum(done + 1 - shared, 0), 1)
        of_share = small(share.end + stages - 1) // stages - 1 - done
        whole = share.total // stages + share.block - shared * self.blocks + done * self.blocks
        tile = small(of_share + is_whole * (whole - of_share))
        # Whole tiles lie after all that are shared.
        begin, end = ll.maximum(share.begin, small(tile * stages)), small((tile + 1) * stages)
        return TilePart(tile, small(begin), small(end + (1 - is_whole) * ll.minimum(share.end - end, 0)))


def share_of(block: ll.Scalar, blocks: ll.Scalar, total: ll.Scalar) -> Share:
    """The part of block number `block` of `blocks`; empty for those that get nothing."""
    return _cut(block, ll.minimum(blocks, total), total)


def _cut(block: ll.Scalar, shares: ll.Scalar, total: ll.Scalar) -> Share:
    begin = small(ll.minimum(block, shares) * total) // shares
    end = small(ll.minimum(block + 1, shares) * total) // shares
    return Share(block, total, shares, begin, end)


class WavesOfTiles(NamedTuple):
    """How `share_in_waves` divides tiles: so many are shared, and then blocks take whole ones.

    share_stages  of each block, of those that are shared
    """

    shared: int
    share_stages: int
    whole: int


def waves_of(tiles: int, blocks: int, stages_of_tile: int, aligned: bool) -> WavesOfTiles:
    """What `share_in_waves` comes to; `whole` is that of the block that has most."""
    waves, rest = divmod(tiles, blocks)
    if not rest or FEW_IDLE * (blocks - rest) <= blocks * (waves + 1):
        return WavesOfTiles(0, 0, -(-tiles // blocks))
    if aligned:
        parts, of = next(cut for cut in CUTS if cut[0] * blocks >= cut[1] * rest)
        return WavesOfTiles(rest, -(-parts * stages_of_tile // of), waves)
    shared = rest + (blocks if waves else 0)
    return WavesOfTiles(shared, -(-shared * stages_of_tile // blocks), max(0, waves - 1))


def share_in_waves(
    block: ll.Scalar, blocks: ll.Scalar, tiles: ll.Scalar, stages_of_tile: int, aligned: bool = False
) -> Waves:
    """The part of a block where tiles are many: blocks take whole tiles, one wave of them after the other. What the
    last wave lacks, and the one before it, they share; nothing, where the last wave is nearly full. Aligned shares are
    of what the last wave lacks alone.

    Requires: with aligned shares, tiles of `LEAST_ALIGNED_STAGES` and more.
    """
    blocks, tiles = small(blocks), small(tiles)
    waves, rest = tiles // blocks, tiles % blocks
    # Idle are blocks - rest of the last wave, if there is one.
    is_uneven = ll.minimum(rest, 1) * ll.minimum(ll.maximum(FEW_IDLE * (blocks - rest) - blocks * (waves + 1), 0), 1)
    shared = is_uneven * (rest if aligned else rest + ll.minimum(waves, 1) * blocks)
    whole = small(ll.maximum(tiles - shared - block + blocks - 1, 0)) // blocks
    total = small(shared * stages_of_tile)
    if aligned:
        share = _aligned(block, blocks, shared, stages_of_tile)
    else:
        share = _cut(block, ll.maximum(ll.minimum(blocks, total), 1), total)
    return Waves(share._replace(in_waves=True), blocks, stages_of_tile, whole)


def _aligned(block: ll.Scalar, blocks: ll.Scalar, tiles: ll.Scalar, stages_of_tile: int) -> Share:
    """An aligned share of fewer tiles than blocks, the least of `CUTS` by which blocks have them all."""
    parts: Any = CUTS[0][0]
    of: Any = CUTS[0][1]
    for less, more in itertools.pairwise(CUTS):
        # 1 where the shares of `less` are too small.
        step = ll.minimum(ll.maximum(tiles * less[1] - blocks * less[0], 0), 1)
        parts, of = parts + step * (more[0] - less[0]), of + step * (more[1] - less[1])
    cut = Cut(small(parts), small(of))
    units = small(tiles * cut.of)
    begin, end = (ll.minimum(small(number * cut.parts), units) for number in (block, block + 1))
    begin, end = (small(unit * stages_of_tile) // cut.of for unit in (begin, end))
    return Share(block, small(tiles * stages_of_tile), blocks, begin, end, cut=cut)


class Grid(NamedTuple):
    """The order of tiles: `band` columns are taken together, row by row, so that what blocks multiply at about the same
    time shares weights and x. The last band may have fewer columns."""

    rows: int
    columns: ll.Scalar
    band: int

    def place_of(self, tile: ll.Scalar) -> tuple[ll.Scalar, ll.Scalar]:
        """The row and the column of a tile."""
        first = small(tile) // (self.band * self.rows) * self.band
        rest = small(tile - first * self.rows)
        width = small(ll.maximum(ll.minimum(self.columns - first, self.band), 1))
        row = rest // width
        return row, first + rest - row * width


def small(number: ll.Scalar | int) -> ll.Scalar:
    """A number of 0 to 2^31 - 1, which LLVM then knows too, so that divisions take fewer instructions."""
    return ll.assume_range(number, 0, 1 << 31) % (1 << 31)


def by_parts(accumulators: tuple[ll.Tile, ...], products: int) -> list[tuple[int, tuple[ll.Tile, ...]]]:
    """The numbers of a tile's parts, and the accumulators of each: those of all its products, one after the other."""
    return [
        (part, accumulators[part * products : (part + 1) * products]) for part in range(len(accumulators) // products)
    ]


# Of how many blocks a thread loads accumulators before it adds the first, and how many numbers it would load so at most
# of all accumulators that it holds.
_PARTS_AT_ONCE: Final = 4
_NUMBERS_AT_ONCE: Final = 96


@dataclass(frozen=True)
class TileEnding:
    """What a block does with its accumulators of a tile after the last stage that it has of the tile: it finishes the
    tile, alone or with the parts of others, or leaves its part for another block.

    stages_of_tile
    tiles       how many there are, by the parameter m
    threads     that hold accumulators
    finish      stores a part, which has a number, whose accumulators are complete, of the tile that begins at a row and
                a column; called where all threads meet
    products    how many a part is made of
    parts_type  of accumulators that are left for another block: 'f32' or 'f16', of integers 'int32'
    blocks      how many are launched; 0: as the parameter `blocks` says
    team        so many blocks are what has a share, each with a tile of its own where a share has one
    member      the number of this block among them; None where they are one
    """

    stages_of_tile: int
    tiles: Callable[..., object]
    threads: int
    finish: Callable[[int, tuple[ll.Tile, ...], ll.Scalar, ll.Scalar], None]
    products: int = 1
    parts_type: str = "f32"
    blocks: int = 0
    team: int = 1
    member: ll.Scalar | None = None

    def _own(self, number: ll.Scalar) -> ll.Scalar:
        """Of a block or a tile that is one for all of a team, the number of this member's own."""
        return number if self.member is None else number * self.team + self.member

    def _load_part(self, parts: ll.GlobalView, index: int, layout: Layout, block: ll.Scalar, number: int) -> ll.Tile:
        """Accumulators that a block has left: number 0 where it has the first stage of the tile, else number 1."""
        offsets: list[int | ll.Scalar] = [self._own(block), number, index, 0]
        loaded = ll.load_global(parts, offsets=offsets, layout=layout, in_bounds=True)
        return ll.cast(loaded, "f32") if parts.dtype.is_float else loaded

    @ll.inline
    def end_tile(
        self, share: Share, number: ll.Scalar, accumulators: tuple[ll.Tile, ...], row: ll.Scalar, column: ll.Scalar
    ) -> None:
        """Ends the tile that begins at `row` and `column` after stage `number`.

        accumulators  of the parts of the tile, all held alike: of each part those of all products, one after the other
        """
        tile = number // self.stages_of_tile
        first, end = tile * self.stages_of_tile, (tile + 1) * self.stages_of_tile
        is_whole = share.end >= end
        if share.in_waves:
            is_whole = is_whole | (number >= share.total)
        if (number == first) & is_whole:
            for part, of_part in by_parts(accumulators, self.products):
                self.finish(part, of_part, row, column)
        else:
            self.share_tile(share, number, accumulators, row, column)

    @ll.inline
    def share_tile(
        self, share: Share, number: ll.Scalar, accumulators: tuple[ll.Tile, ...], row: ll.Scalar, column: ll.Scalar
    ) -> None:
        """Leaves a part of the tile, or adds those of the other blocks in their order and finishes it."""
        tile = number // self.stages_of_tile
        first, end = tile * self.stages_of_tile, (tile + 1) * self.stages_of_tile
        # As all threads hold it; of each block what it has of its last tile, and of its first.
        accumulators_of_thread, kind = accumulators[0].layout.num_local, accumulators[0].dtype
        flat = local(accumulators_of_thread) * spatial(self.threads)
        if self.parts_type == "f16":
            flat = local(accumulators_of_thread // 2) * spatial(self.threads) * local(2)
        left_of_block = (2, len(accumulators), *flat.shape)
        extents: Any = (
            (self.blocks, *left_of_block) if self.blocks else lambda blocks: (blocks * self.team, *left_of_block)
        )
        parts = ll.alloc_global(self.parts_type, extents)
        arrived = ll.alloc_global("int32", self.tiles, zeroed=True)
        held = accumulators_of_thread * len(accumulators)
        at_once = max(1, min(_PARTS_AT_ONCE, _NUMBERS_AT_ONCE // held))
        if share.end < end:
            is_last = ll.minimum(number - first, 1)
            for index in range(len(accumulators)):
                left = ll.cast(ll.view(accumulators[index], dtype=kind, layout=flat), self.parts_type)
                ll.store_global(left, parts, offsets=[self._own(share.block), is_last, index, 0], in_bounds=True)
            ll.semaphore_release(arrived, offsets=[self._own(tile)], value=1, add=True)
        else:
            # The block that has the tile's first stage.
            begin = share.first_block(tile, first)
            ll.semaphore_acquire(arrived, offsets=[self._own(tile)], value=share.block - begin)
            for part in range(len(accumulators) // self.products):
                complete = []
                for index in range(part * self.products, (part + 1) * self.products):
                    load = partial(self._load_part, parts, index, flat)
                    whole = ll.view(accumulators[index], dtype=kind, layout=flat) + load(begin, 0)
                    other = begin + 1
                    while other + (at_once - 1) < share.block:
                        for left in [load(other + ahead, 1) for ahead in range(at_once)]:
                            whole = whole + left
                        other = other + at_once
                    while other < share.block:
                        whole = whole + load(other, 1)
                        other = other + 1
                    complete.append(ll.view(whole, dtype=kind, layout=accumulators[index].layout))
                self.finish(part, tuple(complete), row, column)
            ll.semaphore_release(arrived, offsets=[self._own(tile)], value=0)
