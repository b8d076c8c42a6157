"""`lowlp.attention_decode` on the CPU target, with all of its checks, against float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_reference import filled_cache, reference

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.attention.spec import CACHE_TYPES

BF16 = np.dtype(ml_dtypes.bfloat16)
LENGTHS = [130, 0, 1, 77]

# Cache, head_dim, page, kv_heads, group, tokens that ask, type of queries, options.
CASES: list[tuple[str, int, int, int, int, int, Any, dict[str, Any]]] = [
    ("f16", 128, 16, 2, 4, 1, np.float16, {}),
    ("f16", 96, 48, 1, 1, 4, BF16, {"window": 40}),
    ("f16", 256, 64, 1, 8, 4, np.float16, {"sinks": True}),
    ("bf16", 64, 32, 2, 8, 2, BF16, {"softcap": 1.5, "sinks": True}),
    ("bf16", 192, 128, 1, 1, 2, BF16, {}),
    ("f8e4m3", 128, 64, 2, 1, 3, np.float16, {"window": 1}),
    ("f8e4m3", 64, 16, 1, 4, 1, BF16, {}),
    ("int8", 192, 16, 1, 4, 1, np.float16, {"softcap": 0.5}),
    ("int8", 64, 112, 2, 8, 4, BF16, {"window": 70, "sinks": True}),
    ("int4", 128, 128, 2, 4, 1, np.float16, {"sinks": True}),
    ("int4", 96, 16, 1, 1, 1, np.float16, {}),
    ("int4", 64, 32, 1, 8, 4, BF16, {"window": 33, "softcap": 2.0, "sinks": True}),
]


def names_of(case: Any) -> str:
    return f"{case[0]}-d{case[1]}-page{case[2]}-group{case[4]}-queries{case[5]}-{'-'.join(case[7])}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES, ids=names_of)
def test_equals_float64_on_the_dequantised_cache(case: Any) -> None:
    kind, dim, page, kv_heads, group, queries, activation, options = case
    rng = np.random.default_rng(dim + page)
    cache, table = filled_cache(rng, LENGTHS, dtype=kind, head_dim=dim, page=page, kv_heads=kv_heads)
    q = (3 * rng.standard_normal((len(LENGTHS), queries, kv_heads * group, dim))).astype(activation)
    given = dict(options)
    if options.get("sinks"):
        given["sinks"] = rng.standard_normal(kv_heads * group).astype(np.float32)
    o, lse = lowlp.attention_decode(q, cache, table, np.array(LENGTHS, np.int32), return_lse=True, **given)
    wanted, wanted_lse = reference(q, cache, table, LENGTHS, **given)
    assert o.dtype == activation
    assert np.linalg.norm(o.astype(np.float64) - wanted) <= 2e-3 * np.linalg.norm(wanted)
    assert (np.isneginf(lse) == np.isneginf(wanted_lse)).all()
    known = np.isfinite(wanted_lse)
    assert np.abs(lse[known] - wanted_lse[known]).max() < 1e-4


def test_any_number_of_parts_and_more_than_are_merged_at_once() -> None:
    rng = np.random.default_rng(0)
    lengths = [1300, 640]
    cache, table = filled_cache(rng, lengths, dtype="f16", head_dim=64, page=64, kv_heads=1)
    q = rng.standard_normal((2, 4, 64)).astype(np.float16)
    wanted, _ = reference(q[:, None], cache, table, lengths)
    for splits in (1, 2, 7, 21):
        o = lowlp.attention_decode(q, cache, table, np.array(lengths, np.int32), splits=splits)
        assert np.linalg.norm(o - wanted[:, 0]) <= 1e-3 * np.linalg.norm(wanted)


def test_a_sequence_has_the_same_bits_alone_on_other_pages_and_beside_others() -> None:
    rng = np.random.default_rng(1)
    cache, table = filled_cache(rng, [300, 90], dtype="int8", head_dim=64, page=32, kv_heads=1)
    q = rng.standard_normal((2, 4, 64)).astype(np.float16)
    both = lowlp.attention_decode(q, cache, table, np.array([300, 90], np.int32), splits=3)
    short = lowlp.attention_decode(q, cache, table, np.array([300, 17], np.int32), splits=3)
    order = rng.permutation(cache.pages)
    for array in cache.arrays().values():
        array[order] = array.copy()
    alone = lowlp.attention_decode(q[:1], cache, order[table[:1]].astype(np.int32), np.array([300], np.int32), splits=3)
    assert (both[0] == short[0]).all()
    assert (both[0] == alone[0]).all()


@pytest.mark.parametrize(
    ("kind", "recent", "queries", "window"), [("int4", 40, 3, None), ("f8e4m3", 128, 1, 90), ("int8", 16, 1, None)]
)
def test_the_newest_tokens_are_taken_in_f16(kind: str, recent: int, queries: int, window: int | None) -> None:
    rng = np.random.default_rng(4)
    lengths = [150, 3, 0, 65]
    options = {"dtype": kind, "head_dim": 64, "page": 32, "kv_heads": 2, "recent": recent}
    cache, table = filled_cache(rng, lengths, **options)
    q = (3 * rng.standard_normal((4, queries, 4, 64))).astype(np.float16)
    o = lowlp.attention_decode(q, cache, table, np.array(lengths, np.int32), window=window, splits=2)
    wanted, _ = reference(q, cache, table, lengths, window)
    assert np.linalg.norm(o - wanted) <= 2e-3 * np.linalg.norm(wanted)


def test_tokens_in_f16_may_have_pages_of_their_own() -> None:
    rng = np.random.default_rng(5)
    cache = lowlp.KVCache(pages=4, page=16, kv_heads=1, head_dim=64, dtype="int4", recent=10, recent_pages=2)
    k, v = rng.standard_normal((2, 60, 1, 64)).astype(np.float16)
    slots = np.arange(60, dtype=np.int32)
    # The newest tokens, 50 to 59, lie in pages 3 and 4 of the sequence, which are pages 1 and 0 in f16.
    kept = np.where(slots < 44, -1, np.where(slots < 48, 16 + slots % 16, slots % 16)).astype(np.int32)
    lowlp.kv_append(cache, k, v, slots, recent_slots=kept)
    table = np.arange(4, dtype=np.int32)[None]
    recent_table = np.array([[-1, -1, 1, 0]], np.int32)
    q = (3 * rng.standard_normal((1, 1, 2, 64))).astype(np.float16)
    o = lowlp.attention_decode(q, cache, table, np.array([60], np.int32), recent_table=recent_table)
    wanted, _ = reference(q, cache, table, [60], recent_table=recent_table)
    assert np.linalg.norm(o - wanted) <= 2e-3 * np.linalg.norm(wanted)


def test_small_values_keep_their_precision() -> None:
    rng = np.random.default_rng(2)
    cache = lowlp.KVCache(pages=4, page=16, kv_heads=1, head_dim=64, dtype="int4")
    k, v = rng.standard_normal((2, 64, 1, 64)).astype(np.float32)
    lowlp.kv_append(cache, k, v * np.float32(1e-4), np.arange(64))
    q = rng.standard_normal((1, 1, 64)).astype(np.float16)
    table = np.arange(4, dtype=np.int32)[None]
    o = lowlp.attention_decode(q.astype(BF16), cache, table, np.array([64], np.int32))
    wanted, _ = reference(q[:, None].astype(BF16), cache, table, [64])
    assert np.linalg.norm(o.astype(float) - wanted[:, 0]) <= 2e-3 * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("kind", "dim", "group"), [("cq-2", 64, 5), ("cq-4", 64, 9), ("cq-4", 128, 7), ("int4", 64, 17)]
)
def test_query_heads_leave_columns_free(kind: str, dim: int, group: int) -> None:
    rng, options = np.random.default_rng(group), {}
    if vector := CACHE_TYPES[kind].vector:
        options["codebooks"] = lowlp.KVCodebooks(
            rng.standard_normal((2, 1, dim // vector, 256, vector)).astype(np.float16)
        )
    cache, table = filled_cache(rng, LENGTHS, dtype=kind, head_dim=dim, page=64, kv_heads=1, **options)
    q = rng.standard_normal((len(LENGTHS), 1, group, dim)).astype(np.float16)
    o = lowlp.attention_decode(q, cache, table, np.array(LENGTHS, np.int32))
    wanted, _ = reference(q, cache, table, LENGTHS)
    assert np.linalg.norm(o - wanted) <= 1e-3 * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("kind", "step"), [("f16", 0.005), ("f16", 0.03), ("f16", 0.3), ("bf16", 0.03), ("int8", 0.03)]
)
def test_scores_that_rise_raise_their_reference_in_time(kind: str, step: float) -> None:
    """With 16 queries as rows weights may reach 2^8 before the score that they refer to is raised. Here scores of a
    warp's next tile of tokens, 128 later, are higher by up to 1, 6 and 55 powers of 2. NaN stays in its row."""
    rng, length = np.random.default_rng(5), 1600
    cache = lowlp.KVCache(pages=100, page=16, kv_heads=1, head_dim=64, dtype=kind, device="cpu")
    keys, values = np.zeros((length, 1, 64), np.float32), rng.standard_normal((length, 1, 64)).astype(np.float32)
    keys[:, 0, 0] = step * np.arange(length)
    values *= 2.0 ** rng.integers(-6, 7, (length, 1, 1))
    lowlp.kv_append(cache, keys, values, np.arange(length, dtype=np.int32))
    q = np.zeros((1, 16, 64), BF16 if kind == "bf16" else np.float16)
    q[0, :, 0] = np.linspace(-8, 8, 16)
    q[0, 5, 0] = np.nan
    table = np.arange(100, dtype=np.int32)[None]
    o, lse = lowlp.attention_decode(q, cache, table, np.array([length], np.int32), splits=1, return_lse=True)
    wanted, wanted_lse = (part[0, 0] for part in reference(q[:, None], cache, table, [length]))
    assert np.isnan(o[0, 5].astype(np.float32)).all()
    others = np.arange(16) != 5
    found = o[0].astype(np.float64)
    assert np.linalg.norm((found - wanted)[others]) <= 2e-3 * np.linalg.norm(wanted[others])
    assert np.abs(lse[0] - wanted_lse)[others].max() < 1e-5 * np.abs(wanted_lse[others]).max()


