"""Which schedule a product with codebooks takes: what was measured for its shape and number of rows, as files of
measured schedules have it; else the best by estimate."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Final

from lowlp.compiler.targets import target
from lowlp.schedules.device import Device, device_like

from ..measured import Entry, MeasuredSchedules
from ..schedule import Schedule
from ..spec import LinearSpec
from .entries import are_global
from .partial_sums_schedules import partial_sums_schedule, partial_sums_us, takes_less
from .program import has_codebook_program
from .schedules import codebook_schedule, codebook_us, splits_of, with_kept_entries, with_staged_rows
from .wide import can_look_up_wide
from .wide_estimates import wide_us
from .wide_schedules import (
    EXACT_ROWS,
    FEW_ROWS,
    few_rows_schedule,
    for_few_rows,
    wide_codebook_schedule,
)

_FEW: Final = (8, 16, 32, 64)
_MANY: Final = 1024
_MANY_STEP: Final = 256
"""Up to so many rows fewer, products have as many tiles."""


def kind_of_books(spec: LinearSpec) -> str:
    """How files name such weights: vectors and the group of scales. Types of x and y do not count."""
    return f"books {spec.vectors} g{spec.group_size if spec.groups > 1 else 0}"


def book_schedule(
    spec: LinearSpec,
    m: int,
    device: Device,
    whole: LinearSpec,
    has_one_order: bool,
    gpu: str,
    among: tuple[MeasuredSchedules, ...],
) -> Schedule:
    """The schedule for m rows of x.

    whole          the weights of which these are some rows: K is divided as theirs
    has_one_order  all m add in one order, that of kernels without warpgroups
    gpu, among     as for `schedule_for`
    """
    if not has_one_order:
        found = _partial_sums(spec, m, device, gpu, among) or _by_warpgroups(spec, m, device, gpu, among)
        if found:
            return found
    splits = _splits(whole, device, gpu, among)
    entry = measured_books(spec, m, device, gpu, among)
    if entry and not entry.schedule.warpgroups and entry.schedule.splits == splits:
        staged = with_staged_rows(spec, entry.schedule, m)
        # Files that do not say how many entries are kept are of kernels that kept none.
        return staged if staged.kept_entries else with_kept_entries(spec, staged, device)
    return codebook_schedule(spec, m, device, splits)


def reason_for_books(
    spec: LinearSpec, schedule: Schedule, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> str | Entry:
    """Why `book_schedule` took a schedule: what was measured, without a time where that is of a kernel that keeps other
    entries, or stages more rows; else in words."""
    if schedule.partial_sums:
        return f"by estimate, {partial_sums_us(spec, schedule, m, device):.1f} us: sums of products of entries"
    entry = measured_books(spec, m, device, gpu, among)
    if entry and (entry.schedule.warpgroups > 0) == (schedule.warpgroups > 0):
        is_alike = (schedule.kept_entries, schedule.staged_rows) == (entry.schedule.kept_entries, 0)
        return entry if is_alike else replace(entry, us=0.0)
    if schedule.warpgroups:
        return f"by estimate, {wide_us(spec, schedule, m, device):.1f} us: by warpgroups"
    return "by rule, as books have it"


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
    rows = next((rows for rows in _FEW if m <= rows), _MANY if _MANY - _MANY_STEP < m <= _MANY else 0)
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


def _has_warpgroups(device: Device) -> bool:
    return bool(target(device.arch).instructions["wgmma.mma_async"])


@functools.lru_cache(maxsize=4096)
def _few_rows(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> Schedule | None:
    """The schedule by warpgroups of all of up to `FEW_ROWS` rows of x, whose sums are so in one order; None where these
    take none: as was measured for as many rows, else by estimate, one, half and all of them together."""
    if entry := measured_books(spec, FEW_ROWS, device, gpu, among):
        return entry.schedule if entry.schedule.warpgroups else None
    has_partial_sums = _takes_partial_sums(spec, device, gpu, among)
    judged = (*(() if has_partial_sums else (1,)), FEW_ROWS // 2, FEW_ROWS)
    found = few_rows_schedule(spec, judged, device)
    return found[1] if found and found[0] <= sum(codebook_us(spec, m, device) for m in judged) else None


def _by_warpgroups(
    spec: LinearSpec, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Schedule | None:
    """The schedule by warpgroups for m rows of x; None where one without takes less, or the GPU has none."""
    if not _has_warpgroups(device):
        return None
    if m <= FEW_ROWS:
        few = _few_rows(spec, device, gpu, among)
        return for_few_rows(few, m) if few else None
    if entry := measured_books(spec, m, device, gpu, among):
        return _for_rows(entry.schedule, m) if entry.schedule.warpgroups else None
    return wide_codebook_schedule(spec, m, device)


def _partial_sums(
    spec: LinearSpec, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Schedule | None:
    """The schedule of a kernel of partial sums, where one and two rows of x take less by these."""
    schedule = partial_sums_schedule(spec, m, device)
    return schedule if schedule and _takes_partial_sums(spec, device, gpu, among) else None


def _takes_partial_sums(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> bool:
    """Whether one and two rows of x take less by partial sums than by the kernels of few rows without warpgroups."""
    entry = measured_books(spec, _FEW[0], device, gpu, among)
    measured = entry.us if entry and not entry.schedule.warpgroups else 0.0
    return takes_less(spec, measured or codebook_us(spec, _FEW[0], device), device)


def _splits(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> int:
    """In how many parts K is divided, for all numbers of rows."""
    entry = measured_books(spec, FEW_ROWS, device, gpu, among)
    return entry.schedule.splits if entry and not entry.schedule.warpgroups else splits_of(spec, device)


def _has_program(spec: LinearSpec, schedule: Schedule, m: int) -> bool:
    if not schedule.warpgroups:
        return has_codebook_program(spec, schedule)
    if schedule.scales_on == "weights" and (not spec.scales_weights or (spec.out == "f32" and m <= EXACT_ROWS)):
        return False
    return can_look_up_wide(spec, _for_rows(schedule, m))


def _for_rows(schedule: Schedule, m: int) -> Schedule:
    """With as few columns as hold m rows, where all are in one tile."""
    return for_few_rows(schedule, m) if schedule.warpgroups and m <= _FEW[-1] else schedule
