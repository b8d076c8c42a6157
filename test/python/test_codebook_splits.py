"""Products with codebooks in which blocks have parts of K, on the CPU target."""

import dataclasses

import numpy as np
import pytest
from test_linear_codebooks import run_as, vectors_of, weights

import lowlp
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.codebooks.program import has_codebook_program
from lowlp.kernels.linear.codebooks.schedules import codebook_schedule, splits_of
from lowlp.kernels.linear.codebooks.versions import VERSIONS, paper_splits, version_schedule
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.schedules.device import H200, device_like

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")


@pytest.mark.parametrize(
    ("codec", "n", "k", "group", "m", "schedule"),
    [
        # The last block of books is shorter, and parts have one and two blocks.
        ("vec4:1x8:int8:64x128", 128, 320, 64, 20, Schedule(32, 2, splits=2)),
        ("vec8:2x8:f16", 80, 1024, 1024, 11, Schedule(8, 2, stages=3, row_tiles=1, splits=3)),  # parts of a segment
        ("vec8:2x8:f16", 40, 1024, 256, 5, Schedule(8, 2, stages=3, row_tiles=2, splits=8)),
        ("vec8:1x8:f16", 48, 1024, 64, 3, Schedule(8, 2, stages=4, row_tiles=2, splits=2)),  # segments within a unit
        ("vec8:2x12:f8e4m3", 40, 264, 24, 3, Schedule(8, 1, splits=4)),  # segments that share units
    ],
)
def test_parts_add_up(codec: str, n: int, k: int, group: int, m: int, schedule: Schedule) -> None:
    """For gate and up too; rows of I have one part that is not 0, and so stay exact."""
    random = np.random.default_rng(7)
    qw = weights(random, vectors_of(codec), n, k, group)
    x = random.standard_normal((m, k)).astype(np.float16)
    for epilogue in ("", "silu_mul"):
        wanted = run_as(qw, x, dataclasses.replace(schedule, splits=1), epilogue)
        found = run_as(qw, x, schedule, epilogue)
        assert np.linalg.norm(found - wanted) <= 1e-6 * np.linalg.norm(wanted)
        # Some blocks add what others leave: were none to, results would be the same to the bit.
        assert not np.array_equal(found, wanted)
    rows = np.eye(k, dtype=np.float16)[random.choice(k, 40, replace=False)]
    assert np.array_equal(run_as(qw, rows, schedule), (rows.astype(np.float32) @ qw.dequantize().T))


@pytest.mark.parametrize(
    ("codec", "n", "k"), [("vec4:1x8:f16:64x128", 128, 512), ("vec8:2x8:f16", 48, 512), ("e8p", 32, 512)]
)
def test_versions_of_the_paper(codec: str, n: int, k: int) -> None:
    """GC to O4 give what `dequantize` does; only O3 and O4 divide K, and only O4 exchanges nothing."""
    random = np.random.default_rng(9)
    qw = weights(random, vectors_of(codec), n, k, k)
    spec = spec_for(qw, "f16", "f32", aligned=True)
    rows = np.eye(k, dtype=np.float16)[random.choice(k, 20, replace=False)]
    found = {version: version_schedule(spec, 20, H200, version) for version in VERSIONS}
    for version, schedule in found.items():
        assert np.array_equal(run_as(qw, rows, schedule), rows.astype(np.float32) @ qw.dequantize().T), version
    assert {version for version, schedule in found.items() if schedule.splits == 1} >= {"gc", "sc", "o1", "o2"}
    assert paper_splits(LinearSpec(4096, 4096, spec.codec, aligned=True), found["o3"], 1) > 1 or codec == "e8p"
    with pytest.raises(LowlpValueError, match=r"^version: must be one of gc, sc, o1, o2, o3, o4, got 'o5'"):
        version_schedule(spec, 1, H200, "o5")


def test_all_rows_have_the_same_parts() -> None:
    spec = LinearSpec(4096, 4096, Codec(lowlp.vq(8, 8, 2), "channel", "f16"), aligned=True)
    found = [schedule_for(spec, m, batch_invariant=True, among=()) for m in (1, 16, 64)]
    assert {schedule.splits for schedule in found} == {splits_of(spec, H200)} and splits_of(spec, H200) > 1
    assert splits_of(dataclasses.replace(spec, n=57344, k=8192), H200) == 1
    # Gate and up of 64 rows would have no registers for 64 columns.
    gated = dataclasses.replace(spec, epilogue="silu_mul")
    for device in (H200, device_like("sm_80")):
        parts = {schedule_for(gated, m, device, batch_invariant=True).splits for m in (1, 16, 33, 65)}
        assert parts == {splits_of(gated, device)}
    older = {schedule_for(spec, m, device_like("sm_80"), among=()).splits for m in (3, 16, 64)}
    assert older == {splits_of(spec, device_like("sm_80"))}
    # GPTVQ's blocks of 256 x 256 are each one block's.
    blocks = LinearSpec(4096, 4096, Codec(vectors_of("vec4:1x8:f16:256x256"), "channel", "f16"), aligned=True)
    assert 16 % splits_of(blocks, H200) == 0 and splits_of(blocks, H200) > 1


def test_choices_that_were_wrong() -> None:
    """An H200, microseconds: what was chosen before, and what takes less."""

    def spec_of(codec: str, n: int) -> LinearSpec:
        return LinearSpec(n, 8192, Codec(vectors_of(codec), "channel", "f16"), aligned=True)

    def without_warpgroups(codec: str, n: int, m: int) -> Schedule:
        return codebook_schedule(spec_of(codec, n), m, H200)

    # mma.sync: 57.9; warpgroups with one row tile: 26.4, with two: 28.6.
    found = schedule_for(spec_of("vec8:1x8:f16", 8192), 64, among=())
    assert found.warpgroups == 2 and found.row_tiles == 1
    # 32 rows of 1x16 by warpgroups 387, without 444; where K is 28672, 200 and 219.
    assert schedule_for(spec_of("vec8:1x16:f16", 57344), 32, among=()).warpgroups
    # One block of an SM at a time: 23.9; two: 19.0.
    assert without_warpgroups("vec8:1x8:f16", 8192, 16).blocks_per_sm == 2
    assert without_warpgroups("vec2:1x8:f16", 57344, 8).steps >= 2  # one unit in a stage: 102; two: 77.6
    assert without_warpgroups("vec4:1x8:f16:256x256", 57344, 16).steps == 2  # 121; 99


def test_more_parts_than_there_are() -> None:
    random = np.random.default_rng(8)
    qw = weights(random, vectors_of("vec4:1x8:f16:64x128"), 64, 256, 128)
    spec = spec_for(qw, "f16", "f32", aligned=True)
    assert has_codebook_program(spec, Schedule(8, 2, splits=2))
    with pytest.raises(LowlpValueError, match=r"^schedule: no kernel takes .* splits=3"):
        run_as(qw, np.zeros((1, 256), np.float16), Schedule(8, 2, splits=3))
    with pytest.raises(LowlpValueError, match=r"^splits: must be 1 to 64, got 0"):
        Schedule(splits=0)
