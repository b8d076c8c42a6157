"""y = x @ w^T as Y^T = W X^T: the packed weights are operand A of the matrix instruction.

A warp makes a tile of y^T: the rows of one unit of packed weights by 8, 16 or 32 rows of x. Along K it goes from group
to group, and in a group from unit to unit. It sums the raw products of the unscaled weights and x, and at a group's end
adds them to the result, scaled:

    acc += s * raw                       symmetric
    acc += s * (raw - z * sum_x)         with zero points
    acc += s * raw + b * sum_x           with offsets

and at the end, with a second scale of the whole tensor, acc *= s2: for one weight the order of `dequantize`, where
`s * s2` would round differently. Bias, epilogue and residual follow, and one rounding (`parts.finished`). With
'silu_mul', y = silu(x Wg^T) * (x Wu^T), a block makes the same rows of gate and up, and no product goes to memory.

`sum_x`, the sum of the group's x, is one more product, with a tile of ones. So nothing but the scale is rounded, and
the result for one weight is what `QuantizedTensor.dequantize` computes. What the activation type cannot hold as it is
comes in another form, which is exact too, and is put right on the sums:

    f6e5m0, f7e5m1 with f16    halves of the values: raw * 2
    bipolar codes u            2 * raw - (2^b - 1) * sum_x
    tables                     entries times a power of two, a parameter of the kernel

x is seen as a tensor of groups, whose ends bound it: what lies outside of a group reads as zero, whatever the weights
there are. So a unit of weights with parts of several groups serves each of them, by the steps of 16 along K that the
group has a part in (`_Segment`).
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from lowlp import language as ll
from lowlp.errors import LowlpValueError
from lowlp.layouts.register_layout import Layout, column_local, local, reduce, spatial

from .operand_list import parameters_of
from .parts import (
    A_FRAGMENT,
    STEP_K,
    SUM_FRAGMENT,
    UNIT_K,
    X_FRAGMENT,
    Arguments,
    added,
    as_f32,
    decoder,
    finished,
    needs_sum_of_x,
    packed_view,
    view_of_result,
)
from .schedule import Schedule
from .spec import LinearSpec
from .streaming import can_stream, streaming_kernel
from .warpgroups import can_go_wide, wide_kernel

_UNIT_STEPS: Final = UNIT_K // STEP_K
# Loads of weights that are unrolled so that each group takes its own steps of units.
_MOST_UNROLLED: Final = 16


class _Segment(NamedTuple):
    """Steps of one unit in which a group has a part.

    unit        counted from the unit in which the first group begins
    first_step  of the unit
    steps       how many
    in_group    where they begin, counted from the group's first weight: negative in front of it
    """

    unit: int
    first_step: int
    steps: int
    in_group: int


def _segments(group: int, group_size: int) -> list[_Segment]:
    """The steps of a group of a row whose first group begins a unit."""
    first, last = group * group_size // STEP_K, ((group + 1) * group_size - 1) // STEP_K
    found = []
    while first <= last:
        unit, step = divmod(first, _UNIT_STEPS)
        steps = min(_UNIT_STEPS - step, last + 1 - first)
        found.append(_Segment(unit, step, steps, first * STEP_K - group * group_size))
        first += steps
    return found


def linear_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, whose work is divided as `schedule` says.

    Parameters, in order: x [M, K] with a row stride of `x_stride` elements; weights, as `lowlp.packing` packs them;
    scales [K / group_size, N]; then, where the spec has them, zeros or offsets [K / group_size, N]; table, its entries
    times a power of two, and that power's inverse; scale2; bias [N]; and residual, as y; then y [M, N], or [M, N / 2]
    with gate and up; m; x_stride; with a residual its row stride; and with stages `blocks`, see `streaming_kernel`.

    Raises LowlpValueError for a schedule with stages that no kernel for `spec` has.
    """
    if schedule.stages:
        has_program, make = (can_go_wide, wide_kernel) if schedule.warpgroups else (can_stream, streaming_kernel)
        if not has_program(spec, schedule):
            raise LowlpValueError(f"schedule: no kernel with stages takes {spec} as {schedule} divides it")
        return make(spec, schedule)
    groups = spec.groups
    # So many groups take so many whole units; of those that are few, each takes no more than its own steps.
    period = UNIT_K // math.gcd(UNIT_K, spec.group_size)
    segments = [_segments(part, spec.group_size) for part in range(min(period, groups))]
    are_unrolled = spec.group_size % UNIT_K > 0 and sum(map(len, segments)) <= _MOST_UNROLLED

    warps, rows_of_unit, columns = schedule.warps, spec.rows_of_unit, schedule.columns
    rows = warps * rows_of_unit
    row_tiles, column_tiles = rows_of_unit // 16, columns // 8
    sum_layout = spatial(warps, 1) * local(row_tiles, column_tiles) * SUM_FRAGMENT
    row_layout = sum_layout.reduce([1], keep_dims=True)
    # All warps hold the same x.
    x_replicas = reduce(spatial(1, 1, warps), dims=[2])

    def a_layout(steps: int) -> Layout:
        return spatial(warps, 1) * local(row_tiles, steps) * A_FRAGMENT

    def x_layout(steps: int) -> Layout:
        return x_replicas * column_local(column_tiles, steps) * X_FRAGMENT

    def body(**arguments: Any) -> None:
        operands = Arguments(**arguments)
        m = operands.m
        (block,) = ll.block_indices()
        blocks_of_columns = ll.ceildiv(m, columns)
        row, column = block // blocks_of_columns * rows, block % blocks_of_columns * columns
        # One view for each group: what lies beyond a group's end is zero.
        x_view = ll.view_global(
            operands.x, shape=[groups, m, spec.group_size], strides=[spec.group_size, operands.x_stride, 1]
        )
        w_view = packed_view(spec, operands.weights)
        per_group = {"shape": [groups, spec.n, 1], "strides": [spec.n, 1, 1]}
        s_view = ll.view_global(operands.scales, **per_group)
        c_view = ll.view_global(operands.correctors, **per_group) if spec.corrector else s_view
        decode = decoder(spec, operands.table, 32 * warps)

        @ll.inline
        def multiply(product: int, group, unit, first_step: int, steps: int, in_group, raw, sum_x):  # type: ignore[no-untyped-def]
            """Adds the products of some steps of a unit."""
            x_tile = ll.transpose(ll.load_global(x_view, offsets=[group, column, in_group], layout=x_layout(steps)))
            packed_row = row + product * spec.packed_rows_of_product
            codes = ll.load_packed(
                w_view, offsets=[packed_row, unit * UNIT_K], layout=a_layout(steps), first_step=first_step
            )
            raw = ll.dot(decode(codes, group, row + spec.first_rows[product]), x_tile, raw)
            if needs_sum_of_x(spec):
                ones = ll.full(1.0, spec.activation, layout=a_layout(steps))
                sum_x = ll.dot(ones, x_tile, sum_x)
            return raw, sum_x

        @ll.inline
        def with_group(product: int, acc, group, raw, sum_x):  # type: ignore[no-untyped-def]
            """The result with what a group adds to it."""
            at = [group, row + spec.first_rows[product], 0]
            scale = as_f32(ll.load_global(s_view, offsets=at, layout=row_layout), spec.scale)
            corrector = None
            if spec.corrector:
                corrector = as_f32(ll.load_global(c_view, offsets=at, layout=row_layout), spec.corrector)
            return added(spec, acc, raw, sum_x, scale, corrector, operands.table_unscale)

        @ll.inline
        def sums_of(product: int):  # type: ignore[no-untyped-def]
            acc = ll.full(0.0, "f32", layout=sum_layout)
            if spec.group_size % UNIT_K == 0:
                units = spec.group_size // UNIT_K
                for group in ll.range(groups):
                    raw = ll.full(0.0, "f32", layout=sum_layout)
                    sum_x = ll.full(0.0, "f32", layout=sum_layout)
                    for unit in ll.range(units):
                        number = group * units + unit
                        raw, sum_x = multiply(product, group, number, 0, _UNIT_STEPS, unit * UNIT_K, raw, sum_x)
                    acc = with_group(product, acc, group, raw, sum_x)
            elif are_unrolled:
                units = period * spec.group_size // UNIT_K
                for turn in ll.range(-(-groups // period)):
                    for part in range(len(segments)):
                        group = turn * period + part
                        raw = sum_x = ll.full(0.0, "f32", layout=sum_layout)
                        for at in segments[part]:
                            unit = turn * units + at.unit
                            raw, sum_x = multiply(
                                product, group, unit, at.first_step, at.steps, at.in_group, raw, sum_x
                            )
                        acc = with_group(product, acc, group, raw, sum_x)
            else:
                for group in ll.range(groups):
                    raw = ll.full(0.0, "f32", layout=sum_layout)
                    sum_x = ll.full(0.0, "f32", layout=sum_layout)
                    start = group * spec.group_size
                    for unit in ll.range(start // UNIT_K, (start + spec.group_size - 1) // UNIT_K + 1):
                        in_group = unit * UNIT_K - start
                        raw, sum_x = multiply(product, group, unit, 0, _UNIT_STEPS, in_group, raw, sum_x)
                    acc = with_group(product, acc, group, raw, sum_x)
            return acc

        sums = tuple(sums_of(product) for product in range(spec.products))
        r_view = view_of_result(spec, operands.residual, m, operands.residual_stride) if spec.residual else None
        result = finished(spec, sums, operands, r_view, row, column)
        ll.store_global(result, view_of_result(spec, operands.y, m, spec.columns_of_y), offsets=[row, column])

    blocks_of_rows = -(-spec.columns_of_y // rows)
    return ll.make_kernel(
        body,
        name=f"linear_{spec.weight}_{spec.activation}",
        parameters=parameters_of(spec, schedule),
        grid=lambda m: (ll.ceildiv(m, columns) * blocks_of_rows,),
        num_threads=32 * warps,
        schedule=ll.KernelSchedule(
            # Where 'auto' takes them off depends on the columns, and so would the last bits of a row's result.
            decode_offsets="sums",
            table_form=schedule.table_form,
            table_copies=schedule.table_copies,
        ),
    )
