"""Books whose entries come in the order of their accesses, in `linear` and `compile_linear`."""

from dataclasses import replace

import numpy as np
import pytest
from test_linear_codebooks import run_as, weights

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.codebooks.frequent_entries import are_skewed
from lowlp.kernels.linear.codebooks.schedules import with_kept_entries
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.numeric.vectors import Vectors
from lowlp.schedules.device import device_like
from lowlp.weights.codebook_order import ordered_by_frequency

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
BOOK = lowlp.vq(vector=8, bits=16)


def zipf(count: int) -> list[int]:
    return [10**6 // (place + 1) for place in range(count)]


def test_skewed_codes_keep_the_first_entries() -> None:
    """Results are those of the weights as they were, to the bit, wherever the entries are."""
    random = np.random.default_rng(11)
    qw = weights(random, BOOK, 32, 512, 512)
    parts = np.minimum(random.zipf(1.3, qw.codes.shape), 1 << 16) - 1
    codes = (40503 * parts % (1 << 16)).astype(np.uint16)
    qw = lowlp.QuantizedTensor(codes, codebooks=qw.codebooks, scales=qw.scales)
    ordered = ordered_by_frequency(qw)
    assert np.array_equal(ordered.dequantize(), qw.dequantize()) and ordered.codes.mean() < qw.codes.mean()
    x = random.standard_normal((3, 512)).astype(np.float16)
    wanted = lowlp.linear(x, qw, out_dtype="f32")
    assert np.array_equal(lowlp.linear(x, ordered, out_dtype="f32"), wanted)
    schedule = Schedule(8, 2, stages=2, row_tiles=1, kept_entries=1024)
    assert np.array_equal(run_as(ordered, x, schedule), run_as(qw, x, replace(schedule, kept_entries=0)))


def test_what_a_sample_shows() -> None:
    """Of skewed codes L1 keeps what it can, unless the first entries get most; of codes all alike these are kept."""
    random = np.random.default_rng(3)
    alike = random.integers(0, 1 << 16, (64, 512, 2)).astype(np.uint16)
    first = np.minimum(random.zipf(1.3, alike.shape), 1 << 16).astype(np.uint16) - 1
    others = ((40503 * first.astype(np.int64) + 32768) % (1 << 16)).astype(np.uint16)
    assert not are_skewed(alike, 1 << 16) and not are_skewed(first, 1 << 16) and are_skewed(others, 1 << 16)
    assert are_skewed(np.concatenate([alike[..., :1], others[..., 1:]], axis=-1), 1 << 16)
    assert not are_skewed(alike[:0], 1 << 16) and not are_skewed(alike[:1, :1], 1 << 16)

    def spec(codes: np.ndarray) -> LinearSpec:
        scales = np.ones((64, 1), np.float16)
        books = np.zeros((1, 1 << 16, 8), np.float16)
        return spec_for(lowlp.QuantizedTensor(codes[..., :1], codebooks=books, scales=scales), "f16", "f16")

    assert spec(others).skewed_codes and not spec(first).skewed_codes and not spec(alike).skewed_codes
    schedule, device = Schedule(8, 4, stages=4, row_tiles=1), device_like("sm_90a")
    assert with_kept_entries(replace(spec(others), n=8192, k=8192), schedule, device) == schedule
    assert with_kept_entries(replace(spec(first), n=8192, k=8192), schedule, device) != schedule


def test_how_many_are_kept() -> None:
    """128 KiB, but no more than leave L1 its room, and a quarter of what a block looks up."""
    spec, device = LinearSpec(8192, 8192, Codec.parse("vec8:1x16:f16 channel f16"), aligned=True), device_like("sm_90a")
    assert with_kept_entries(spec, Schedule(8, 16, stages=4, row_tiles=1), device).kept_entries == 8192
    assert with_kept_entries(spec, Schedule(8, 8, stages=4, row_tiles=1, blocks_per_sm=2), device).kept_entries == 4096
    assert with_kept_entries(spec, Schedule(8, 16, stages=4, row_tiles=1, splits=32), device).kept_entries == 2048
    assert with_kept_entries(spec, Schedule(64, 16, stages=4, row_tiles=1), device).kept_entries == 6144
    assert with_kept_entries(spec, Schedule(8, 16), device).kept_entries == 0
    assert with_kept_entries(spec, Schedule(8, 16, stages=4, codebooks="gc"), device).kept_entries == 0
    two = replace(spec, codec=Codec.parse("vec8:2x16:int8 channel f16"))
    assert with_kept_entries(two, Schedule(8, 16, stages=4, row_tiles=1), device).kept_entries == 8192
    small = replace(spec, codec=Codec.parse("vec8:2x12:f16 channel f16"))
    assert with_kept_entries(small, Schedule(8, 16, stages=4, row_tiles=1), device).kept_entries == 0
    for arch in ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"):
        for m in (1, 16, 64):
            kept = schedule_for(spec, m, device_like(arch), True).kept_entries
            assert 16 * kept <= device_like(arch).shared_bytes and (
                kept > 0 or m == 64 or device_like(arch).shared_bytes < 1 << 17
            )


def test_kernels_ahead_of_time() -> None:
    kernel = lowlp.compile_linear(n=8192, k=8192, weight=BOOK, m=(1, 8), group_size=None)
    assert "8192 in shared memory (1 copy, 16 bytes apart, 131072 bytes), 57344 in global memory" in kernel.report()
    assert "ld.shared.v4" in kernel.ptx and ".local" not in kernel.ptx
    small = lowlp.compile_linear(n=64, k=256, weight=BOOK, m=(1, 8), group_size=None)
    assert "0 in shared memory (0 bytes), 65536 in global memory" in small.report()
    with pytest.warns(DeprecationWarning, match="^frequencies: have no effect"):
        lowlp.compile_linear(n=64, k=256, weight=BOOK, m=(1, 8), group_size=None, frequencies=zipf(1 << 16))


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
