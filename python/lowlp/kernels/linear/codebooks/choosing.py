"""Which schedule a product with codebooks takes: what was measured for its shape and number of rows, as files of
measured schedules have it; else the best by estimate."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Final, NamedTuple

from lowlp.compiler.targets import target
from lowlp.schedules.device import Device, device_like

from ..candidates import EXACT_ROWS, FEW_ROWS
from ..measured import Entry, MeasuredSchedules
from ..schedule import Schedule
from ..spec import LinearSpec
from .entries import are_global
from .partial_sums_schedules import partial_sums_schedule, partial_sums_us, takes_less
from .program import has_codebook_program
from .schedules import codebook_schedule, codebook_us, splits_of, with_kept_entries, with_staged_rows
from .wide import can_look_up_wide
from .wide_estimates import wide_us
from .wide_schedules import few_rows_schedule, wide_codebook_schedule, with_columns_for

_MEASURED_ROWS: Final = (8, FEW_ROWS, 32, EXACT_ROWS)
_MANY: Final = 1024
_MANY_STEP: Final = 256
"""Up to so many rows fewer, products have as many tiles."""


def kind_of_books(spec: LinearSpec) -> str:
    """How files name such weights: vectors and the group of scales. Types of x and y do not count."""
    return f"books {spec.vectors} g{spec.group_size if spec.groups > 1 else 0}"


class Choice(NamedTuple):
    """A schedule, and the measurement that it is from, if any."""

    schedule: Schedule
    entry: Entry | None = None


def book_choice(
    spec: LinearSpec,
    m: int,
    device: Device,
    whole: LinearSpec,
    has_one_order: bool,
    gpu: str,
    among: tuple[MeasuredSchedules, ...],
) -> Choice:
    """The schedule for m rows of x, of none as for one.

    whole          the weights of which these are some rows: K is divided as theirs
    has_one_order  all m add in one order, that of kernels without warpgroups
    gpu, among     as for `schedule_for`
    """
    m = max(m, 1)
    if not has_one_order:
        if sums := _partial_sums(spec, m, device, gpu, among):
            return Choice(sums)
        if wide := _by_warpgroups(spec, m, device, gpu, among):
            return wide
    splits = _splits(whole, device, gpu, among)
    entry = measured_books(spec, m, device, gpu, among)
    if entry and not entry.schedule.warpgroups and entry.schedule.splits == splits:
        staged = with_staged_rows(spec, entry.schedule, m)
        # Files that do not say how many entries are kept are of kernels that kept none.
        return Choice(staged if staged.kept_entries else with_kept_entries(spec, staged, device), entry)
    return Choice(codebook_schedule(spec, m, device, splits))


def reason_for_books(
    spec: LinearSpec, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> str | Entry:
    """Why `book_choice` takes its schedule: what was measured, without a time where that is of a kernel that keeps
    other entries, or stages more rows; else in words."""
    m = max(m, 1)
    schedule, entry = book_choice(spec, m, device, spec, False, gpu, among)
    if entry:
        is_alike = (schedule.kept_entries, schedule.staged_rows) == (entry.schedule.kept_entries, 0)
        return entry if is_alike else replace(entry, us=0.0)
    if schedule.partial_sums:
        return f"by estimate, {partial_sums_us(spec, schedule, m, device):.1f} us: sums of products of entries"
    if schedule.warpgroups:
        return f"by estimate, {wide_us(spec, schedule, m, device):.1f} us: by warpgroups"
    if schedule.stages:
        return f"by estimate, {codebook_us(spec, m, device, schedule.splits):.1f} us: without warpgroups"
    return "by rule: no schedule with stages fits"


def begins_early(spec: LinearSpec, schedule: Schedule, m: int) -> bool:
    """Whether a launch for m rows of x may begin before the one in front of it has ended, where that is worth it. What
    kernels read of weights is constant then, and the assembler orders loads otherwise: of entries in global memory, and
    of the next books with many rows, by warpgroups, so that they take longer (docs/adr/0114)."""
    if schedule.warpgroups and (are_global(spec) or (spec.book_columns and m > EXACT_ROWS)):
        return False
    return schedule.stages > 0 or schedule.partial_sums


@functools.lru_cache(maxsize=4096)
def measured_books(
    spec: LinearSpec, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Entry | None:
    """What was measured for such weights of this shape and about m rows, on this GPU, or on one that is taken to be
    like it; None where nothing was, or where that has no program here. Gate and up were not measured."""
    rows = next((rows for rows in _MEASURED_ROWS if m <= rows), _MANY if _MANY - _MANY_STEP < m <= _MANY else 0)
    if not rows or spec.products > 1:
        return None
    wanted = (kind_of_books(spec), spec.n, spec.k, rows, device.arch)
    is_like = device == device_like(device.arch)
    for measured in among:
        for entry in measured.entries:
            found = (entry.kind, entry.n, entry.k, entry.m, entry.arch)
            if found != wanted:
                continue
            if (is_like or entry.gpu == gpu) and _has_program(spec, entry.schedule, m):
                return entry
    return None


@functools.lru_cache(maxsize=4096)
def _of_few_rows(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> Choice | None:
    """How warpgroups multiply up to `FEW_ROWS` rows of x, all in one order of sums. None where these are multiplied
    without: where that was measured for `FEW_ROWS` rows, or 1, half and all of them take less by estimate, together."""
    if entry := measured_books(spec, FEW_ROWS, device, gpu, among):
        return Choice(entry.schedule, entry) if entry.schedule.warpgroups else None
    has_partial_sums = _takes_partial_sums(spec, device, gpu, among)
    judged = (*(() if has_partial_sums else (1,)), FEW_ROWS // 2, FEW_ROWS)
    found = few_rows_schedule(spec, judged, device)
    return Choice(found[1]) if found and found[0] <= sum(codebook_us(spec, m, device) for m in judged) else None


def _by_warpgroups(
    spec: LinearSpec, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Choice | None:
    """How warpgroups multiply m rows of x; None where the GPU has none, or `mma.sync` takes less."""
    if not target(device.arch).instructions["wgmma.mma_async"]:
        return None
    if m <= FEW_ROWS:
        few = _of_few_rows(spec, device, gpu, among)
        return few._replace(schedule=with_columns_for(few.schedule, m)) if few else None
    entry = measured_books(spec, m, device, gpu, among)
    if entry and entry.schedule.warpgroups:
        return Choice(with_columns_for(entry.schedule, m), entry)
    splits = _splits(spec, device, gpu, among)
    # One without warpgroups whose parts of K are others is not taken.
    if entry and entry.schedule.splits == splits:
        return None
    found = wide_codebook_schedule(spec, m, splits, device)
    return Choice(found) if found else None


def _partial_sums(
    spec: LinearSpec, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Schedule | None:
    """The schedule of a kernel of partial sums, where one and two rows of x take less by these."""
    schedule = partial_sums_schedule(spec, m, device)
    return schedule if schedule and _takes_partial_sums(spec, device, gpu, among) else None


def _takes_partial_sums(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> bool:
    """Whether one and two rows of x take less by partial sums than by kernels without warpgroups, to which the estimate
    was held; by warpgroups one row takes about as long."""
    entry = measured_books(spec, _MEASURED_ROWS[0], device, gpu, among)
    measured = entry.us if entry and not entry.schedule.warpgroups else 0.0
    return takes_less(spec, measured or codebook_us(spec, _MEASURED_ROWS[0], device), device)


def _splits(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> int:
    """In how many parts K is divided, for all numbers of rows."""
    entry = measured_books(spec, FEW_ROWS, device, gpu, among)
    return entry.schedule.splits if entry and not entry.schedule.warpgroups else splits_of(spec, device)


def _has_program(spec: LinearSpec, schedule: Schedule, m: int) -> bool:
    if not schedule.warpgroups:
        return has_codebook_program(spec, schedule)
    if schedule.scales_on == "weights" and (not spec.scales_weights or (spec.out == "f32" and m <= EXACT_ROWS)):
        return False
    return can_look_up_wide(spec, with_columns_for(schedule, m))
