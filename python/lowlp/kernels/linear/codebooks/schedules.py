"""Which schedule a product with codebooks takes: the one that keeps an SM busy for the fewest cycles, by an estimate
that was fitted to 250 kernels (docs/adr/0063).

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

from ..candidates import EXACT_ROWS, FEW_ROWS, plain_schedule
from ..schedule import Schedule
from ..spec import LinearSpec
from .entries import (
    are_global,
    bytes_of_entries,
    entry_bytes,
    has_bytes,
    has_second_copies,
    needs_second_copies,
    spread_passes,
)
from .program import has_codebook_program, may_keep_entries
from .program_plan import segment_of

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
_GLOBAL_REGISTERS: Final = 28
"""Of a thread, for entries that are looked up in global memory."""
_PART_REGISTERS: Final = 12
"""Of a thread whose block has a part of K."""
_GATE_REGISTERS: Final = 32
"""The same where it has parts of gate and up."""
_SEGMENTS_AT_ONCE: Final = 4
"""Of a stage, that the assembler begins before it has scaled the first, at most."""
_MOST_STAGED: Final = 4
_LEAST_VECTOR: Final = 4
"""Rows of x, and weights of a vector, of which stages have fewer rows than there are columns."""
_STEPS: Final = (4, 2, 1)
_MOST_STAGE_K: Final = 256
"""Weights of a row in a stage of several units: more take registers for codes and save little."""
_MOST_WARPS: Final = 32
_MOST_BLOCKS: Final = 8
"""Of an SM."""
_ENOUGH_WARPS: Final = 16.0
_MORE_WARPS: Final = 20.0
"""Of an SM, to hide what lookups wait for, and what vectors that are computed or books that change do; a warp counts as
the root of its row tiles, which wait together."""
_WAITING: Final = 0.8
"""Power of what lacks of these, by which shared memory is waited for."""
_SHARED: Final = 1.15
"""Cycles for each of shared memory."""
_TENSOR: Final = 0.25
"""Cycles for each of tensor cores, which shared memory does not hide."""
_PRODUCT_CYCLES: Final = 1.6
"""In which an SM multiplies 16 x 16 weights by 8 rows of x."""
_LATENCY_CYCLES: Final = 1250
"""From one stage to the next at least: codes of the next are on their way from memory."""
_STAGE_CYCLES: Final = 40
_COPY_CYCLES: Final = 40
"""Of an SM, for a block to wait for its warps at a stage of x, and to copy 8 rows of it."""
_COMPUTED_COPYING: Final = 2.5
"""Times both, where instructions are what an SM has least of."""
_MEMORY: Final = 1.2
_HIDDEN: Final = 0.5
"""Times for what is read from memory, and for what goes on beside."""
_ABOUT: Final = 1.03
"""What takes up to so many times the least is as good: the first in the order of the lists above is taken."""
# A line of shared memory has the copies of all books' entries that lanes read at a time.
_LINE_BYTES: Final = 128
_BLOCK_BYTES: Final = 1024
"""Of shared memory, that each block takes besides its own."""
_SPLITS: Final = (1, 2, 3, 4, 6, 8, 12, 16)
_KEPT_BYTES: Final = 128 << 10
_L1_BYTES: Final = 64 << 10
"""Of entries of books in global memory that are kept in shared memory too, at most; and what an SM's L1, which has the
others, wants of the memory that it shares (docs/adr/0115)."""
_KEPT_STEP: Final = 1024
_LEAST_KEPT: Final = 4
"""Of all entries a sixteenth, two to the minus so many: fewer are not kept."""
_LOOKUPS_OF_KEPT: Final = 4
"""A block looks up at least so many times as many entries as it keeps."""
_TAKEN: Final = 0.93
_TAKEN_OF_BYTES: Final = 1.06
_TAKEN_OF_COMPUTED: Final = 0.86
"""Of the cycles that are estimated, what few rows were measured to take; with entries of 8 bits; and with vectors that
are computed (docs/adr/0119). It is taken with up to `EXACT_ROWS`."""
_TAKEN_OF_STAGED: Final = 0.985
"""Of that where stages have fewer rows than there are columns."""
_LESS_US: Final = 0.9
"""That adding parts of K was measured to take less."""
_WORTH: Final = 0.8
"""K is divided where that takes at most so much of the time: without, kernels were measured."""
# Cycles until books that are loaded are there, until a block has what another has left, and for an accumulator of that.
_FILL_CYCLES: Final = 1200
_HANDOVER_CYCLES: Final = 4000
_ADD_CYCLES: Final = 40
# Passes of a phase where entries have one copy, and cycles for 32 entries of global memory.
_CONFLICT_PASSES: Final = 2.6
_GLOBAL_CYCLES: Final = 42
# Cycles for 32 values of entries of 8 bits, which are cast.
_CAST_CYCLES: Final = 0.5
# Cycles in which 32 vectors of a lattice are computed: instructions for integers, of which an SM begins two a cycle.
_COMPUTED_CYCLES: Final = {"e8p": 5, "e81b": 4}


def codebook_us(spec: LinearSpec, m: int, device: Device, splits: int | None = None) -> float:
    """What the schedule for m rows of x takes, in microseconds by estimate; see `codebook_schedule`."""
    schedule, is_computed = codebook_schedule(spec, m, device, splits), bool(spec.vectors and spec.vectors.lattices)
    taken, less = 1.0, 0.0
    if m <= EXACT_ROWS:
        taken = _TAKEN_OF_BYTES if has_bytes(spec) else _TAKEN_OF_COMPUTED if is_computed else _TAKEN
        taken *= _TAKEN_OF_STAGED if schedule.staged_rows else 1.0
        less = _LESS_US if schedule.splits > 1 else 0.0
    if not schedule.stages:
        # As if x were staged: nothing was measured without.
        schedule = replace(schedule, stages=2, row_tiles=spec.rows_of_unit // 16)
    return device.launch_us - less + taken * _cycles(spec, schedule, m, device) / device.cycles_per_us


def codebook_schedule(spec: LinearSpec, m: int, device: Device, splits: int | None = None) -> Schedule:
    """The schedule for m rows of x. Rows of x are multiplied in the same order by all with as many parts of K.

    splits  in how many parts K is divided; None: as few as are best
    """
    splits, most = splits or splits_of(spec, device), columns_for(m)
    # Gate and up have no registers for parts of many columns.
    narrower = (columns for columns in reversed(_COLUMNS) if columns <= most)
    found = next((one for columns in narrower if (one := _with_splits(spec, m, device, splits, columns))), None)
    return with_staged_rows(spec, found, m) if found else plain_schedule(spec, m)


def with_staged_rows(spec: LinearSpec, schedule: Schedule, m: int) -> Schedule:
    """The schedule, whose stages have m rows of x, rounded up to a power of two, where that takes fewer cycles of
    shared memory: lanes that read the same are served together. It was chosen by an estimate for 8 rows."""
    vectors = spec.vectors
    assert vectors is not None
    # Of vectors of 2 a load has the 128 bytes of a cycle for 8 rows.
    if m > _MOST_STAGED or vectors.vector < _LEAST_VECTOR:
        return schedule
    staged = replace(schedule, staged_rows=1 << (max(m, 1) - 1).bit_length())
    return staged if has_codebook_program(spec, staged) else schedule


def columns_for(m: int) -> int:
    """Of a block, for m rows of x."""
    return next((columns for columns in _COLUMNS if m <= columns), _COLUMNS[-1])


@functools.lru_cache(maxsize=4096)
def splits_of(spec: LinearSpec, device: Device) -> int:
    """In how many parts K is divided."""
    found: list[tuple[float, int]] = []
    for splits in _SPLITS:
        schedule = _with_splits(spec, FEW_ROWS, device, splits, columns_for(FEW_ROWS))
        if schedule:
            found.append((_cycles(spec, schedule, FEW_ROWS, device) * (_WORTH if splits == 1 else 1), splits))
    return min(found)[1] if found else 1


@functools.lru_cache(maxsize=4096)
def _with_splits(spec: LinearSpec, m: int, device: Device, splits: int, columns: int) -> Schedule | None:
    """The best schedule with so many parts of K and columns of a block; None where there is none."""
    found: list[tuple[float, int, Schedule]] = []
    for warps, tiles, steps, stages in itertools.product(_WARPS, _ROW_TILES, _STEPS, _STAGES):
        row_tiles = tiles * (spec.rows_of_unit // 16)
        if row_tiles > 16 or (steps > 1 and steps * spec.unit_k > _MOST_STAGE_K):
            continue
        draft = Schedule(columns, warps, stages=stages, row_tiles=row_tiles, steps=steps, splits=splits)
        schedule = replace(draft, second_copies=needs_second_copies(spec))
        # The assembler counts four warps at a time.
        fits = _registers(spec, schedule) <= min(_MOST_REGISTERS, _REGISTERS // (-(-warps // 4) * 128))
        # Books go where there is room, x does not: but those that would fit are not kept out by it.
        fits = fits and _x_bytes(spec, schedule) + _least_book_bytes(spec, device) + _BLOCK_BYTES <= device.shared_bytes
        if fits:
            found.append((_cycles(spec, schedule, m, device), len(found), schedule))
    found = [one for one in sorted(found) if has_codebook_program(spec, one[2])]
    chosen = min((one[1:] for one in found if one[0] <= _ABOUT * found[0][0]), default=(0, None))[1]
    if chosen is None:
        return None
    chosen = replace(chosen, blocks_per_sm=_resident(spec, chosen, m, device))
    return with_second_copies(spec, with_kept_entries(spec, chosen, device), device)


def with_kept_entries(spec: LinearSpec, schedule: Schedule, device: Device) -> Schedule:
    """The schedule, by which books of global memory have their first entries in shared memory too, with up to 16 rows
    of x: as many as leave L1 its room, and as are worth it to the block that fetches them."""
    vectors = spec.vectors
    assert vectors is not None
    if not may_keep_entries(spec, schedule) or schedule.columns > FEW_ROWS:
        return schedule
    taken = _x_bytes(spec, schedule) + _BLOCK_BYTES
    if bytes_of_entries(spec) + taken <= device.shared_bytes // schedule.blocks_per_sm:
        return schedule
    room = (device.shared_bytes - _L1_BYTES) // schedule.blocks_per_sm - taken
    kept = max(0, min(room, _KEPT_BYTES)) // (vectors.books * entry_bytes(spec))
    lookups = 16 * schedule.warps * schedule.row_tiles * spec.k // (vectors.vector * schedule.splits)
    kept = min(kept, lookups // _LOOKUPS_OF_KEPT) // _KEPT_STEP * _KEPT_STEP
    return replace(schedule, kept_entries=kept if kept << _LEAST_KEPT >= 1 << vectors.bits else 0)


def with_second_copies(spec: LinearSpec, schedule: Schedule, device: Device) -> Schedule:
    """The schedule, by which both copies of entries whose codes name one are in shared memory, if there is room."""
    has_both = _keeps_both(spec, schedule, schedule.blocks_per_sm, device)
    return replace(schedule, second_copies=True) if has_both else schedule


def _keeps_both(spec: LinearSpec, schedule: Schedule, resident: int, device: Device) -> bool:
    """Whether shared memory has room for both copies of entries whose codes name one of two, in so many blocks, or
    has both whatever there is."""
    if not has_second_copies(spec):
        return False
    taken = bytes_of_entries(spec, True) + _x_bytes(spec, schedule) + _BLOCK_BYTES
    return taken * resident <= device.shared_bytes or needs_second_copies(spec)


def _registers(spec: LinearSpec, schedule: Schedule) -> int:
    """Of a thread: accumulators, words of codes, of which there are two units, x of a chunk, and others."""
    vectors = spec.vectors
    assert vectors is not None
    # Where a row is one segment, the result is nothing before its end.
    is_one = spec.groups == 1 and not spec.book_columns
    sums = (vectors.books if vectors.has_book_scales else 1) + (not is_one)
    units = schedule.row_tiles // (spec.rows_of_unit // 16)
    accumulators = schedule.row_tiles * schedule.columns // 2
    # A gate's result is held while the other product is made.
    held = (sums + spec.products - 1) * accumulators + 2 * units * schedule.steps * spec.placement.num_words
    held += schedule.columns // 8 * max(4, vectors.vector) // 2
    segments = schedule.steps * spec.unit_k // segment_of(spec)
    if segments > 1:
        # Each with sums of its own; the scales of all are loaded.
        held += (min(segments, _SEGMENTS_AT_ONCE) - 1) * (sums - 1) * accumulators + 2 * schedule.row_tiles * segments
    if schedule.splits > 1:
        # What other blocks have left is loaded beside what is added.
        if spec.products == 1:
            held = max(held + _PART_REGISTERS, 3 * accumulators)
        else:
            # The assembler loads what all others have left at once.
            held = max(held, (schedule.splits + spec.products) * accumulators) + _GATE_REGISTERS
    if vectors.lattices:
        # Vectors that are computed are so for several products at once; 14 warps have room for those of 16 columns.
        held += 8 if schedule.columns == 16 and schedule.splits == 1 else 16
    elif are_global(spec) and schedule.columns > 8:
        # Addresses of global memory have two words.
        held += _GLOBAL_REGISTERS
    return held + _OTHER_REGISTERS


def _x_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Shared memory that the stages of x take."""
    return schedule.stages * schedule.steps * spec.unit_k * schedule.columns * 2


