"""Which schedule a kernel for experts takes: by how many rows of x there are for each on average, which the host knows.

What it would take is estimated as for one matrix: with as many tiles of columns as rows come to that choose experts at
random, each of them a matrix of its own.

Up to `MOST_MEAN` rows for each expert there is one division of the work, of which only the columns of a tile and the
depth of the pipeline follow the number of rows: a row's products are added in one order. The division is that which is
best for few experts and for many.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Final

from lowlp.schedules.device import H200, Device
from lowlp.weights.packing import UNIT_K

from .candidates import FEW_ROWS, candidates, has_program, plain_schedule
from .choosing import rows_of
from .estimates import estimated_us
from .fitting import fits, fitted
from .schedule import Schedule
from .segments import has_small_groups, units_of_period
from .spec import LinearSpec
from .streaming import can_stream

MOST_MEAN: Final = 8
"""Rows of x for each expert on average, up to which all numbers of rows add products in one order."""
_FEW_COLUMNS: Final = (8, FEW_ROWS)
_JUDGED_HITS: Final = (4, 16, 64)
"""Experts that rows go to, for which a division for few rows is judged, beside all of them."""
_LEAST_STREAMED_BYTES: Final = 16 * 1024
"""Of the stages of an SM, with which memory is kept busy; but for matrices of few weights."""
_SMALL_MATRIX: Final = 1 << 18
_MANY_MEAN: Final = 4096
_X_BYTES_PER_US: Final = 25e6
"""Of x that tiles read again from the L2 cache, beside weights from memory (docs/adr/0021)."""
_READ_AGAIN: Final = 0.4
"""What bytes from the L2 cache take, of the time of those from memory. Not measured."""
_SM_SHARE: Final = 0.65
"""Of the time that an SM with more tiles than others takes at its share of the memory bandwidth; others leave it more.
Not measured."""


def schedule_for_experts(spec: LinearSpec, m: int, device: Device = H200) -> Schedule:
    """The schedule for m rows of x that are divided among the experts of `spec`."""
    mean = m / spec.experts
    if mean <= MOST_MEAN:
        found = _few_rows(spec, device)
        if found is None:
            return plain_schedule(_of_one(spec, spec.n), max(1, math.ceil(mean)))
        forms = [_with_columns(spec, found, columns, device) for columns in _FEW_COLUMNS]
        return min(forms, key=lambda form: _us(spec, form, max(1, m), device))
    rounded = _rounded(mean)
    found = _many_rows(spec, rounded, device)
    # The assembler spills registers of wider tiles without stages, which stand in a loop here.
    return plain_schedule(_of_one(spec, spec.n), FEW_ROWS) if found is None else found


def tiles_of_columns(experts: int, m: int, columns: int) -> float:
    """How many tiles of columns m rows come to that choose experts at random, on average."""
    mean = m / experts
    if mean > _MANY_MEAN:
        return experts * (mean / columns + 0.5)
    # The numbers of rows of an expert, as Poisson has them.
    total, probability, rows = 0.0, math.exp(-mean), 0
    if probability == 0.0:
        return experts * (mean / columns + 0.5)
    cumulated = probability
    while cumulated < 1 - 1e-9 and rows < 4 * mean + 64:
        rows += 1
        probability *= mean / rows
        cumulated += probability
        total += probability * -(-rows // columns)
    return experts * total


def rows_of_tile(spec: LinearSpec, schedule: Schedule) -> int:
    """Rows of y^T of a tile, whatever kernel it is."""
    if schedule.stages:
        return schedule.rows // spec.products
    return schedule.warps * spec.rows_of_unit


def _rounded(mean: float) -> int:
    """A little more than so many rows, so that not every number has kernels of its own."""
    return rows_of(math.ceil(mean))


def _of_one(spec: LinearSpec, n: int) -> LinearSpec:
    """The same for one matrix of n rows."""
    return dataclasses.replace(spec, n=n, experts=0)


def _us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Microseconds by estimate, for m rows that choose experts at random."""
    return _us_of_tiles(spec, schedule, tiles_of_columns(spec.experts, m, schedule.columns_of_block), device)


