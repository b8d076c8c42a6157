"""Which schedule a kernel for `linear` takes.

`candidates` are the schedules that fit a GPU (`fitting`), `estimated_us` says what each would take
(`estimates`), and `schedule_for` chooses: what was measured for this shape and M, as `rows_of` rounds it (`measured`);
else the best by estimate, unless what was measured for a near shape or the class of M is about as good by estimate.

All M of 1 to 16 take one division of the work, of which only the columns of a tile and the depth of the pipeline
differ, but for partial sums of codebooks, which one and two rows may take: so a row's products are added in one order,
whatever the other rows are. With `batch_invariant` all M take schedules of one order (`invariant`); where there is none
for all of them, the division of 1 to 16.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Iterator
from typing import Final

from lowlp.compiler.targets import target
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.host_array import FLOAT_DTYPES
from lowlp.schedules.device import H200, Device, device_like

from .candidates import (
    ANY_ROWS,
    FEW_ROWS,
    candidates,
    class_of,
    fills,
    for_rows,
    has_program,
    plain_schedule,
    rows_of,
    wide_drafts,
)
from .codebooks.choosing import book_choice, reason_for_books
from .estimates import estimated_us, ordering_before_us, ordering_within_us
from .fitting import fits, fitted
from .invariant import CLUSTERS, JUDGED_ROWS, Order, best_order, order_of, us_alone
from .measured import Entry, MeasuredSchedules, measured_schedules, nearest
from .scaled_weights import can_scale_weights
from .schedule import ROW_TILES, Schedule
from .spec import ORDERED_ROWS, LinearSpec
from .streaming_layouts import can_stream

_ABOUT: Final = 1.05
"""What was measured for a near shape is taken up to so many times the best estimate."""
_MUCH: Final = 1.5
"""Factor between a scaled time and an estimate of the same kernel from which reasons say so."""
_SCALED_OFTEN: Final = 32
"""Tiles of 64 rows times columns, of a warpgroup, whose accumulators are scaled several times in a stage."""


def schedule_for(
    spec: LinearSpec,
    m: int,
    device: Device = H200,
    batch_invariant: int = False,
    gpu: str = "",
    among: tuple[MeasuredSchedules, ...] | None = None,
) -> Schedule:
    """The schedule for m rows of x on a GPU.

    batch_invariant  a schedule of the order of sums that all m have: a row's products are always added in the order
                     that they have alone. More than 1: in that of weights with so many rows, of which these are some
    gpu              the name of the GPU in use, whose measurements go before those of others; '': none is known
    among            what was measured; None: all in use; (): nothing, and estimates choose alone

    Raises `LowlpValueError` for files of LOWLP_TUNED without measured schedules.
    """
    whole = dataclasses.replace(spec, n=batch_invariant) if batch_invariant > 1 else spec
    among = measured_schedules() if among is None else among
    if spec.vectors:
        # Their kernels without warpgroups add in the same order for every m.
        return book_choice(spec, m, device, whole, bool(batch_invariant), gpu, among).schedule
    if batch_invariant and (order := _order(whole, device, gpu, among)):
        rows = min(rows_of(m), JUDGED_ROWS[-1])
        forms = _of_order(spec, rows, device, gpu, among)
        # Tiles of the whole weights may have more rows than some of these, which then have none of that order.
        form = forms.get(order) or _of_order(whole, rows, device, gpu, among)[order]
        return for_rows(spec, form, m, device)
    rows = FEW_ROWS if batch_invariant else rows_of(m)
    found = _chosen(whole, rows, device, gpu, among)
    if not found:
        return plain_schedule(spec, m)
    if batch_invariant:
        found = dataclasses.replace(found, share_tiles=False)
    if m == ANY_ROWS and found.warpgroups:
        # Of a tile for each block or cluster some m leave much of a wave idle.
        found = dataclasses.replace(found, share_tiles=True, cluster=1)
    return for_rows(spec, found, min(m, FEW_ROWS) if batch_invariant else m, device)


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


def reason_for(
    spec: LinearSpec,
    m: int,
    device: Device = H200,
    gpu: str = "",
    among: tuple[MeasuredSchedules, ...] | None = None,
) -> str:
    """Why `schedule_for` takes the schedule that it takes without `batch_invariant`, in words."""
    among = measured_schedules() if among is None else among
    if spec.vectors:
        reason = reason_for_books(spec, m, device, gpu, among)
        return reason if isinstance(reason, str) else _as_measured(reason)
    rows = rows_of(m)
    found, entry = _chosen(spec, rows, device, gpu, among), _measured(spec, class_of(rows), device, gpu, among)
    if found is None:
        return "by rule: no schedule with stages fits"
    if entry and _is_of(entry, spec, rows, device, gpu):
        return _as_measured(entry)
    us = _cost(spec, for_rows(spec, found, rows, device), rows, device) / (2 if rows == FEW_ROWS else 1)
    best = f"by estimate, {us:.1f} us"
    if entry is None:
        return f"{best}: nothing was measured near"
    near = f"{entry.kind} {entry.n}x{entry.k} M <= {entry.m} on {entry.gpu}"
    if found != _of_entry(spec, entry, device):
        return f"{best}: what {near} took would take longer"
    return f"as near {near}" + _scaled(spec, entry, rows, us, device)


def expected_us(
    spec: LinearSpec,
    m: int,
    device: Device = H200,
    gpu: str = "",
    among: tuple[MeasuredSchedules, ...] | None = None,
) -> float | None:
    """Microseconds of m rows of x with the schedule that `schedule_for` takes without `batch_invariant`: measured, else
    by estimate; None where it is a schedule by rule."""
    among = measured_schedules() if among is None else among
    rows = rows_of(m)
    found, entry = _chosen(spec, rows, device, gpu, among), _measured(spec, class_of(rows), device, gpu, among)
    if found is None:
        return None
    if m == rows and entry and entry.us and _is_of(entry, spec, rows, device, gpu):
        return entry.us
    return estimated_us(spec, for_rows(spec, found, m, device), m, device)


def _as_measured(entry: Entry) -> str:
    return f"measured on {entry.gpu} for this shape, M <= {entry.m}" + (f": {entry.us:.1f} us" if entry.us else "")


def _scaled(spec: LinearSpec, entry: Entry, rows: int, us: float, device: Device) -> str:
    """What an entry's time comes to for another shape or width, and whether the estimate is far from that."""
    if not entry.us or rows == FEW_ROWS:
        return ""
    width = re.match(r"[a-z]+(\d)", entry.kind) if spec.is_of_integers else None
    there = _like(spec, int(width[1]), spec.scale) if width else spec
    there = dataclasses.replace(there, n=entry.n, k=entry.k)
    schedule = for_rows(there, entry.schedule, entry.m, device)
    scaled = entry.us * us / _cost(there, schedule, entry.m, device)
    text = f" ({entry.us:.1f} us, scaled {scaled:.1f})"
    if not 1 / _MUCH <= scaled / us <= _MUCH:
        text += f"; far from the estimate, {us:.1f} us: measure it with lowlp.tune_linear"
    return text


