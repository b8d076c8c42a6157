"""Which schedules products of planes may take: those that have a program and fit a GPU.

`candidates` lists them for a number of rows of x: extents of a tile within the constraint of `fitting`, each with as
many stages as fit and are of use. `for_rows` gives what was measured for other rows or widths the extents that fit.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Final

from lowlp.schedules.device import H200, Device

from .fitting import fits, has_warpgroups
from .program import PlanesSpec
from .shapes import PlaneSchedule
from .streams import ROW_TILES, ROWS, SLICES, STEPS, WARPS, StreamSchedule
from .warpgroups import COLUMN_TILES, COLUMNS, WARPGROUPS, WarpgroupSchedule, products_at_once
from .warpgroups import STEPS as STEPS_OF_WARPGROUPS

CLASSES: Final = (1, 4, 16, 64, 256, 1024, 4096)
"""Numbers of rows of x for which tables have schedules; between them the nearest number counts."""
_STAGES: Final = 4
"""At most: memory answers no sooner where more is asked for at once."""
_LEAST_WARPS: Final = 4
_LEAST_IDLE: Final = 1.08
"""Waves that blocks take over what they would take if none were idle, from which sharing tiles may gain."""
_MOST_STREAMED: Final = 512
"""Planes of rows of x, beyond which warpgroups are faster whatever the schedule."""


def candidates(spec: PlanesSpec, m: int, device: Device = H200) -> Iterator[PlaneSchedule]:
    """The schedules for m rows of x that fit the GPU."""
    drafts: Iterator[PlaneSchedule] = _streams(spec, m)
    if has_warpgroups(device):
        many = m * spec.x_code.bits > _MOST_STREAMED
        drafts = itertools.chain(() if many else drafts, _warpgroups(spec, m, device))
    for draft in drafts:
        if found := staged(spec, draft, device):
            yield found


def staged(spec: PlanesSpec, draft: PlaneSchedule, device: Device = H200, most: int = _STAGES) -> PlaneSchedule | None:
    """A schedule with as many stages as fit, `most` at most; None where not even two do."""
    drafts = (dataclasses.replace(draft, stages=stages) for stages in range(most, 1, -1))
    return next((found for found in drafts if fits(spec, found, device)), None)


def _extents(m: int, listed: tuple[int, ...]) -> list[int]:
    """The least extent that holds m, and the three before it."""
    last = next((place for place, extent in enumerate(listed) if extent >= m), len(listed) - 1)
    return list(listed[max(0, last - 3) : last + 1])


def _streams(spec: PlanesSpec, m: int) -> Iterator[StreamSchedule]:
    for rows, warps, row_tiles, slices, steps in itertools.product(_extents(m, ROWS), WARPS, ROW_TILES, SLICES, STEPS):
        if not _LEAST_WARPS <= warps * slices <= 16 or slices * steps > max(1, spec.units_k):
            continue
        yield StreamSchedule(rows=rows, warps=warps, row_tiles=row_tiles, slices=slices, steps=steps)


def _warpgroups(spec: PlanesSpec, m: int, device: Device) -> Iterator[WarpgroupSchedule]:
    columns = COLUMNS if m > COLUMNS[-1] else [found for found in COLUMNS if found < m + 16]
    forms = itertools.product(STEPS_OF_WARPGROUPS, (True, False), COLUMN_TILES, (0, device.multiprocessors))
    for width, warpgroups, (steps, producer, tiles, blocks) in itertools.product(columns, WARPGROUPS, forms):
        if steps > max(1, spec.units_k) or 64 * (warpgroups - 1) >= spec.n or width * (tiles - 1) >= m:
            continue
        draft = WarpgroupSchedule(width, warpgroups, steps, 2, producer, 8, tiles, blocks)
        if blocks and not _is_worth_sharing(spec, draft, m, device):
            continue
        yield with_products(spec, draft)


def with_products(spec: PlanesSpec, schedule: WarpgroupSchedule) -> WarpgroupSchedule:
    """With as many products in flight as there are registers for."""
    in_flight = products_at_once(spec, schedule.columns_of_block, schedule.steps)
    return dataclasses.replace(schedule, products_in_flight=in_flight)


def _is_worth_sharing(spec: PlanesSpec, schedule: WarpgroupSchedule, m: int, device: Device) -> bool:
    """Whether tiles that are each one block's leave much of a last wave idle."""
    tiles = -(-spec.n // schedule.rows_of_w) * -(-m // schedule.columns_of_block)
    waves = tiles / device.multiprocessors
    return math.ceil(waves) > _LEAST_IDLE * waves


def for_rows(spec: PlanesSpec, division: PlaneSchedule, m: int, device: Device = H200) -> PlaneSchedule | None:
    """A division of the work that was found for other rows or widths, with the rows of x that m needs, and no more than
    fit; None where none fit."""
    if isinstance(division, StreamSchedule):
        held = next((rows for rows in ROWS if rows >= m), ROWS[-1])
        drafts: Iterator[PlaneSchedule] = (
            dataclasses.replace(division, rows=rows, steps=steps)
            for rows in reversed(ROWS)
            if rows <= max(held, 1)
            for steps in range(min(division.steps, max(1, spec.units_k)), 0, -1)
        )
    else:
        widest = next((columns for columns in COLUMNS if columns >= m), COLUMNS[-1])
        tiles = division.column_tiles if m > division.columns else 1
        blocks = division.blocks and device.multiprocessors
        most = widest if m <= division.columns_of_block else min(widest, division.columns)
        drafts = (
            with_products(
                spec, dataclasses.replace(division, columns=columns, steps=steps, column_tiles=tiles, blocks=blocks)
            )
            for columns in reversed(COLUMNS)
            if columns <= most
            for steps in reversed(STEPS_OF_WARPGROUPS)
            if steps <= min(division.steps, max(1, spec.units_k))
        )
    return next((found for draft in drafts if (found := staged(spec, draft, device, draft.stages))), None)
