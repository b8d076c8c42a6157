"""New keys and values as codes of codebooks, put into a paged cache where slots say.

A block has some groups of channels of a head's keys or values, and takes batches of tokens in turn. Its threads have a
group and a slice of the entries of its book each, which they take into registers once:

    thread    slice * groups + group      lanes side by side read entries that lie side by side in lines of books
    slice     neighbouring entries; the least distance of a slice is found by its thread alone

Distances are sum (x - c)^2 in f32. The least of each slice goes through shared memory, once for all tokens of a batch.
Which entry it was is found in the nearest slice alone, whose distances a few lanes compute again; of equal ones the one
of the lowest index is the code. Differences come before squares, so that roundings are relative
to the distance: a code is not that of `KVCodebooks.encode`, which computes in float64, only where two distances agree
to 1e-6. Which block has a token, and beside which others, does not count, so one token at a time gives the codes that
all at once do.
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import small
from lowlp.layouts.register_layout import column_spatial, local, reduce, spatial

from .append_spec import AppendSpec, slot_of
from .spec import ENTRIES
from .stagger import books_view, class_of, places_of

_THREADS = 512
_GROUPS = (32, 16, 8)
"""Of a block, the most first; every number of groups is a multiple of 8."""
_LEAST_BLOCKS = 96
"""That a token's keys and values are divided among, so that most multiprocessors have one."""
_BLOCKS_PER_SM = 1
"""That run at once."""
_MOST_LANES = 4
"""Which share what the slices of a group have found."""


def threads_of_vectors() -> int:
    """Threads of a block."""
    return _THREADS


