"""Attention over a paged cache in float64, as `lowlp.attention_decode` describes it."""

from __future__ import annotations

from typing import Any

import numpy as np

import lowlp

RECENT = ("recent_keys", "recent_values")


def filled_cache(rng: np.random.Generator, lengths: list[int], **options: Any) -> tuple[lowlp.KVCache, np.ndarray]:
    """A cache that holds sequences of these lengths, and their block table of int32; what is in no sequence is no
    number where the cache has such."""
    page = options["page"]
    width = max(-(-length // page) for length in [*lengths, 1])
    cache = lowlp.KVCache(pages=len(lengths) * width + 2, device="cpu", **options)
    table = rng.permutation(cache.pages)[: len(lengths) * width].reshape(len(lengths), width).astype(np.int32)
    if cache.kind.vector:
        for array in (cache.keys, cache.values):
            array[:] = rng.integers(0, 256, array.shape)
    elif not cache.kind.is_coded:
        cache.keys[:], cache.values[:] = np.nan, np.nan
    else:
        cache.key_scales[:], cache.value_scales[:] = np.nan, np.nan
    for pages, length in zip(table, lengths, strict=True):
        tokens = np.arange(length)
        if cache.kind.vector:
            # Codes are there already, and encoding is slow: the newest alone.
            tokens = tokens[-max(cache.recent, 2) :]
        slots = pages[tokens // page] * page + tokens % page
        k, v = rng.standard_normal((2, len(tokens), cache.kv_heads, cache.head_dim)).astype(np.float32)
        lowlp.kv_append(cache, k, v, slots.astype(np.int32))
    return cache, table


def reference(
    q: np.ndarray,
    cache: lowlp.KVCache,
    table: np.ndarray,
    lengths: list[int],
    window: int | None = None,
    sinks: np.ndarray | None = None,
    softcap: float | None = None,
    recent_table: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The result and the logarithm of the denominator, in float64; q [B, T, heads, head_dim]."""
    _, queries, heads, dim = q.shape
    group = heads // cache.kv_heads
    sink = np.full(heads, -np.inf) if sinks is None else sinks.astype(np.float64)
    o, lse = np.zeros(q.shape), np.zeros(q.shape[:3])
    keys, values = cache.dequantize()
    for b, length in enumerate(lengths):
        of_heads = [np.concatenate([*part[table[b]].swapaxes(1, 2)])[:length] for part in (keys, values)]
        if cache.recent:
            # The newest tokens are those in f16, in pages of `recent_table`.
            arrays, old = cache.arrays(), max(0, length - cache.recent)
            pages = (table if recent_table is None else recent_table)[b]
            kept = [
                np.asarray(arrays[name] if cache.device == "cpu" else arrays[name].float().cpu()) for name in RECENT
            ]
            newest = [np.concatenate([*array[pages].swapaxes(1, 2)]) for array in kept]
            if cache.is_ordered:
                assert cache.codebooks is not None and cache.codebooks.channel_order is not None
                newest = [part[..., np.argsort(cache.codebooks.channel_order)] for part in newest]
            of_heads = [np.concatenate([a[:old], b[old:length]]) for a, b in zip(of_heads, newest, strict=True)]
        k, v = (part.astype(np.float64).repeat(group, axis=1) for part in of_heads)
        scores = np.einsum("thd,nhd->thn", q[b].astype(np.float64), k) / np.sqrt(dim)
        if softcap is not None:
            scores = softcap * np.tanh(scores / softcap)
        behind = (length - queries + np.arange(queries))[:, None, None] - np.arange(length)
        seen = (behind >= 0) & (behind < (window or length + 1))
        scores = np.where(seen, scores, -np.inf)
        largest = np.maximum(scores.max(axis=-1, initial=-1e9), sink)[..., None]
        powers = np.exp(scores - largest)
        total = powers.sum(axis=-1) + np.exp(sink - largest[..., 0])
        with np.errstate(divide="ignore"):
            lse[b] = np.where(total > 0, np.log(total) + largest[..., 0], -np.inf)
        o[b] = np.einsum("thn,nhd->thd", powers, v) / np.where(total > 0, total, 1)[..., None]
    return o, lse
