"""What decoding two weights takes, in instructions, as the estimates of all kernels of `linear` have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lowlp.numeric.dtypes import dtype

from .scaled_weights import can_scale_weights
from .schedule import Schedule
from .segments import has_small_groups
from .spec import LinearSpec

# Instructions of the ALU for two weights (docs/decode-plans.md), by bits; tables take a lookup.
_DECODE: Final = {1: 1.1, 2: 1.15, 3: 1.35, 4: 1.3, 5: 1.9, 6: 1.9, 7: 2.2, 8: 1.1}

# The same for four weights in bytes, of integers and of floats.
_DECODE_BYTES: Final = {1: 1.0, 2: 1.0, 3: 1.62, 4: 1.0, 5: 2.0, 6: 2.0, 7: 2.5, 8: 0.1}
_DECODE_FLOAT_BYTES: Final = {1: 1.2, 2: 1.3, 3: 1.9, 4: 2.5, 5: 2.6, 6: 2.5, 7: 2.7, 8: 1.0}

# More where these are signed integers, which warpgroups decode to sign and magnitude.
_DECODE_SIGNS: Final = 4.5

# Instructions for two entries of tables of rows and groups, which are loaded one by one.
_GATHER: Final = 14.0

# Instructions more for two weights that are scaled in f32, for few rows and for many; and where scales of f16 take the
# powers of two of a decode plan.
_SCALE_IN_F32: Final = (5.0, 12.8)
_SCALE_BY_F16: Final = (3.0, 10.0)

# Halves of bf16 take a shift or a permutation each to become f32.
_WIDEN_BF16: Final = 2.0

# Instructions more for two weights of groups of 16 that kernels by warpgroups scale, for few rows and for many.
_SCALE_SMALL_GROUPS: Final = (0.5, 5.4)


def decode_instructions(spec: LinearSpec) -> float:
    """Instructions of the ALU for two weights."""
    if not spec.is_of_bytes:
        return _DECODE[spec.bits]
    return (_DECODE_BYTES if spec.is_of_integers else _DECODE_FLOAT_BYTES)[spec.bits] / 2


def decode_by_warpgroups(spec: LinearSpec) -> float:
    """The same of kernels by warpgroups."""
    has_signs = spec.is_of_bytes and not spec.is_of_integers and spec.bits > 1 and is_signed(spec)
    return decode_instructions(spec) + (_DECODE_SIGNS / 2 if has_signs else 0.0)


def is_signed(spec: LinearSpec) -> bool:
    """Whether codes are signed integers."""
    return not spec.table and dtype(spec.weight).is_integer and not spec.weight.startswith("uint")


def scales_in_f32(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether a kernel by warpgroups scales weights in f32, as the activation type does not hold what it takes."""
    return schedule.scales_on == "weights" and not can_scale_weights(spec)


def lookup_instructions(spec: LinearSpec, instructions: Mapping[int, float]) -> float:
    """Instructions more for two weights that are indices of a table."""
    if not spec.table:
        return 0.0
    return _GATHER if has_gathers(spec) else instructions[spec.bits]


def beside_plan(spec: LinearSpec, schedule: Schedule, many: bool) -> float:
    """Instructions for two weights beside those of a decode plan: to scale them in f32, and for the scales of groups
    that are no whole units."""
    is_f16 = (spec.super_scale or spec.scale) == "f16" and not spec.table and not spec.zeros
    more = 0.0
    if scales_in_f32(spec, schedule):
        more = (_SCALE_BY_F16 if is_f16 else _SCALE_IN_F32)[many]
        more += _WIDEN_BF16 if many and spec.activation == "bf16" else 0.0
    if has_small_groups(spec):
        conversions = spec.scale in ("e8m0", "e4m3") or bool(spec.super_scale)
        more += _SCALE_SMALL_GROUPS[many] * 16 / spec.group_size * (1 + 1.5 * bool(spec.corrector) + conversions)
    return more


def has_gathers(spec: LinearSpec) -> bool:
    """Whether codes are indices of tables of rows or groups, whose entries are loaded from global memory."""
    return spec.table in ("channel", "group")