def test_sinks_of_infinity_leave_nothing_or_all() -> None:
    rng = np.random.default_rng(6)
    cache, table = filled_cache(rng, [40], dtype="f16", head_dim=64, page=16, kv_heads=1)
    q, lengths = rng.standard_normal((1, 4, 64)).astype(np.float16), np.array([40], np.int32)
    plain, plain_lse = lowlp.attention_decode(q, cache, table, lengths, return_lse=True)
    sinks = np.array([np.inf, -np.inf, np.inf, -np.inf], np.float32)
    o, lse = lowlp.attention_decode(q, cache, table, lengths, sinks=sinks, return_lse=True)
    assert (o[0, ::2] == 0).all() and np.isposinf(lse[0, ::2]).all()
    assert (o[0, 1::2] == plain[0, 1::2]).all() and (lse[0, 1::2] == plain_lse[0, 1::2]).all()


def test_queries_and_tables_may_have_strides() -> None:
    rng = np.random.default_rng(3)
    cache, table = filled_cache(rng, [40, 20], dtype="f16", head_dim=64, page=16, kv_heads=2)
    lengths = np.array([40, 20], np.int32)
    fused = rng.standard_normal((2, 3, 8, 64)).astype(np.float16)
    wide = np.full((2, 9), -1, np.int32)
    wide[:, : table.shape[1]] = table
    plain = lowlp.attention_decode(np.ascontiguousarray(fused[:, :, :4]), cache, table, lengths)
    assert (lowlp.attention_decode(fused[:, :, :4], cache, wide[:, : table.shape[1]], lengths) == plain).all()
    odd = fused.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3)[:, :, :4]
    assert (lowlp.attention_decode(odd, cache, table, lengths) == plain).all()
    # Fields of records lie no whole number of elements apart.
    records = np.zeros(2, [("q", "f2", (4, 64)), ("byte", "u1")])
    records["q"] = fused[:, 0, :4]
    plain = lowlp.attention_decode(records["q"].copy(), cache, table, lengths)
    assert (lowlp.attention_decode(records["q"], cache, table, lengths) == plain).all()


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"cache": 1}, LowlpTypeError, "cache: expected a KVCache, got int"),
    ({"q": np.zeros((1, 4, 64), np.float32)}, LowlpTypeError, "q: expected float16 or bfloat16, got float32"),
    ({"q": np.zeros((1, 4, 32), np.float16)}, LowlpValueError, "q: must have shape .*64.*got .1, 4, 32"),
    ({"q": np.zeros((1, 3, 64), np.float16)}, LowlpValueError, "q: heads must be a multiple of the cache's 2, got 3"),
    ({"q": np.zeros((1, 0, 4, 64), np.float16)}, LowlpValueError, "q: must have at least one token"),
    ({"block_table": np.zeros((1, 2), np.int64)}, LowlpTypeError, "block_table: expected int32, got int64"),
    ({"block_table": np.zeros((2, 2), np.int32)}, LowlpValueError, r"block_table: must have shape \[1, width\]"),
    ({"block_table": np.zeros((1, 0), np.int32)}, LowlpValueError, "block_table: .*width 0"),
    ({"block_table": np.full((1, 2), 9, np.int32)}, LowlpValueError, r"block_table\[0, 0\]: must be in 0..3.*got 9"),
    ({"lengths": np.array([33], np.int32)}, LowlpValueError, r"lengths\[0\]: must be in 0..32 .*got 33"),
    ({"lengths": np.array([-1], np.int32)}, LowlpValueError, r"lengths\[0\]: must be in 0..32 .*got -1"),
    ({"q": None}, LowlpTypeError, "q: expected a numpy array .* got NoneType"),
    ({"lengths": None}, LowlpTypeError, "lengths: expected a numpy array .* got NoneType"),
    ({"scale": float("nan")}, LowlpValueError, "scale: must be finite in float32, got nan"),
    ({"scale": 10**400}, LowlpValueError, "scale: must be finite in float32, got 1000"),
    ({"softcap": 0.0}, LowlpValueError, "softcap: must be finite in float32 and more than 0, got 0"),
    ({"softcap": 1e300}, LowlpValueError, "softcap: must be finite in float32 .*got 1e[+]300"),
    ({"window": 0}, LowlpValueError, r"window: must be in 1\.\."),
    ({"window": 1.5}, LowlpTypeError, "window: expected an int, got 1.5"),
    ({"sinks": np.zeros(3, np.float32)}, LowlpValueError, r"sinks: must have shape \(4,\), got \(3,\)"),
    ({"sinks": np.zeros(4, np.float64)}, LowlpTypeError, "sinks: expected float16 or bfloat16 or float32"),
    ({"return_lse": 1}, LowlpTypeError, "return_lse: expected a bool, got 1"),
    ({"splits": 65}, LowlpValueError, r"splits: must be in 1\.\.64, got 65"),
    ({"stream": 1}, LowlpValueError, "stream: allowed for CUDA tensors only"),
    ({"recent_table": np.zeros((1, 2), np.int32)}, LowlpValueError, "recent_table: goes with recent_pages"),
]


