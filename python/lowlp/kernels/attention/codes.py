"""Tiles of a cache as operands of products: loads by pages, and codes as f16.

Codes of b bits become halves of words by a shift and a mask. What those hold is exact:

    int     u = code + 2**(b - 1), as stored, in the low bits of a half: the subnormal u * 2**-24. Of 4 bits every
            other code stays 4 bits higher, u * 2**-20, which spares a shift. Of keys the offset is taken off the
            accumulators before they start, and queries make up for the powers of two; of values one fma a pair gives
            (u - 2**(b - 1)) * 2**-9. (Sums over tokens cancel: an offset there would cost bits.)
    f8e4m3  sign, exponent and mantissa in their places in f16, value * 2**-8

Codes of codebooks name entries, which are neighbouring channels in f16: looked up, a tile is that of a cache of f16.

The order in which a word's codes come is that of the shifts: codes i and i + 16 / b of keys together, whose channels
`paired_queries` puts in the same order; of values, of which a word has a unit of two tokens each, the same code of
both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout

from .layouts import KeyLayouts, ScoreLayouts, ValueLayouts
from .spec import ENTRIES, GROUP, AttentionSchedule, AttentionSpec, CacheType
from .stagger import CACHE, KEY_LANES, VALUE_LANES, books_view, masks

_SUBNORMAL = 2.0**-24
_VALUE = 2.0**-9
"""What integers of values are multiplied by: as large as f16 brings the subnormals to."""


def pointer_types(kind: CacheType) -> tuple[str, str]:
    """What pointers to keys and to values hold."""
    if kind.vector:
        return "uint8", "uint8"
    return ("uint32", "uint32") if kind.is_coded else (kind.compute, kind.compute)


def key_unit(kind: CacheType) -> float:
    """A key over its scale is this times what `keys_as_operand` gives, but for the offset of integers."""
    return 1 / _SUBNORMAL if kind.has_offset else 2.0**kind.exponent


def value_unit(kind: CacheType) -> float:
    """A value over its scale is this times what `values_as_operand` gives."""
    return 1 / _VALUE if kind.has_offset else 2.0**kind.exponent


def _in_halves(number: int) -> int:
    return number << 16 | number


def _expanded(words: ll.Tile, source: Layout, expanded: Layout) -> ll.Tile:
    """Words by the codes in half of one; `source` is the layout of the words with a last dimension of 1."""
    return ll.broadcast_to(ll.view(words, dtype="uint32", layout=source), expanded)


def _code_numbers(expanded: Layout) -> ll.Tile:
    """Which of the codes in half of a word each is."""
    return ll.iota(len(expanded.shape) - 1, layout=expanded, dtype="uint32")


def _floats(kind: CacheType, words: ll.Tile, expanded: Layout) -> ll.Tile:
    """Halves with the bits of f8e4m3 in their places."""
    words = words >> (_code_numbers(expanded) * kind.bits)
    return ((words << 7) & _in_halves(0x3F80)) | ((words << 8) & _in_halves(0x8000))


def _integers(kind: CacheType, words: ll.Tile, expanded: Layout) -> ll.Tile:
    """Halves with u alone, of 4 bits every other one times 16."""
    number, mask = _code_numbers(expanded), _in_halves((1 << kind.bits) - 1)
    if kind.bits == 8:
        return (words >> (number * 8)) & mask
    masks = ll.full(mask, "uint32", layout=expanded) << ((number & 1) * 4)
    return (words >> ((number >> 1) * 8)) & masks


def _constants(kind: CacheType, expanded: Layout, even: float, odd: float) -> ll.Tile:
    """Halves of f16: of 4 bits of one for the codes that stay where they are and of another for the others."""
    first, second = (_in_halves(int(np.float16(number).view(np.uint16))) for number in (even, odd))
    same = ll.full(first, "uint32", layout=expanded)
    return same if kind.bits == 8 else same ^ ((_code_numbers(expanded) & 1) * (first ^ second))


class Books(NamedTuple):
    """The codebooks of a head.

    keys, values  which may be one
    first         the number of the first book of values
    exchanged     shared memory that looked-up channels go through, or None
    """

    keys: ll.Codebook
    values: ll.Codebook
    first: int
    exchanged: Any = None


def load_books(spec: AttentionSpec, schedule: AttentionSchedule, operands: Any, head: Any) -> Books:
    """The codebooks of a head, those of its keys and then those of its values: each in lines of its own, or together,
    so that neither takes the shared memory that the other needs. All threads of the block do it. Those in lines are
    still on their way: before lookups all threads come to `wait_for_books`."""
    groups, vector = spec.head_dim // spec.kind.vector, spec.kind.vector
    if not spec.kind.is_staggered(spec.head_dim):
        view = ll.view_global(operands["books"], shape=[spec.kv_heads, 2 * groups, ENTRIES, vector])
        both = ll.load_codebook(view, offsets=[head])
        return Books(both, both, groups)
    if schedule.has_version:
        view = ll.view_global(operands["books"], shape=[spec.kv_heads, 2, groups, ENTRIES, vector])
        keys, values = (ll.load_codebook(view, offsets=[head, part]) for part in range(2))
        room = [schedule.tile // GROUP, GROUP, spec.head_dim]
        return Books(keys, values, 0, ll.alloc_shared(spec.kind.compute, room) if schedule.exchanges else None)
    view = books_view(spec.kind, spec.head_dim, spec.kv_heads, operands["books"])
    keys, values = (ll.load_codebook(view, offsets=[head, part], cache=CACHE, asynchronous=True) for part in range(2))
    return Books(keys, values, 0)


def wait_for_books(spec: AttentionSpec, schedule: AttentionSchedule) -> None:
    """Until the block's codebooks are there."""
    if spec.kind.is_staggered(spec.head_dim) and not schedule.has_version:
        ll.copy_async_wait(0)
        ll.synchronize()


