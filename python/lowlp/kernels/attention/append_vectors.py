"""New keys and values as codes of codebooks, put into a paged cache where slots say.

A block has a token's key or value of one head. A warp takes a few groups of channels at a time, its lanes the entries
of their books: each has the distances sum (x - c)^2 of its own in f32, and the least of all lanes, of equal ones the
one of the lowest index, is the code. Differences come before squares, so that roundings are relative to the distance: a
code is not that of `KVCodebooks.encode`, which computes in float64, only where two distances agree to 1e-6.
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import small
from lowlp.layouts.register_layout import local, spatial

from .append_spec import AppendSpec, slot_of
from .spec import ENTRIES

_WARPS = 8
"""Of a block; every number of groups is a multiple of 2 or 3 times as many."""
_LANES = 32


def threads_of_vectors() -> int:
    """Threads of a block."""
    return _WARPS * _LANES


def grid_of_vectors(spec: AppendSpec) -> Any:
    """The grid: tokens by keys and values of heads."""
    parts = 2 * spec.kv_heads
    return lambda tokens: (tokens, parts)


class VectorBlock:
    """What a block does, as it is traced."""

    def __init__(self, spec: AppendSpec, operands: dict[str, Any]) -> None:
        self.spec, self.operands = spec, operands
        self.token, part = ll.block_indices()
        part = small(part)
        self.head, self.is_value = part // 2, part % 2
        self.groups = spec.head_dim // spec.kind.vector
        of_warp = next(count for count in (4, 3, 2) if self.groups % (_WARPS * count) == 0)
        self.at_once = _WARPS * of_warp
        of_entries = spatial(1, _LANES, 1) * local(1, ENTRIES // _LANES, spec.kind.vector)
        self.entries = spatial(_WARPS, 1, 1) * local(of_warp, 1, 1) * of_entries
        # The same registers, as they lie in memory.
        values = ENTRIES // _LANES * spec.kind.vector
        self.loaded = spatial(_WARPS, 1) * local(of_warp, 1) * spatial(1, _LANES) * local(1, values)
        self.held = self.entries.reduce([1])
        self.distances = self.entries.reduce([2])

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """Puts the token into the cache, unless its slot is negative."""
        spec, operands = self.spec, self.operands
        slot = slot_of(spec, operands, "slots", self.token, operands["pages"] * spec.page)
        recent = slot
        if spec.recent:
            recent = slot_of(spec, operands, "recent_slots", self.token, operands["recent_pages"] * spec.page)
        if slot >= 0:
            if self.is_value == 0:
                self.store("k", "keys", slot, recent)
            else:
                self.store("v", "values", slot, recent)

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
    def store(self, source, name, slot, recent):  # type: ignore[no-untyped-def]
        """Codes of the token's key or value, and in f16 what of it is kept so."""
        spec, operands, vector = self.spec, self.operands, self.spec.kind.vector
        strides = [operands[f"{source}_stride"], spec.head_dim, vector, 1]
        shape = [operands["tokens"], spec.kv_heads, self.groups, vector]
        rows = ll.view_global(operands[source], shape=shape, strides=strides)
        codes, row = self.rows_of(name, "pages", self.groups), self.row(slot)
        for chunk in ll.range(self.groups // self.at_once):
            first = chunk * self.at_once
            x = ll.load_global(rows, offsets=[self.token, self.head, first, 0], layout=self.held, in_bounds=True)
            ll.store_global(self.nearest(x, name, first), codes, offsets=[row, first])
            if spec.recent:
                self.store_recent(x, name, recent, first)

    @ll.inline
    def store_recent(self, x, name, slot, first):  # type: ignore[no-untyped-def]
        """Vectors in f16, of which the first is of group `first`, unless that slot is negative."""
        if slot >= 0:
            kept = self.rows_of(f"recent_{name}", "recent_pages", self.groups, self.spec.kind.vector)
            ll.store_global(ll.cast(x, "f16"), kept, offsets=[self.row(slot), first, 0])

    def nearest(self, x: ll.Tile, name: str, first: Any) -> ll.Tile:
        """The codes [groups] of vectors [groups, values], of which the first is of group `first`."""
        shape = [self.spec.kv_heads, 2, self.groups, ENTRIES * self.spec.kind.vector]
        books = ll.view_global(self.operands["books"], shape=shape)
        offsets = [self.head, 0 if name == "keys" else 1, first, 0]
        loaded = ll.load_global(books, offsets=offsets, layout=self.loaded, in_bounds=True)
        entries = ll.cast(ll.view(loaded, dtype="f16", layout=self.entries), "f32")
        exact = ll.view(ll.cast(x, "f32"), dtype="f32", layout=self.entries.reduce([1], keep_dims=True))
        apart = exact - entries
        distances = ll.sum(apart * apart, 2)
        is_least = ll.equal(distances, ll.min(distances, 1, keep_dims=True))
        number = ll.iota(1, layout=self.distances, dtype="f32")
        found = ll.min(ll.where(is_least, number, float(ENTRIES - 1)), 1)
        return ll.cast(ll.cast(found, "int32"), "uint8")
