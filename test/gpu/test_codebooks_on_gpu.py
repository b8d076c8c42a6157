"""Products with weights of codebooks on a GPU: as on the CPU target, with stages and without."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.kernels.linear.operands import spec_for
from lowlp.weights.codebook_order import ordered_by_frequency

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
NUMPY: dict[str, Any] = {"f16": np.float16, "int8": np.int8, "f8e4m3": ml_dtypes.float8_e4m3fn}


def weights(vector: int, bits: int, books: int, entries: str, n: int, k: int, block: Any) -> lowlp.QuantizedTensor:
    random = np.random.default_rng(n + k)
    codes = random.integers(0, 1 << bits, (n, k // vector, books)).astype(np.uint8 if bits <= 8 else np.uint16)
    counts = (-(-n // block[0]), -(-k // block[1])) if block else ()
    shape = (*counts, books, 1 << bits, vector)
    drawn = random.integers(-128, 128, shape) if entries == "int8" else random.normal(0, 1, shape)
    factors = None if entries == "f16" else random.uniform(0.01, 0.1, shape[:-2]).astype(np.float32)
    scales = random.uniform(0.01, 0.02, (n, 1)).astype(np.float16)
    return lowlp.QuantizedTensor(
        codes, codebooks=drawn.astype(NUMPY[entries]), scales=scales, book_scales=factors, book_per=block
    )


@pytest.mark.parametrize(
    ("vector", "bits", "books", "entries", "n", "k", "block"),
    [
        (8, 8, 2, "f16", 1000, 1024, None),
        (4, 8, 1, "f16", 1024, 2048, (256, 256)),
        (8, 12, 2, "int8", 520, 768, None),
        (2, 8, 1, "f8e4m3", 300, 520, None),  # rows that are no whole units: without stages
        (8, 16, 1, "f16", 256, 512, None),
        (8, 8, 2, "f16", 512, 4096, None),  # K is divided among blocks
    ],
)
def test_products(vector: int, bits: int, books: int, entries: str, n: int, k: int, block: Any) -> None:
    check(weights(vector, bits, books, entries, n, k, block), books == 1 or entries != "f16")


@pytest.mark.parametrize("name", ["e8p", "e8p+e81b", "e8p+e8p"])
def test_computed_books(name: str) -> None:
    random = np.random.default_rng(5)
    bits = {"e8p": (16,), "e8p+e81b": (16, 8), "e8p+e8p": (16, 16)}[name]
    codes = np.stack([random.integers(0, 1 << width, (520, 128)) for width in bits], axis=-1).astype(np.uint16)
    scales = random.uniform(0.01, 0.02, (520, 1)).astype(np.float32)
    check(lowlp.QuantizedTensor(codes, codebooks=name, scales=scales), name == "e8p")


def test_frequent_entries() -> None:
    """Those kept in shared memory and those in global memory, by a kernel that takes both."""
    random = np.random.default_rng(6)
    codes = (np.minimum(random.zipf(1.2, (512, 128, 1)), 1 << 16) - 1).astype(np.uint16)
    books = random.normal(0, 1, (1, 1 << 16, 8)).astype(np.float16)
    scales = random.uniform(0.01, 0.02, (512, 1)).astype(np.float16)
    ordered = ordered_by_frequency(lowlp.QuantizedTensor(codes, codebooks=books, scales=scales))
    assert spec_for(ordered, "f16", "f16").hot_entries == 8192
    check(ordered, True)


def check(qw: lowlp.QuantizedTensor, is_exact: bool) -> None:
    k, values = qw.shape[1], qw.dequantize()
    x = torch.randn(60, k, device="cuda", dtype=torch.float16)
    wanted = x.cpu().numpy().astype(np.float64) @ values.astype(np.float64).T
    every = lowlp.linear(x, qw, out_dtype="f32")
    assert np.linalg.norm(every.cpu().numpy() - wanted) <= 2e-3 * np.linalg.norm(wanted)
    for m in (1, 17):
        # Up to 64 rows add in one order.
        assert torch.equal(lowlp.linear(x[:m], qw, out_dtype="f32"), every[:m])
    found = lowlp.linear(torch.eye(k, device="cuda", dtype=torch.float16), qw, out_dtype="f32").T.cpu().numpy()
    if is_exact:
        assert np.array_equal(found, values)
    else:
        # Tensor cores cut off what their sums do not hold.
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-7)
