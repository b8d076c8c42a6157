"""Codes that are spread over the banks of shared memory when they are packed."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from test_linear_codebooks import weights

import lowlp
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.codebooks.program import has_codebook_program
from lowlp.kernels.linear.codebooks.wide import can_look_up_wide
from lowlp.kernels.linear.operands import spec_for
from lowlp.numeric.codec import Codec
from lowlp.weights.spread_codes import gathered_codes, spread_codes
from lowlp_runtime.spread_books import entries_at, second_places, with_second_places

ENTRIES: dict[str, Any] = {"f16": np.float16, "int8": np.int8, "f8e4m3": ml_dtypes.float8_e4m3fn}
# Vectors, how their codes are spread, and passes of lanes that read together: of random codes more, of these fewer.
SPREAD = [
    ((8, 12, 1, "f16"), "copies", 2.55, 1.9),
    ((8, 12, 2, "int8"), "copies", 3.0, 2.1),
    ((4, 10, 2, "f16"), "copies", 3.0, 2.1),
    ((2, 12, 1, "f16"), "copies", 3.4, 2.22),
    ((16, 10, 2, "f16"), "copies", 3.4, 2.26),
    ((8, 12, 2, "f16"), "exchange", 2.55, 2.23),
    ((4, 13, 2, "f16"), "exchange", 3.0, 2.5),
]
PLAIN = [
    (8, 8, 2, "f16"),
    (8, 9, 1, "f16"),
    (8, 16, 1, "f16"),
    (8, 13, 1, "f16"),
    (16, 12, 2, "f16"),
    (2, 10, 1, "int8"),
]


def entry_bytes(vectors: Any) -> int:
    return int(vectors.vector * (1 if vectors.has_book_scales else 2))


def passes(stored: Any, entry: int) -> float:
    """The mean of what the lanes of a phase read in one bank."""
    lanes, banks = 128 // min(entry, 16), 128 // entry
    rows, columns = stored.shape
    groups = stored.reshape(rows // (lanes // 4), lanes // 4, columns // 4, 4).swapaxes(1, 2).reshape(-1, lanes)
    return float(np.mean([np.bincount(np.unique(group) % banks).max() for group in groups]))


def random_weights(vectors: Any, n: int, k: int, seed: int = 0) -> lowlp.QuantizedTensor:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 1 << vectors.bits, (n, k // vectors.vector, vectors.books)).astype(vectors.code_dtype)
    books = random.integers(-99, 99, (vectors.books, 1 << vectors.bits, vectors.vector)) / 64
    scales = random.uniform(0.5, 1.5, (vectors.books,)).astype(np.float32) if vectors.has_book_scales else None
    kind = ENTRIES[str(vectors.entries)]
    return lowlp.QuantizedTensor(
        codes,
        codebooks=(64 * books if kind == np.int8 else books).astype(kind),
        book_scales=scales,
        scales=random.uniform(0.5, 1.5, (n, 1)).astype(np.float16),
    )


@pytest.mark.parametrize(("given", "spread", "before", "most"), SPREAD)
def test_lanes_read_different_banks(given: tuple[Any, ...], spread: str, before: float, most: float) -> None:
    vectors = lowlp.vq(*given)
    assert (vectors.spread, vectors.stored_bits, vectors.can_spread) == ("", vectors.bits, True)
    vectors = vectors.as_spread()
    assert (vectors.spread, vectors.stored_bits) == (spread, vectors.bits + 1)
    assert vectors.as_packed() == lowlp.vq(*given) != vectors
    random = np.random.default_rng(0)
    codes = random.integers(0, 1 << vectors.bits, (256, 128, vectors.books)).astype(np.uint16)
    form = (vectors.bits, entry_bytes(vectors), vectors.spread)
    stored = spread_codes(codes, *form)
    assert stored.max() < 1 << vectors.stored_bits
    assert np.array_equal(gathered_codes(stored.astype(np.uint16), vectors.bits, vectors.spread), codes)
    for book in range(vectors.books):
        assert passes(codes[..., book], entry_bytes(vectors)) > before
        assert passes(stored[..., book], entry_bytes(vectors)) < most


@pytest.mark.parametrize("given", PLAIN)
def test_other_codes_cannot_be_spread(given: tuple[Any, ...]) -> None:
    vectors = lowlp.vq(*given)
    assert not vectors.can_spread
    assert vectors.as_spread() == vectors
    assert vectors.stored_bits_per_weight == vectors.bits_per_weight
    qw = random_weights(vectors, 16, 16 * vectors.vector)
    assert qw.spread() is qw
    text = f"vec{vectors.vector}:{vectors.books}x{vectors.bits}+1:{vectors.entries} channel f16"
    with pytest.raises(lowlp.errors.LowlpValueError, match=f"spread: codes of {vectors} cannot be spread"):
        Codec.parse(text)


def test_clustered_codes_are_not_worse() -> None:
    """All lanes in few banks: more of them than any count of few bits holds."""
    codes = np.random.default_rng(0).integers(0, 64, (64, 64, 2)) * 64
    stored = spread_codes(codes, 12, 4, "copies")[..., 0]
    assert passes(stored, 4) < 0.7 * passes(codes[..., 0], 4)


def test_words_of_one_book_alone_are_refused() -> None:
    qw = random_weights(lowlp.vq(8, 12, 2), 64, 512).spread()
    arrays, header = qw.to_arrays()
    arrays["packed"] = np.zeros_like(arrays["packed"])
    message = r"packed: both codes of vector 0 of row 0 name entries of one book of vec8:2x12\+1:f16"
    with pytest.raises(lowlp.errors.LowlpValueError, match=message):
        lowlp.QuantizedTensor.from_arrays(arrays, header)


def test_pytorch_spreads_alike() -> None:
    torch = pytest.importorskip("torch")
    for bits, entry, spread in ((12, 8, "copies"), (12, 16, "exchange"), (11, 4, "copies")):
        codes = np.random.default_rng(1).integers(0, 1 << bits, (37, 22, 2)).astype(np.uint16)
        found = spread_codes(torch.from_numpy(codes.astype(np.int32)), bits, entry, spread)
        assert np.array_equal(found.numpy(), spread_codes(codes, bits, entry, spread))


def test_entries_lie_at_both_places() -> None:
    books = np.random.default_rng(0).standard_normal((2, 1024, 8)).astype(np.float16)
    codes = np.arange(1024)
    places = second_places(codes, 10)
    assert np.array_equal(entries_at(places, 10), codes)
    assert np.array_equal(entries_at(codes, 10), codes)
    assert np.array_equal(places[:-1], codes[:-1] + 1025)
    assert places[-1] == 1024
    both = with_second_places(books)
    assert np.array_equal(both[:, places], books)
    assert np.array_equal(both[:, codes], books)


@pytest.mark.parametrize("given", [case[0] for case in SPREAD])
def test_tensors_hold_the_codes_that_were_given(given: tuple[Any, ...]) -> None:
    """Rows and K end within groups of lanes; parts, joined tensors and stored ones have the same codes."""
    vectors = lowlp.vq(*given)
    plain = random_weights(vectors, 83, 48 * vectors.vector)
    qw = plain.spread()
    assert qw is plain.spread() is qw.spread()
    assert plain.nbytes > plain.packed.nbytes + qw.packed.nbytes > 2 * plain.packed.nbytes
    assert np.array_equal(qw.dequantize(), plain.dequantize())
    assert qw.form.placement.name.startswith(f"vec{given[0]}-{given[2]}x{given[1]}+1.f16")
    again = lowlp.QuantizedTensor.from_arrays(*qw.to_arrays())
    assert again == qw
    codes = np.random.default_rng(0).integers(0, 1 << vectors.bits, (83, 48, vectors.books))
    assert np.array_equal(qw.codes, codes)
    other = random_weights(vectors, 256, 48 * vectors.vector, seed=1).spread()
    joined = lowlp.concat([other, qw])
    assert np.array_equal(joined.codes[256:], codes)
    assert np.array_equal(joined.dequantize()[256:], qw.dequantize())
    assert joined[256:].codec.vectors == joined.codec.vectors
    assert np.array_equal(joined[256:].codes, codes)


@pytest.mark.parametrize("given", [case[0] for case in SPREAD])
def test_products_and_rows_are_those_of_the_weights(given: tuple[Any, ...]) -> None:
    vectors = lowlp.vq(*given)
    qw = random_weights(vectors, 96, 32 * vectors.vector).spread()
    k = qw.shape[1]
    weights = qw.dequantize().astype(np.float64)
    x = (np.random.default_rng(2).standard_normal((70, k)) / 8).astype(np.float16)
    for m in (1, 9, 40, 70):
        found, wanted = lowlp.linear(x[:m], qw), x[:m].astype(np.float64) @ weights.T
        assert np.linalg.norm(found - wanted) <= 1e-3 * np.linalg.norm(wanted)
    if vectors.books == 1 and not vectors.has_book_scales:
        assert np.array_equal(lowlp.linear(np.eye(k, dtype=np.float16), qw).T, qw.dequantize().astype(np.float16))
    rows = np.array([5, 95, 0])
    assert np.array_equal(lowlp.embedding(rows, qw, out_dtype="f32"), qw.dequantize()[rows])


@pytest.mark.parametrize(
    ("codec", "group"),
    [("vec8:2x12+1:f8e4m3:32x*", 128), ("vec4:2x10+1:f8e4m3:64x512", 2048), ("vec8:2x12+1:f16:64x512", 2048)],
)
def test_books_of_blocks_have_schedules(codec: str, group: int) -> None:
    """Of every number of rows: those that take no stages, those that do, and many."""
    vectors = Codec.parse(f"{codec} channel f16").vectors
    assert vectors is not None and vectors.spread
    for n, k in ((512, 768 if group == 128 else 2048), (4096, 4096)):
        qw = weights(np.random.default_rng(0), vectors, n, k, min(group, k))
        spec = spec_for(qw, "f16", "f32", aligned=True)
        for m in (1, 9, 60, 130, 1024):
            schedule = schedule_for(spec, m)
            assert has_codebook_program(spec, schedule) or can_look_up_wide(spec, schedule)
