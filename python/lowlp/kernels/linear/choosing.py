"""Which schedule a kernel for `linear` takes.

`candidates` are the schedules that fit a GPU (`fitting`), `estimated_us` says what each would take
(`estimates`), and `schedule_for` chooses: what was measured for this shape and M, as `rows_of` rounds it (`measured`);
else the best by estimate, unless what was measured for a near shape or the class of M is about as good by estimate.

All M of 1 to 16 take one division of the work, of which only the columns of a tile and the depth of the pipeline
differ: so a row's products are added in one order, whatever the other rows are. With `batch_invariant` all M take
schedules of one order (`invariant`); where there is none for all of them, the division of 1 to 16.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from typing import Final

from lowlp.compiler.targets import target
from lowlp.schedules.device import H200, Device, device_like
from lowlp.weights.packing import UNIT_K

from .estimates import estimated_us, ordering_before_us, ordering_within_us
from .fitting import ending_numbers, fits, fitted
from .invariant import CLUSTERS, FOUND_BY_LARGE, JUDGED_ROWS, Order, best_order, order_of, us_alone
from .measured import Entry, MeasuredSchedules, measured_schedules, nearest
from .scaled_weights import can_scale_weights
from .schedule import ROW_TILES, STEPS, UNITS, WARPS, Schedule
from .segments import has_small_groups, units_of_period
from .spec import ORDERED_ROWS, LinearSpec
from .streaming import can_stream
from .tiles import tiles_of
from .warpgroups import can_go_wide

CLASSES: Final = (16, 32, 64, 128, 256, 1024)
"""The largest M of each class of M for which tables have a division of the work; more rows take several tiles."""

ANY_ROWS: Final = (1 << 31) - 1
"""For kernels that are compiled for any m."""
_MOST_ROWS: Final = 8192
"""More rows take the schedule of so many."""
_ABOUT: Final = 1.05
"""What was measured for a near shape is taken up to so many times the best estimate."""
_FEW: Final = 16
"""Up to so many rows, columns follow M and nothing else does."""
_STREAMED_COLUMNS: Final = (8, 16, 32)
"""Of a tile without warpgroups."""
_PLAIN_ACCUMULATORS: Final = 64 * 32
"""The most accumulators of a warp without stages: 64 of a thread."""
EXACT_ROWS: Final = 64
"""Up to so many rows, weights are not rounded for results of f32."""
_LEAST_FILLED: Final = 0.45
"""Of the blocks that could be resident, where each has a tile of its own."""
_SHARINGS: Final = ((True, 1), (False, 1), (True, 2))
"""Of tiles by warpgroups: among all blocks, not at all, between the two blocks of a cluster."""
_FOUR: Final = ((True, 4),)
"""Between four. They find SMs only where they do not come to many blocks
(docs/adr/0024-one-tile-for-a-block-or-a-cluster.md)."""
_SLICES: Final = (1, 2, 4, 8, 16)
_SCALED_OFTEN: Final = 32
"""Tiles of 64 rows times columns, of a warpgroup, whose accumulators are scaled several times in a stage."""


def class_of(m: int) -> int:
    """The class that m rows fall into."""
    return next((rows for rows in CLASSES if m <= rows), CLASSES[-1])


def rows_of(m: int) -> int:
    """For how many rows a schedule for m rows is chosen: a little more than m, so that not every m has kernels of its
    own, nor a choice."""
    if m <= 32:
        return class_of(m)
    most = min(m, _MOST_ROWS)
    step = 16 if most <= 256 else 64 if most <= CLASSES[-1] else 1 << ((most - 1).bit_length() - 3)
    return -(-most // step) * step


def schedule_for(
    spec: LinearSpec,
    m: int,
    device: Device = H200,
    batch_invariant: bool = False,
    gpu: str = "",
    among: tuple[MeasuredSchedules, ...] | None = None,
) -> Schedule:
    """The schedule for m rows of x on a GPU.

    batch_invariant  a schedule of the order of sums that all m have: a row's products are always added in the order
                     that they have alone
    gpu              the name of the GPU in use, whose measurements go before those of others; '': none is known
    among            what was measured; None: all in use; (): nothing, and estimates choose alone

    Raises `LowlpValueError` for files of LOWLP_TUNED without measured schedules.
    """
    among = measured_schedules() if among is None else among
    if batch_invariant and (order := _order(spec, device, gpu, among)):
        rows = min(rows_of(m), JUDGED_ROWS[-1])
        return for_rows(spec, _of_order(spec, rows, device, gpu, among)[order], m, device)
    rows = _FEW if batch_invariant else rows_of(m)
    found = _chosen(spec, rows, device, gpu, among)
    if not found:
        return _plain(spec, m)
    if batch_invariant:
        found = dataclasses.replace(found, share_tiles=False)
    if m == ANY_ROWS and found.warpgroups:
        # Of a tile for each block or cluster some m leave much of a wave idle.
        found = dataclasses.replace(found, share_tiles=True, cluster=1)
    return for_rows(spec, found, min(m, _FEW) if batch_invariant else m, device)


@functools.lru_cache(maxsize=4096)
def _chosen(
    spec: LinearSpec, rows: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Schedule | None:
    """The division of the work for up to `rows` rows, a number of `rows_of`; None where there is none."""
    entry = _measured(spec, class_of(rows), device, gpu, among)
    if entry and _is_of(entry, spec, rows, device, gpu):
        return _of_entry(spec, entry, device)
    best = _best(spec, rows, device)
    if not entry or not best:
        return best
    near = _of_entry(spec, entry, device)
    assert near, "entries that are of no use are not found"
    costs = [_cost(spec, for_rows(spec, division, rows, device), rows, device) for division in (near, best)]
    return near if costs[0] <= _ABOUT * costs[1] else best


def _is_of(entry: Entry, spec: LinearSpec, rows: int, device: Device, gpu: str) -> bool:
    """Whether this shape was measured with so many rows, and on this GPU, or on one that is taken to be like it."""
    is_like = entry.gpu == gpu or device == device_like(device.arch)
    return is_like and (entry.n, entry.k, entry.m) == (spec.n, spec.k, rows)


def ordered_within(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> tuple[LinearSpec, Schedule] | None:
    """The kernel that puts m rows of x in the order of permuted weights itself, in place of one that takes such rows;
    None where there is none, or where it would take longer than both that and a kernel before it.

    It adds in the same order: of the schedule only the stages differ.
    """
    rows = next((rows for rows in ORDERED_ROWS if rows and m <= rows), 0)
    within = dataclasses.replace(spec, ordered_rows=rows)
    if not rows or not schedule.stages or schedule.warpgroups or not can_stream(within, schedule):
        return None
    fit = fitted(within, schedule, device)
    if fit.blocks_per_sm != schedule.blocks_per_sm or not fits(within, fit, device):
        return None
    return None if ordering_within_us(spec, rows) > ordering_before_us(spec) else (within, fit)


def _cost(spec: LinearSpec, schedule: Schedule, rows: int, device: Device) -> float:
    """What is made least: microseconds by estimate. Small and full numbers of few rows count alike."""
    return sum(estimated_us(spec, schedule, m, device) for m in ((1, rows) if rows == _FEW else (rows,)))


@functools.lru_cache(maxsize=4096)
def _order(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> Order | None:
    """The order of sums that all M take; None where none has schedules for all of them."""
    if not target(device.arch).instructions["wgmma.mma_async"]:
        return None
    costs, plain = [], []
    for rows in JUDGED_ROWS:
        division = _chosen(spec, rows_of(rows), device, gpu, among)
        best = estimated_us(spec, for_rows(spec, division, rows, device), rows, device) if division else math.inf
        forms = _of_order(spec, rows_of(rows), device, gpu, among)
        costs.append({order: us_alone(spec, form, rows, device) for order, form in forms.items()})
        plain.append(best)
    return best_order(costs, plain)


@functools.lru_cache(maxsize=4096)
def _of_order(
    spec: LinearSpec, rows: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> dict[Order, Schedule]:
    """For up to `rows` rows, a number of `rows_of`, the schedule of each order of sums: what is chosen, if it has that
    order; else the best by estimate, also of those for more rows, so that none lacks an order that those have."""
    drafts = [draft for cluster in CLUSTERS for draft in _alone(spec, rows, cluster, device)]
    possible = [draft for draft in drafts if _has_program(spec, draft, rows) and fits(spec, draft, device)]
    forms = [fitted(spec, draft, device) for draft in possible]
    if rows not in JUDGED_ROWS:
        more = next(judged for judged in JUDGED_ROWS if judged > rows)
        forms += [for_rows(spec, form, rows, device) for form in _of_order(spec, more, device, gpu, among).values()]
    found: dict[Order, Schedule] = {}
    for form in sorted(forms, key=lambda form: us_alone(spec, form, rows, device)):
        if order := order_of(spec, form):
            found.setdefault(order, form)
    chosen = _chosen(spec, rows, device, gpu, among)
    if chosen and (order := order_of(spec, chosen)):
        found[order] = chosen
    return found


def _alone(spec: LinearSpec, rows: int, cluster: int, device: Device) -> Iterator[Schedule]:
    """Drafts by warpgroups in which a tile is one block's, or one cluster's, who finish 8 columns each."""
    for draft in _wide(spec, max(_FEW, 8 * cluster, rows), device, ((False, cluster),)):
        scales_often = draft.scales_on == "accumulators" and draft.stage_k > spec.group_size
        if scales_often and draft.row_tiles * draft.columns_of_block * draft.blocks_per_sm > _SCALED_OFTEN:
            # The assembler spills registers where it has several tiles of accumulators that are not scaled yet.
            continue
        if draft.rows <= max(64, spec.n) and draft.stage_k * draft.cluster <= spec.k:
            yield draft


def for_rows(spec: LinearSpec, division: Schedule, m: int, device: Device = H200) -> Schedule:
    """A division of the work with the columns that m rows need, and as many stages as fit."""
    if division.warpgroups:
        if m == ANY_ROWS:
            return fitted(spec, division, device)
        columns = _columns(m, division.columns, division.column_tiles, division.cluster)
        return fitted(spec, dataclasses.replace(division, columns=columns), device)
    columns = next((columns for columns in _STREAMED_COLUMNS if m <= columns), _STREAMED_COLUMNS[-1])
    if columns < _FEW:
        # As many blocks share the work as for more rows, so that sums are the same.
        blocks = fitted(spec, dataclasses.replace(division, columns=_FEW), device).blocks_per_sm
        division = dataclasses.replace(division, blocks_per_sm=blocks)
    return fitted(spec, dataclasses.replace(division, columns=columns), device)


def _columns(m: int, columns: int, column_tiles: int, cluster: int) -> int:
    """The columns of a tile of blocks as narrow as hold m rows, with no more blocks than those of `columns` and
    `column_tiles` take; each of a cluster finishes whole 8 columns of a tile."""
    return min(columns, _columns_of(m, -(-m // (columns * column_tiles)), column_tiles, cluster))


def _columns_of(m: int, blocks: int, column_tiles: int, cluster: int = 1) -> int:
    """The columns of a tile where so many blocks side by side hold m rows."""
    step = 8 * column_tiles * max(cluster, 2 // column_tiles)
    return -(-m // (blocks * step)) * step // column_tiles


def _plain(spec: LinearSpec, m: int) -> Schedule:
    """Of a kernel without stages: as few columns as hold m rows, at most those whose accumulators a thread has
    registers for, and as many warps as have units, of narrower units with more rows fewer."""
    units = -(-spec.columns_of_y // spec.rows_of_unit)
    columns = next((columns for columns in (8, 16) if m <= columns), 32)
    columns = min(columns, max(8, _PLAIN_ACCUMULATORS // spec.rows_of_unit))
    most = 4 * spec.unit_k // UNIT_K
    return Schedule(columns, max(warps for warps in (1, 2, 4) if warps <= min(units, most)))


def candidates(spec: LinearSpec, rows: int, device: Device = H200) -> Iterator[Schedule]:
    """The schedules for up to `rows` rows of x, a number of `rows_of`, that fit the GPU."""
    drafts = _streamed(spec, rows, device)
    if rows > _FEW and target(device.arch).instructions["wgmma.mma_async"]:
        is_narrow = 4 * -(-spec.n // 64) * -(-rows // 128) <= FOUND_BY_LARGE * device.multiprocessors
        wide = _wide(spec, rows, device, _SHARINGS + _FOUR * is_narrow)
        drafts = itertools.chain(drafts, wide, _wide_by_units(spec, rows))
    for draft in drafts:
        is_small = draft.rows <= max(64, spec.n) and draft.stage_k * draft.cluster <= spec.k
        if draft.warpgroups and not _is_worth_sharing(spec, draft, rows, device):
            continue
        if is_small and _has_program(spec, draft, rows) and fits(spec, draft, device):
            yield fitted(spec, draft, device)


def _is_worth_sharing(spec: LinearSpec, draft: Schedule, rows: int, device: Device) -> bool:
    """Whether tiles are shared where blocks with one each would not do, or may leave much of a last wave idle; or are
    not, where these do."""
    alone = fills(spec, dataclasses.replace(draft, share_tiles=False), rows, device.multiprocessors)
    return alone if draft.has_tile_each else not alone or rows >= CLASSES[-1]


def _has_program(spec: LinearSpec, schedule: Schedule, rows: int) -> bool:
    """Whether there is a kernel with stages, and with weights as exact as `rows` rows of x are promised to have."""
    if not schedule.warpgroups:
        return can_stream(spec, schedule)
    if schedule.scales_on == "weights" and (not spec.scales_weights or (spec.out == "f32" and rows <= EXACT_ROWS)):
        return False
    return can_go_wide(spec, schedule)


def _units(spec: LinearSpec) -> tuple[int, ...]:
    """Of a slice in a step, without warpgroups."""
    return tuple(units for units in (units_of_period(spec),) if units in UNITS) if has_small_groups(spec) else (1, 2)


def _streamed(spec: LinearSpec, rows: int, device: Device) -> Iterator[Schedule]:
    """Divisions into tiles that are each one block's, all resident at once; and into tiles that blocks share."""
    columns = min(rows, _STREAMED_COLUMNS[-1])
    unit_rows = spec.products * max(16, spec.rows_of_unit)
    for blocks_per_sm in (1, 2, 3):
        # As few rows as leave no tile for a second wave.
        resident = device.multiprocessors * blocks_per_sm
        tile_rows = -(-spec.n // (resident * unit_rows)) * unit_rows
        if -(-spec.n // tile_rows) < _LEAST_FILLED * resident and (tile_rows > unit_rows or blocks_per_sm > 1):
            continue
        for warps, slices, units, steps in itertools.product(WARPS, _SLICES, _units(spec), (1, 2)):
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
                if columns > _FEW and not fits(spec, whole, device):
                    # Two warps for each scheduler have the registers of three.
                    whole = dataclasses.replace(whole, producer=False)
                yield whole
    divisions = itertools.product((1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8), _units(spec), (1, 2, 3))
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


def _steps(spec: LinearSpec, plain: tuple[int, ...]) -> tuple[int, ...]:
    """Of a stage by warpgroups: `plain`, or where groups are no whole units, so many as are whole groups."""
    period = units_of_period(spec)
    return plain if period == 1 else tuple(steps for steps in (period, 2 * period) if steps in STEPS)


def _wide(
    spec: LinearSpec, rows: int, device: Device, sharings: tuple[tuple[bool, int], ...] = _SHARINGS
) -> Iterator[Schedule]:
    """Few rows of x are one tile of columns; many take several, whose blocks have an SM and a producer each."""
    if rows < 128:
        forms = itertools.product(_steps(spec, (2, 4, 8)), (True, False), (1, 2))
    else:
        forms = itertools.product(_steps(spec, (1, 2, 4, 8)), (True,), (1,))
    divisions = itertools.product((1, 2, 3, 4), (1, 2, 4), ("accumulators", "weights"), forms)
    for warpgroups, row_tiles, scales_on, (steps, producer, blocks) in divisions:
        draft = Schedule(
            stages=2,
            warpgroups=warpgroups,
            row_tiles=row_tiles * spec.products,
            steps=steps,
            scales_on=scales_on,
            producer=producer,
            blocks_per_sm=blocks,
        )
        for columns, column_tiles, share_tiles, cluster in _widths(spec, rows, draft.rows, device, sharings):
            columns = _columns(rows, columns, column_tiles, cluster)
            if share_tiles and cluster == 1 and not producer:
                # Without one no loads are in flight between two tiles.
                continue
            if warpgroups == 1 and (rows >= 128 or cluster == 1 or row_tiles > 1 or not producer):
                # Nothing multiplies while one alone decodes; that is worth it only for tiles of few accumulators.
                continue
            is_small = warpgroups <= 2 and row_tiles * columns <= 64 and 64 * steps <= 4 * spec.group_size
            if rows < 128 and steps == 8 and not is_small:
                # The assembler spills registers of so much straight code.
                continue
            yield dataclasses.replace(
                draft, columns=columns, column_tiles=column_tiles, share_tiles=share_tiles, cluster=cluster
            )


def _widths(
    spec: LinearSpec, rows: int, rows_of_tile: int, device: Device, sharings: tuple[tuple[bool, int], ...]
) -> Iterator[tuple[int, int, bool, int]]:
    """The columns of a tile, how many tiles a block has side by side, and how blocks take them: of as many columns as
    there are registers for, or half; and of fewer where that many more tiles fill waves better."""
    if rows < 128:
        widths = [(rows, 1)]
    else:
        widths = [(64, 1), (128, 1), (128, 2), *([(64, 2), (64, 4)] if ending_numbers(spec) else [])]
    for (columns, column_tiles), sharing in itertools.product(widths, sharings):
        yield columns, column_tiles, *sharing
    if rows < 128 or (False, 1) not in sharings:
        return
    if rows_of_tile == 192:
        yield 96, 2, False, 1
    tiles_of_rows = -(-spec.n // rows_of_tile)
    for columns, column_tiles in ((128, 1), (128, 2)):
        widest = -(-rows // (columns * column_tiles))

        def columns_in_turn(blocks: int, column_tiles: int = column_tiles) -> int:
            return -(-tiles_of_rows * blocks // device.multiprocessors) * _columns_of(rows, blocks, column_tiles)

        best = min(range(widest, widest + widest // 2 + 2), key=columns_in_turn)
        if best > widest:
            yield _columns_of(rows, best, column_tiles), column_tiles, False, 1


def _wide_by_units(spec: LinearSpec, rows: int) -> Iterator[Schedule]:
    """Where a unit has 64 rows: each warp has all of them, so that two warpgroups fill the registers."""
    if spec.rows_of_unit < 64 or rows > 64:
        return
    # The accumulators of 64 columns leave no room for a second tile of them, nor for what copies need.
    forms = (("accumulators", True), ("accumulators", False), ("weights", True)) if rows == 32 else (("weights", True),)
    for steps, (scales_on, producer), share_tiles in itertools.product(_steps(spec, (2, 4)), forms, (True, False)):
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


@functools.lru_cache(maxsize=4096)
def _best(spec: LinearSpec, rows: int, device: Device) -> Schedule | None:
    """The candidate that is best by estimate; None where there is none."""
    return min(candidates(spec, rows, device), key=lambda found: _cost(spec, found, rows, device), default=None)


# --- what was measured ------------------------------------------------------------------------------------------------


def kind_of(spec: LinearSpec) -> str:
    """What a measurement is valid for beside the shape: the type of weights or bits of a lookup table; the group, and
    the super-group of scales in two levels; and the types beside codes that are not those of `_plain_kind`."""
    codec, types = spec.codec, []
    if spec.table not in ("", "tensor"):
        types.append(f"tables:{spec.table}")
    if spec.scale != spec.activation:
        types.append(f"scales:{spec.scale}")
    if spec.super_scale:
        types.append(f"super:{spec.super_scale}")
    if spec.corrector not in ("", "int8", "uint8"):
        types.append(f"{'zeros' if spec.zeros else 'offsets'}:{spec.corrector}")
    if codec.scale2:
        types.append("scale2")
    return " ".join([_plain_kind(spec), *types])


def _plain_kind(spec: LinearSpec) -> str:
    """The kind of such weights with scales of the activation type and integer zero points, if they have zero points
    or offsets. What was measured for it is taken where nothing was for the types themselves."""
    correction = "z" if spec.corrector else ""
    group = f"g{spec.group_size if spec.groups > 1 else 0}"
    if spec.super_scale:
        group += f" of {spec.super_group_size if spec.supers > 1 else 0}"
    return f"{spec.weight}{correction} {group} {spec.activation}"


def fills(spec: LinearSpec, schedule: Schedule, rows: int, multiprocessors: int = H200.multiprocessors) -> bool:
    """Whether the tiles that are each one block's, or one cluster's, come to about one block for each that could be
    resident; or to several for each, in the class of most rows, whose blocks are long."""
    resident = multiprocessors * schedule.blocks_per_sm
    if not schedule.has_tile_each:
        return True
    if schedule.cluster > 2:
        resident = int(resident * FOUND_BY_LARGE)
    most = math.inf if rows >= CLASSES[-1] and schedule.warpgroups else resident
    return _LEAST_FILLED * resident <= tiles_of(spec, schedule, rows) * schedule.cluster <= most


def _of_entry(spec: LinearSpec, entry: Entry, device: Device) -> Schedule | None:
    """The schedule of an entry, if it is of use for such weights."""
    is_own = entry.kind == kind_of(spec)
    if not is_own and entry.schedule.scales_on == "weights" and not can_scale_weights(spec):
        # It was measured for weights that are scaled in their type.
        return None
    schedule = _for_products(spec, entry.schedule, entry.m, device)
    if (
        not schedule
        or schedule.stage_k * schedule.cluster > spec.k
        or not fills(spec, schedule, entry.m, device.multiprocessors)
    ):
        return None
    # What such weights themselves took was compiled.
    division = for_rows(spec, schedule, entry.m, device)
    return schedule if is_own or fits(spec, division, device) else None


@functools.lru_cache(maxsize=4096)
def _measured(
    spec: LinearSpec, rows: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Entry | None:
    """What was measured for the nearest shape and such weights; None where none is near."""
    kinds = dict.fromkeys([kind_of(spec), _plain_kind(spec)])
    near = itertools.chain.from_iterable(nearest(among, kind, spec.n, spec.k, rows, device.arch, gpu) for kind in kinds)
    return next((entry for entry in near if _of_entry(spec, entry, device)), None)


def measured_for_shape(spec: LinearSpec, rows: int, device: Device = H200) -> Iterator[Schedule]:
    """What was measured for this shape and up to `rows` rows of x, a number of `CLASSES`: for such weights, and for
    others where it fits these."""
    for entry in itertools.chain.from_iterable(measured.entries for measured in measured_schedules()):
        is_of_shape = (entry.n, entry.k, entry.m, entry.arch) == (spec.n, spec.k, rows, device.arch)
        if is_of_shape and (schedule := _of_entry(spec, entry, device)):
            yield for_rows(spec, schedule, rows, device)


def _for_products(spec: LinearSpec, measured: Schedule, rows: int, device: Device) -> Schedule | None:
    """What was measured for one product without an epilogue and up to `rows` rows of x, if there is a program. Gate and
    up may need as many rows each as one product had; then, and where finishing a tile takes registers, tiles are
    narrower, stages as long, or half as long, with a producer or without, as it fits."""

    def is_possible(schedule: Schedule) -> bool:
        return _has_program(spec, schedule, rows) and fits(spec, for_rows(spec, schedule, rows, device), device)

    ends_at_once = measured.warpgroups and ending_numbers(spec) > spec.products - 1
    if _has_program(spec, measured, rows) and (not ends_at_once or is_possible(measured)):
        return measured
    if spec.products == 1 and not ends_at_once:
        return None
    columns, tiles = measured.columns, measured.column_tiles
    widths = [(columns, tiles), (columns, 1), *([(64, 2 * tiles), (64, tiles)] if columns == 128 else [])]
    choices = itertools.product(
        sorted({measured.row_tiles, spec.products * measured.row_tiles}),
        widths,
        (measured.producer, False),
        (measured.steps, measured.steps // 2),
    )
    for row_tiles, (columns, tiles), producer, steps in choices:
        if steps and row_tiles in ROW_TILES:
            other = dataclasses.replace(
                measured, row_tiles=row_tiles, columns=columns, column_tiles=tiles, steps=steps, producer=producer
            )
            if is_possible(other):
                return other
    return None
