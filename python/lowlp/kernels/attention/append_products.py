"""New keys and values as codes of codebooks, found by tensor cores, and put into a paged cache where slots say.

A block is a warp and has a group of channels of a head's keys or values: the entries c of its book are 16 operands a
[16 entries, 16 channels], of which the last are zeros. It takes batches of tokens in turn, eight of them in a product;
of few tokens one batch alone, so that it has few registers:

    products   [16, 8] each = a x^T, exact but for the sums, in f32
    distances  |x|^2 / 2 - (products - |c|^2 / 2), half of |x - c|^2
    keys       the bits of a distance, with the number of its operand in place of the last 4; the least key of all
               operands, element by element, and then of a column
    code       the lowest of those that have it

Keys are compared as integers, which costs half an instruction where a number and its index cost three. A code is not
that of `KVCodebooks.encode`, which computes in float64, only where two distances agree to 2^-19 of themselves and a few
2^-23 of |x|^2 and |c|^2; of equal ones it is the lowest. A column has nothing of the others, so one token at a time
gives the codes that all at once do.
"""

from __future__ import annotations

from typing import Any, Final

from lowlp import language as ll
from lowlp.kernels.stream_k import small
from lowlp.layouts.register_layout import Layout, column_local, local, reduce, spatial

from .append_spec import AppendSpec
from .spec import ENTRIES
from .stagger import KEY_LANES, VALUE_LANES, books_view, class_of, near, place_of

THREADS: Final = 32
_ROWS: Final = 16
_COLUMNS: Final = 8
_NO_ROW: Final = -(2**30)
_BLOCKS_PER_SM: Final = 32
"""That there are about, of which a quarter run at once."""
# PTX ISA, "Matrix Fragments for mma.m16n8k16".
_A: Final = column_local(2, 2) * spatial(8, 4) * local(1, 2)
_X: Final = local(1, 2) * spatial(8, 4) * local(1, 2)
_SCORES: Final = local(2, 1) * spatial(8, 4) * local(1, 2)


def finds_by_products(spec: AppendSpec) -> bool:
    """Whether tokens and entries are halves of one type, whose products are exact."""
    return bool(spec.kind.vector) and spec.source == spec.kind.compute


