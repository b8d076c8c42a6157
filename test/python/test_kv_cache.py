"""`lowlp.KVCache` and `lowlp.kv_append` on the CPU target."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.attention.spec import CACHE_TYPES, HEAD_DIMS

BF16 = np.dtype(ml_dtypes.bfloat16)
SCALARS = [name for name, kind in CACHE_TYPES.items() if not kind.vector]


def quantised(rows: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray | None]:
    """What a row is after rounding to codes, in float32, and its scale, by the definition."""
    if not CACHE_TYPES[kind].is_coded:
        return rows.astype(np.float16 if kind == "f16" else BF16).astype(np.float32), None
    largest = np.float32(CACHE_TYPES[kind].largest)
    scales = (np.abs(rows).max(axis=-1, keepdims=True) / largest).astype(np.float16)
    exact = scales.astype(np.float32)
    codes = np.clip(np.divide(rows, exact, where=exact != 0, out=np.zeros_like(rows)), -largest, largest)
    codes = codes.astype(ml_dtypes.float8_e4m3fn).astype(np.float32) if kind == "f8e4m3" else np.rint(codes)
    return codes * exact, scales[..., 0]


@pytest.mark.parametrize("kind", SCALARS)
@pytest.mark.parametrize("dim", HEAD_DIMS)
def test_codes_and_scales_are_numpys(kind: str, dim: int) -> None:
    rng = np.random.default_rng(dim)
    cache = lowlp.KVCache(pages=3, page=16, kv_heads=3, head_dim=dim, dtype=kind)
    k, v = rng.standard_normal((2, 9, 3, dim)).astype(np.float32)
    k[1], k[2], v[3] = 0, k[2] * np.float32(1e-6), v[3] * 1000
    slots = rng.permutation(48)[:9]
    slots[4] = -1
    lowlp.kv_append(cache, k, v, slots)
    for rows, stored, scales in zip((k, v), cache.dequantize(), (cache.key_scales, cache.value_scales), strict=True):
        wanted, wanted_scales = quantised(rows, kind)
        for token, slot in enumerate(slots):
            if slot >= 0:
                assert (stored[slot // 16, :, slot % 16] == wanted[token]).all()
                assert scales is None or (scales[slot // 16, :, slot % 16] == wanted_scales[token]).all()
        assert np.count_nonzero(stored.any(axis=(1, 3))) <= 8


@pytest.mark.parametrize("source", [np.float16, BF16, np.float32], ids=lambda kind: np.dtype(kind).name)
def test_token_by_token_gives_the_bits_of_a_prompt(source: Any) -> None:
    rng = np.random.default_rng(0)
    # Keys and values as they lie in the rows of a fused projection.
    fused = rng.standard_normal((20, 5, 64)).astype(source)
    k, v = fused[:, 1:3], fused[:, 3:]
    slots = rng.permutation(32)[:20].astype(np.int32)
    prompt, tokens = (lowlp.KVCache(pages=2, page=16, kv_heads=2, head_dim=64, dtype="int4") for _ in range(2))
    lowlp.kv_append(prompt, k, v, slots)
    for token in range(20):
        lowlp.kv_append(tokens, k[token : token + 1], v[token : token + 1], slots[token : token + 1])
    for name, array in prompt.arrays().items():
        assert (array.view(np.uint8) == tokens.arrays()[name].view(np.uint8)).all()
        assert array.any()


@pytest.mark.parametrize(("kind", "largest"), [("f8e4m3", 1.33e-5), ("int8", 3.78e-6), ("int4", 2.08e-7)])
def test_rows_too_small_for_a_scale_are_zeros(kind: str, largest: float) -> None:
    rows = np.full((2, 1, 64), largest, np.float32) * np.array([0.99, 1.02], np.float32)[:, None, None]
    cache = lowlp.KVCache(pages=1, page=16, kv_heads=1, head_dim=64, dtype=kind)
    lowlp.kv_append(cache, rows, rows, np.arange(2))
    assert all((stored[0, 0, 0] == 0).all() and (stored[0, 0, 1] > 0).all() for stored in cache.dequantize())


def test_bytes_are_what_the_arrays_take() -> None:
    for kind in SCALARS:
        recent = {"recent": 64, "recent_pages": 2} if kind.startswith("int") else {}
        cache = lowlp.KVCache(pages=3, page=48, kv_heads=2, head_dim=96, dtype=kind, device="cpu", **recent)
        assert cache.nbytes == sum(array.nbytes for array in cache.arrays().values())


def make(**change: Any) -> lowlp.KVCache:
    return lowlp.KVCache(**({"pages": 2, "page": 16, "kv_heads": 2, "head_dim": 64, "dtype": "int8"} | change))


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"pages": 0}, LowlpValueError, r"pages: must be in 1\.\."),
        ({"pages": 2**30}, LowlpValueError, "pages: pages [*] page [*] kv_heads must be at most"),
        ({"page": 8}, LowlpValueError, "page: must be 16 or 32 or .* got 8"),
        ({"page": True}, LowlpTypeError, "page: expected an int, got True"),
        ({"head_dim": 80}, LowlpValueError, "head_dim: must be 64 or 96 or 128 or 192 or 256, got 80"),
        ({"dtype": "int3"}, LowlpValueError, "dtype: must be one of f16, bf16, .* int4, cq-4, cq-2, got 'int3'"),
        ({"codebooks": np.zeros(1)}, LowlpValueError, "codebooks: a cache of int8 has none, got ndarray"),
        ({"recent": 129}, LowlpValueError, r"recent: must be in 0\.\.128, got 129"),
        (
            {"recent": 16, "dtype": "f16"},
            LowlpValueError,
            "recent: must be 0 for a cache of f16, which has no codes, got 16",
        ),
        ({"recent": 1.0}, LowlpTypeError, "recent: expected an int, got 1.0"),
        ({"recent_pages": 2}, LowlpValueError, "recent_pages: goes with recent, which is 0; got 2"),
        ({"device": "tpu"}, LowlpValueError, "device: must be 'cpu',? or a CUDA device"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_errors_of_caches(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make(**change)


ROWS = np.zeros((3, 2, 64), np.float16)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"cache": None}, LowlpTypeError, "cache: expected a KVCache, got NoneType"),
        ({"k": ROWS.astype(np.float64)}, LowlpTypeError, "k: expected float16, bfloat16 or float32, got float64"),
        ({"v": ROWS.astype(BF16)}, LowlpTypeError, "v: must be of the type of k, float16, got bfloat16"),
        ({"k": ROWS[:, :1]}, LowlpValueError, r"k: must have shape \[T, 2, 64\], got \(3, 1, 64\)"),
        ({"v": ROWS[:2]}, LowlpValueError, "v: must have as many tokens as k, 3, got 2"),
        ({"slots": np.zeros(3)}, LowlpTypeError, "slots: expected int32 or int64, got float64"),
        ({"slots": np.zeros(2, np.int32)}, LowlpValueError, r"slots: must have shape \(3,\), got \(2,\)"),
        ({"slots": np.array([0, 1, 32])}, LowlpValueError, "slots: must be less than pages [*] page = 32, got 32"),
        ({"slots": np.array([0, 1, 1])}, LowlpValueError, "slots: must be all different"),
        ({"stream": 1}, LowlpValueError, "stream: allowed for CUDA tensors only, and k is on the CPU"),
        ({"recent_slots": np.arange(3)}, LowlpValueError, "recent_slots: goes with recent_pages, got ndarray"),
        ({"cache": make(recent=8, recent_pages=1)}, LowlpValueError, "recent_slots: expected, as the cache has"),
        (
            {"cache": make(recent=8, recent_pages=1), "recent_slots": np.array([0, 1, 16])},
            LowlpValueError,
            "recent_slots: must be less than recent_pages [*] page = 16, got 16",
        ),
    ],
    ids=lambda value: str(value)[:20],
)
def test_errors_of_appending(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments = {"cache": make(), "k": ROWS, "v": ROWS, "slots": np.arange(3)}
    with pytest.raises(kind, match=message):
        lowlp.kv_append(**(arguments | change))


def test_fields_of_records_are_appended_as_they_are() -> None:
    """Their rows lie no whole number of elements apart, and may begin at an odd address."""
    rows = np.random.default_rng(4).standard_normal((2, 3, 2, 64)).astype(np.float16)
    records = np.zeros(3, [("k", "f2", (2, 64)), ("byte", "u1"), ("v", "f2", (2, 64))])
    records["k"], records["v"] = rows
    cache, wanted = make(), make()
    lowlp.kv_append(cache, records["k"], records["v"], np.arange(3))
    lowlp.kv_append(wanted, *rows, np.arange(3))
    assert all((cache.arrays()[name] == array).all() for name, array in wanted.arrays().items())


def test_a_cache_without_memory_says_so() -> None:
    with pytest.raises(LowlpValueError, match="cache: has no memory yet"):
        make().dequantize()


def test_books_that_cannot_be_written_to_are_uploaded_without_a_warning() -> None:
    pytest.importorskip("torch")
    books = np.random.default_rng(1).standard_normal((2, 2, 16, 256, 4)).astype(np.float16)
    cache = lowlp.KVCache(
        pages=1, page=16, kv_heads=2, head_dim=64, dtype="cq-2", codebooks=lowlp.KVCodebooks(books), device="cpu"
    )
    turned = cache.books_in_turn()
    turned.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(cache._uploaded(turned).numpy(), turned)
