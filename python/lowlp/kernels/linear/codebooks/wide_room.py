"""What a block by warpgroups with codebooks takes of a multiprocessor: registers, stages, copies of books."""

from __future__ import annotations

from typing import Final, NamedTuple

from lowlp.schedules.device import Device

from ..candidates import EXACT_ROWS
from ..operands import NUMPY_TYPES
from ..result_rows import APART_BYTES
from ..schedule import Schedule
from ..spec import LinearSpec
from ..warpgroup_layouts import LONG_COLUMNS, bytes_of_cluster, columns_stored, stores_rows, tiles_of_warp
from .entries import bytes_of_entries, entry_bytes, spread_passes
from .slice_sums import bytes_of_slices
from .wide_plan import VectorPlan

_PASSES: Final = {16: (2.54, 2.37, 1.94, 1.0), 8: (2.92, 2.87, 2.64, 2.0, 1.0), 4: (3.15, 3.27, 3.22, 2.93, 2.0, 1.0)}
"""Passes of a phase that reads entries of so many bytes, by the logarithm of their copies (`lowlp-place-codebooks`)."""
SM_REGISTERS: Final = 65536
PRODUCER_THREADS: Final = 32
_BASE_REGISTERS: Final = 44
_MOST_REGISTERS: Final = 232
_ACCUMULATORS_OF_FOUR: Final = 48
"""Of the products of a thread of four warpgroups at most: the assembler has 96 registers for these, and with more makes
one product after the other."""
_NOT_AHEAD: Final = 32
"""With several groups in a stage, registers that may lack for vectors: the assembler then looks these up later."""
_MANY_SEGMENTS: Final = 4
_MANY_OF_SUMS: Final = 8
"""Segments of a stage of which the assembler begins so many that they want accumulators of their own; the same where
entries of several books are added."""
_UNSHIFTED_BYTES: Final = 256
"""Of copies of an entry, to whose address a byte needs no shift."""
_BANKS_BYTES: Final = 128
"""Of an entry in copies enough for all lanes of a phase."""
_OTHER_BYTES: Final = 3072
_OTHER_BYTES_OF_ROWS: Final = 512
"""Of shared memory, for barriers and the like; the same where nothing else is exchanged (`ResultRows`)."""


class Books(NamedTuple):
    """How books lie in shared memory.

    copies        of an entry; 0: books do not fit
    taken         bytes of them all
    shifts_codes  codes are bytes, and entries have lines of fewer than 256 bytes, so that a code is shifted to become
                  an address
    """

    copies: int
    taken: int
    shifts_codes: bool = False


