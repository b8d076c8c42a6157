"""Where attention takes keys and values from: the codes of a cache, or its newest tokens, which may be kept in f16.

A source has some tokens of a sequence, taken by tiles; what a tile gives is put together by `decode`.
"""

from __future__ import annotations

import math
from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import small
from lowlp.layouts.register_layout import local, reduce, spatial

from .codes import (
    Books,
    CacheViews,
    first_scores,
    key_unit,
    keys_as_operand,
    paired_queries,
    value_unit,
    values_as_operand,
)
from .layouts import KeyLayouts, ValueLayouts
from .merging import NO_ROW
from .spec import GROUP, AttentionSpec
from .stagger import KEY_LANES, class_of, near

_LOG2_E = math.log2(math.e)
_LEAST_SCALE = 2.0**-24
_LANES = 32
_TILE = 8
"""Columns of a matrix instruction."""


class Source:
    """Tokens of a sequence in one kind of memory.

    block     the `_Block` that takes them
    spec      of the kernel, with the type of this memory as its cache
    recent    whether it has the newest tokens, of a cache whose others are codes
    low, high the tokens that it has, from `low` up to `high`; None: from the first that counts
    """

    def __init__(self, block: Any, spec: AttentionSpec, recent: bool, low: Any, high: Any) -> None:
        self.block, self.spec, self.recent, self.low, self.high = block, spec, recent, low, high
        operands, schedule = block.operands, block.schedule
        self.keys = KeyLayouts(spec, schedule, block.spec.columns)
        self.values = ValueLayouts(spec, schedule, block.spec.kind)
        prefix = "recent_" if recent else ""
        self.views = CacheViews(spec, operands, prefix)
        shape = [operands["batch"], operands["table_width"]]
        strides = [operands[f"{prefix}table_stride"], 1]
        self.table = ll.view_global(operands[f"{prefix}block_table"], shape=shape, strides=strides)
        least = low
        if spec.window:
            of_window = block.length - operands["window"] - (spec.queries - 1)
            least = of_window if low is None else ll.maximum(low, of_window)
        self.least = least
        self.first: Any = 0 if least is None else small(ll.maximum(least, 0)) // GROUP * GROUP
        self.tiles = ll.ceildiv(small(ll.maximum(high - self.first, 0)), schedule.tile)
        self.books: Books | None = None

    def load_queries(self) -> tuple[ll.Tile, ll.Tile | None]:
        """Queries as operand B, or transposed as A where they are rows; and what scores are multiplied by for it, a
        number for each column."""
        block, spec, held, of_token = self.block, self.spec, self.keys.queries, self.block.operands["q_rows"]
        rows = block.operands["batch"] * spec.queries * of_token
        if spec.ordered:
            queries = self.load_ordered_queries(rows, of_token)
        elif block.spec.classes > 1 and not self.recent:
            queries = self.load_exchanged_queries(rows, of_token)
        else:
            view = ll.view_global(block.operands["q"], shape=[rows, spec.head_dim])
            column = ll.iota(0, layout=held.reduce([1], keep_dims=True), dtype="int32")
            numbers = block.row_of(block.query_of(column), of_token)
            queries = ll.gather_global(view, numbers, dim=0, offsets=[block.first_row(of_token), 0], layout=held)
        factor = None
        if spec.activation != spec.kind.compute or spec.kind.alternates:
            # Of each row the power of two below its largest number is taken out, so that f16 holds the others too.
            exact = ll.cast(queries, "f32")
            largest = ll.max(ll.abs(exact), 1, keep_dims=True)
            exponent = ll.view(largest, dtype="uint32", layout=largest.layout) & 0x7F800000
            inverse = ll.full(254 << 23, "uint32", layout=largest.layout) - exponent
            queries = ll.cast(exact * ll.view(inverse, dtype="f32", layout=largest.layout), "f16")
            power = ll.transpose(ll.view(exponent, dtype="f32", layout=largest.layout))
            factor = ll.convert_layout(power, block.scores.scores.reduce([0], keep_dims=True))
        return paired_queries(spec, self.keys, queries), factor

    @ll.inline
    def load_ordered_queries(self, rows, of_token):  # type: ignore[no-untyped-def]
        """Queries [columns, channels], with channels in the order of the codebooks, and in that of each column's
        class. Of several tiles of columns one is loaded at a time: places and channels of all would be more than a
        thread has registers for."""
        columns = self.block.spec.columns
        if columns <= _TILE:
            return self.load_ordered_tile(self.keys, 0, rows, of_token)
        one = KeyLayouts(self.spec, self.block.schedule, _TILE)
        room = ll.alloc_shared(self.spec.activation, [columns, self.spec.head_dim])
        for tile in ll.range(columns // _TILE):
            first = small(tile) * _TILE
            ll.store_shared(self.load_ordered_tile(one, first, rows, of_token), room, offsets=[first, 0])
        ll.synchronize()
        return ll.load_shared(room, offsets=[0, 0], layout=self.keys.queries, in_bounds=True)

    def load_ordered_tile(self, layouts: KeyLayouts, first: Any, rows: Any, of_token: Any) -> ll.Tile:
        """The same of columns from `first` on."""
        block, spec, held = self.block, self.spec, layouts.channels
        number = ll.iota(0, layout=held, dtype="int32")
        column, channel = number // spec.head_dim, number % spec.head_dim
        column = column + ll.full(first, "int32", layout=held)
        if block.spec.classes > 1 and not self.recent:
            vector = spec.kind.vector
            exchanged = column % block.spec.classes & (near(spec.kind, spec.head_dim, KEY_LANES) - 1)
            channel = (channel // vector ^ exchanged) * vector + channel % vector
        place = block.places_in_order(block.row_of(block.query_of(column), of_token), channel)
        view = ll.view_global(block.operands["q"], shape=[rows * spec.head_dim, 1])
        offsets = [block.first_row(of_token) * spec.head_dim, 0]
        queries = ll.gather_global(view, place, dim=0, offsets=offsets, layout=held)
        return ll.view(queries, dtype=queries.dtype.name, layout=layouts.queries)

    def load_exchanged_queries(self, rows: Any, of_token: Any) -> ll.Tile:
        """Queries [columns, channels], each column with its channels in the order of its class."""
        block, spec, held = self.block, self.spec, self.keys.vectors
        groups, vector = spec.head_dim // spec.kind.vector, spec.kind.vector
        number = ll.iota(0, layout=held.reduce([1], keep_dims=True), dtype="int32")
        column, group = number // groups, number % groups
        row = block.row_of(block.query_of(column), of_token)
        exchanged = group ^ (column % block.spec.classes & (near(spec.kind, spec.head_dim, KEY_LANES) - 1))
        is_there = row >= 0
        place = ll.where(is_there, row * groups + exchanged, ll.full(NO_ROW, "int32", layout=row.layout))
        view = ll.view_global(block.operands["q"], shape=[rows * groups, vector])
        offsets = [block.first_row(of_token) * groups, 0]
        queries = ll.gather_global(view, place, dim=0, offsets=offsets, layout=held)
        return ll.view(queries, dtype=queries.dtype.name, layout=self.keys.queries)

    def groups(self, tile: Any) -> ll.Tile:
        """Where the groups of 16 tokens of a tile lie, as rows of the cache; 0 for those without a token."""
        block, spec, held = self.block, self.spec, self.keys.groups
        groups_of_page = spec.page // GROUP
        first = tile * (block.schedule.tile // GROUP) + self.first // GROUP
        together = block.schedule.tokens // GROUP
        if together > 1 and self.least is None and groups_of_page % together == 0:
            # A warp's groups lie in one page, side by side.
            held = reduce(spatial(block.schedule.warps, _LANES), dims=[1])
        else:
            together = 1
        number = ll.iota(0, layout=held, dtype="int32") * together + ll.full(first, "int32", layout=held)
        page = ll.gather_global(self.table, number // groups_of_page, dim=0, offsets=[block.sequence, 0], layout=held)
        within = number % groups_of_page + ll.full(block.head * groups_of_page, "int32", layout=held)
        row = page * (spec.kv_heads * groups_of_page) + within
        has_tokens = number < ll.full(ll.ceildiv(self.high, GROUP), "int32", layout=held)
        row = ll.where(has_tokens, row, ll.full(0, "int32", layout=held))
        if together == 1:
            return row
        all_of_warp = held.unsqueeze(1) * local(1, together)
        row = ll.view(row, dtype="int32", layout=held.unsqueeze(1))
        row = ll.broadcast_to(row, all_of_warp) + ll.iota(1, layout=all_of_warp, dtype="int32")
        return ll.view(row, dtype="int32", layout=self.keys.groups)

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
        scales = self.load(view, rows, self.block.scores.grouped.reduce([2]))
        return ll.view(scales, dtype="f16", layout=self.block.scores.scores.reduce([1], keep_dims=True))

    def first_scores(self, queries: ll.Tile) -> ll.Tile:
        """What scores begin with."""
        return first_scores(self.spec, self.keys, self.block.scores, queries)

    def scores_of(self, keys: tuple[ll.Tile, ll.Tile | None], queries: ll.Tile, factor: Any, first: ll.Tile) -> ll.Tile:
        """Scores of a tile's keys as exponents of 2."""
        operand, (_, scales) = keys_as_operand(self.spec, self.keys, keys[0], self.books), keys
        scores = self.block.scores.product(operand, queries, first)
        scale = self.block.operands["scale"] * key_unit(self.spec.kind)
        cap = self.block.operands.get("softcap")
        scale = scale * _LOG2_E if cap is None else scale / cap
        if factor is not None:
            scores = scores * factor
        if cap is None and scales is None and self.block.spec.classes > 1:
            return ll.fma(scores, ll.full(scale, "f32", layout=scores.layout), self.of_class())
        scores = scores * (scale if scales is None else ll.cast(scales, "f32") * scale)
        result: ll.Tile = scores if cap is None else ll.tanh(scores) * (cap * _LOG2_E)
        return result if self.block.spec.classes == 1 else result + self.of_class()

    def of_class(self) -> ll.Tile:
        """0 for scores in the column of their token's class, minus infinity for others. Tokens in f16 have their
        channels in the order of class 0."""
        held = self.block.scores.scores
        counted = ll.iota(1, layout=held, dtype="int32") % self.block.spec.classes
        token = ll.iota(0, layout=held, dtype="int32")
        is_its = ll.equal(counted, 0) if self.recent else ll.equal(counted - class_of(token), 0)
        nothing = ll.full(-math.inf, "f32", layout=held)
        return ll.where(is_its, ll.full(0.0, "f32", layout=held), nothing)

    def is_whole(self, start: Any) -> Any:
        """Whether all queries see all tokens of the tile that begins at token `start`."""
        block, spec = self.block, self.spec
        whole = start + (block.schedule.tile + spec.queries - 1) <= block.length
        if self.high is not block.length:
            whole = whole & (start + block.schedule.tile <= self.high)
        if self.low is not None:
            whole = whole & (self.low <= start)
        if spec.window:
            whole = whole & (block.length - block.operands["window"] <= start)
        return whole

    def masked(self, scores: ll.Tile, start: Any) -> ll.Tile:
        """Minus infinity where a column's query does not see a token, or this source has it not."""
        block, spec, held = self.block, self.spec, self.block.scores.scores
        token = ll.iota(0, layout=held, dtype="int32") + ll.full(start, "int32", layout=held)
        newest = ll.full(block.length - spec.queries, "int32", layout=held)
        if spec.queries > 1:
            column = block.query_of(ll.iota(1, layout=held, dtype="int32"))
            column = column + ll.full(block.first, "int32", layout=held)
            newest = newest + column // spec.group
        nothing = ll.full(-math.inf, "f32", layout=held)
        scores = ll.where(token <= newest, scores, nothing)
        if spec.window:
            scores = ll.where(newest - token < ll.full(block.operands["window"], "int32", layout=held), scores, nothing)
        if self.high is not block.length:
            scores = ll.where(token < ll.full(self.high, "int32", layout=held), scores, nothing)
        if self.low is not None:
            scores = ll.where(token >= ll.full(self.low, "int32", layout=held), scores, nothing)
        return scores

    def clean(self, values: tuple[ll.Tile, ll.Tile | None], start: Any) -> tuple[ll.Tile, ll.Tile | None]:
        """Values, or scales of values, without what lies beside the source's tokens: that may be no number."""
        tile, scales = values
        if scales is not None:
            token = ll.iota(0, layout=scales.layout, dtype="int32") + ll.full(start, "int32", layout=scales.layout)
            return tile, ll.where(token < ll.full(self.high, "int32", layout=scales.layout), scales, 1.0)
        if self.spec.kind.vector:
            return values  # entries are finite, and weights 0
        held = self.values.tokens
        group = ll.iota(0, layout=held, dtype="int32") * GROUP
        token = group + ll.iota(1, layout=held, dtype="int32") + ll.full(start, "int32", layout=held)
        is_token = token < ll.full(self.high, "int32", layout=held)
        if self.least is not None:
            is_token = is_token & (token >= ll.full(self.least, "int32", layout=held))
        return ll.where(is_token, tile, 0.0), None

    def logarithms(self, scales: ll.Tile | None) -> Any:
        """Of what a weight is multiplied by, to the base of 2: of scales; a number of values in f16 beside codes, whose
        unit all values have; None for nothing."""
        if scales is not None:
            return ll.log2(ll.maximum(ll.cast(scales, "f32"), _LEAST_SCALE))
        unit = value_unit(self.block.spec.kind)
        return -math.log2(unit) if self.recent and unit != 1 else None

    def with_values(self, accumulators: ll.Tile, values: ll.Tile, weights: ll.Tile) -> ll.Tile:
        """The accumulators [warps, channels, columns] with a tile's values added, by their weights in f32."""
        spec, scores, results = self.spec, self.block.scores, self.block.results
        operand = values_as_operand(spec, self.values, values, self.books)
        weights = ll.view(weights, dtype="f32", layout=scores.scores)
        slices = ll.view(accumulators, dtype="f32", layout=results.slices)
        rounded = ll.cast(weights, spec.kind.compute)
        slices = scores.sums(operand, rounded, slices)
        if spec.kind.compute == "bf16":
            # What 8 bits leave of a weight is as large as the error that attention may have.
            rest = ll.cast(weights - ll.cast(rounded, "f32"), "bf16")
            slices = scores.sums(operand, rest, slices)
        return ll.view(slices, dtype="f32", layout=results.by_warp)
