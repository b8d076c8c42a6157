"""New keys and values as codes of codebooks, found by tensor cores, and put into a paged cache where slots say.

A block has 16 neighbouring channels of a head's keys or values, and a warp for each group of them. The entries c of
all groups' books are 16 operands a [16 entries, 16 channels], the same for all warps; each multiplies them by x with
zeros for the channels of other groups. A block takes batches of 32 tokens in turn, of few tokens one batch of eight:

    products   [16, batch] each = a x^T - |c|^2 / 2, exact but for the sums, in f32
    distances  |x|^2 / 2 - products, half of |x - c|^2
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
from .stagger import KEY_LANES, books_view, class_of, neighbours_of, strides_of_row

CHANNELS: Final = 16
"""Of a block, as many as a product adds up."""
_WARP: Final = 32
_ROWS: Final = 16
_COLUMNS: Final = 8
_BATCH: Final = 32
"""Tokens whose codes a block stores together, where there are many."""
_NO_ROW: Final = -(2**30)
_STORED_TOGETHER: Final = 4
"""Codes of neighbouring groups, in rows without classes of tokens."""
_MOST: Final = 2**31 - 1
_AT_ONCE: Final = 8
"""Products that run together."""
_WARPS_PER_SM: Final = 48
"""That there are about, of which half run at once."""
# PTX ISA, "Matrix Fragments for mma.m16n8k16".
_A: Final = column_local(2, 2) * spatial(8, 4) * local(1, 2)
_X: Final = local(1, 2) * spatial(8, 4) * local(1, 2)
_PRODUCTS: Final = spatial(8, 4) * local(1, 2)


def finds_by_products(spec: AppendSpec) -> bool:
    """Whether tokens and entries are halves of one type, whose products are exact."""
    return bool(spec.kind.vector) and spec.source == spec.kind.compute


def groups_of_block(spec: AppendSpec) -> int:
    """Groups of channels of a block, and its warps."""
    return CHANNELS // spec.kind.vector


def threads_of_products(spec: AppendSpec) -> int:
    """Threads of a block."""
    return _WARP * groups_of_block(spec)


def parts_of_products(spec: AppendSpec) -> int:
    """Among how many blocks a token's keys and values are divided."""
    return 2 * spec.kv_heads * (spec.head_dim // CHANNELS)


def takers_of_products(spec: AppendSpec, tokens: int, multiprocessors: int) -> int:
    """How many blocks take the batches of tokens of a part."""
    batches = -(-tokens // batch_of(spec))
    if spec.few_tokens:
        return batches
    warps = parts_of_products(spec) * groups_of_block(spec)
    return max(1, min(batches, -(-_WARPS_PER_SM * multiprocessors // warps)))


def resident_blocks(spec: AppendSpec) -> int:
    """Blocks that an SM has registers for: with many tokens threads have four times the products."""
    return (32 if spec.few_tokens else 24) // groups_of_block(spec)


def batch_of(spec: AppendSpec) -> int:
    """Tokens whose codes a block stores together."""
    return _COLUMNS if spec.few_tokens else _BATCH


class ProductBlock:
    """What a block does, as it is traced."""

    def __init__(self, spec: AppendSpec, operands: dict[str, Any]) -> None:
        self.spec, self.operands = spec, operands
        self.taker, part = ll.block_indices()
        part = small(part)
        vector, chunks = spec.kind.vector, spec.head_dim // CHANNELS
        self.groups, self.batch, self.warps = spec.head_dim // vector, batch_of(spec), groups_of_block(spec)
        self.has_classes = spec.kind.is_staggered(spec.head_dim)
        self.at_once = max(1, _AT_ONCE * _COLUMNS // self.batch)
        self.head, self.is_value, self.first = part // (2 * chunks), part // chunks % 2, part % chunks * self.warps
        # What threads hold of a batch: vectors [tokens, channels], also as [tokens, groups, channels].
        threads = _WARP * self.warps
        lanes = min(CHANNELS, threads // self.batch)
        of_thread, spare = CHANNELS // lanes, threads // (self.batch * lanes)
        self.held: Layout = reduce(spatial(self.batch, lanes, spare), dims=[2]) * local(1, of_thread)
        # A thread has whole groups, or a group some threads.
        groups, channels = (lanes, 1) if of_thread >= vector else (self.warps, lanes // self.warps)
        self.held_by_group: Layout = reduce(spatial(self.batch, groups, channels, spare), dims=[3])
        self.held_by_group = self.held_by_group * local(1, max(1, of_thread // vector), min(of_thread, vector))
        # Entries [entries, groups, channels], 16 bytes in a thread, and operands; products [groups, entries, tokens].
        self.entries = local(2 * ENTRIES // threads, 1, 1) * spatial(threads // 2, 2, 1)
        self.entries = self.entries * local(1, self.warps // 2, vector)
        everywhere = reduce(spatial(1, 1, self.warps), dims=[2])
        columns = self.batch // _COLUMNS
        x = local(columns, 1) * _X
        self.a, self.same_x, self.x = everywhere * _A, everywhere * x, spatial(self.warps, 1) * x
        self.words = spatial(self.warps, 1) * local(columns, 2) * spatial(8, 4)
        products = local(2, columns) * _PRODUCTS
        self.products = spatial(1, self.warps) * products
        self.by_group: Layout = spatial(self.warps, 1, 1) * products.unsqueeze(0)
        self.codes = ll.alloc_shared("uint8", [self.batch, self.warps])
        self.vectors = ll.alloc_shared(spec.source, [self.batch, CHANNELS])
        self.halves = ll.alloc_shared("f32", [self.batch, self.warps])
        self.book = ll.alloc_shared(spec.source, [ENTRIES, CHANNELS])
        self.squares = ll.alloc_shared("f32", [ENTRIES, self.warps])

    @ll.inline
    def run(self):  # type: ignore[no-untyped-def]
        """Puts the groups of all tokens into the cache, but for those whose slot is negative."""
        if self.is_value == 0:
            self.store_all("k", "keys")
        else:
            self.store_all("v", "values")

    @ll.inline
    def store_all(self, source, name):  # type: ignore[no-untyped-def]
        """Codes of all tokens' keys or values, and in f16 what of it is kept so."""
        operands, batch = self.operands, self.batch
        begin, step = self.taker * batch, operands["takers"] * batch
        vectors, slots = self.batch_from(source, name, begin)
        self.leave_entries(name)
        if self.spec.few_tokens:
            self.store_batch(name, begin, vectors, slots)
        else:
            for first in ll.range(begin, operands["tokens"], step):
                taken, taken_slots = vectors, slots
                # On their way while others are looked for.
                vectors, slots = self.batch_from(source, name, first + step)
                self.store_batch(name, first, taken, taken_slots)
                ll.synchronize()

    def batch_from(self, source: str, name: str, first: Any) -> tuple[ll.Tile, ll.Tile]:
        """The vectors of a batch and its slots."""
        slots = self.slots_of("slots", first, self.by_neighbours(name).reduce([1]))
        return self.vectors_of(source, first), slots

    @ll.inline
    def store_batch(self, name, first, vectors, slots):  # type: ignore[no-untyped-def]
        """Finds the codes of a batch and stores them."""
        wide = ll.cast(vectors, "f32")
        ll.store_shared(vectors, self.vectors, offsets=[0, 0], in_bounds=True)
        squares = ll.view(wide * wide, dtype="f32", layout=self.held_by_group)
        ll.store_shared(ll.sum(squares, 2) * 0.5, self.halves, offsets=[0, 0], in_bounds=True)
        ll.synchronize()
        codes = self.lowest(self.nearest(ll.transpose(self.own_vectors()), self.halves_of_tokens()))
        ll.store_shared(ll.transpose(ll.cast(codes, "uint8")), self.codes, offsets=[0, 0], in_bounds=True)
        ll.synchronize()
        self.store_codes(name, slots)
        if self.spec.recent:
            self.store_recent(name, first, vectors)

    def leave_entries(self, name: str) -> None:
        """Leaves the entries of the groups' books, and half their squares."""
        spec = self.spec
        books = books_view(spec.kind, spec.head_dim, spec.kv_heads, self.operands["books"], by_entry=True)
        offsets = [self.head, 0 if name == "keys" else 1, 0, self.first, 0]
        loaded = ll.load_global(books, offsets=offsets, layout=self.entries, in_bounds=True)
        wide = ll.cast(loaded, "f32")
        ll.store_shared(ll.sum(wide * wide, 2) * 0.5, self.squares, offsets=[0, 0], in_bounds=True)
        by_channel = local(2 * ENTRIES // (_WARP * self.warps), 1) * spatial(_WARP * self.warps // 2, 2) * local(1, 8)
        entries = ll.view(loaded, dtype=loaded.dtype.name, layout=by_channel)
        ll.store_shared(entries, self.book, offsets=[0, 0], in_bounds=True)
        ll.synchronize()

    def own_vectors(self) -> ll.Tile:
        """A batch for each group, [groups * tokens, channels], with zeros for the channels of other groups."""
        loaded = ll.load_shared(self.vectors, offsets=[0, 0], layout=self.same_x, in_bounds=True)
        # Two channels of a word are of one group.
        words = ll.view(loaded, dtype="int32", layout=self.words)
        row, pair = (ll.iota(dim, layout=self.words, dtype="int32") for dim in (0, 1))
        is_own = ll.equal(row // self.batch, pair // (self.spec.kind.vector // 2))
        mask = ll.where(is_own, ll.full(-1, "int32", layout=self.words), ll.full(0, "int32", layout=self.words))
        return ll.view(words & mask, dtype=loaded.dtype.name, layout=self.x)

    def halves_of_tokens(self) -> ll.Tile:
        """Half the squares of a batch, [groups, 1, tokens]."""
        of_columns = self.by_group.reduce([1]).permute([1, 0])
        halves = ll.load_shared(self.halves, offsets=[0, 0], layout=of_columns, in_bounds=True)
        return ll.view(ll.transpose(halves), dtype="f32", layout=self.by_group.reduce([1], keep_dims=True))

    def operand_of(self, index: Any) -> tuple[ll.Tile, ll.Tile]:
        """An operand, and half the squares of its entries as [groups, entries, 1]."""
        entries = ll.load_shared(self.book, offsets=[index * _ROWS, 0], layout=self.a, in_bounds=True)
        of_rows = self.by_group.reduce([2]).permute([1, 0])
        squares = ll.load_shared(self.squares, offsets=[index * _ROWS, 0], layout=of_rows, in_bounds=True)
        return entries, ll.view(ll.transpose(squares), dtype="f32", layout=self.by_group.reduce([2], keep_dims=True))

    @ll.inline
    def nearest(self, x, halves_of_x):  # type: ignore[no-untyped-def]
        """The least key of all operands, by [groups, entries of an operand, tokens]."""
        best = ll.full(_MOST, "int32", layout=self.by_group)
        for first in ll.range(0, ENTRIES // _ROWS, self.at_once):
            for index in range(self.at_once):
                best = self.nearer(best, self.operand_of(first + index), first + index, x, halves_of_x)
        return best

    def nearer(
        self, best: ll.Tile, operand: tuple[ll.Tile, ll.Tile], index: Any, x: ll.Tile, halves: ll.Tile
    ) -> ll.Tile:
        """The lesser of keys and those of an operand."""
        entries, half_squares = operand
        sums = ll.full(0.0, "f32", layout=self.by_group) - half_squares
        products = ll.dot(entries, x, ll.view(sums, dtype="f32", layout=self.products))
        distances = halves - ll.view(products, dtype="f32", layout=self.by_group)
        keys = ll.view(distances, dtype="int32", layout=self.by_group) & -_ROWS | index
        nearer: ll.Tile = ll.minimum(best, keys)
        return nearer

    def lowest(self, best: ll.Tile) -> ll.Tile:
        """The codes of the least keys, [groups, tokens]."""
        entry = (best & (_ROWS - 1)) * _ROWS + ll.iota(1, layout=self.by_group, dtype="int32")
        codes: ll.Tile = ll.min(ll.where(ll.equal(best, ll.min(best, 1, keep_dims=True)), entry, ENTRIES - 1), 1)
        return codes

    def vectors_of(self, source: str, first: Any) -> ll.Tile:
        """The groups' vectors of a batch, [tokens, channels]; zeros where no token is."""
        spec, operands, vector = self.spec, self.operands, self.spec.kind.vector
        shape = [spec.kv_heads, operands["tokens"], spec.head_dim]
        rows = ll.view_global(operands[source], shape=shape, strides=[spec.head_dim, operands[f"{source}_stride"], 1])
        begin = self.first * vector
        if not spec.ordered:
            return ll.load_global(rows, offsets=[self.head, first, begin], layout=self.held)
        order = ll.view_global(operands["order"], shape=[1, spec.head_dim])
        of_order = self.held.reduce([0], keep_dims=True)
        channels = ll.load_global(order, offsets=[0, begin], layout=of_order, in_bounds=True)
        return ll.gather_global(rows, channels, dim=1, offsets=[self.head, first, 0], layout=self.held)

    def slots_of(self, name: str, first: Any, held: Layout) -> ll.Tile:
        """The slots of a batch, [tokens], negative where no token is."""
        view = ll.view_global(
            self.operands[name], shape=[self.operands["tokens"]], strides=[2 if self.spec.wide_slots else 1]
        )
        slots = ll.load_global(view, offsets=[first], layout=held)
        number = ll.iota(0, layout=held, dtype="int32") + ll.full(first, "int32", layout=held)
        is_there = number < ll.full(self.operands["tokens"], "int32", layout=held)
        return ll.where(is_there, slots, ll.full(-1, "int32", layout=held))

    def rows_at(self, slots: ll.Tile) -> ll.Tile:
        """The rows of the cache that the head has of slots; none where these are negative."""
        page, heads = self.spec.page, self.spec.kv_heads
        begin = slots // page * (heads * page) + slots % page
        rows = begin + ll.full(self.head * page, "int32", layout=slots.layout)
        return ll.where(slots < 0, ll.full(_NO_ROW, "int32", layout=slots.layout), rows)

    def neighbours(self, name: str) -> int:
        """How many codes are stored together: of groups that lie side by side in the row of every token."""
        spec = self.spec
        return neighbours_of(spec.kind, spec.head_dim, name == "values") if self.has_classes else _STORED_TOGETHER

    def by_neighbours(self, name: str) -> Layout:
        """How threads hold a batch's codes, [tokens, groups]: some neighbours each."""
        neighbours = self.neighbours(name)
        alike = _WARP * neighbours // self.batch
        return reduce(spatial(self.batch, self.warps // neighbours, alike), dims=[2]) * local(1, neighbours)

    def in_order_of(self, slots: ll.Tile, codes: ll.Tile) -> ll.Tile:
        """Codes of neighbours in the order of each token's class; see `stagger`."""
        held, neighbours = codes.layout, codes.shape[3]
        found = ll.cast(codes, "int32")
        token_class = ll.view(class_of(slots), dtype="int32", layout=held.reduce([1, 2, 3], keep_dims=True))
        # Neighbours as [far, near]: bit 0 of a class exchanges two near ones, bit 1 two far ones.
        of_threads = held.reduce([3], keep_dims=True).unsqueeze(4)
        pairs = of_threads * local(1, 1, 1, neighbours // 2, 2)
        for bit, dim in ((1, 4), (2, 3))[: neighbours.bit_length() - 1]:
            found = ll.view(found, dtype="int32", layout=pairs)
            is_other = ll.view(token_class & bit, dtype="int32", layout=pairs.reduce([1, 2, 3, 4], keep_dims=True)) > 0
            found = ll.where(is_other, ll.sum(found, dim, keep_dims=True) - found, found)
        return ll.cast(ll.view(found, dtype="int32", layout=held), "uint8")

    def store_codes(self, name: str, slots: ll.Tile) -> None:
        """The codes of a batch in their slots, each in the place that its group has in the row of its token."""
        spec, neighbours = self.spec, self.neighbours(name)
        runs = self.warps // neighbours
        lanes = min(KEY_LANES, runs)
        loaded = ll.load_shared(self.codes, offsets=[0, 0], layout=self.by_neighbours(name), in_bounds=True)
        # As [tokens, parts, lanes, neighbours].
        held = reduce(spatial(self.batch, runs // lanes, lanes, 1, _WARP * neighbours // self.batch), dims=[4])
        held = held * local(1, 1, 1, neighbours)
        codes = ll.view(loaded, dtype="uint8", layout=held)
        if self.has_classes and neighbours > 1:
            codes = self.in_order_of(slots, codes)
        count = self.operands["pages"] * (spec.kv_heads * spec.page)
        shape = [count, self.groups // (KEY_LANES * neighbours), KEY_LANES, neighbours]
        strides = strides_of_row(spec.kind, spec.head_dim, name == "values", neighbours)
        view = ll.view_global(self.operands[name], shape=shape, strides=[self.groups, *strides])
        run = self.first // neighbours
        rows = ll.view(self.rows_at(slots), dtype="int32", layout=held.reduce([1, 2, 3], keep_dims=True))
        ll.scatter_global(codes, view, rows, dim=0, offsets=[0, run // KEY_LANES, run % KEY_LANES, 0])

    def store_recent(self, name: str, first: Any, vectors: ll.Tile) -> None:
        """Vectors in halves, in the slots of what is kept so."""
        spec, vector = self.spec, self.spec.kind.vector
        rows = self.rows_at(self.slots_of("recent_slots", first, self.held.reduce([1])))
        count = self.operands["recent_pages"] * (spec.kv_heads * spec.page)
        kept = ll.view_global(self.operands[f"recent_{name}"], shape=[count, spec.head_dim])
        at = ll.view(rows, dtype="int32", layout=self.held.reduce([1], keep_dims=True))
        ll.scatter_global(vectors, kept, at, dim=0, offsets=[0, self.first * vector])
