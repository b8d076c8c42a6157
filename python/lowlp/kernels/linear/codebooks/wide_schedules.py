"""Which schedule a product by warpgroups with codebooks takes, and whether it is worth more than one without them.

By counts, cycles of tensor cores, wavefronts of shared memory and bytes, which are 0.8 to 1.1 of what was measured with
17 to 64 rows of x, and 0.7 to 0.85 with more (docs/adr/0063).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Final, NamedTuple

from lowlp.schedules.device import Device

from ..operand_list import vector_order_of
from ..operands import NUMPY_TYPES
from ..schedule import Schedule
from ..spec import LinearSpec
from ..tiles import blocks_for, tiles_of
from ..warpgroup_layouts import bytes_of_cluster, tiles_of_warp, whole_columns
from .entries import are_global, bytes_of_entries, entry_bytes
from .lattice_tables import bytes_of_codes
from .next_books import loads_ahead
from .schedules import codebook_us
from .wide import VectorPlan, can_look_up_wide

FEW_ROWS: Final = 16
"""Up to so many rows take no warpgroups: those kernels were measured."""
EXACT_ROWS: Final = 64
"""Up to so many rows, entries are not rounded for results of f32."""
_WORTH: Final = 1.0
"""Of the time of a kernel without warpgroups that one with them may take, by estimate, to be chosen."""
_WORTH_OF_FEW: Final = 1.16
_WORTH_OF_GLOBAL: Final = 0.78
"""The same with up to `EXACT_ROWS` rows, of which the estimate is too high, as it begins while x is put in order; and
of books that stay in global memory (docs/adr/0114)."""

_SLICE: Final = 1024
"""Weights of an instruction, 64 x 16."""
_LINE_BYTES: Final = 128
"""Of shared memory that are read in a cycle."""
_PASSES: Final = {16: (2.54, 2.37, 1.94, 1.0), 8: (2.92, 2.87, 2.64, 2.0, 1.0), 4: (3.15, 3.27, 3.22, 2.93, 2.0, 1.0)}
"""Passes of a phase that reads entries of so many bytes, by the logarithm of their copies (`lowlp-place-codebooks`)."""
_GLOBAL_CYCLES: Final = 42.0
"""In which an SM has 32 entries of 16 bytes out of the L2 cache (an H200: 176 G a second)."""
_SCALED_INSTRUCTIONS: Final = 1.5
"""For a value of a book with a scale, which is converted, multiplied and added, by counts."""
_COMPUTED_INSTRUCTIONS: Final = 15.0
"""For a vector of a lattice that each thread of a warp computes, of which half as many begin in a cycle."""
_PRODUCT: Final = 0.9
"""Cycles for each of the tensor cores, as other kernels by warpgroups take them."""
_BESIDE: Final = 0.7
"""Cycles for each of shared memory that products do not hide."""
_STAGE: Final = 135
_TILE: Final = 3700
_FILL: Final = 2500
"""Cycles for each stage, for each tile, and to take books into shared memory."""
_SWITCH: Final = 1000
_SWITCH_AHEAD: Final = 100
"""Cycles until others have taken the place of books, and where these were loaded ahead."""
_SHIFTED: Final = 300
"""Cycles for each stage and tile of a warp in which codes that are no bytes are shifted, and selected out of units that
are wider than the stage."""
_LARGE_BOOKS: Final = 1 << 16
"""Bytes of a block's books, more than which leave no room for two stages of 256 columns."""
_COPIED: Final = 32
"""Bytes that an SM copies in a cycle where all do."""
_SHARING_US: Final = 2.7
_SHARING_FEW_US: Final = 1.8
"""To add what the blocks of a tile have, and with up to `EXACT_ROWS` rows of x (docs/adr/0115)."""
_CLUSTER_US: Final = 0.7
_CLUSTER_SWITCH_US: Final = 2.0
_CLUSTER_SCALED: Final = 1.03
"""The same for the blocks of a cluster, and where books change along K; and cycles where books have scales, times
(docs/adr/0118)."""
_SHARINGS: Final = ((True, 1), (False, 1), (False, 2))
"""Of tiles: among all blocks, not at all, and with up to `EXACT_ROWS` rows between the two blocks of a cluster."""
_APART: Final = 1.06
"""Times for tiles that blocks share with more than `_MANY_ROWS` rows of x: these begin anywhere along K, and x falls
out of the L2 cache. Where lookups limit, that is not seen."""
_MANY_ROWS: Final = 256
_ORDER_US: Final = 0.4
"""For the kernel before, that puts x in order, and while which the product begins."""
_BLOCK_BYTES: Final = 1024
"""Of shared memory, that each block takes besides its own."""
_OTHER_BYTES: Final = 3072
"""Of shared memory, for barriers and the like."""
_BASE_REGISTERS: Final = 44
_SM_REGISTERS: Final = 65536
_PRODUCER_THREADS: Final = 32


