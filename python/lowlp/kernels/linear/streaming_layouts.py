"""How kernels without warpgroups lay a tile out (`streaming`), and which schedules they have a program for."""

from __future__ import annotations

import math

from lowlp.layouts.register_layout import Layout, column_spatial, from_modes, layout, local, reduce, spatial
from lowlp.numeric.group_codes import groups_of_whole_bytes

from .ordering import can_keep, rows_kept
from .parts import ACCUMULATOR_FRAGMENT, UNIT_K, a_fragment, can_leave_parts, x_fragment
from .scaled_weights import can_scale_weights
from .schedule import Schedule
from .segments import granule_k, has_small_groups, takes_narrow_units, units_of_period
from .spec import LinearSpec
from .two_levels import divides_supers, fill_bytes, has_packed_codes, has_whole_fields, supers_taken

_X_FRAGMENTS_OF_UNITS = {size: layout(f"local(1, 1, 2).spatial(1, 8, 4).local(1, 1, {4 // size})") for size in (1, 2)}
"""By the bytes of an element."""
_MOST_ACCUMULATORS = 128
"""Registers of a thread with the accumulators of a tile and the products of a step."""


def row_parts(spec: LinearSpec, schedule: Schedule) -> int:
    """How many parts a step takes the rows in: as few whole units each as it takes for the products of a part to have
    registers beside the accumulators of all."""
    accumulators = schedule.row_tiles * schedule.columns // 2
    units = max(1, 16 * schedule.row_tiles // (spec.products * spec.rows_of_unit))
    divisors = [parts for parts in range(1, units + 1) if units % parts == 0]
    return next((parts for parts in divisors if accumulators + accumulators // parts <= _MOST_ACCUMULATORS), units)


def units_side_by_side(spec: LinearSpec, schedule: Schedule) -> int:
    """How many units of x are one row of what a copy brings: of bytes two where there are, so that rows have 128 bytes.
    Rows of 64, of which those beyond m are read too, keep few lines of the L2 cache busy (docs/adr/0094)."""
    are_even = schedule.units % 2 == 0 or (schedule.units == 1 and schedule.slices % 2 == 0)
    is_whole = spec.k % (2 * UNIT_K) == 0 and not has_small_groups(spec)
    return 2 if spec.is_of_bytes and is_whole and are_even else 1


class Layouts:
    """How the threads of a block hold what one part of a step needs, of one product; warps in the order [slices, warps
    along N]. A slice takes all of its units at once, or a granule of one where groups are no whole units.

    weights      [rows, K that is taken at once], and
    stacked      the same registers as [slices x rows, K that a slice takes]
    x_units      [units of it, columns, 64 or granule], or with units side by side half as many of 128, and
    x            the same registers as [columns, K that is taken at once]; all warps of a slice hold the same
    accumulators         [slices x rows, columns]
    sliced_accumulators  the same as [slices, rows, columns], and
    gathered     those with all slices of a sum in one thread
    rows         [slices x rows, 1]: one number for each row of the accumulators
    scales       the same registers as [groups of a step, rows], or as [slices, 1, rows]
    loaded       as `scales`, but where `shares_scales` each thread has some of what four threads have in common
    supers       the same registers as `loaded` as [super-groups of a step, rows]
    fields       bytes whose fields are those of some groups of a step: [such bytes of a step, 1, rows]
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        warps, slices, units = schedule.warps, schedule.slices, schedule.units
        if has_small_groups(spec):
            units = 1
        else:
            # Narrower units of the packed format lie side by side in place of one.
            units *= UNIT_K // spec.unit_k
        steps = min(granule_k(spec), spec.unit_k) // spec.step_k
        tiles_of_unit, column_tiles = spec.rows_of_unit // 16, schedule.columns // 8
        row_tiles = schedule.row_tiles // (spec.products * row_parts(spec, schedule))
        in_warp = local(row_tiles // tiles_of_unit, units) * local(tiles_of_unit, steps) * a_fragment(spec)
        self.weights = column_spatial(warps, slices) * in_warp
        self.stacked = spatial(slices * warps, 1) * in_warp
        beside = units_side_by_side(spec, schedule)
        # Of a slice's own units, else of those of neighbouring slices.
        own = math.gcd(units, beside)
        in_warp = local(units // own, 1, own) * local(1, column_tiles, steps) * _X_FRAGMENTS_OF_UNITS[spec.x_bytes]
        of_slices = spatial(slices * own // beside, 1, beside // own)
        self.x_units = of_slices * reduce(spatial(1, 1, 1, warps), dims=[3]) * in_warp
        in_warp = local(1, units) * local(column_tiles, steps) * x_fragment(spec)
        self.x = spatial(1, slices) * reduce(spatial(1, 1, warps), dims=[2]) * in_warp
        accumulators = local(row_tiles, column_tiles) * ACCUMULATOR_FRAGMENT
        self.accumulators = spatial(slices * warps, 1) * accumulators
        self.sliced_accumulators = spatial(slices, warps, 1) * accumulators.unsqueeze(0)
        # Neighbouring threads store neighbours along N; where there are more threads than these, some have the same.
        rows = 16 * row_tiles * warps
        threads_of_column = math.gcd(rows, schedule.threads // schedule.columns)
        replicas = schedule.threads // (threads_of_column * schedule.columns)
        stored = local(rows // threads_of_column, 1) * reduce(
            column_spatial(threads_of_column, schedule.columns, replicas), dims=[2]
        )
        self.gathered = local(slices, 1, 1) * stored.unsqueeze(0)
        self.rows = self.accumulators.reduce([1], keep_dims=True)

        rows_of_warp = accumulators.reduce([1])
        loaded = _dealt_out(row_tiles) if shares_scales(spec, schedule) else rows_of_warp

        def of_groups(groups: int, held: Layout) -> Layout:
            alike = reduce(spatial(1, 1, slices // groups), dims=[2])
            return spatial(groups, 1) * alike * spatial(1, warps) * held.unsqueeze(0)

        if spec.super_scale:
            self.supers = of_groups(supers_taken(spec, schedule.step_k), loaded)
        if has_small_groups(spec) and not spec.k % UNIT_K:
            self.scales = spatial(slices, 1, warps) * rows_of_warp.unsqueeze(0).unsqueeze(0)
            self.loaded = spatial(slices, 1, warps) * loaded.unsqueeze(0).unsqueeze(0)
        else:
            groups = 1 if has_small_groups(spec) else max(1, schedule.step_k // spec.group_size)
            self.scales = self.loaded = of_groups(groups, rows_of_warp)
            if has_packed_codes(spec):
                alike = min(groups, groups_of_whole_bytes(spec.scale))
                of_bytes = self.scales.reshape(groups // alike, alike, self.scales.shape[1])
                self.fields = of_bytes.reduce([1], keep_dims=True)


def shares_scales(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether the four threads of a warp that hold the same rows of accumulators each make some of these rows' scales,
    and give them to each other: where that saves more instructions than a shuffle for each."""
    is_made = bool(spec.super_scale) or spec.scale in ("e8m0", "e4m3")
    return is_made and has_small_groups(spec) and not spec.k % UNIT_K and not schedule.warpgroups


def _dealt_out(row_tiles: int) -> Layout:
    """The rows of so many tiles of 16 of a warp, dealt out among the four threads that hold them in accumulators, or
    among two and two."""
    many = math.gcd(2 * row_tiles, 4)
    return from_modes(
        [[2 * row_tiles // many, many, 8]],
        [(2, 8), *([(None, 4 // many)] if many < 4 else []), (1, many)],
        [(0, 2 * row_tiles // many)],
    )


def can_stream(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether `streaming_kernel` has a program: groups are whole units along K, the same for all weights of a slice's
    step, or what a slice takes in a step is whole groups, or a row is one group; so are super-groups, and packed
    integers of groups fill bytes in what a slice takes; tables of
    groups are for one slice; a warp's rows, of gate and of up, are
    whole units; a block has one tile of columns."""
    return (
        _has_whole_groups(spec, schedule)
        and divides_supers(spec, schedule.step_k, UNIT_K * schedule.units)
        and (spec.table != "group" or schedule.slices == 1)
        and 16 * schedule.row_tiles % (spec.products * spec.rows_of_unit) == 0
        and can_leave_parts(spec, schedule)
        and (schedule.scales_on == "accumulators" or can_scale_streamed(spec))
        and schedule.columns in (8, 16, 32, 64, 128, 256)
        and schedule.column_tiles == schedule.cluster == schedule.multicast == 1
        and (not rows_kept(spec, schedule) or (can_keep(spec, schedule) and not spec.experts))
        and schedule.staged_rows <= 1
        and (not schedule.staged_rows or (schedule.columns == 8 and not rows_kept(spec, schedule) and not spec.experts))
    )


def can_scale_streamed(spec: LinearSpec) -> bool:
    """Whether scales may go on weights here, which pays where groups are short: those of the activation type in groups
    that are no whole units."""
    is_short = has_small_groups(spec) and not spec.k % UNIT_K and not spec.experts
    return is_short and spec.scale == spec.activation and not spec.table and can_scale_weights(spec)


def _has_whole_groups(spec: LinearSpec, schedule: Schedule) -> bool:
    step_k, group = schedule.step_k, spec.group_size
    # The last step may end after the row does, where a row is one group, or one slice takes all of a step.
    may_end_later = step_k <= spec.k and (spec.k % UNIT_K == 0 or takes_narrow_units(spec))
    if spec.groups == 1:
        return may_end_later and has_whole_fields(spec, 1)
    if spec.k % UNIT_K:
        is_one_slice = schedule.slices == 1 and schedule.units == units_of_period(spec) and not has_packed_codes(spec)
        return may_end_later and is_one_slice
    if has_small_groups(spec):
        # Slices take units side by side; of several units each, only one slice does.
        return (
            group % spec.step_k == 0
            and schedule.units == units_of_period(spec)
            and (schedule.units == 1 or schedule.slices == 1)
            and fill_bytes(spec, UNIT_K * schedule.units // group)
        )
    divides = group % (UNIT_K * schedule.units) == 0 and (step_k % group == 0 or group % step_k == 0)
    return divides and has_whole_fields(spec, max(1, step_k // group))
