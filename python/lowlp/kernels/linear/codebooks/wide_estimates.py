"""What a product by warpgroups with codebooks takes, by counts: cycles of tensor cores, wavefronts of shared memory,
instructions and bytes.

Constants for up to 64 rows of x were fitted to 2277 kernels: the standard deviation of estimated over measured times is
6.3 % (docs/adr/0122). Those for more rows were fitted to 1626 kernels, 6.1 % (docs/adr/0120). Those of blocks at once
were fitted to 656 kernels of one kind, vectors of 4 with codes of 8 bits (docs/adr/0123, 0125).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from lowlp.schedules.device import Device

from ..candidates import EXACT_ROWS
from ..operand_list import vector_order_of
from ..schedule import Schedule
from ..spec import LinearSpec
from ..tiles import blocks_for, tiles_of
from .entries import entry_bytes
from .lattice_tables import bytes_of_codes
from .wide_plan import VectorPlan
from .wide_room import (
    PRODUCER_THREADS,
    SM_REGISTERS,
    Books,
    books_of,
    bytes_of_stages,
    has_long_tile,
    passes_of,
    registers_of,
    room_for_books,
)

_SLICE: Final = 1024
"""Weights of an instruction, 64 x 16."""
_LINE_BYTES: Final = 128
"""Of shared memory that are read in a cycle."""
_GLOBAL_CYCLES: Final = 42.0
"""In which an SM has 32 entries of 16 bytes out of the L2 cache (an H200: 176 G a second)."""
_HIDDEN: Final = 0.06
"""Times for what memory takes while products are made, or the other way round."""
_SEGMENT_CYCLES: Final = 1 / 125
"""For an accumulator that is scaled at the end of a segment."""
_BLOCK_BYTES: Final = 1024
"""Of shared memory, that each block takes besides its own."""

# --- up to 64 rows ----------------------------------------------------------------------------------------------------

_WAITING: Final = {"": (16, 0.14), "exchange": (8, 0.26), "copies": (16, 0.24), "at once": (16, 0.234)}
"""Warps of an SM that hide what lookups wait for, and the power of what lacks of these by which shared memory is waited
for, by how codes are spread, and where blocks come at once. Of two books that are one, conflicts of banks keep it busy
with few warps."""
_SECOND_COPIES: Final = 0.92
"""Times for lookups in both copies of entries."""
_ENOUGH_FOR_L2: Final = 8
_WAITING_FOR_L2: Final = 0.32
"""The same of books that stay in global memory, which L2 gives."""
_NARROW_SHARED: Final = 0.916
_NARROW_TENSOR: Final = 0.14
"""Cycles for each of shared memory and of tensor cores."""
_NARROW_SCALED: Final = 0.195
"""For a value of a book that is scaled."""
_NARROW_PLACED: Final = {"int8": 0.02, "": 0.11}
"""The same of numbers that are scaled as they become halves (`book_sums`): of int8, and of lattices."""
_NARROW_COMPUTED: Final = 9.0
"""For a vector of a lattice that each thread of a warp computes."""
_NARROW_SLICED: Final = 100
"""For each slice of stages, to add what they have of a tile."""
_CLUSTER_SCALED: Final = 1.01
"""Times for cycles of stages where books have scales and blocks are in clusters (docs/adr/0118)."""
_NARROW_LINES: Final = 1.13
"""Times for lookups where codes are shifted to become addresses."""
_LINES_AT_ONCE: Final = 1.06
"""The same where blocks come at once."""
_NARROW_STAGE: Final = 67
_NARROW_TILE: Final = 900
_NARROW_ENDING: Final = 0.51
"""Cycles for each stage, for each tile, and for each value of y that a tile has."""
_NARROW_SHIFTED: Final = 87
"""For each stage, tile of a warp and part of a unit more than one, of codes that are no bytes: they are shifted, and
selected out of units that are wider than the stage."""
_NARROW_BESIDE: Final = 1.8
"""Times for that beside entries that are scaled."""
_NARROW_FILL: Final = 0.026
_NARROW_SWITCH: Final = 0.0165
"""Cycles for a byte of the books that a block begins with, and of those that take their place."""
_NARROW_AT_ONCE: Final = (1.07, 1.13)
_CLUSTER_AT_ONCE: Final = 1.02
"""Times for stages that have four blocks at once, of whole units of each, or parts; and in clusters."""
_NARROW_SHARING_US: Final = 2.0
"""To add what the blocks of a tile have."""
_NARROW_ORDER_US: Final = 0.45
"""For the kernel before, beside what it reads and writes."""

_NARROW_COPIED: Final = 44
"""Bytes that an SM copies in a cycle where all do."""
_NARROW_LATENCY: Final = 450
"""Cycles until the first of them are there."""
_NARROW_RAMP: Final = 0.5
"""Stages that a block takes more than it has, for the first one to come."""

# --- more rows --------------------------------------------------------------------------------------------------------

_NORM: Final = 1.67
"""What tensor cores, shared memory and instructions take is the norm of this order: each hides part of the others."""
_TENSOR: Final = 0.846
_SHARED: Final = 0.627
"""Cycles for each of tensor cores, and for each in which shared memory gives operands and codes."""
_LINES: Final = 1.18
"""Times for lookups where codes are shifted to become addresses."""
_OF_L2: Final = 0.83
"""Times for lookups in books that stay in global memory, as three kernels took."""
_ADDED: Final = 1.05
_SCALED: Final = 0.293
"""For a value of a book that is added to that of another one, and that is scaled before."""
_COMPUTED: Final = 12.8
"""For a vector of a lattice that each thread of a warp computes."""
_ALONE: Final = 0.418
"""Part of the lesser of products and what stands beside them that a warpgroup of its own does not hide."""
_STAGE: Final = 132
_ENDING: Final = 0.139
"""Cycles for each stage, and for each value of y that a tile has."""
_FILL: Final = 2500
"""To take books into shared memory."""
_SWITCH: Final = 1000
_SWITCHED: Final = 0.0228
"""Before the first books of a tile are there, and for a byte of those that take the place of others."""
_SHIFTED: Final = 57
"""For each stage, tile of a warp and part of a unit more than one, of codes that are no bytes."""
_AT_ONCE: Final = (1.0, 1.08)
"""Times for stages that have four blocks at once, by one tile of 64 rows of weights for a warpgroup, or more."""
_LONG: Final = 0.985
"""Times for one long tile of columns, of added entries."""
_COPIED: Final = 32
"""Bytes that an SM copies in a cycle where all do."""
_COPIED_AT_ONCE: Final = 35
"""The same where stages have parts of the units of four blocks, which all come with each."""
_SHARING_US: Final = 2.04
"""To add what the blocks of a tile have, one after the other."""
_APART: Final = 1.023
"""Times for tiles that blocks share with more than `_MANY_ROWS` rows of x: these begin anywhere along K, and x falls
out of the L2 cache."""
_MANY_ROWS: Final = 256
_HOT: Final = 0.095
_HOT_AT_ONCE: Final = 0.05
_HOT_US: Final = 1000
"""What power adds to a product that takes t microseconds: log2(1 + t / `_HOT_US`) times `_HOT`, or the second where
blocks come at once, whose stages wait for copies."""
_ORDER_US: Final = 0.4
"""For the kernel before, that puts x in order, and while which the product begins."""


class _Work(NamedTuple):
    """What an SM does one after the other.

    together  blocks that it has at a time
    waves     of tiles, or of shares of them
    stages    of a block, in all
    sharing   blocks of a tile that add what they have, over 1.5 and at least 1; 0 where none does
    """

    together: int
    waves: int
    stages: int
    sharing: float


def wide_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """What a product of m rows of x takes, with the kernel before it, in microseconds."""
    plan, books = VectorPlan(spec, schedule), books_of(spec, schedule, device)
    work = _work(plan, books, m, device)
    vectors, is_narrow = plan.vectors, m <= EXACT_ROWS
    cycles = _narrow_cycles(plan, books, work) if is_narrow else _wide_cycles(plan, books, work, m)
    compute = cycles / device.cycles_per_us
    if not is_narrow:
        compute *= 1 + (_HOT if plan.at_once == 1 else _HOT_AT_ONCE) * math.log2(1 + compute / _HOT_US)
    memory = (spec.n * spec.k * vectors.stored_bits_per_weight / 8 + 2.0 * m * (spec.k + spec.n)) / device.bytes_per_us
    ordering = 0.0
    if vector_order_of(spec, schedule):
        ordering = (_NARROW_ORDER_US if is_narrow else _ORDER_US) + 4.0 * m * spec.k / device.bytes_per_us
    ending = _NARROW_SHARING_US * (work.sharing > 0) if is_narrow else _SHARING_US * work.sharing
    return device.launch_us + ordering + max(compute, memory) + _HIDDEN * min(compute, memory) + ending


def _narrow_cycles(plan: VectorPlan, books: Books, work: _Work) -> float:
    """Of an SM, for up to `EXACT_ROWS` rows."""
    spec, schedule, vectors = plan.spec, plan.schedule, plan.vectors
    products, beside = _products(plan), _read_cycles(plan, schedule.columns)
    warps = 4 * schedule.warpgroups * work.together
    kind = vectors.spread if schedule.second_copies or vectors.spread == "exchange" else ""
    enough, power = _WAITING["at once" if plan.at_once > 1 else kind]
    waiting = math.pow(max(1.0, enough / warps), power)
    lookups = vectors.books * _lookup_cycles(spec, schedule, books)
    if books.shifts_codes:
        lookups *= _LINES_AT_ONCE if plan.at_once > 1 else _NARROW_LINES
    if schedule.second_copies:
        lookups *= _SECOND_COPIES
    if books.copies:
        of_slice = _NARROW_SHARED * waiting * (lookups + beside)
    else:
        of_slice = math.pow(max(1.0, _ENOUGH_FOR_L2 / warps), _WAITING_FOR_L2) * (lookups + beside)
    of_slice += _NARROW_TENSOR * products * max(schedule.columns, 32) / 2
    if plan.are_added and vectors.has_book_scales:
        scaled = _NARROW_SCALED if plan.placed is None else _NARROW_PLACED[vectors.entries or ""]
        of_slice += scaled * vectors.books * 8
    if vectors.lattices:
        of_slice += _NARROW_COMPUTED * vectors.books
    cycles = _slices(schedule, work) * of_slice + _NARROW_STAGE + _segment_cycles(plan, work)
    if vectors.bits % 8:
        of_part = _NARROW_SHIFTED * (_NARROW_BESIDE if plan.are_added and vectors.has_book_scales else 1)
        cycles += of_part * plan.tiles * plan.parts * (plan.parts_of_unit - 1)
    if schedule.cluster > 1 and plan.are_added and vectors.has_book_scales:
        cycles *= _CLUSTER_SCALED
    if plan.at_once > 1:
        cycles *= _NARROW_AT_ONCE[plan.parts_of_unit > 1]
        cycles *= _CLUSTER_AT_ONCE if schedule.cluster > 1 else 1.0
    copied = work.together * bytes_of_stages(spec, schedule) / schedule.stages / _NARROW_COPIED
    cycles = max(cycles, copied, (copied + _NARROW_LATENCY) / (schedule.stages - 1))
    ending = work.waves * (_NARROW_TILE + _NARROW_ENDING * schedule.rows * schedule.columns)
    filling = _NARROW_FILL * books.taken
    if plan.switches_books:
        filling += _NARROW_SWITCH * _switched_bytes(plan, books, work)
    if schedule.slices > 1:
        ending += work.waves * _NARROW_SLICED * schedule.slices
    return (work.stages + _NARROW_RAMP) * cycles + ending + filling


def _wide_cycles(plan: VectorPlan, books: Books, work: _Work, m: int) -> float:
    """Of an SM, for more rows."""
    spec, schedule, vectors = plan.spec, plan.schedule, plan.vectors
    slices, columns = _slices(schedule, work), schedule.columns_of_block
    products, read = _products(plan), _read_cycles(plan, columns)
    lookups = vectors.books * _lookup_cycles(spec, schedule, books)
    if books.shifts_codes:
        lookups *= _LINES_AT_ONCE if plan.at_once > 1 else _LINES
    if not books.copies:
        lookups *= _OF_L2
    issued = _COMPUTED * vectors.books if vectors.lattices else 0.0
    if plan.are_added:
        issued += (_ADDED + (_SCALED if vectors.has_book_scales else 0.0)) * vectors.books * 8
    tensor = _TENSOR * slices * products * max(columns, 32) / 2 + _segment_cycles(plan, work)
    shared, issued = slices * (_SHARED * read + lookups), slices * issued
    parts = (tensor, shared, issued)
    cycles = _STAGE + math.pow(math.fsum(math.pow(part, _NORM) for part in parts), 1 / _NORM)
    if schedule.warpgroups * work.together == 1:
        cycles += _ALONE * min(tensor, shared + issued)
    if vectors.bits % 8:
        cycles += _SHIFTED * plan.tiles * plan.parts * (plan.parts_of_unit - 1)
    if has_long_tile(schedule):
        cycles *= _LONG
    if plan.at_once > 1:
        cycles *= _AT_ONCE[schedule.row_tiles > 1]
    copied = work.together * bytes_of_stages(spec, schedule) / schedule.stages
    cycles = max(cycles, copied / (_COPIED_AT_ONCE if plan.at_once > 1 else _COPIED))
    if m > _MANY_ROWS and not schedule.has_tile_each:
        cycles *= _APART
    if plan.switches_books:
        filling = _SWITCHED * _switched_bytes(plan, books, work) + work.waves * _SWITCH
    else:
        filling = (work.waves if schedule.has_tile_each else 1) * _FILL
    return work.stages * cycles + work.waves * _ENDING * schedule.rows * columns + filling


def _work(plan: VectorPlan, books: Books, m: int, device: Device) -> _Work:
    spec, schedule = plan.spec, plan.schedule
    # While a block of one warpgroup waits for its next books, another one of its SM goes on.
    together = 2 if _goes_on_beside(plan, books, device) else 1
    tiles, stages_of_tile = tiles_of(spec, schedule, m), -(-spec.k // (schedule.stage_k * schedule.cluster))
    blocks = blocks_for(spec, schedule, m, device.multiprocessors // schedule.cluster)
    waves = -(-tiles // min(blocks, together * device.multiprocessors // schedule.cluster))
    if schedule.has_tile_each:
        return _Work(together, waves, waves * stages_of_tile, 0.0)
    # What the blocks of a tile have is added one after the other.
    sharing = max(1.0, blocks / tiles / 1.5) * (tiles % blocks > 0)
    return _Work(together, waves, -(-tiles * stages_of_tile // blocks), sharing)


def _slices(schedule: Schedule, work: _Work) -> float:
    """Of a stage of an SM's blocks."""
    return work.together * schedule.rows * schedule.stage_k / _SLICE


