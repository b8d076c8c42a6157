"""y = x @ w^T for many rows of x: by warpgroups, which read x from shared memory.

As in `linear`, weights are operand A and y^T = W X^T: a warpgroup has 64 rows of W, and its weights go from words to
registers and from there into `wgmma`, with all columns of a block's tile of y^T. Blocks take whole tiles in waves, and
share what is left (`stream_k`). Or each block has one tile; or a cluster of blocks has, each block some of its
stages, and at the end they exchange accumulators, so that each finishes some columns. The loads of a stage are begun
some stages ahead. With `multicast` two blocks of a cluster are a team: where one block would take a tile, a team takes
two, one above the other, and each of its blocks copies half of a stage of x for both. The second may lie below the
weights; its block then copies its half, and stores nothing.

    step     64 weights along K, a unit of the packed format
    segment  what of a stage shares a scale: steps, or steps' granules where groups are no whole units (`segments`)
    stage    some steps
    part     16 rows of W for each of the warps of 1 to 4 warpgroups, or 32 or 64 that are a unit of few bits
    block    some parts, one above the other; with gate and up, half of them of each, in pairs. They multiply by the
             same x, 1 or 2 tiles of columns side by side, for which a part is decoded once
    piece    what one product takes: a part's rows by so much of K that a warp has 16 registers of weights, or by a
             granule

Scales go to one of three places:

    on accumulators  acc += s * (w * x of a segment)  a second tile of accumulators; for few columns
    on weights       acc += (s * w) * x               s * w is rounded to the activation type; for many
    on rows          acc += w * x, at its end s * acc  where a row has one scale; for any number. So it is, too, for
                                                       8-bit floats with one scale on accumulators: sums of 128 weights
                                                       are added to acc

Weights are scaled in the activation type where it holds s and w, so that there is one rounding; else in f32.

With f16 they come times a power of two, and the accumulators are multiplied by its inverse (`scaled_weights`): so f16
holds weights of any size, and entries of tables, which fill its range, times scales.

With zero points, (w - z) * s on weights, with offsets w * s + b in f32; bipolar codes u are (u - (2^b - 1) / 2) * 2 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import TileEnding, TilePart, by_parts, small

from .block_work import BlockWork
from .experts import ExpertTile, ExpertWork
from .integer_sums import begins_anew, is_one_sum, names_of_columns, number_of_columns, sum_type, total_type
from .parts import (
    E4M3_UNSCALE,
    UNIT_K,
    Arguments,
    Views,
    as_f32,
    covers_whole_tables,
    decoder,
    finished,
    make_linear,
    names_of_rows,
    numbers_of,
    streamed_views,
)
from .result_rows import ResultRows
from .schedule import Schedule
from .segments import Granule, place_in_units
from .spec import LinearSpec
from .warpgroup_layouts import Plan, is_ping_pong, stores_rows
from .wide_factors import Place, WeightFactors, is_one, unscale_of


class Block:
    """What a block does, as it is traced.

    at  the tile that it makes, of the weights of an expert; None of others
    """

    at: ExpertTile | None = None

    def __init__(self, plan: Plan, operands: Arguments) -> None:
        self.plan, self.operands = plan, operands
        spec, schedule = plan.spec, plan.schedule
        if spec.dependent_launch:
            ll.launch_dependents()
        (self.block,) = ll.block_indices()
        self.work = BlockWork(plan, operands, self.block)
        self.views = self.views_of_operands()
        y_shape = [operands.m, spec.columns_of_y]
        self.y_view = ll.view_global(operands.y, shape=y_shape)
        self.residual_view = None
        if spec.residual:
            strides = [operands.residual_stride, 1]
            self.residual_view = ll.view_global(operands.residual, shape=y_shape, strides=strides)
        self.result_rows = None
        if stores_rows(spec, schedule):
            self.result_rows = ResultRows(self.y_view.dtype, plan.layouts.stored)
        self.prepare_weights()
        self.entered = self.enter_first()
        if spec.dependent_launch:
            # Tables are there, and weights in flight; what other launches write is read from here on.
            ll.wait_for_dependencies()

    def views_of_operands(self) -> Views:
        """Of x, the weights, and what scales them."""
        return streamed_views(self.plan.spec, self.operands, x_units=self.plan.x_units)

    def prepare_weights(self) -> None:
        """What decoding weights needs, of which no launch before writes anything."""
        plan, spec, operands, schedule = self.plan, self.plan.spec, self.operands, self.plan.schedule
        self.weight_factors = WeightFactors(plan, operands, self.views)
        factor = None
        if plan.is_fitted and spec.table and not plan.in_f32:
            factor = operands.table_unscale * operands.fit
        are_inside = covers_whole_tables(spec, schedule)
        self.decode = decoder(spec, operands.table, schedule.threads, factor, are_inside)

    def row_of_weights(self, part: int, row: ll.Scalar) -> ll.Scalar:
        """Where the rows of a part begin, in scales and the like, of a tile that begins at `row` of y."""
        found = self.plan.row_of(part, row)
        return found if self.at is None else found + self.at.weights

    def packed_row(self, part: int, row: ll.Scalar) -> ll.Scalar:
        """The same in the packed weights."""
        found = self.plan.packed_row(part, row)
        return found if self.at is None else found + self.at.packed

    def zeros(self) -> tuple[ll.Tile, ...]:
        """Accumulators of a tile that has none yet."""
        kind = total_type(self.plan.spec)
        return tuple(ll.full(0, kind, layout=self.plan.layouts.accumulators) for _ in self.plan.accumulators)

    def k_of_piece(self, granule: Granule) -> int:
        """Where a piece begins in its stage, in weights along K."""
        return granule.unit * UNIT_K + granule.first_step * self.plan.spec.step_k

    def x_piece(self, tile: int, stage: ll.Scalar | int, granule: Granule, column: ll.Scalar) -> ll.Tile:
        """Operand b of a piece for a tile of columns, turned."""
        plan, first_column = self.plan, column + tile * self.plan.schedule.columns
        stage_k, row_k, k = plan.schedule.stage_k, plan.spec.unit_k * plan.x_units, self.k_of_piece(granule)
        offsets = [first_column, stage * stage_k + k]
        if row_k:
            offsets = [stage * (stage_k // row_k) + k // row_k, first_column, k % row_k]
        return ll.transpose(ll.load_global(self.views.x, offsets=offsets, layout=plan.layouts.x))

    @ll.inline
    def weights_piece(self, part: int, stage, granule: Granule, group, row):  # type: ignore[no-untyped-def]
        """The weights of a piece of a part, decoded."""
        plan = self.plan
        first_unit = stage * (plan.schedule.stage_k // UNIT_K)
        unit, first_step = place_in_units(plan.spec, first_unit + granule.unit, granule.first_step)
        codes = ll.load_packed(
            self.views.weights,
            offsets=[self.packed_row(part, row), unit * plan.spec.unit_k],
            layout=plan.layouts.weights,
            first_step=first_step,
        )
        return self.decode(codes, group, self.row_of_weights(part, row))

    @ll.inline
    def multiplied(self, accumulators, stage, granule: Granule, group, row, column, factors):  # type: ignore[no-untyped-def]
        """The accumulators of all parts with the products of a piece, whose weights are scaled if factors are given."""
        plan, results = self.plan, list(accumulators)
        x_tiles = [self.x_piece(tile, stage, granule, column) for tile in range(plan.schedule.column_tiles)]
        for part in range(plan.parts):
            values = self.weights_piece(part, stage, granule, group, row)
            if factors:
                values = self.weight_factors.scaled(values, *factors[part])
            for tile, x_tile in enumerate(x_tiles):
                index = plan.index_of(part, tile)
                results[index] = ll.dot(values, x_tile, results[index])
        return tuple(results)

    @ll.inline
    def with_sums(self, acc, at, group, rows_of_parts, row, column):  # type: ignore[no-untyped-def]
        """The result with sums of bytes that begin anew: of one accumulator after the other, so that tensor cores make
        those of the next while these are scaled and added."""
        plan, spec, results = self.plan, self.plan.spec, list(acc)
        granules = at.segment.granules
        for part in range(plan.parts):
            weights = [self.weights_piece(part, at.stage, granule, group, row) for granule in granules]
            for tile in range(plan.schedule.column_tiles):
                raw = ll.full(0, sum_type(spec), layout=plan.layouts.accumulators)
                for values, granule in zip(weights, granules, strict=True):
                    raw = ll.dot(values, self.x_piece(tile, at.stage, granule, column), raw)
                if spec.is_of_integers:
                    raw = ll.cast(raw, "f32")
                index = plan.index_of(part, tile)
                if plan.ends_with_scales:
                    results[index] = raw + results[index]
                else:
                    scales = self.weight_factors.scales_of(at, rows_of_parts[part])
                    results[index] = ll.fma(scales, raw, results[index])
        return tuple(results)

    @ll.inline
    def with_segment(self, acc, at, rows_of_parts, row, column):  # type: ignore[no-untyped-def]
        """The result with what a segment of a stage adds to it.

        rows_of_parts  of scales and the like, at which each part begins
        """
        plan, spec, segment, stage = self.plan, self.plan.spec, at.segment, at.stage
        group = self.weight_factors.group_of(segment, stage)
        if begins_anew(spec):
            return self.with_sums(acc, at, group, rows_of_parts, row, column)
        factors = (
            [self.weight_factors.of_segment(at, part_row) for part_row in rows_of_parts] if plan.on_weights else []
        )
        adds_to_total = plan.on_weights or plan.on_rows or is_one_sum(spec)
        raw = acc if adds_to_total else self.zeros()
        for granule in segment.granules:
            raw = self.multiplied(raw, stage, granule, group, row, column, factors)
        if adds_to_total:
            return raw
        scales = [self.weight_factors.scales_of(at, part_row) for part_row in rows_of_parts]
        return tuple(
            ll.fma(scales[part * spec.products + product], raw[index], acc[index])
            for index, (part, _, product) in enumerate(plan.accumulators)
        )

    def enter_first(self) -> Any:
        """What stages carry on beside accumulators, of the first part of a tile that is this block's, before what other
        launches write is waited for."""
        return ()

    def go_on(self, carried: Any, part: TilePart) -> Any:
        """The same of the part that comes next, with what the one before has carried on: it is asked for before that
        one ends."""
        return carried

    @ll.inline
    def with_stage(self, acc, carried, stage, row, column):  # type: ignore[no-untyped-def]
        """The result with what a stage of the tile that begins at `row` and `column` adds to it, and what it carries
        on."""
        rows_of_parts = [self.row_of_weights(part, row) for part in range(self.plan.parts)]
        loaded: dict[Any, ll.Tile] = {}
        for segment in self.plan.segments:
            acc = self.with_segment(acc, Place(segment, stage, loaded), rows_of_parts, row, column)
        return acc, carried

    def complete(self, accumulators: tuple[ll.Tile, ...]) -> tuple[ll.Tile, ...]:
        """The accumulators of a tile or a part of its stages, with what other threads of the block have of them."""
        return accumulators

    def sum_of_cluster(self, acc: ll.Tile) -> ll.Tile:
        """Of the columns that this block finishes, the accumulators of all blocks of the cluster."""
        layouts = self.plan.layouts
        taken = ll.exchange_in_cluster(ll.view(acc, dtype=acc.dtype, layout=layouts.given))
        return ll.view(ll.sum(taken, 0), dtype=acc.dtype, layout=layouts.ended)

    def ask_for_ends(self, row: ll.Scalar, column: ll.Scalar) -> None:
        """Loads the numbers of rows and columns that the end of a tile takes, before its products: it then waits for
        none of them. Those of columns lie apart, few in a thread; integers in groups, which have accumulators twice,
        leave no register for them."""
        plan, spec, layouts = self.plan, self.plan.spec, self.plan.layouts
        rows = layouts.ended.reduce([1], keep_dims=True)
        names = names_of_rows(plan.ended_spec) + (["scales"] if plan.ends_with_scales else [])
        self.asked_of_rows = [
            numbers_of(spec, self.operands, names, self.row_of_weights(part, row), rows) for part in range(plan.parts)
        ]
        names = names_of_columns(spec) if not spec.is_of_integers or is_one_sum(spec) else []
        self.asked_of_columns = []
        for tile in range(plan.schedule.column_tiles):
            first, held = self.column_of_tile(tile, column), layouts.columns
            numbers = {name: number_of_columns(spec, self.operands, name, first, held) for name in names}
            self.asked_of_columns.append(numbers)

    def column_of_tile(self, tile: int, column: ll.Scalar) -> ll.Scalar:
        """The first column that this block finishes of a tile among those side by side from `column` on."""
        schedule = self.plan.schedule
        column = column + tile * schedule.columns
        if schedule.cluster == 1:
            return column
        return column + self.block % schedule.cluster * (schedule.columns // schedule.cluster)

    def whole(self, accumulators: tuple[ll.Tile, ...], part: int, row: ll.Scalar) -> tuple[ll.Tile, ...]:
        """The accumulators of a part of the rows of y, which begins at `row`, with what is left to multiply them by."""
        unscaled = tuple(map(self.unscaled, accumulators))
        if not self.plan.ends_with_scales:
            return unscaled
        first, count = part * len(unscaled), len(unscaled)
        asked, kind = self.asked_of_rows[first : first + count], self.plan.spec.scale
        return tuple(acc * as_f32(of_rows["scales"], kind) for acc, of_rows in zip(unscaled, asked, strict=True))

    def unscaled(self, acc: ll.Tile) -> ll.Tile:
        """Accumulators without the powers of two that weights were multiplied by, where that was not taken off them."""
        if self.plan.spec.is_of_integers:
            return acc
        if self.plan.is_fitted:
            acc = acc * self.operands.unfit
        if self.plan.is_fitted or self.plan.in_f32:
            return acc
        if self.plan.on_weights and self.plan.spec.scale == "e4m3":
            acc = acc * E4M3_UNSCALE
        unscale = unscale_of(self.plan, self.operands)
        return acc if is_one(unscale) else acc * unscale

    @ll.inline
    def finish(self, part, accumulators, row, column):  # type: ignore[no-untyped-def]
        """Stores a part of y of the tile that begins at `row` and `column`, all of it in `accumulators`."""
        plan, operands, schedule = self.plan, self.operands, self.plan.schedule
        part_of_rows, tile = part // schedule.column_tiles, part % schedule.column_tiles
        row = row + part_of_rows * plan.rows_of_part
        if schedule.cluster > 1:
            accumulators = tuple(self.sum_of_cluster(acc) for acc in accumulators)
        column = self.column_of_tile(tile, column)
        accumulators = self.whole(accumulators, part_of_rows, row)
        y_view = self.y_view
        if self.at is not None:
            y_view = ll.view_global(operands.y, shape=[self.at.stop, plan.spec.columns_of_y])
        for first, result in self.parts_of_result(part_of_rows, tile, accumulators, row, column):
            if self.result_rows:
                self.result_rows.store(result, y_view, row, first)
            else:
                # As rows of y, along which accesses are wide.
                as_stored = ll.convert_layout(result, plan.layouts.stored)
                ll.store_global(ll.transpose(as_stored), y_view, offsets=[first, row])

    def parts_of_result(
        self, part: int, tile: int, accumulators: tuple[ll.Tile, ...], row: ll.Scalar, column: ll.Scalar
    ) -> Iterator[tuple[ll.Scalar, ll.Tile]]:
        """The result by the columns that are stored at a time, with the first of them."""
        columns = self.plan.layouts.stored.shape[1]
        firsts = range(0, accumulators[0].shape[1], columns)
        if self.plan.spec.needs_registers_to_end:
            parts = zip(*(_by_columns(acc, columns) for acc in accumulators), strict=True)
            for first, some in zip(firsts, parts, strict=True):
                yield column + first, self.result(part, tile, some, row, column + first)
        else:
            result = self.result(part, tile, accumulators, row, column)
            for first, stored in zip(firsts, _by_columns(result, columns), strict=True):
                yield column + first, stored

    def result(
        self, part: int, tile: int, accumulators: tuple[ll.Tile, ...], row: ll.Scalar, column: ll.Scalar
    ) -> ll.Tile:
        """What y has from `row` and `column` on, of these columns of a part of the rows of a tile."""
        products = self.plan.spec.products
        return finished(
            self.plan.ended_spec,
            accumulators,
            self.operands,
            self.residual_view,
            row,
            column,
            self.plan.layouts.stored,
            None if self.at is None else self.at.weights,
            self.asked_of_rows[part * products : (part + 1) * products],
            self.asked_of_columns[tile],
        )

    @ll.inline
    def make_own_tile(self):  # type: ignore[no-untyped-def]
        """All of a tile, or the part of its stages that is this block's of a cluster."""
        plan, schedule = self.plan, self.plan.schedule
        acc = self.zeros()
        row, column = self.work.own_place()
        self.ask_for_ends(row, column)
        begin, end = self.work.own_stages()
        carried = self.entered
        for done in ll.range(
            end - begin, stages=schedule.stages, producer=schedule.producer, multicast=schedule.multicast
        ):
            acc, carried = self.with_stage(acc, carried, small(begin + done), row, column)
        for part, accumulators in by_parts(self.complete(acc), plan.spec.products):
            self.finish(part, accumulators, row, column)

    @ll.inline
    def make_tiles_of_experts(self):  # type: ignore[no-untyped-def]
        """Whole tiles, each `blocks` tiles from the one before."""
        plan, schedule = self.plan, self.plan.schedule
        work = ExpertWork(plan.spec, self.operands, plan.rows, schedule.columns_of_block, schedule.threads)
        for number in ll.range(self.block, work.tiles, self.operands.blocks):
            at = self.go_to(work.place_of(number))
            acc = self.zeros()
            self.ask_for_ends(at.row, at.column)
            carried = self.entered
            for stage in ll.range(plan.stages_of_tile, stages=schedule.stages, producer=schedule.producer):
                acc, carried = self.with_stage(acc, carried, small(stage), at.row, at.column)
            for part, accumulators in by_parts(acc, plan.spec.products):
                self.finish(part, accumulators, at.row, at.column)

    def go_to(self, tile: ExpertTile) -> ExpertTile:
        """What follows is of this tile of an expert."""
        self.at = tile
        return tile

    @ll.inline
    def make_share(self):  # type: ignore[no-untyped-def]
        """Whole tiles in waves, and a share of those that are left."""
        plan, schedule = self.plan, self.plan.schedule
        ending = TileEnding(
            plan.stages_of_tile,
            lambda m: (ll.ceildiv(m, schedule.columns_of_block) * (plan.tiles_of_rows * schedule.multicast),),
            schedule.threads,
            self.finish,
            plan.spec.products,
            total_type(plan.spec) if plan.spec.adds_integers else schedule.parts_type,
            team=schedule.multicast,
            member=self.work.member,
        )
        waves, carried = self.work.waves, self.entered
        for taken in ll.range(waves.count):
            part = waves.part(taken)
            row, column, last_stage = self.work.place_of_part(part)
            acc = self.zeros()
            self.ask_for_ends(row, column)
            for done in ll.range(
                small(part.end - part.begin),
                stages=schedule.stages,
                producer=schedule.producer,
                multicast=schedule.multicast,
            ):
                acc, carried = self.with_stage(acc, carried, small(last_stage - done), row, column)
            carried = self.go_on(carried, waves.part(ll.minimum(taken + 1, waves.count - 1)))
            ending.end_tile(waves.share, part.begin, self.complete(acc), row, column)