def _blocks(spec: LinearSpec, schedule: Schedule, m: int) -> int:
    tiles = -(-spec.columns_of_y // (16 * schedule.warps * schedule.row_tiles)) * -(-m // schedule.columns)
    return tiles * schedule.splits


def _resident(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> int:
    """Blocks that an SM has at a time."""
    shared = _book_bytes(spec, device) + _x_bytes(spec, schedule) + _BLOCK_BYTES
    by_registers = _REGISTERS // (32 * schedule.warps * _registers(spec, schedule))
    by_warps = min(_MOST_WARPS // schedule.warps, _MOST_BLOCKS)
    resident = max(1, min(device.shared_bytes // shared, by_registers, by_warps))
    return min(resident, -(-_blocks(spec, schedule, m) // device.multiprocessors))


def _busy_cycles(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Of an SM, with lookups and products."""
    vectors = spec.vectors
    assert vectors is not None
    resident, part = _resident(spec, schedule, m, device), _largest_part(spec, schedule)
    waves = -(-_blocks(spec, schedule, m) // (device.multiprocessors * resident))
    # A block makes both products of gate and up, one after the other.
    passes = waves * spec.products
    tiles = passes * resident * schedule.warps * schedule.row_tiles * part
    enough = _MORE_WARPS if vectors.lattices or spec.book_columns else _ENOUGH_WARPS
    waiting = enough / (resident * schedule.warps * math.sqrt(schedule.row_tiles))
    # A lane reads the vectors of two rows, and what it multiplies of 8 rows of x once for all row tiles.
    lookups = _lookup_cycles(spec, device, _keeps_both(spec, schedule, resident, device))
    shared = tiles * (lookups + spec.k * schedule.columns / 64 / schedule.row_tiles)
    tensor = tiles * spec.k / 16 * schedule.columns / 8 * vectors.books * _PRODUCT_CYCLES
    stages = passes * part * spec.k / (spec.unit_k * schedule.steps)
    busy = _SHARED * shared * math.pow(max(1.0, waiting), _WAITING) + _TENSOR * tensor
    copying = _STAGE_CYCLES + _COPY_CYCLES * schedule.columns / 8
    copying *= _COMPUTED_COPYING if vectors.lattices else 1
    cycles: float = max(busy, stages * _LATENCY_CYCLES) + stages * resident * copying
    memory_us: float = spec.n * spec.k * vectors.stored_bits_per_weight / 8 / device.bytes_per_us
    # SMs without a block read nothing.
    places = waves * resident * device.multiprocessors
    memory: float = _MEMORY * memory_us * device.cycles_per_us * places / _blocks(spec, schedule, m)
    cycles = max(cycles, memory + _HIDDEN * cycles)
    if not spec.book_columns:
        return cycles
    # While a block waits for its next books, the others go on.
    switches = passes * part * -(-spec.k // spec.book_columns)
    return cycles + switches * (_fill_cycles(spec, device) * resident + _FILL_CYCLES / resident)


def _largest_part(spec: LinearSpec, schedule: Schedule) -> float:
    """Of K, that a block has."""
    granules = -(-spec.k // (spec.book_columns or spec.unit_k))
    return -(-granules // schedule.splits) / granules


def _cycles(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Cycles of an SM from first to last."""
    cycles = _busy_cycles(spec, schedule, m, device)
    resident = _resident(spec, schedule, m, device)
    waves = -(-_blocks(spec, schedule, m) // (device.multiprocessors * resident))
    if not spec.book_columns:
        cycles += waves * (resident * _fill_cycles(spec, device) + _FILL_CYCLES)
    if schedule.splits > 1:
        held = schedule.row_tiles * schedule.columns // 2 * spec.products
        # Another block of the SM goes on.
        cycles += 2 * _HANDOVER_CYCLES / (1 + resident) + waves * (schedule.splits - 1) * held * _ADD_CYCLES
    return cycles


def _has_copies(spec: LinearSpec, device: Device) -> bool:
    """Whether there is room for as many copies of each entry as avoid bank conflicts."""
    vectors = spec.vectors
    assert vectors is not None
    lines = _LINE_BYTES * vectors.books << vectors.bits
    return bool(vectors.lattices) or (not vectors.spread and lines <= device.shared_bytes // 2)


def _fill_cycles(spec: LinearSpec, device: Device) -> float:
    """Cycles of shared memory in which the books of a block are written."""
    entries = bytes_of_entries(spec)
    if entries > device.shared_bytes:
        return 0
    copies = _LINE_BYTES // min(entry_bytes(spec), _LINE_BYTES) if _has_copies(spec, device) else 1
    return copies * entries / _LINE_BYTES


def _lookup_cycles(spec: LinearSpec, device: Device, second_copies: bool) -> float:
    """Cycles of shared memory, or of L2, for the lookups of 16 rows."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return 16 * spec.k / vectors.vector / 32 * sum(_COMPUTED_CYCLES[name] for name in vectors.lattices)
    bytes_of_entry = entry_bytes(spec)
    lookups = 16 * spec.k / vectors.vector * vectors.books / 32
    if bytes_of_entries(spec) > device.shared_bytes:
        return lookups * _GLOBAL_CYCLES
    passes = spread_passes(spec, second_copies) or (1 if _has_copies(spec, device) else _CONFLICT_PASSES)
    phases = max(1, bytes_of_entry // 4) * passes
    return lookups * (max(phases, vectors.vector * _CAST_CYCLES) if has_bytes(spec) else phases)


def _least_book_bytes(spec: LinearSpec, device: Device) -> int:
    """Shared memory that books need, if there is room for them beside two stages of x."""
    entries = bytes_of_entries(spec)
    least = entries + 2 * 2 * spec.unit_k * _COLUMNS[-1] + _BLOCK_BYTES
    return entries if least <= device.shared_bytes else 0


def _book_bytes(spec: LinearSpec, device: Device) -> int:
    """Shared memory that the books of a block take, as `lowlp-place-codebooks` places them."""
    vectors = spec.vectors
    assert vectors is not None
    if vectors.lattices:
        return 256 * 2 * _LINE_BYTES * len(set(vectors.lattices))
    lines = (_LINE_BYTES * max(2, vectors.books)) << vectors.bits
    if not vectors.spread and lines <= device.shared_bytes // 2:
        return lines
    entries = bytes_of_entries(spec)
    return entries if entries <= device.shared_bytes else device.shared_bytes // 2
