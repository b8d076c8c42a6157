"""Which schedule a product with codebooks takes: the one whose blocks leave an SM the fewest lookups.

In how many parts K is divided follows from the weights and the GPU alone, so that rows of x are multiplied in the same
order however many they are: as many as take the least time for up to 16 rows, by lookups, by what fills books, and by
what it takes to add the parts.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import Final

from lowlp.schedules.device import Device

from ..candidates import plain_schedule
from ..schedule import Schedule
from ..spec import LinearSpec
from .lattice_tables import WORD_BYTES
from .program import has_codebook_program

_COLUMNS: Final = (8, 16, 32, 64)
_WARPS: Final = (8, 7, 6, 5, 4, 3, 2, 16, 14, 12, 10)
"""The first of those that are as good."""
_ROW_TILES: Final = (1, 2, 4)
_STAGES: Final = (4, 3, 2)
"""As warps: fewer where more blocks of them fit an SM."""
_REGISTERS: Final = 65536
"""Of an SM."""
_MOST_REGISTERS: Final = 255
"""Of a thread."""
_OTHER_REGISTERS: Final = 48
"""Of a thread, beside accumulators, codes and x."""
_PART_REGISTERS: Final = 12
"""Of a thread whose block has a part of K."""
_ENOUGH_WARPS: Final = 16
"""Of an SM, to hide what lookups wait for."""
# A line of shared memory has the copies of all books' entries that lanes read at a time.
_LINE_BYTES: Final = 128
_BLOCK_BYTES: Final = 1024
"""Of shared memory, that each block takes besides its own."""
_SPLITS: Final = (1, 2, 3, 4, 6, 8, 12, 16)
_JUDGED_ROWS: Final = 16
"""Of x, for which the parts of K are chosen."""
_WORTH: Final = 0.8
"""K is divided where that takes at most so much of the time: without, kernels were measured."""
# Cycles until books that are loaded are there, until a block has what another has left, and for an accumulator of that.
_FILL_CYCLES: Final = 1200
_HANDOVER_CYCLES: Final = 3500
_ADD_CYCLES: Final = 12
# Passes of a phase where entries have one copy, and cycles for 32 entries of global memory.
_CONFLICT_PASSES: Final = 2.6
_GLOBAL_CYCLES: Final = 42
# Cycles in which 32 vectors of a lattice are computed: instructions for integers, of which an SM begins two a cycle.
_COMPUTED_CYCLES: Final = {"e8p": 5, "e81b": 4}


def codebook_schedule(spec: LinearSpec, m: int, device: Device) -> Schedule:
    """The schedule for m rows of x. Rows of x are multiplied in the same order by all of them."""
    return _with_splits(spec, m, device, splits_of(spec, device)) or plain_schedule(spec, m)


def columns_for(m: int) -> int:
    """Of a block, for m rows of x."""
    return next((columns for columns in _COLUMNS if m <= columns), _COLUMNS[-1])


@functools.lru_cache(maxsize=4096)
def splits_of(spec: LinearSpec, device: Device) -> int:
    """In how many parts K is divided."""
    found: list[tuple[float, int]] = []
    for splits in _SPLITS:
        schedule = _with_splits(spec, _JUDGED_ROWS, device, splits)
        if schedule:
            found.append((_cycles(spec, schedule, _JUDGED_ROWS, device) * (_WORTH if splits == 1 else 1), splits))
    return min(found)[1] if found else 1


@functools.lru_cache(maxsize=4096)
def _with_splits(spec: LinearSpec, m: int, device: Device, splits: int) -> Schedule | None:
    """The best schedule with so many parts of K; None where there is none."""
    columns = columns_for(m)
    found: list[tuple[float, int, Schedule]] = []
    for warps, tiles, stages in itertools.product(_WARPS, _ROW_TILES, _STAGES):
        row_tiles = tiles * (spec.rows_of_unit // 16)
        if row_tiles > 16:
            continue
        schedule = Schedule(columns, warps, stages=stages, row_tiles=row_tiles, splits=splits)
        # The assembler counts four warps at a time.
        fits = _registers(spec, schedule) <= min(_MOST_REGISTERS, _REGISTERS // (-(-warps // 4) * 128))
        # Books go where there is room, x does not: but those that would fit are not kept out by it.
        fits = fits and _x_bytes(spec, schedule) + _least_book_bytes(spec, device) + _BLOCK_BYTES <= device.shared_bytes
        if fits and has_codebook_program(spec, schedule):
            found.append((_cost(spec, schedule, m, device), len(found), schedule))
    if not found:
        return None
    schedule = min(found)[2]
    return replace(schedule, blocks_per_sm=_resident(spec, schedule, m, device))


def _registers(spec: LinearSpec, schedule: Schedule) -> int:
    """Of a thread: accumulators, words of codes, of which there are two units, x of a chunk, and others."""
    vectors = spec.vectors
    assert vectors is not None
    # Where a row is one segment, the result is nothing before its end.
    is_one = spec.groups == 1 and not spec.book_columns
    sums = (vectors.books if vectors.has_book_scales else 1) + (not is_one)
    units = schedule.row_tiles // (spec.rows_of_unit // 16)
    accumulators = schedule.row_tiles * schedule.columns // 2
    held = sums * accumulators + 2 * units * spec.placement.num_words
    held += schedule.columns // 8 * max(4, vectors.vector) // 2
    if schedule.splits > 1:
        # What other blocks have left is loaded beside what is added.
        held = max(held + _PART_REGISTERS, (1 + spec.products) * accumulators)
    # Vectors that are computed are so for several products at once.
    return held + _OTHER_REGISTERS + (16 if vectors.lattices else 0)


def _x_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Shared memory that the stages of x take."""
    return schedule.stages * spec.unit_k * schedule.columns * 2


