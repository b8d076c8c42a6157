"""New keys and values, quantised and put into a paged cache where slots say.

A block has a token, and eight of its heads of keys and the same of values; 8 or 16 threads have a row. Of a coded
cache a row's scale is its largest magnitude over the largest code, rounded to f16, and its codes are the row over that
scale, rounded to nearest, of two equally near ones to the even one; integers are stored counted from 0, as
code + 2**(bits - 1). So codes follow from their own row alone.
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.layouts.register_layout import local, spatial

from . import append_products, append_vectors
from .append_products import ProductBlock, finds_by_products
from .append_spec import AppendSpec, slot_of
from .append_vectors import VectorBlock
from .spec import CacheType

_HEADS = 8
_NO_ROW = -(2**30)
_FEW_TOKENS = 16
"""That each have a block of the grid, or eight have, of caches with codebooks."""


def stored_element(kind: CacheType) -> str:
    """What a cache is stored as."""
    if kind.vector:
        return "uint8"
    return "uint16" if kind.is_coded else kind.name


def _quantised(kind: CacheType, rows: ll.Tile) -> tuple[ll.Tile, ll.Tile]:
    """Codes of rows of f32, and the scale of each."""
    largest = ll.max(ll.abs(rows), 1, keep_dims=True)
    scales = ll.cast(largest / kind.largest, "f16")
    exact = ll.cast(scales, "f32")
    is_zero = ll.equal(exact, 0.0)
    quotients = ll.where(is_zero, 0.0, rows / ll.where(is_zero, 1.0, exact))
    codes = ll.clamp(quotients, -kind.largest, kind.largest)
    if not kind.has_offset:
        return ll.cast(codes, kind.name), scales
    return ll.cast(ll.cast(codes, "int32") + (1 << (kind.bits - 1)), f"uint{kind.bits}"), scales


class _Block:
    """What a block does, as it is traced."""

    def __init__(self, spec: AppendSpec, operands: dict[str, Any]) -> None:
        self.spec, self.operands = spec, operands
        self.token, heads_before = ll.block_indices()
        self.first_head = heads_before * _HEADS
        lanes = _lanes(spec)
        self.held = spatial(_HEADS, lanes) * local(1, spec.head_dim // lanes)
        self.row = self.held.reduce([1], keep_dims=True)

    def slot(self, name: str, room: Any) -> Any:
        """The token's slot, which is less than `room`."""
        return slot_of(self.spec, self.operands, name, self.token, room)

    def places(self, slot: Any) -> tuple[ll.Tile, Any]:
        """Rows of the cache for the heads of the block, and whether the token is an odd one of its page."""
        page, heads, row = self.spec.page, self.spec.kv_heads, self.row
        number = ll.assume_range(slot, 0, 1 << 31)
        start = number // page * (heads * page) + number % page
        head = ll.iota(0, layout=row, dtype="int32") + ll.full(self.first_head, "int32", layout=row)
        place = head * page + ll.full(start, "int32", layout=row)
        return ll.where(head < heads, place, ll.full(_NO_ROW, "int32", layout=row)), number % 2

    def load_rows(self, source: str) -> ll.Tile:
        """The token's rows of k or v for the heads of the block."""
        spec, operands = self.spec, self.operands
        shape = [operands["tokens"], spec.kv_heads, spec.head_dim]
        view = ll.view_global(operands[source], shape=shape, strides=[operands[f"{source}_stride"], spec.head_dim, 1])
        return ll.load_global(view, offsets=[self.token, self.first_head, 0], layout=self.held)

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """Puts the token into the cache, unless its slot is negative."""
        spec, operands = self.spec, self.operands
        slot = self.slot("slots", operands["pages"] * spec.page)
        if slot >= 0:
            keys, values = self.load_rows("k"), self.load_rows("v")
            place, odd = self.places(slot)
            self.store_rows("keys", keys, place, None)
            self.store_rows("values", values, place, odd)
            if spec.recent:
                self.store_recent(keys, values, self.slot("recent_slots", operands["recent_pages"] * spec.page))

    @ll.inline
    def store_recent(self, keys, values, slot):  # type: ignore[no-untyped-def]
        """The token's rows in f16, unless that slot is negative."""
        if slot >= 0:
            place, _ = self.places(slot)
            self.store(ll.cast(keys, "f16"), "recent_keys", "recent_pages", place)
            self.store(ll.cast(values, "f16"), "recent_values", "recent_pages", place)

    def store(self, rows: ll.Tile, name: str, pages: str, place: ll.Tile) -> None:
        """Rows that lie one after the other."""
        count = self.operands[pages] * (self.spec.kv_heads * self.spec.page)
        view = ll.view_global(self.operands[name], shape=[count, rows.shape[1]])
        ll.scatter_global(rows, view, place, dim=0, offsets=[0, 0])

    def store_rows(self, name: str, rows: ll.Tile, place: ll.Tile, odd: Any) -> None:
        """Rows as the cache stores them; `odd` is None where tokens lie one after the other."""
        spec, kind = self.spec, self.spec.kind
        if not kind.is_coded:
            self.store(ll.cast(rows, kind.name), name, "pages", place)
            return
        codes, scales = _quantised(kind, ll.cast(rows, "f32"))
        self.store(scales, f"{name[:-1]}_scales", "pages", place)
        units, lanes = spec.head_dim * kind.bits // 16, _lanes(spec)
        codes = ll.view(codes, dtype="uint16", layout=spatial(_HEADS, lanes) * local(1, units // lanes))
        if odd is None:
            self.store(codes, name, "pages", place)
            return
        # Units of two neighbouring tokens take turns.
        pairs = self.operands["pages"] * (spec.kv_heads * spec.page // 2)
        view = ll.view_global(self.operands[name], shape=[2, pairs, units], strides=[1, 2 * units, 2])
        ll.scatter_global(codes, view, place >> 1, dim=0, offsets=[odd, 0, 0])


def _lanes(spec: AppendSpec) -> int:
    """Threads that share a row: of codes each has whole units of 16 bits."""
    return 8 if spec.head_dim % 64 else 16


def append_kernel(spec: AppendSpec) -> ll.Kernel:
    """The block program.

    Parameters: k, v [tokens, kv_heads, head_dim], tokens `k_stride` and `v_stride` elements apart; slots [tokens], each
    page * number of the page + place in it, negative ones for tokens to leave out; keys, values, key_scales and
    value_scales of the cache as for `attention_kernel`, by 16 bits where it has scales; numbers tokens, pages. With
    codebooks books as for `attention_kernel`, keys and values by bytes, [pages, kv_heads, page, codes], and the number
    `takers` of blocks that take tokens in turn. With
    tokens in f16 also recent_slots [tokens], recent_keys and recent_values [recent_pages, kv_heads, page, head_dim].
    """
    kind, align = spec.kind, 16 if spec.aligned else None
    parameters = {name: ll.pointer(spec.source, align=align) for name in ("k", "v")}
    parameters["slots"] = ll.pointer("int32")
    parameters |= {name: ll.pointer(stored_element(kind), align=16) for name in ("keys", "values")}
    if kind.vector:
        parameters["books"] = ll.pointer(kind.compute, align=16)
    if spec.ordered:
        parameters["order"] = ll.pointer("int32", align=16)
    if kind.is_coded:
        parameters |= {name: ll.pointer("f16", align=16) for name in ("key_scales", "value_scales")}
    if spec.recent:
        parameters["recent_slots"] = ll.pointer("int32")
        parameters |= {name: ll.pointer(kind.compute, align=16) for name in ("recent_keys", "recent_values")}
        parameters["recent_pages"] = ll.i32
    strides = dict.fromkeys(("k_stride", "v_stride"), ll.integer(64, divisible_by=8 if spec.aligned else None))
    if kind.vector:
        strides["takers"] = ll.i32
    blocks, threads, parts, resident = -(-spec.kv_heads // _HEADS), _HEADS * _lanes(spec), 0, 0
    if finds_by_products(spec):
        threads, parts = append_products.threads_of_products(spec), append_products.parts_of_products(spec)
        resident = append_products.resident_blocks(spec)
    elif kind.vector:
        threads, parts = append_vectors.threads_of_vectors(), append_vectors.parts_of_vectors(spec)

    of_vectors: type[ProductBlock] | type[VectorBlock] = ProductBlock if finds_by_products(spec) else VectorBlock
    block = of_vectors if kind.vector else _Block

    def trace(**operands: Any) -> None:
        block(spec, operands).run()

    return ll.make_kernel(
        trace,
        name=f"append_{spec.cache.replace('-', '')}",
        parameters=parameters | {"tokens": ll.i32, "pages": ll.i32} | strides,
        grid=(lambda takers: (takers, parts)) if kind.vector else lambda tokens: (tokens, blocks),
        num_threads=threads,
        schedule=ll.KernelSchedule(blocks_per_sm=resident),
    )


def has_few_tokens(source: str, books: str, tokens: int) -> bool:
    """Whether a kernel for few tokens takes so many, of a cache with codebooks whose entries have the type `books`."""
    return tokens <= (_FEW_TOKENS if source == books else 1)


def takers_of(spec: AppendSpec, tokens: int, multiprocessors: int) -> int:
    """How many blocks take the batches of tokens of a part, of a cache with codebooks."""
    takers = append_products.takers_of_products if finds_by_products(spec) else append_vectors.takers_of_vectors
    return takers(spec, tokens, multiprocessors)