def groups_at_once(spec: AppendSpec) -> int:
    """The groups of channels that a block has."""
    groups = spec.head_dim // spec.kind.vector
    fitting = [count for count in _GROUPS if groups % count == 0]
    enough = [count for count in fitting if 2 * spec.kv_heads * (groups // count) >= _LEAST_BLOCKS]
    return (enough or fitting[-1:])[0]


def parts_of_vectors(spec: AppendSpec) -> int:
    """Among how many blocks a token's keys and values are divided."""
    return 2 * spec.kv_heads * (spec.head_dim // spec.kind.vector // groups_at_once(spec))


def tokens_at_once(spec: AppendSpec) -> int:
    """Tokens whose codes a block looks for together: more would be looked for in vain where there is one."""
    return 1 if spec.few_tokens else 8


def takers_of_vectors(spec: AppendSpec, tokens: int, multiprocessors: int) -> int:
    """How many blocks take the batches of tokens of a part: as many as run at once, but one for each at most."""
    batches = -(-tokens // tokens_at_once(spec))
    return max(1, min(batches, -(-_BLOCKS_PER_SM * multiprocessors // parts_of_vectors(spec))))


class VectorBlock:
    """What a block does, as it is traced."""

    def __init__(self, spec: AppendSpec, operands: dict[str, Any]) -> None:
        self.spec, self.operands = spec, operands
        self.taker, part = ll.block_indices()
        part = small(part)
        self.groups, at_once = spec.head_dim // spec.kind.vector, groups_at_once(spec)
        chunks = self.groups // at_once
        self.head, self.is_value, self.first = part // (2 * chunks), part // chunks % 2, part % chunks * at_once
        slices, vector, tokens = _THREADS // at_once, spec.kind.vector, tokens_at_once(spec)
        of_slice = ENTRIES // slices
        # [groups, entries, channels], and distances [groups, slices, entries of one].
        self.entries = column_spatial(at_once, slices, 1) * local(1, of_slice, vector)
        self.sliced = column_spatial(at_once, slices, 1) * local(1, 1, of_slice)
        self.held = self.entries.reduce([1])
        # Vectors of all tokens, [tokens, groups, channels], and the same registers as [tokens, channels].
        others = _THREADS // (tokens * at_once)
        self.loaded = reduce(spatial(others, tokens, at_once, 1), dims=[0]) * local(1, 1, vector)
        self.channels = reduce(spatial(others, tokens, at_once), dims=[0]) * local(1, vector)
        # What a few lanes have of each group of each token: least distances [tokens, slices, groups], and entries of a
        # slice [tokens, groups, entries, channels].
        lanes = min(_MOST_LANES, _THREADS // (tokens * at_once))
        spare = _THREADS // (tokens * at_once * lanes)
        of_group = spatial(spare, tokens, 1, 1) * spatial(1, 1, 1, at_once) * spatial(1, 1, lanes, 1)
        self.nearest = reduce(of_group * local(1, 1, slices // lanes, 1), dims=[0])
        of_entries = spatial(spare, tokens, at_once, lanes, 1) * local(1, 1, 1, of_slice // lanes, vector)
        self.of_nearest = reduce(of_entries, dims=[0])
        self.least = ll.alloc_shared("f32", [tokens, slices, at_once])
        self.vectors = ll.alloc_shared("f32", [tokens, at_once, vector])
        self.codes = ll.alloc_shared("uint8", [tokens, at_once])

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """Puts the block's tokens into the cache, but for those whose slot is negative."""
        if self.is_value == 0:
            self.store_all("k", "keys")
        else:
            self.store_all("v", "values")

    @ll.inline
    def store_all(self, source, name):  # type: ignore[no-untyped-def]
        """Codes of all tokens' keys or values, and in f16 what of it is kept so."""
        operands, at_once = self.operands, tokens_at_once(self.spec)
        books = self.books_of(name)
        for first in ll.range(self.taker * at_once, operands["tokens"], operands["takers"] * at_once):
            ll.store_shared(ll.cast(self.load(source, first), "f32"), self.vectors, offsets=[0, 0, 0], in_bounds=True)
            # Of tokens that are not there the last one is taken again.
            tokens = [small(ll.minimum(first + number, operands["tokens"] - 1)) for number in range(at_once)]
            slots = [self.slots_of(token) for token in tokens]
            ll.synchronize()
            for number in range(at_once):
                self.leave_least(number, books)
            ll.synchronize()
            self.leave_codes(name)
            ll.synchronize()
            for number in range(at_once):
                if first + number < operands["tokens"]:
                    self.store(name, number, *slots[number])
            ll.synchronize()

    def slots_of(self, token: Any) -> tuple[Any, Any]:
        """The slot of a token, and that of what is kept of it in f16."""
        spec, operands = self.spec, self.operands
        slot = slot_of(spec, operands, "slots", token, operands["pages"] * spec.page)
        if not spec.recent:
            return slot, slot
        return slot, slot_of(spec, operands, "recent_slots", token, operands["recent_pages"] * spec.page)

    def load(self, source: str, first: Any) -> ll.Tile:
        """Vectors [tokens, groups, channels] of the block's groups, of a batch of tokens; zeros where no token is."""
        spec, operands = self.spec, self.operands
        heads, tokens, groups, vector = spec.kv_heads, operands["tokens"], self.groups, spec.kind.vector
        strides = [spec.head_dim, operands[f"{source}_stride"], vector, 1]
        if not spec.ordered:
            rows = ll.view_global(operands[source], shape=[heads, tokens, groups, vector], strides=strides)
            return ll.load_global(rows, offsets=[self.head, first, self.first, 0], layout=self.loaded)
        order = ll.view_global(operands["order"], shape=[1, spec.head_dim])
        of_order = self.channels.reduce([0], keep_dims=True)
        channels = ll.load_global(order, offsets=[0, self.first * vector], layout=of_order, in_bounds=True)
        rows = ll.view_global(operands[source], shape=[heads, tokens, spec.head_dim], strides=[*strides[:2], 1])
        x = ll.gather_global(rows, channels, dim=1, offsets=[self.head, first, 0], layout=self.channels)
        return ll.view(x, dtype=x.dtype.name, layout=self.loaded)

    def books_of(self, name: str) -> ll.Tile:
        """The entries of the block's groups in f32, [groups, entries, channels]."""
        spec = self.spec
        books = books_view(spec.kind, spec.head_dim, spec.kv_heads, self.operands["books"])
        offsets = [self.head, 0 if name == "keys" else 1, self.first, 0, 0]
        return ll.cast(ll.load_global(books, offsets=offsets, layout=self.entries, in_bounds=True), "f32")

    def row(self, slot: Any) -> Any:
        """The row of the cache that the head has of a slot."""
        page, heads = self.spec.page, self.spec.kv_heads
        number = ll.assume_range(slot, 0, 1 << 31)
        return number // page * (heads * page) + self.head * page + number % page

    def rows_of(self, name: str, pages: str, *row: int) -> Any:
        """The memory of an array of the cache, in rows."""
        count = self.operands[pages] * (self.spec.kv_heads * self.spec.page)
        return ll.view_global(self.operands[name], shape=[count, *row])

    def vectors_of(self, number: int) -> ll.Tile:
        """Vectors [1, groups, channels] of a token of the batch, in f32."""
        held = self.held.unsqueeze(0)
        return ll.load_shared(self.vectors, offsets=[number, 0, 0], layout=held, in_bounds=True)

    def leave_least(self, number: int, books: ll.Tile) -> None:
        """Leaves how far the nearest entry of each slice is from vectors of a token."""
        x = ll.view(self.vectors_of(number), dtype="f32", layout=self.entries.reduce([1], keep_dims=True))
        apart = x - books
        distances = ll.view(ll.sum(apart * apart, 2), dtype="f32", layout=self.sliced)
        least = ll.transpose(ll.min(distances, 2))
        least = ll.view(least, dtype="f32", layout=least.layout.unsqueeze(0))
        ll.store_shared(least, self.least, offsets=[number, 0, 0], in_bounds=True)

    def leave_codes(self, name: str) -> None:
        """Leaves the codes of all tokens of a batch."""
        spec, held = self.spec, self.of_nearest
        tokens, of_slice = held.shape[0], held.shape[2]
        least = ll.load_shared(self.least, offsets=[0, 0, 0], layout=self.nearest, in_bounds=True)
        number = ll.iota(1, layout=self.nearest, dtype="f32")
        is_least = ll.equal(least, ll.min(least, 1, keep_dims=True))
        nearest = ll.cast(ll.min(ll.where(is_least, number, ENTRIES / of_slice - 1), 1), "int32") * of_slice
        of_slices = held.reduce([3]).reduce([2], keep_dims=True)
        first = ll.view(ll.convert_layout(nearest, of_slices.reduce([2])), dtype="int32", layout=of_slices)
        entry = first + ll.iota(2, layout=held.reduce([3]), dtype="int32")
        entry = ll.view(entry, dtype="int32", layout=held.reduce([3], keep_dims=True))
        books = books_view(spec.kind, spec.head_dim, spec.kv_heads, self.operands["books"], tokens)
        offsets = [self.head, 0 if name == "keys" else 1, 0, self.first, 0, 0]
        found = ll.gather_global(books, entry, dim=2, offsets=offsets, layout=held, in_bounds=True)
        x = ll.load_shared(self.vectors, offsets=[0, 0, 0], layout=held.reduce([2]), in_bounds=True)
        apart = ll.view(x, dtype="f32", layout=held.reduce([2], keep_dims=True)) - ll.cast(found, "f32")
        distances = ll.sum(apart * apart, 3)
        is_least = ll.equal(distances, ll.min(distances, 2, keep_dims=True))
        number = ll.iota(2, layout=distances.layout, dtype="f32")
        within = ll.min(ll.where(is_least, number, of_slice - 1.0), 2)
        codes = ll.view(first, dtype="int32", layout=within.layout) + ll.cast(within, "int32")
        ll.store_shared(ll.cast(codes, "uint8"), self.codes, offsets=[0, 0], in_bounds=True)

    @ll.inline
    def store(self, name, number, slot, recent):  # type: ignore[no-untyped-def]
        """Codes of a token's key or value, unless its slot is negative, and in f16 what of it is kept so."""
        if slot >= 0:
            self.store_codes(name, number, slot)
            if self.spec.recent:
                self.store_recent(name, number, recent)

    def store_codes(self, name: str, number: int, slot: Any) -> None:
        """Codes that were left of a token of the batch, in its slot."""
        spec, kept = self.spec, self.rows_of(name, "pages", self.groups)
        by_row = self.held.reduce([1]).unsqueeze(0)
        codes = ll.load_shared(self.codes, offsets=[number, 0], layout=by_row, in_bounds=True)
        if not spec.kind.is_staggered(spec.head_dim):
            ll.store_global(codes, kept, offsets=[self.row(slot), self.first])
            return
        group = ll.iota(1, layout=by_row, dtype="int32") + ll.full(self.first, "int32", layout=by_row)
        token_class = class_of(ll.full(small(ll.assume_range(slot, 0, 1 << 31)), "int32", layout=by_row))
        place = places_of(spec.kind, spec.head_dim, name == "values", group, token_class)
        ll.scatter_global(codes, kept, place, dim=1, offsets=[self.row(slot), 0])

    @ll.inline
    def store_recent(self, name, number, slot):  # type: ignore[no-untyped-def]
        """Vectors in f16, unless that slot is negative."""
        if slot >= 0:
            kept = self.rows_of(f"recent_{name}", "recent_pages", self.groups, self.spec.kind.vector)
            x = ll.cast(self.vectors_of(number), self.spec.kind.compute)
            ll.store_global(x, kept, offsets=[self.row(slot), self.first, 0])
