"""y = x @ w^T for many rows of x: by warpgroups, which read x from shared memory.

As in `linear`, weights are operand A and y^T = W X^T: a warpgroup has 64 rows of W, and its weights go from words to
registers and from there into `wgmma`, with all columns of a block's tile of y^T. Blocks take whole tiles in waves, and
share what is left (`stream_k`). Or each block has one tile; or a cluster of blocks has, each block some of its
stages, and at the end they exchange sums, so that each finishes some columns. The loads of a stage are begun some
stages ahead.

    step     64 weights along K, a unit of the packed format
    segment  the steps of a stage that share a scale
    stage    some steps
    part     16 rows of W for each of the warps of 1 to 4 warpgroups, or 32 or 64 that are a unit of few bits
    block    some parts, one above the other; with gate and up, half of them of each, in pairs. They multiply by the
             same x, 1 or 2 tiles of columns side by side, for which a part is decoded once
    piece    what one product takes: a part's rows by so much of K that a warp has 16 registers of weights

Scales go to one of two places:

    on sums      acc += s * (w * x of a segment)      a second tile of sums; for few columns
    on weights   acc += (s * w) * x                   s * w is rounded to the activation type; for many

Entries of tables fill the range of f16. With scales on weights they are brought to 1 and less, and the sums back.

With zero points, (w - z) * s on weights; bipolar codes u are (u - (2^b - 1) / 2) * 2 s.
"""

from __future__ import annotations

import itertools

import numpy as np

from lowlp import language as ll
from lowlp.kernels.stream_k import by_parts, end_tile, grid_of, share_in_waves, small
from lowlp.layouts.register_layout import column_local, column_spatial, local, reduce, spatial
from lowlp.numeric.codec import prescale_of
from lowlp.numeric.dtypes import dtype
from lowlp_runtime.operand_arrays import TABLE_EXPONENT

from .operand_list import parameters_of
from .parts import (
    A_FRAGMENT,
    STEP_K,
    SUM_FRAGMENT,
    UNIT_K,
    X_FRAGMENT,
    as_f32,
    can_leave_parts,
    decoder,
    finished,
    prescale_of_codes,
    streamed_views,
)
from .schedule import Schedule
from .spec import LinearSpec

_STEPS = UNIT_K // STEP_K
_TILE_ROWS = 16
_COLUMNS_AT_ONCE = 16
# Rows of x whose tiles are taken together, so that the L2 cache holds what they share.
_BAND = 2048