class _Books(NamedTuple):
    """How books lie in shared memory: copies, 0 where they do not fit; bytes of them all."""

    copies: int
    taken: int


def wide_codebook_schedule(spec: LinearSpec, m: int, device: Device) -> Schedule | None:
    """The schedule by warpgroups for m rows of x; None where there is none, or where `mma.sync` is about as good."""
    if m <= FEW_ROWS:
        return None
    rows = m if m <= 256 else min(-(-m // 256) * 256, 8192)
    return _best(spec, rows, device)


@functools.lru_cache(maxsize=1024)
def _best(spec: LinearSpec, m: int, device: Device) -> Schedule | None:
    found = [(wide_us(spec, draft, m, device), number, draft) for number, draft in enumerate(_drafts(spec, m, device))]
    if not found:
        return None
    us, _, schedule = min(found)
    worth = _WORTH
    if m <= EXACT_ROWS:
        worth = _WORTH_OF_GLOBAL if are_global(spec) else _WORTH_OF_FEW
    return schedule if us <= worth * codebook_us(spec, m, device) else None


def _drafts(spec: LinearSpec, m: int, device: Device) -> Iterator[Schedule]:
    """Those that have a program and fit."""
    # Of those that are estimated alike the first is taken.
    steps_of_stage = (4, 2, 1) if m <= EXACT_ROWS else (1, 2, 4)
    sharings = _SHARINGS if m <= EXACT_ROWS else _SHARINGS[:2]
    placings = itertools.product((2, 1), (1, 2, 4), steps_of_stage, sharings, (4, 3, 2), ("weights", "accumulators"))
    has_large_books = _LARGE_BOOKS < bytes_of_entries(spec) <= device.shared_bytes
    for (columns, tiles), placing in itertools.product(_widths(m, has_large_books), placings):
        warpgroups, row_tiles, steps, (share_tiles, cluster), stages, scales_on = placing
        draft = Schedule(
            whole_columns(columns, cluster),
            cluster=cluster,
            stages=stages,
            warpgroups=warpgroups,
            row_tiles=row_tiles * spec.products,
            steps=steps,
            column_tiles=tiles,
            share_tiles=share_tiles,
            scales_on=scales_on,
        )
        is_exact = spec.scales_weights and (spec.out != "f32" or m > EXACT_ROWS)
        if scales_on == "weights" and not is_exact:
            continue
        if _may_fit(spec, draft, device) and can_look_up_wide(spec, draft) and _fits(spec, draft, device):
            yield draft


def _widths(m: int, has_large_books: bool) -> list[tuple[int, int]]:
    """Columns of a tile of a product and how many of these a block has, by as few blocks as hold m rows."""
    if m <= 128:
        return [(-(-m // (8 * blocks)) * 8, 1) for blocks in ((1, 2) if m > 64 else (1,))]
    found = []
    # Beside large books two stages of 256 columns have no room.
    for columns, tiles in ((128, 2), (128, 1), (64, 1), (64, 2), *([(96, 2)] if has_large_books else [])):
        blocks = -(-m // (columns * tiles))
        found.append((-(-m // (blocks * 8 * tiles)) * 8, tiles))
    return list(dict.fromkeys(found))


def _may_fit(spec: LinearSpec, schedule: Schedule, device: Device) -> bool:
    """What tells most drafts that do not fit, at once."""
    accumulators = schedule.row_tiles * schedule.columns_of_block // 2
    x_bytes = schedule.stages * schedule.columns_of_block * schedule.stage_k * 2
    if schedule.cluster * schedule.stage_k > spec.k:
        return False
    return accumulators <= 128 and x_bytes <= device.shared_bytes and schedule.rows <= max(64, 2 * spec.n)


def _most_registers(schedule: Schedule, device: Device) -> int:
    if schedule.exchanges_registers and device.gives_registers:
        return device.worker_registers(schedule.threads)
    return min(232, _SM_REGISTERS // (-(-(schedule.threads + _PRODUCER_THREADS) // 128) * 128))


def _fits(spec: LinearSpec, schedule: Schedule, device: Device) -> bool:
    if _registers(schedule, VectorPlan(spec, schedule)) > _most_registers(schedule, device):
        return False
    return _room_for_books(spec, schedule, device) >= 0


def _registers(schedule: Schedule, plan: VectorPlan) -> int:
    """Of a thread that multiplies."""
    accumulators = schedule.row_tiles * schedule.columns_of_block // 2
    of_piece = plan.tiles * plan.piece_k // 4
    # Codes of a stage, of more than 8 bits as numbers of 16, and of other parts of their units.
    bits = plan.vectors.bits if plan.vectors.bits <= 8 else 16
    codes = plan.parts * plan.tiles * schedule.stage_k // plan.step_k * 2 * plan.vectors.books * bits // 32
    # The assembler begins a second segment of a stage before it has scaled the first.
    sums = 1 if plan.is_one else 2 + (plan.segment_in_stage < schedule.stage_k)
    registers = _BASE_REGISTERS + accumulators * sums + 3 * of_piece + codes
    if schedule.column_tiles == 1:
        # Between products of two tiles of columns it has none of these.
        of_others = plan.tiles * plan.span_k // plan.step_k * plan.vectors.books * bits // 16
        registers += of_others * (plan.parts_of_unit - 1)
        registers += 2 * of_piece if plan.vectors.has_book_scales and plan.are_added else 0
        # Codes that are shifted and masked, of all parts of a unit, before one is selected.
        registers += 24 if plan.vectors.bits % 8 and not plan.vectors.lattices else 0
    return registers


def _ring_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Of all stages: x, codes of whole units, scales of groups."""
    vectors = spec.vectors
    assert vectors is not None
    codes = int(schedule.rows * max(schedule.stage_k, spec.unit_k) * vectors.bits_per_weight) // 8
    scales = 0
    if spec.groups > 1:
        scales = schedule.rows * max(1, schedule.stage_k // spec.group_size) * NUMPY_TYPES[spec.scale].itemsize
    return schedule.stages * (schedule.columns_of_block * schedule.stage_k * 2 + codes + scales)


def _room_for_books(spec: LinearSpec, schedule: Schedule, device: Device) -> int:
    """What stages and the exchange of results leave of shared memory."""
    element = max(NUMPY_TYPES[kind].itemsize for kind in (spec.out, spec.residual) if kind)
    rows_of_part = 64 * schedule.warpgroups * tiles_of_warp(spec, schedule)
    exchange = rows_of_part * (schedule.columns // schedule.cluster * element + 16) + bytes_of_cluster(schedule)
    return device.shared_bytes - _ring_bytes(spec, schedule) - exchange - _OTHER_BYTES


def _books(spec: LinearSpec, schedule: Schedule, device: Device) -> _Books:
    """As `lowlp-place-codebooks` places them."""
    vectors = spec.vectors
    assert vectors is not None
    sets = spec.products if spec.book_rows and spec.book_rows < spec.n else 1
    room, one = _room_for_books(spec, schedule, device) // sets, bytes_of_entries(spec)
    passes = _PASSES[min(16, max(4, entry_bytes(spec)))]
    fitting = [1 << power for power in range(len(passes)) if one << power <= room]
    if not fitting:
        return _Books(0, 0)
    copies = min(fitting, key=lambda count: (passes[count.bit_length() - 1], count))
    return _Books(copies, sets * one * copies)


def _lookup_cycles(spec: LinearSpec, books: _Books) -> float:
    """Of an SM, for the entries of `_SLICE` weights of one book."""
    vectors = spec.vectors
    assert vectors is not None
    lookups = _SLICE / (32 * vectors.vector)
    if vectors.lattices:
        lookups *= bytes_of_codes(vectors) / vectors.books
    size = entry_bytes(spec)
    if not books.copies:
        return lookups * _GLOBAL_CYCLES * max(1.0, size / 32)
    passes = _PASSES[min(16, max(4, size))][books.copies.bit_length() - 1]
    phases = max(1, size // 4)
    return lookups * phases * (max(2.0, passes) if size > 16 else passes)


def _goes_on_beside(spec: LinearSpec, schedule: Schedule, plan: VectorPlan, device: Device) -> bool:
    """Whether an SM has two blocks of a warpgroup, which change their books at different times."""
    if not (plan.switches_books and schedule.warpgroups == 1 and schedule.has_tile_each and schedule.cluster == 1):
        return False
    taken = device.shared_bytes - _room_for_books(spec, schedule, device) + _books(spec, schedule, device).taken
    taken += _BLOCK_BYTES
    registers = _registers(schedule, plan) * (schedule.threads + _PRODUCER_THREADS)
    return 2 * taken <= device.shared_bytes and 2 * registers <= _SM_REGISTERS


def wide_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """What a product would take, with the kernel before it, in microseconds by counts."""
    plan, vectors = VectorPlan(spec, schedule), spec.vectors
    assert vectors is not None
    books = _books(spec, schedule, device)
    # While a block of one warpgroup waits for its next books, another one of its SM goes on.
    together = 2 if _goes_on_beside(spec, schedule, plan, device) else 1
    slices = together * schedule.rows * schedule.stage_k / _SLICE
    columns = schedule.columns_of_block
    of_products = max(columns, 32) / 2 * (1 if plan.are_added else vectors.books)
    lookups = vectors.books * _lookup_cycles(spec, books)
    # Four quarters of an SM add entries, each those of a warp.
    adding = _SCALED_INSTRUCTIONS * vectors.books * 8 if plan.are_added and vectors.has_book_scales else 0.0
    adding += _COMPUTED_INSTRUCTIONS * vectors.books if vectors.lattices else 0.0
    # Operands that products read, beside entries that are looked up: half of what shared memory gives.
    reads = of_products / 2 + lookups
    products = _PRODUCT * slices * of_products
    if not plan.is_one:
        products += together * schedule.rows * columns / 125 * -(-schedule.stage_k // plan.segment)
    beside = slices * (lookups + adding)
    around = _STAGE
    if plan.parts_of_unit > 1 and vectors.bits % 8:
        around += _SHIFTED * plan.tiles
    stage_bytes = together * _ring_bytes(spec, schedule) / schedule.stages
    if schedule.warpgroups * together > 1:
        cycles = max(products + around + _BESIDE * beside, slices * reads + around, stage_bytes / _COPIED)
    else:
        # Shifting codes that are no bytes is not hidden either.
        alone = 1.15 if vectors.bits % 8 and m > 32 else 1.0
        cycles = max(alone * (products + around + beside), stage_bytes / _COPIED)
    tiles, stages_of_tile = tiles_of(spec, schedule, m), -(-spec.k // (schedule.stage_k * schedule.cluster))
    blocks = blocks_for(spec, schedule, m, device.multiprocessors // schedule.cluster)
    waves = -(-tiles // min(blocks, together * device.multiprocessors // schedule.cluster))
    stages, ending = waves * stages_of_tile, 0.0
    if schedule.cluster > 1:
        ending = _CLUSTER_SWITCH_US if plan.switches_books else _CLUSTER_US
        cycles *= _CLUSTER_SCALED if vectors.has_book_scales else 1.0
    if not schedule.has_tile_each:
        stages = -(-tiles * stages_of_tile // blocks)
        # What the blocks of a tile have is added one after the other.
        sharing_us = _SHARING_FEW_US if m <= EXACT_ROWS else _SHARING_US
        ending = sharing_us * max(1.0, blocks / tiles / 1.5) * (tiles % blocks > 0)
    if m > _MANY_ROWS and not schedule.has_tile_each and products >= beside:
        cycles *= _APART
    of_tiles = waves * (_TILE + 0.06 * schedule.rows * columns)
    if plan.switches_books:
        switch = _SWITCH_AHEAD if loads_ahead(spec, schedule.threads) else _SWITCH
        of_tiles += stages * schedule.stage_k / plan.block_k * (switch + together * books.taken / _LINE_BYTES)
    fills = (waves if schedule.has_tile_each else 1) * (_FILL + books.taken / 16)
    if plan.switches_books:
        fills = waves * (_SWITCH + books.taken / _LINE_BYTES)
    compute = (stages * cycles + of_tiles + fills) / device.cycles_per_us
    memory = (spec.n * spec.k * vectors.bits_per_weight / 8 + 2.0 * m * (spec.k + spec.n)) / device.bytes_per_us
    ordering = _ORDER_US + 4.0 * m * spec.k / device.bytes_per_us if vector_order_of(spec, schedule) else 0.0
    return device.launch_us + ordering + max(compute, memory) + 0.06 * min(compute, memory) + ending
