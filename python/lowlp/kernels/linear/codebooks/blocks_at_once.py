"""Four blocks of K with books of their own, which a stage takes side by side (`Schedule.blocks_at_once`).

Lanes of a phase that read one book want as many copies of it, each in other banks, and each copy is written anew for
each block of weights. Where the four lanes that have a row's vectors read four books, these need a quarter of the
copies each: together they take the shared memory of one, and are filled a quarter as often.

So at turn r, 0 to 3, lane t has the codes of block r ^ t, and x comes in that order
(`lowlp_runtime.vector_order.VectorOrder`). Packed words are those of any kernel: lanes load what they have of all four
blocks, and choose.

    group  four blocks along K, whose books are one codebook of four
    span   what a stage has of each of them, a unit of packed weights or a part of one
"""

from __future__ import annotations

import math

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, column_spatial, local
from lowlp_runtime.ordered_rows import PART
from lowlp_runtime.vector_order import LANES

from ..schedule import Schedule
from ..spec import LinearSpec
from .entries import cached_shape, entry_bytes

STAGGERED = (1, 1, 2)
"""By the lane, which is the number of a code modulo four, books are exchanged (`ll.lookup_vectors`): book r ^ t, as
`exchanged` and `VectorOrder` have it."""
_MOST_ENTRY_BYTES = 16


def has_blocks_at_once(spec: LinearSpec) -> bool:
    """Whether weights may be taken so: one book for a block, whose entries have no scale, and rows have one."""
    vectors = spec.vectors
    if vectors is None or vectors.lattices or vectors.books > 1 or vectors.spread or vectors.has_book_scales:
        return False
    block = spec.book_columns
    if not block or block >= spec.k or spec.k % (LANES * block) or spec.groups > 1:
        return False
    return entry_bytes(spec) <= _MOST_ENTRY_BYTES and block % spec.unit_k == 0 and PART % block == 0


def can_take_at_once(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether stages of the schedule have a span of each block."""
    span = schedule.stage_k // LANES
    if not has_blocks_at_once(spec) or schedule.slices > 1 or spec.unit_k % span:
        return False
    assert spec.vectors is not None
    step = LANES * spec.vectors.vector
    # Lanes choose whole words, of codes of two rows.
    return span % step == 0 and span // step * 2 * spec.vectors.bits % 32 == 0


def layout_of_group(spec: LinearSpec, threads: int) -> Layout:
    """How threads hold the entries of a group's books, [books x entries, values], whole ones each: threads side by side
    have entries of each book, so that all banks are written. Of few entries some threads have none."""
    *entries, vector = cached_shape(spec)
    rounds = -(-LANES * math.prod(entries) // threads)
    held = local(1, rounds, 1) * column_spatial(LANES, threads // LANES, 1) * local(1, 1, vector)
    return held.reshape(LANES * rounds * (threads // LANES), vector)


def exchanged(blocks: list[ll.Tile], lanes: ll.Tile) -> list[ll.Tile]:
    """Of each turn what lanes have of the block that it is for them, of tiles of four blocks.

    lanes  of each element, modulo four
    """
    for bit in (1, 2):
        others = ll.equal(lanes & bit, bit)
        blocks = [ll.where(others, blocks[number ^ bit], blocks[number]) for number in range(LANES)]
    return blocks
