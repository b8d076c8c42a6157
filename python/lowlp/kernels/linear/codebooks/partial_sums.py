"""y = x @ w^T for few rows of x and weights that are vectors of codebooks, without decoding a weight.

    t[e, b, g] = C_b[e] . x[g]                   every entry e of book b, and every v weights g of a row
    y[n]       = sum over g, b of t[codes[n, g, b], b, g]

(partial sums of codewords: CodeGEMM; LUT-GEMM of bits). A block has many rows of weights and a part of K, which it goes
through in units of packed weights, of 32 codes a row. For each it multiplies all entries by x with matrix
instructions, and stores the products, f32, as a table of shared memory: a line for each entry, and in it a column for
each code of a row, so that the column is the bank. Then each warp reads the codes of its rows, and adds what they name
(`lowlp.add_lookups`): eight lanes that hold the same columns of eight rows take them in orders of their own, so that no
two read one bank. Two tables lie side by side in lines of 256 bytes: one is filled while the other is read.

Matrix instructions take 16 weights along K, and an entry has v of them. With one book, the x of two halves of the
columns lie below each other, and a row of the other operand is an entry in the place of one half, with zeros in that of
the other. So rows, entry by entry, book by book, half by half, are runs of numbers that lie side by side in the table,
and eight lanes that store 16 bytes each meet in no bank.

A block has one or two rows of x (`kept_rows`), with tables for each. The order of sums follows from shape and schedule,
and is the same for one and for two. Products of entries and x are of numbers of 16 bits, summed in f32, and so is all
else; for one weight of one book the result is what `QuantizedTensor.dequantize` computes.
"""

from __future__ import annotations

from typing import Any, Final

from lowlp import language as ll
from lowlp.errors import LowlpValueError
from lowlp.layouts.register_layout import Layout, column_local, local, spatial
from lowlp_runtime.vector_order import LANES

from ..parts import (
    A_FRAGMENT,
    ACCUMULATOR_FRAGMENT,
    STEP_K,
    X_FRAGMENT,
    Arguments,
    as_f32,
    finished,
    make_linear,
    packed_view,
    view_of_result,
)
from ..schedule import Schedule
from ..spec import LinearSpec
from .splits import SplitEnding, part_of

COLUMNS: Final = 32
"""Codes of a row in a unit of packed weights: of a line of the table, one for each bank."""
MOST_ROWS: Final = 2
"""Of x."""
_BITS: Final = 8
_TABLES: Final = 2
"""Which take turns."""


