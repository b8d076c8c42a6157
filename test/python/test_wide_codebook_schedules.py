"""Which schedules of products by warpgroups are taken for weights of codebooks, and what their kernels have."""

from dataclasses import replace

import pytest
from test_wide_codebooks import wide

from lowlp.compiler.compilation import compile
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.codebooks.wide import can_look_up_wide
from lowlp.kernels.linear.codebooks.wide_room import books_of, has_room
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.warpgroup_layouts import is_ping_pong
from lowlp.schedules.device import device_like
from lowlp_runtime import LowlpValueError

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")


@pytest.mark.parametrize(
    ("codec", "epilogue", "n", "m", "wanted"),
    [
        ("vec4:1x8:f16:256x256", "", 57344, 32, 4),
        ("vec4:1x8:f16:256x256", "silu_mul", 57344, 16, 4),  # room for both sets of books
        ("vec2:1x10:f16:64x128", "", 8192, 32, 1),  # none for copies of larger ones
        ("vec8:1x8:f16:64x256", "", 4096, 64, 1),  # no registers for the next ones
    ],
)
def test_when_blocks_come_at_once(codec: str, epilogue: str, n: int, m: int, wanted: int) -> None:
    spec = LinearSpec(n, 8192, f"{codec} channel f16", aligned=True, epilogue=epilogue)
    assert schedule_for(spec, m, device_like("sm_90a")).blocks_at_once == wanted


@pytest.mark.parametrize(
    ("codec", "group", "wanted", "schedule"),
    [
        # Four warpgroups with 32 accumulators of products, and as many sums of groups.
        ("vec8:2x8:f16", "g64", True, wide(64, stages=4, steps=1, warpgroups=4, scales_on="weights")),
        ("e8p", "channel", False, wide(64, stages=4, steps=2, warpgroups=4, row_tiles=2)),  # 64, one after the other
        # Four groups in a stage: 500 bytes of registers would be spilled.
        ("vec8:2x8:f16", "g64", False, wide(64, stages=2, steps=4, warpgroups=3, scales_on="weights")),
    ],
)
def test_registers_of_few_rows(codec: str, group: str, wanted: bool, schedule: Schedule) -> None:
    spec = LinearSpec(57344, 8192, f"{codec} {group} {'f32' if codec == 'e8p' else 'f16'}", aligned=True)
    assert can_look_up_wide(spec, schedule) and has_room(spec, schedule, 64, device_like("sm_90a")) == wanted


def test_schedules() -> None:
    """By warpgroups, but not where one order of sums is asked for, nor where a kernel without takes less."""
    spec = LinearSpec(57344, 8192, "vec8:2x8:f16 channel f16", aligned=True)
    assert not any(schedule_for(spec, m, batch_invariant=True).warpgroups for m in (1, 16, 1024))
    # Books in global memory, of which some entries are kept in shared memory.
    assert not schedule_for(LinearSpec(57344, 8192, "vec8:1x16:f16 channel f16", aligned=True), 16).warpgroups
    many = schedule_for(spec, 1024)
    assert many.warpgroups == 2 and many.scales_on == "weights"
    # Results of f32 of few rows are of entries that are not rounded.
    exact = LinearSpec(57344, 8192, "vec8:2x8:f16 channel f16", out="f32", aligned=True)
    assert schedule_for(exact, 64).scales_on == "accumulators"
    # Sums are not rounded for what that saves of small weights.
    small = schedule_for(LinearSpec(64, 256, "vec8:2x8:f16 channel f16"), 300)
    assert small.warpgroups and small.scales_on == "accumulators"
    assert not schedule_for(LinearSpec(64, 256, "e8p+e8p channel f16"), 300).warpgroups
    # Few rows by two blocks for each tile of small weights.
    few, most, more = (schedule_for(LinearSpec(4096, 4096, "e8p channel f16", aligned=True), m) for m in (20, 64, 65))
    assert (few.columns, few.cluster, most.columns, most.cluster, more.cluster) == (32, 2, 64, 2, 1)
    for refused in (Schedule(8, 2, warpgroups=1), wide(staged_rows=1)):
        with pytest.raises(LowlpValueError, match=r"^schedule: no kernel takes"):
            linear_kernel(LinearSpec(64, 256, "vec8:1x8:f16 channel f16", aligned=True), refused)
    with pytest.raises(LowlpValueError, match=r"^schedule: no kernel takes"):
        linear_kernel(LinearSpec(64, 256, "vec8:1x8:f16:32x256 channel f16"), wide(share_tiles=False))