def _products(plan: VectorPlan) -> int:
    """Of a slice by each tile of columns."""
    return 1 if plan.are_added else plan.vectors.books


def _read_cycles(plan: VectorPlan, columns: int) -> float:
    """Of shared memory for a slice, beside entries that are looked up: operands that products read, and codes, which
    are stored and loaded."""
    return _products(plan) * columns / 4 + 2 * _SLICE * plan.vectors.stored_bits_per_weight / 8 / _LINE_BYTES


def _switched_bytes(plan: VectorPlan, books: Books, work: _Work) -> float:
    """Of books that take the place of others in an SM. Shares of tiles begin anywhere in a group of blocks that come at
    once, and so have books of one more."""
    switches = work.stages * plan.schedule.stage_k / plan.block_k
    if plan.at_once > 1 and not plan.schedule.has_tile_each:
        switches += work.waves * (1 - plan.schedule.stage_k / plan.block_k)
    return switches * work.together * books.taken


def _segment_cycles(plan: VectorPlan, work: _Work) -> float:
    """Of a stage, in which accumulators of segments are scaled."""
    if plan.is_one:
        return 0.0
    values = work.together * plan.schedule.rows * plan.schedule.columns_of_block
    return _SEGMENT_CYCLES * values * -(-plan.schedule.stage_k // plan.segment)


def _lookup_cycles(spec: LinearSpec, schedule: Schedule, books: Books) -> float:
    """Of an SM, for the entries of `_SLICE` weights of one book."""
    vectors = spec.vectors
    assert vectors is not None
    lookups = _SLICE / (32 * vectors.vector)
    if vectors.lattices:
        lookups *= bytes_of_codes(vectors) / vectors.books
    size = entry_bytes(spec)
    if not books.copies:
        return lookups * _GLOBAL_CYCLES * max(1.0, size / 32)
    passes = passes_of(spec, schedule.second_copies)[books.copies.bit_length() - 1]
    phases = max(1, size // 4)
    return lookups * phases * passes


def _goes_on_beside(plan: VectorPlan, books: Books, device: Device) -> bool:
    """Whether an SM has two blocks of a warpgroup, which change their books at different times."""
    schedule = plan.schedule
    if not (plan.switches_books and schedule.warpgroups == 1 and schedule.has_tile_each and schedule.cluster == 1):
        return False
    taken = device.shared_bytes - room_for_books(plan.spec, schedule, device) + books.taken + _BLOCK_BYTES
    registers = registers_of(plan) * (schedule.threads + PRODUCER_THREADS)
    return 2 * taken <= device.shared_bytes and 2 * registers <= SM_REGISTERS
