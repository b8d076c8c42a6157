"""Work that blocks share: all stages of all tiles of y^T, cut into ranges of equal length (Stream-K).

A block takes its range from the end to the begin. A tile whose stages belong to several blocks is summed by the one of
highest index, which comes to it last, in the order of the blocks. It waits only for blocks of lower index, which came
to the tile first. So the order of sums follows from shape and schedule alone, and the launch makes progress however
many blocks are resident.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import language as ll
from ..layouts import local, spatial


class Share(NamedTuple):
    """The stages from `begin` up to `end`: the part of `block`, of `total` stages that `shares` blocks have."""

    block: ll.Scalar
    total: ll.Scalar
    shares: ll.Scalar
    begin: ll.Scalar
    end: ll.Scalar


def share_of(block: ll.Scalar, blocks: ll.Scalar, total: ll.Scalar) -> Share:
    """The part of block number `block` of `blocks`; empty for those that get nothing."""
    shares = ll.minimum(blocks, total)
    begin = ll.minimum(block, shares) * total // shares
    end = ll.minimum(block + 1, shares) * total // shares
    return Share(block, total, shares, begin, end)


@ll.inline
def end_tile(
    share: Share,
    number: ll.Scalar,
    stages_of_tile: int,
    tiles: Callable[[object], object],
    sums: tuple[ll.Tile, ...],
    threads: int,
    finish: Callable[[int, tuple[ll.Tile, ...], ll.Scalar, ll.Scalar], None],
    row: ll.Scalar,
    column: ll.Scalar,
    products: int = 1,
    parts_type: str = "f32",
) -> None:
    """What a block does with its sums of a tile, behind stage `number`, the last one that it has of the tile: it
    finishes the tile, alone or with the parts of others, or leaves its part.

    tiles        how many there are, by the parameter m
    sums         of the parts of the tile, all held alike: of each part those of all products, one behind the other
    finish       stores a part, which has a number, whose sums are complete; called where all threads meet
    row, column  where the tile begins, for `finish`
    products     how many a part is made of
    parts_type   of sums that are left for another block: 'f32' or 'f16'
    """
    parts_of_tile = range(len(sums) // products)
    tile = number // stages_of_tile
    first, behind = tile * stages_of_tile, (tile + 1) * stages_of_tile
    if (number == first) & (share.end >= behind):
        for part in parts_of_tile:
            finish(part, sums[part * products : (part + 1) * products], row, column)
    else:
        # As all threads hold it; of each block what it has of its last tile, and of its first.
        sums_of_thread = sums[0].layout.num_local
        flat = local(sums_of_thread) * spatial(threads)
        if parts_type == "f16":
            flat = local(sums_of_thread // 2) * spatial(threads) * local(2)
        parts = ll.alloc_global(parts_type, lambda blocks: (blocks, 2, len(sums), *flat.shape))
        arrived = ll.alloc_global("int32", tiles, zeroed=True)
        if share.end < behind:
            is_last = ll.minimum(number - first, 1)
            for index in range(len(sums)):
                left = ll.cast(ll.view(sums[index], dtype="f32", layout=flat), parts_type)
                ll.store_global(left, parts, offsets=[share.block, is_last, index, 0], in_bounds=True)
            ll.semaphore_release(arrived, offsets=[tile], value=1, add=True)
        else:
            # The block that has the tile's first stage.
            begin = ((first + 1) * share.shares - 1) // share.total
            ll.semaphore_acquire(arrived, offsets=[tile], value=share.block - begin)
            for part in parts_of_tile:
                complete = []
                for index in range(part * products, (part + 1) * products):
                    whole = ll.view(sums[index], dtype="f32", layout=flat)
                    other, is_last = begin, 0
                    while other < share.block:
                        left = ll.load_global(parts, offsets=[other, is_last, index, 0], layout=flat, in_bounds=True)
                        whole = whole + ll.cast(left, "f32")
                        other, is_last = other + 1, 1
                    complete.append(ll.view(whole, dtype="f32", layout=sums[index].layout))
                finish(part, tuple(complete), row, column)
            ll.semaphore_release(arrived, offsets=[tile], value=0)
