"""Which schedules a kernel for `linear` may take: those that have a program and fit a GPU.

`candidates` lists them for a number of rows of x, `for_rows` gives a division of the work the columns that so many rows
need.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Final

from lowlp.compiler.targets import target
from lowlp.schedules.device import H200, Device
from lowlp.weights.packing import UNIT_K

from .codebooks.entries import needs_second_copies
from .codebooks.program import has_books_of_tile
from .estimates import keeping_us
from .fitting import fits, fitted
from .integer_sums import begins_anew
from .invariant import FOUND_BY_LARGE
from .scaled_weights import can_scale_rows
from .schedule import KEPT_ROWS, ROW_TILES, STEPS, UNITS, WARPS, Schedule
from .segments import has_small_groups, units_of_period
from .spec import LinearSpec
from .streaming_layouts import can_scale_streamed, can_stream
from .tiles import tiles_of
from .warpgroup_layouts import can_go_wide, has_columns, whole_columns

CLASSES: Final = (16, 32, 64, 128, 256, 1024)
"""The largest M of each class of M for which tables have a division of the work; more rows take several tiles."""
_MOST_ROWS: Final = 8192
"""More rows take the schedule of so many."""
ANY_ROWS: Final = (1 << 31) - 1
"""For kernels that are compiled for any m."""
FEW_ROWS: Final = 16
"""Up to so many rows, columns follow M and nothing else does."""
_STREAMED_COLUMNS: Final = (8, 16, 32)
"""Of a tile without warpgroups."""
_UNIT_OF_TWO_TILES: Final = 32
_MOST_OF_FOUR: Final = 64
"""Tiles of 64 rows times columns, of a warpgroup of four that multiply bytes."""
_MOST_COLUMNS: Final = 256
"""Of a tile by warpgroups."""
_MOST_COLUMNS_ANEW: Final = 192
"""Where sums begin anew (`begins_anew`), whose accumulators take as many registers once more."""
_COLUMNS: Final = {128: (144, 160, 192, 224, 240, 256), 192: (112, 144, 160)}
"""Further ones by the rows of a tile, where x has as many (docs/adr/0100; of integers 0107)."""
_COLUMNS_ANEW: Final = {128: (160, 176, 192), 192: (96, 112), 256: (96,)}
"""The same where sums begin anew (docs/adr/0099, 0107)."""
_WIDEST_ANEW: Final = ((128, 1), (128, 2))
_WIDEST: Final = (*_WIDEST_ANEW, (256, 1), (152, 2))
"""The most columns of a tile, and how many lie side by side, of those that are made narrower until they divide rows
evenly or fill waves; two of 152 take two warpgroups (docs/adr/0106)."""
_NARROW_COLUMNS: Final = (56, 48, 40, 32)
"""Of a tile by warpgroups of gate and up, where none of more columns fits."""
_PLAIN_ACCUMULATORS: Final = 64 * 32
"""The most accumulators of a warp without stages: 64 of a thread."""
EXACT_ROWS: Final = 64
"""Up to so many rows, weights are not rounded for results of f32."""
_LEAST_FILLED: Final = 0.45
"""Of the blocks that could be resident, where each has a tile of its own."""
_WELL_FILLED: Final = 0.88
"""Of these blocks; tiles of one wave that come to fewer are shared too, as what is idle else may outweigh that."""
_SHARINGS: Final = ((True, 1), (False, 1), (True, 2))
"""Of tiles by warpgroups: among all blocks, not at all, between the two blocks of a cluster."""
_LARGE_CLUSTERS: Final = (4, 8)
"""Between so many. They find SMs only where they do not come to many blocks
(docs/adr/0024-one-tile-for-a-block-or-a-cluster.md)."""
_SLICES: Final = (1, 2, 4, 8, 16)


def class_of(m: int) -> int:
    """The class that m rows fall into."""
    return next((rows for rows in CLASSES if m <= rows), CLASSES[-1])


def rows_of(m: int) -> int:
    """For how many rows a schedule for m rows is chosen: a little more than m, so that not every m has kernels of its
    own, nor a choice."""
    if m <= 32:
        return class_of(m)
    most = min(m, _MOST_ROWS)
    step = max(16, 1 << ((most - 1).bit_length() - 5))
    return -(-most // step) * step


def for_rows(spec: LinearSpec, division: Schedule, m: int, device: Device = H200) -> Schedule:
    """A division of the work with the columns that m rows need, and as many stages as fit."""
    if division.warpgroups:
        if m == ANY_ROWS:
            return fitted(spec, division, device)
        columns = _columns(m, division.columns, division.column_tiles, division.cluster)
        if not has_columns(spec, columns):
            columns += 8
        return fitted(spec, dataclasses.replace(division, columns=columns), device)
    columns = next((columns for columns in _STREAMED_COLUMNS if m <= columns), _STREAMED_COLUMNS[-1])
    if columns < FEW_ROWS:
        # As many blocks share the work as for more rows, so that sums are the same.
        blocks = fitted(spec, dataclasses.replace(division, columns=FEW_ROWS), device).blocks_per_sm
        division = dataclasses.replace(division, blocks_per_sm=blocks)
    return _keeping(spec, fitted(spec, dataclasses.replace(division, columns=columns), device), m, device)


def _keeping(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> Schedule:
    """The schedule with blocks that keep m rows of x, where that takes less time; or of bytes, with stages that have
    the one row of x (docs/adr/0094). The order of sums is the same."""
    rows = next((rows for rows in KEPT_ROWS if rows and m <= rows), 0)
    if not rows or not schedule.stages:
        return schedule
    keeping = dataclasses.replace(schedule, kept_rows=rows)
    drafts = [keeping] if keeping_us(spec, keeping) < 0 else []
    if m == 1 and spec.is_of_bytes:
        drafts.append(dataclasses.replace(schedule, staged_rows=1))
    for draft in drafts:
        found = fitted(spec, draft, device)
        is_alike = found.blocks_per_sm == schedule.blocks_per_sm
        if is_alike and can_stream(spec, found) and fits(spec, found, device):
            return found
    return schedule


def _columns(m: int, columns: int, column_tiles: int, cluster: int) -> int:
    """The columns of a tile of blocks as narrow as hold m rows, with no more blocks than those of `columns` and
    `column_tiles` take; each of a cluster finishes whole 8 columns of a tile."""
    return min(columns, _columns_of(m, -(-m // (columns * column_tiles)), column_tiles, cluster))


def _columns_of(m: int, blocks: int, column_tiles: int, cluster: int = 1) -> int:
    """The columns of a tile where so many blocks side by side hold m rows."""
    step = 8 * column_tiles * max(cluster, 2 // column_tiles)
    return -(-m // (blocks * step)) * step // column_tiles


def plain_schedule(spec: LinearSpec, m: int) -> Schedule:
    """Of a kernel without stages: as few columns as hold m rows, at most those whose accumulators a thread has
    registers for, and as many warps as have units, of narrower units with more rows fewer."""
    units = -(-spec.columns_of_y // spec.rows_of_unit)
    # Bytes of x come one by one, in registers of their own: of more columns a thread has too many.
    columns = next((columns for columns in (8, 16) if m <= columns), 16 if spec.is_of_bytes else 32)
    sums = 2 if spec.vectors is None or not spec.vectors.has_book_scales else spec.vectors.books + 1
    columns = min(columns, max(8, 2 * _PLAIN_ACCUMULATORS // (sums * spec.rows_of_unit) // 8 * 8))
    most = min(units, 4 * spec.unit_k // UNIT_K)
    warps = max(warps for warps in (1, 2, 4) if warps <= most and _are_of_one_book(spec, warps))
    return Schedule(columns, warps, second_copies=needs_second_copies(spec))


def _are_of_one_book(spec: LinearSpec, warps: int) -> bool:
    return spec.vectors is None or has_books_of_tile(spec, warps * spec.rows_of_unit)


def candidates(spec: LinearSpec, rows: int, device: Device = H200) -> Iterator[Schedule]:
    """The schedules for up to `rows` rows of x, a number of `rows_of`, that fit the GPU."""
    drafts = _streamed(spec, rows, device)
    if rows > FEW_ROWS and target(device.arch).instructions["wgmma.mma_async"]:
        tiles = -(-spec.n // 64) * -(-rows // 128)
        large = [size for size in _LARGE_CLUSTERS if size * tiles <= FOUND_BY_LARGE * device.multiprocessors]
        wide = wide_drafts(spec, rows, device, (*_SHARINGS, *((True, size) for size in large)))
        drafts = itertools.chain(drafts, wide, _wide_by_units(spec, rows))
    has_wide = False
    for schedule in _that_fit(spec, rows, device, drafts):
        has_wide |= schedule.warpgroups > 0
        yield schedule
    if rows > _NARROW_COLUMNS[-1] and spec.products > 1 and not has_wide:
        yield from _that_fit(spec, rows, device, _narrow_drafts(spec, rows, device))


def _that_fit(spec: LinearSpec, rows: int, device: Device, drafts: Iterable[Schedule]) -> Iterator[Schedule]:
    """Those of some drafts that have a program and fit the GPU, with the stages that fit."""
    for draft in drafts:
        if draft.rows > max(64, spec.n) or draft.stage_k * draft.cluster > spec.k:
            continue
        if draft.warpgroups and not _is_worth_sharing(spec, draft, rows, device):
            continue
        if has_program(spec, draft, rows) and fits(spec, draft, device):
            yield fitted(spec, draft, device)


def _narrow_drafts(spec: LinearSpec, rows: int, device: Device) -> Iterator[Schedule]:
    """Divisions by warpgroups with tiles of fewer columns than `wide_drafts` has: gate and up take twice the
    accumulators, for which units of many rows may leave no room."""
    if not target(device.arch).instructions["wgmma.mma_async"]:
        return
    for draft in wide_drafts(spec, rows, device, ((True, 1), (False, 1))):
        if draft.columns == min(rows, 64) and draft.column_tiles == 1:
            narrower = (columns for columns in _NARROW_COLUMNS if columns < draft.columns)
            yield from (dataclasses.replace(draft, columns=columns) for columns in narrower)


def with_multicast(spec: LinearSpec, schedule: Schedule, rows: int, device: Device = H200) -> Schedule | None:
    """The same schedule with blocks that copy x for each other; None where there is no such kernel, or where it would
    leave half of them without a tile. It is no candidate (docs/adr/0070)."""
    if not schedule.warpgroups or schedule.multicast > 1 or spec.n <= schedule.rows:
        return None
    pairs = dataclasses.replace(schedule, multicast=2)
    return pairs if has_program(spec, pairs, rows) and fits(spec, pairs, device) else None


def _is_worth_sharing(spec: LinearSpec, draft: Schedule, rows: int, device: Device) -> bool:
    """Whether tiles are shared where blocks with one each would not do, or may leave much of a wave idle; or are not,
    where these do. Blocks of one warpgroup share tiles where these are too few."""
    alone = _would_fill(spec, draft, rows, device.multiprocessors)
    if draft.warpgroups == 1 and not draft.has_tile_each:
        return tiles_of(spec, draft, rows) < _LEAST_FILLED * device.multiprocessors
    if draft.has_tile_each:
        return alone
    resident = device.multiprocessors * draft.blocks_per_sm
    return not alone or rows >= CLASSES[-1] or tiles_of(spec, draft, rows) < _WELL_FILLED * resident


def has_program(spec: LinearSpec, schedule: Schedule, rows: int) -> bool:
    """Whether there is a kernel with stages, and with weights as exact as `rows` rows of x are promised to have."""
    if schedule.scales_on == "weights" and (not spec.scales_weights or (spec.out == "f32" and rows <= EXACT_ROWS)):
        return False
    if not schedule.warpgroups:
        return can_stream(spec, schedule)
    return can_go_wide(spec, schedule)


def units_of_step(spec: LinearSpec) -> tuple[int, ...]:
    """Of a slice, without warpgroups."""
    return tuple(units for units in (units_of_period(spec),) if units in UNITS) if has_small_groups(spec) else (1, 2)


def _streamed(spec: LinearSpec, rows: int, device: Device) -> Iterator[Schedule]:
    """Divisions without warpgroups, with scales on accumulators and, where they may be, on weights."""
    for division in _streamed_divisions(spec, rows, device):
        yield division
        if can_scale_streamed(spec):
            yield dataclasses.replace(division, scales_on="weights")


def _streamed_divisions(spec: LinearSpec, rows: int, device: Device) -> Iterator[Schedule]:
    """Into tiles that are each one block's, all resident at once; and into tiles that blocks share."""
    columns = min(rows, _STREAMED_COLUMNS[-1])
    unit_rows = spec.products * max(16, spec.rows_of_unit)
    for blocks_per_sm in (1, 2, 3):
        # As few rows as leave no tile for a second wave.
        resident = device.multiprocessors * blocks_per_sm
        tile_rows = -(-spec.n // (resident * unit_rows)) * unit_rows
        if -(-spec.n // tile_rows) < _LEAST_FILLED * resident and (tile_rows > unit_rows or blocks_per_sm > 1):
            continue
        for warps, slices, units, steps in itertools.product(WARPS, _SLICES, units_of_step(spec), (1, 2)):
            row_tiles = tile_rows // (16 * warps)
            divides = row_tiles in ROW_TILES and row_tiles * 16 * warps == tile_rows
            if divides and warps * slices >= 4 and warps * slices * blocks_per_sm <= 16:
                whole = Schedule(
                    columns=columns,
                    warps=warps,
                    stages=2,
                    row_tiles=row_tiles,
                    slices=slices,
                    units=units,
                    steps=steps,
                    blocks_per_sm=blocks_per_sm,
                    share_tiles=False,
                )
                if columns > FEW_ROWS and not fits(spec, whole, device):
                    # Two warps for each scheduler have the registers of three.
                    whole = dataclasses.replace(whole, producer=False)
                yield whole
    divisions = itertools.product((1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8), units_of_step(spec), (1, 2, 3))
    for warps, row_tiles, slices, units, blocks_per_sm in divisions:
        # Of rows that end within a unit, one slice takes all groups.
        least = 4 if spec.k % UNIT_K else 8
        if warps * slices >= 4 and least <= warps * slices * blocks_per_sm <= 16:
            yield Schedule(
                columns=columns,
                warps=warps,
                stages=2,
                row_tiles=row_tiles * spec.products,
                slices=slices,
                units=units,
                blocks_per_sm=blocks_per_sm,
            )


def steps_of_stage(spec: LinearSpec, plain: tuple[int, ...]) -> tuple[int, ...]:
    """Of a stage by warpgroups: `plain`, or where groups are no whole units, so many as are whole groups."""
    period = units_of_period(spec)
    return plain if period == 1 else tuple(steps for steps in (period, 2 * period) if steps in STEPS)


def places_of_scales(spec: LinearSpec) -> tuple[str, ...]:
    """What scales may be multiplied with, by warpgroups."""
    return ("accumulators", "weights", *(["rows"] if can_scale_rows(spec) else []))


def wide_drafts(
    spec: LinearSpec, rows: int, device: Device, sharings: tuple[tuple[bool, int], ...] = _SHARINGS
) -> Iterator[Schedule]:
    """Divisions by warpgroups no larger than the weights. Few rows of x are one tile of columns; many take several,
    whose blocks have an SM and a producer each."""
    if rows < 128:
        forms = itertools.product(steps_of_stage(spec, (2, 4, 8)), (True, False), (1, 2))
    else:
        forms = itertools.product(steps_of_stage(spec, (1, 2, 4, 8)), (True,), (1,))
    divisions = itertools.product((1, 2, 3, 4), (1, 2, 4), places_of_scales(spec), forms)
    for warpgroups, row_tiles, scales_on, (steps, producer, blocks) in divisions:
        rows_of_tile = 64 * warpgroups * row_tiles * spec.products
        if rows_of_tile > max(64, spec.n):
            continue
        for columns, column_tiles, share_tiles, cluster in _widths(spec, rows, rows_of_tile, device, sharings):
            if UNIT_K * steps * cluster > spec.k:
                continue
            # Of a cluster each block ends whole 8 columns, which may be more than rows are.
            columns = _columns(rows, whole_columns(columns, cluster), column_tiles, cluster)
            columns += 0 if has_columns(spec, columns) else 8
            if columns > (_MOST_COLUMNS_ANEW if begins_anew(spec) else _MOST_COLUMNS):
                continue
            if share_tiles and cluster == 1 and not producer:
                # Without one no loads are in flight between two tiles.
                continue
            is_alone = warpgroups == 1 and row_tiles == 1 and producer
            if warpgroups == 1 and not (is_alone and _takes_alone(rows, share_tiles, cluster, blocks)):
                # Nothing multiplies while one alone decodes; that is worth it only for tiles of few accumulators.
                continue
            if spec.is_of_bytes and warpgroups == 4 and row_tiles * columns > _MOST_OF_FOUR:
                # A thread has 128 registers; fragments of bytes take some beside accumulators.
                continue
            is_small = warpgroups <= 2 and row_tiles * columns <= 64 and 64 * steps <= 4 * spec.group_size
            if rows < 128 and steps == 8 and not is_small:
                # The assembler spills registers of so much straight code.
                continue
            for aligned in (False, True) if rows >= 128 and share_tiles and cluster == 1 else (False,):
                yield Schedule(
                    columns=columns,
                    stages=2,
                    warpgroups=warpgroups,
                    row_tiles=row_tiles * spec.products,
                    steps=steps,
                    scales_on=scales_on,
                    producer=producer,
                    blocks_per_sm=blocks,
                    column_tiles=column_tiles,
                    share_tiles=share_tiles,
                    cluster=cluster,
                    aligned_shares=aligned,
                )


def _takes_alone(rows: int, share_tiles: bool, cluster: int, blocks_per_sm: int) -> bool:
    """Whether a block of one warpgroup is worth trying: in clusters; or alone on a multiprocessor, for narrow weights
    whose tiles are shared."""
    return rows < 128 and (cluster > 1 or (share_tiles and rows > EXACT_ROWS and blocks_per_sm == 1))


def _widths(
    spec: LinearSpec, rows: int, rows_of_tile: int, device: Device, sharings: tuple[tuple[bool, int], ...]
) -> Iterator[tuple[int, int, bool, int]]:
    """The columns of a tile, how many tiles a block has side by side, and how blocks take them: of as many columns as
    there are registers for, or half; and of such as divide rows evenly, or fill waves."""
    if rows < 128:
        widths = [(rows, 1)]
    else:
        widths = [(64, 1), (128, 1), (128, 2), *([(64, 2), (64, 4)] if spec.ending_numbers else [])]
    if rows > 32 and begins_anew(spec) and spec.rows_of_unit > _UNIT_OF_TWO_TILES:
        # A warp has units whole, and beside their accumulators those of a group.
        widths.append((32, 1))
    if rows >= 128:
        further_columns = (_COLUMNS_ANEW if begins_anew(spec) else _COLUMNS).get(rows_of_tile, ())
        widths += [(columns, 1) for columns in further_columns if columns <= rows]
    for (columns, column_tiles), sharing in itertools.product(widths, sharings):
        yield columns, column_tiles, *sharing
    if rows < 128 or (False, 1) not in sharings:
        return
    each = [sharing for sharing in sharings if sharing[1] == 1]
    if rows_of_tile == 192:
        yield from ((96, 2, *sharing) for sharing in each)
    tiles_of_rows = -(-spec.n // rows_of_tile)
    further: dict[tuple[int, int], None] = {}
    for columns, column_tiles in _WIDEST_ANEW if begins_anew(spec) else _WIDEST:
        widest = -(-rows // (columns * column_tiles))

        def columns_in_turn(blocks: int, column_tiles: int = column_tiles) -> int:
            return -(-tiles_of_rows * blocks // device.multiprocessors) * _columns_of(rows, blocks, column_tiles)

        best = min(range(widest, widest + widest // 2 + 2), key=columns_in_turn)
        further.update({(_columns_of(rows, blocks, column_tiles), column_tiles): None for blocks in (widest, best)})
    for width in further:
        if width not in widths:
            yield from ((*width, *sharing) for sharing in each)


def _wide_by_units(spec: LinearSpec, rows: int) -> Iterator[Schedule]:
    """Where a unit has 64 rows: each warp has all of them, so that two warpgroups fill the registers."""
    if spec.rows_of_unit < 64 or rows > 64:
        return
    # The accumulators of 64 columns leave no room for a second tile of them, nor for what copies need.
    forms = (("accumulators", True), ("accumulators", False), ("weights", True)) if rows == 32 else (("weights", True),)
    for steps, (scales_on, producer), share_tiles in itertools.product(
        steps_of_stage(spec, (2, 4)), forms, (True, False)
    ):
        if share_tiles and not producer:
            continue
        yield Schedule(
            columns=rows,
            stages=2,
            warpgroups=2,
            row_tiles=4 * spec.products,
            steps=steps,
            scales_on=scales_on,
            producer=producer,
            share_tiles=share_tiles,
            products_in_flight=1 if scales_on == "accumulators" else 2,
        )


def fills(spec: LinearSpec, schedule: Schedule, rows: int, multiprocessors: int = H200.multiprocessors) -> bool:
    """Whether tiles are shared, or come to about one block for each that could be resident where they are each one
    block's, or one cluster's; or to several for each, in the class of most rows, whose blocks are long."""
    return not schedule.has_tile_each or _would_fill(spec, schedule, rows, multiprocessors)


def _would_fill(spec: LinearSpec, schedule: Schedule, rows: int, multiprocessors: int) -> bool:
    """As `fills`, were each tile one block's, or one cluster's."""
    resident = multiprocessors * schedule.blocks_per_sm
    if schedule.cluster > 2:
        resident = int(resident * FOUND_BY_LARGE)
    most = math.inf if rows >= CLASSES[-1] and schedule.warpgroups else resident
    blocks = tiles_of(spec, schedule, rows) * schedule.cluster * schedule.multicast
    return _LEAST_FILLED * resident <= blocks <= most
