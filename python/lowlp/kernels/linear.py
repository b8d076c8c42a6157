"""y = x @ w^T as Y^T = W X^T: the weights, packed in format 1, are operand A of the matrix instruction.

A warp makes a tile of y^T: the rows of one unit of packed weights by 8, 16 or 32 rows of x. Along K it goes from group
to group, and in a group from unit to unit. It sums the raw products of the unscaled weights and x, and at a group's end
adds them to the result, scaled:

    acc += s * raw                       symmetric
    acc += s * (raw - z * sum_x)         with zero points
    acc += s * raw + b * sum_x           with offsets

and at the end, with a second scale of the whole tensor, acc *= s2: for one weight the order of `dequantize`, where
`s * s2` would round differently.

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

from collections.abc import Callable

from .. import language as ll
from ..dtypes import dtype
from ..layouts import Layout, column_local, layout, local, reduce, spatial
from ..packing import padded_group, placement_name
from .linear_spec import LinearSpec, Schedule, prescale

UNIT_K = 64
STEP_K = 16
_UNIT_STEPS = UNIT_K // STEP_K

# The fragments of mma.sync m16n8k16 (PTX ISA, "Matrix Fragments for mma.m16n8k16").
_A_FRAGMENT = layout("column_local(2, 2).spatial(8, 4).local(1, 2)")
_X_FRAGMENT = layout("local(1, 2).spatial(8, 4).local(1, 2)")
_SUM_FRAGMENT = layout("local(2, 1).spatial(8, 4).local(1, 2)")


def linear_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, whose work is divided as `schedule` says.

    Parameters, in order: x [M, K] with a row stride of `x_stride` elements; weights, as `lowlp.packing` packs them;
    scales [N, K / group_size]; then, where the spec has them, zeros or offsets [N, K / group_size]; table, its entries
    times a power of two, and that power's inverse; scale2; and bias [N]; then y [M, N]; m; x_stride.
    """
    is_table = spec.table != ""
    is_bipolar = spec.weight.startswith("bipolar")
    groups, padded = spec.groups, padded_group(spec.group_size)
    factor = 1.0 if is_table else prescale(dtype(spec.weight), spec.activation)
    needs_sum = bool(spec.corrector) or is_bipolar

    warps, rows_of_unit, columns = schedule.warps, spec.rows_of_unit, schedule.columns
    rows = warps * rows_of_unit
    row_tiles, column_tiles = rows_of_unit // 16, columns // 8
    sum_layout = spatial(warps, 1) * local(row_tiles, column_tiles) * _SUM_FRAGMENT
    row_layout = sum_layout.reduce([1], keep_dims=True)
    # All warps hold the same x.
    x_replicas = reduce(spatial(1, 1, warps), dims=[2])

    def a_layout(steps: int) -> Layout:
        return spatial(warps, 1) * local(row_tiles, steps) * _A_FRAGMENT

    def x_layout(steps: int) -> Layout:
        return x_replicas * column_local(column_tiles, steps) * _X_FRAGMENT

    def body(x, weights, scales, correctors, table, table_unscale, scale2, bias, y, m, x_stride):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        blocks_of_columns = ll.ceildiv(m, columns)
        row, column = block // blocks_of_columns * rows, block % blocks_of_columns * columns
        # One view for each group: what lies behind a group's end is zero.
        x_view = ll.view_global(x, shape=[groups, m, spec.group_size], strides=[spec.group_size, x_stride, 1])
        w_view = ll.view_packed(
            weights,
            shape=[spec.n, groups * padded],
            dtype=f"uint{spec.bits}" if is_table or is_bipolar else spec.weight,
            placement=placement_name(spec.weight, spec.activation),
        )
        per_group = {"shape": [groups, spec.n, 1], "strides": [1, groups, 1]}
        s_view = ll.view_global(scales, **per_group)
        c_view = ll.view_global(correctors, **per_group) if spec.corrector else s_view
        decode = _decoder(spec, factor, table, schedule)

        @ll.inline
        def multiply(group, unit, first_step: int, steps: int, in_group, raw, sum_x):  # type: ignore[no-untyped-def]
            """Adds the products of some steps of a unit."""
            x_tile = ll.transpose(ll.load_global(x_view, offsets=[group, column, in_group], layout=x_layout(steps)))
            codes = ll.load_packed(w_view, offsets=[row, unit * UNIT_K], layout=a_layout(steps), first_step=first_step)
            raw = ll.dot(decode(codes, group, row), x_tile, raw)
            if needs_sum:
                ones = ll.full(1.0, spec.activation, layout=a_layout(steps))
                sum_x = ll.dot(ones, x_tile, sum_x)
            return raw, sum_x

        @ll.inline
        def scaled(group, raw, sum_x):  # type: ignore[no-untyped-def]
            """What a group adds to the result."""
            if is_table:
                raw = raw * table_unscale
            elif factor != 1.0:
                raw = raw * (1.0 / factor)
            if is_bipolar:
                raw = raw * 2.0 - sum_x * float((1 << spec.bits) - 1)
            scale = _as_f32(ll.load_global(s_view, offsets=[group, row, 0], layout=row_layout), spec.scale)
            if not spec.corrector:
                return scale * raw
            corrector = ll.load_global(c_view, offsets=[group, row, 0], layout=row_layout)
            corrected = _as_f32(corrector, spec.corrector) * sum_x
            return scale * (raw - corrected) if spec.zeros else scale * raw + corrected

        acc = ll.full(0.0, "f32", layout=sum_layout)
        if padded >= UNIT_K:
            units = padded // UNIT_K
            for group in ll.range(groups):
                raw = ll.full(0.0, "f32", layout=sum_layout)
                sum_x = ll.full(0.0, "f32", layout=sum_layout)
                for unit in ll.range(units):
                    raw, sum_x = multiply(group, group * units + unit, 0, _UNIT_STEPS, unit * UNIT_K, raw, sum_x)
                acc = acc + scaled(group, raw, sum_x)
        else:
            in_unit, steps = UNIT_K // padded, padded // STEP_K
            for unit in ll.range(-(-groups // in_unit)):
                for part in range(min(in_unit, groups)):
                    zero = ll.full(0.0, "f32", layout=sum_layout)
                    group = unit * in_unit + part
                    raw, sum_x = multiply(group, unit, part * steps, steps, 0, zero, zero)
                    acc = acc + scaled(group, raw, sum_x)
        if spec.scale2:
            acc = acc * scale2
        if spec.bias:
            bias_view = ll.view_global(bias, shape=[spec.n, 1])
            acc = acc + _as_f32(ll.load_global(bias_view, offsets=[row, 0], layout=row_layout), spec.bias)
        y_view = ll.view_global(y, shape=[spec.n, m], strides=[1, spec.n])
        ll.store_global(ll.cast(acc, spec.out), y_view, offsets=[row, column])

    annotations = {
        "x": ll.pointer(spec.activation, align=16 if spec.aligned else None),
        "weights": ll.pointer("uint32", align=16),
        "scales": ll.pointer(_memory_type(spec.scale)),
        **({"correctors": ll.pointer(_memory_type(spec.corrector))} if spec.corrector else {}),
        **({"table": ll.pointer(spec.activation), "table_unscale": ll.f32} if is_table else {}),
        **({"scale2": ll.f32} if spec.scale2 else {}),
        **({"bias": ll.pointer(spec.bias)} if spec.bias else {}),
        "y": ll.pointer(spec.out),
        "m": ll.i32,
        "x_stride": ll.integer(64, divisible_by=8 if spec.aligned else 1),
    }
    blocks_of_rows = -(-spec.n // rows)
    return ll.make_kernel(
        body,
        name=f"linear_{spec.weight}_{spec.activation}",
        parameters=annotations,
        grid=lambda m: (ll.ceildiv(m, columns) * blocks_of_rows,),
        num_threads=32 * warps,
        table_form=schedule.table_form,
        table_copies=schedule.table_copies,
    )


def _memory_type(kind: str) -> str:
    """The type of the elements in memory of scales, zero points and the like."""
    return {"e8m0": "uint8", "e4m3": "f8e4m3"}.get(kind, kind)


def _as_f32(tile: ll.Tile, kind: str) -> ll.Tile:
    """Scales, zero points and the like as f32, which holds all of them exactly."""
    if kind != "e8m0":
        return ll.cast(tile, "f32")
    # 2^(e - 127) has e where f32 has its exponent; 2^-127 is half of the least normal number.
    exponent = ll.cast(tile, "uint32")
    bits = ll.where(ll.equal(exponent, 0), 1 << 22, exponent << 23)
    return ll.view(bits, dtype="f32", layout=bits.layout)


def _decoder(
    spec: LinearSpec, factor: float, table: ll.Pointer, schedule: Schedule
) -> Callable[[ll.Tile, ll.Scalar, ll.Scalar], ll.Tile]:
    """What turns codes of a group and of rows from `row` on into operands: their values, times `factor`."""
    entries = 1 << spec.bits

    def cast(codes: ll.Tile, group: ll.Scalar, row: ll.Scalar) -> ll.Tile:
        if factor == 1.0:
            return ll.cast(codes, spec.activation)
        return ll.cast(ll.cast(codes, "f32") * factor, spec.activation)

    if not spec.table:
        return cast
    if spec.table == "tensor":
        threads = 32 * schedule.warps
        table_layout = local(-(-entries // threads)) * spatial(threads)
        loaded = ll.load_global(ll.view_global(table, shape=[entries]), offsets=[0], layout=table_layout)
        shared = ll.alloc_shared(spec.activation, table_layout.shape)
        ll.store_shared(loaded, shared, offsets=[0])
        ll.synchronize()
        return lambda codes, group, row: ll.lookup(shared, codes)
    tables = spec.groups if spec.table == "group" else 1
    view = ll.view_global(
        table,
        shape=[spec.groups, spec.n, entries],
        strides=[entries if spec.table == "group" else 0, tables * entries, 1],
    )
    return lambda codes, group, row: ll.gather_global(view, codes, dim=-1, offsets=[group, row, 0], layout=codes.layout)