def test_slices_have_whole_units_of_rows_with_one_scale() -> None:
    sliced = wide(16, warpgroups=2, slices=2, steps=4)
    for codec, k in (
        ("vec8:2x8:f16 channel f16", 1040),  # a row ends within a unit
        ("vec8:1x8:f16 channel f16", 1024),  # stages have units of 256 for one slice
        ("vec8:2x8:f16 g128 f16", 1024),
        ("vec8:2x8:int8:64x256 channel f16", 1024),
    ):
        assert not can_look_up_wide(LinearSpec(256, k, codec, aligned=True), replace(sliced, scales_on="weights"))
    spec = LinearSpec(256, 1024, "vec2:1x8:f16 channel f16", aligned=True)
    assert can_look_up_wide(spec, sliced) and not can_look_up_wide(spec, replace(sliced, column_tiles=2))
    # 4 slices have 8 columns at once in 64 rows, of each block of a cluster.
    four = wide(8, warpgroups=4, slices=4, steps=4)
    assert can_look_up_wide(spec, four) and not can_look_up_wide(spec, replace(four, cluster=2))
    # Units of 16, while those of x have 64.
    assert not can_look_up_wide(
        LinearSpec(64, 208, "vec4:1x16:f8e4m3 channel f16", aligned=True), replace(four, steps=1)
    )
    with pytest.raises(LowlpValueError, match=r"^slices: must divide the number of warpgroups, got 2 of 3 warpgroups$"):
        wide(warpgroups=3, slices=2)
    # Kernels of other weights have none.
    with pytest.raises(LowlpValueError, match=r"^schedule: no kernel with stages takes"):
        linear_kernel(LinearSpec(256, 1024, "int4 g128 f16", aligned=True), sliced)


def test_small_weights_have_slices() -> None:
    spec = LinearSpec(4096, 4096, "vec8:1x8:f16 channel f16", aligned=True)
    schedule = schedule_for(spec, 32)
    assert (schedule.slices, schedule.rows) == (2, 64)
    kernel = compile(linear_kernel(spec, schedule), "sm_90a")
    # The number of a slice is the same for a warp, which the assembler sees by a ballot.
    assert kernel.spilled_bytes == 0 and kernel.product_remarks == 0 and "vote.sync.ballot" in kernel.ptx


@pytest.mark.parametrize("entries", ["f16", "int8"])
def test_copies_of_large_books_beside_64_columns(entries: str) -> None:
    """Results go to memory by 16 columns, which leave room for stages, and for both copies of bytes."""
    spec = LinearSpec(57344, 8192, f"vec8:2x12+1:{entries} channel f16", aligned=True, dependent_launch=True)
    schedule = schedule_for(spec, 64)
    assert schedule.columns == 64 and schedule.second_copies == (entries == "int8")
    kernel = compile(linear_kernel(spec, schedule), "sm_90a")
    assert kernel.spilled_bytes == 0 and "in shared memory (1 copy, " in str(kernel.report())


def test_schedules_of_few_rows() -> None:
    """All of up to 16 rows, or of those that take no partial sums, have one schedule but for its columns."""
    for codec, n, k, least in (
        ("vec2:1x8:f16", 5120, 5120, 1),
        ("vec8:2x8:f16", 57344, 8192, 3),
        ("e8p", 4096, 4096, 1),
    ):
        spec = LinearSpec(n, k, f"{codec} channel f16", aligned=True)
        most = schedule_for(spec, 16)
        assert most.warpgroups and schedule_for(spec, 1).partial_sums == (least > 1)
        for m in range(least, 16):
            assert schedule_for(spec, m) == replace(most, columns=8 if m <= 8 and most.cluster == 1 else 16)
        assert not schedule_for(spec, 16, device_like("sm_80")).warpgroups


@pytest.mark.parametrize(
    ("vectors", "copies", "tiles"),
    [
        ("vec8:1x8:f16", "8 copies", 2),
        ("vec8:2x8:f16", "8 copies", 1),
        ("e8p+e8p", "32 copies", 1),
        ("vec8:2x12:int8", "1 copy", 1),
    ],
)
def test_books_beside_many_columns(vectors: str, copies: str, tiles: int) -> None:
    """Results go to memory by 32 columns, so that two stages of 128 x 256 leave room for books, as it is counted.
    Warpgroups take turns with two tiles; one long tile is of entries that are added."""
    spec = LinearSpec(8192, 8192, f"{vectors} channel f16", aligned=True, dependent_launch=True)
    schedule = schedule_for(spec, 1024)
    assert (schedule.columns_of_block, schedule.steps, schedule.stages) == (256, 2, 2)
    assert (schedule.column_tiles, is_ping_pong(spec, schedule)) == (tiles, tiles == 2)
    kernel = compile(linear_kernel(spec, schedule), "sm_90a")
    assert kernel.spilled_bytes == 0 and f"in shared memory ({copies}, " in str(kernel.report())
    assert books_of(spec, schedule, device_like("sm_90a")).copies == int(copies.split()[0])


@pytest.mark.parametrize("vectors", ["vec8:1x8:f16", "vec8:2x8:f16"])
def test_tiles_hold_the_rows_and_little_more(vectors: str) -> None:
    spec = LinearSpec(8192, 8192, f"{vectors} channel f16", aligned=True)
    for m in (257, 264, 300, 400, 520, 700, 1100, 3000):
        columns = schedule_for(spec, m).columns_of_block
        assert -(-m // columns) * columns <= 1.15 * m, (m, columns)
    # Not every number of rows has a kernel of its own.
    assert len({schedule_for(spec, m) for m in range(257, 8192, 61)}) <= 45