def _looked_up(spec: AttentionSpec, codes: ll.Tile, books: Books, is_value: bool) -> ll.Tile:
    """Codes [groups of 16 tokens, 16, groups of channels] as channels."""
    lanes, book, first = (VALUE_LANES, books.values, books.first) if is_value else (KEY_LANES, books.keys, 0)
    exchanged = masks(spec.kind, spec.head_dim, lanes) if spec.kind.is_staggered(spec.head_dim) else ()
    staggered = (1, *exchanged) if exchanged else None
    found = ll.lookup_vectors(codes, book, book=first, along=2, book_along=2, staggered=staggered)
    if books.exchanged is None:
        return found
    # Keys and values go through the same memory in turns.
    ll.synchronize()
    ll.store_shared(found, books.exchanged, offsets=[0, 0, 0])
    ll.synchronize()
    return ll.load_shared(books.exchanged, offsets=[0, 0, 0], layout=found.layout, in_bounds=True)


def keys_as_operand(spec: AttentionSpec, layouts: KeyLayouts, keys: ll.Tile, books: Any) -> ll.Tile:
    """What `layouts.loaded` holds as operand A of S = K Q^T, [tokens, channels]; integers with their offset."""
    kind = spec.kind
    if kind.vector:
        codes = ll.view(keys, dtype="uint8", layout=layouts.slots)
        keys = _looked_up(spec, codes, books, is_value=False)
    elif kind.is_coded:
        words = _expanded(keys, layouts.loaded.unsqueeze(3), layouts.expanded)
        keys = (_integers if kind.has_offset else _floats)(kind, words, layouts.expanded)
    return ll.view(keys, dtype=kind.compute, layout=layouts.fragment)


def first_scores(spec: AttentionSpec, layouts: KeyLayouts, scores: ScoreLayouts, queries: ll.Tile) -> ll.Tile:
    """What scores begin with, [tokens, columns]: for integers what takes off their offset."""
    kind, nothing = spec.kind, ll.full(0.0, "f32", layout=scores.scores)
    if not kind.has_offset:
        return nothing
    offset = 2 ** (kind.bits - 1) * _SUBNORMAL
    offsets = _constants(kind, layouts.expanded, offset, 16 * offset)
    return -scores.product(ll.view(offsets, dtype="f16", layout=layouts.fragment), queries, nothing)


def paired_queries(spec: AttentionSpec, layouts: KeyLayouts, queries: ll.Tile) -> ll.Tile:
    """Queries of the cache's compute type as operand B of S = K Q^T, or transposed as A of S^T, with channels in the
    order of the keys."""
    kind = spec.kind
    if kind.is_coded:
        queries = ll.convert_layout(ll.view(queries, dtype=kind.compute, layout=layouts.halves), layouts.paired)
    if kind.alternates:
        number = ll.iota(3, layout=layouts.paired, dtype="int32") & 1
        queries = ll.where(ll.equal(number, 1), queries * (1 / 16), queries)
    return ll.transpose(ll.view(queries, dtype=kind.compute, layout=layouts.columns))


def values_as_operand(spec: AttentionSpec, layouts: ValueLayouts, values: ll.Tile, books: Any) -> ll.Tile:
    """What `layouts.loaded` holds as operand A of O^T = V^T P, [channels, tokens]."""
    kind = spec.kind
    if kind.vector:
        values = _looked_up(spec, values, books, is_value=True)
    if not kind.is_coded:
        values = ll.convert_layout(values, layouts.paired)
        return ll.transpose(ll.view(values, dtype=kind.compute, layout=layouts.fragment))
    values = _expanded(values, layouts.loaded.unsqueeze(3), layouts.expanded)
    halves = (_integers if kind.has_offset else _floats)(kind, values, layouts.expanded)
    values = ll.view(halves, dtype="f16", layout=layouts.fragment)
    if kind.has_offset:
        unit = _VALUE / _SUBNORMAL
        factors = ll.view(_constants(kind, layouts.expanded, unit, unit / 16), dtype="f16", layout=layouts.fragment)
        values = ll.fma(values, factors, -(2 ** (kind.bits - 1)) * _VALUE)
    return ll.transpose(values)


class CacheViews:
    """The memory of a cache, in rows of 16 tokens of a head of a page.

    keys                      [rows, 16, words, channels or codes]
    values                    as keys; but of codes with scales [rows, 8, words], which have 16 bits of two tokens each
    key_scales, value_scales  [rows, 16]; None where values are stored as they are
    """

    def __init__(self, spec: AttentionSpec, operands: Any, prefix: str = "") -> None:
        kind, dim = spec.kind, spec.head_dim
        rows = operands[f"{prefix}pages"] * (spec.kv_heads * spec.page // 16)
        of_keys, of_values = ([16, dim // (kind.vector or 1)],) * 2
        if kind.is_coded:
            of_keys, of_values = [16, dim * kind.bits // 32], [8, dim * kind.bits // 16]
        self.keys = ll.view_global(operands[f"{prefix}keys"], shape=[rows, *of_keys])
        self.values = ll.view_global(operands[f"{prefix}values"], shape=[rows, *of_values])
        self.key_scales = self.value_scales = None
        if kind.is_coded:
            self.key_scales = ll.view_global(operands["key_scales"], shape=[rows, 16])
            self.value_scales = ll.view_global(operands["value_scales"], shape=[rows, 16])
