"""Tiles of a cache as operands of products: loads by pages, and codes as f16.

Codes of b bits become halves of a word by shifts, masks and the exponent of 1024, all exactly:

    int     u = code + 2**(b - 1) without a sign, in the low bits of 1024 as f16, is 1024 + u
    f8e4m3  sign, exponent and mantissa in their places in f16 are value * 2**-8

The order in which a word's codes come is that of the shifts: codes i and i + 16 / b of keys together, whose channels
`paired_queries` puts in the same order; of values, of which a word has a unit of two tokens each, the same code of
both.
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout

from .layouts import KeyLayouts, ValueLayouts
from .spec import AttentionSpec, CacheType

_EXPONENT_OF_1024 = 0x64006400


def pointer_types(kind: CacheType) -> tuple[str, str]:
    """What pointers to keys and to values hold."""
    return ("uint32", "uint16") if kind.is_coded else (kind.compute, kind.compute)


def _decoded(kind: CacheType, words: ll.Tile, source: Layout, expanded: Layout, fragment: Layout) -> ll.Tile:
    """Words of codes as f16: each by the codes in half of it.

    source  the layout of the words with a last dimension of 1
    """
    bits = kind.bits
    if kind.name != "f8e4m3":
        words = words ^ (0x11111111 if bits == 4 else 0x01010101) * (1 << (bits - 1))
    words = ll.broadcast_to(ll.view(words, dtype="uint32", layout=source), expanded)
    words = words >> (ll.iota(len(expanded.shape) - 1, layout=expanded, dtype="uint32") * bits)
    if kind.name == "f8e4m3":
        halves = ((words << 7) & 0x3F803F80) | ((words << 8) & 0x80008000)
        return ll.view(halves, dtype="f16", layout=fragment)
    mask = (1 << bits) - 1
    halves = (words & (mask << 16 | mask)) | _EXPONENT_OF_1024
    return ll.view(halves, dtype="f16", layout=fragment) - float(1024 + (1 << (bits - 1)))


def keys_as_operand(spec: AttentionSpec, layouts: KeyLayouts, keys: ll.Tile) -> ll.Tile:
    """What `layouts.loaded` holds as operand A of S = K Q^T, [tokens, channels]."""
    kind = spec.kind
    if not kind.is_coded:
        return ll.view(keys, dtype=kind.compute, layout=layouts.fragment)
    return _decoded(kind, keys, layouts.loaded.unsqueeze(3), layouts.expanded, layouts.fragment)


def paired_queries(spec: AttentionSpec, layouts: KeyLayouts, queries: ll.Tile) -> ll.Tile:
    """Queries of the cache's compute type as operand B of S = K Q^T, with channels in the order of the keys."""
    kind = spec.kind
    if kind.is_coded:
        queries = ll.convert_layout(ll.view(queries, dtype=kind.compute, layout=layouts.halves), layouts.paired)
    return ll.transpose(ll.view(queries, dtype=kind.compute, layout=layouts.columns))


def values_as_operand(spec: AttentionSpec, layouts: ValueLayouts, values: ll.Tile) -> ll.Tile:
    """What `layouts.loaded` holds as operand A of O^T = V^T P, [channels, tokens]."""
    kind = spec.kind
    values = ll.convert_layout(values, layouts.paired)
    if kind.is_coded:
        words = ll.view(values, dtype="uint32", layout=layouts.words)
        values = _decoded(kind, words, layouts.words.unsqueeze(3), layouts.expanded, layouts.fragment)
    return ll.transpose(ll.view(values, dtype=kind.compute, layout=layouts.fragment))


class CacheViews:
    """The memory of a cache, in rows of 16 tokens of a head of a page.

    keys, values              [rows, 16, words or channels]
    key_scales, value_scales  [rows, 16]; None where values are stored as they are
    """

    def __init__(self, spec: AttentionSpec, operands: Any) -> None:
        kind, dim = spec.kind, spec.head_dim
        rows = operands["pages"] * (spec.kv_heads * spec.page // 16)
        word, unit = (32, 16) if kind.is_coded else (16, 16)
        self.keys = ll.view_global(operands["keys"], shape=[rows, 16, dim * kind.bits // word])
        self.values = ll.view_global(operands["values"], shape=[rows, 16, dim * kind.bits // unit])
        self.key_scales = self.value_scales = None
        if kind.is_coded:
            self.key_scales = ll.view_global(operands["key_scales"], shape=[rows, 16])
            self.value_scales = ll.view_global(operands["value_scales"], shape=[rows, 16])
