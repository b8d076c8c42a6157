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
at most 1 however small values are, and the sum of what w / scale is takes the place of the sum of weights.
"""

from __future__ import annotations

import math
from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import small

from .codes import (
    CacheViews,
    first_scores,
    key_unit,
    keys_as_operand,
    paired_queries,
    pointer_types,
    values_as_operand,
)
from .layouts import KeyLayouts, ResultLayouts, ScoreLayouts, ValueLayouts
from .merging import NO_ROW, Part, finish
from .spec import GROUP, AttentionSchedule, AttentionSpec

LOWEST = -1e30
"""Below every score, and finite: a warp may have no token at all."""
_LOG2_E = math.log2(math.e)
_LEAST_SCALE = 2.0**-24


class _Block:
    """What a block does, as it is traced."""

    def __init__(self, spec: AttentionSpec, schedule: AttentionSchedule, operands: dict[str, Any]) -> None:
        self.spec, self.schedule, self.operands = spec, schedule, operands
        self.keys, self.values = KeyLayouts(spec, schedule), ValueLayouts(spec, schedule)
        self.scores, self.results = ScoreLayouts(spec, schedule), ResultLayouts(spec, schedule)
        pair, self.split = map(small, ll.block_indices())
        self.pair = pair
        self.columns = pair % spec.column_blocks * spec.columns if spec.column_blocks > 1 else 0
        self.head = pair // spec.column_blocks % spec.kv_heads
        self.sequence = pair // (spec.column_blocks * spec.kv_heads)
        batch, width = operands["batch"], operands["table_width"]
        self.views = CacheViews(spec, operands)
        self.table = ll.view_global(
            operands["block_table"], shape=[batch, width], strides=[operands["table_stride"], 1]
        )
        length = ll.load_scalar(ll.view_global(operands["lengths"], shape=[batch]), offsets=[self.sequence])
        ll.assume((length >= 0) & (length <= width * spec.page), "lengths must be from 0 to table_width * page")
        self.length = small(ll.minimum(ll.maximum(length, 0), width * spec.page))
        self.first: Any = 0
        if spec.window:
            first = ll.maximum(self.length - operands["window"] - (spec.queries - 1), 0)
            self.first = small(first) // GROUP * GROUP
        self.tiles = ll.ceildiv(small(ll.maximum(self.length - self.first, 0)), schedule.tile)
        self.parts = ll.maximum(ll.minimum(self.tiles, operands["splits"]), 1)

    def row_of(self, column: ll.Tile, rows_of_token: Any) -> ll.Tile:
        """Rows of tokens of so many rows each, counted from `first_row`; `NO_ROW`, which lies in no view, for columns
        that are not there."""
        spec = self.spec
        column = column + ll.full(self.columns, "int32", layout=column.layout)
        row = column
        if spec.queries > 1:
            row = column // spec.group * ll.full(rows_of_token, "int32", layout=column.layout) + column % spec.group
        return ll.where(column < spec.used, row, ll.full(NO_ROW, "int32", layout=column.layout))

    def first_row(self, rows_of_token: Any) -> Any:
        """The row of the sequence's first token and of this head's first query."""
        return self.sequence * self.spec.queries * rows_of_token + self.head * self.spec.group

    def load_queries(self) -> tuple[ll.Tile, ll.Tile | None]:
        """Queries as operand B; and what scores are multiplied by for it, a number for each column."""
        spec, held, of_token = self.spec, self.keys.queries, self.operands["q_rows"]
        view = ll.view_global(
            self.operands["q"], shape=[self.operands["batch"] * spec.queries * of_token, spec.head_dim]
        )
        numbers = self.row_of(ll.iota(0, layout=held.reduce([1], keep_dims=True), dtype="int32"), of_token)
        queries = ll.gather_global(view, numbers, dim=0, offsets=[self.first_row(of_token), 0], layout=held)
        factor = None
        if spec.activation != spec.kind.compute or spec.kind.bits == 4:
            # Of each row the power of two below its largest number is taken out, so that f16 holds the others too.
            exact = ll.cast(queries, "f32")
            largest = ll.max(ll.abs(exact), 1, keep_dims=True)
            exponent = ll.view(largest, dtype="uint32", layout=largest.layout) & 0x7F800000
            inverse = ll.full(254 << 23, "uint32", layout=largest.layout) - exponent
            queries = ll.cast(exact * ll.view(inverse, dtype="f32", layout=largest.layout), "f16")
            power = ll.transpose(ll.view(exponent, dtype="f32", layout=largest.layout))
            factor = ll.convert_layout(power, self.scores.scores.reduce([0], keep_dims=True))
        return paired_queries(spec, self.keys, queries), factor

    def groups(self, tile: Any) -> ll.Tile:
        """Where the groups of 16 tokens of a tile lie, as rows of the cache; 0 for those without a token."""
        spec, held = self.spec, self.keys.groups
        groups_of_page = spec.page // GROUP
        first = tile * (self.schedule.tile // GROUP) + self.first // GROUP
        number = ll.iota(0, layout=held, dtype="int32") + ll.full(first, "int32", layout=held)
        page = ll.gather_global(self.table, number // groups_of_page, dim=0, offsets=[self.sequence, 0], layout=held)
        within = number % groups_of_page + ll.full(self.head * groups_of_page, "int32", layout=held)
        row = page * (spec.kv_heads * groups_of_page) + within
        has_tokens = number < ll.full(ll.ceildiv(self.length, GROUP), "int32", layout=held)
        return ll.where(has_tokens, row, ll.full(0, "int32", layout=held))

    def load(self, view: Any, rows: ll.Tile, held: Any) -> ll.Tile:
        """Keys, values or scales of the groups that `rows` names."""
        dims = list(range(1, held.rank))
        rows = ll.view(rows, dtype="int32", layout=held.reduce(dims, keep_dims=True))
        return ll.gather_global(view, rows, dim=0, offsets=[0] * held.rank, layout=held, in_bounds=True)

    def load_keys(self, rows: ll.Tile) -> tuple[ll.Tile, ll.Tile | None]:
        """Keys of the groups that `rows` names, and their scales."""
        return self.load(self.views.keys, rows, self.keys.loaded), self.load_scales(self.views.key_scales, rows)

    def load_values(self, rows: ll.Tile) -> tuple[ll.Tile, ll.Tile | None]:
        """Values of the groups that `rows` names, and their scales."""
        return self.load(self.views.values, rows, self.values.loaded), self.load_scales(self.views.value_scales, rows)

    def load_scales(self, view: Any, rows: ll.Tile) -> ll.Tile | None:
        """Scales of a tile's tokens as [tokens, 1] of f16; None for a cache without."""
        if view is None:
            return None
        scales = self.load(view, rows, self.scores.grouped.reduce([2]))
        return ll.view(scales, dtype="f16", layout=self.scores.scores.reduce([1], keep_dims=True))

    def clean_scales(self, scales: ll.Tile, start: Any) -> ll.Tile:
        """Scales with 1 for tokens that are not the sequence's."""
        token = ll.iota(0, layout=scales.layout, dtype="int32") + ll.full(start, "int32", layout=scales.layout)
        is_token = token < ll.full(self.length, "int32", layout=scales.layout)
        return ll.where(is_token, scales, 1.0)

    def masked(self, scores: ll.Tile, start: Any) -> ll.Tile:
        """Minus infinity where a column's query does not see a token; `start` is the first token of the tile."""
        spec, held = self.spec, self.scores.scores
        token = ll.iota(0, layout=held, dtype="int32") + ll.full(start, "int32", layout=held)
        newest = ll.full(self.length - spec.queries, "int32", layout=held)
        if spec.queries > 1:
            column = ll.iota(1, layout=held, dtype="int32") + ll.full(self.columns, "int32", layout=held)
            newest = newest + column // spec.group
        nothing = ll.full(-math.inf, "f32", layout=held)
        scores = ll.where(token <= newest, scores, nothing)
        if spec.window:
            scores = ll.where(newest - token < ll.full(self.operands["window"], "int32", layout=held), scores, nothing)
        return scores

    def scaled(self, scores: ll.Tile, scales: ll.Tile | None, factor: ll.Tile | None) -> ll.Tile:
        """Products as exponents of 2."""
        scale = self.operands["scale"] * key_unit(self.spec.kind)
        cap = self.operands.get("softcap")
        scale = scale * _LOG2_E if cap is None else scale / cap
        if factor is not None:
            scores = scores * factor
        scores = scores * (scale if scales is None else ll.cast(scales, "f32") * scale)
        return scores if cap is None else ll.tanh(scores) * (cap * _LOG2_E)

    def clean(self, values: ll.Tile, start: Any) -> ll.Tile:
        """Values with zeros for tokens that are not the sequence's: what lies there may be no number."""
        held = self.values.tokens
        group = ll.iota(0, layout=held, dtype="int32") * GROUP
        token = group + ll.iota(1, layout=held, dtype="int32") + ll.full(start, "int32", layout=held)
        is_token = token < ll.full(self.length, "int32", layout=held)
        if self.spec.window:
            least = self.length - self.operands["window"] - (self.spec.queries - 1)
            is_token = is_token & (token >= ll.full(least, "int32", layout=held))
        return ll.where(is_token, values, 0.0)

    def weights_as_operand(self, weights: ll.Tile) -> ll.Tile:
        """Weights [tokens, columns] of 16 bits, held as scores are, as operand B of O^T = V^T P."""
        held, element = self.scores, weights.dtype.name
        pairs = ll.convert_layout(ll.view(weights, dtype=element, layout=held.split), held.together)
        moved = ll.convert_layout(ll.view(pairs, dtype="uint32", layout=held.pairs), held.moved)
        return ll.view(moved, dtype=element, layout=held.weights)

    def with_values(self, accumulators: ll.Tile, values: ll.Tile, weights: ll.Tile) -> ll.Tile:
        """The accumulators [warps, channels, columns] with a tile's values added, by their weights in f32."""
        spec, results = self.spec, self.results
        operand = values_as_operand(spec, self.values, values)
        weights = ll.view(weights, dtype="f32", layout=self.scores.scores)
        slices = ll.view(accumulators, dtype="f32", layout=results.slices)
        rounded = ll.cast(weights, spec.kind.compute)
        slices = ll.dot(operand, self.weights_as_operand(rounded), slices)
        if spec.kind.compute == "bf16":
            # What 8 bits leave of a weight is as large as the error that attention may have.
            rest = ll.cast(weights - ll.cast(rounded, "f32"), "bf16")
            slices = ll.dot(operand, self.weights_as_operand(rest), slices)
        return ll.view(slices, dtype="f32", layout=results.by_warp)

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """The part of this block, if it has one."""
        queries, factor = self.load_queries()
        if self.split < self.parts:
            self.make_part(queries, factor)

    @ll.inline
    def make_part(self, queries, factor):  # type: ignore[no-untyped-def]
        """The block's part, and what follows."""
        spec, held = self.spec, self.scores
        top = ll.full(LOWEST, "f32", layout=held.column)
        total = ll.full(0.0, "f32", layout=held.lane_column)
        accumulators = ll.full(0.0, "f32", layout=self.results.by_warp)
        first = first_scores(spec, self.keys, held.scores, queries)
        # Where a tile lies is looked up ahead; keys or values may be loaded ahead, the others as the tile begins.
        rows, step = self.groups(self.split), self.operands["splits"]
        keys_ahead, values_ahead = "keys" in self.schedule.ahead, "values" in self.schedule.ahead
        next_keys: Any = self.load_keys(rows) if keys_ahead else ()
        next_values: Any = self.load_values(rows) if values_ahead else ()
        next_rows = self.groups(self.split + step)
        for tile in ll.range(self.split, self.tiles, step):
            start = tile * self.schedule.tile + self.first
            further_rows = self.groups(tile + step * 2)
            keys, key_scales = next_keys if keys_ahead else self.load_keys(rows)
            value_scales: Any
            values, value_scales = next_values if values_ahead else self.load_values(rows)
            scores = ll.dot(keys_as_operand(spec, self.keys, keys), queries, first)
            scores = self.scaled(scores, key_scales, factor)
            if keys_ahead and tile + step < self.tiles:
                next_keys = self.load_keys(next_rows)
            is_whole = start + (self.schedule.tile + spec.queries - 1) <= self.length
            if spec.window:
                is_whole = is_whole & (self.length - self.operands["window"] <= start)
            if is_whole:
                pass
            else:
                # What lies beside the sequence may be no number.
                scores = self.masked(scores, start)
                if spec.kind.is_coded:
                    value_scales = self.clean_scales(value_scales, start)
                else:
                    values = self.clean(values, start)
            if spec.kind.is_coded:
                logarithms = ll.log2(ll.maximum(ll.cast(value_scales, "f32"), _LEAST_SCALE))
                scores = scores + logarithms
            scores = ll.view(scores, dtype="f32", layout=held.by_warp)
            grown = ll.maximum(top, ll.max(scores, 1, keep_dims=True))
            weights = ll.exp2(scores - grown)
            mend = ll.exp2(top - grown)
            counted = ll.view(weights, dtype="f32", layout=held.scores)
            if spec.kind.is_coded:
                counted = counted * ll.exp2(-logarithms)
            counted = ll.sum(ll.view(counted, dtype="f32", layout=held.by_lane), 1, keep_dims=True)
            total = total * ll.view(mend, dtype="f32", layout=held.lane_column.reduce([2], keep_dims=True)) + counted
            accumulators = self.with_values(accumulators * mend, values, weights)
            top = grown
            if values_ahead and tile + step < self.tiles:
                next_values = self.load_values(next_rows)
            rows, next_rows = next_rows, further_rows
        finish(self, Part(top, ll.sum(total, 2, keep_dims=True), accumulators))


