"""Which schedule a kernel for experts takes: by how many rows of x there are for each on average, which the host knows.

What was measured goes first (`experts_measured`). Else what it would take is estimated for rows that choose experts by
themselves, each as likely or by Zipf's law: the mean of both (`experts_estimates`).

Up to `MOST_MEAN` rows for each expert there is one division of the work, of which only the columns of a tile and the
depth of the pipeline follow the number of rows: a row's products are added in one order. The division is that which is
best for few experts and for many. More rows take what is best for their number, tiles by warpgroups or not.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Final

from lowlp.compiler.targets import target
from lowlp.schedules.device import H200, Device

from .candidates import FEW_ROWS, has_program, plain_schedule, rows_of
from .experts_candidates import few_row_divisions, wide_divisions
from .experts_estimates import us_of, us_of_tiles
from .experts_measured import measured_schedule
from .fitting import fits, fitted
from .schedule import Schedule
from .spec import LinearSpec
from .streaming_layouts import can_stream

MOST_MEAN: Final = 8
"""Rows of x for each expert on average, up to which all numbers of rows add products in one order."""
_FEW_COLUMNS: Final = (8, FEW_ROWS)
_MORE_COLUMNS: Final = (FEW_ROWS, 32)
_MOST_STREAMED: Final = 32
"""Rows of each expert, up to which tiles without warpgroups are tried."""
_JUDGED_HITS: Final = (4, 16, 64)
"""Experts that a row each goes to, for which a division for few rows is judged, beside all of them; then two rows of
each, and as many as there may be."""


def schedule_for_experts(spec: LinearSpec, m: int, device: Device = H200) -> Schedule:
    """The schedule for m rows of x that are divided among the experts of `spec`."""
    mean = m / spec.experts
    if mean <= MOST_MEAN:
        found = _few_rows(spec, device)
        if found is None:
            return plain_schedule(_of_one(spec), max(1, math.ceil(mean)))
        forms = [_with_columns(spec, found, columns, device) for columns in _FEW_COLUMNS]
        return min(forms, key=lambda form: us_of(spec, form, max(1, m), device))
    found = _many_rows(spec, _rounded(mean), device)
    # The assembler spills registers of wider tiles without stages, which stand in a loop here.
    return plain_schedule(_of_one(spec), FEW_ROWS) if found is None else found


def rows_of_tile(spec: LinearSpec, schedule: Schedule) -> int:
    """Rows of y^T of a tile, whatever kernel it is."""
    if schedule.stages:
        return schedule.rows // spec.products
    return schedule.warps * spec.rows_of_unit


def _rounded(mean: float) -> int:
    """A little more than so many rows, so that not every number has kernels of its own."""
    return rows_of(math.ceil(mean))


def _of_one(spec: LinearSpec) -> LinearSpec:
    """The same for one matrix."""
    return dataclasses.replace(spec, experts=0)


def _with_columns(spec: LinearSpec, division: Schedule, columns: int, device: Device) -> Schedule:
    return fitted(spec, dataclasses.replace(division, columns=columns), device)


@functools.lru_cache(maxsize=1024)
def _few_rows(spec: LinearSpec, device: Device) -> Schedule | None:
    """The division for up to `MOST_MEAN` rows of each expert; None where there is none."""
    known = measured_schedule(spec, 0)
    if known is not None and can_stream(spec, known) and fits(spec, known, device):
        return known
    divisions = list(few_row_divisions(spec, device))
    if not divisions:
        return None
    narrow, wide = ([_with_columns(spec, form, columns, device) for form in divisions] for columns in _FEW_COLUMNS)
    hits = sorted({min(hits, spec.experts) for hits in (*_JUDGED_HITS, spec.experts)})
    judged = [[us_of_tiles(spec, form, hit, hit, hit, device) for form in narrow] for hit in hits]
    judged.append([us_of(spec, form, 2 * spec.experts, device) for form in narrow])
    judged.append([us_of(spec, form, MOST_MEAN * spec.experts, device) for form in wide])
    costs = [
        sum(us / min(all_us) for us, all_us in zip(each, judged, strict=True)) for each in zip(*judged, strict=True)
    ]
    return divisions[min(range(len(divisions)), key=costs.__getitem__)]


@functools.lru_cache(maxsize=1024)
def _many_rows(spec: LinearSpec, rows: int, device: Device) -> Schedule | None:
    """What is best for about so many rows of each expert, as measured or else by estimate; None where there is none."""
    known = measured_schedule(spec, rows)
    has_units = target(device.arch).instructions["wgmma.mma_async"]
    if known is not None and (has_units or not known.warpgroups) and has_program(spec, known, rows):
        return fitted(spec, known, device)
    return min(
        many_row_candidates(spec, rows, device),
        key=lambda form: us_of(spec, form, rows * spec.experts, device),
        default=None,
    )


def many_row_candidates(spec: LinearSpec, rows: int, device: Device = H200) -> Iterator[Schedule]:
    """Schedules for about so many rows of each expert."""
    found = False
    for form in wide_divisions(spec, rows, device):
        found = True
        yield form
    if rows > _MOST_STREAMED and found:
        return
    for division, columns in itertools.product(few_row_divisions(spec, device), _MORE_COLUMNS):
        form = _with_columns(spec, division, columns, device)
        if fits(spec, form, device):
            yield form
