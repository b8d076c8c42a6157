"""Attention of a sequence's newest tokens over its paged cache: o = softmax(q k^T) v, in one launch.

A block has a head of keys and values of a sequence, the query heads that share it, and one part of the sequence's
tokens. Its warps take tiles of tokens in turn, each with a largest score, a sum and accumulators of its own (online
softmax, FlashAttention, arXiv 2205.14135), which are put together when the part ends.

    tile     warps x tokens; the sequence, or what its window leaves of it, has `tiles` of them
    part     every `splits`-th tile, from a number less than that on; blocks without any have nothing to do
    merging  the block of the last part waits for the others, and adds their results to its own in their order

Which tiles a part has follows from the length of the sequence and `splits`, so results do not depend on the other
sequences of the batch nor on the order in which blocks run.

Of a coded cache the scales of values go into the weights: w = 2**(score + log2(scale) - largest), so that weights are
at most 1 however small values are, and the sum of what w / scale is takes the place of the sum of weights. With queries
as rows `largest` is a reference score that may be up to 2^8 below the largest (`ScoreLayouts.grown`), so that weights
are up to 2^8, and accumulators are seldom scaled down.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import small

from .codes import load_books, pointer_types, wait_for_books
from .layouts import ResultLayouts, ScoreLayouts
from .merging import NO_ROW, Part, finish
from .sources import Source
from .spec import AttentionSchedule, AttentionSpec

LOWEST = -1e30
"""Below every score, and finite: a warp may have no token at all."""


class _Block:
    """What a block does, as it is traced."""

    def __init__(self, spec: AttentionSpec, schedule: AttentionSchedule, operands: dict[str, Any]) -> None:
        self.spec, self.schedule, self.operands = spec, schedule, operands
        self.scores, self.results = ScoreLayouts(spec, schedule), ResultLayouts(spec, schedule)
        pair, self.split = map(small, ll.block_indices())
        self.first = pair % spec.column_blocks * (spec.columns // spec.classes) if spec.column_blocks > 1 else 0
        self.head = pair // spec.column_blocks % spec.kv_heads
        self.of_sequence = spec.column_blocks * spec.kv_heads
        self.pair, self.sequence = pair, pair // self.of_sequence
        if not spec.kind.vector:
            self.begin()

    def begin(self) -> None:
        """Looks up what the block needs of its sequence."""
        spec, operands = self.spec, self.operands
        batch, width = operands["batch"], operands["table_width"]
        length = ll.load_scalar(ll.view_global(operands["lengths"], shape=[batch]), offsets=[self.sequence])
        ll.assume((length >= 0) & (length <= width * spec.page), "lengths must be from 0 to table_width * page")
        self.length = small(ll.minimum(ll.maximum(length, 0), width * spec.page))
        high: Any = self.length
        self.recent: Any = None
        if spec.recent:
            high = small(ll.maximum(self.length - operands["recent"], 0))
            self.recent = Source(self, replace(spec, cache=spec.kind.compute), True, high, self.length)
        self.source = Source(self, spec, False, None, high)
        self.tiles = self.source.tiles
        self.parts = ll.maximum(ll.minimum(self.tiles, operands["splits"]), 1)

    def query_of(self, column: ll.Tile) -> ll.Tile:
        """The queries of columns, both counted from the first of the block."""
        return column if self.spec.classes == 1 else column // self.spec.classes

    def begin_next(self, sequence: Any, within: Any, books: Any) -> None:
        """As `begin`, of another sequence with the same books."""
        self.sequence = small(sequence)
        self.pair = self.sequence * self.of_sequence + within
        self.begin()
        self.source.books = books

    def row_of(self, column: ll.Tile, rows_of_token: Any) -> ll.Tile:
        """Rows of queries, of tokens of so many rows each, counted from `first_row`; `NO_ROW`, which lies in no view,
        for those that are not there."""
        spec = self.spec
        column = column + ll.full(self.first, "int32", layout=column.layout)
        row = column
        if spec.queries > 1:
            row = column // spec.group * ll.full(rows_of_token, "int32", layout=column.layout) + column % spec.group
        return ll.where(column < spec.used, row, ll.full(NO_ROW, "int32", layout=column.layout))

    def places_in_order(self, row: ll.Tile, channel: ll.Tile) -> ll.Tile:
        """Where channels of rows lie, in the order of the codebooks, [numbers, 1]; `NO_ROW` for rows that are not
        there."""
        dim = self.spec.head_dim
        order = ll.view_global(self.operands["order"], shape=[dim, 1])
        place = ll.gather_global(order, channel, dim=0, offsets=[0, 0], layout=channel.layout, in_bounds=True)
        return ll.where(row >= 0, row * dim + place, ll.full(NO_ROW, "int32", layout=row.layout))

    def first_row(self, rows_of_token: Any) -> Any:
        """The row of the sequence's first token and of this head's first query."""
        return self.sequence * self.spec.queries * rows_of_token + self.head * self.spec.group

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """The block's part of its sequence; with codebooks, which it keeps, of every so-manieth sequence."""
        if self.spec.kind.vector:
            first, books = self.sequence, load_books(self.spec, self.schedule, self.operands, self.head)
            within = self.pair % self.of_sequence
            for sequence in ll.range(first, self.operands["batch"], self.operands["takers"]):
                self.begin_next(sequence, within, books)
                self.run_part()
                # What the sums of warps went through is written again.
                ll.synchronize()
        else:
            self.run_part()

    @ll.inline
    def run_part(self):  # type: ignore[no-untyped-def]
        """The block's part of its sequence, if it has one."""
        queries, factor = self.source.load_queries()
        if self.split < self.parts:
            sums = self.with_tiles(queries, factor)
            if self.recent is not None:
                sums = self.with_recent(sums)
            top, total, accumulators = sums
            finish(self, Part(top, ll.sum(total, 2, keep_dims=True), accumulators))

    @ll.inline
    def with_tiles(self, queries, factor):  # type: ignore[no-untyped-def]
        """The sums of the block's part: the reference scores [warps, 1, columns], the sums of weights, a part for each
        lane, [warps, 1, lanes, columns], and the accumulators [warps, channels, columns]."""
        source, step, tile_tokens = self.source, self.operands["splits"], self.schedule.tile
        top = ll.full(LOWEST, "f32", layout=self.scores.column)
        total = ll.full(0.0, "f32", layout=self.scores.lane_column)
        sums = (top, total, ll.full(0.0, "f32", layout=self.results.by_warp))
        first = source.first_scores(queries)
        # Where a tile lies is looked up ahead, and its codes may be loaded ahead.
        rows, keys_ahead, all_ahead = source.groups(self.split), self.schedule.keys_ahead, self.schedule.values_ahead
        next_keys: Any = source.load_keys(rows) if keys_ahead else ()
        next_values: Any = self.load_values(rows) if all_ahead else ()
        next_rows = source.groups(self.split + step)
        wait_for_books(self.spec, self.schedule)
        for tile in ll.range(self.split, self.tiles, step):
            start = tile * tile_tokens + source.first
            further_rows = source.groups(tile + step * 2)
            keys = next_keys if keys_ahead else source.load_keys(rows)
            values = next_values if all_ahead else self.load_values(rows)
            if all_ahead:
                # Groups without tokens lie in row 0, so that no branch is needed.
                next_keys, next_values = source.load_keys(next_rows), self.load_values(next_rows)
            scores = source.scores_of(keys, queries, factor, first)
            if keys_ahead and not all_ahead and tile + step < self.tiles:
                next_keys = source.load_keys(next_rows)
            sums = self.with_tile(source, sums, scores, values, start)
            rows, next_rows = next_rows, further_rows
        return sums

    def load_values(self, rows: ll.Tile) -> tuple[Any, Any]:
        """The source's values of the groups that `rows` names, if they count."""
        return self.source.load_values(rows) if self.schedule.has_values else (None, None)

    @ll.inline
    def with_recent(self, sums):  # type: ignore[no-untyped-def]
        """The sums with the newest tokens added, by the block of the last part."""
        source = self.recent
        if self.split + 1 == self.parts:
            queries, factor = source.load_queries()
            first = source.first_scores(queries)
            for tile in ll.range(source.tiles):
                rows = source.groups(tile)
                scores = source.scores_of(source.load_keys(rows), queries, factor, first)
                start = tile * self.schedule.tile + source.first
                sums = self.with_tile(source, sums, scores, source.load_values(rows), start)
        return sums

    @ll.inline
    def with_tile(self, source, sums, scores, values, start):  # type: ignore[no-untyped-def]
        """The sums with a tile of a source added, of which `scores` are not masked yet."""
        held, (top, total, accumulators) = self.scores, sums
        if source.is_whole(start):
            pass
        else:
            scores = source.masked(scores, start)
            if self.schedule.has_values:
                values = source.clean(values, start)
        tile, scales = values
        logarithms = source.logarithms(scales)
        if logarithms is not None:
            scores = scores + logarithms
        scores = ll.view(scores, dtype="f32", layout=held.by_warp)
        grown = held.grown(top, scores)
        weights = ll.exp2(scores - grown)
        mend = ll.exp2(top - grown)
        counted = ll.view(weights, dtype="f32", layout=held.scores)
        if logarithms is not None:
            counted = counted * (2.0**-logarithms if isinstance(logarithms, float) else ll.exp2(-logarithms))
        counted = ll.sum(ll.view(counted, dtype="f32", layout=held.by_lane), 1, keep_dims=True)
        total = total * ll.view(mend, dtype="f32", layout=held.lane_column.reduce([2], keep_dims=True)) + counted
        accumulators = held.rescaled(accumulators, mend)
        return grown, total, accumulators if tile is None else source.with_values(accumulators, tile, weights)