def has_room(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> bool:
    """Whether registers hold what a thread that multiplies has, of m rows of x, and shared memory the stages."""
    plan, most = VectorPlan(spec, schedule), _most_registers(schedule, device)
    if schedule.warpgroups == 4 and _accumulators_of_products(schedule) > _ACCUMULATORS_OF_FOUR:
        return False
    fits = _holds_narrow(plan, most) if m <= EXACT_ROWS else registers_of(plan) <= most
    return fits and room_for_books(spec, schedule, device) >= _least_of_books(spec, schedule)


def _least_of_books(spec: LinearSpec, schedule: Schedule) -> int:
    """Of shared memory that a kernel wants for books: where blocks come at once, for copies enough that no lanes meet,
    or it would gain nothing. Of gate and up the first takes lines of which codes are bytes, if these fit, and leaves
    the other one the rest."""
    if schedule.blocks_at_once == 1:
        return 0
    assert spec.vectors is not None
    whole = _BANKS_BYTES << spec.vectors.bits
    return whole + (_sets_of(spec) - 1) * max(whole, _bytes_unshifted(spec))


def _holds_narrow(plan: VectorPlan, most: int) -> bool:
    """Whether that many registers hold what a thread has of a tile of up to `EXACT_ROWS` columns: with as few, the
    assembler looks fewer vectors up ahead. Codes of bits that fill no bytes it shifts and selects, and spills what has
    no room: of one product whose rows have one scale so much was measured to be worth it (docs/adr/0119). So it does
    with two products of slices."""
    fits = _BASE_REGISTERS + _accumulators(plan) <= most
    if plan.spec.products > 1 and plan.slices > 1:
        return registers_of(plan) <= most
    if plan.vectors.lattices or plan.vectors.bits % 8 == 0:
        has_groups = plan.segment_in_stage < plan.schedule.stage_k
        return fits and (not has_groups or registers_of(plan) <= most + _NOT_AHEAD)
    if plan.spec.products > 1 or not plan.is_one:
        return registers_of(plan) <= most
    return fits and plan.schedule.row_tiles <= (2 if plan.schedule.warpgroups <= 2 else 1)


def _accumulators(plan: VectorPlan) -> int:
    """Of a thread."""
    # The assembler begins a second segment of a stage before it has scaled the first, and of many others too.
    segments = plan.schedule.stage_k // plan.segment_in_stage
    are_many = segments >= (_MANY_OF_SUMS if plan.are_added else _MANY_SEGMENTS)
    sums = 1 if plan.is_one else 2 + (segments > 1) + are_many * (1 + plan.are_added)
    return _accumulators_of_products(plan.schedule) * sums


def _accumulators_of_products(schedule: Schedule) -> int:
    """The same of one segment's products, without what they are added to."""
    return schedule.row_tiles * schedule.columns_of_block // 2


def _most_registers(schedule: Schedule, device: Device) -> int:
    if schedule.exchanges_registers and device.gives_registers:
        return device.worker_registers(schedule.threads)
    return min(_MOST_REGISTERS, SM_REGISTERS // (-(-(schedule.threads + PRODUCER_THREADS) // 128) * 128))


def has_long_tile(schedule: Schedule) -> bool:
    """Whether a block has one tile of more columns than a long product, beside which the assembler keeps little else in
    registers (docs/adr/0120)."""
    return schedule.column_tiles == 1 and schedule.columns > LONG_COLUMNS


def registers_of(plan: VectorPlan) -> int:
    """Of a thread that multiplies, at most."""
    schedule = plan.schedule
    of_piece = plan.tiles * plan.piece_k // 4
    # Codes of a stage, those of more than 8 bits as numbers of 16: they are cut out of words when they are looked up.
    bits = plan.vectors.bits if plan.vectors.bits <= 8 else 16
    codes = plan.parts * plan.tiles * schedule.stage_k // plan.step_k * 2 * plan.vectors.books * bits // 32
    registers = _BASE_REGISTERS + _accumulators(plan) + 3 * of_piece + codes
    is_long = has_long_tile(schedule) and plan.is_one and plan.spec.products * schedule.row_tiles == 1
    if schedule.column_tiles == 1 and not is_long:
        # Between products of two tiles of columns, and beside long ones, it has none of these.
        of_others = plan.tiles * plan.span_k // plan.step_k * plan.vectors.books * bits // 16
        registers += of_others * (plan.parts_of_unit - 1) * plan.at_once
        registers += 2 * of_piece if plan.vectors.has_book_scales and plan.are_added else 0
        # Codes that are shifted and masked, of all parts of a unit, before one is selected.
        registers += 24 if plan.vectors.bits % 8 and not plan.vectors.lattices else 0
    return registers


def bytes_of_stages(spec: LinearSpec, schedule: Schedule) -> int:
    """Of shared memory that all stages take: x, codes of whole units, scales of groups."""
    vectors = spec.vectors
    assert vectors is not None
    of_codes = max(schedule.stage_k, schedule.blocks_at_once * spec.unit_k)
    codes = int(schedule.rows * of_codes * vectors.stored_bits_per_weight) // 8
    scales = 0
    if spec.groups > 1:
        scales = schedule.rows * max(1, schedule.stage_k // spec.group_size) * NUMPY_TYPES[spec.scale].itemsize
    return schedule.stages * (schedule.columns_of_block * schedule.stage_k * 2 + codes + scales)


def room_for_books(spec: LinearSpec, schedule: Schedule, device: Device) -> int:
    """What stages and the exchange of results leave of shared memory."""
    return device.shared_bytes - bytes_of_stages(spec, schedule) - _exchange_bytes(spec, schedule)


def _exchange_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Of results on their way to memory, and all else."""
    element = max(NUMPY_TYPES[kind].itemsize for kind in (spec.out, spec.residual) if kind)
    rows, columns = 64 * schedule.warpgroups_of_slice * tiles_of_warp(spec, schedule), columns_stored(spec, schedule)
    if schedule.slices > 1:
        return bytes_of_slices(schedule, rows) + bytes_of_cluster(schedule) + _OTHER_BYTES
    if stores_rows(spec, schedule):
        bytes_of_rows = columns * (rows * element + APART_BYTES) + _OTHER_BYTES_OF_ROWS
        return bytes_of_rows + bytes_of_cluster(schedule)
    return rows * (columns * element + APART_BYTES) + bytes_of_cluster(schedule) + _OTHER_BYTES


def books_of(spec: LinearSpec, schedule: Schedule, device: Device) -> Books:
    """The books of a block, as `lowlp-place-codebooks` places them. It places the caches of two lattices, and of gate
    and up, one after the other, which then may have different copies; here they have the same."""
    sets = _sets_of(spec)
    one = bytes_of_entries(spec, schedule.second_copies)
    room = room_for_books(spec, schedule, device) // sets
    copies, least = 0, 0.0
    for power, passes in enumerate(passes_of(spec, schedule.second_copies)):
        # More copies are worth their memory where they save a twentieth.
        if one << power <= room and (not copies or 20 * passes <= 19 * least):
            copies, least = 1 << power, passes
    if not copies:
        return Books(0, 0)
    unshifted = _bytes_unshifted(spec)
    return Books(copies, sets * one * copies, one * copies < unshifted and unshifted > room)


def _sets_of(spec: LinearSpec) -> int:
    """How many caches of books a block has: gate and up have one each where rows have books of their own."""
    return spec.products if spec.book_rows and spec.book_rows < spec.n else 1


def _bytes_unshifted(spec: LinearSpec) -> int:
    """Of a cache from whose lines a byte of codes needs no shift; 0 where codes are no bytes."""
    vectors = spec.vectors
    assert vectors is not None
    return _UNSHIFTED_BYTES << 8 if vectors.bits == 8 and not vectors.lattices else 0


def passes_of(spec: LinearSpec, second_copies: bool = False) -> tuple[float, ...]:
    """Passes of a phase that reads the entries, by the logarithm of their copies: one, of codes that are spread."""
    size, spread = entry_bytes(spec), spread_passes(spec, second_copies)
    if spread is not None:
        return (spread,)
    passes = _PASSES[min(16, max(4, size))]
    # Entries of 32 bytes are read by halves.
    return tuple(max(2.0, count) for count in passes) if size > 16 else passes
