"""Which schedule a product takes, and what must not depend on it."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.compiler import compilation
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.candidates import ANY_ROWS, CLASSES, candidates, rows_of
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.estimates import estimated_us
from lowlp.kernels.linear.fitting import fits, fitted, table_bytes
from lowlp.kernels.linear.invariant import Order, order_of
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.streaming_layouts import can_stream
from lowlp.kernels.linear.tiles import blocks_for, tiles_of
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide, is_ping_pong
from lowlp.kernels.stream_k import waves_of
from lowlp.schedules.device import device_like


def small_product(weight: str, group: int, m: int) -> tuple[lowlp.QuantizedTensor, np.ndarray]:
    """Weights of 192 x 512, and m rows of x."""
    rng = np.random.default_rng(5)
    qw = lowlp.quantize(rng.standard_normal((192, 512)).astype(np.float32), weight, group_size=group)
    return qw, rng.standard_normal((m, 512)).astype(np.float16)


SPEC = LinearSpec(n=8192, k=8192, codec="int4 g128 f16", aligned=True)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("weight", ["int1", "int3", "int4", "f6e3m2", "int8", "lut4:f32:tensor"])
@pytest.mark.parametrize("m", [1, 8, 9, 16, 17, 64, 129, 5000])
def test_a_schedule_has_a_program_and_columns_for_the_rows(weight: str, m: int) -> None:
    spec = LinearSpec(n=5120, k=3072, codec=f"{weight} g128 f16", aligned=True)
    schedule = schedule_for(spec, m)
    assert schedule.stages >= 2
    assert (can_go_wide if schedule.warpgroups else can_stream)(spec, schedule)
    assert schedule.columns >= min(m, 32)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize(("form", "copies"), [("auto", 0), ("pair", 8), ("entry", 4)])
def test_tables_take_no_more_than_is_counted(bits: int, form: str, copies: int) -> None:
    """What is left as it is, or chosen in registers, takes the plain table."""
    spec = LinearSpec(n=256, k=4096, codec=f"lut{bits}:f32:tensor g128 f16", aligned=True)
    row_tiles = spec.rows_of_unit // 16
    schedule = Schedule(8, 4, stages=2, row_tiles=row_tiles, table_form=form, table_copies=copies)
    (note,) = compilation.compile_cpu(linear_kernel(spec, schedule)).description.notes["lookups"].values()
    found = re.search(r"(\d+) bytes", str(note))
    assert (int(found[1]) if found else 0) + (2 << bits) <= table_bytes(spec, schedule)
    assert found or form != "entry" or bits == 1
    assert table_bytes(dataclasses.replace(spec, codec=f"lut{bits}:f32:channel g128 f16"), schedule) == 0


@pytest.mark.parametrize("share_tiles", [False, True])
def test_stages_are_counted_in_31_bits(share_tiles: bool) -> None:
    """Blocks times stages stay below 2^31, and more stages are refused."""
    spec = LinearSpec(n=1 << 20, k=1 << 15, codec="int4 g128 f16", aligned=True)
    schedule = fitted(spec, dataclasses.replace(schedule_for(SPEC, 32), share_tiles=share_tiles, cluster=1))
    stages = (1 << 20) // schedule.rows * ((1 << 15) // schedule.stage_k)
    for m in (1, 32, 1024):
        tiles = -(-m // schedule.columns_of_block)
        blocks = blocks_for(spec, schedule, m, 132)
        assert blocks >= 1 and (not share_tiles or blocks * tiles * stages < 1 << 31)
    with pytest.raises(LowlpValueError, match=r"x: \d+ rows are too many, \d+ stages of at most 2147483647"):
        blocks_for(spec, schedule, 1 << 30, 132)


def test_up_to_16_rows_divide_the_work_alike() -> None:
    def division(m: int) -> object:
        schedule = dataclasses.replace(schedule_for(SPEC, m), columns=8, stages=2, kept_rows=0)
        return schedule, blocks_for(SPEC, schedule_for(SPEC, m), m, 132)

    assert len({division(m) for m in range(1, 17)}) == 1


@pytest.mark.parametrize("codec", ["int4 g128 f16", "uint6 g32 f16 zeros:uint8"])
def test_batch_invariant_schedules_have_one_order_of_sums(codec: str) -> None:
    spec = LinearSpec(n=1024, k=2816, codec=codec, aligned=True)
    chosen = [schedule_for(spec, m, batch_invariant=True) for m in (1, 16, 17, 48, 100, 208, 700, 4000)]
    orders = {order_of(spec, schedule) for schedule in chosen}
    assert len(orders) == 1 and None not in orders
    assert all(fits(spec, schedule, device_like("sm_90a")) for schedule in chosen)
    assert len({schedule.columns_of_block for schedule in chosen}) > 2
    # What x looks like, and whether a kernel may begin early, decide nothing.
    other = dataclasses.replace(spec, aligned=False, dependent_launch=True)
    assert [schedule_for(other, m, batch_invariant=True) for m in (1, 100)] == [
        schedule_for(spec, m, batch_invariant=True) for m in (1, 100)
    ]


@pytest.mark.parametrize(
    ("arch", "spec"),
    [("sm_80", SPEC), ("sm_90a", LinearSpec(n=1024, k=2816, codec="int6 g32 f16", out="f32"))],
)
def test_without_an_order_for_all_rows_batch_invariant_takes_the_division_of_few(arch: str, spec: LinearSpec) -> None:
    device = device_like(arch)
    few = schedule_for(spec, 1, device, batch_invariant=True)
    for m in (7, 16, 100, 4000):
        schedule = schedule_for(spec, m, device, batch_invariant=True)
        assert not schedule.warpgroups and not schedule.share_tiles
        assert dataclasses.replace(schedule, columns=8, stages=few.stages, kept_rows=few.kept_rows) == few


def test_orders_of_sums() -> None:
    def order(**fields: object) -> Order | None:
        schedule = Schedule(64, stages=2, warpgroups=2, row_tiles=1, share_tiles=False)
        return order_of(SPEC, dataclasses.replace(schedule, **fields))

    assert SPEC.k == 8192
    assert order(steps=4) == order(steps=2, columns=128) == Order("accumulators", 128, ())
    assert order(steps=1) == Order("accumulators", 64, ())
    assert order(steps=4, cluster=2, columns=128) == Order("accumulators", 128, (4096,))
    assert order(steps=3, cluster=2, scales_on="weights") == Order("weights", 0, (21 * 192,))
    assert order(share_tiles=True) is None and order(warpgroups=0) is None


def test_architectures_without_wgmma_get_no_warpgroups() -> None:
    assert any(schedule.warpgroups for schedule in candidates(SPEC, 64))
    assert not any(schedule.warpgroups for schedule in candidates(SPEC, 64, device_like("sm_80")))
    assert not schedule_for(SPEC, 64, device_like("sm_80")).warpgroups


@pytest.mark.parametrize("rows", CLASSES)
def test_candidates_fit_and_more_work_takes_longer(rows: int) -> None:
    twice = dataclasses.replace(SPEC, n=2 * SPEC.n)
    found = list(candidates(SPEC, rows))
    assert found
    for schedule in found:
        assert schedule == fitted(SPEC, schedule)
        assert 0 < estimated_us(SPEC, schedule, rows) < estimated_us(twice, schedule, rows)


def test_four_warps_may_have_a_multiprocessor() -> None:
    spec = LinearSpec(n=57344, k=8192, codec="f6e3m2 g128 f16", aligned=True)
    divisions = [(s.warps * s.slices, s.row_tiles, s.blocks_per_sm, s.share_tiles) for s in candidates(spec, 16)]
    assert (4, 7, 1, False) in divisions


def test_instructions_of_long_tables_stay_in_their_cache() -> None:
    """An H200: stages of 14 units took 106 and 69 us, where others took 62 and 41."""
    for bits, scale, n, k, m in ((5, "f16", 13312, 16384, 1), (7, "e8m0", 28672, 4096, 2)):
        spec = LinearSpec(n, k, f"lut{bits}:f32:tensor g32 {scale}", aligned=True)
        found = schedule_for(spec, m, among=())
        assert not found.warpgroups and found.row_tiles * found.units * found.steps <= 13


def test_registers_are_given_away_by_estimate_only_where_an_architecture_can() -> None:
    schedule = Schedule(16, 4, stages=3, row_tiles=7, slices=2, units=2, share_tiles=False)
    assert schedule.exchanges_registers
    hopper, ampere = (estimated_us(SPEC, schedule, 16, device_like(arch)) for arch in ("sm_90a", "sm_80"))
    assert hopper - ampere == pytest.approx(0.4)
    alike = dataclasses.replace(schedule, row_tiles=6)
    assert not alike.exchanges_registers
    times = [estimated_us(SPEC, alike, 16, device_like(arch)) for arch in ("sm_90a", "sm_80")]
    assert times[0] == times[1]


@pytest.mark.parametrize("m", [3, 16])
def test_a_row_alone_equals_the_row_in_a_batch(m: int) -> None:
    qw, x = small_product("int4", 128, m)
    whole = lowlp.linear(x, qw, out_dtype="f32")
    for row in (0, m - 1):
        assert np.array_equal(lowlp.linear(x[row : row + 1], qw, out_dtype="f32")[0], whole[row])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("weight", "group", "out", "scales_on"),
    [("int4", 128, "f32", "accumulators"), ("int6", 32, "f16", "weights"), ("f4e2m1", 32, "f32", "")],
)
def test_a_row_has_the_same_bits_in_every_batch(weight: str, group: int, out: str, scales_on: str) -> None:
    qw, x = small_product(weight, group, 130)
    spec = spec_for(qw, "f16", out)
    schedules = [schedule_for(spec, m, batch_invariant=True) for m in (1, 40, 130)]
    assert len(set(schedules)) > 1
    order = order_of(spec, schedules[0])
    assert (order.scales_on if order else "") == scales_on
    one, some, whole = (lowlp.linear(x[:m], qw, out_dtype=out, batch_invariant=True) for m in (1, 40, 130))
    assert np.array_equal(some, whole[:40])
    assert np.array_equal(one, whole[:1])


def test_shared_tiles_are_cut_into_equal_parts_where_few_blocks_are_idle_for_that() -> None:
    schedule = Schedule(64, stages=2, warpgroups=2, row_tiles=1, steps=4)
    for n, blocks in (
        (64 * 128, 128),  # two each
        (43 * 128, 129),  # three each
        (80 * 128, 132),  # one each would leave 52 idle
        (132 * 128, 132),
        (300 * 128, 132),
    ):
        assert blocks_for(LinearSpec(n, 8192, "int4 g128 f16", aligned=True), schedule, 64, 132) == blocks


def test_what_shares_of_tiles_come_to() -> None:
    """Of equal length with the wave before the last; or aligned, of what the whole waves leave alone."""
    for tiles, equal, aligned in (
        (320, (188, 183, 1), (56, 64, 2)),  # 56 of 132: a half each
        (160, (160, 156, 0), (28, 32, 1)),
        (80, (80, 78, 0), (80, 86, 0)),  # two thirds, of stages the larger part
        (264, (0, 0, 2), (0, 0, 2)),
        (390, (0, 0, 3), (0, 0, 3)),  # few are idle
    ):
        assert waves_of(tiles, 132, 128, False) == equal
        assert waves_of(tiles, 132, 128, True) == aligned


def test_long_rows_of_many_are_read_in_step() -> None:
    """Where the L2 cache does not hold all of x, shares are aligned; where it does, they may be of equal length."""
    long = schedule_for(LinearSpec(5120, 16384, "int4 g128 f16", aligned=True), 1024, among=())
    assert long.aligned_shares
    short = LinearSpec(8704, 5120, "int6 g128 f16", aligned=True)
    equal, aligned = (
        estimated_us(short, dataclasses.replace(long, aligned_shares=by_parts), 401) for by_parts in (False, True)
    )
    assert equal < aligned


def test_a_cluster_has_a_tile() -> None:
    schedule = Schedule(64, stages=2, warpgroups=2, row_tiles=1, steps=4, cluster=2)
    for m, tiles in ((64, 64), (65, 128), (1, 64)):
        assert blocks_for(SPEC, schedule, m, 132) == tiles
    with_clusters = [found for found in candidates(SPEC, 64) if found.cluster > 1]
    assert with_clusters
    for found in with_clusters:
        assert 59 <= tiles_of(SPEC, found, 64) * found.cluster <= 132 * found.blocks_per_sm
    assert not any(found.cluster > 1 for found in candidates(SPEC, 64, device_like("sm_80")))
    with pytest.raises(LowlpValueError, match="cluster: must be one of 1, 2, 4, 8, got 3"):
        Schedule(cluster=3)


@pytest.mark.parametrize(
    ("codec", "activation", "schedule", "turns"),
    [
        # One sum for a row has nothing to add beside products.
        ("int4 channel f16", "int8", {}, False),
        ("int2 g128 f16", "int8", {"steps": 4}, True),
        ("int2 g128 f16", "int8", {"columns": 64, "column_tiles": 2}, False),
        ("int2 g128 f16", "int8", {"columns": 96}, False),
        ("int2 g128 f16", "int8", {"warpgroups": 3}, True),
        ("int1 g128 f16", "int8", {"warpgroups": 3}, False),
        ("int4 g128 f16", "int8", {"warpgroups": 3}, False),
        ("int1 g128 f16", "int8", {"warpgroups": 3, "share_tiles": False}, True),
        ("int2 g128 f16", "int8", {"warpgroups": 3, "share_tiles": False}, True),
        ("f4e2m1 channel f16", "f8e4m3", {}, True),
        ("f4e2m1 channel f16", "f8e4m3", {"steps": 4}, False),
        ("f4e2m1 channel f16", "f8e4m3", {"warpgroups": 3}, True),
        ("f4e2m1 channel f16", "f8e4m3", {"columns": 64, "column_tiles": 2}, True),
        # Nothing to decode.
        ("f8e4m3 channel f16", "f8e4m3", {"warpgroups": 3}, False),
        ("f8e4m3 channel f16", "f8e4m3", {"columns": 64, "column_tiles": 2}, False),
        # Of halves by where scales go.
        ("int4 g128 f16", "f16", {"columns": 64, "column_tiles": 2}, True),
        ("int4 g128 f16", "f16", {"columns": 96, "warpgroups": 3}, True),
        ("int4 g128 f16", "f16", {"columns": 96}, True),
        ("int4 g128 f16", "f16", {"columns": 64}, False),
        ("int4 g128 f16", "f16", {"columns": 96, "row_tiles": 2}, False),
        ("int4 g128 f16", "f16", {"columns": 80}, False),
        ("int4 g128 f16", "f16", {"scales_on": "weights"}, True),
        ("int4 g128 f16", "f16", {"columns": 112, "column_tiles": 2, "scales_on": "weights"}, False),
        ("int4 g128 f16", "f16", {"columns": 112, "warpgroups": 3, "scales_on": "weights"}, False),
        ("int4 g128 f16", "f16", {"columns": 176, "warpgroups": 3, "scales_on": "weights"}, True),
        ("int4 channel f16", "f16", {"scales_on": "rows"}, False),
        ("int4 channel f16", "f16", {"columns": 96}, False),
    ],
)
def test_warpgroups_take_turns_by_the_sums_of_a_stage(
    codec: str, activation: str, schedule: dict[str, Any], turns: bool
) -> None:
    x_scale = "" if activation == "f16" else "token"
    spec = LinearSpec(n=8192, k=8192, codec=codec, activation=activation, aligned=True, x_scale=x_scale)
    fields = {"columns": 128, "warpgroups": 2, "row_tiles": 1, "steps": 2, "stages": 3, **schedule}
    assert is_ping_pong(spec, Schedule(**fields)) == turns
    kernel = linear_kernel(spec, Schedule(**fields))
    assert ("ping_pong = true" in kernel.mlir) == turns


def test_a_producer_needs_room_for_its_warp() -> None:
    with pytest.raises(
        LowlpValueError, match="producer: must be false, as a block has at most 32 warps, and 8 x 4 mul"
    ):
        Schedule(columns=8, warps=8, slices=4, stages=2)
    assert Schedule(columns=8, warps=8, slices=4, stages=2, producer=False).threads == 1024


def test_blocks_with_a_tile_each_come_in_several_waves_for_many_rows_only() -> None:
    def most(rows: int) -> int:
        whole = [found for found in candidates(SPEC, rows) if found.warpgroups and not found.share_tiles]
        return max(tiles_of(SPEC, found, rows) // found.blocks_per_sm for found in whole)

    assert most(128) <= 132 < most(1024)


def test_many_rows_leave_little_of_a_wave_idle() -> None:
    """By tiles that are shared, or of as many columns as fill the waves."""
    spec = LinearSpec(4096, 4096, "int4 g128 f16", aligned=True)
    for m in (257, 1024, 1025, 1100, 2300):
        schedule = schedule_for(spec, m)
        blocks = blocks_for(spec, schedule, m, 132) * schedule.cluster
        if schedule.has_tile_each:
            computed = -(-blocks // 132) * 132 * schedule.rows * schedule.columns_of_block // schedule.cluster
            assert spec.n * m >= 0.75 * computed, m
        else:
            assert blocks >= 100, m


def test_for_how_many_rows_schedules_are_chosen() -> None:
    assert [rows_of(m) for m in (1, 17, 33, 257, 1024)] == [16, 32, 48, 272, 1024]
    assert [rows_of(m) for m in (1025, 2049, 5000, 8193, ANY_ROWS)] == [1088, 2176, 5120, 8192, 8192]


def test_any_number_of_rows_shares_tiles() -> None:
    spec = LinearSpec(4096, 4096, "int4 g128 f16", aligned=True)
    assert schedule_for(spec, ANY_ROWS).share_tiles and schedule_for(spec, ANY_ROWS).cluster == 1


def test_many_rows_scale_rows_and_share_what_would_wait() -> None:
    def chosen(n: int, k: int, codec: str, m: int, activation: str = "f16") -> Schedule:
        spec = LinearSpec(n, k, codec, activation, activation, aligned=True)
        return schedule_for(spec, m, among=())

    # A row's one scale costs nothing in the loop; with zero points it goes on weights, with them.
    assert chosen(14336, 8192, "int5 channel f32", 164, "bf16").scales_on == "rows"
    assert chosen(4096, 2048, "uint5 channel f16 zeros:uint8", 337).scales_on == "weights"
    # Few multiprocessors would have a tile.
    narrow = chosen(2112, 7168, "int4 g128 f16", 107)
    assert narrow.warpgroups == 1 and not narrow.has_tile_each
    # With few rows each stage costs something, however few weights of small groups it has.
    for m in (1, 16):
        few = chosen(57344, 8192, "f4e2m1 g16 e4m3 scale2", m)
        assert few.row_tiles * few.steps >= 4
