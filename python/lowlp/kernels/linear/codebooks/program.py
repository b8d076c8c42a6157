"""y = x @ w^T with weights that are vectors of codebooks.

    acc += s * (c_0 * raw_0 + c_1 * raw_1 + ...)          raw_r the products of book r's vectors and x

A warp makes a tile of y^T: the rows of one unit of packed weights, or with stages of several, by 1 to 64 rows of x. It
loads the codes of a unit, while those before are multiplied, and looks up as many as make a step of 16 along K or more,
a *chunk*: the vectors of a lane are its operand of the matrix instructions as they are, in an order of K in which it
reads x too, side by side (docs/packed-format.md). Each book has products of its own, so that no sum of entries is
rounded to their type; they are added in f32 in the order of the books. With a scale for each book it has accumulators
of its own too.

A *segment* is weights of a row that share scale and books. At its end what was summed is scaled and added, so
for one weight of one book the result is what `QuantizedTensor.dequantize` computes. x is seen as a tensor of segments,
whose ends bound it: a unit with parts of several serves each of them. Bias, epilogue and residual follow
(`parts.finished`).

With `stages` x goes through shared memory, once for all warps: the weights of each row of `steps` units are a stage,
and all stages but one are loaded ahead. So it is where these and segments are whole in each other. Of fewer than 8 rows
(`staged_rows`) columns of products have the same one several times: lanes that read the same are served together.

Of the versions of VQ-LLM's table IV (`codebook_versions`), 'gc' to 'o3' exchange vectors through shared memory: all
warps have put those of a unit there before they read fragments in the usual order of K.

With `splits` K is divided among blocks (`splits.py`), each of which scales and adds what it has of each segment;
the results of all are added in the order of K.
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.errors import LowlpValueError

from ..parts import (
    Arguments,
    as_f32,
    finished,
    make_linear,
    packed_view,
    view_of_result,
)
from ..schedule import Schedule
from ..spec import LinearSpec
from .entries import are_global, can_keep
from .lattice_books import LatticeBooks
from .lattice_tables import bytes_of_codes, stored_codes
from .program_plan import ProgramPlan
from .splits import Part, SplitEnding, part_of
from .spread_books import EntryBooks


class _Block:
    """What a block does, as it is traced."""

    def __init__(self, plan: ProgramPlan, operands: Arguments) -> None:
        self.plan, self.operands = plan, operands
        spec, m = plan.spec, operands.m
        if spec.dependent_launch:
            ll.launch_dependents()
        (block,) = ll.block_indices()
        self.part: Part | None = None
        if plan.schedule.splits > 1:
            self.part = part_of(block, plan.schedule.splits, plan.granules)
            block = self.part.tile
        self.last_unit: ll.Scalar | int = -(-spec.k // plan.unit_k) - 1
        if self.part:
            # Of what is loaded ahead.
            end = ll.minimum(self.part.stop * plan.granule, spec.k)
            self.last_unit = (end - 1) // plan.unit_k
        blocks_of_columns = ll.ceildiv(m, plan.staged_rows)
        self.row = block // blocks_of_columns * plan.rows
        self.column = block % blocks_of_columns * plan.staged_rows
        x_shape = [spec.k // plan.segment, m, plan.segment]
        self.x_view = ll.view_global(operands.x, shape=x_shape, strides=[plan.segment, operands.x_stride, 1])
        if plan.stages:
            of_unit, rows = [plan.chunks, m, plan.chunk_k], plan.staged_rows
            strides = [plan.unit_k, plan.chunk_k, operands.x_stride, 1]
            self.x_view = ll.view_global(operands.x, shape=[spec.k // plan.unit_k, *of_unit], strides=strides)
            self.x_shared = ll.alloc_shared(spec.activation, [plan.stages, plan.chunks, rows, plan.chunk_k])
        if plan.exchanges:
            self.w_shared = ll.alloc_shared(spec.activation, [plan.vectors.books, plan.rows, plan.unit_k])
        self.w_view = packed_view(spec, operands.weights)
        self.s_view = ll.view_global(operands.scales, shape=[spec.groups, spec.n, 1], strides=[spec.n, 1, 1])
        # Books of all weights are those of one block.
        blocks = spec.shape_of_books[:-3] or (1, 1)
        if not plan.vectors.lattices:
            self.entry_books = EntryBooks(spec, plan.schedule, operands.codebooks)
        if operands.book_scales is not None:
            self.factors_view = ll.view_global(operands.book_scales, shape=[*blocks, plan.vectors.books])
        self.books: Any = None

    def block_of_rows(self, product: int) -> ll.Scalar | int:
        """Which block that shares books the rows are in."""
        plan = self.plan
        return 0 if plan.block_rows >= plan.spec.n else (self.row + plan.spec.first_rows[product]) // plan.block_rows

    def load_codes(self, product: int, unit) -> ll.Tile:  # type: ignore[no-untyped-def]
        """The codes of a unit, of all books."""
        plan, spec = self.plan, self.plan.spec
        at = [self.row + product * spec.packed_rows_of_product, unit * plan.unit_k]
        return ll.load_packed(self.w_view, offsets=at, layout=plan.codes(stored_codes(plan.vectors)))

    def by_chunk(self, codes: ll.Tile) -> ll.Tile:
        """The same as a tile of [chunk, book, rows, codes]; of computed books with bytes of codes in place of books."""
        vectors = self.plan.vectors
        if vectors.lattices:
            return ll.view(codes, dtype="uint8", layout=self.plan.chunks_of_codes(bytes_of_codes(vectors)))
        return ll.view(codes, dtype=codes.dtype, layout=self.plan.chunks_of_codes(vectors.books))

    @ll.inline
    def copy_x(self, stage, unit) -> None:  # type: ignore[no-untyped-def]
        """Begins to copy x of a unit, zeros where there is none, into a stage."""
        plan = self.plan
        ll.copy_async(
            self.x_view,
            self.x_shared,
            view_offsets=[unit, 0, self.column, 0],
            offsets=[stage, 0, 0, 0],
            shape=[plan.chunks, plan.staged_rows, plan.chunk_k],
        )
        ll.copy_async_commit()

    @ll.inline
    def begin_x(self, unit) -> None:  # type: ignore[no-untyped-def]
        """Begins to copy the first units into all stages but the last."""
        if self.plan.stages:
            # What was copied for another product is not needed, or was read.
            ll.copy_async_wait(0)
            ll.synchronize()
            for stage in range(self.plan.stages - 1):
                self.copy_x(stage, unit + stage)

    @ll.inline
    def take_x(self, free, unit) -> None:  # type: ignore[no-untyped-def]
        """Waits for x of a unit, and begins to copy another into the stage that nobody reads any more."""
        if self.plan.stages:
            ll.copy_async_wait(self.plan.stages - 2)
            ll.synchronize()
            self.copy_x(free, unit + self.plan.stages - 1)

    def next_stage(self, stage: Any) -> Any:
        """The stage after one."""
        return (stage + 1) % self.plan.stages if self.plan.stages else stage

    def books_of(self, product: int, block: ll.Scalar | int) -> Any:
        """The books of a product in their cache, those of a block of K where they are not of all; those that both
        products share once."""
        books = self.books
        if self.plan.block_k < self.plan.spec.k:
            books = books or self.entry_books.load([self.block_of_rows(product), block])
        elif books is None:
            books = self.load_books(self.block_of_rows(product))
        elif self.plan.block_rows < self.plan.spec.n and isinstance(books, ll.Codebook):
            books = ll.switch_codebook(books, self.entry_books.view, offsets=[self.block_of_rows(product), 0])
        self.books = books
        return books

    def load_books(self, rows: ll.Scalar | int) -> Any:
        """The books of these rows, in their cache, where they are of all K."""
        spec = self.plan.spec
        if self.plan.vectors.lattices:
            codes = self.plan.chunks_of_codes(1).reduce([0, 1])
            return LatticeBooks(self.plan.vectors, spec.activation, self.operands.codebooks, codes)
        kept = self.plan.schedule.kept_entries
        cache = ll.CodebookCache(shared=kept) if kept else None
        return self.entry_books.load([rows, 0], cache)

    @ll.inline
    def exchange(self, codes, books) -> None:  # type: ignore[no-untyped-def]
        """Puts the vectors of a unit into shared memory, after all warps have read those before (`take_x`)."""
        plan = self.plan
        if plan.exchanges:
            for book in range(plan.vectors.books):
                for chunk in range(plan.chunks):
                    values = self.look_up(codes, books, book, chunk)
                    ll.store_shared(values, self.w_shared, offsets=[book, 0, chunk * plan.chunk_k])
            ll.synchronize()

    def weights(self, codes: ll.Tile, books: Any, book: int, chunk: int) -> ll.Tile:
        """The weights of a book and a chunk as an operand of products."""
        plan = self.plan
        if plan.exchanges:
            at = [book, 0, chunk * plan.chunk_k]
            return ll.load_shared(self.w_shared, offsets=at, layout=plan.w, in_bounds=True)
        return self.look_up(codes, books, book, chunk)

    def look_up(self, codes: ll.Tile, books: Any, book: int, chunk: int) -> ll.Tile:
        """The vectors of a book and a chunk."""
        if isinstance(books, LatticeBooks):
            return books.lookup(codes, book, chunk)
        return self.entry_books.lookup(codes, books, book, chunk, self.plan.spec.activation)

    @ll.inline
    def multiply(self, codes, books, chunk: int, stage, segment, in_segment, sums):  # type: ignore[no-untyped-def]
        """The sums with the products of a chunk, which begins `in_segment` weights after the segment does."""
        plan = self.plan
        if plan.stages:
            at = [stage, chunk, 0, 0]
            x_rows = ll.load_shared(self.x_shared, offsets=at, layout=plan.x_of_stage, in_bounds=True)
            x_rows = ll.view(x_rows, dtype=plan.spec.activation, layout=plan.x)
        else:
            x_rows = ll.load_global(self.x_view, offsets=[segment, self.column, in_segment], layout=plan.x)
        x_tile = ll.transpose(x_rows)
        for book in range(plan.vectors.books):
            w = self.weights(codes, books, book, chunk)
            number = min(book, plan.sums - 1)
            sums = (*sums[:number], ll.dot(w, x_tile, sums[number]), *sums[number + 1 :])
        return sums

    @ll.inline
    def with_segment(self, product: int, acc, segment, sums):  # type: ignore[no-untyped-def]
        """The result with what a segment adds to it."""
        plan, spec = self.plan, self.plan.spec
        total = sums[0]
        if plan.vectors.has_book_scales:
            at = [self.block_of_rows(product), segment * plan.segment // plan.block_k]
            for book in range(plan.vectors.books):
                part = sums[book] * ll.load_scalar(self.factors_view, offsets=[*at, book])
                total = part if book == 0 else total + part
        else:
            total = total * self.operands.codebooks_unscale
        group = segment * plan.segment // spec.group_size
        row = self.row + spec.first_rows[product]
        scale = as_f32(ll.load_global(self.s_view, offsets=[group, row, 0], layout=plan.row), spec.scale)
        return ll.fma(scale, total, acc)

    def zero(self) -> ll.Tile:
        """Accumulators of a product."""
        return ll.full(0.0, "f32", layout=self.plan.accumulators)

    def zeros(self) -> tuple[ll.Tile, ...]:
        """Accumulators of a segment."""
        return tuple(self.zero() for _ in range(self.plan.sums))

    @ll.inline
    def take(self, product: int, books, unit, ahead):  # type: ignore[no-untyped-def]
        """The codes of a unit by chunk, the stage that has its x, and what is loaded ahead of the next unit."""
        loaded, stage, free = ahead
        self.take_x(free, unit)
        codes = self.by_chunk(loaded)
        self.exchange(codes, books)
        loaded = self.load_codes(product, ll.minimum(unit + 1, self.last_unit))
        return codes, stage, (loaded, self.next_stage(stage), self.next_stage(free))

    @ll.inline
    def of_whole_units(self, product: int, books, first, stop, acc, ahead):  # type: ignore[no-untyped-def]
        """The result with segments that are whole units, from `first` on up to `stop`, and what is loaded ahead."""
        plan = self.plan
        units = plan.segment // plan.unit_k
        for segment in ll.range(first, stop):
            sums = self.zeros()
            for unit in ll.range(units):
                codes, stage, ahead = self.take(product, books, segment * units + unit, ahead)
                for chunk in range(plan.chunks):
                    at = unit * plan.unit_k + chunk * plan.chunk_k
                    sums = self.multiply(codes, books, chunk, stage, segment, at, sums)
            acc = self.with_segment(product, acc, segment, sums)
        return acc, ahead

    @ll.inline
    def of_units_of_segment(self, product: int, books, segment, first, stop, acc, ahead):  # type: ignore[no-untyped-def]
        """The result with the units of a segment from `first` on up to `stop`, and what is loaded ahead."""
        plan = self.plan
        sums = self.zeros()
        for unit in ll.range(first, stop):
            codes, stage, ahead = self.take(product, books, unit, ahead)
            for chunk in range(plan.chunks):
                at = unit * plan.unit_k - segment * plan.segment + chunk * plan.chunk_k
                sums = self.multiply(codes, books, chunk, stage, segment, at, sums)
        return self.with_segment(product, acc, segment, sums), ahead

    @ll.inline
    def of_some_units(self, product: int, books, first, stop, acc, ahead):  # type: ignore[no-untyped-def]
        """The same with units of several segments, some of which may have others too."""
        units = self.plan.segment // self.plan.unit_k
        for segment in ll.range(first // units, ll.ceildiv(stop, units)):
            begin, end = ll.maximum(first, segment * units), ll.minimum(stop, (segment + 1) * units)
            acc, ahead = self.of_units_of_segment(product, books, segment, begin, end, acc, ahead)
        return acc, ahead

    @ll.inline
    def of_whole_chunks(self, product: int, books, first, stop, acc, ahead):  # type: ignore[no-untyped-def]
        """The same with segments of whole chunks, of which a unit has several."""
        plan = self.plan
        segments, chunks = plan.unit_k // plan.segment, plan.segment // plan.chunk_k
        for unit in ll.range(first // segments, ll.ceildiv(stop, segments)):
            codes, stage, ahead = self.take(product, books, unit, ahead)
            for part in range(segments):
                sums = self.zeros()
                for chunk in range(chunks):
                    number, at = part * chunks + chunk, chunk * plan.chunk_k
                    sums = self.multiply(codes, books, number, stage, unit * segments + part, at, sums)
                acc = self.with_segment(product, acc, unit * segments + part, sums)
        return acc, ahead

    @ll.inline
    def of_shared_units(self, product: int, books, first, stop, acc, ahead):  # type: ignore[no-untyped-def]
        """The same with any segments: each takes all units in which it has a part, and nothing is loaded ahead."""
        plan, unit_k = self.plan, self.plan.unit_k
        for segment in ll.range(first, stop):
            sums = self.zeros()
            start = segment * plan.segment
            for unit in ll.range(start // unit_k, (start + plan.segment - 1) // unit_k + 1):
                codes = self.by_chunk(self.load_codes(product, unit))
                for chunk in range(plan.chunks):
                    at = unit * unit_k + chunk * plan.chunk_k - start
                    sums = self.multiply(codes, books, chunk, 0, segment, at, sums)
            acc = self.with_segment(product, acc, segment, sums)
        return acc, ahead

    @ll.inline
    def of_blocks(self, product: int, make, books, first, stop, acc, ahead):  # type: ignore[no-untyped-def]
        """The result with blocks of K that have books of their own, from `first` on up to `stop`."""
        plan, spec = self.plan, self.plan.spec
        rows = self.block_of_rows(product)
        of_block = plan.block_k // plan.segment
        for block in ll.range(first, stop):
            end = ll.minimum((block + 1) * of_block, spec.k // plan.segment)
            acc, ahead = make(product, books, block * of_block, end, acc, ahead)
            # Without a branch, so that the next entries are loaded with what stands in front.
            at = [rows, ll.minimum(block + 1, stop - 1)]
            if product + 1 < spec.products:
                # After the last block come the first books of the next product.
                is_last = (block + 1) // stop
                at = [rows + is_last * (self.block_of_rows(product + 1) - rows), block + 1 - is_last * (stop - first)]
            books = ll.switch_codebook(books, self.entry_books.view, offsets=at)
        self.keep(books)
        return acc

    def keep(self, books: Any) -> None:
        """For the next product."""
        self.books = books

    @ll.inline
    def accumulators(self, product: int):  # type: ignore[no-untyped-def]
        """The result of a product, or the block's part of it."""
        plan, spec = self.plan, self.plan.spec
        segments, ahead = spec.k // plan.segment, None
        unit: ll.Scalar | int = 0
        first, stop = (self.part.first, self.part.stop) if self.part else (0, plan.granules)
        make, waits = self.of_shared_units, product == 0 and spec.dependent_launch
        if plan.has_whole_segments:
            make = self.of_whole_units if plan.segment % plan.unit_k == 0 else self.of_whole_chunks
            unit = first * (plan.granule // plan.unit_k) if self.part else 0
            # What is loaded ahead of the first unit: its codes, the stage that has its x, and the one that is free.
            ahead = (self.load_codes(product, unit), 0, plan.stages - 1)
            if not waits:
                self.begin_x(unit)
        books = self.books_of(product, first)
        if waits:
            # Weights are in flight, and books there; what other launches write is read from here on.
            ll.wait_for_dependencies()
            self.begin_x(unit)
        acc = self.zero()
        if plan.block_k < spec.k:
            return self.of_blocks(product, make, books, first, stop, acc, ahead)
        if not self.part:
            acc, ahead = make(product, books, 0, segments, acc, ahead)
        elif plan.has_whole_segments and segments == 1:
            # The result is nothing until its end.
            acc, ahead = self.of_units_of_segment(product, books, 0, first, stop, acc, ahead)
        elif plan.has_whole_segments and plan.segment > plan.unit_k:
            acc, ahead = self.of_some_units(product, books, first, stop, acc, ahead)
        else:
            of_granule = plan.granule // plan.segment
            acc, ahead = make(product, books, first * of_granule, stop * of_granule, acc, ahead)
        return acc

    def store(self, accumulators: tuple[ll.Tile, ...]) -> None:
        """Finishes the tile."""
        spec, operands = self.plan.spec, self.operands
        r_view = None
        if spec.residual:
            r_view = view_of_result(spec, operands.residual, operands.m, operands.residual_stride)
        result = finished(spec, accumulators, operands, r_view, self.row, self.column)
        # Columns after those of the staged rows have some of these once more.
        end = ll.minimum(operands.m, self.column + self.plan.staged_rows)
        y_view = view_of_result(spec, operands.y, end, spec.columns_of_y)
        ll.store_global(result, y_view, offsets=[self.row, self.column])

    def make_tile(self) -> None:
        """Multiplies and stores."""
        schedule = self.plan.schedule
        accumulators = tuple(self.accumulators(product) for product in range(self.plan.spec.products))
        if self.part:
            plan = self.plan
            SplitEnding(schedule.splits, plan.tiles, 32 * schedule.warps, self.store).end(self.part, accumulators)
        else:
            self.store(accumulators)


def has_books_of_tile(spec: LinearSpec, rows: int) -> bool:
    """Whether so many rows, which a block takes, share their books."""
    return not spec.book_rows or spec.book_rows >= spec.n or not (spec.book_rows % rows or spec.first_rows[-1] % rows)


def granules_of(spec: LinearSpec, schedule: Schedule) -> int:
    """In how many parts K may be divided."""
    return ProgramPlan(spec, schedule).granules


def has_codebook_program(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether there is a kernel for `spec`, of vectors, whose work is divided so."""
    plan = ProgramPlan(spec, schedule)
    if schedule.warpgroups or not has_books_of_tile(spec, plan.rows) or schedule.splits > plan.granules:
        return False
    if not can_keep(spec, schedule.second_copies):
        return False
    most_kept = 1 << plan.vectors.bits if may_keep_entries(spec, schedule) else 0
    if schedule.kept_entries > most_kept:
        return False
    if not schedule.stages:
        return not plan.exchanges and not schedule.staged_rows
    # Fewer rows than columns lie in no order that an exchange reads.
    if schedule.staged_rows and (schedule.columns > 8 or plan.exchanges):
        return False
    are_units = spec.k % plan.unit_k == 0 and plan.row_tiles % (spec.rows_of_unit // 16) == 0
    is_plain = schedule.slices == 1
    # Parts begin at the same units whatever a stage has, so that rows of x have the same bits.
    are_parts = schedule.splits == 1 or schedule.steps == 1 or plan.granule != plan.unit_k
    are_parts = are_parts or spec.k // plan.unit_k % schedule.splits == 0
    return is_plain and spec.aligned and plan.has_whole_segments and are_units and are_parts


def may_keep_entries(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether first entries of books in global memory can be kept in shared memory by a kernel that is divided so."""
    vectors = spec.vectors
    assert vectors is not None
    return are_global(spec) and not vectors.block and schedule.stages > 0 and schedule.codebooks == "auto"


def codebook_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, of vectors, whose work is divided as `schedule` says. Raises LowlpValueError for a
    schedule that no kernel has."""
    if not has_codebook_program(spec, schedule):
        raise LowlpValueError(f"schedule: no kernel takes {spec} as {schedule} divides it")
    plan = ProgramPlan(spec, schedule)
    return make_linear(
        spec,
        schedule,
        lambda operands: _Block(plan, operands).make_tile(),
        lambda m: (plan.tiles(m)[0] * schedule.splits,),
        32 * schedule.warps,
        codebooks=schedule.codebooks,
        blocks_per_sm=schedule.blocks_per_sm,
    )
