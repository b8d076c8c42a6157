"""Codebooks of caches: learnt by head and group of channels, and the codes that tokens get with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lowlp import KVCodebooks, kv_codebooks, vq
from lowlp.errors import LowlpTypeError, LowlpValueError

TOKENS, HEADS, HEAD_DIM = 400, 2, 8
GENERATOR = np.random.default_rng(3)


def batch(seed: int) -> np.ndarray:
    """Keys whose channels i and i + 4 are rotated together as by RoPE, which keeps their radius."""
    generator = np.random.default_rng(seed)
    angle = generator.uniform(0, 2 * np.pi, (TOKENS, HEADS, HEAD_DIM // 2))
    radius = np.array([1, 2, 2, 3]) * generator.normal(1, 0.05, angle.shape)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], 2).astype(np.float16)


KEYS, VALUES = batch(1), GENERATOR.normal(size=(TOKENS, HEADS, HEAD_DIM)).astype(np.float32)
BOOKS = kv_codebooks(KEYS, VALUES, vq(2, 4))
PAIRS = [0, 4, 1, 5, 2, 6, 3, 7]


def error(books: KVCodebooks, x: np.ndarray, kind: str) -> float:
    difference = books.decode(books.encode(x, kind), kind) - x.astype(np.float32)
    return float(np.linalg.norm(difference) / np.linalg.norm(x.astype(np.float32)))


@pytest.mark.parametrize("kind", ["keys", "values"])
def test_codes_are_those_of_the_nearest_entries(kind: str) -> None:
    x = (batch(2) if kind == "keys" else VALUES)[:50].astype(np.float64)
    codes = BOOKS.encode(x, kind)
    assert codes.dtype == np.uint8 and codes.shape == (50, HEADS, 4)
    book = BOOKS.books[["keys", "values"].index(kind)].astype(np.float64)
    distances = ((x.reshape(50, HEADS, 4, 1, 2) - book) ** 2).sum(-1)
    assert (distances.argmin(-1) == codes).all()
    decoded = BOOKS.decode(codes, kind)
    assert (decoded[7, 1, 4:6] == BOOKS.books[["keys", "values"].index(kind), 1, 2, codes[7, 1, 2]]).all()


def test_channels_that_go_together_are_cheaper_together() -> None:
    ordered = kv_codebooks(KEYS, VALUES, vq(2, 4), channel_order=PAIRS)
    held_out = batch(2)
    assert error(ordered, held_out, "keys") < 0.7 * error(BOOKS, held_out, "keys")
    permuted = kv_codebooks(KEYS[:, :, PAIRS], VALUES[:, :, PAIRS], vq(2, 4))
    assert (permuted.books == ordered.books).all()
    assert (permuted.encode(KEYS[:, :, PAIRS], "keys") == ordered.encode(KEYS, "keys")).all()


def test_importance_of_channels() -> None:
    importance = np.ones((HEADS, HEAD_DIM))
    importance[:, 1::2] = 1e-3
    found = kv_codebooks(KEYS, VALUES, vq(2, 3), importance=(None, importance))
    plain = kv_codebooks(KEYS, VALUES, vq(2, 3))
    assert (found.books[0] == plain.books[0]).all()
    spread = [np.abs(np.diff(np.sort(books.books[1, 0, 0, :, 0].astype(np.float64)))).max() for books in (found, plain)]
    assert spread[0] != spread[1]
    by_token = np.broadcast_to(importance, VALUES.shape)
    assert (kv_codebooks(KEYS, VALUES, vq(2, 3), (None, by_token)).books == found.books).all()


def test_the_same_bits_in_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from lowlp.numeric.vector_ops import TorchVectorOps
    from lowlp.weights.quantize import kv_codebooks as module

    on_cpu = BOOKS.encode(torch.from_numpy(KEYS), "keys")
    assert torch.is_tensor(on_cpu) and (on_cpu.numpy() == BOOKS.encode(KEYS, "keys")).all()
    monkeypatch.setattr(module, "library_of", lambda array, _: (TorchVectorOps("cpu"), array))
    keys, values = torch.from_numpy(KEYS[:, :, :4]), torch.from_numpy(VALUES[:, :, :4])
    found = kv_codebooks(keys, values, vq(2, 4), (np.ones((HEADS, 4)), None))
    monkeypatch.undo()
    expected = kv_codebooks(keys.numpy(), values.numpy(), vq(2, 4), (np.ones((HEADS, 4)), None))
    assert found.books.tobytes() == expected.books.tobytes()


MISTAKES: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (
        LowlpValueError,
        r"values: expected the shape of keys, \[400, 2, 8\], got \[400, 2, 4\]",
        {"values": VALUES[..., :4]},
    ),
    (LowlpTypeError, "keys: expected float16, .*, got int64", {"keys": np.ones((4, 1, 2), np.int64)}),
    (LowlpValueError, r"keys: expected shape \[tokens, heads, head_dim\], got \[8, 8\]", {"keys": np.ones((8, 8))}),
    (LowlpValueError, "keys: head_dim must be a multiple of the 16 channels", {"vq": vq(16, 2)}),
    (LowlpValueError, "values: must be finite", {"values": np.full(VALUES.shape, np.inf)}),
    (LowlpValueError, "vq: a cache has one book of f16 or bf16", {"vq": vq(2, 2, 2)}),
    (LowlpValueError, "channel_order: must name each of the 8 channels", {"channel_order": [0] * 8}),
    (LowlpValueError, "seed: must be an int of at least 0, got -1", {"seed": -1}),
    (LowlpTypeError, r"vq: expected what lowlp\.vq", {"vq": 4}),
    (LowlpTypeError, "importance: expected a pair", {"importance": np.ones((HEADS, HEAD_DIM))}),
    (LowlpValueError, r"importance: expected shape \[2, 8\] or .* for keys", {"importance": (np.ones(8), None)}),
    (LowlpValueError, "importance: must be finite and at least 0, got -1", {"importance": (None, -np.ones((2, 8)))}),
    (LowlpValueError, "importance: must not be 0 everywhere", {"importance": (None, np.zeros((2, 8)))}),
]


@pytest.mark.parametrize(("kind", "text", "wrong"), MISTAKES, ids=lambda value: str(value)[:30])
def test_mistakes(kind: type[Exception], text: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(kind, match=text):
        kv_codebooks(**{"keys": KEYS, "values": VALUES, "vq": vq(2, 2), **wrong})


def test_mistakes_in_use() -> None:
    with pytest.raises(LowlpValueError, match=r"x: expected shape \[\.\.\., 2, 8\], got \[3, 8\]"):
        BOOKS.encode(np.ones((3, 8)), "keys")
    with pytest.raises(LowlpValueError, match="kind: must be one of keys, values, got 'key'"):
        BOOKS.encode(KEYS, "key")
    with pytest.raises(LowlpValueError, match=r"codes: must be in 0\.\.15, got 16"):
        BOOKS.decode(np.full((1, HEADS, 4), 16), "keys")
    with pytest.raises(LowlpValueError, match=r"books: expected shape \[2, heads, groups, 2\*\*bits, vector\]"):
        KVCodebooks(np.zeros((2, 1, 1, 3, 2), np.float16))
    with pytest.raises(LowlpValueError, match="books: must be finite"):
        KVCodebooks(np.full((2, 1, 1, 4, 2), np.nan, np.float16))
