"""How the threads of a block hold keys, values, scores and accumulators.

Scores are S = K Q^T: tokens are rows of operand A, queries are columns. Each warp has tokens of its own. A thread loads
neighbouring channels of a token, and the registers are operand A as they are: the order of channels in a product is
free, as long as queries have the same one.

    channels of a row, of 4 threads with 8 f16 each     0 1 2 3 4 5 6 7 | 8 ..       | 16 ..      | 24 ..
    columns of A that they count as                     0 1 8 9 16 17 24 25 | 2 3 10 .. | 4 5 12 .. | 6 7 14 ..

Results are O^T = V^T P, of V^T as operand A: tokens are columns of A, of which two neighbours lie in a register. A
thread has neighbouring channels of 4 of 16 tokens, 2t, 2t + 1, 2t + 8 and 2t + 9. Codes are stored by pairs of tokens;
values of 16 bits by tokens, and a thread pairs them. The accumulators then hold neighbouring channels too.

Scores come with tokens along rows of lanes and queries within them, and are needed the other way around: 8 x 8 of them
are transposed by two conversions, of which the first pairs tokens and the second moves the pairs.

Where more than 8 columns are needed, queries are operand A instead: S^T = Q K^T and O = P V. Keys and values are held
as before, and are operand B. Weights are operand A as they come, and an entry of a codebook is an operand B without a
move. Scores, weights and results have the same dimensions both ways.
"""

from __future__ import annotations

import math

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, column_local, column_spatial, local, reduce, spatial

from .spec import GROUP, AttentionSchedule, AttentionSpec, CacheType
from .stagger import KEY_LANES, VALUE_LANES, near

_SLACK = 8.0
"""The exponent of 2 that a weight may reach before the reference score is raised: f16 holds weights up to 2^8 as
exactly as those up to 1. Only with queries as rows, where a warp has twice as many accumulators to scale down; with 8
columns the branch makes `int4` spill."""


