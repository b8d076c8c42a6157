"""Which schedule a product of planes takes, and why.

What was measured for it; else what near shapes and widths took, if that is about as good by estimate as the best
candidate, or its scaled time is less than the estimate of that; else that.

What was measured for N, K, rows of x and widths p x q is carried over to others as in APT-LLM (V-B, "approximate
matching"): its schedule gets the extents that fit, and its time is scaled by the ratio of estimates. Of the nearest
entries the one with the least scaled time is taken.
"""

from __future__ import annotations

import functools
import math
from typing import Final, NamedTuple

from lowlp.kernels.linear.measured import MeasuredSchedules, PlaneEntry, measured_schedules
from lowlp.schedules.device import H200, Device, device_like

from .candidates import candidates, for_rows
from .estimates import estimated_us
from .fitting import fits, has_warpgroups
from .program import PlanesSpec
from .shapes import PlaneSchedule, choose_schedule

_FAR: Final = 2.5
"""How far, in factors of two of N and K together, a measured shape may be away; and so rows of x, and planes."""
_FAR_ROWS: Final = 1.01
_FAR_WIDTHS: Final = 1.6
_NEAREST: Final = 4
"""Entries whose scaled times are compared."""
_ABOUT: Final = 1.05
"""What was measured near is taken up to so many times the best estimate."""
_MUCH: Final = 1.5
"""Factor between a scaled time and the estimate of the same kernel from which the reason says so."""
_MOST_ROWS: Final = 8192


class Chosen(NamedTuple):
    """A schedule, and why it is taken.

    us  what it takes for the rows it was chosen for: measured, or scaled from what was; 0.0: only estimated
    """

    schedule: PlaneSchedule
    reason: str
    us: float = 0.0


class _Near(NamedTuple):
    """An entry for another problem, as this one would take it."""

    entry: PlaneEntry
    schedule: PlaneSchedule
    scaled_us: float
    estimate_us: float


def rows_of(m: int) -> int:
    """For how many rows a schedule for m rows is chosen: the next power of two, so that not every m has kernels of its
    own."""
    return min(1 << (max(m, 1) - 1).bit_length(), _MOST_ROWS)


def choose_planes(
    spec: PlanesSpec, m: int, device: Device = H200, gpu: str = "", among: tuple[MeasuredSchedules, ...] | None = None
) -> Chosen:
    """The schedule for m rows of x on a GPU.

    gpu    the name of the GPU in use, whose measurements go before those of others; '': none is known
    among  what was measured; None: all in use; (): nothing

    Raises `LowlpValueError` for files of LOWLP_TUNED without measured schedules.
    """
    return _chosen(spec, rows_of(m), device, gpu, measured_schedules() if among is None else among)


@functools.lru_cache(maxsize=4096)
def _chosen(spec: PlanesSpec, rows: int, device: Device, gpu: str, among: tuple[MeasuredSchedules, ...]) -> Chosen:
    entries = _entries(spec, rows, device, among)
    entries.sort(key=lambda entry: (bool(gpu) and entry.gpu != gpu, _distance(entry, spec, rows)))
    is_like = device == device_like(device.arch)
    for entry in entries:
        is_own = entry.gpu == gpu or is_like
        if is_own and _distance(entry, spec, rows) == 0 and fits(spec, entry.schedule, device):
            return Chosen(entry.schedule, f"measured on {entry.gpu}: {entry.us:.1f} us", entry.us)
    near = []
    for entry in entries:
        if one := _near(spec, rows, device, entry):
            near.append(one)
        if len(near) == _NEAREST:
            break
    best, us = _best(spec, rows, device)
    if not near:
        return Chosen(best, f"by estimate, {us:.1f} us: nothing was measured near")
    least = min(near, key=lambda one: one.scaled_us)
    # An estimate alone does not outweigh a measurement that comes to less.
    if least.estimate_us > _ABOUT * us and least.scaled_us > us:
        return Chosen(best, f"by estimate, {us:.1f} us: longer it would take {_reason(least, near)}")
    return Chosen(least.schedule, _reason(least, near), least.scaled_us)


def _best(spec: PlanesSpec, rows: int, device: Device) -> tuple[PlaneSchedule, float]:
    """The candidate that is best by estimate, and what it would take; that of the rule where there is none."""
    rule = choose_schedule(
        spec,
        rows,
        has_warpgroups=has_warpgroups(device),
        multiprocessors=device.multiprocessors,
        shared_limit=device.shared_bytes,
    )

    def cost(schedule: PlaneSchedule) -> float:
        return estimated_us(spec, schedule, rows, device)

    best = min(candidates(spec, rows, device), key=cost, default=rule)
    return best, cost(best)


def _entries(spec: PlanesSpec, rows: int, device: Device, among: tuple[MeasuredSchedules, ...]) -> list[PlaneEntry]:
    """What was measured near, on this architecture."""
    p, q = spec.w_code.bits, spec.x_code.bits
    return [
        entry
        for measured in among
        for entry in measured.planes
        if entry.arch == device.arch
        and _of_shape(entry, spec) < _FAR
        and _of_rows(entry, rows) < _FAR_ROWS
        and _of_widths(entry, p, q) < _FAR_WIDTHS
    ]


def _of_shape(entry: PlaneEntry, spec: PlanesSpec) -> float:
    return abs(math.log2(entry.n / spec.n)) + abs(math.log2(entry.k / spec.k))


def _of_rows(entry: PlaneEntry, rows: int) -> float:
    return abs(math.log2(entry.m / rows))


def _of_widths(entry: PlaneEntry, p: int, q: int) -> float:
    return abs(math.log2(entry.p / p)) + abs(math.log2(entry.q / q))


def _distance(entry: PlaneEntry, spec: PlanesSpec, rows: int) -> float:
    """From another problem, in factors of two; 0 for the same."""
    p, q = spec.w_code.bits, spec.x_code.bits
    return _of_shape(entry, spec) + _of_rows(entry, rows) + _of_widths(entry, p, q)


def _near(spec: PlanesSpec, rows: int, device: Device, entry: PlaneEntry) -> _Near | None:
    """What this problem would take of an entry; None where it does not fit."""
    schedule = for_rows(spec, entry.schedule, rows, device)
    if schedule is None:
        return None
    estimate = estimated_us(spec, schedule, rows, device)
    there = PlanesSpec(entry.n, entry.k, f"uint{entry.p}", f"uint{entry.q}", scale="f16", x_scale=True, out="f16")
    scaled = entry.us * estimate / estimated_us(there, entry.schedule, entry.m, device)
    return _Near(entry, schedule, scaled, estimate)


def _reason(best: _Near, near: list[_Near]) -> str:
    """Why, in words: the entries that were compared, the times that they would come to, and where the estimate of the
    very kernel is far from that."""

    def said(one: _Near) -> str:
        entry = one.entry
        return f"W{entry.p}A{entry.q} {entry.n}x{entry.k} M={entry.m} ({entry.us:.1f} us, scaled {one.scaled_us:.1f})"

    others = ", ".join(said(one) for one in near if one is not best)
    text = f"as near {said(best)} on {best.entry.gpu}" + (f", before {others}" if others else "")
    ratio = best.scaled_us / best.estimate_us
    if not 1 / _MUCH <= ratio <= _MUCH:
        text += f"; far from the estimate, {best.estimate_us:.1f} us: measure it with lowlp.tune_linear"
    return text