def attention_kernel(spec: AttentionSpec, schedule: AttentionSchedule) -> ll.Kernel:
    """The block program.

    Parameters: q [batch, queries, heads, head_dim], tokens `q_rows` heads apart; keys, values
    [pages, kv_heads, page, head_dim] as the cache stores them, key_scales and value_scales [pages, kv_heads, page] of
    f16 of a coded one; block_table int32 [batch, table_width], rows `table_stride` apart; lengths int32 [batch]; sinks
    [heads]; out [batch, queries, heads, head_dim], lse f32 [batch, queries, heads]; numbers batch, pages,
    pairs = batch * kv_heads * column_blocks, splits, window, scale, softcap.
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
    parameters |= {"block_table": ll.pointer("int32"), "lengths": ll.pointer("int32")}
    if spec.sinks:
        parameters["sinks"] = ll.pointer(spec.sinks)
    parameters["out"] = ll.pointer(activation, align=16)
    if spec.lse:
        parameters["lse"] = ll.pointer("f32")
    parameters |= dict.fromkeys(("batch", "q_rows", "pages", "table_width", "table_stride", "pairs", "splits"), ll.i32)
    if spec.window:
        parameters["window"] = ll.i32
    parameters["scale"] = ll.f32
    if spec.softcap:
        parameters["softcap"] = ll.f32

    def trace(**operands: Any) -> None:
        _Block(spec, schedule, operands).run()

    return ll.make_kernel(
        trace,
        name=f"attention_{spec.cache}",
        parameters=parameters,
        grid=lambda pairs, splits: (pairs, splits),
        num_threads=32 * schedule.warps,
        schedule=ll.KernelSchedule(blocks_per_sm=schedule.blocks_per_sm),
    )
