"""Books whose entries come in the order of their accesses, in `linear` and `compile_linear`."""

import numpy as np
import pytest
from test_linear_codebooks import weights

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.codebooks.frequent_entries import hot_entries
from lowlp.kernels.linear.operands import spec_for
from lowlp.numeric.vectors import Vectors
from lowlp.weights.codebook_order import ordered_by_frequency

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
BOOK = lowlp.vq(vector=8, bits=16)


def zipf(count: int) -> list[int]:
    return [10**6 // (place + 1) for place in range(count)]


def test_skewed_codes_keep_the_first_entries() -> None:
    """128 KiB of them. Results are those of the weights as they were, to the bit."""
    random = np.random.default_rng(11)
    qw = weights(random, BOOK, 32, 512, 512)
    parts = np.minimum(random.zipf(1.3, qw.codes.shape), 1 << 16) - 1
    codes = (40503 * parts % (1 << 16)).astype(np.uint16)
    qw = lowlp.QuantizedTensor(codes, codebooks=qw.codebooks, scales=qw.scales)
    ordered = ordered_by_frequency(qw)
    assert np.array_equal(ordered.dequantize(), qw.dequantize()) and ordered.codes.mean() < qw.codes.mean()
    assert spec_for(ordered, "f16", "f16").hot_entries == 8192 and spec_for(qw, "f16", "f16").hot_entries == 0
    x = random.standard_normal((3, 512)).astype(np.float16)
    assert np.array_equal(lowlp.linear(x, ordered, out_dtype="f32"), lowlp.linear(x, qw, out_dtype="f32"))


def test_where_it_pays() -> None:
    assert hot_entries(BOOK, zipf(1 << 16)) == 8192
    assert hot_entries(BOOK, [7] * (1 << 16)) == 0
    assert hot_entries(BOOK, [0] * (1 << 16)) == 0
    # All fit.
    assert hot_entries(lowlp.vq(8, 12), zipf(1 << 12)) == 0
    assert hot_entries(lowlp.vq(8, 16, books=2, entries="int8"), zipf(1 << 16)) == 8192


def test_kernels_ahead_of_time() -> None:
    kernel = lowlp.compile_linear(n=64, k=256, weight=BOOK, m=(1, 8), group_size=None, frequencies=zipf(1 << 16))
    assert "8192 in shared memory (1 copy, 16 bytes apart, 131072 bytes), 57344 in global memory" in kernel.report()
    assert "ld.shared.v4" in kernel.ptx and ".local" not in kernel.ptx
    plain = lowlp.compile_linear(n=64, k=256, weight=BOOK, m=(1, 8), group_size=None)
    assert "0 in shared memory (0 bytes), 65536 in global memory" in plain.report()


def test_mistakes() -> None:
    def compiled(weight: object, frequencies: object) -> None:
        lowlp.compile_linear(n=64, k=256, weight=weight, group_size=None, frequencies=frequencies)  # type: ignore[arg-type]

    with pytest.raises(
        LowlpValueError, match=r"^frequencies: expected one for each of the 256 entries, got shape \[3\]"
    ):
        compiled(lowlp.vq(8, 8), [3, 2, 1])
    with pytest.raises(LowlpValueError, match=r"^frequencies: must not increase nor be negative"):
        compiled(lowlp.vq(8, 2), [1, 2, 1, 1])
    with pytest.raises(LowlpTypeError, match=r"^frequencies: expected ints, got float64"):
        compiled(lowlp.vq(8, 2), [1.5, 1, 1, 1])
    with pytest.raises(LowlpTypeError, match=r"^frequencies: expected a sequence of ints, got 'abc'"):
        compiled(lowlp.vq(8, 2), "abc")
    with pytest.raises(LowlpValueError, match=r"^frequencies: go with books of entries for all weights, not with"):
        compiled(lowlp.vq(8, 2).with_book_per((64, 64)), [1, 1, 1, 1])
    with pytest.raises(LowlpValueError, match=r"^frequencies: go with codes of vectors, not with int4"):
        compiled("int4", [1] * 16)
    e8p = lowlp.QuantizedTensor(np.zeros((16, 4, 1), np.uint16), codebooks=str(Vectors.lattice("e8p")), scales=1.0)
    with pytest.raises(LowlpValueError, match=r"^qw: expected weights \[N, K\] with books of entries for all of them"):
        ordered_by_frequency(e8p)