def _blocks(spec: LinearSpec, schedule: Schedule, m: int) -> int:
    tiles = -(-spec.columns_of_y // (16 * schedule.warps * schedule.row_tiles)) * -(-m // schedule.columns)
    return tiles * schedule.splits


def _resident(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> int:
    """Blocks that an SM has at a time."""
    shared = _book_bytes(spec, device) + _x_bytes(spec, schedule) + _BLOCK_BYTES
    by_registers = _REGISTERS // (32 * schedule.warps * _registers(spec, schedule))
    resident = max(1, min(device.shared_bytes // shared, by_registers, 2 * _ENOUGH_WARPS // schedule.warps))
    return min(resident, -(-_blocks(spec, schedule, m) // device.multiprocessors))


def _cost(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Rows of weights, in tiles of 16, that an SM looks up one after the other, and more where few warps wait for each
    other."""
    resident = _resident(spec, schedule, m, device)
    waves = -(-_blocks(spec, schedule, m) // (device.multiprocessors * resident))
    part = _largest_part(spec, schedule)
    rows = waves * resident * schedule.warps * schedule.row_tiles * part
    waiting = math.sqrt(max(1.0, _ENOUGH_WARPS / (resident * schedule.warps)))
    # For 16 rows of a chunk a lane reads two vectors of each book; and one of 8 rows of x, once for all row tiles.
    vectors = spec.vectors
    assert vectors is not None
    reads_of_x = schedule.columns / 8 / (2 * vectors.books * schedule.row_tiles)
    cost = rows * (1 + reads_of_x) * waiting
    if not spec.book_columns:
        return cost
    # While a block waits for its next books, the others go on.
    switches = waves * part * -(-spec.k // spec.book_columns)
    cycles = _fill_cycles(spec, device) * resident + _FILL_CYCLES / resident
    return cost + switches * cycles / _lookup_cycles(spec, device)


def _largest_part(spec: LinearSpec, schedule: Schedule) -> float:
    """Of K, that a block has."""
    granules = -(-spec.k // (spec.book_columns or spec.unit_k))
    return -(-granules // schedule.splits) / granules


def _cycles(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Cycles of an SM, with those that are the same for all schedules of one number of splits."""
    cycles = _cost(spec, schedule, m, device) * _lookup_cycles(spec, device)
    resident = _resident(spec, schedule, m, device)
    waves = -(-_blocks(spec, schedule, m) // (device.multiprocessors * resident))
    if not spec.book_columns:
        cycles += waves * (resident * _fill_cycles(spec, device) + _FILL_CYCLES)
    if schedule.splits > 1:
        held = schedule.row_tiles * schedule.columns // 2 * spec.products
        cycles += _HANDOVER_CYCLES + waves * (schedule.splits - 1) * held * _ADD_CYCLES
    return cycles


def _bytes_of_entries(spec: LinearSpec) -> int:
    """Of all books of a block, once."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return math.prod(spec.shape_of_books)
    return (vectors.books << vectors.bits) * entry_bytes(spec)


def entry_bytes(spec: LinearSpec) -> int:
    """Of what a lookup reads; of computed books words."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return WORD_BYTES
    return vectors.vector * (1 if vectors.entries in ("int8", "f8e4m3") else 2)


def _has_copies(spec: LinearSpec, device: Device) -> bool:
    """Whether there is room for as many copies of each entry as avoid bank conflicts."""
    vectors = spec.vectors
    assert vectors is not None
    return bool(vectors.lattices) or _LINE_BYTES * vectors.books << vectors.bits <= device.shared_bytes // 2


def _fill_cycles(spec: LinearSpec, device: Device) -> float:
    """Cycles of shared memory in which the books of a block are written."""
    bytes_of_entries = _bytes_of_entries(spec)
    if bytes_of_entries > device.shared_bytes:
        return 0
    copies = _LINE_BYTES // min(entry_bytes(spec), _LINE_BYTES) if _has_copies(spec, device) else 1
    return copies * bytes_of_entries / _LINE_BYTES


def _lookup_cycles(spec: LinearSpec, device: Device) -> float:
    """Cycles of shared memory, or of L2, for the lookups of 16 rows."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return 16 * spec.k / vectors.vector / 32 * sum(_COMPUTED_CYCLES[name] for name in vectors.lattices)
    bytes_of_entry = entry_bytes(spec)
    lookups = 16 * spec.k / vectors.vector * vectors.books / 32
    if _bytes_of_entries(spec) > device.shared_bytes:
        return lookups * _GLOBAL_CYCLES
    phases = max(1, bytes_of_entry // 4)
    return lookups * phases * (1 if _has_copies(spec, device) else _CONFLICT_PASSES)


def _least_book_bytes(spec: LinearSpec, device: Device) -> int:
    """Shared memory that books need, if there is room for them beside two stages of x."""
    entries = _bytes_of_entries(spec)
    least = entries + 2 * 2 * spec.unit_k * _COLUMNS[-1] + _BLOCK_BYTES
    return entries if least <= device.shared_bytes else 0


def _book_bytes(spec: LinearSpec, device: Device) -> int:
    """Shared memory that the books of a block take, as `lowlp-place-codebooks` places them."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return 256 * 2 * _LINE_BYTES * len(set(vectors.lattices))
    if spec.hot_entries:
        return spec.hot_entries * vectors.books * entry_bytes(spec)
    lines = (_LINE_BYTES * max(2, vectors.books)) << vectors.bits
    if lines <= device.shared_bytes // 2:
        return lines
    entries = _bytes_of_entries(spec)
    return entries if entries <= device.shared_bytes else device.shared_bytes // 2
