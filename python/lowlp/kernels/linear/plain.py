"""y = x @ w^T as Y^T = W X^T: the packed weights are operand A of the matrix instruction.

A warp makes a tile of y^T: the rows of one unit of packed weights by 8, 16 or 32 rows of x. Along K it goes from group
to group, and in a group from span to span of 64 weights, which are a unit or several narrower ones. It sums the raw
products of the unscaled weights and x, and at a group's end adds them to the result, scaled:

    acc += s * raw                       symmetric
    acc += s * (raw - z * sum_x)         with zero points
    acc += s * raw + b * sum_x           with offsets

and at the end, with a second scale of the whole tensor, acc *= s2: for one weight the order of `dequantize`, where
`s * s2` would round differently. Of scales in two levels, s and b are products in f32 (`two_levels`). Bias, epilogue
and residual follow, and one rounding (`parts.finished`). With 'silu_mul', y = silu(x Wg^T) * (x Wu^T), a block makes
the same rows of gate and up, and no product goes to memory.

`sum_x`, the sum of the group's x, is one more product, with a tile of ones. So nothing but the scale is rounded, and
the result for one weight is what `QuantizedTensor.dequantize` computes. What the activation type cannot hold as it is
comes in another form, which is exact too, and is put right on the accumulators:

    f6e5m0, f7e5m1 with f16    halves of the values: raw * 2
    bipolar codes u            2 * raw - (2^b - 1) * sum_x
    tables                     entries times a power of two, a parameter of the kernel

x is seen as a tensor of groups, whose ends bound it: what lies outside of a group reads as zero, whatever the weights
there are. So a span of weights with parts of several groups serves each of them, by the steps of 16 along K that the
group has a part in (`_Segment`).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from lowlp import language as ll
from lowlp.errors import LowlpValueError
from lowlp.layouts.register_layout import Layout, column_local, local, reduce, spatial
from lowlp.numeric.group_codes import PACKED_CODE_TYPES

from .codebooks.partial_sums import partial_sums_kernel
from .codebooks.program import codebook_kernel
from .codebooks.wide import can_look_up_wide, wide_codebook_kernel
from .experts import ExpertTile, ExpertWork
from .integer_sums import adds_in_parts, is_one_sum, ones, sum_type, total_type
from .parts import (
    ACCUMULATOR_FRAGMENT,
    UNIT_K,
    Arguments,
    a_fragment,
    added,
    as_f32,
    decoder,
    finished,
    make_linear,
    needs_sum_of_x,
    packed_view,
    view_of_result,
    x_fragment,
)
from .schedule import Schedule
from .spec import LinearSpec
from .streaming import streaming_kernel
from .streaming_layouts import can_stream
from .two_levels import number_of_fields, stored_groups
from .warpgroup_layouts import can_go_wide
from .warpgroups import wide_kernel

# Weights of a row that are taken together: a unit of packed weights, or several narrower ones.
_SPAN_K: Final = UNIT_K
# Spans that are unrolled so that each group takes its own steps of them.
_MOST_UNROLLED: Final = 16


class _Segment(NamedTuple):
    """Steps of one span in which a group has a part.

    span        counted from the span in which the first group begins
    first_step  of the span
    steps       how many
    in_group    where they begin, counted from the group's first weight: negative in front of it
    """

    span: int
    first_step: int
    steps: int
    in_group: int


def _segments(group: int, group_size: int, step_k: int) -> list[_Segment]:
    """The steps, of `step_k` weights, of a group of a row whose first group begins a span."""
    first, last = group * group_size // step_k, ((group + 1) * group_size - 1) // step_k
    found, span_steps = [], _SPAN_K // step_k
    while first <= last:
        span, step = divmod(first, span_steps)
        steps = min(span_steps - step, last + 1 - first)
        found.append(_Segment(span, step, steps, first * step_k - group * group_size))
        first += steps
    return found


def _loads(unit_steps: int, first_step: int, steps: int) -> list[tuple[int, int]]:
    """The first step of each load that takes these steps of a span, and how many it takes: of one unit, or whole
    units."""
    found, stop = [], first_step + steps
    while first_step < stop:
        in_unit, left = first_step % unit_steps, stop - first_step
        taken = min(unit_steps - in_unit, left) if in_unit or left < unit_steps else left // unit_steps * unit_steps
        found.append((first_step, taken))
        first_step += taken
    return found


class _Plan:
    """The numbers and layouts that spec and schedule fix.

    rows               of y^T that a block makes
    step_k             weights along K of a product, and
    unit_steps         so many of these that a unit has, and
    span_steps         that a span has
    period             so many groups take so many whole spans
    segments           of each group of a period
    are_unrolled       groups take no more than their own steps: where their segments are few
    accumulators, row  how threads hold accumulators, and one number for each row of them
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        self.spec, self.schedule = spec, schedule
        self.rows = schedule.warps * spec.rows_of_unit
        self.step_k = spec.step_k
        self.unit_steps, self.span_steps = spec.unit_k // self.step_k, _SPAN_K // self.step_k
        self.period = _SPAN_K // math.gcd(_SPAN_K, spec.group_size)
        self.segments = [_segments(part, spec.group_size, self.step_k) for part in range(min(self.period, spec.groups))]
        number = sum(map(len, self.segments))
        self.are_unrolled = spec.group_size % _SPAN_K > 0 and number <= _MOST_UNROLLED
        self.row_tiles, self.column_tiles = spec.rows_of_unit // 16, schedule.columns // 8
        self.accumulators = spatial(schedule.warps, 1) * local(self.row_tiles, self.column_tiles) * ACCUMULATOR_FRAGMENT
        self.row = self.accumulators.reduce([1], keep_dims=True)

    def weights(self, steps: int) -> Layout:
        """How threads hold the weights of so many steps, of one unit or of whole units."""
        of_unit = min(steps, self.unit_steps)
        units = local(1, steps // of_unit) * local(self.row_tiles, of_unit)
        return spatial(self.schedule.warps, 1) * units * a_fragment(self.spec)

    def x(self, steps: int) -> Layout:
        """The same of x, of which all warps hold the same."""
        replicas = reduce(spatial(1, 1, self.schedule.warps), dims=[2])
        return replicas * column_local(self.column_tiles, steps) * x_fragment(self.spec)


class _Block:
    """What a block does, as it is traced.

    at  the tile that it makes, of the weights of an expert; None of others
    """

    at: ExpertTile | None = None

    def __init__(self, plan: _Plan, operands: Arguments) -> None:
        self.plan, self.operands = plan, operands
        spec, m = plan.spec, operands.m
        (self.block,) = ll.block_indices()
        if not spec.experts:
            blocks_of_columns = ll.ceildiv(m, plan.schedule.columns)
            self.row = self.block // blocks_of_columns * plan.rows
            self.column = self.block % blocks_of_columns * plan.schedule.columns
        # One view for each group: what lies beyond a group's end is zero.
        x_shape, x_strides = [spec.groups, m, spec.group_size], [spec.group_size, operands.x_stride, 1]
        self.x_view = ll.view_global(operands.x, shape=x_shape, strides=x_strides)
        self.w_view = packed_view(spec, operands.weights)

        def per_group(array: ll.Pointer, groups: int) -> Any:
            rows = spec.rows_of_weights
            return ll.view_global(array, shape=[groups, rows, 1], strides=[rows, 1, 1])

        self.s_view = per_group(operands.scales, stored_groups(spec, spec.scale))
        self.c_view = self.s_view
        if spec.corrector:
            self.c_view = per_group(operands.correctors, stored_groups(spec, spec.corrector))
        if spec.super_scale:
            self.super_scales = per_group(operands.super_scales, spec.supers)
        if spec.has_super_offsets:
            self.super_offsets = per_group(operands.super_offsets, spec.supers)
        self.decode = decoder(spec, operands.table, 32 * plan.schedule.warps)

    def zero(self) -> ll.Tile:
        """Accumulators of a product."""
        return ll.full(0, sum_type(self.plan.spec), layout=self.plan.accumulators)

    def zero_total(self) -> ll.Tile:
        """Accumulators of a tile."""
        return ll.full(0, total_type(self.plan.spec), layout=self.plan.accumulators)

    @ll.inline
    def multiply(self, product: int, group, span, first_step: int, steps: int, in_group, raw, sum_x):  # type: ignore[no-untyped-def]
        """Adds the products of some steps of a span, which begin `in_group` weights after the group does."""
        plan, spec = self.plan, self.plan.spec
        packed_row = self.row + product * spec.packed_rows_of_product
        row_of_scales = self.row + spec.first_rows[product]
        if self.at is not None:
            packed_row, row_of_scales = packed_row + self.at.packed, row_of_scales + self.at.weights
        before = raw
        if begins_anew(spec):
            raw = self.zero()
        for first, taken in _loads(plan.unit_steps, first_step, steps):
            at = [group, self.column, in_group + (first - first_step) * plan.step_k]
            x_tile = ll.transpose(ll.load_global(self.x_view, offsets=at, layout=plan.x(taken)))
            in_unit = first % plan.unit_steps
            k = span * _SPAN_K + (first - in_unit) * plan.step_k
            codes = ll.load_packed(self.w_view, offsets=[packed_row, k], layout=plan.weights(taken), first_step=in_unit)
            raw = ll.dot(self.decode(codes, group, row_of_scales), x_tile, raw)
            if needs_sum_of_x(spec):
                sum_x = ll.dot(ones(spec, plan.weights(taken)), x_tile, sum_x)
        if begins_anew(spec):
            raw = before + raw
        return raw, sum_x

    @ll.inline
    def with_group(self, product: int, acc, group, raw, sum_x):  # type: ignore[no-untyped-def]
        """The result with what a group adds to it."""
        spec = self.plan.spec
        if is_one_sum(spec):
            return acc + raw
        row = self.row + spec.first_rows[product]
        if self.at is not None:
            row = row + self.at.weights
        scale = self.of_group(self.s_view, spec.scale, group, row)
        if spec.super_scale and not spec.has_integer_scales:
            scale = scale * self.of_super(self.super_scales, group, row)
        corrector = None
        if spec.corrector:
            corrector = self.of_group(self.c_view, spec.corrector, group, row)
            if spec.has_super_offsets:
                corrector = corrector * self.of_super(self.super_offsets, group, row)
        return added(spec, acc, raw, sum_x, scale, corrector, self.operands.table_unscale)

    def of_group(self, view: Any, kind: str, group: ll.Scalar, row: ll.Scalar) -> ll.Tile:
        """Scales and the like of a group, in f32, a number for each row."""

        def load(number: Any) -> ll.Tile:
            return ll.load_global(view, offsets=[number, row, 0], layout=self.plan.row)

        return number_of_fields(kind, group, load) if kind in PACKED_CODE_TYPES else as_f32(load(group), kind)

    def of_super(self, view: Any, group: ll.Scalar, row: ll.Scalar) -> ll.Tile:
        """Super-scales and the like of the super-group that a group is in."""
        spec = self.plan.spec
        number = group // (spec.super_group_size // spec.group_size) if spec.supers > 1 else 0
        return ll.cast(ll.load_global(view, offsets=[number, row, 0], layout=self.plan.row), "f32")

    @ll.inline
    def accumulators_of_whole_spans(self, product: int):  # type: ignore[no-untyped-def]
        """The result where each group takes whole spans."""
        acc, spans = self.zero_total(), self.plan.spec.group_size // _SPAN_K
        for group in ll.range(self.plan.spec.groups):
            raw = self.zero()
            sum_x = self.zero()
            for span in ll.range(spans):
                number = group * spans + span
                steps = self.plan.span_steps
                raw, sum_x = self.multiply(product, group, number, 0, steps, span * _SPAN_K, raw, sum_x)
            acc = self.with_group(product, acc, group, raw, sum_x)
        return acc

    @ll.inline
    def accumulators_of_segments(self, product: int):  # type: ignore[no-untyped-def]
        """The result where each group takes its own steps of the spans of a period."""
        plan, acc = self.plan, self.zero_total()
        spans = plan.period * plan.spec.group_size // _SPAN_K
        for turn in ll.range(-(-plan.spec.groups // plan.period)):
            for part in range(len(plan.segments)):
                group = turn * plan.period + part
                raw = sum_x = self.zero()
                for at in plan.segments[part]:
                    span = turn * spans + at.span
                    raw, sum_x = self.multiply(product, group, span, at.first_step, at.steps, at.in_group, raw, sum_x)
                acc = self.with_group(product, acc, group, raw, sum_x)
        return acc

    @ll.inline
    def accumulators_of_shared_spans(self, product: int):  # type: ignore[no-untyped-def]
        """The result where each group takes all spans that it has a part in."""
        spec, acc = self.plan.spec, self.zero_total()
        for group in ll.range(spec.groups):
            raw = self.zero()
            sum_x = self.zero()
            start = group * spec.group_size
            for span in ll.range(start // _SPAN_K, (start + spec.group_size - 1) // _SPAN_K + 1):
                in_group = span * _SPAN_K - start
                raw, sum_x = self.multiply(product, group, span, 0, self.plan.span_steps, in_group, raw, sum_x)
            acc = self.with_group(product, acc, group, raw, sum_x)
        return acc

    def make_tile(self) -> None:
        """Multiplies and stores."""
        spec, operands = self.plan.spec, self.operands
        make = self.accumulators_of_segments if self.plan.are_unrolled else self.accumulators_of_shared_spans
        if spec.group_size % _SPAN_K == 0:
            make = self.accumulators_of_whole_spans
        accumulators = tuple(make(product) for product in range(spec.products))
        r_view = None
        if spec.residual:
            r_view = view_of_result(spec, operands.residual, operands.m, operands.residual_stride)
        first_of_expert = None if self.at is None else self.at.weights
        result = finished(spec, accumulators, operands, r_view, self.row, self.column, first_of_expert=first_of_expert)
        end = operands.m if self.at is None else self.at.stop
        y_view = view_of_result(spec, operands.y, end, spec.columns_of_y)
        ll.store_global(result, y_view, offsets=[self.row, self.column])

    @ll.inline
    def make_tiles_of_experts(self):  # type: ignore[no-untyped-def]
        """Tiles of the weights of experts, each `blocks` tiles from the one before."""
        plan = self.plan
        work = ExpertWork(plan.spec, self.operands, plan.rows, plan.schedule.columns, 32 * plan.schedule.warps)
        for number in ll.range(self.block, work.tiles, self.operands.blocks):
            self.go_to(work.place_of(number))
            self.make_tile()

    def go_to(self, tile: ExpertTile) -> None:
        """What follows is of this tile of an expert."""
        self.at, self.row, self.column = tile, tile.row, tile.column


def begins_anew(spec: LinearSpec) -> bool:
    """Whether the products of a span are summed by themselves: of 8-bit floats, whose sums some tensor cores cut off,
    and of integers where sums might leave int32."""
    return adds_in_parts(spec) or (spec.is_of_bytes and not spec.is_of_integers)


def linear_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, whose work is divided as `schedule` says.

    Its parameters are the operands that `operand_list` lists, by name and in that order.

    Raises LowlpValueError for a schedule with stages that no kernel for `spec` has.
    """
    if schedule.partial_sums:
        return partial_sums_kernel(spec, schedule)
    if spec.vectors and schedule.warpgroups and can_look_up_wide(spec, schedule):
        return wide_codebook_kernel(spec, schedule)
    if spec.vectors:
        return codebook_kernel(spec, schedule)
    if schedule.stages:
        has_program, make = (can_go_wide, wide_kernel) if schedule.warpgroups else (can_stream, streaming_kernel)
        if not has_program(spec, schedule):
            raise LowlpValueError(f"schedule: no kernel with stages takes {spec} as {schedule} divides it")
        return make(spec, schedule)
    return _plain_kernel(spec, schedule)


def _plain_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    plan = _Plan(spec, schedule)
    blocks_of_rows = -(-spec.columns_of_y // plan.rows)

    def trace(operands: Arguments) -> None:
        block = _Block(plan, operands)
        if spec.experts:
            block.make_tiles_of_experts()
        else:
            block.make_tile()

    def grid_of_tiles(m: Any) -> tuple[Any, ...]:
        return (ll.ceildiv(m, schedule.columns) * blocks_of_rows,)

    def grid_of_experts(blocks: Any) -> tuple[Any, ...]:
        return (blocks,)

    return make_linear(
        spec,
        schedule,
        trace,
        grid_of_experts if spec.experts else grid_of_tiles,
        32 * schedule.warps,
        # Where 'auto' takes them off depends on the columns, and so would the last bits of a row's result.
        decode_offsets="accumulators",
    )
