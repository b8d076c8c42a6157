"""New keys and values as codes of codebooks, put into a paged cache where slots say.

A block has some neighbouring groups of channels of a head's keys or values. It takes their books into registers once,
and then every so-manieth token. A warp has a few of the groups, its lanes the entries of their books: each has the
distances sum (x - c)^2 of its own in f32, and the least of all lanes, of equal ones the one of the lowest index, is the
code. Differences come before squares, so that roundings are relative to the distance: a code is not that of
`KVCodebooks.encode`, which computes in float64, only where two distances agree to 1e-6. Which block has a token does
not count, so one token at a time gives the codes that all at once do.
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import small
from lowlp.layouts.register_layout import local, reduce, spatial

from .append_spec import AppendSpec, slot_of
from .spec import ENTRIES
from .stagger import class_of, places_of

_WARPS = 8
"""Of a block; every number of groups is a multiple of 2 or 3 times as many."""
_LANES = 32
_BLOCKS_PER_SM = 2
"""That run at once: books take 64 registers of a thread, all else about as many."""


def threads_of_vectors() -> int:
    """Threads of a block."""
    return _WARPS * _LANES


def groups_at_once(spec: AppendSpec) -> int:
    """The groups of channels that a block has."""
    groups = spec.head_dim // spec.kind.vector
    return _WARPS * next(count for count in (4, 3, 2) if groups % (_WARPS * count) == 0)


def parts_of_vectors(spec: AppendSpec) -> int:
    """Among how many blocks a token's keys and values are divided."""
    return 2 * spec.kv_heads * (spec.head_dim // spec.kind.vector // groups_at_once(spec))


def grid_of_vectors(spec: AppendSpec) -> Any:
    """The grid: blocks that take tokens in turn, by groups of keys and values of heads."""
    parts = parts_of_vectors(spec)
    return lambda takers: (takers, parts)


def takers_of_vectors(spec: AppendSpec, tokens: int, multiprocessors: int) -> int:
    """How many blocks take the tokens of a part: as many as run at once, but one for each token at most."""
    return max(1, min(tokens, -(-_BLOCKS_PER_SM * multiprocessors // parts_of_vectors(spec))))


class VectorBlock:
    """What a block does, as it is traced."""

    def __init__(self, spec: AppendSpec, operands: dict[str, Any]) -> None:
        self.spec, self.operands = spec, operands
        self.taker, part = ll.block_indices()
        part = small(part)
        self.groups, at_once = spec.head_dim // spec.kind.vector, groups_at_once(spec)
        chunks = self.groups // at_once
        self.head, self.is_value, self.first = part // (2 * chunks), part // chunks % 2, part % chunks * at_once
        of_entries = spatial(1, _LANES, 1) * local(1, ENTRIES // _LANES, spec.kind.vector)
        self.entries = spatial(_WARPS, 1, 1) * local(at_once // _WARPS, 1, 1) * of_entries
        # The same registers, as they lie in memory.
        values = ENTRIES // _LANES * spec.kind.vector
        self.loaded = spatial(_WARPS, 1) * local(at_once // _WARPS, 1) * spatial(1, _LANES) * local(1, values)
        self.held = self.entries.reduce([1])
        of_all = reduce(spatial(_WARPS, 1, _LANES), dims=[2])
        self.channels = of_all * local(at_once // _WARPS, 1) * local(spec.kind.vector, 1)
        self.distances = self.entries.reduce([2])

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
        spec, operands = self.spec, self.operands
        books = self.books_of(name)
        for token in ll.range(self.taker, operands["tokens"], operands["takers"]):
            slot = slot_of(spec, operands, "slots", token, operands["pages"] * spec.page)
            recent = slot
            if spec.recent:
                recent = slot_of(spec, operands, "recent_slots", token, operands["recent_pages"] * spec.page)
            if slot >= 0:
                self.store(source, name, token, books, slot, recent)

    def load_ordered(self, source: str, token: Any) -> ll.Tile:
        """Vectors [groups, channels] of the block's groups, whose channels `order` names."""
        spec, operands = self.spec, self.operands
        order = ll.view_global(operands["order"], shape=[spec.head_dim, 1])
        first = self.first * spec.kind.vector
        channels = ll.load_global(order, offsets=[first, 0], layout=self.channels, in_bounds=True)
        strides = [operands[f"{source}_stride"], spec.head_dim, 1, 1]
        rows = ll.view_global(
            operands[source], shape=[operands["tokens"], spec.kv_heads, spec.head_dim, 1], strides=strides
        )
        x = ll.gather_global(
            rows, channels, dim=0, offsets=[token, self.head, 0, 0], layout=self.channels, in_bounds=True
        )
        return ll.view(x, dtype=x.dtype.name, layout=self.held)

    def books_of(self, name: str) -> ll.Tile:
        """The entries of the block's groups in f32, [groups, entries, channels]."""
        shape = [self.spec.kv_heads, 2, self.groups, ENTRIES * self.spec.kind.vector]
        books = ll.view_global(self.operands["books"], shape=shape)
        offsets = [self.head, 0 if name == "keys" else 1, self.first, 0]
        loaded = ll.load_global(books, offsets=offsets, layout=self.loaded, in_bounds=True)
        return ll.cast(ll.view(loaded, dtype=loaded.dtype.name, layout=self.entries), "f32")

    def row(self, slot: Any) -> Any:
        """The row of the cache that the head has of a slot."""
        page, heads = self.spec.page, self.spec.kv_heads
        number = ll.assume_range(slot, 0, 1 << 31)
        return number // page * (heads * page) + self.head * page + number % page

    def rows_of(self, name: str, pages: str, *row: int) -> Any:
        """The memory of an array of the cache, in rows."""
        count = self.operands[pages] * (self.spec.kv_heads * self.spec.page)
        return ll.view_global(self.operands[name], shape=[count, *row])

    @ll.inline
    def store(self, source, name, token, books, slot, recent):  # type: ignore[no-untyped-def]
        """Codes of a token's key or value, and in f16 what of it is kept so."""
        spec, operands, vector = self.spec, self.operands, self.spec.kind.vector
        if spec.ordered:
            x = self.load_ordered(source, token)
        else:
            strides = [operands[f"{source}_stride"], spec.head_dim, vector, 1]
            shape = [operands["tokens"], spec.kv_heads, self.groups, vector]
            rows = ll.view_global(operands[source], shape=shape, strides=strides)
            x = ll.load_global(rows, offsets=[token, self.head, self.first, 0], layout=self.held, in_bounds=True)
        codes, kept = self.nearest(x, books), self.rows_of(name, "pages", self.groups)
        if spec.kind.is_staggered(spec.head_dim):
            number = ll.iota(0, layout=codes.layout, dtype="int32")
            group = number + ll.full(self.first, "int32", layout=codes.layout)
            token_class = class_of(ll.full(small(ll.assume_range(slot, 0, 1 << 31)), "int32", layout=codes.layout))
            place = places_of(spec.kind, spec.head_dim, name == "values", group, token_class)
            by_row = ll.view(codes, dtype="uint8", layout=codes.layout.unsqueeze(0))
            place = ll.view(place, dtype="int32", layout=by_row.layout)
            ll.scatter_global(by_row, kept, place, dim=1, offsets=[self.row(slot), 0])
        else:
            ll.store_global(codes, kept, offsets=[self.row(slot), self.first])
        if spec.recent:
            self.store_recent(x, name, recent)

    @ll.inline
    def store_recent(self, x, name, slot):  # type: ignore[no-untyped-def]
        """Vectors in f16, unless that slot is negative."""
        if slot >= 0:
            kept = self.rows_of(f"recent_{name}", "recent_pages", self.groups, self.spec.kind.vector)
            ll.store_global(ll.cast(x, self.spec.kind.compute), kept, offsets=[self.row(slot), self.first, 0])

    def nearest(self, x: ll.Tile, books: ll.Tile) -> ll.Tile:
        """The codes [groups] of vectors [groups, channels]."""
        exact = ll.view(ll.cast(x, "f32"), dtype="f32", layout=self.entries.reduce([1], keep_dims=True))
        apart = exact - books
        distances = ll.sum(apart * apart, 2)
        is_least = ll.equal(distances, ll.min(distances, 1, keep_dims=True))
        number = ll.iota(1, layout=self.distances, dtype="f32")
        found = ll.min(ll.where(is_least, number, float(ENTRIES - 1)), 1)
        return ll.cast(ll.cast(found, "int32"), "uint8")
