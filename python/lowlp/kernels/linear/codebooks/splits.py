"""K divided among blocks, for products with codebooks of few rows: a tile of y^T is then the sum of what its blocks
have, each of an equal part of K, added in the order of K by the last of them.

A part is of whole *granules*: blocks of weights that share books, so that no block of the grid loads books that another
loads for the same rows (VQ-LLM, section VI: the codebook-centric dataflow); else units of packed weights, or segments
where units are not whole in these.

A block waits for blocks of lower index alone, so the launch makes progress however many are resident. The order of
additions follows from shape and schedule, not from M.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial

# How many numbers a thread loads ahead of those that it adds, of the parts of other blocks.
_NUMBERS_AT_ONCE: Final = 48


class Part(NamedTuple):
    """What a block has: of a tile, by its number, part `number` of K, the granules from `first` up to `stop`."""

    tile: ll.Scalar
    number: ll.Scalar
    first: ll.Scalar
    stop: ll.Scalar


def part_of(block: ll.Scalar, splits: int, granules: int) -> Part:
    """The part of block number `block`; the blocks of a tile follow each other. Requires: as many granules as splits,
    or more."""
    number = block % splits
    return Part(block // splits, number, number * granules // splits, (number + 1) * granules // splits)


def _load(parts: ll.GlobalView, tile: ll.Scalar, product: int, layout: Layout, number: Any) -> ll.Tile:
    """What the block with part `number` has left."""
    return ll.load_global(parts, offsets=[tile, number, product, 0], layout=layout, in_bounds=True)


@dataclass(frozen=True)
class SplitEnding:
    """What a block does with the accumulators of its part.

    splits   parts of K
    tiles    of y^T, by the parameter m
    threads  of a block
    finish   stores the result, of complete accumulators of each product
    """

    splits: int
    tiles: Callable[..., tuple[Any]]
    threads: int
    finish: Callable[[tuple[ll.Tile, ...]], None]

    @ll.inline
    def end(self, part: Part, accumulators: tuple[ll.Tile, ...]) -> None:
        """Leaves the accumulators for the last block of the tile; that one adds all and finishes."""
        held, tiles, left = accumulators[0].layout.num_local, self.tiles, self.splits - 1
        flat = local(held) * spatial(self.threads)
        arrived = ll.alloc_global("int32", tiles, zeroed=True)
        parts = ll.alloc_global("f32", lambda m: (*tiles(m), left, len(accumulators), *flat.shape))
        if part.number < left:
            for product in range(len(accumulators)):
                tile = ll.view(accumulators[product], dtype="f32", layout=flat)
                ll.store_global(tile, parts, offsets=[part.tile, part.number, product, 0], in_bounds=True)
            ll.semaphore_release(arrived, offsets=[part.tile], value=1, add=True)
        else:
            ll.semaphore_acquire(arrived, offsets=[part.tile], value=left)
            complete = []
            at_once = max(1, min(left, _NUMBERS_AT_ONCE // (held * len(accumulators))))
            for product in range(len(accumulators)):
                load = partial(_load, parts, part.tile, product, flat)
                total = load(0)
                for first in ll.range(1, left - (left - 1) % at_once, at_once):
                    for one in [load(first + ahead) for ahead in range(at_once)]:
                        total = total + one
                for number in range(left - (left - 1) % at_once, left):
                    total = total + load(number)
                total = total + ll.view(accumulators[product], dtype="f32", layout=flat)
                complete.append(ll.view(total, dtype="f32", layout=accumulators[product].layout))
            self.finish(tuple(complete))
            ll.semaphore_release(arrived, offsets=[part.tile], value=0)