def wide_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, whose work is divided as `schedule` says, which has warpgroups.

    Parameters as for `linear_kernel`; `blocks` says how many are launched to share the work, or how many clusters, one
    for each tile, or teams.

    Requires `can_go_wide(spec, schedule)`.
    """
    plan = Plan(spec, schedule)
    return make_wide(spec, schedule, lambda operands: Block(plan, operands))


def make_wide(spec: LinearSpec, schedule: Schedule, begin: Callable[[Arguments], Block]) -> ll.Kernel:
    """The kernel whose blocks are what `begin` traces the beginning of."""

    def trace(operands: Arguments) -> None:
        block = begin(operands)
        if spec.experts:
            block.make_tiles_of_experts()
        elif schedule.has_tile_each:
            block.make_own_tile()
        else:
            block.make_share()

    # Sums that begin anew are made one after the other.
    tiles_at_once = 1 if begins_anew(spec) else schedule.column_tiles
    return make_linear(
        spec,
        schedule,
        trace,
        lambda blocks: (blocks * (schedule.cluster * schedule.multicast),),
        schedule.threads,
        matrix_unit="warpgroup",
        products_in_flight=min(8, schedule.products_in_flight * tiles_at_once),
        exchange_registers=schedule.exchanges_registers,
        blocks_per_sm=schedule.blocks_per_sm,
        ping_pong=is_ping_pong(spec, schedule),
        cluster=schedule.cluster * schedule.multicast,
    )


def _by_columns(tile: ll.Tile, columns: int) -> list[ll.Tile]:
    """The parts of a tile with so many columns each, from the first on, which every thread holds whole."""
    rows, all_columns = tile.shape
    if columns == all_columns:
        return [tile]
    apart = tile.layout.reshape(rows, all_columns // columns, columns).permute(1, 0, 2)
    tiles = ll.view(tile, dtype=tile.dtype, layout=apart)
    return [ll.part(tiles, [number]) for number in range(all_columns // columns)]