class PartialSumsPlan:
    """The numbers and layouts that spec and schedule fix.

    groups        of v weights in a unit, `across` of which are columns of one product
    halves        of them, in places of their own along K of the products
    table_rows    of the products of entries and x: entries, books, halves
    rows          of y^T that a block makes, `tile_rows` at a time
    units         of a row
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        vectors = spec.vectors
        assert vectors is not None
        self.spec, self.schedule, self.vectors = spec, schedule, vectors
        self.entries, self.books, self.v = 1 << vectors.bits, vectors.books, vectors.vector
        self.groups = COLUMNS // self.books
        self.halves = max(1, 2 // self.books)
        self.across = self.groups // self.halves
        self.unit_k = spec.unit_k
        self.units = -(-spec.k // spec.unit_k)
        self.tile_rows = 16 * schedule.warps
        self.tiles = schedule.row_tiles
        self.rows = self.tile_rows * self.tiles
        self.table_rows = self.entries * self.books * self.halves
        self.row_steps = self.table_rows // self.tile_rows
        self.column_tiles = self.across // 8

    def blocks(self, m: Any) -> tuple[Any]:
        """Of y^T, for m rows of x."""
        return (ll.ceildiv(m, self.schedule.kept_rows) * -(-self.spec.columns_of_y // self.rows),)

    @property
    def codes(self) -> Layout:
        """How threads hold the codes of a unit, [rows, codes], as they are packed: groups, then books."""
        of_unit = local(1, self.groups // LANES) * local(2, 1) * spatial(8, LANES) * local(1, self.books)
        return spatial(self.schedule.warps, 1) * of_unit

    @property
    def columns(self) -> Layout:
        """The same registers as [rows, columns of the table]: books, then groups."""
        groups = local(1, 1, self.groups // LANES) * local(2, 1, 1) * spatial(8, 1, LANES) * local(1, self.books, 1)
        return (spatial(self.schedule.warps, 1, 1) * groups).reshape(self.tile_rows, COLUMNS)

    @property
    def sums(self) -> Layout:
        """How threads hold sums of `columns`, [rows, lanes]."""
        return spatial(self.schedule.warps, 1) * local(2, 1) * spatial(8, LANES)

    @property
    def operand(self) -> Layout:
        """How threads hold entries, [rows of the table, STEP_K]."""
        return spatial(self.schedule.warps, 1) * local(self.row_steps, 1) * A_FRAGMENT

    @property
    def words(self) -> Layout:
        """The same registers as [entries, books, halves, places along K, pairs of values]."""
        warps, steps = (
            spatial(self.schedule.warps, 1) * local(self.row_steps, 1),
            column_local(2, 2) * spatial(8, LANES),
        )
        return (warps * steps).reshape(*self.places[:-1], self.v // 2)

    @property
    def places(self) -> tuple[int, ...]:
        """The same as [entries, books, halves, places along K, v]."""
        return (self.entries, self.books, self.halves, STEP_K // self.v, self.v)

    @property
    def x(self) -> Layout:
        """How threads hold x of a unit, [columns of a product, STEP_K], of which all warps hold the same."""
        return (spatial(1, 1, self.schedule.warps).reduce([2])) * local(self.column_tiles, 1) * X_FRAGMENT

    @property
    def products(self) -> Layout:
        """How threads hold products, [rows of the table, columns]."""
        steps = local(self.row_steps, self.column_tiles)
        return spatial(self.schedule.warps, 1) * steps * ACCUMULATOR_FRAGMENT

    def lines(self, has_neighbours: bool) -> Layout:
        """The same as [entries, 1, books x halves, columns of the table]. Columns of a product are in another order
        than those of the table, of which a thread has neighbours; with `has_neighbours` its registers are in their
        order."""
        warps, fragment = spatial(self.schedule.warps, 1, 1, 1) * local(self.row_steps, 1, 1, 1), spatial(8, 4, 1, 1)
        tiles, halves = local(1, 1, self.column_tiles, 1), local(2, 1, 1, 1)
        inner = halves * fragment * tiles if has_neighbours else tiles * halves * fragment
        return (warps * inner * local(1, 1, 1, 2)).reshape(self.entries, 1, self.books * self.halves, self.across)


def has_partial_sums(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether there is a kernel for `spec` whose work is divided so."""
    vectors = spec.vectors
    is_of_sums = schedule.partial_sums and not (schedule.stages or schedule.warpgroups or schedule.staged_rows)
    if vectors is None or not is_of_sums or schedule.kept_rows not in range(1, MOST_ROWS + 1):
        return False
    if vectors.lattices or vectors.bits != _BITS or vectors.books not in (1, 2, 4) or vectors.vector not in (2, 4, 8):
        return False
    is_plain = spec.products == 1 and spec.aligned and not spec.experts
    has_blocks = bool(spec.book_rows or spec.book_columns)
    if not is_plain or has_blocks or spec.k % spec.unit_k or spec.rows_of_unit != 16 or spec.group_size % spec.unit_k:
        return False
    plan = PartialSumsPlan(spec, schedule)
    is_line = spec.unit_k * vectors.books == COLUMNS * vectors.vector
    return is_line and plan.table_rows % plan.tile_rows == 0 and schedule.splits <= plan.units