def _us_of_tiles(spec: LinearSpec, schedule: Schedule, tiles: float, device: Device) -> float:
    """The same for so many tiles of columns."""
    columns = max(1, round(tiles))
    one = _of_one(spec, spec.n * columns)
    # Further tiles of an expert find its weights in the L2 cache.
    hit = min(tiles, spec.experts)
    faster = tiles / (hit + _READ_AGAIN * (tiles - hit))
    device = dataclasses.replace(device, bytes_per_us=device.bytes_per_us * faster)
    if schedule.warpgroups and schedule.columns_of_block > 64:
        schedule = dataclasses.replace(schedule, share_tiles=True)
    us = estimated_us(one, schedule, schedule.columns_of_block, device)
    if schedule.warpgroups:
        return us
    count = columns * -(-spec.n // schedule.rows)
    uneven = math.ceil(count / device.multiprocessors) * device.multiprocessors / count
    read = one.n * one.k * one.bits / 8 / device.bytes_per_us
    x = count * schedule.columns * spec.k * spec.x_bytes / _X_BYTES_PER_US
    return us + max(0.0, _SM_SHARE * uneven - 1) * read + x


def _with_columns(spec: LinearSpec, division: Schedule, columns: int, device: Device) -> Schedule:
    return fitted(spec, dataclasses.replace(division, columns=columns), device)


@functools.lru_cache(maxsize=1024)
def _few_rows(spec: LinearSpec, device: Device) -> Schedule | None:
    """The division for up to `MOST_MEAN` rows of each expert; None where there is none."""

    def cost(division: Schedule) -> float:
        found = 0.0
        for hits in sorted({min(hits, spec.experts) for hits in (*_JUDGED_HITS, spec.experts)}):
            least = hits * spec.n * spec.k * spec.bits / 8 / device.bytes_per_us + device.launch_us
            found += _us_of_tiles(spec, _with_columns(spec, division, 8, device), hits, device) / least
        return found

    return min(few_row_divisions(spec, device), key=cost, default=None)


def few_row_divisions(spec: LinearSpec, device: Device = H200) -> Iterator[Schedule]:
    """Divisions for few rows, of tiles with `FEW_ROWS` columns, that fit the GPU."""
    units = (units_of_period(spec),) if has_small_groups(spec) else (1, 2)
    least = spec.products * max(1, spec.rows_of_unit // 16)
    row_tiles = [count for count in (1, 2, 3, 4, 6, 8) if count % least == 0] or [least]
    forms = itertools.product((1, 2, 4, 8), row_tiles, (1, 2, 4, 8), units, (1, 2, 4), (1, 2, 3, 4))
    for warps, tiles, slices, unit, steps, blocks_per_sm in forms:
        if not 4 <= warps * slices <= 16 or not 8 <= warps * slices * blocks_per_sm <= 16:
            continue
        draft = Schedule(
            columns=FEW_ROWS,
            warps=warps,
            stages=2,
            row_tiles=tiles,
            slices=slices,
            units=unit,
            steps=steps,
            share_tiles=False,
            blocks_per_sm=blocks_per_sm,
        )
        stage = draft.rows * draft.stage_k * spec.bits // 8
        is_small = draft.rows <= max(64, spec.n) and draft.stage_k <= max(spec.k, UNIT_K)
        is_large = stage * blocks_per_sm >= _LEAST_STREAMED_BYTES or spec.k * spec.n < _SMALL_MATRIX
        if is_small and is_large and can_stream(spec, draft) and fits(spec, draft, device):
            yield draft


@functools.lru_cache(maxsize=1024)
def _many_rows(spec: LinearSpec, rows: int, device: Device) -> Schedule | None:
    """What is best by estimate for about so many rows of each expert; None where there is none."""
    return min(
        many_row_candidates(spec, rows, device),
        key=lambda form: _us(spec, form, rows * spec.experts, device),
        default=None,
    )


def many_row_candidates(spec: LinearSpec, rows: int, device: Device = H200) -> Iterator[Schedule]:
    """Schedules for more rows, in tiles of about so many columns, and of twice and half as many."""
    one = _of_one(spec, spec.n * min(spec.experts, 64))
    spread = rows + math.ceil(2 * math.sqrt(rows))
    widths = {rows_of(max(FEW_ROWS + 1, width)) for width in (rows, spread, 2 * rows, -(-rows // 2), -(-spread // 2))}
    seen = set()
    for width in sorted(widths):
        for draft in candidates(one, width, device):
            form = dataclasses.replace(draft, share_tiles=False, aligned_shares=False, parts_type="f32")
            if draft.cluster > 1 or draft.rows > max(64, spec.n) or form in seen:
                continue
            seen.add(form)
            if has_program(spec, form, rows) and fits(spec, form, device):
                yield fitted(spec, form, device)
