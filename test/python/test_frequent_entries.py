"""Books whose entries come in the order of their accesses, in `linear` and `compile_linear`."""

from dataclasses import replace

import numpy as np
import pytest
from test_linear_codebooks import run_as, weights

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.codebooks.schedules import with_kept_entries
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


def test_how_many_are_kept() -> None:
    """128 KiB with up to 16 rows of x, but no more than leave L1 its room, and a quarter of what a block looks up."""
    device = device_like("sm_90a")

    def kept(schedule: Schedule, text: str = "vec8:1x16:f16") -> int:
        spec = LinearSpec(8192, 8192, Codec.parse(f"{text} channel f16"), aligned=True)
        return with_kept_entries(spec, schedule, device).kept_entries

    whole = Schedule(8, 16, stages=4, row_tiles=1)
    assert kept(whole) == kept(whole, "vec8:2x16:int8") == 8192
    assert kept(Schedule(8, 8, stages=4, row_tiles=1, blocks_per_sm=2)) == 4096
    assert kept(replace(whole, splits=16)) == 4096
    # Too few to be worth it, and what is no kernel for few rows, or says where entries are.
    assert kept(replace(whole, splits=32)) == kept(replace(whole, columns=32)) == kept(replace(whole, stages=0)) == 0
    assert kept(replace(whole, codebooks="gc")) == 0
    # All fit, in one copy.
    assert kept(whole, "vec8:2x12:f16") == kept(whole, "vec8:3x12:f16") == 0
    assert kept(whole, "vec8:4x12:f16") == 2048
    for arch in ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"):
        spec, on = LinearSpec(8192, 8192, Codec.parse("vec8:1x16:f16 channel f16"), aligned=True), device_like(arch)
        found = schedule_for(spec, 16, on, True).kept_entries
        assert 16 * found <= on.shared_bytes and (found > 0) == (on.shared_bytes > 1 << 17)


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("vec8:1x8:f16", Schedule(8, 4, stages=4, kept_entries=100)),
        ("vec8:1x16:f16", Schedule(8, 4, stages=4, codebooks="gc", kept_entries=1024)),
        ("vec8:1x16:f16", Schedule(8, 4, kept_entries=1024)),
        ("vec8:1x16:f16", Schedule(32, stages=4, warpgroups=1, row_tiles=1, kept_entries=1024)),
    ],
)
def test_schedules_that_keep_what_is_not_there(text: str, schedule: Schedule) -> None:
    vectors = Codec.parse(text).vectors
    with pytest.raises(LowlpValueError, match=r"^schedule: "):
        lowlp.compile_linear(n=512, k=2048, weight=vectors, m=(1, 8), schedule=schedule)


def test_kernels_ahead_of_time() -> None:
    kernel = lowlp.compile_linear(n=8192, k=8192, weight=BOOK, m=(1, 8), group_size=None)
    assert "8192 in shared memory (1 copy, 16 bytes apart, 131072 bytes), 57344 in global memory" in kernel.report()
    assert "ld.shared.v4" in kernel.ptx and ".local" not in kernel.ptx
    small = lowlp.compile_linear(n=64, k=256, weight=BOOK, m=(1, 8), group_size=None)
    assert "0 in shared memory (0 bytes), 65536 in global memory" in small.report()
    with pytest.warns(DeprecationWarning, match="^frequencies: leave it out"):
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
