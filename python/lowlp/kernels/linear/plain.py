"""y = x @ w^T as Y^T = W X^T: the weights, packed in format 1, are operand A of the matrix instruction.

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

Groups are padded to 16, 32 or a multiple of 64. x is seen as a tensor of groups, whose ends bound it: what lies behind
reads as zero, whatever the padding of the weights holds.
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.errors import LowlpValueError
from lowlp.layouts.register_layout import Layout, column_local, local, reduce, spatial
from lowlp.weights.packing import padded_group

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

_UNIT_STEPS = UNIT_K // STEP_K


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
    groups, padded = spec.groups, padded_group(spec.group_size)

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
            if padded >= UNIT_K:
                units = padded // UNIT_K
                for group in ll.range(groups):
                    raw = ll.full(0.0, "f32", layout=sum_layout)
                    sum_x = ll.full(0.0, "f32", layout=sum_layout)
                    for unit in ll.range(units):
                        number = group * units + unit
                        raw, sum_x = multiply(product, group, number, 0, _UNIT_STEPS, unit * UNIT_K, raw, sum_x)
                    acc = with_group(product, acc, group, raw, sum_x)
            else:
                in_unit, steps = UNIT_K // padded, padded // STEP_K
                for unit in ll.range(-(-groups // in_unit)):
                    for part in range(min(in_unit, groups)):
                        zero = ll.full(0.0, "f32", layout=sum_layout)
                        group = unit * in_unit + part
                        raw, sum_x = multiply(product, group, unit, part * steps, steps, 0, zero, zero)
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