class _Block:
    """What a block does, as it is traced."""

    def __init__(self, plan: PartialSumsPlan, operands: Arguments) -> None:
        self.plan, self.operands = plan, operands
        spec, schedule = plan.spec, plan.schedule
        if spec.dependent_launch:
            ll.launch_dependents()
        (block,) = ll.block_indices()
        self.part = part_of(block, schedule.splits, plan.units)
        blocks_of_columns = ll.ceildiv(operands.m, schedule.kept_rows)
        self.row = self.part.tile // blocks_of_columns * plan.rows
        self.column = self.part.tile % blocks_of_columns * schedule.kept_rows
        self.first, self.stop = self.part.first, self.part.stop
        self.w_view = packed_view(spec, operands.weights)
        # Columns of products, then places along K: those that no half has lie outside, and are zero.
        shape = [operands.m, plan.units, plan.column_tiles, 4, 2, plan.halves, plan.v]
        by_group = plan.v * plan.column_tiles
        strides = [operands.x_stride, plan.unit_k, 2 * plan.v, 2 * by_group, plan.v, plan.across * plan.v, 1]
        self.x_view = ll.view_global(operands.x, shape=shape, strides=strides)
        of_book = plan.entries * plan.v
        self.books_view = ll.view_global(operands.codebooks, shape=plan.places, strides=[plan.v, of_book, 0, 0, 1])
        self.s_view = ll.view_global(operands.scales, shape=[spec.groups, spec.n, 1], strides=[spec.n, 1, 1])
        table = [plan.entries, _TABLES, plan.books * plan.halves, plan.across]
        self.tables = [ll.alloc_shared("f32", table) for _ in range(schedule.kept_rows)]

    def load_codes(self, tile: int, unit) -> ll.Tile:  # type: ignore[no-untyped-def]
        """The codes of a unit for some of the block's rows."""
        plan = self.plan
        at = [self.row + tile * plan.tile_rows, unit * plan.unit_k]
        has_whole = plan.spec.packed_rows % plan.rows == 0
        return ll.load_packed(self.w_view, offsets=at, layout=plan.codes, in_bounds=has_whole)

    def load_x(self, unit) -> list[ll.Tile]:  # type: ignore[no-untyped-def]
        """x of a unit, of each row, as operands of products."""
        plan = self.plan
        layout = plan.x.reshape(plan.column_tiles, 4, 2, STEP_K // plan.v, plan.v)
        rows = []
        for row in range(plan.schedule.kept_rows):
            held = ll.load_global(self.x_view, offsets=[self.column + row, unit, 0, 0, 0, 0, 0], layout=layout)
            rows.append(ll.transpose(ll.view(held, dtype=plan.spec.activation, layout=plan.x)))
        return rows

    def load_entries(self) -> ll.Tile:
        """All entries as operands of products, each in the place of its half, with zeros in the others."""
        plan = self.plan
        layout = plan.operand.reshape(*plan.places)
        entries = ll.load_global(self.books_view, offsets=[0] * 5, layout=layout, in_bounds=True)
        words = ll.view(ll.cast(entries, plan.spec.activation), dtype="uint32", layout=plan.words)
        half = ll.iota(2, layout=plan.words, dtype="int32")
        is_there = ll.equal(ll.iota(3, layout=plan.words, dtype="int32"), half)
        return ll.view(ll.where(is_there, words, 0), dtype=plan.spec.activation, layout=plan.operand)

    def load_factors(self) -> ll.Tile | None:
        """The scale of the book of each row of the table; None where books have none."""
        plan = self.plan
        if not plan.vectors.has_book_scales:
            return None
        rows = plan.products.reduce([1], keep_dims=True)
        places = [plan.entries, plan.books, plan.halves, 1]
        view = ll.view_global(self.operands.book_scales, shape=places, strides=[0, 1, 0, 1])
        held = ll.load_global(view, offsets=[0] * 4, layout=rows.reshape(*places), in_bounds=True)
        return ll.view(held, dtype="f32", layout=rows)

    @ll.inline
    def fill(self, entries, factors, x, number: int) -> None:  # type: ignore[no-untyped-def]
        """Makes the products of all entries and x, and stores them in one of the tables of each row of x."""
        plan = self.plan
        for row in range(plan.schedule.kept_rows):
            made = ll.dot(entries, x[row], ll.full(0.0, "f32", layout=plan.products))
            if factors is not None:
                made = made * factors
            lines = ll.view(made, dtype="f32", layout=plan.lines(has_neighbours=False))
            lines = ll.convert_layout(lines, plan.lines(has_neighbours=True))
            ll.store_shared(lines, self.tables[row], offsets=[0, number, 0, 0], in_bounds=True)

    @ll.inline
    def add(self, number: int, unit, ahead, following, sums):  # type: ignore[no-untyped-def]
        """The sums with what a unit adds, and the codes of the unit `following`."""
        plan, spec = self.plan, self.plan.spec
        for tile in range(plan.tiles):
            codes = ll.view(ahead[tile], dtype=ahead[tile].dtype, layout=plan.columns)
            loaded = self.load_codes(tile, following)
            ahead = (*ahead[:tile], loaded, *ahead[tile + 1 :])
            scale = self.load_scale(tile, unit * plan.unit_k // spec.group_size) if spec.groups > 1 else None
            for row in range(plan.schedule.kept_rows):
                at = row * plan.tiles + tile
                begin = sums[at] if scale is None else self.zero()
                added = ll.add_lookups(codes, self.tables[row], begin, column=number * COLUMNS)
                if scale is not None:
                    added = ll.fma(ll.broadcast_to(scale, plan.sums), self.unscaled(added), sums[at])
                sums = (*sums[:at], added, *sums[at + 1 :])
        return ahead, sums

    def zero(self) -> ll.Tile:
        """Sums of nothing."""
        return ll.full(0.0, "f32", layout=self.plan.sums)

    def unscaled(self, sums: ll.Tile) -> ll.Tile:
        """Sums of entries as they are, of those that fill the range of their type."""
        return sums if self.plan.vectors.has_book_scales else sums * self.operands.codebooks_unscale

    def load_scale(self, tile: int, group) -> ll.Tile:  # type: ignore[no-untyped-def]
        """The scale of a group of some of the block's rows."""
        rows = self.plan.sums.reduce([1], keep_dims=True)
        at = [group, self.row + tile * self.plan.tile_rows, 0]
        return as_f32(ll.load_global(self.s_view, offsets=at, layout=rows), self.plan.spec.scale)

    def make(self) -> None:
        """Adds up, and stores."""
        plan = self.plan
        sums = self.summed(tuple(self.zero() for _ in range(plan.tiles * plan.schedule.kept_rows)))
        if plan.schedule.splits == 1:
            self.store(sums)
            return
        threads = 32 * plan.schedule.warps
        SplitEnding(plan.schedule.splits, plan.blocks, threads, self.store).end(self.part, sums)

    @ll.inline
    def summed(self, sums):  # type: ignore[no-untyped-def]
        """The sums of the block's part of K."""
        plan = self.plan
        last = self.stop - 1
        ahead = tuple(self.load_codes(tile, self.first) for tile in range(plan.tiles))
        entries, factors = self.load_entries(), self.load_factors()
        if plan.spec.dependent_launch:
            # Weights are in flight; what other launches write is read from here on.
            ll.wait_for_dependencies()
        self.fill(entries, factors, self.load_x(self.first), 0)
        x = self.load_x(ll.minimum(self.first + 1, last))
        ll.synchronize()
        for unit in ll.range(self.first, self.stop, _TABLES):
            self.fill(entries, factors, x, 1)
            x = self.load_x(ll.minimum(unit + 2, last))
            ahead, sums = self.add(0, unit, ahead, ll.minimum(unit + 1, last), sums)
            ll.synchronize()
            if unit + 1 < self.stop:
                self.fill(entries, factors, x, 0)
                x = self.load_x(ll.minimum(unit + 3, last))
                ahead, sums = self.add(1, unit + 1, ahead, ll.minimum(unit + 2, last), sums)
                ll.synchronize()
        return sums

    def store(self, sums: tuple[ll.Tile, ...]) -> None:
        """Finishes the rows."""
        plan, spec, operands = self.plan, self.plan.spec, self.operands
        r_view = None
        if spec.residual:
            r_view = view_of_result(spec, operands.residual, operands.m, operands.residual_stride)
        y_view = view_of_result(spec, operands.y, operands.m, spec.columns_of_y)
        for tile in range(plan.tiles):
            first = self.row + tile * plan.tile_rows
            for row in range(plan.schedule.kept_rows):
                total = ll.sum(sums[row * plan.tiles + tile], dim=1, keep_dims=True)
                if spec.groups == 1:
                    total = self.load_scale(tile, 0) * self.unscaled(total)
                result = finished(spec, (total,), operands, r_view, first, self.column + row)
                ll.store_global(result, y_view, offsets=[first, self.column + row])


def partial_sums_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, of vectors, whose work is divided as `schedule` says. Raises LowlpValueError for a
    schedule that no kernel has."""
    if not has_partial_sums(spec, schedule):
        raise LowlpValueError(f"schedule: no kernel takes {spec} as {schedule} divides it")
    plan = PartialSumsPlan(spec, schedule)
    return make_linear(
        spec,
        schedule,
        lambda operands: _Block(plan, operands).make(),
        lambda m: (plan.blocks(m)[0] * schedule.splits,),
        32 * schedule.warps,
    )