def _is_of(entry: Entry, spec: LinearSpec, rows: int, device: Device, gpu: str) -> bool:
    """Whether such weights of this shape were measured with so many rows, and on this GPU, or on one that is taken to
    be like it."""
    is_like = entry.gpu == gpu or device == device_like(device.arch)
    is_kind = entry.kind in (kind_of(spec), _plain_kind(spec))
    return is_like and is_kind and (entry.n, entry.k, entry.m) == (spec.n, spec.k, rows)


def ordered_within(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> tuple[LinearSpec, Schedule] | None:
    """The kernel that puts m rows of x in the order of permuted weights itself, in place of one that takes such rows;
    None where there is none, or where it would take longer than both that and a kernel before it.

    It adds in the same order: of the schedule only the stages differ.
    """
    rows = next((rows for rows in ORDERED_ROWS if rows and m <= rows), 0)
    within, schedule = dataclasses.replace(spec, ordered_rows=rows), dataclasses.replace(schedule, kept_rows=0)
    if not rows or not schedule.stages or schedule.warpgroups or not can_stream(within, schedule):
        return None
    fit = fitted(within, schedule, device)
    if fit.blocks_per_sm != schedule.blocks_per_sm or not fits(within, fit, device):
        return None
    return None if ordering_within_us(spec, rows) > ordering_before_us(spec) else (within, fit)


def _cost(spec: LinearSpec, schedule: Schedule, rows: int, device: Device) -> float:
    """What is made least: microseconds by estimate. Small and full numbers of few rows count alike."""
    return sum(estimated_us(spec, schedule, m, device) for m in ((1, rows) if rows == FEW_ROWS else (rows,)))


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
    possible = [draft for draft in drafts if has_program(spec, draft, rows) and fits(spec, draft, device)]
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
    for draft in wide_drafts(spec, max(FEW_ROWS, 8 * cluster, rows), device, ((False, cluster),)):
        scales_often = draft.scales_on == "accumulators" and draft.stage_k > spec.group_size
        if scales_often and draft.row_tiles * draft.columns_of_block * draft.blocks_per_sm > _SCALED_OFTEN:
            # The assembler spills registers where it has several tiles of accumulators that are not scaled yet.
            continue
        yield draft


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


def _kinds_of_other_types(spec: LinearSpec) -> list[str]:
    """Of products of bytes, the kinds of weights with scales of f16, by which sums are multiplied as by any float; of
    integers then those of other widths, the nearest first: they differ by some instructions that decode, and in what
    comes from memory. Halves have kinds for all types."""
    if not spec.is_of_bytes:
        return []
    if not spec.is_of_integers:
        is_float = not spec.super_scale and spec.scale in FLOAT_DTYPES
        return [kind_of(_like(spec, spec.bits, "f16"))] if is_float else []
    widths = sorted(range(1, 9), key=lambda bits: abs(bits - spec.bits))
    scales = [spec.scale] if spec.super_scale or spec.scale not in FLOAT_DTYPES else [spec.scale, "f16"]
    return [kind_of(_like(spec, bits, scale)) for bits in widths for scale in scales]


def _like(spec: LinearSpec, bits: int, scale: str) -> LinearSpec:
    """The same product of weights of a width, with scales of a type."""
    codec = spec.codec
    code = codec.code if bits == spec.bits else dtype(re.sub(r"\d+$", str(bits), spec.weight))
    other = Codec(
        code,
        codec.group,
        scale,
        codec.zeros,
        codec.offsets,
        codec.scale2,
        codec.super_scale,
        codec.super_group or "channel",
    )
    return dataclasses.replace(spec, codec=other)


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
    # What such weights themselves took was compiled, for x without zero points.
    division = for_rows(spec, schedule, entry.m, device)
    return schedule if (is_own and not spec.x_zeros) or fits(spec, division, device) else None


@functools.lru_cache(maxsize=4096)
def _measured(
    spec: LinearSpec, rows: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Entry | None:
    """What was measured for the nearest shape and such weights; None where none is near."""
    kinds = dict.fromkeys([kind_of(spec), _plain_kind(spec), *_kinds_of_other_types(spec)])
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
        return has_program(spec, schedule, rows) and fits(spec, for_rows(spec, schedule, rows, device), device)

    ends_at_once = measured.warpgroups and spec.ending_numbers > spec.products - 1
    if has_program(spec, measured, rows) and (not ends_at_once or is_possible(measured)):
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