def lane_elements(head_dim: int, lanes: int, kind: CacheType) -> int:
    """How many neighbouring channels a lane of so many loads at once: up to 16 bytes."""
    bits = kind.bits
    if kind.is_staggered(head_dim):
        return near(kind, head_dim, lanes) * kind.vector
    least = kind.vector or (2 if bits == 16 else 32 // bits if lanes == 4 else 16 // bits)
    sizes = [128 // bits >> shift for shift in range(5)]
    return next(size for size in sizes if size >= least and head_dim % (lanes * size) == 0)


class KeyLayouts:
    """How keys are held. Dimensions are [groups of 16 tokens, 16, channels] unless said otherwise.

    loaded    words of codes, or keys of 16 bits; of codebooks codes, [.., codes of a row]
    slots     codes of codebooks in the order of channels
    expanded  words by the codes in half of one, [.., words, codes]
    fragment  [tokens, channels] of operand A
    queries   [columns, channels] as they lie in memory, by all warps alike; and
    vectors   [columns * groups of channels, channels of a group], and
    channels  [columns * channels, 1], the same registers
    halves    the same as [columns, words, 2, codes], and
    paired    with the two halves of a word side by side
    columns   [columns, channels] of operand B, transposed; or of operand A, where queries are rows
    groups, rows   numbers of groups of tokens, for each that is loaded
    """

    def __init__(self, spec: AttentionSpec, schedule: AttentionSchedule, columns: int) -> None:
        warps, bits, vector = schedule.warps, spec.kind.operand_bits, spec.kind.vector
        elements = lane_elements(spec.head_dim, KEY_LANES, spec.kind)
        parts = spec.head_dim // (KEY_LANES * elements)
        groups, eights, tiles = schedule.tokens // GROUP, schedule.tokens // 8, columns // 8
        words = elements if bits == 16 else elements * bits // 32
        codes = 1 if bits == 16 else 16 // bits
        loaded = words // (vector or 1)
        self.slots = spatial(warps, 1, 1) * local(groups, 2, parts) * spatial(1, 8, 4) * local(1, 1, loaded)
        self.loaded = self.slots
        if spec.kind.is_staggered(spec.head_dim):
            self.loaded = spatial(warps, 1, 1) * local(groups, 2, 1) * spatial(1, 8, 4) * local(1, 1, parts * loaded)
        self.expanded = self.loaded.unsqueeze(3) * local(1, 1, 1, codes)
        pairs = local(1, elements // 2)
        self.fragment = spatial(warps, 1) * local(eights, parts) * pairs * spatial(8, 4) * local(1, 2)
        of_all = reduce(spatial(1, 1, warps), dims=[2])
        self.queries = of_all * local(tiles, parts) * spatial(8, 4) * local(1, elements)
        in_channels = spatial(8, 1) * local(parts, 1) * spatial(4, 1) * local(elements, 1)
        self.channels = of_all * local(tiles, 1) * in_channels
        if vector:
            in_vectors = spatial(8, 1) * local(parts, 1) * spatial(4, 1) * local(elements // vector, vector)
            self.vectors = of_all * local(tiles, 1) * in_vectors
        in_words = reduce(spatial(1, 1, 1, 1, warps), dims=[4]) * local(tiles, parts, 1, 1) * spatial(8, 4, 1, 1)
        in_words = in_words * local(1, words, 1, 1)
        self.halves = in_words * local(1, 1, 2, codes)
        self.paired = in_words * column_local(1, 1, 2, codes)
        self.columns = of_all * local(tiles, parts) * pairs * spatial(8, 4) * local(1, 2)
        self.groups = self.loaded.reduce([1, 2])
        self.rows = self.loaded.reduce([1, 2], keep_dims=True)


class ValueLayouts:
    """How values are held, such that results have the channels that they have for a cache of type `of_results`.
    Dimensions as for `KeyLayouts`.

    loaded    values of 16 bits, [groups, 16, channels], or their codes, of codebooks, [groups, 16, codes of a row], and
    paired    values with those of two tokens side by side; or codes as they are stored: words of 16 bits of each of two
              tokens, [groups, 8, words]
    expanded  words by the codes in half of one
    fragment  [tokens, channels] of operand A, transposed
    tokens    numbers of tokens, [groups, 16, 1], for values of 16 bits
    """

    def __init__(self, spec: AttentionSpec, schedule: AttentionSchedule, of_results: CacheType) -> None:
        warps, bits = schedule.warps, spec.kind.operand_bits
        elements = lane_elements(spec.head_dim, VALUE_LANES, of_results)
        parts, words, codes = spec.head_dim // (VALUE_LANES * elements), elements * bits // 16, 16 // bits
        in_warp = local(schedule.tokens // GROUP, 2, parts) * column_spatial(1, 4, 8)
        of_warps = spatial(warps, 1, 1) * in_warp
        loaded = words // (spec.kind.vector or 1)
        self.loaded = of_warps * (local(1, 1, words) if spec.kind.is_coded else local(1, 2, loaded))
        self.paired = of_warps * column_local(1, 2, words)
        self.expanded = self.loaded.unsqueeze(3) * local(1, 1, 1, codes)
        lanes = column_spatial(4, 8) * local(2, 1)
        self.fragment = spatial(warps, 1) * local(schedule.tokens // 8, parts) * local(1, elements) * lanes
        self.tokens = self.loaded.reduce([2], keep_dims=True)


class ScoreLayouts:
    """How scores and what is made of them are held.

    scores     [tokens, columns] of the accumulators of the first product, and
    grouped    as [groups of 16 tokens, 16, columns],
    by_warp    as [warps, tokens, columns],
    by_lane    as [warps, tokens of a lane, lanes, columns]
    and where tokens are rows
    split      as [tokens, columns / 2, 2], and
    together   with two neighbouring tokens side by side; as words of both
    pairs      [tokens / 2, columns / 2, 2], and
    moved      where the second product needs them:
    weights    [tokens, columns] of operand B of the second product
    """

    def __init__(self, spec: AttentionSpec, schedule: AttentionSchedule) -> None:
        self.queries_are_rows = spec.queries_are_rows
        warps, eights, tiles = schedule.warps, schedule.tokens // 8, spec.columns // 8
        if self.queries_are_rows:
            self._hold_by_queries(warps, eights, tiles)
        else:
            self._hold_by_tokens(warps, eights, tiles)
        self.column = self.by_warp.reduce([1], keep_dims=True)
        self.lane_column = self.by_lane.reduce([1], keep_dims=True)

    def _hold_by_tokens(self, warps: int, eights: int, tiles: int) -> None:
        self.scores = spatial(warps, 1) * local(eights, tiles) * spatial(8, 4) * local(1, 2)
        in_groups = local(eights // 2, 2, tiles)
        self.grouped = spatial(warps, 1, 1) * in_groups * spatial(1, 8, 4) * local(1, 1, 2)
        self.by_warp = spatial(warps, 1, 1) * local(1, eights, tiles) * spatial(1, 8, 4) * local(1, 1, 2)
        in_eights = local(1, eights, 1, tiles) * spatial(1, 1, 8, 4) * local(1, 1, 1, 2)
        self.by_lane = spatial(warps, 1, 1, 1) * in_eights
        of_tiles = spatial(warps, 1, 1) * local(eights, tiles, 1)
        self.split = of_tiles * spatial(8, 4, 1) * local(1, 1, 2)
        self.pairs = of_tiles * spatial(4, 1, 1) * column_spatial(1, 4, 2)
        self.together = self.pairs * local(2, 1, 1)
        self.moved = of_tiles * spatial(1, 4, 2) * spatial(4, 1, 1)
        self.weights = spatial(warps, 1) * local(eights, tiles) * column_spatial(4, 8) * local(2, 1)

    def _hold_by_queries(self, warps: int, eights: int, tiles: int) -> None:
        of_queries = spatial(1, warps) * local(tiles, eights) * spatial(8, 4) * local(1, 2)
        self.scores = of_queries.permute(1, 0)
        grouped = spatial(1, warps, 1) * local(tiles, eights // 2, 2) * spatial(8, 1, 4) * local(1, 1, 2)
        self.grouped = grouped.permute(1, 2, 0)
        by_warp = spatial(warps, 1, 1) * local(1, tiles, eights) * spatial(1, 8, 4) * local(1, 1, 2)
        self.by_warp = by_warp.permute(0, 2, 1)
        by_lane = spatial(warps, 1, 1, 1) * local(1, tiles, eights, 1) * spatial(1, 8, 1, 4) * local(1, 1, 2, 1)
        self.by_lane = by_lane.permute(0, 2, 3, 1)

    def product(self, keys: ll.Tile, queries: ll.Tile, first: ll.Tile) -> ll.Tile:
        """K Q^T + first [tokens, columns], of keys [tokens, channels] and queries [channels, columns]."""
        if not self.queries_are_rows:
            return ll.dot(keys, queries, first)
        return ll.transpose(ll.dot(ll.transpose(queries), ll.transpose(keys), ll.transpose(first)))

    def grown(self, top: ll.Tile, scores: ll.Tile) -> ll.Tile:
        """The reference scores after others [warps, tokens, columns]: the largest so far, or with queries as rows up to
        `_SLACK` below it."""
        highest = ll.max(scores, 1, keep_dims=True)
        return ll.where(highest > top + _SLACK, highest, top) if self.queries_are_rows else ll.maximum(top, highest)

    def rescaled(self, accumulators: ll.Tile, factors: ll.Tile) -> ll.Tile:
        """Accumulators by what brings them to other reference scores."""
        return ll.rescale(accumulators, factors) if self.queries_are_rows else accumulators * factors

    def sums(self, values: ll.Tile, weights: ll.Tile, slices: ll.Tile) -> ll.Tile:
        """`ResultLayouts.slices` with V^T P added, of values [channels, tokens] and weights [tokens, columns] of 16
        bits as scores are held."""
        if self.queries_are_rows:
            return ll.dot(ll.transpose(weights), ll.transpose(values), slices)
        return ll.dot(values, self._as_operand(weights), slices)

    def _as_operand(self, weights: ll.Tile) -> ll.Tile:
        """Weights as operand B of O^T = V^T P."""
        element = weights.dtype.name
        pairs = ll.convert_layout(ll.view(weights, dtype=element, layout=self.split), self.together)
        moved = ll.convert_layout(ll.view(pairs, dtype="uint32", layout=self.pairs), self.moved)
        return ll.view(moved, dtype=element, layout=self.weights)


class ResultLayouts:
    """How results are held.

    slices     [warps x channels, columns] of the accumulators of the second product, channels in their order there,
    by_warp    as [warps, channels, columns], and
    natural    the same registers with channels in the order of memory
    kept       columns of results, those that are there and few more
    result     [kept, channels] by all threads, and
    channels   [kept * channels, 1], the same registers
    column     [kept, 1], one number for each column of it
    gathered, gathered_column   [warps, ...] of these, with what all warps have of an element in one thread
    """

    def __init__(self, spec: AttentionSpec, schedule: AttentionSchedule) -> None:
        warps, tiles, dim = schedule.warps, spec.columns // 8, spec.head_dim
        elements = lane_elements(dim, 8, spec.kind)
        parts = dim // (8 * elements)
        if spec.queries_are_rows:
            self.slices = spatial(warps, 1) * local(tiles, dim // 8) * spatial(8, 4) * local(1, 2)
            by_warp = spatial(warps, 1, 1) * local(1, tiles, dim // 8) * spatial(1, 8, 4) * local(1, 1, 2)
            in_parts = local(1, tiles, parts, 1, elements) * spatial(1, 8, 1, 4, 1) * local(1, 1, 1, 2, 1)
            natural = (spatial(warps, 1, 1, 1, 1) * in_parts).reshape(warps, spec.columns, dim)
            self.by_warp, self.natural = (held.permute(0, 2, 1) for held in (by_warp, natural))
        else:
            self.slices = spatial(warps, 1) * local(dim // 8, tiles) * spatial(8, 4) * local(1, 2)
            self.by_warp = spatial(warps, 1, 1) * local(1, dim // 8, tiles) * spatial(1, 8, 4) * local(1, 1, 2)
            in_part = spatial(1, 8, 1) * local(1, elements, tiles) * spatial(1, 1, 4) * local(1, 1, 2)
            self.natural = spatial(warps, 1, 1) * local(1, parts, 1) * in_part
        # A query of several classes has one result.
        queries, together = spec.columns // spec.classes, 1
        if spec.classes > 1:
            together = elements
        rows = min(math.gcd(8, queries), 1 << (spec.used - 1).bit_length())
        self.kept = -(-min(spec.used, queries) // rows) * rows
        lanes = 32 * warps // rows
        across = math.gcd(dim // together, lanes)
        of_all = reduce(spatial(rows, across, lanes // across), dims=[2])
        self.result: Layout = local(self.kept // rows, 1) * of_all * local(1, dim // across)
        of_block = reduce(spatial(rows * across, 1, lanes // across), dims=[2])
        self.channels = local(self.kept // rows, 1) * of_block * local(dim // across, 1)
        self.column = self.result.reduce([1], keep_dims=True)
        sums = self.result
        if spec.classes > 1:
            self.by_class = ClassLayouts(spec, schedule, rows, self.kept)
            sums = self.by_class.sums
        self.gathered = local(warps, 1, 1) * sums.unsqueeze(0)
        self.gathered_column = local(warps, 1, 1) * sums.reduce([1], keep_dims=True).unsqueeze(0)


class ClassLayouts:
    """How results are held whose queries have several columns each, one for each class of tokens.

    sums     [columns of queries that are kept, channels], the sums over the warps, and
    columns  the same registers as [queries, classes, groups / neighbours, neighbours, channels of a group], and
    numbers  a number of each column, [queries, classes]
    piece    channels of every so-manieth group of a result, [queries, groups / neighbours, channels of a group]; the
             thread has the others, too
    number   a number of each query, [queries, 1]
    joined   all channels, [queries, groups / neighbours, neighbours, channels of a group]
    near     neighbouring groups
    """

    def __init__(self, spec: AttentionSpec, schedule: AttentionSchedule, rows: int, kept: int) -> None:
        vector, classes, threads = spec.kind.vector, spec.classes, 32 * schedule.warps
        self.near = near(spec.kind, spec.head_dim, VALUE_LANES)
        groups = spec.head_dim // vector
        used = kept * classes
        of_sums = min(math.gcd(8, spec.columns), 1 << (used - 1).bit_length())
        across = math.gcd(groups, threads // of_sums)
        times, held, spare = -(-used // of_sums), groups // across, threads // of_sums // across
        sums = local(times, held, 1) * spatial(of_sums, across, spare) * local(1, vector, 1)
        self.sums = reduce(sums, dims=[2])
        in_lanes = spatial(of_sums // classes, classes, across // self.near, self.near, 1, spare)
        columns = local(times, 1, held, 1, 1, 1) * in_lanes * local(1, 1, 1, 1, vector, 1)
        self.columns = reduce(columns, dims=[5])
        self.numbers = self.columns.reduce([2, 3, 4])
        groups //= self.near
        across = math.gcd(groups, threads // rows)
        held, spare = groups // across, threads // rows // across
        lanes = local(kept // rows, 1, 1, 1, 1) * spatial(rows, across, 1, 1, spare)
        self.joined = reduce(lanes * local(1, held, self.near, vector, 1), [4])
        self.piece = reduce(lanes * local(1, held, 1, vector, 1), [4]).reduce([2])
        self.number = self.piece.reduce([2]).reduce([1], keep_dims=True)