class _Layouts:
    """How the threads of a block hold what a product takes, and the result.

    weights  [rows of a part, K of a piece]
    x        [columns, K of a piece]: all warps the same; only warps that multiply by themselves hold it
    sums     [rows of a part, columns]
    rows     [rows of a part], and
    column   the same registers as [rows of a part, 1]: one number for each row of weights and sums
    given    the same registers as `sums`: [blocks of the cluster, registers of a block's part, threads], and
    taken    of one block: [registers, threads]
    ended    of the columns that a block finishes, all of `sums` without clusters, and
    stored   the same with neighbours along N side by side
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        warps = 4 * schedule.warpgroups
        tiles, columns = tiles_of_warp(spec, schedule), schedule.columns // 8
        self.weights = spatial(warps, 1) * local(tiles, _STEPS // tiles) * A_FRAGMENT
        self.x = reduce(spatial(1, 1, warps), dims=[2]) * column_local(columns, _STEPS // tiles) * X_FRAGMENT
        self.sums = spatial(warps, 1) * local(tiles, columns) * SUM_FRAGMENT
        self.rows = self.sums.reduce([1])
        self.column = self.sums.reduce([1], keep_dims=True)
        ended = schedule.columns // schedule.cluster
        self.ended = spatial(warps, 1) * local(tiles, ended // 8) * SUM_FRAGMENT
        self.taken = local(self.ended.num_local, 1) * spatial(1, schedule.threads)
        self.given = local(schedule.cluster, 1, 1) * self.taken.unsqueeze(0)
        at_once = min(ended, _COLUMNS_AT_ONCE)
        rows_of_thread = at_once // 2
        stored = column_spatial(64 * schedule.warpgroups // rows_of_thread, at_once) * local(rows_of_thread, 1)
        self.stored = local(tiles, ended // at_once) * stored


def tiles_of_warp(spec: LinearSpec, schedule: Schedule) -> int:
    """Tiles of 16 rows that a warp has of a part: those of a unit of the packed format where its rows are whole units;
    else 1, and the warps of a warpgroup share units, whose words each rotates to where its own rows are decoded."""
    tiles = spec.rows_of_unit // _TILE_ROWS
    return 1 if schedule.row_tiles % tiles else tiles


def wide_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, whose work is divided as `schedule` says, which has warpgroups.

    Parameters as for `linear_kernel`, and behind them `blocks`: how many are launched to share the work, or how many
    clusters, one for each tile.

    Requires `can_go_wide(spec, schedule)`.
    """
    layouts = _Layouts(spec, schedule)
    rows, columns, threads = schedule.rows // spec.products, schedule.columns, schedule.threads
    pieces = tiles_of_warp(spec, schedule)
    rows_of_part = 64 * schedule.warpgroups * pieces
    parts, column_tiles = schedule.rows // rows_of_part, schedule.column_tiles
    # Sums are held by part of y, tile of columns, and gate and up.
    sums_of = list(itertools.product(range(parts // spec.products), range(column_tiles), range(spec.products)))
    stages_of_tile, tiles_of_rows = -(-spec.k // schedule.stage_k), -(-spec.columns_of_y // rows)
    segment = min(spec.group_size, schedule.stage_k)
    on_weights = schedule.scales_on == "weights"
    # Of tables: no product of a scale and an entry of at most 1 is infinite.
    unscale_of_weights = 2.0 ** TABLE_EXPONENT[spec.activation] if on_weights and spec.table else 1.0

    def body(  # type: ignore[no-untyped-def]
        x,
        weights,
        scales,
        correctors,
        table,
        table_unscale,
        scale2,
        bias,
        residual,
        y,
        m,
        x_stride,
        residual_stride,
        blocks,
    ):
        if spec.dependent_launch:
            ll.launch_dependents()
        (block,) = ll.block_indices()
        tiles_of_columns = ll.ceildiv(m, schedule.columns_of_block)
        grid = grid_of(tiles_of_rows, tiles_of_columns, max(1, _BAND // schedule.columns_of_block))
        x_view, w_view, s_view, c_view, _ = streamed_views(spec, x, weights, scales, correctors, y, m, x_stride)
        y_view = ll.view_global(y, shape=[m, spec.columns_of_y])
        r_view = None
        if spec.residual:
            r_view = ll.view_global(residual, shape=[m, spec.columns_of_y], strides=[residual_stride, 1])
        decode = decoder(spec, table, threads, 1.0 / unscale_of_weights)
        if spec.dependent_launch:
            # Tables are there, and weights under way; what other launches write comes behind.
            ll.wait_for_dependencies()

        def row_of(part: int, row: ll.Scalar) -> ll.Scalar:
            """Where the rows of a part begin, in scales and the like, of a tile that begins at `row` of y."""
            return row + (part // spec.products * rows_of_part + spec.first_rows[part % spec.products])

        def packed_row(part: int, row: ll.Scalar) -> ll.Scalar:
            """The same in the packed weights."""
            first = part % spec.products * spec.packed_rows_of_product
            return row + (part // spec.products * rows_of_part + first)

        def zero_sums() -> tuple[ll.Tile, ...]:
            return tuple(ll.full(0.0, "f32", layout=layouts.sums) for _ in sums_of)

        @ll.inline
        def of_rows(view, group, row):  # type: ignore[no-untyped-def]
            """Scales or zero points of a group, one for each row."""
            tile = ll.load_global(view, offsets=[group, row], layout=layouts.rows)
            return ll.view(tile, dtype=tile.dtype, layout=layouts.column)

        @ll.inline
        def factors_of(group, row):  # type: ignore[no-untyped-def]
            """What goes on the weights of a segment: scales, and zero points, which may be None."""
            scale = of_rows(s_view, group, row)
            if spec.corrector:
                return scale, ll.cast(of_rows(c_view, group, row), spec.activation)
            if spec.is_bipolar:
                middle = ((1 << spec.bits) - 1) / 2
                return scale * 2.0, ll.full(middle, spec.activation, layout=layouts.column)
            return scale, None

        @ll.inline
        def multiplied(sums, unit, group, row, column, factors):  # type: ignore[no-untyped-def]
            """The sums of all parts with the products of a step, whose weights are scaled if factors are given."""
            results = list(sums)
            for piece in range(pieces):
                first_step = piece * (_STEPS // pieces)
                x_tiles = [
                    ll.load_global(
                        x_view, offsets=[unit, column + tile * columns, first_step * STEP_K], layout=layouts.x
                    )
                    for tile in range(column_tiles)
                ]
                for part in range(parts):
                    codes = ll.load_packed(
                        w_view,
                        offsets=[packed_row(part, row), unit * UNIT_K],
                        layout=layouts.weights,
                        first_step=first_step,
                    )
                    values = decode(codes, group, row_of(part, row))
                    if factors:
                        scale, zero = factors[part]
                        values = (values if zero is None else values - zero) * scale
                    for tile, x_tile in enumerate(x_tiles):
                        index = sums_of.index((part // spec.products, tile, part % spec.products))
                        results[index] = ll.dot(values, ll.transpose(x_tile), results[index])
            return tuple(results)

        @ll.inline
        def with_segment(acc, unit, row, column):  # type: ignore[no-untyped-def]
            """The result with what the steps of a segment, from `unit` on, add to it."""
            group = unit // (spec.group_size // UNIT_K)
            rows_of_parts = [row_of(part, row) for part in range(parts)]
            factors = [factors_of(group, part_row) for part_row in rows_of_parts] if on_weights else []
            raw = acc if on_weights else zero_sums()
            for step in range(segment // UNIT_K):
                raw = multiplied(raw, unit + step, group, row, column, factors)
            if on_weights:
                return raw
            scales_of_parts = [as_f32(of_rows(s_view, group, part_row), spec.scale) for part_row in rows_of_parts]
            return tuple(
                ll.fma(scales_of_parts[part * spec.products + product], raw[index], acc[index])
                for index, (part, _, product) in enumerate(sums_of)
            )

        def sum_of_cluster(acc: ll.Tile) -> ll.Tile:
            """Of the columns that this block finishes, the sums of all blocks of the cluster."""
            taken = ll.exchange_in_cluster(ll.view(acc, dtype="f32", layout=layouts.given))
            return ll.view(ll.sum(taken, 0), dtype="f32", layout=layouts.ended)

        @ll.inline
        def with_stage(acc, stage, row, column):  # type: ignore[no-untyped-def]
            """The result with what a stage of the tile that begins at `row` and `column` adds to it."""
            for segment_of_stage in range(schedule.stage_k // segment):
                unit = stage * (schedule.stage_k // UNIT_K) + segment_of_stage * (segment // UNIT_K)
                acc = with_segment(acc, unit, row, column)
            return acc

        @ll.inline
        def finish(part, sums, row, column):  # type: ignore[no-untyped-def]
            """Stores a part of y of the tile that begins at `row` and `column`, of which `sums` has all products."""
            row, column = row + part // column_tiles * rows_of_part, column + part % column_tiles * columns
            if schedule.cluster > 1:
                sums = tuple(sum_of_cluster(acc) for acc in sums)
                column = column + block % schedule.cluster * (columns // schedule.cluster)
            if spec.table:
                if unscale_of_weights != 1.0:
                    # Both together may be infinite.
                    sums = tuple(acc * unscale_of_weights for acc in sums)
                sums = tuple(acc * table_unscale for acc in sums)
            elif prescale_of_codes(spec) != 1.0:
                sums = tuple(acc * (1.0 / prescale_of_codes(spec)) for acc in sums)
            result = finished(spec, sums, scale2, bias, r_view, row, column, layouts.stored)
            # As rows of y, along which accesses are wide.
            ll.store_global(ll.transpose(ll.convert_layout(result, layouts.stored)), y_view, offsets=[column, row])

        acc = zero_sums()
        if schedule.has_tile_each:
            number = block % schedule.cluster
            row, column = grid.place_of(small(block) // schedule.cluster)
            row, column = row * rows, column * schedule.columns_of_block
            begin = small(number * stages_of_tile) // schedule.cluster
            end = small((number + 1) * stages_of_tile) // schedule.cluster
            for done in ll.range(end - begin, stages=schedule.stages, producer=schedule.producer):
                acc = with_stage(acc, small(begin + done), row, column)
            for part, sums in by_parts(acc, spec.products):
                finish(part, sums, row, column)
            return

        work = share_in_waves(block, blocks, tiles_of_columns * tiles_of_rows, stages_of_tile)
        for done in ll.range(work.count, stages=schedule.stages, producer=schedule.producer):
            number = work.number_of(done)
            tile, stage = number // stages_of_tile, number % stages_of_tile
            row, column = grid.place_of(tile)
            row, column = row * rows, column * schedule.columns_of_block
            acc = with_stage(acc, stage, row, column)
            if (stage == 0) | (number == work.share.begin):
                end_tile(
                    work.share,
                    number,
                    stages_of_tile,
                    lambda m: (ll.ceildiv(m, schedule.columns_of_block) * tiles_of_rows,),
                    acc,
                    threads,
                    finish,
                    row,
                    column,
                    spec.products,
                    schedule.parts_type,
                )
                acc = zero_sums()

    return ll.make_kernel(
        body,
        name=f"linear_{spec.weight}_{spec.activation}",
        parameters=parameters_of(spec, schedule),
        grid=lambda blocks: (blocks * schedule.cluster,),
        num_threads=threads,
        schedule=ll.KernelSchedule(
            table_form=schedule.table_form,
            table_copies=schedule.table_copies,
            matrix_unit="warpgroup",
            products_in_flight=min(8, schedule.under_way * column_tiles),
            exchange_registers=schedule.exchanges_registers,
            blocks_per_sm=schedule.blocks_per_sm,
            turns=schedule.takes_turns,
            cluster=schedule.cluster,
        ),
    )


def can_go_wide(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether `wide_kernel` has a program: groups are whole steps, and stages whole groups or parts of one; tables are
    one of the tensor; zero points go on weights, and scales only where that is exact (`can_scale_weights`); gate and up
    have as many parts; what blocks of a cluster finish is 8 columns or more, of parts that have one tile of a warp, so
    that they are neighbours among its registers."""
    group, stage_k = spec.group_size, schedule.stage_k
    if schedule.cluster > 1 and (schedule.columns < 8 * schedule.cluster or tiles_of_warp(spec, schedule) > 1):
        return False
    if schedule.row_tiles // tiles_of_warp(spec, schedule) % spec.products or not can_leave_parts(spec, schedule):
        return False
    if group % UNIT_K or (stage_k % group and group % stage_k) or spec.table not in ("", "tensor") or spec.offsets:
        return False
    if schedule.scales_on == "sums":
        return not spec.zeros and not spec.is_bipolar
    return can_scale_weights(spec)


def can_scale_weights(spec: LinearSpec) -> bool:
    """Whether (q - z) * s in the activation type is `dequantize()` rounded once: the type holds s and every q - z, and
    nothing multiplies the product later, neither a second scale nor the inverse of `prescale_of_codes`."""
    if spec.scale != spec.activation or spec.scale2 or prescale_of_codes(spec) != 1.0:
        return False
    if not spec.zeros:
        return True
    if spec.zeros not in ("int8", "uint8"):
        return False
    code, zero = dtype(spec.weight), np.iinfo(spec.zeros)
    differences = np.arange(code.min - zero.max, code.max - zero.min + 1, dtype=np.float64)
    return prescale_of(differences, spec.activation) == 1.0
