"""y = x @ w^T with weights of codebooks for many rows of x: by warpgroups, as `warpgroups` has it.

The vectors that a lane looks up are registers of operand A as they are, in another order of K than x has in memory
(docs/packed-format.md). The sum over K does not mind, if x comes in that order too: a kernel before this one writes its
rows so (`vector_order`), padded to whole units of 64, and tensor copies and descriptors take them as they take any x.
Vectors of two weights are in the order that x has. So a lookup is one load for all four registers of two rows of a
step, and no value goes from lane to lane.

    span   of a unit of the packed format, what lies in a stage: the whole unit, or a part of a wider one, whose words
           then come with each of its stages, and are selected by the number of the stage
    piece  what one product takes: 64 weights along K, or fewer

Sums of several books go to one of two places (`Schedule.scales_on`):

    'accumulators'  each book has products of its own; no weight is rounded
    'weights'       entries are added before, and rounded to the activation type; where books have scales, in f16
                    (`book_sums`)

Scales never go on weights: those of rows multiply accumulators at the end, those of groups a second tile of them. So
for one book and one weight the result is what `QuantizedTensor.dequantize` computes.

Books of blocks along K take the place of each other between stages, and the next ones are loaded ahead (`next_books`);
or four blocks come side by side (`blocks_at_once`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import LEAST_ALIGNED_STAGES, TilePart
from lowlp.layouts.register_layout import local, spatial
from lowlp_runtime.vector_order import padded_columns

from ..parts import STEP_K, UNIT_K, Arguments, Views, as_f32, packed_view, view_of_result
from ..schedule import Schedule
from ..spec import LinearSpec
from ..warpgroup_layouts import piece_k, tiles_of_warp
from ..warpgroups import Block, make_wide
from ..wide_factors import of_rows
from .blocks_at_once import can_take_at_once, exchanged
from .book_sums import (
    Factors,
    factors_of_entries,
    factors_of_placed,
    plain_factors,
    sum_of_entries,
    sum_of_placed,
)
from .entries import can_keep
from .lattice_books import LatticeBooks
from .lattice_tables import bytes_of_codes
from .next_books import NextBooks, loads_ahead
from .program import has_books_of_tile
from .slice_sums import SliceSums, can_add_slices
from .spread_books import EntryBooks
from .wide_plan import VectorPlan


class VectorBlock(Block):
    """What a block does, as it is traced."""

    plan: VectorPlan

    def views_of_operands(self) -> Views:
        """As for other weights, with x in the order of vectors."""
        plan, operands = self.plan, self.operands
        spec = plan.spec
        shape: list[Any] = [padded_columns(spec.k) // UNIT_K, operands.m, UNIT_K]
        strides: list[Any] = [UNIT_K, operands.x_stride, 1]
        if plan.slices > 1:
            # Units of a span, so that those of neighbouring slices lie side by side.
            shape = [plan.span_k // UNIT_K, spec.k // plan.span_k, operands.m, UNIT_K]
            strides = [UNIT_K, plan.span_k, operands.x_stride, 1]
        x_view = ll.view_global(operands.x, shape=shape, strides=strides)
        s_view = ll.view_global(operands.scales, shape=[spec.groups, spec.n])
        y_view = view_of_result(spec, operands.y, operands.m, spec.columns_of_y)
        return Views(x_view, packed_view(spec, operands.weights), s_view, s_view, y_view)

    def prepare_weights(self) -> None:
        """Takes the books into their cache."""
        plan, operands = self.plan, self.operands
        if plan.slices > 1:
            self.slice_sums = SliceSums(plan.schedule, plan.rows_of_part)
        # Books of all weights are those of one block.
        blocks = plan.spec.shape_of_books[:-3] or (1, 1)
        if not plan.vectors.lattices:
            self.entry_books = EntryBooks(plan.spec, plan.schedule, operands.codebooks)
        if operands.book_scales is not None:
            self.factors_view = ll.view_global(operands.book_scales, shape=[*blocks, plan.vectors.books])
        self.made: list[Any] = []
        self.books: tuple[Any, ...] = ()
        if plan.has_blocks:
            self.following = NextBooks(plan.spec, plan.schedule, self.entry_books)
        else:
            self.books = (self.load_books([0, 0]),)
            self.made = [self.factors(product, 0, 0) for product in range(plan.spec.products)]

    def load_books(self, block: list[Any]) -> Any:
        """The books of a block of rows and K."""
        plan, operands = self.plan, self.operands
        if plan.vectors.lattices:
            codes = plan.codes_of_pieces(1).reduce([0, 1])
            return LatticeBooks(plan.vectors, plan.held, operands.codebooks, codes)
        return self.entry_books.load(block)

    def rows_of_books(self, row: ll.Scalar | int) -> list[Any]:
        """Of the tile that begins at `row`, the block of rows of each product; one where they share books."""
        plan = self.plan
        if not plan.has_blocks_of_rows:
            return [0]
        return [(row + first) // plan.block_rows for first in plan.spec.first_rows]

    def enter(self, row: ll.Scalar, stage: ll.Scalar | int) -> Any:
        """The books of a stage, the entries that follow, and the block of K that they are of; nothing where all weights
        share books."""
        plan = self.plan
        if not plan.has_blocks:
            return ()
        block = self.block_of(stage)
        books = tuple(self.load_books([rows, block]) for rows in self.rows_of_books(row))
        return books, self.entries_after(block, row), block

    def block_of(self, stage: ll.Scalar | int) -> Any:
        """The block of K that a stage lies in, a number of the program, as loops carry it."""
        return stage // self.plan.stages_of_block if self.plan.switches_books else ll.minimum(stage, 0)

    def enter_first(self) -> Any:
        """As `enter`, before what other launches write is waited for: of books these write nothing."""
        return self.enter(*self.work.first_part()) if self.plan.has_blocks else ()

    def go_on(self, carried: Any, part: TilePart) -> Any:
        """As `enter`, of the part that comes next. The entries of its first books are asked for; the books of the part
        before are held on, as those of no block, so that its first stage changes them."""
        if not self.plan.has_blocks:
            return carried
        row, _, stage = self.work.place_of_part(part)
        books, _, _ = carried
        return books, self.entries_of(self.block_of(stage), row), ll.minimum(stage, -1)

    def books_in(self, carried: Any) -> tuple[Any, ...]:
        """The books of what `enter` returns."""
        return carried[0] if carried else self.books

    def entries_after(self, block: Any, row: ll.Scalar) -> tuple[Any, ...]:
        """The entries of the books that come after those of a block of K."""
        plan = self.plan
        # Shares go from the last stage to the first.
        last = -(-plan.spec.k // plan.block_k) - 1
        after = ll.minimum(block + 1, last) if plan.schedule.has_tile_each else ll.maximum(block - 1, 0)
        return self.entries_of(after, row)

    def entries_of(self, block: Any, row: ll.Scalar) -> tuple[Any, ...]:
        """The entries of the books of a block of K, on their way to registers; None where these have no room."""
        return tuple(self.following.load(rows, block) for rows in self.rows_of_books(row))

    @ll.inline
    def at_block(self, carried, block, row):  # type: ignore[no-untyped-def]
        """What `enter` returns, of the block of K that a stage lies in, where that is not the one that is held."""
        books, entries, held = carried
        if block != held:
            books = tuple(
                self.following.switch(before, rows, block, loaded)
                for before, rows, loaded in zip(books, self.rows_of_books(row), entries, strict=True)
            )
            entries = self.entries_after(block, row)
            held = block
        return books, entries, held

    def factors(self, product: int, stage: ll.Scalar | int, row: ll.Scalar | int) -> Factors:
        """What the entries of books are multiplied by, and their sums."""
        plan, operands = self.plan, self.operands
        if not plan.vectors.has_book_scales:
            return plain_factors(plan.vectors.books, operands.codebooks_unscale)
        rows = self.rows_of_books(row)
        at = [rows[product % len(rows)], stage // plan.stages_of_block if plan.switches_books else 0]
        scales = [ll.load_scalar(self.factors_view, offsets=[*at, book]) for book in range(plan.vectors.books)]
        if plan.placed is None:
            return factors_of_entries(scales, plan.spec.largest_book)
        return factors_of_placed(scales, plan.placed, plan.spec.largest_book)

    def load_codes(self, part: int, unit: Any, row: ll.Scalar, span: ll.Scalar) -> ll.Tile:
        """The codes of a span of each slice, which a unit along K is, or has this one of: then all are loaded, and one
        selected."""
        plan, parts = self.plan, self.plan.parts_of_unit
        loaded = [
            ll.load_packed(
                self.views.weights,
                offsets=[plan.packed_row(part, row), unit * plan.spec.unit_k],
                layout=plan.codes,
                first_step=number * plan.span_k // plan.step_k,
            )
            for number in range(parts)
        ]
        return loaded[0] if parts == 1 else _one_of(loaded, span % parts)

    def codes_of(self, part: int, span: int, stage: ll.Scalar, row: ll.Scalar) -> ll.Tile:
        """The codes of a span of a stage, of all books, as [piece, book, rows, codes]; of computed books with bytes of
        codes in place of books."""
        plan, parts = self.plan, self.plan.parts_of_unit
        spans = plan.schedule.stage_k // plan.span_k
        unit = stage // parts if parts > 1 else stage * spans + span * plan.slices
        codes = self.load_codes(part, unit, row, stage)
        vectors = plan.vectors
        if vectors.lattices:
            return ll.view(codes, dtype="uint8", layout=plan.codes_of_pieces(bytes_of_codes(vectors)))
        return ll.view(codes, dtype=codes.dtype, layout=plan.codes_of_pieces(vectors.books))

    def codes_at_once(self, part: int, stage: ll.Scalar, row: ll.Scalar) -> list[ll.Tile]:
        """The codes of each turn of a stage, where blocks come at once, held alike."""
        plan = self.plan
        group, span = stage // plan.stages_of_block, stage % plan.stages_of_block
        of_block, blocks = plan.block_k // (plan.at_once * plan.spec.unit_k), []
        for number in range(plan.at_once):
            unit = (group * plan.at_once + number) * of_block + span // plan.parts_of_unit
            blocks.append(self.load_codes(part, unit, row, span))
        model = blocks[0]
        held = local(model.dtype.bits * model.layout.num_local // 32) * spatial(model.layout.num_threads)
        # Of threads, of which four have a row.
        lanes = ll.iota(0, layout=held, dtype="uint32")
        turns = exchanged([ll.view(words, dtype="uint32", layout=held) for words in blocks], lanes)
        return [ll.view(words, dtype=model.dtype, layout=plan.codes_of_pieces(1)) for words in turns]

    def entries(self, codes: ll.Tile, piece: int, book: int, books: Any) -> ll.Tile:
        """The entries of one book that a piece's codes name."""
        if isinstance(books, LatticeBooks):
            return books.lookup(codes, book, piece)
        return self.entry_books.lookup(codes, books, book, piece, self.plan.held)

    def added(self, codes: ll.Tile, piece: int, books: Any, factors: Factors) -> ll.Tile:
        """The sums of the entries of all books, in the activation type."""
        plan, count = self.plan, self.plan.vectors.books
        if plan.placed is None:
            total = sum_of_entries([self.entries(codes, piece, book, books) for book in range(count)], factors)
        else:
            total = sum_of_placed(*self.placed_numbers(codes, piece, books), factors)
        return total if plan.spec.activation == plan.held else ll.cast(total, plan.spec.activation)

    def placed_numbers(self, codes: ll.Tile, piece: int, books: Any) -> tuple[list[ll.Tile], ll.Tile | None]:
        """The numbers that a piece's codes name in each book, and by what their factors are multiplied."""
        count = range(self.plan.vectors.books)
        if isinstance(books, LatticeBooks):
            return [books.placed(codes, book, piece) for book in count], books.parts_of_placed
        return [self.entry_books.placed(codes, books, book, piece) for book in count], None

    def with_piece(self, results: list[ll.Tile], part: int, x_tiles: list[ll.Tile], weights: list[ll.Tile]) -> None:
        """Adds the products of a part's piece, one for each tile of columns, and each of `weights`."""
        plan = self.plan
        for held in weights:
            values = ll.view(held, dtype=held.dtype, layout=plan.weights_of_piece)
            for tile, x_tile in enumerate(x_tiles):
                index = plan.index_of(part, tile)
                results[index] = ll.dot(values, x_tile, results[index])

    def x_of_piece(self, stage: ll.Scalar, first: int, column: ll.Scalar) -> list[ll.Tile]:
        """x of the piece that begins at weight `first` of each slice of a stage, of each tile of columns, turned."""
        plan, schedule = self.plan, self.plan.schedule
        if plan.slices > 1:
            span = stage * (schedule.stage_k // plan.span_k) + first // plan.span_k * plan.slices
            at: list[Any] = [first % plan.span_k // UNIT_K, span, column, first % UNIT_K]
            loaded = ll.transpose(ll.load_global(self.views.x, offsets=at, layout=plan.layouts.x), (0, 2, 1))
            held = loaded.layout.reshape(plan.slices * plan.piece_k, schedule.columns)
            return [ll.view(loaded, dtype=loaded.dtype, layout=held)]
        unit = stage * (schedule.stage_k // UNIT_K) + first // UNIT_K
        return [
            ll.transpose(
                ll.load_global(
                    self.views.x,
                    offsets=[unit, column + tile * schedule.columns, first % UNIT_K],
                    layout=plan.layouts.x,
                )
            )
            for tile in range(schedule.column_tiles)
        ]

    @ll.inline
    def with_books(self, acc, stage, row, column, books):  # type: ignore[no-untyped-def]
        """The result with what a stage of the tile that begins at `row` and `column` adds to it."""
        plan, products = self.plan, self.plan.spec.products
        loaded: dict[tuple[int, int], ll.Tile] = {}
        made = self.made or [self.factors(product, stage, row) for product in range(products)]
        for segment in range(plan.schedule.stage_k // plan.segment_in_stage):
            results = list(acc if plan.is_one else self.zeros())
            for piece in range(plan.segment_in_stage // plan.slices // plan.piece_k):
                first = segment * plan.segment_in_stage + piece * plan.piece_k
                x_tiles = self.x_of_piece(stage, first, column)
                span, in_span = first // plan.span_k, first % plan.span_k // plan.piece_k
                for part in range(plan.parts):
                    if (part, span) not in loaded and plan.at_once > 1:
                        turns = self.codes_at_once(part, stage, row)
                        loaded.update({(part, turn): codes for turn, codes in enumerate(turns)})
                    elif (part, span) not in loaded:
                        loaded[part, span] = self.codes_of(part, span, stage, row)
                    codes, book = loaded[part, span], books[part % len(books)]
                    if plan.are_added:
                        weights = [self.added(codes, in_span, book, made[part % products])]
                    else:
                        numbers = range(plan.vectors.books) if plan.at_once == 1 else (span,)
                        weights = [self.entries(codes, in_span, b, book) for b in numbers]
                    self.with_piece(results, part, x_tiles, weights)
            acc = tuple(results) if plan.is_one else self.with_segment_scaled(acc, results, stage, segment, row, made)
        return acc

    def with_segment_scaled(
        self, acc: Any, results: list[ll.Tile], stage: ll.Scalar, segment: int, row: ll.Scalar, made: Any
    ) -> Any:
        """The result with the accumulators of a segment, times their scales."""
        plan, spec = self.plan, self.plan.spec
        group = (stage * plan.schedule.stage_k + segment * plan.segment_in_stage) // spec.group_size
        products = spec.products
        scales = [
            as_f32(of_rows(plan, self.views.scales, group, plan.row_of(part, row)), spec.scale)
            for part in range(plan.parts)
        ]
        return tuple(
            ll.fma(scales[part * products + product], results[index] * made[product].unscale, acc[index])
            for index, (part, _, product) in enumerate(plan.accumulators)
        )

    @ll.inline
    def with_stage(self, acc, carried, stage, row, column):  # type: ignore[no-untyped-def]
        """As `with_books`, of the books of the stage, which it carries on."""
        plan = self.plan
        if plan.changes_books:
            carried = self.at_block(carried, self.block_of(stage), row)
        return self.with_books(acc, stage, row, column, self.books_in(carried)), carried

    def complete(self, accumulators: tuple[ll.Tile, ...]) -> tuple[ll.Tile, ...]:
        """The accumulators of a tile, or of a part of its stages, of all slices of K."""
        if self.plan.slices == 1:
            return accumulators
        return tuple(self.slice_sums.add(acc) for acc in accumulators)

    def whole(self, accumulators: tuple[ll.Tile, ...], part: int, row: ll.Scalar) -> tuple[ll.Tile, ...]:
        """Accumulators times all that they share: powers of two, and the scales of books and rows."""
        plan, spec = self.plan, self.plan.spec
        if not plan.is_one:
            return accumulators
        found = []
        for product, acc in enumerate(accumulators):
            factors = self.made[product] if self.made else self.factors(product, 0, row)
            scale = self.asked_of_rows[part * spec.products + product]["scales"]
            found.append(acc * factors.unscale * as_f32(scale, spec.scale))
        return tuple(found)


def _can_slice(plan: VectorPlan) -> bool:
    """Whether stages have whole units for each slice, which all share one scale of a row."""
    spec, schedule = plan.spec, plan.schedule
    # Slices take x by its own units, of which those of weights are some.
    has_units = spec.unit_k % UNIT_K == 0 and spec.k % spec.unit_k == 0
    has_units = has_units and schedule.stage_k % (schedule.slices * spec.unit_k) == 0
    is_whole = plan.is_one and schedule.column_tiles == 1
    return has_units and is_whole and can_add_slices(schedule, plan.rows_of_part)


def _one_of(parts: list[ll.Tile], number: ll.Scalar) -> ll.Tile:
    """The codes of one part, all of which are held alike. Whole words are selected, as fewer than codes; those of codes
    that fill none, one by one."""
    model = parts[0]
    bits = model.dtype.bits * model.layout.num_local
    is_whole = bits % 32 == 0
    held = local(bits // 32) * spatial(model.layout.num_threads) if is_whole else model.layout
    words = [ll.view(part, dtype="uint32", layout=held) if is_whole else ll.cast(part, "uint32") for part in parts]
    wanted, found = ll.full(number, "uint32", layout=held), words[0]
    for index, word in enumerate(words[1:], 1):
        found = ll.where(ll.equal(wanted, index), word, found)
    return ll.view(found, dtype=model.dtype, layout=model.layout) if is_whole else found


def wide_codebook_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program for `spec`, of vectors, whose work is divided as `schedule` says, which has warpgroups.

    Parameters as for `wide_kernel`; x comes in the order of vectors.

    Requires `can_look_up_wide(spec, schedule)`.
    """
    plan = VectorPlan(spec, schedule)
    begin: Callable[[Arguments], Block] = lambda operands: VectorBlock(plan, operands)  # noqa: E731
    return make_wide(spec, schedule, begin)


def can_look_up_wide(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether `wide_codebook_kernel` has a program: stages are whole units of the packed format or equal parts of one,
    whole groups or parts of one, and parts of a block of books; rows of a tile share their books. Several books with
    scales of their own are added before they are multiplied, and one book is not."""
    if spec.vectors is None or not schedule.has_wgmma:
        return False
    if schedule.multicast > 1 or schedule.kept_entries or schedule.staged_rows:
        return False
    if schedule.blocks_at_once > 1 and not can_take_at_once(spec, schedule):
        return False
    if not can_keep(spec, schedule.second_copies):
        return False
    tiles, books, stage_k = tiles_of_warp(spec, schedule), spec.vectors.books, schedule.stage_k
    # Units of so many rows that a warp has no registers for a step of each.
    if piece_k(spec, schedule) < STEP_K:
        return False
    if spec.groups > 1 and spec.group_size % STEP_K:
        return False
    if stage_k % spec.unit_k and spec.unit_k % stage_k:
        return False
    if schedule.row_tiles // tiles % spec.products or schedule.parts_type != "f32":
        return False
    if tiles == 1 and (4 * schedule.warpgroups_of_slice) % (spec.rows_of_unit // 16):
        return False
    if schedule.cluster > 1 and (schedule.columns % (8 * schedule.cluster) or tiles > 1):
        return False
    if schedule.aligned_shares and spec.k <= (LEAST_ALIGNED_STAGES - 1) * stage_k:
        return False
    plan = VectorPlan(spec, schedule)
    if schedule.slices > 1 and not _can_slice(plan):
        return False
    if plan.are_added != (plan.on_weights and books > 1) or (plan.on_weights and books == 1):
        return False
    if spec.vectors.has_book_scales and books > 1 and not plan.are_added:
        return False
    if not plan.is_one and (plan.piece_k % STEP_K or plan.piece_k % plan.step_k):
        return False
    if not plan.is_one and stage_k % plan.segment and plan.segment % stage_k:
        return False
    if plan.has_blocks and not has_books_of_tile(spec, plan.rows):
        return False
    # Each group of blocks would wait for memory.
    if plan.at_once > 1 and plan.switches_books and not loads_ahead(spec, schedule):
        return False
    return not plan.switches_books or plan.block_k % stage_k == 0
