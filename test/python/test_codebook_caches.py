"""Caches of codes of codebooks: what is appended, and attention over them, on the CPU target."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import reference

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.attention.layouts import KeyLayouts, ValueLayouts
from lowlp.kernels.attention.spec import VERSIONS, AttentionSchedule, AttentionSpec, version_schedule
from lowlp.kernels.attention.stagger import masks
from lowlp.ops.attention import attention_by

BF16 = np.dtype(ml_dtypes.bfloat16)
VECTORS = {"cq-4": 2, "cq-2": 4}


def books_for(
    rng: np.random.Generator, kind: str, kv_heads: int, dim: int, entries: Any = np.float16, ordered: bool = False
) -> lowlp.KVCodebooks:
    vector = VECTORS[kind]
    books = rng.standard_normal((2, kv_heads, dim // vector, 256, vector)).astype(entries)
    return lowlp.KVCodebooks(books, rng.permutation(dim) if ordered else None)


def cache_of(kind: str, kv_heads: int, dim: int, seed: int = 0, **options: Any) -> lowlp.KVCache:
    of_books = {name: options.pop(name) for name in ("entries", "ordered") if name in options}
    books = books_for(np.random.default_rng(seed), kind, kv_heads, dim, **of_books)
    given = {"pages": 8, "page": 16, "kv_heads": kv_heads, "head_dim": dim, "dtype": kind, "codebooks": books}
    return lowlp.KVCache(**(given | options))


@pytest.mark.parametrize(
    ("kind", "dim", "source", "books"),
    [
        ("cq-4", 64, np.float16, {}),
        ("cq-2", 96, np.float32, {}),
        ("cq-2", 128, BF16, {"ordered": True, "entries": BF16}),
    ],
    ids=["cq-4", "cq-2", "ordered"],
)
def test_codes_are_those_of_the_nearest_entries(kind: str, dim: int, source: Any, books: Any) -> None:
    rng = np.random.default_rng(1)
    cache = cache_of(kind, 2, dim, pages=2, **books)
    assert cache.codebooks is not None
    fused = rng.standard_normal((5, 4, dim)).astype(source)
    k, v = fused[:, :2], fused[:, 2:]
    slots = np.array([20, 3, -1, 17, 0])
    lowlp.kv_append(cache, k, v, slots)
    for name, rows in (("keys", k), ("values", v)):
        stored, wanted = cache.codes()[name == "values"], cache.codebooks.encode(rows, name)
        assert stored.shape == (2, 2, 16, dim // VECTORS[kind])
        for token in (0, 1, 3, 4):
            assert (stored[slots[token] // 16, :, slots[token] % 16] == wanted[token]).all()
        assert np.count_nonzero(stored.any(axis=(1, 3))) == 4


@pytest.mark.parametrize(("kind", "dim"), [("cq-4", 128), ("cq-2", 96)])
def test_token_by_token_gives_the_bits_of_a_prompt(kind: str, dim: int) -> None:
    rng = np.random.default_rng(3)
    # More tokens than blocks, which then take several each.
    count = 40
    k, v = rng.standard_normal((2, count, 2, dim)).astype(np.float16)
    slots = rng.permutation(48)[:count]
    prompt, tokens = (cache_of(kind, 2, dim, pages=3, recent=8) for _ in range(2))
    lowlp.kv_append(prompt, k, v, slots)
    for token in range(count):
        lowlp.kv_append(tokens, k[token : token + 1], v[token : token + 1], slots[token : token + 1])
    for name, array in prompt.arrays().items():
        assert (array == tokens.arrays()[name]).all() and array.any()
    one = prompt.codes()[0][slots[5] // 16, :, slots[5] % 16]
    assert prompt.codebooks is not None and (one == prompt.codebooks.encode(k[5:6], "keys")[0]).all()


@pytest.mark.parametrize(("kind", "count"), [("cq-4", 3), ("cq-2", 40)])
def test_what_is_no_number_changes_no_other_group(kind: str, count: int) -> None:
    """By products all groups of a block share sums, in which infinity times zero would be no number."""
    rng = np.random.default_rng(4)
    k, v = rng.standard_normal((2, count, 1, 64)).astype(np.float16)
    caches = [cache_of(kind, 1, 64, pages=3) for _ in range(2)]
    lowlp.kv_append(caches[0], k, v, np.arange(count))
    k[1, 0, 5], v[2, 0, 40] = np.inf, np.nan
    lowlp.kv_append(caches[1], k, v, np.arange(count))
    for name, token, channel in ((0, 1, 5), (1, 2, 40)):
        before, after = (cache.codes()[name][0, 0] for cache in caches)
        group = channel // VECTORS[kind]
        after[token, group] = before[token, group]
        assert (before == after).all() and before.any()


def test_the_lowest_of_equally_near_entries() -> None:
    books = np.full((2, 1, 32, 256, 2), 8, np.float16)
    books[..., 9, :], books[..., 70, :], books[..., 200, :] = (0, 1), (1, 0), (0, 1)
    cache = lowlp.KVCache(pages=1, page=16, kv_heads=1, head_dim=64, dtype="cq-4", codebooks=lowlp.KVCodebooks(books))
    lowlp.kv_append(cache, *np.full((2, 1, 1, 64), 0.5, np.float16), np.array([7]))
    assert (cache.keys[0, 0, 7] == 9).all() and (cache.values[0, 0, 7] == 9).all()


# Cache, head_dim, page, kv_heads, group, tokens that ask, type of queries, options.
CASES: list[tuple[str, int, int, int, int, int, Any, dict[str, Any]]] = [
    ("cq-2", 128, 64, 1, 1, 3, BF16, {"window": 40}),
    ("cq-4", 64, 48, 1, 4, 1, BF16, {"recent": 20}),
    ("cq-2", 96, 32, 2, 1, 1, np.float16, {"sinks": True}),
    ("cq-4", 128, 16, 1, 2, 2, BF16, {"entries": BF16}),
    ("cq-2", 64, 32, 2, 2, 1, np.float16, {"ordered": True, "recent": 30}),
    ("cq-4", 192, 16, 1, 1, 1, BF16, {"ordered": True, "entries": BF16, "recent": 9}),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-d{case[1]}-page{case[2]}-{'-'.join(case[7])}")
def test_equals_float64_on_the_dequantised_cache(case: Any) -> None:
    kind, dim, page, kv_heads, group, queries, activation, options = case
    rng = np.random.default_rng(dim + page)
    lengths, width = [130, 0, 1, 77], -(-130 // page)
    given = dict(options)
    of_cache = {name: given.pop(name) for name in ("recent", "ordered", "entries") if name in given}
    recent = of_cache.get("recent", 0)
    cache = cache_of(kind, kv_heads, dim, pages=4 * width + 1, page=page, device="cpu", **of_cache)
    for name in ("keys", "values"):
        cache.arrays()[name][:] = rng.integers(0, 256, cache.arrays()[name].shape)
        if recent:
            kept = cache.arrays()[f"recent_{name}"]
            kept[:] = rng.standard_normal(kept.shape)
    table = rng.permutation(cache.pages)[: 4 * width].reshape(4, width).astype(np.int32)
    q = (3 * rng.standard_normal((4, queries, kv_heads * group, dim))).astype(activation)
    if options.get("sinks"):
        given["sinks"] = rng.standard_normal(kv_heads * group).astype(np.float32)
    o, lse = lowlp.attention_decode(q, cache, table, np.array(lengths, np.int32), return_lse=True, splits=2, **given)
    wanted, wanted_lse = reference(q, cache, table, lengths, **given)
    assert np.linalg.norm(o.astype(np.float64) - wanted) <= 2e-3 * np.linalg.norm(wanted)
    known = np.isfinite(wanted_lse)
    assert (np.isfinite(lse) == known).all() and np.abs(lse[known] - wanted_lse[known]).max() < 1e-4


@pytest.mark.parametrize(("kind", "passes"), [("cq-4", (2, 1)), ("cq-2", (1, 1))])
def test_lanes_of_a_phase_read_different_banks(kind: str, passes: tuple[int, int]) -> None:
    spec = AttentionSpec("f16", kind, 128, 1, 16, 1)
    schedule, entry_bytes = AttentionSchedule(warps=1), 2 * VECTORS[kind]
    held = KeyLayouts(spec, schedule, 8).slots, ValueLayouts(spec, schedule, spec.kind).loaded
    lanes = 128 // entry_bytes
    for layout, is_value, wanted in zip(held, (False, True), passes, strict=True):
        exchanged = masks(spec.kind, 128, 8 if is_value else 4)
        for local, first in itertools.product(range(layout.num_local), range(0, 32, lanes)):
            used: Counter[int] = Counter()
            for lane in range(first, first + lanes):
                _, token, group = layout(lane, local)
                x = sum((token & mask).bit_count() % 2 << bit for bit, mask in enumerate(exchanged))
                used[(group ^ x) % lanes] += 1
            assert max(used.values()) == wanted


def test_blocks_keep_their_books_for_several_sequences() -> None:
    """More sequences than blocks run at once, also some that are empty or shorter than all parts."""
    rng = np.random.default_rng(5)
    lengths = [33, 0, 200, 1, 64, 17, 150]
    cache = cache_of("cq-4", 1, 64, pages=7 * 13, device="cpu")
    for name in ("keys", "values"):
        cache.arrays()[name][:] = rng.integers(0, 256, cache.arrays()[name].shape)
    table = rng.permutation(7 * 13).reshape(7, 13).astype(np.int32)
    q = (3 * rng.standard_normal((7, 1, 5, 64))).astype(np.float16)
    o = lowlp.attention_decode(q, cache, table, np.array(lengths, np.int32), splits=3)
    wanted, _ = reference(q, cache, table, lengths)
    assert np.linalg.norm(o - wanted) <= 2e-3 * np.linalg.norm(wanted)
    alone = lowlp.attention_decode(q[2:3], cache, table[2:3], np.array([200], np.int32), splits=3)
    assert (alone[0] == o[2]).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kind", "version"), [*itertools.product(("cq-4", "cq-2"), VERSIONS)])
def test_versions_for_comparisons_compute_the_same(kind: str, version: str) -> None:
    rng = np.random.default_rng(8)
    lengths, q = [150, 0, 40], (3 * rng.standard_normal((3, 1, 2, 128))).astype(np.float16)
    cache = cache_of(kind, 1, 128, pages=30, device="cpu")
    for name in ("keys", "values"):
        cache.arrays()[name][:] = rng.integers(0, 256, cache.arrays()[name].shape)
    table = rng.permutation(30).reshape(3, 10).astype(np.int32)
    run = attention_by(lambda spec: version_schedule(spec, version), q, cache, table, np.array(lengths, np.int32))
    wanted, _ = reference(q, cache, table, lengths)
    assert np.linalg.norm(run() - wanted) <= 2e-3 * np.linalg.norm(wanted)


def test_versions_that_there_are_none_of() -> None:
    with pytest.raises(LowlpValueError, match="version: must be one of gc, sc, o1, o2, o3, o4, got 'o5'"):
        version_schedule(AttentionSpec("f16", "cq-4", 128, 1, 16, 1), "o5")
    with pytest.raises(LowlpValueError, match="version: takes codebooks of up to 128 channels"):
        version_schedule(AttentionSpec("f16", "int4", 128, 1, 16, 1), "gc")


def test_tokens_are_appended_in_f16_too() -> None:
    rng = np.random.default_rng(2)
    cache = cache_of("cq-2", 1, 64, recent=4, recent_pages=1)
    k, v = rng.standard_normal((2, 3, 1, 64)).astype(np.float32)
    lowlp.kv_append(cache, k, v, np.arange(3) + 40, recent_slots=np.array([5, -1, 2]))
    kept = cache.arrays()["recent_values"][0, 0]
    assert (kept[[5, 2]] == v[[0, 2], 0].astype(np.float16)).all() and np.count_nonzero(kept.any(axis=1)) == 2
    assert cache.values[2, 0, 8:11].any(axis=1).all()
    assert cache.nbytes == sum(array.nbytes for array in cache.arrays().values())


def test_queries_of_bf16_go_with_codebooks_of_bf16() -> None:
    cache = cache_of("cq-2", 1, 64, entries=BF16, device="cpu")
    table, lengths = np.zeros((1, 1), np.int32), np.ones(1, np.int32)
    with pytest.raises(LowlpTypeError, match="q: expected bfloat16, got float16"):
        lowlp.attention_decode(np.zeros((1, 1, 64), np.float16), cache, table, lengths)


OTHER = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("codebooks", "kind", "message"),
    [
        (None, LowlpTypeError, "codebooks: a cache of cq-4 takes a KVCodebooks, .* got NoneType"),
        (
            books_for(OTHER, "cq-2", 2, 64),
            LowlpValueError,
            r"codebooks: .*\[2, 2, 32, 256, 2\].*got \[2, 2, 16, 256, 4\]",
        ),
        (books_for(OTHER, "cq-4", 1, 64), LowlpValueError, r"codebooks: .*got \[2, 1, 32, 256, 2\]"),
    ],
    ids=["missing", "vectors", "heads"],
)
def test_errors_of_codebooks(codebooks: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        cache_of("cq-4", 2, 64, codebooks=codebooks)
