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
from ..warpgroup_layouts import whole_columns
from .entries import are_global
from .partial_sums_schedules import partial_sums_schedule, takes_less
from .program import has_codebook_program
from .schedules import codebook_schedule, codebook_us, splits_of, with_kept_entries, with_staged_rows
from .wide import can_look_up_wide
from .wide_schedules import EXACT_ROWS, wide_codebook_schedule

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
    if not has_one_order and (sums := _partial_sums(spec, m, device, gpu, among)):
        return sums
    splits = _splits(whole, device, gpu, among)
    can_go_wide = not has_one_order and bool(target(device.arch).instructions["wgmma.mma_async"])
    entry = measured_books(spec, m, device, gpu, among)
    if entry and (can_go_wide if entry.schedule.warpgroups else entry.schedule.splits == splits):
        found = _for_rows(entry.schedule, m)
        if found.warpgroups:
            return found
        found = with_staged_rows(spec, found, m)
        # Files that do not say how many entries are kept are of kernels that kept none.
        return found if found.kept_entries else with_kept_entries(spec, found, device)
    wide = wide_codebook_schedule(spec, m, device) if can_go_wide else None
    return wide or codebook_schedule(spec, m, device, splits)


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


def _partial_sums(
    spec: LinearSpec, m: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]
) -> Schedule | None:
    """The schedule of a kernel of partial sums, where one and two rows of x take less by these."""
    schedule = partial_sums_schedule(spec, m, device)
    if schedule is None:
        return None
    entry = measured_books(spec, _FEW[0], device, gpu, among)
    us = (entry.us if entry else 0.0) or codebook_us(spec, _FEW[0], device)
    return schedule if takes_less(spec, us, device) else None


def _splits(spec: LinearSpec, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> int:
    """In how many parts K is divided, for all numbers of rows."""
    entry = measured_books(spec, _FEW[1], device, gpu, among)
    return entry.schedule.splits if entry else splits_of(spec, device)


def _has_program(spec: LinearSpec, schedule: Schedule, m: int) -> bool:
    if not schedule.warpgroups:
        return has_codebook_program(spec, schedule)
    if schedule.scales_on == "weights" and (not spec.scales_weights or (spec.out == "f32" and m <= EXACT_ROWS)):
        return False
    return can_look_up_wide(spec, _for_rows(schedule, m))


def _for_rows(schedule: Schedule, m: int) -> Schedule:
    """With as few columns as hold m rows, where all are in one tile."""
    if schedule.warpgroups and m <= _FEW[-1]:
        return replace(schedule, columns=whole_columns(m, schedule.cluster))
    return schedule
