"""Codebooks that `quantize_vectors` learns: their errors, what is nearest, and the same bits in PyTorch."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from lowlp.errors import LowlpValueError
from lowlp.numeric.vector_ops import NumpyVectorOps
from lowlp.weights.quantize.codebooks import BookShape, VectorCodes, quantize_vectors, values_of
from lowlp.weights.quantize.k_means import BookLearner
from lowlp.weights.quantize.vector_search import VectorSearch

GENERATOR = np.random.default_rng(7)
GAUSSIAN = GENERATOR.normal(0, 0.02, (256, 512)).astype(np.float32)
SMALL = GENERATOR.normal(size=(40, 96)).astype(np.float32)


def quantized(w: Any, vector: int, bits: int, books: int = 1, entries: str = "f16", **more: Any) -> VectorCodes:
    return quantize_vectors(NumpyVectorOps(2), w, BookShape(vector, bits, books, entries), **more)


def error(found: np.ndarray, w: np.ndarray) -> float:
    return float(np.linalg.norm(found - w) / np.linalg.norm(w))


# Of many Gaussian weights 0.568, 0.313, 0.306 and 0.093; books of a small matrix fit it a little better.
@pytest.mark.parametrize(
    ("vector", "books", "least", "most"),
    [(8, 1, 0.52, 0.569), (4, 1, 0.295, 0.313), (8, 2, 0.26, 0.312), (2, 1, 0.09, 0.095)],
)
def test_errors_of_gaussian_weights(vector: int, books: int, least: float, most: float) -> None:
    assert least < error(quantized(GAUSSIAN, vector, 8, books).dequantize(), GAUSSIAN) < most


def test_codes_are_nearest_and_ties_take_the_lower_index() -> None:
    book = np.array([[[0, 0], [1, 1], [1, 1], [2, 0], [0, 2]]], np.float64)
    x = np.array([[[1, 1], [0.5, 0.5], [1.5, 0.5], [0, 9], [1, 0]]], np.float64)
    search = VectorSearch(NumpyVectorOps(), [book], False)
    assert search.codes(x)[0].tolist() == [[1, 0, 1, 4, 0]]
    found = quantized(SMALL, 4, 5)
    x = (SMALL / found.scales.astype(np.float32)).astype(np.float64).reshape(-1, 1, 4)
    distances = ((x - found.codebooks[0].astype(np.float64)) ** 2).sum(2)
    assert (distances.argmin(1) == found.codes.reshape(-1)).all()


def test_several_books_are_better_than_one_after_the_other() -> None:
    found = quantized(GAUSSIAN, 8, 6, 3)
    x = (GAUSSIAN / found.scales.astype(np.float32)).astype(np.float64).reshape(1, -1, 8)
    books = list(values_of(found.codebooks, None)[:, None])
    rest = x
    for book in books:
        one = VectorSearch(NumpyVectorOps(), [book], False)
        rest = one.rest(rest, one.codes(rest))
    chosen = VectorSearch(NumpyVectorOps(), books, False).rest(
        x, [found.codes[..., i].reshape(1, -1) for i in range(3)]
    )
    assert (chosen**2).sum() < 0.9 * (rest**2).sum()


@pytest.mark.parametrize(
    ("shape", "more"),
    [
        ((4, 4, 1, "f16"), {}),
        ((8, 5, 2, "bf16"), {"group_size": 32}),
        ((2, 9, 1, "int8"), {"scale": "bf16"}),
        ((4, 3, 3, "f8e4m3"), {"block": (16, 40), "importance": GENERATOR.random((40, 96))}),
        ((16, 3, 1, "f16"), {"block": (40, 32), "importance": GENERATOR.random((1, 96)), "scale": "f32"}),
    ],
)
def test_the_same_bits_in_pytorch(
    shape: tuple[int, int, int, str], more: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    torch = pytest.importorskip("torch")
    # Threads for blocks as small as these would wait for each other most of the time.
    request.addfinalizer(functools.partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(1)
    from lowlp.numeric.vector_ops import TorchVectorOps

    ops = TorchVectorOps("cpu")
    ops.vectors_at_once = ops.scores_at_once = 300
    with_torch = quantize_vectors(ops, torch.from_numpy(SMALL), BookShape(*shape), **more)
    with_numpy = quantized(SMALL, *shape, **more)
    for name in ("codes", "codebooks", "scales", "book_scales"):
        a, b = getattr(with_torch, name), getattr(with_numpy, name)
        assert (a is None) == (b is None)
        assert a is None or (a.dtype == b.dtype and a.tobytes() == b.tobytes()), name


def test_a_seed_decides() -> None:
    first, again, other = (quantized(SMALL, 4, 4, seed=seed) for seed in (0, 0, 1))
    assert first.codebooks.tobytes() == again.codebooks.tobytes()
    assert first.codebooks.tobytes() != other.codebooks.tobytes()


def test_blocks_have_books_of_their_own() -> None:
    w = np.concatenate([SMALL[:, :48], 3 * SMALL[:, 48:] ** 3], 1)
    found = quantized(w, 4, 4, block=(16, 48))
    assert found.codebooks.shape == (3, 2, 1, 16, 4)
    assert error(found.dequantize((16, 48)), w) < 0.9 * error(quantized(w, 4, 4).dequantize(), w)
    # The part of a block alone, with the scales of whole rows, has the same books and codes.
    scaled = w / found.scales.astype(np.float32)
    book = found.codebooks[2, 1, 0].astype(np.float64)
    x = scaled[32:, 48:].astype(np.float64).reshape(-1, 1, 4)
    assert (((x - book) ** 2).sum(2).argmin(1) == found.codes[32:, 12:, 0].reshape(-1)).all()


def test_importance_moves_errors_where_they_matter_less() -> None:
    importance = np.where(np.arange(512) % 4 < 2, 1.0, 0.01)[None]
    plain, weighted = quantized(GAUSSIAN, 4, 6), quantized(GAUSSIAN, 4, 6, importance=importance)
    matters = np.flatnonzero(importance[0] == 1)
    columns = [found.dequantize()[:, matters] for found in (weighted, plain)]
    assert error(columns[0], GAUSSIAN[:, matters]) < 0.7 * error(columns[1], GAUSSIAN[:, matters])
    even = quantized(GAUSSIAN, 4, 6, importance=np.full((256, 512), 0.3))
    assert error(even.dequantize(), GAUSSIAN) == pytest.approx(error(plain.dequantize(), GAUSSIAN), rel=1e-3)


def test_weights_that_a_book_can_hold_are_exact() -> None:
    values = GENERATOR.integers(-3, 4, (16, 4)) / 4
    w = values[GENERATOR.integers(0, 16, (60, 12))].reshape(60, 48).astype(np.float32)
    w[5] = 0
    # Entries that start from equal vectors are empty, and go to the vectors that have none.
    for seed in range(4):
        book = BookLearner(NumpyVectorOps(), 32, 1, seed).learn(w.reshape(1, -1, 4).astype(np.float64))[0]
        assert {tuple(entry) for entry in book[0]} >= {tuple(value) for value in values}
    found = quantized(w, 4, 8, scale="f32", entries="bf16")
    assert (found.scales[5] == 1).all() and (found.dequantize()[5] == 0).all()


def test_weights_that_are_not_finite() -> None:
    w = SMALL.copy()
    w[33, 7] = np.nan
    with pytest.raises(LowlpValueError, match=r"w: must be finite in float32, got nan at \[33, 7\]"):
        quantized(w, 4, 4)
    with pytest.raises(LowlpValueError, match=r"scale_dtype: a scale of .* is out of range of f16"):
        quantized(SMALL * np.float32(1e6), 4, 4)