def parts_of_products(spec: AppendSpec) -> int:
    """Among how many blocks a token's keys and values are divided."""
    return 2 * spec.kv_heads * (spec.head_dim // spec.kind.vector)


def takers_of_products(spec: AppendSpec, tokens: int, multiprocessors: int) -> int:
    """How many blocks take the batches of tokens of a part."""
    batches = -(-tokens // batch_of(spec))
    if spec.few_tokens:
        return batches
    return max(1, min(batches, -(-_BLOCKS_PER_SM * multiprocessors // parts_of_products(spec))))


def resident_blocks(spec: AppendSpec) -> int:
    """Blocks that an SM has registers for: with many tokens it keeps entries and what scores begin with."""
    return 16 if spec.few_tokens else 8


def batch_of(spec: AppendSpec) -> int:
    """Tokens whose codes a block stores together."""
    return _COLUMNS if spec.few_tokens else THREADS


class ProductBlock:
    """What a block does, as it is traced."""

    def __init__(self, spec: AppendSpec, operands: dict[str, Any]) -> None:
        self.spec, self.operands = spec, operands
        self.taker, part = ll.block_indices()
        part = small(part)
        self.groups, self.batch = spec.head_dim // spec.kind.vector, batch_of(spec)
        self.head, self.is_value = part // (2 * self.groups), part // self.groups % 2
        self.group = part % self.groups
        # A token of the batch for each lane, or each four lanes.
        self.tokens: Layout = reduce(spatial(self.batch, THREADS // self.batch), dims=[1])
        self.held: Layout = self.tokens.unsqueeze(1) * local(1, spec.kind.vector)
        self.codes = ll.alloc_shared("uint8", [self.batch])
        self.vectors = ll.alloc_shared(spec.source, [self.batch, spec.kind.vector])
        self.halves = ll.alloc_shared("f32", [self.batch])

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """Puts the group of all tokens into the cache, but for those whose slot is negative."""
        if self.is_value == 0:
            self.store_all("k", "keys")
        else:
            self.store_all("v", "values")

    @ll.inline
    def store_all(self, source, name):  # type: ignore[no-untyped-def]
        """Codes of all tokens' keys or values, and in f16 what of it is kept so."""
        operands, batch = self.operands, self.batch
        operands_a = [self.entries_of(name, first) for first in range(0, ENTRIES, _ROWS)]
        begin, step = self.taker * batch, operands["takers"] * batch
        if self.spec.few_tokens:
            self.store_batch(name, operands_a, begin, *self.batch_from(source, begin))
        else:
            vectors, slots = self.batch_from(source, begin)
            for first in ll.range(begin, operands["tokens"], step):
                taken, taken_slots = vectors, slots
                # On their way while others are looked for.
                vectors, slots = self.batch_from(source, first + step)
                self.store_batch(name, operands_a, first, taken, taken_slots)
                ll.synchronize()

    def batch_from(self, source: str, first: Any) -> tuple[ll.Tile, ll.Tile]:
        """The vectors of a batch, one in a lane, and the slots."""
        return self.vectors_of(source, first), self.slots_of("slots", first)

    @ll.inline
    def store_batch(self, name, operands_a, first, vectors, slots):  # type: ignore[no-untyped-def]
        """Finds the codes of a batch and stores them."""
        ll.store_shared(vectors, self.vectors, offsets=[0, 0], in_bounds=True)
        wide = ll.cast(vectors, "f32")
        ll.store_shared(ll.sum(wide * wide, 1) * 0.5, self.halves, offsets=[0], in_bounds=True)
        ll.synchronize()
        # In a loop: the assembler would begin all products at once, for whose sums there are no registers.
        for column in ll.range(0, self.batch, _COLUMNS):
            x = ll.load_shared(self.vectors, offsets=[column, 0], layout=_X)
            halves = ll.load_shared(self.halves, offsets=[column], layout=_SCORES.reduce([0]), in_bounds=True)
            halves = ll.view(halves, dtype="f32", layout=_SCORES.reduce([0], keep_dims=True))
            codes = self.nearest(operands_a, x, halves)
            ll.store_shared(ll.cast(codes, "uint8"), self.codes, offsets=[column], in_bounds=True)
        ll.synchronize()
        self.store_codes(name, slots)
        if self.spec.recent:
            self.store_recent(name, first, vectors)

    def entries_of(self, name: str, first: int) -> tuple[ll.Tile, ll.Tile]:
        """Entries of the group's book from one on, and half their squares."""
        spec = self.spec
        books = books_view(spec.kind, spec.head_dim, spec.kv_heads, self.operands["books"])
        offsets = [self.head, 0 if name == "keys" else 1, self.group, first, 0]
        entries = ll.load_global(books, offsets=offsets, layout=_A)
        wide = ll.cast(entries, "f32")
        squares = ll.sum(wide * wide, 1, keep_dims=True)
        return entries, ll.convert_layout(squares * 0.5, _SCORES.reduce([1], keep_dims=True))

    def nearest(self, operands_a: list[tuple[ll.Tile, ll.Tile]], x: ll.Tile, halves_of_x: ll.Tile) -> ll.Tile:
        """The codes of eight vectors, of which half the squares are given."""
        best: Any = None
        for index, (entries, half_squares) in enumerate(operands_a):
            products = ll.dot(entries, ll.transpose(x), ll.full(0.0, "f32", layout=_SCORES))
            distances = halves_of_x - (products - half_squares)
            keys = ll.view(distances, dtype="int32", layout=_SCORES) & -_ROWS | index
            best = keys if best is None else ll.minimum(best, keys)
        entry = (best & (_ROWS - 1)) * _ROWS + ll.iota(0, layout=_SCORES, dtype="int32")
        codes: ll.Tile = ll.min(ll.where(ll.equal(best, ll.min(best, 0, keep_dims=True)), entry, ENTRIES - 1), 0)
        return codes

    def vectors_of(self, source: str, first: Any) -> ll.Tile:
        """The group's vectors of a batch, [tokens, channels]; zeros where no token is."""
        spec, operands, vector, held = self.spec, self.operands, self.spec.kind.vector, self.held
        heads, tokens, stride = spec.kv_heads, operands["tokens"], operands[f"{source}_stride"]
        if not spec.ordered:
            shape, strides = [heads, self.groups, tokens, vector], [spec.head_dim, vector, stride, 1]
            rows = ll.view_global(operands[source], shape=shape, strides=strides)
            return ll.load_global(rows, offsets=[self.head, self.group, first, 0], layout=held)
        order = ll.view_global(operands["order"], shape=[self.groups, vector])
        channels = ll.load_global(order, offsets=[self.group, 0], layout=held.reduce([0], keep_dims=True))
        shape, strides = [heads, tokens, spec.head_dim], [spec.head_dim, stride, 1]
        rows = ll.view_global(operands[source], shape=shape, strides=strides)
        return ll.gather_global(rows, channels, dim=1, offsets=[self.head, first, 0], layout=held)

    def slots_of(self, name: str, first: Any) -> ll.Tile:
        """The slots of a batch, negative where no token is."""
        view = ll.view_global(
            self.operands[name], shape=[self.operands["tokens"]], strides=[2 if self.spec.wide_slots else 1]
        )
        slots = ll.load_global(view, offsets=[first], layout=self.tokens)
        number = ll.iota(0, layout=self.tokens, dtype="int32") + ll.full(first, "int32", layout=self.tokens)
        is_there = number < ll.full(self.operands["tokens"], "int32", layout=self.tokens)
        return ll.where(is_there, slots, ll.full(-1, "int32", layout=self.tokens))

    def rows_at(self, slots: ll.Tile) -> ll.Tile:
        """The rows of the cache that the head has of slots; none where these are negative."""
        page, heads = self.spec.page, self.spec.kv_heads
        begin = slots // page * (heads * page) + slots % page
        rows = begin + ll.full(self.head * page, "int32", layout=slots.layout)
        return ll.where(slots < 0, ll.full(_NO_ROW, "int32", layout=slots.layout), rows)

    def store_codes(self, name: str, slots: ll.Tile) -> None:
        """The codes of a batch in their slots, each in the place that the group has in the row of its token."""
        spec, kind = self.spec, self.spec.kind
        rows, count = self.rows_at(slots), self.operands["pages"] * (spec.kv_heads * spec.page)
        codes = ll.load_shared(self.codes, offsets=[0], layout=self.tokens, in_bounds=True)
        column = self.tokens.unsqueeze(1)
        codes, rows = (ll.view(tile, dtype=tile.dtype.name, layout=column) for tile in (codes, rows))
        view = ll.view_global(self.operands[name], shape=[count, self.groups])
        if not kind.is_staggered(spec.head_dim):
            ll.scatter_global(codes, view, rows, dim=0, offsets=[0, self.group])
            return
        of_token = ll.view(class_of(slots), dtype="int32", layout=column)
        is_value = name == "values"
        neighbours = near(kind, spec.head_dim, VALUE_LANES if is_value else KEY_LANES)
        for number in range(neighbours):
            place = place_of(kind, spec.head_dim, is_value, self.group, number)
            is_class = ll.equal(of_token & (neighbours - 1), number)
            at = ll.where(is_class, rows, ll.full(_NO_ROW, "int32", layout=column))
            ll.scatter_global(codes, view, at, dim=0, offsets=[0, place])

    def store_recent(self, name: str, first: Any, vectors: ll.Tile) -> None:
        """Vectors in halves, in the slots of what is kept so."""
        spec, vector = self.spec, self.spec.kind.vector
        rows = self.rows_at(self.slots_of("recent_slots", first))
        count = self.operands["recent_pages"] * (spec.kv_heads * spec.page)
        kept = ll.view_global(self.operands[f"recent_{name}"], shape=[count, self.groups * vector])
        at = ll.view(rows, dtype="int32", layout=self.tokens.unsqueeze(1))
        ll.scatter_global(vectors, kept, at, dim=0, offsets=[0, self.group * vector])
