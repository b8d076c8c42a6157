"""Which schedule a product by warpgroups with codebooks takes: the best by estimate (`wide_estimates`)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lowlp.schedules.device import Device
from lowlp_runtime.vector_order import LANES

from ..candidates import EXACT_ROWS, rows_of
from ..parts import UNIT_K
from ..schedule import STEPS, Schedule
from ..spec import LinearSpec
from ..warpgroup_layouts import LONG_COLUMNS, whole_columns
from .blocks_at_once import has_blocks_at_once
from .entries import are_global, bytes_of_entries, has_large_books, has_second_copies
from .schedules import codebook_us
from .wide import can_look_up_wide
from .wide_estimates import wide_us
from .wide_room import has_long_tile, has_room, room_for_books

_AS_THEY_ARE: Final = 256
"""Rows of x up to which each number has a schedule."""
_WORTH_OF_GLOBAL: Final = 0.86
"""Of the time of a kernel without warpgroups that one with them may take, by estimate, to be chosen, with up to
`EXACT_ROWS` rows and of books that stay in global memory (docs/adr/0119)."""
_WORTH_OF_ROUNDED: Final = 0.6
"""The same with more rows of one that rounds sums of books: what small weights would save is not worth that."""
_SLICES: Final = (1, 2, 4)
"""Of a stage, with up to `EXACT_ROWS` rows."""
_STEPS_AT_ONCE: Final = ((8, 4), (2,))
"""Of a stage that has four blocks at once, with up to `EXACT_ROWS` rows, and with more."""
_MOST_SLICED: Final = 32
"""Rows up to which stages have slices without clusters."""
_SHARINGS: Final = ((True, 1), (False, 1), (False, 2))
"""Of tiles: among all blocks, not at all, and with up to `EXACT_ROWS` rows between the two blocks of a cluster. Four
leave multiprocessors idle (docs/adr/0119)."""


def wide_codebook_schedule(spec: LinearSpec, m: int, splits: int, device: Device) -> Schedule | None:
    """The schedule by warpgroups for m rows of x, more than `FEW_ROWS`; None where there is none, or where `mma.sync`
    with so many parts of K takes less."""
    rows = m if m <= _AS_THEY_ARE else rows_of(m)
    without = codebook_us(spec, rows, device, splits)
    found = _least(spec, (rows,), device)
    if m > EXACT_ROWS and found and found[1].scales_on == "weights" and found[0] > _WORTH_OF_ROUNDED * without:
        found = _least(replace(spec, scales_weights=False), (rows,), device)
    worth = _WORTH_OF_GLOBAL if m <= EXACT_ROWS and are_global(spec) else 1.0
    return found[1] if found and found[0] <= worth * without else None


def few_rows_schedule(spec: LinearSpec, rows: tuple[int, ...], device: Device) -> tuple[float, Schedule] | None:
    """The schedule by warpgroups for up to `FEW_ROWS` rows of x, the last of `rows`, in one order of sums, that takes
    least for `rows` rows together, after the microseconds that it takes for them; None where there is none. Books that
    stay in global memory have none: kernels without warpgroups keep some of their entries in shared memory
    (docs/adr/0115)."""
    return None if are_global(spec) else _least(spec, rows, device)


@functools.lru_cache(maxsize=1024)
def _least(spec: LinearSpec, rows: tuple[int, ...], device: Device) -> tuple[float, Schedule] | None:
    """Of the drafts for the last of `rows`, the most, the one that takes least for all of these together, after its
    microseconds."""

    def us(draft: Schedule) -> float:
        return sum(wide_us(spec, with_columns_for(draft, m), m, device) for m in rows)

    found = [(us(draft), number, draft) for number, draft in enumerate(_drafts(spec, rows[-1], device))]
    if not found:
        return None
    least, _, schedule = min(found)
    return least, schedule


def with_columns_for(schedule: Schedule, m: int) -> Schedule:
    """The schedule by warpgroups with as few columns as hold m rows, where all are in one tile."""
    return replace(schedule, columns=whole_columns(m, schedule.cluster)) if m <= EXACT_ROWS else schedule


def _drafts(spec: LinearSpec, m: int, device: Device) -> Iterator[Schedule]:
    """Those that have a program and fit."""
    # Of those that are estimated alike the first is taken.
    warpgroups_of_block = (2, 1, 4, 3) if m <= EXACT_ROWS else (2, 1)
    steps_of_stage = (4, 2, 1) if m <= EXACT_ROWS else (1, 2, 4)
    sharings = _SHARINGS if m <= EXACT_ROWS else _SHARINGS[:2]
    divisions = [
        (warpgroups, slices, steps, 1)
        for slices in (_SLICES if m <= EXACT_ROWS else (1,))
        for warpgroups in warpgroups_of_block
        if warpgroups % slices == 0
        for steps in (steps_of_stage if slices == 1 else _steps_of_slices(spec, slices))
    ]
    if has_blocks_at_once(spec):
        divisions += [
            (warpgroups, 1, steps, LANES)
            for warpgroups in warpgroups_of_block
            for steps in _STEPS_AT_ONCE[m > EXACT_ROWS]
        ]
    placings = itertools.product(divisions, (1, 2, 4), sharings, (4, 3, 2), ("weights", "accumulators"))
    for (columns, tiles), placing in itertools.product(_widths(m, has_large_books(spec)), placings):
        (warpgroups, slices, steps, blocks_at_once), row_tiles, (share_tiles, cluster), stages, scales_on = placing
        # With more rows they would copy x too often but for small weights.
        if slices > 1 and m > _MOST_SLICED and cluster == 1:
            continue
        draft = Schedule(
            whole_columns(columns, cluster),
            cluster=cluster,
            stages=stages,
            warpgroups=warpgroups,
            slices=slices,
            row_tiles=row_tiles * spec.products,
            steps=steps,
            column_tiles=tiles,
            share_tiles=share_tiles,
            scales_on=scales_on,
            blocks_at_once=blocks_at_once,
        )
        is_exact = spec.scales_weights and (spec.out != "f32" or m > EXACT_ROWS)
        if scales_on == "weights" and not is_exact:
            continue
        # One long tile gains where entries are added before.
        if scales_on != "weights" and has_long_tile(draft):
            continue
        if not _may_fit(spec, draft, device):
            continue
        for second_copies in (True, False) if has_second_copies(spec) else (False,):
            made = replace(draft, second_copies=second_copies)
            if second_copies and room_for_books(spec, made, device) < bytes_of_entries(spec, second_copies):
                continue
            if can_look_up_wide(spec, made) and has_room(spec, made, m, device):
                yield made


def _steps_of_slices(spec: LinearSpec, slices: int) -> list[int]:
    """Steps of a stage that has one or two units of packed weights for each slice."""
    of_units = slices * spec.unit_k // UNIT_K
    return [steps for steps in (of_units, 2 * of_units) if steps in STEPS]


def _widths(m: int, are_large: bool) -> list[tuple[int, int]]:
    """Columns of a tile of a product and how many of these a block has, by as few blocks as hold m rows."""
    if m <= 128:
        return [(-(-m // (8 * blocks)) * 8, 1) for blocks in ((1, 2) if m > 64 else (1,))]
    found = []
    # Beside large books narrower tiles have room for a stage more.
    long = [(2 * LONG_COLUMNS, 1)] if m > 2 * LONG_COLUMNS else []
    for columns, tiles in ((128, 2), *long, (128, 1), (64, 1), (64, 2), *([(96, 2)] if are_large else [])):
        blocks = -(-m // (columns * tiles))
        found.append((-(-m // (blocks * 8 * tiles)) * 8, tiles))
    return list(dict.fromkeys(found))


def _may_fit(spec: LinearSpec, schedule: Schedule, device: Device) -> bool:
    """What tells most drafts that do not fit, at once."""
    accumulators = schedule.row_tiles * schedule.columns_of_block // 2
    x_bytes = schedule.stages * schedule.columns_of_block * schedule.stage_k * 2
    if schedule.cluster * schedule.stage_k > spec.k:
        return False
    return accumulators <= 128 and x_bytes <= device.shared_bytes and schedule.rows <= max(64, 2 * spec.n)
