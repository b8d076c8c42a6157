"""y = x @ w^T at the speed of memory: a tile for each block, or the work of all tiles in equal ranges of stages.

As in `linear`, weights are operand A and y^T = W X^T. A stage of work is some steps along K of one tile of y^T; a block
has all stages of one tile, or blocks share those of all (`stream_k`). Loads are begun some stages ahead.

In a block, warps lie along N and, as slices, along K; the accumulators of the slices are added at the end of a tile.

    step   slices x units x 64 weights along K, each slice its own
    stage  some steps
    block  warps x row_tiles x 16 rows of W, in each slice; with gate and up, half of them of each
    part   of a block's rows, as many for each warp: a step takes them one after the other, with the same x

Groups that are no whole units are multiplied one after the other, each by the granules of the units that it has parts
in (`segments`). Rows that are no multiple of 64 weights have narrower units of the packed format, which lie side
by side in place of a unit.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import TileEnding, by_parts, share_of, small
from lowlp.numeric.group_codes import PACKED_CODE_TYPES, groups_of_whole_bytes

from .experts import ExpertTile, ExpertWork
from .integer_sums import adds_in_parts, is_one_sum, ones, sum_type, total_type
from .ordering import kept_x, rows_kept
from .parts import (
    E4M3_UNSCALE,
    UNIT_K,
    Arguments,
    added,
    as_f32,
    as_small_f16,
    covers_whole_tables,
    decoder,
    finished,
    make_linear,
    needs_sum_of_x,
    scale_and_zero,
    streamed_views,
    view_of_result,
)
from .scaled_weights import fit_of, kept_factor, prescale_of_codes
from .schedule import Schedule
from .segments import Granule, Segment, granule_k, has_small_groups, place_in_units, segments
from .spec import LinearSpec
from .streaming_layouts import Layouts, row_parts, units_side_by_side
from .two_levels import number_of_fields, numbers_of_fields


class _Plan:
    """The numbers that spec and schedule fix.

    rows           of y^T that a tile has, rows of each product
    parts          that a step takes the rows in, of rows_of_part rows each
    stages_of_tile, tiles_of_rows
    segments       of what a slice takes in a step
    has_small_scales  they are divided by `E4M3_UNSCALE`
    unscale        what accumulators are multiplied by at the end
    on_weights     scales go on weights
    is_fitted      times 2^-p, which accumulators are without at the end
    units_one_by_one  that a slice takes granules of in a step; 1 where it takes its units at once
    x_units        side by side in x
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        self.spec, self.schedule, self.layouts = spec, schedule, Layouts(spec, schedule)
        self.rows = schedule.rows // spec.products
        self.parts = row_parts(spec, schedule)
        self.rows_of_part = self.rows // self.parts
        self.stages_of_tile = -(-spec.k // schedule.stage_k)
        self.tiles_of_rows = -(-spec.columns_of_y // self.rows)
        self.segments: tuple[Segment, ...] = (Segment(0, (Granule(0, 0),)),)
        # What is added to scaled products must be of their size.
        self.has_small_scales = spec.scale == "e4m3" and not spec.offsets and not spec.adds_integers
        self.unscale = (E4M3_UNSCALE if self.has_small_scales else 1.0) / kept_factor(spec)
        self.on_weights = schedule.scales_on == "weights"
        self.is_fitted = fit_of(spec, schedule) is not None
        self.units_one_by_one, self.x_units = 1, units_side_by_side(spec, schedule)
        if has_small_groups(spec):
            self.segments = segments(UNIT_K * schedule.units, spec.group_size, granule_k(spec), spec.step_k)
            self.units_one_by_one = schedule.units


class _Block:
    """What a block does, as it is traced.

    at  the tile that it makes, of the weights of an expert; None of others
    """

    at: ExpertTile | None = None

    def __init__(self, plan: _Plan, operands: Arguments) -> None:
        self.plan, self.operands = plan, operands
        spec = plan.spec
        if spec.dependent_launch:
            ll.launch_dependents()
        (self.block,) = ll.block_indices()
        is_in_slices = has_small_groups(spec) and not spec.k % UNIT_K
        by_bytes = not has_small_groups(spec)
        groups_at_once = len(plan.segments) if is_in_slices else 0
        self.views = streamed_views(spec, operands, groups_at_once, by_bytes, plan.x_units)
        self.residual_view = None
        if spec.residual:
            self.residual_view = view_of_result(spec, operands.residual, operands.m, operands.residual_stride)
        self.decode = decoder(
            spec,
            operands.table,
            plan.schedule.threads,
            are_inside=covers_whole_tables(spec, plan.schedule),
            factor=kept_factor(spec) * prescale_of_codes(spec),
        )
        self.kept = kept_x(spec, plan.schedule, operands) if rows_kept(spec, plan.schedule) else None
        if spec.dependent_launch:
            # Tables are there, and weights in flight; what other launches write is read from here on.
            ll.wait_for_dependencies()
        if self.kept is not None:
            self.kept.bring()

    def zero(self) -> ll.Tile:
        """Accumulators of products of a part."""
        return ll.full(0, sum_type(self.plan.spec), layout=self.plan.layouts.accumulators)

    def zeros(self) -> tuple[ll.Tile, ...]:
        """Accumulators of all parts and products."""
        zero = partial(ll.full, 0, total_type(self.plan.spec), layout=self.plan.layouts.accumulators)
        return tuple(zero() for _ in range(self.plan.parts * self.plan.spec.products))

    def load(self, view: Any, group: list[Any], row: ll.Scalar) -> ll.Tile:
        """Scales and the like of a group of each slice, as they are stored, from a row on."""
        return ll.load_global(view, offsets=[*group, row], layout=self.plan.layouts.loaded)

    def of_rows(self, view: Any, kind: str, group: list[Any], row: ll.Scalar, loaded: dict[Any, ll.Tile]) -> ll.Tile:
        """Scales and the like of a step, a number for each row of its accumulators.

        loaded  bytes with the fields of several groups, by view, number and row, which are loaded once
        """

        def load(number: Any) -> ll.Tile:
            return self.load(view, [*group[:-1], number], row)

        def load_once(number: Any) -> ll.Tile:
            key = (id(view), number, id(row))
            if key not in loaded:
                loaded[key] = load(number)
            return loaded[key]

        if kind in PACKED_CODE_TYPES and not has_small_groups(self.plan.spec):
            return self.of_fields(view, kind, group[0], row)
        if kind in PACKED_CODE_TYPES:
            return number_of_fields(kind, group[-1], load_once)
        is_small = kind == "e4m3" and self.plan.has_small_scales
        return ll.cast(as_small_f16(load(group[-1])), "f32") if is_small else as_f32(load(group[-1]), kind)

    def of_fields(self, view: Any, kind: str, first: ll.Scalar, row: ll.Scalar) -> ll.Tile:
        """The same of packed integers of groups that are whole units, whose bytes several slices have in common.

        first  the group of the first slice
        """
        layouts, period = self.plan.layouts, groups_of_whole_bytes(kind)
        groups = layouts.scales.shape[0]
        rest: Any = 0 if groups % period == 0 else first % period

        def load(byte: int) -> ll.Tile:
            tile = ll.load_global(view, offsets=[first // period, byte, row], layout=layouts.fields)
            return ll.view(tile, dtype=tile.dtype, layout=layouts.loaded)

        places = None
        if groups > 1:
            places = ll.iota(0, layout=layouts.scales, dtype="uint32") % min(groups, period)
        return numbers_of_fields(kind, rest, places, load)

    def supers_of(self, step: int, stage: ll.Scalar, unit: ll.Scalar, row: ll.Scalar) -> tuple[Any, Any]:
        """Super-scales and super-offsets of a step in f32, a number for each row; None for what is not there."""
        spec, schedule, layouts = self.plan.spec, self.plan.schedule, self.plan.layouts
        size = spec.super_group_size
        first: Any = 0
        if spec.supers > 1:
            first = stage * (schedule.stage_k // size) + step * (schedule.step_k // size)
            if schedule.step_k < size:
                first = unit // (size // UNIT_K)

        def of(view: Any) -> ll.Tile | None:
            if view is None:
                return None
            tile = ll.load_global(view, offsets=[first, row], layout=layouts.supers)
            return ll.cast(ll.view(tile, dtype=tile.dtype, layout=layouts.loaded), "f32")

        return of(self.views.super_scales), of(self.views.super_offsets)

    def for_rows(self, numbers: ll.Tile) -> ll.Tile:
        """What threads made of loaded scales and the like, a number for each row of their accumulators."""
        layouts = self.plan.layouts
        if layouts.loaded != layouts.scales:
            numbers = ll.convert_layout(numbers, layouts.scales)
        return ll.view(numbers, dtype=numbers.dtype, layout=layouts.rows)

    def first_group(self, segment: Segment, step: int, stage: ll.Scalar, unit: ll.Scalar) -> list[Any]:
        """Where scales of a segment begin, of the first slice: a group; or, of groups that are no whole units, what a
        slice takes in a step, and a group of that."""
        schedule, group = self.plan.schedule, self.plan.spec.group_size
        step_k, stage_k = schedule.step_k, schedule.stage_k
        if self.plan.spec.k % UNIT_K:
            # What is taken of groups that are no whole units ends after the row does; one slice takes all of it.
            number = (stage * schedule.steps + step) * len(self.plan.segments) + segment.group
            return [number if self.plan.spec.groups > 1 else 0]
        if has_small_groups(self.plan.spec):
            return [stage * (schedule.steps * schedule.slices) + step * schedule.slices, segment.group]
        if step_k < group:
            return [unit // (group // UNIT_K)]
        return [stage * (stage_k // group) + step * (step_k // group)]

    def x_tile(self, unit: ll.Scalar, column: ll.Scalar, first_step: int) -> ll.Tile:
        """x^T for what is taken at once."""
        layouts = self.plan.layouts
        first, first_step = place_in_units(self.plan.spec, unit, first_step)
        if self.kept is not None:
            x_units = self.kept.tile(first, first_step * self.plan.spec.step_k, layouts.x_units)
            return ll.transpose(ll.view(x_units, dtype=self.plan.spec.activation, layout=layouts.x))
        k = first_step * self.plan.spec.step_k
        offsets, held = [first, column, k], layouts.x_units
        if self.plan.schedule.staged_rows:
            # All columns of y^T get the one row; those beyond it are not stored.
            one = ll.load_global(self.views.x, offsets=offsets, layout=held.reduce([1], keep_dims=True))
            x_units = ll.broadcast_to(one, held)
        else:
            x_units = ll.load_global(self.views.x, offsets=offsets, layout=held)
        return ll.transpose(ll.view(x_units, dtype=self.plan.spec.activation, layout=layouts.x))

    @ll.inline
    def with_step(self, acc, step: int, row, column, stage):  # type: ignore[no-untyped-def]
        """The results of all parts and products with what a step adds to it."""
        plan, spec, schedule = self.plan, self.plan.spec, self.plan.schedule
        unit = stage * (schedule.stage_k // UNIT_K) + step * (schedule.step_k // UNIT_K)
        units = [unit + number if number else unit for number in range(plan.units_one_by_one)]
        k_of_units = [each * UNIT_K for each in units]
        if plan.x_units > 1:
            x_unit = plan.x_units * UNIT_K
            units = [stage * (schedule.stage_k // x_unit) + step * (schedule.step_k // x_unit)]
        rows = []
        for part, product in itertools.product(range(plan.parts), range(spec.products)):
            first_row = row + part * plan.rows_of_part
            packed_row = first_row + product * spec.packed_rows_of_product
            row_of_weights = first_row + spec.first_rows[product]
            if self.at is not None:
                packed_row, row_of_weights = packed_row + self.at.packed, row_of_weights + self.at.weights
            rows.append((packed_row, row_of_weights))
        supers = [self.supers_of(step, stage, unit, row_of_scales) for _, row_of_scales in rows]
        loaded: dict[Any, ll.Tile] = {}
        for segment in plan.segments:
            group = self.first_group(segment, step, stage, unit)
            acc = self.with_segment(acc, segment, units, k_of_units, group, rows, column, supers, loaded)
        return acc

    def factors_of(self, group: list[Any], row: ll.Scalar) -> tuple[ll.Tile, ll.Tile | None]:
        """What goes on the weights of a segment of each slice: scales, and zero points (`scale_and_zero`).

        row  of scales, at which they begin
        """
        spec, views = self.plan.spec, self.views
        column = self.plan.layouts.stacked.reduce([1], keep_dims=True)

        def of_rows(view: Any) -> ll.Tile:
            tile = self.load(view, group, row)
            return ll.view(tile, dtype=tile.dtype, layout=column)

        zero = of_rows(views.correctors) if spec.corrector else None
        return scale_and_zero(spec, of_rows(views.scales), zero, self.operands.fit if self.plan.is_fitted else None)

    def scaled(self, values: ll.Tile, scale: ll.Tile, zero: ll.Tile | None) -> ll.Tile:
        """Weights of each slice by its factors, by the steps of `dequantize` and rounded once."""
        layouts = self.plan.layouts
        stacked = ll.view(values, dtype=values.dtype, layout=layouts.stacked)
        stacked = stacked if zero is None else stacked - zero
        return ll.view(stacked * scale, dtype=values.dtype, layout=layouts.weights)

    @ll.inline
    def with_segment(self, acc, segment, units, k_of_units, group, rows, column, supers, loaded):  # type: ignore[no-untyped-def]
        """The results of all parts and products with what a segment of each slice adds to it.

        units   of x, of the first slice
        rows    of packed weights, and of scales, at which each part of each product begins
        supers  `supers_of` these
        loaded  as for `of_rows`
        """
        spec, layouts, views, on_weights = self.plan.spec, self.plan.layouts, self.views, self.plan.on_weights
        x_tiles = [self.x_tile(units[at.unit], column, at.first_step) for at in segment.granules]
        sum_x = self.zero()
        if needs_sum_of_x(spec) and not on_weights:
            for x_tile in x_tiles:
                sum_x = ll.dot(ones(spec, layouts.weights), x_tile, sum_x)
        results: list[ll.Tile] = []
        of_table = group[0]
        if len(group) > 1 and spec.table == "group":
            of_table = group[0] * len(self.plan.segments) + group[1]
        for previous, (packed_row, row_of_scales), of_supers in zip(acc, rows, supers, strict=True):
            factors = self.factors_of(group, row_of_scales) if on_weights else None
            adds_to_total = on_weights or (is_one_sum(spec) and not adds_in_parts(spec))
            raw = previous if adds_to_total else self.zero()
            for at, x_tile in zip(segment.granules, x_tiles, strict=True):
                in_unit, first_step = place_in_units(spec, 0, at.first_step)
                k = k_of_units[at.unit] + in_unit * spec.unit_k if in_unit else k_of_units[at.unit]
                codes = ll.load_packed(
                    views.weights, offsets=[packed_row, k], layout=layouts.weights, first_step=first_step
                )
                values = self.decode(codes, of_table, row_of_scales)
                if factors:
                    values = self.scaled(values, *factors)
                raw = ll.dot(values, x_tile, raw)
            if on_weights or is_one_sum(spec):
                results.append(raw if adds_to_total else previous + raw)
                continue
            scale = self.of_rows(views.scales, spec.scale, group, row_of_scales, loaded)
            if spec.super_scale and not spec.has_integer_scales:
                scale = scale * of_supers[0]
            scale, corrector = self.for_rows(scale), None
            if spec.corrector:
                corrector = self.of_rows(views.correctors, spec.corrector, group, row_of_scales, loaded)
                if spec.has_super_offsets:
                    corrector = corrector * of_supers[1]
                corrector = self.for_rows(corrector)
            factor = prescale_of_codes(spec) if kept_factor(spec) == 1.0 else 1.0
            results.append(
                added(spec, previous, raw, sum_x, scale, corrector, self.operands.table_unscale, factor=factor)
            )
        return tuple(results)

    @ll.inline
    def finish(self, part, accumulators, row, column):  # type: ignore[no-untyped-def]
        """Stores a part of y^T of the tile that begins at `row` and `column`."""
        row = row + part * self.plan.rows_of_part
        if self.plan.unscale != 1.0:
            accumulators = tuple(acc * self.plan.unscale for acc in accumulators)
        if self.plan.is_fitted:
            accumulators = tuple(acc * self.operands.unfit for acc in accumulators)
        spec, y_view, first_of_expert = self.plan.spec, self.views.y, None
        if self.at is not None:
            y_view = view_of_result(spec, self.operands.y, self.at.stop, spec.columns_of_y)
            first_of_expert = self.at.weights
        result = finished(
            spec, accumulators, self.operands, self.residual_view, row, column, first_of_expert=first_of_expert
        )
        ll.store_global(result, y_view, offsets=[row, column])

    def total(self, acc: tuple[ll.Tile, ...]) -> tuple[ll.Tile, ...]:
        """The accumulators of all slices."""
        layouts = self.plan.layouts
        if self.plan.schedule.slices == 1:
            return acc
        sliced = [ll.view(tile, dtype=tile.dtype, layout=layouts.sliced_accumulators) for tile in acc]
        return tuple(ll.sum(ll.convert_layout(tile, layouts.gathered), 0) for tile in sliced)

    @ll.inline
    def make_own_tile(self):  # type: ignore[no-untyped-def]
        """All stages of one tile."""
        plan, schedule = self.plan, self.plan.schedule
        row = self.block % plan.tiles_of_rows * plan.rows
        column = self.block // plan.tiles_of_rows * schedule.columns
        # Blocks begin all along K, so that they read different parts of x at a time.
        first = self.block % plan.tiles_of_rows * plan.stages_of_tile // plan.tiles_of_rows
        self.make_whole_tile(row, column, first)

    @ll.inline
    def make_tiles_of_experts(self):  # type: ignore[no-untyped-def]
        """Whole tiles, each `blocks` tiles from the one before."""
        plan, schedule = self.plan, self.plan.schedule
        work = ExpertWork(plan.spec, self.operands, plan.rows, schedule.columns, schedule.threads)
        for number in ll.range(self.block, work.tiles, self.operands.blocks):
            at = self.go_to(work.place_of(number))
            first = small(at.row) // plan.rows * plan.stages_of_tile // plan.tiles_of_rows
            self.make_whole_tile(at.row, at.column, first)

    def go_to(self, tile: ExpertTile) -> ExpertTile:
        """What follows is of this tile of an expert."""
        self.at = tile
        return tile

    @ll.inline
    def make_whole_tile(self, row, column, first):  # type: ignore[no-untyped-def]
        """All stages of a tile, from `first` on."""
        plan, schedule, acc = self.plan, self.plan.schedule, self.zeros()
        for done in ll.range(plan.stages_of_tile, stages=schedule.stages, producer=schedule.producer):
            stage = (first + done) % plan.stages_of_tile
            for step in range(schedule.steps):
                acc = self.with_step(acc, step, row, column, stage)
        for part, accumulators in by_parts(self.total(acc), plan.spec.products):
            self.finish(part, accumulators, row, column)

    @ll.inline
    def make_share(self):  # type: ignore[no-untyped-def]
        """An equal range of the stages of all tiles."""
        plan, schedule, acc = self.plan, self.plan.schedule, self.zeros()
        ending = TileEnding(
            plan.stages_of_tile,
            lambda m: (ll.ceildiv(m, schedule.columns) * plan.tiles_of_rows,),
            schedule.threads,
            self.finish,
            plan.spec.products,
            total_type(plan.spec) if plan.spec.adds_integers else schedule.parts_type,
        )
        tiles_of_columns = ll.ceildiv(self.operands.m, schedule.columns)
        stages = tiles_of_columns * (plan.tiles_of_rows * plan.stages_of_tile)
        share = share_of(self.block, self.operands.blocks, stages)
        for done in ll.range(share.end - share.begin, stages=schedule.stages, producer=schedule.producer):
            number = ll.assume_range(share.end - 1 - done, 0, 1 << 31)
            tile, stage = number // plan.stages_of_tile, number % plan.stages_of_tile
            row = tile % plan.tiles_of_rows * plan.rows
            column = tile // plan.tiles_of_rows * schedule.columns
            for step in range(schedule.steps):
                acc = self.with_step(acc, step, row, column, stage)
            if (stage == 0) | (number == share.begin):
                ending.end_tile(share, number, self.total(acc), row, column)
                acc = self.zeros()


def streaming_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, whose work is divided as `schedule` says, which has stages.

    Parameters as for `linear_kernel`; `blocks` says how many are launched to share the work.

    Requires `can_stream(spec, schedule)`.
    """
    plan = _Plan(spec, schedule)

    def trace(operands: Arguments) -> None:
        block = _Block(plan, operands)
        if spec.experts:
            block.make_tiles_of_experts()
        elif schedule.share_tiles:
            block.make_share()
        else:
            block.make_own_tile()

    return make_linear(
        spec,
        schedule,
        trace,
        lambda blocks: (blocks,),
        schedule.threads,
        # Rows of x alone and in a batch, for which columns differ, have the same result.
        decode_offsets="accumulators" if schedule.columns <= 16 else "auto",
        exchange_registers=schedule.exchanges_registers,
        blocks_per_sm=schedule.blocks_per_sm,
    )