@pytest.mark.parametrize(("change", "kind", "message"), WRONG, ids=lambda value: str(value)[:30])
def test_errors_name_the_argument(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {
        "q": np.zeros((1, 4, 64), np.float16),
        "cache": lowlp.KVCache(pages=4, page=16, kv_heads=2, head_dim=64, dtype="f16", device="cpu"),
        "block_table": np.zeros((1, 2), np.int32),
        "lengths": np.array([5], np.int32),
    }
    with pytest.raises(kind, match=message):
        lowlp.attention_decode(**(arguments | change))


def test_a_cache_of_bf16_takes_queries_of_bf16_only() -> None:
    cache = lowlp.KVCache(pages=1, page=16, kv_heads=1, head_dim=64, dtype="bf16", device="cpu")
    table, lengths = np.zeros((1, 1), np.int32), np.ones(1, np.int32)
    with pytest.raises(LowlpTypeError, match="q: expected bfloat16, got float16"):
        lowlp.attention_decode(np.zeros((1, 1, 64), np.float16), cache, table, lengths)


def test_an_empty_batch_gives_an_empty_result() -> None:
    cache = lowlp.KVCache(pages=1, page=16, kv_heads=1, head_dim=64, dtype="f16", device="cpu")
    q = np.zeros((0, 2, 64), np.float16)
    assert lowlp.attention_decode(q, cache, np.zeros((0, 1), np.int32), np.zeros(0, np.int32)).shape == (0, 2, 64)


def test_a_cap_that_no_score_reaches() -> None:
    """Kernels multiply it by log2(e), which may be more than float32 has."""
    cache = lowlp.KVCache(pages=1, page=16, kv_heads=1, head_dim=64, dtype="f16")
    q = np.random.default_rng(3).standard_normal((1, 1, 64)).astype(np.float16)
    lowlp.kv_append(cache, q, q, np.arange(1))
    y = lowlp.attention_decode(q, cache, np.zeros((1, 1), np.int32), np.ones(1, np.int32), softcap=3e38)
    np.testing.assert_allclose(np.asarray(y, np.float32), q, rtol=2e-3, atol=1e-3)
