"""Which schedules a kernel for experts may take: divisions for few rows of each, and tiles by warpgroups for many.

A tile by warpgroups has as many columns as an expert has rows, and some more: so that few experts take a second one,
and few columns are beyond the rows. Or half or a third as many, where a thread has no registers for all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Final

from lowlp.compiler.targets import target
from lowlp.schedules.device import H200, Device
from lowlp.weights.packing import UNIT_K

from .candidates import FEW_ROWS, has_program, places_of_scales, steps_of_stage, units_of_step
from .fitting import fits, fitted
from .schedule import Schedule
from .spec import LinearSpec
from .streaming_layouts import can_stream
from .warpgroup_layouts import has_columns

_LEAST_STREAMED_BYTES: Final = 16 * 1024
"""Of the stages of an SM, with which memory is kept busy; but for matrices of few weights."""
_SMALL_MATRIX: Final = 1 << 18
_MOST_COLUMNS: Final = 128
"""Of one of the tiles of columns of a block by warpgroups."""
_SPREADS: Final = (0, 1, 2, 3)
"""Standard deviations of the number of rows of an expert, by which a tile is wider than the mean."""


def streamed_draft(warps: int, row_tiles: int, slices: int, units: int, steps: int, blocks_per_sm: int) -> Schedule:
    """A division for few rows, whose stages are yet to be fitted."""
    return Schedule(
        columns=FEW_ROWS,
        warps=warps,
        stages=2,
        row_tiles=row_tiles,
        slices=slices,
        units=units,
        steps=steps,
        share_tiles=False,
        blocks_per_sm=blocks_per_sm,
    )


def wide_draft(
    warpgroups: int, row_tiles: int, columns: int, column_tiles: int, steps: int, scales_on: str
) -> Schedule:
    """A division by warpgroups, whose stages are yet to be fitted."""
    return Schedule(
        columns=columns,
        stages=2,
        warpgroups=warpgroups,
        row_tiles=row_tiles,
        steps=steps,
        scales_on=scales_on,
        column_tiles=column_tiles,
        share_tiles=False,
    )


def few_row_divisions(spec: LinearSpec, device: Device = H200) -> Iterator[Schedule]:
    """Divisions for few rows, of tiles with `FEW_ROWS` columns, that fit the GPU."""
    least = spec.products * max(1, spec.rows_of_unit // 16)
    row_tiles = [count for count in (1, 2, 3, 4, 6, 8) if count % least == 0] or [least]
    forms = itertools.product((1, 2, 4, 8), row_tiles, (1, 2, 4, 8), units_of_step(spec), (1, 2, 4), (1, 2, 3, 4))
    for warps, tiles, slices, unit, steps, blocks_per_sm in forms:
        if not 4 <= warps * slices <= 16 or not 8 <= warps * slices * blocks_per_sm <= 16:
            continue
        draft = streamed_draft(warps, tiles, slices, unit, steps, blocks_per_sm)
        stage = draft.rows * draft.stage_k * spec.bits // 8
        is_small = draft.rows <= max(64, spec.n) and draft.stage_k <= max(spec.k, UNIT_K)
        is_large = stage * blocks_per_sm >= _LEAST_STREAMED_BYTES or spec.k * spec.n < _SMALL_MATRIX
        if is_small and is_large and can_stream(spec, draft) and fits(spec, draft, device):
            yield draft


def widths_of(mean: float) -> list[int]:
    """Columns of a tile for about so many rows of each expert."""
    wanted = (mean + spread * math.sqrt(mean) for spread in _SPREADS)
    found = {-(-math.ceil(rows / parts) // 8) * 8 for rows, parts in itertools.product(wanted, (1, 2, 3))}
    return sorted(width for width in found if FEW_ROWS <= width <= 2 * _MOST_COLUMNS)


def wide_divisions(spec: LinearSpec, mean: float, device: Device = H200) -> Iterator[Schedule]:
    """Tiles by warpgroups for about so many rows of each expert, that have a program and fit the GPU."""
    if not target(device.arch).instructions["wgmma.mma_async"]:
        return
    forms = itertools.product(
        (2, 3, 4),
        (1, 2, 4),
        places_of_scales(spec),
        steps_of_stage(spec, (1, 2, 4, 8)),
        itertools.product(widths_of(mean), (1, 2)),
    )
    for warpgroups, row_tiles, scales_on, steps, (width, column_tiles) in forms:
        columns = width // column_tiles
        if width % (8 * column_tiles) or columns > _MOST_COLUMNS or (column_tiles == 2 and width < 64):
            continue
        columns += 0 if has_columns(spec, columns) else 8
        draft = wide_draft(warpgroups, row_tiles * spec.products, columns, column_tiles, steps, scales_on)
        is_small = draft.rows <= max(64, spec.n) and draft.stage_k <= max(spec.k, UNIT_K)
        if is_small and has_program(spec, draft, math.ceil(mean)) and fits(spec, draft, device):
            yield fitted(spec, draft, device)