def attention_kernel(spec: AttentionSpec, schedule: AttentionSchedule) -> ll.Kernel:
    """The block program.

    Parameters: q [batch, queries, heads, head_dim], tokens `q_rows` heads apart; keys, values
    [pages, kv_heads, page, head_dim] as the cache stores them; of one of codebooks books as `books_view` has them,
    of keys and then of values, and `order` int32 [head_dim] where groups take channels in
    another order; key_scales and value_scales [pages, kv_heads, page] of
    f16 of one with scales; block_table int32 [batch, table_width], rows `table_stride` apart; lengths int32 [batch];
    sinks [heads]; out [batch, queries, heads, head_dim], lse f32 [batch, queries, heads]; numbers batch, pages,
    pairs = batch * kv_heads * column_blocks, splits, window, scale, softcap. With codebooks also `takers`, how many
    blocks take the sequences of a head in turn. With the newest tokens in f16 also recent_keys and recent_values
    [recent_pages, kv_heads, page, head_dim], recent_block_table as block_table, recent.
    """
    activation = spec.activation
    keys, values = pointer_types(spec.kind)
    parameters = {
        "q": ll.pointer(activation, align=16),
        "keys": ll.pointer(keys, align=16),
        "values": ll.pointer(values, align=16),
    }
    if spec.kind.is_coded:
        parameters |= {"key_scales": ll.pointer("f16", align=16), "value_scales": ll.pointer("f16", align=16)}
    if spec.kind.vector:
        parameters["books"] = ll.pointer(spec.kind.compute, align=16)
    if spec.ordered:
        parameters["order"] = ll.pointer("int32", align=16)
    parameters |= {"block_table": ll.pointer("int32"), "lengths": ll.pointer("int32")}
    if spec.sinks:
        parameters["sinks"] = ll.pointer(spec.sinks)
    parameters["out"] = ll.pointer(activation, align=16)
    if spec.lse:
        parameters["lse"] = ll.pointer("f32")
    parameters |= dict.fromkeys(("batch", "q_rows", "pages", "table_width", "table_stride", "pairs", "splits"), ll.i32)
    if spec.recent:
        of_recent = ll.pointer(spec.kind.compute, align=16)
        parameters |= {"recent_keys": of_recent, "recent_values": of_recent}
        parameters["recent_block_table"] = ll.pointer("int32")
        parameters |= dict.fromkeys(("recent", "recent_pages", "recent_table_stride"), ll.i32)
    if spec.kind.vector:
        parameters["takers"] = ll.i32
    if spec.window:
        parameters["window"] = ll.i32
    parameters["scale"] = ll.f32
    if spec.softcap:
        parameters["softcap"] = ll.f32

    def trace(**operands: Any) -> None:
        _Block(spec, schedule, operands).run()

    heads = spec.column_blocks * spec.kv_heads

    def grid(pairs: Any, splits: Any) -> Any:
        return pairs, splits

    def grid_of_takers(takers: Any, splits: Any) -> Any:
        return takers * heads, splits

    return ll.make_kernel(
        trace,
        name=f"attention_{spec.cache.replace('-', '')}",
        parameters=parameters,
        grid=grid_of_takers if spec.kind.vector else grid,
        num_threads=32 * schedule.warps,
        schedule=ll.KernelSchedule(blocks_per_sm=schedule.blocks_per_sm, codebooks=schedule.codebooks),
    )
