"""`quantize(w, vq=...)`: errors of codebooks that are learnt, nearest codes, the same bits in PyTorch, refusals."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import QuantizedTensor
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.vector_ops import NumpyVectorOps, TorchVectorOps
from lowlp.numeric.vectors import Vectors
from lowlp.weights.quantize import vector_quantization
from lowlp.weights.quantize.k_means import BookLearner
from lowlp.weights.quantize.vector_search import VectorSearch

GENERATOR = np.random.default_rng(7)
GAUSSIAN = GENERATOR.normal(0, 0.02, (256, 512)).astype(np.float32)
SMALL = GENERATOR.normal(size=(40, 96)).astype(np.float32)


def quantized(w: Any, vector: int, bits: int, books: int = 1, entries: str = "f16", **more: Any) -> QuantizedTensor:
    return lowlp.quantize(w, vq=lowlp.vq(vector, bits, books, entries), **more)


def error(qw: QuantizedTensor, w: np.ndarray) -> float:
    return float(np.linalg.norm(qw.dequantize() - w) / np.linalg.norm(w))


def in_groups(qw: QuantizedTensor, w: np.ndarray) -> np.ndarray:
    """The vectors of w over their scales, float64 [vectors, 1, v]."""
    scaled = w / np.repeat(qw.scales.astype(np.float32), qw.group_size, axis=1)
    return scaled.astype(np.float64).reshape(-1, 1, qw.codec.vectors.vector)


# Of many Gaussian weights 0.568, 0.313, 0.306 and 0.093; books of a small matrix fit it a little better.
@pytest.mark.parametrize(
    ("vector", "books", "least", "most"),
    [(8, 1, 0.52, 0.569), (4, 1, 0.295, 0.313), (8, 2, 0.26, 0.312), (2, 1, 0.085, 0.095)],
)
def test_errors_of_gaussian_weights(vector: int, books: int, least: float, most: float) -> None:
    assert least < error(quantized(GAUSSIAN, vector, 8, books), GAUSSIAN) < most


def test_codes_are_nearest_and_ties_take_the_lower_index() -> None:
    book = np.array([[[0, 0], [1, 1], [1, 1], [2, 0], [0, 2]]], np.float64)
    x = np.array([[[1, 1], [0.5, 0.5], [1.5, 0.5], [0, 9], [1, 0]]], np.float64)
    search = VectorSearch(NumpyVectorOps(), [book], False)
    assert search.codes(x)[0].tolist() == [[1, 0, 1, 4, 0]]
    # Wide books are multiplied in parts.
    wide = np.tile(book, (1, 2000, 1))
    wide[0, -1] = 0, 9
    assert VectorSearch(NumpyVectorOps(), [wide[:, 3:]], False).codes(x)[0].tolist() == [[3, 2, 0, 9996, 0]]
    assert NumpyVectorOps().highest(x, wide.transpose(0, 2, 1), 2)[0, 0].tolist() == [9999, 1]
    found = quantized(SMALL, 4, 5)
    distances = ((in_groups(found, SMALL) - found.codebooks[0].astype(np.float64)) ** 2).sum(2)
    assert (distances.argmin(1) == found.codes.reshape(-1)).all()


def test_several_books_are_better_than_one_after_the_other() -> None:
    found = quantized(GAUSSIAN, 8, 6, 3)
    x = in_groups(found, GAUSSIAN).reshape(1, -1, 8)
    books = list(found.codebooks.astype(np.float64)[:, None])
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
        ((2, 9, 1, "int8"), {"scale_dtype": "bf16"}),
        ((4, 3, 3, "f8e4m3"), {"book_per": (16, 40), "importance": GENERATOR.random((40, 96))}),
        ((16, 3, 1, "f16"), {"book_per": (None, 32), "importance": GENERATOR.random(96), "scale_dtype": "f32"}),
    ],
)
def test_the_same_bits_in_pytorch(
    shape: tuple[int, int, int, str], more: dict[str, Any], request: pytest.FixtureRequest, monkeypatch: Any
) -> None:
    torch = pytest.importorskip("torch")
    # Threads for blocks as small as these would wait for each other most of the time.
    request.addfinalizer(functools.partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(1)
    expected = quantized(SMALL, *shape, **more)
    ops = TorchVectorOps("cpu")
    ops.vectors_at_once = ops.scores_at_once = 300
    monkeypatch.setattr(vector_quantization, "library_of", lambda w, _: (ops, w))
    assert quantized(torch.from_numpy(SMALL), *shape, **more) == expected


def test_a_seed_decides() -> None:
    first, again, other = (quantized(SMALL, 4, 4, seed=seed) for seed in (0, 0, 1))
    assert first.codebooks.tobytes() == again.codebooks.tobytes()
    assert first.codebooks.tobytes() != other.codebooks.tobytes()


def test_blocks_have_books_of_their_own() -> None:
    w = np.concatenate([SMALL[:, :48], 3 * SMALL[:, 48:] ** 3], 1)
    found = quantized(w, 4, 4, book_per=(16, 48))
    assert found.codebooks.shape == (3, 2, 1, 16, 4)
    assert error(found, w) < 0.9 * error(quantized(w, 4, 4), w)
    x = in_groups(found, w).reshape(40, 24, 1, 4)[32:, 12:]
    book = found.codebooks[2, 1, 0].astype(np.float64)
    assert (((x - book) ** 2).sum(-1).argmin(-1) == found.codes[32:, 12:, 0]).all()


def test_experts_share_books_or_have_their_own() -> None:
    w = np.stack([SMALL, SMALL[::-1] ** 3])
    shared, own = quantized(w, 4, 4), quantized(w, 4, 4, book_per=(1, 40, None))
    assert shared.codebooks.shape == (1, 16, 4) and own.codebooks.shape == (2, 1, 1, 1, 16, 4)
    for expert in range(2):
        assert (own[expert].dequantize() == quantized(w[expert], 4, 4).dequantize()).all()
    assert np.linalg.norm(own.dequantize() - w) < np.linalg.norm(shared.dequantize() - w)


def test_importance_moves_errors_where_they_matter_less() -> None:
    importance = np.where(np.arange(512) % 4 < 2, 1.0, 0.01)
    plain, weighted = quantized(GAUSSIAN, 4, 6), quantized(GAUSSIAN, 4, 6, importance=importance)
    matters = np.flatnonzero(importance == 1)
    left = [np.linalg.norm((qw.dequantize() - GAUSSIAN)[:, matters]) for qw in (weighted, plain)]
    assert left[0] < 0.7 * left[1]
    even = quantized(GAUSSIAN, 4, 6, importance=np.full((256, 512), 0.3))
    assert error(even, GAUSSIAN) == pytest.approx(error(plain, GAUSSIAN), rel=1e-3)


def test_weights_that_a_book_can_hold_are_exact() -> None:
    values = GENERATOR.integers(-3, 4, (16, 4)) / 4
    w = values[GENERATOR.integers(0, 16, (60, 12))].reshape(60, 48).astype(np.float32)
    w[5] = 0
    # Entries that start from equal vectors are empty, and go to the vectors that have none.
    for seed in range(4):
        book = BookLearner(NumpyVectorOps(), 32, 1, 20, seed).learn(w.reshape(1, -1, 4).astype(np.float64))[0]
        assert {tuple(entry) for entry in book[0]} >= {tuple(value) for value in values}
    found = quantized(w, 4, 8, scale_dtype="f32", entries="bf16")
    assert (found.scales[5] == 1).all() and (found.dequantize()[5] == 0).all()


def test_fewer_vectors_than_entries_are_kept_as_they_are() -> None:
    w = GENERATOR.integers(-4, 5, (3, 32)).astype(np.float16) / 4
    found = quantized(w, 4, 8, scale_dtype="f32")
    assert error(found, w.astype(np.float32)) < 1e-3
    assert quantized(w, 4, 8, scale_dtype="f32", seed=np.int64(0)) == found


def test_progress_shows_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    quantized(SMALL, 8, 3, 2, progress=True)
    shown = capsys.readouterr().err
    for name in ("scales", "book 1 of 2", "book 2 of 2", "books together", "codes"):
        assert f"quantize: {name}:" in shown
    quantized(SMALL, 8, 3, book_per=(8, 96), progress=True)
    assert "quantize: blocks: 100%" in capsys.readouterr().err


def test_names() -> None:
    w = np.concatenate([GAUSSIAN, GAUSSIAN[:9]])[:, :260]
    found = lowlp.quantize(w, "gptvq-2", importance=np.ones(260))
    assert found.codebooks.shape == (2, 2, 1, 256, 4) and str(found.codec.vectors) == "vec4:1x8:f16:256x256"
    assert lowlp.quantize(SMALL, "aqlm-2x8").codebooks.shape == (2, 256, 8)
    again = lowlp.quantize(SMALL, lowlp.quantize(SMALL, vq=lowlp.vq(4, 3, 2), group_size=32, scale_dtype="bf16").codec)
    assert again == quantized(SMALL, 4, 3, 2, group_size=32, scale_dtype="bf16")
    with pytest.raises(
        LowlpValueError, match=r"aqlm-2x8 names codebooks, .* lowlp.quantize\(w, 'aqlm-2x8'\) learns them"
    ):
        lowlp.dtype("aqlm-2x8")
    with pytest.raises(LowlpValueError, match="did you mean 'aqlm-2x8'"):
        lowlp.quantize(SMALL, "aqlm2x8")


NOT_FINITE = np.where(np.arange(40 * 96).reshape(40, 96) == 33 * 96 + 7, np.nan, SMALL)
VQ = lowlp.vq(4, 4)
MISTAKES: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (LowlpValueError, r"w: must be finite in float32, got nan at \[33, 7\]", {"w": NOT_FINITE}),
    (LowlpValueError, r"scale_dtype: a scale of .* is out of range of f16", {"w": SMALL * np.float32(1e6)}),
    (LowlpValueError, r"w: K must be a multiple of the 4 weights of a code, got \[40, 95\]", {"w": SMALL[:, :95]}),
    (LowlpTypeError, "w: expected float16", {"w": SMALL.astype(np.int64)}),
    (LowlpTypeError, r"vq: expected what lowlp\.vq", {"vq": (4, 4)}),
    (LowlpValueError, "vq: quantize learns entries; the vectors of e8p are computed", {"vq": Vectors.lattice("e8p")}),
    (LowlpValueError, "dtype: not allowed with vq", {"dtype": "int4"}),
    (LowlpValueError, "search: not allowed with vq", {"search": True}),
    (LowlpValueError, "group_size: must be a multiple of the 4 weights of a code, got 6", {"group_size": 6}),
    (LowlpValueError, "group_size: scales of books are by row or group", {"group_size": "tensor"}),
    (LowlpValueError, "scale_dtype: must be one of f16, bf16, f32 with vq, got e8m0", {"scale_dtype": "e8m0"}),
    (LowlpValueError, "seed: must be an int of at least 0, got -1", {"seed": -1}),
    (LowlpTypeError, "book_per: expected 'tensor' or a tuple", {"book_per": 256}),
    (LowlpValueError, "book_per: the last extent must be a multiple of vector = 4, got 30", {"book_per": (16, 30)}),
    (LowlpValueError, "book_per: expected at most 2 extents", {"book_per": (1, 16, 32)}),
    (
        LowlpValueError,
        "book_per: blocks of experts begin with 1",
        {"w": SMALL.reshape(2, 20, 96), "book_per": (16, 32)},
    ),
    (LowlpValueError, r"importance: expected shape \[96\] or \[40, 96\], got \[40\]", {"importance": np.ones(40)}),
    (LowlpValueError, "importance: must be finite and at least 0, got nan", {"importance": np.full(96, np.nan)}),
    (LowlpValueError, "importance: goes with vq or search, of which", {"importance": np.ones(96), "vq": None}),
    (LowlpValueError, "book_per: goes with vq, which is not given", {"book_per": (16, 32), "vq": None}),
    (LowlpValueError, r"book_per: gptvq-2 has \(256, 256\)", {"dtype": "gptvq-2", "book_per": (1, 2), "vq": None}),
]


@pytest.mark.parametrize(("kind", "text", "wrong"), MISTAKES, ids=lambda value: str(value)[:40])
def test_mistakes(kind: type[Exception], text: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(kind, match=text):
        lowlp.quantize(**{"w": SMALL, "vq": VQ, **wrong})
