"""Which schedule a product with codebooks takes: the one whose blocks leave an SM the fewest lookups."""

from __future__ import annotations

import itertools
import math
from typing import Final

from lowlp.schedules.device import Device

from .candidates import plain_schedule
from .codebooks import has_codebook_program
from .schedule import Schedule
from .spec import LinearSpec

_COLUMNS: Final = (8, 16, 32, 64)
_WARPS: Final = (8, 7, 6, 5, 4, 3, 2, 16, 14, 12, 10)
"""The first of those that are as good."""
_ROW_TILES: Final = (1, 2, 4)
_STAGES: Final = (4, 3, 2)
"""As warps: fewer where more blocks of them fit an SM."""
_REGISTERS: Final = 65536
"""Of an SM."""
_OTHER_REGISTERS: Final = 48
"""Of a thread, beside accumulators, codes and x."""
_ENOUGH_WARPS: Final = 16
"""Of an SM, to hide what lookups wait for."""
# A line of shared memory has the copies of all books' entries that lanes read at a time.
_LINE_BYTES: Final = 128
_BLOCK_BYTES: Final = 1024
"""Of shared memory, that each block takes besides its own."""


def codebook_schedule(spec: LinearSpec, m: int, device: Device) -> Schedule:
    """The schedule for m rows of x. Rows of x are multiplied in the same order by all of them."""
    columns = next((columns for columns in _COLUMNS if m <= columns), _COLUMNS[-1])
    found: list[tuple[float, int, Schedule]] = []
    for warps, tiles, stages in itertools.product(_WARPS, _ROW_TILES, _STAGES):
        row_tiles = tiles * (spec.rows_of_unit // 16)
        if row_tiles > 16:
            continue
        schedule = Schedule(columns, warps, stages=stages, row_tiles=row_tiles)
        # The assembler counts four warps at a time.
        fits = _registers(spec, schedule) * -(-warps // 4) * 128 <= _REGISTERS
        # Books go where there is room, x does not.
        fits = fits and _x_bytes(spec, schedule) + _BLOCK_BYTES <= device.shared_bytes
        if fits and has_codebook_program(spec, schedule):
            found.append((_cost(spec, schedule, m, device), len(found), schedule))
    return min(found)[2] if found else plain_schedule(spec, m)


def _registers(spec: LinearSpec, schedule: Schedule) -> int:
    """Of a thread: accumulators, words of codes, of which there are two units, x of a chunk, and others."""
    vectors = spec.vectors
    assert vectors is not None
    # Where a row is one segment, the result is nothing before its end.
    is_one = spec.groups == 1 and not spec.book_columns
    sums = (vectors.books if vectors.has_book_scales else 1) + (not is_one)
    units = schedule.row_tiles // (spec.rows_of_unit // 16)
    held = sums * schedule.row_tiles * schedule.columns // 2 + 2 * units * spec.placement.num_words
    return held + schedule.columns // 8 * max(4, vectors.vector) // 2 + _OTHER_REGISTERS


def _x_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Shared memory that the stages of x take."""
    return schedule.stages * spec.unit_k * schedule.columns * 2


def _cost(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Rows of weights that an SM looks up, one after the other, and more where few warps wait for each other."""
    blocks = -(-spec.columns_of_y // (16 * schedule.warps * schedule.row_tiles)) * -(-m // schedule.columns)
    shared = _book_bytes(spec, device) + _x_bytes(spec, schedule) + _BLOCK_BYTES
    by_registers = _REGISTERS // (32 * schedule.warps * _registers(spec, schedule))
    resident = max(1, min(device.shared_bytes // shared, by_registers, 2 * _ENOUGH_WARPS // schedule.warps))
    resident = min(resident, -(-blocks // device.multiprocessors))
    waves = -(-blocks // (device.multiprocessors * resident))
    rows = waves * resident * schedule.warps * schedule.row_tiles
    waiting = math.sqrt(max(1.0, _ENOUGH_WARPS / (resident * schedule.warps)))
    # For 16 rows of a chunk a lane reads two vectors of each book; and one of 8 rows of x, once for all row tiles.
    vectors = spec.vectors
    assert vectors is not None
    reads_of_x = schedule.columns / 8 / (2 * vectors.books * schedule.row_tiles)
    return rows * (1 + reads_of_x) * waiting


def _book_bytes(spec: LinearSpec, device: Device) -> int:
    """Shared memory that the books of a block take, as `lowlp-place-codebooks` places them."""
    vectors = spec.vectors
    assert vectors is not None
    entries = vectors.books << vectors.bits
    for size in (2 * _LINE_BYTES if vectors.books < 3 else _LINE_BYTES * vectors.books, 2 * vectors.vector):
        if (size << vectors.bits) <= device.shared_bytes // 2:
            return size << vectors.bits
    return min(2 * entries * vectors.vector, device.shared_bytes // 2)
