"""Which weights along K share a scale, and in what pieces kernels with stages multiply by them.

granule  the weights of a row of a unit that belong to one group for certain: all 64; or where groups are no whole
         units, the largest common divisor of 64 and the group, 16 or 32. Where rows are no multiple of 64, units of the
         packed format are narrower, and several lie in place of one: each is whole granules too
segment  granules of a stretch of K that share a scale, and are added up before it multiplies them
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from lowlp.weights.packing import UNIT_K as UNIT_K

from .spec import LinearSpec

STEP_K = 16
"""Weights along K of a product of `mma.sync` or `wgmma` in f16 and bf16; of bytes twice as many."""


class Granule(NamedTuple):
    """Steps of a unit: of the stretch's units, and of the unit's steps."""

    unit: int
    first_step: int


class Segment(NamedTuple):
    """A group of the stretch, a part of one, or all of the stretch; and which group it is of."""

    group: int
    granules: tuple[Granule, ...]


def granule_k(spec: LinearSpec) -> int:
    """Weights along K of a granule: 16, 32 or 64 where groups are multiples of 16."""
    return math.gcd(UNIT_K, spec.group_size) if spec.groups > 1 else UNIT_K


def has_small_groups(spec: LinearSpec) -> bool:
    """Whether units have parts of several groups."""
    return spec.groups > 1 and spec.group_size % UNIT_K > 0


def units_of_period(spec: LinearSpec) -> int:
    """The fewest units that are whole groups, or 1 where a group is whole units."""
    return spec.group_size // granule_k(spec) if has_small_groups(spec) else 1


def takes_narrow_units(spec: LinearSpec) -> bool:
    """Whether rows are whole units of the packed format that are narrower than 64 weights, of one group or of groups
    that kernels with stages take by granules."""
    takes_groups = spec.groups == 1 or spec.group_size % spec.step_k == 0
    return bool(spec.k % UNIT_K) and spec.k % spec.unit_k == 0 and takes_groups


def place_in_units(spec: LinearSpec, unit: Any, first_step: int) -> tuple[Any, int]:
    """Where a step of a unit of 64 weights lies in units of the packed format, which may be narrower: unit and step."""
    narrow, steps = UNIT_K // spec.unit_k, spec.unit_k // spec.step_k
    if narrow == 1:
        return unit, first_step
    first, step = divmod(first_step, steps)
    return unit * narrow + first, step


def segments(
    stretch_k: int, group_size: int, piece_k: int, step_k: int, longest_k: int | None = None
) -> tuple[Segment, ...]:
    """The segments of `stretch_k` weights along K, units that begin with a group, in granules of `piece_k` weights.

    step_k     weights along K of a matrix instruction
    longest_k  the most of a segment, of which a group then has several; None: groups are whole segments

    Requires that stretch or group are a multiple of the other, and both of a granule and of the longest segment.
    """
    found = []
    of_group = min(stretch_k, group_size)
    length = of_group if longest_k is None else min(of_group, longest_k)
    for begin in range(0, stretch_k, length):
        starts = range(begin, begin + length, piece_k)
        granules = tuple(Granule(start // UNIT_K, start % UNIT_K // step_k) for start in starts)
        found.append(Segment(begin // of_group, granules))
    return tuple(found)
