"""Which schedule a product by partial sums takes, and what it takes by an estimate that was fitted to 236 kernels of an
H200 (docs/adr/0114)."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Final

from lowlp.schedules.device import Device

from ..schedule import Schedule
from ..spec import LinearSpec
from .partial_sums import MOST_ROWS, has_partial_sums

_WARPS: Final = 16
_ROW_TILES: Final = (7, 6, 5, 4, 3, 2, 1)
_SCALED_ROW_TILES: Final = 5
"""Of a warp at most where each unit has a scale: more take more registers than there are."""
_SPLITS: Final = 64
_TABLE_BYTES: Final = 64 << 10
"""Of shared memory, for each row of x."""
_BLOCK_BYTES: Final = 1 << 10
"""Of shared memory, that each block takes besides."""
# Cycles of an SM for a unit of K, to fill a table of it, and to add up for 256 rows of weights.
_UNIT_CYCLES: Final = 300
_FILL_CYCLES: Final = 128
_ROWS_CYCLES: Final = 515
_SCALE_CYCLES: Final = 100
"""For these rows, where they have a scale in each unit."""
_MEMORY: Final = 1.4
_BEGIN_US: Final = -1.2
"""Beside what any launch takes (docs/adr/0119)."""
# To hand over, and for each part of K.
_HANDOVER_US: Final = 2.1
_PART_US: Final = 0.2


def partial_sums_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """What the schedule takes for m rows of x, up to `kept_rows`, in microseconds by estimate."""
    vectors = spec.vectors
    assert vectors is not None and m <= schedule.kept_rows
    units = -(-spec.k // spec.unit_k)
    blocks = -(-spec.n // (16 * schedule.warps * schedule.row_tiles)) * schedule.splits
    waves = -(-blocks // device.multiprocessors)
    rows_cycles = schedule.row_tiles * schedule.warps / _WARPS * _ROWS_CYCLES * schedule.kept_rows
    if spec.groups > 1:
        rows_cycles += schedule.row_tiles * _SCALE_CYCLES
    cycles = waves * -(-units // schedule.splits) * (_UNIT_CYCLES + schedule.kept_rows * _FILL_CYCLES + rows_cycles)
    memory_us = spec.n * spec.k * vectors.bits_per_weight / 8 / device.bytes_per_us
    # SMs without a block read nothing.
    memory_us *= _MEMORY * waves * device.multiprocessors / blocks
    handover_us = _HANDOVER_US + _PART_US * schedule.splits if schedule.splits > 1 else 0.0
    return device.launch_us + _BEGIN_US + max(cycles / device.cycles_per_us, memory_us) + handover_us


@functools.lru_cache(maxsize=4096)
def partial_sums_schedule(spec: LinearSpec, m: int, device: Device) -> Schedule | None:
    """The schedule for m rows of x, of which K is divided alike for all m; None where there is none, or m is more than
    kernels of partial sums are for."""
    if m > MOST_ROWS or device.shared_bytes < MOST_ROWS * _TABLE_BYTES + _BLOCK_BYTES:
        return None
    found: list[tuple[float, int, Schedule]] = []
    for row_tiles in _ROW_TILES:
        if spec.groups > 1 and row_tiles > _SCALED_ROW_TILES:
            continue
        blocks = -(-spec.n // (16 * _WARPS * row_tiles))
        units = -(-spec.k // spec.unit_k)
        most = min(max(1, device.multiprocessors // blocks), units, _SPLITS)
        # As many parts as find an SM each, or fewer that are equal.
        for splits in range(1, most + 1):
            if splits < most and units % splits:
                continue
            schedule = Schedule(8, _WARPS, row_tiles=row_tiles, splits=splits, partial_sums=True, kept_rows=1)
            if has_partial_sums(spec, schedule):
                found.append((partial_sums_us(spec, schedule, 1, device), len(found), schedule))
    return replace(min(found)[2], kept_rows=max(1, m)) if found else None


def takes_less(spec: LinearSpec, other_us: float, device: Device) -> bool:
    """Whether one and two rows of x together, one twice as often, take less than by the kernel of few rows, which takes
    so long for either."""
    mine = [partial_sums_schedule(spec, m, device) for m in (1, MOST_ROWS)]
    us = [partial_sums_us(spec, schedule, schedule.kept_rows, device) for schedule in mine if schedule]
    return len(us) == MOST_ROWS and us[0] ** 2 * us[1] < other_us**3
