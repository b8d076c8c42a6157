"""`linear` by warpgroups on the CPU target, with its checks: types of weights, schedules, shapes that do not divide."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from packed_products import ACTIVATIONS

import lowlp
from lowlp.compiler import compilation
from lowlp.errors import LowlpValueError, ProductWarning
from lowlp.kernels.linear.candidates import CLASSES
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.tiles import tiles_of
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide
from lowlp.packing import find_placement
from lowlp_runtime.operand_arrays import filled

# Fewer than there are tiles, so that blocks share some; one gets nothing of the smallest problems.
BLOCKS = 3


def wide(columns: int = 32, **fields: Any) -> Schedule:
    fields = {"stages": 3, "steps": 2, "warpgroups": 1, "row_tiles": 1, "producer": False} | fields
    return Schedule(columns=columns, **fields)


def row_tiles(weight: str) -> int:
    """Tiles of 16 rows in a unit, as many as a warp has at least."""
    return int(find_placement(weight, "f16").unit_rows) // 16


def run(
    schedule: Schedule,
    qw: lowlp.QuantizedTensor,
    m: int,
    activation: str = "f16",
    *,
    aligned: bool = True,
    level: int = 2,
) -> tuple[Any, Any, compilation.CpuKernel]:
    """y, what float64 gives, and the kernel."""
    kind = ACTIVATIONS[activation]
    n, k = qw.shape
    x = np.random.default_rng(5).normal(size=(m, k)).astype(kind)
    spec = spec_for(qw, activation, activation, aligned=aligned)
    assert can_go_wide(spec, schedule)
    kernel = compilation.compile_cpu(linear_kernel(spec, schedule), opt_level=level)
    y = np.full((m, n), np.nan, kind)
    blocks = tiles_of(spec, schedule, m) if schedule.has_tile_each else BLOCKS
    kernel(x=x, **host_operands(qw, activation, schedule=schedule), y=y, m=m, x_stride=k, blocks=blocks)
    return y, x.astype(np.float64) @ qw.dequantize().astype(np.float64).T, kernel


def error_of(y: Any, wanted: Any) -> float:
    return float(np.linalg.norm(y.astype(np.float64) - wanted) / np.linalg.norm(wanted))


def weights(n: int, k: int, weight: str | None, **options: Any) -> lowlp.QuantizedTensor:
    matrix = np.random.default_rng(4).normal(size=(n, k)).astype(np.float32)
    return lowlp.quantize(matrix, weight, **{"group_size": 128, **options})


TYPES = ("int1", "int2", "int3", "int4", "int5", "int6", "int7", "int8", "f6e3m2", "f4e2m1", "f3e1m1")


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("weight", "scales_on"),
    [
        *((weight, "accumulators") for weight in TYPES),
        *((weight, "weights") for weight in ("int1", "int3", "int4", "f6e3m2")),
    ],
)
def test_types(weight: str, scales_on: str) -> None:
    tiles = row_tiles(weight)
    schedule = wide(warpgroups=2, row_tiles=tiles, scales_on=scales_on)
    y, wanted, kernel = run(schedule, weights(200, 256, weight), 40)
    assert error_of(y, wanted) < 5e-4
    products = 2 * tiles
    note = f"{products} of {products} products by warpgroups, at most 2 in flight"
    assert kernel.description.notes["warpgroups"] == {"1": note}
    assert any(str(note).startswith("decode ") for note in kernel.description.notes)


@pytest.mark.parametrize(
    ("weight", "options"),
    [
        ("uint4", {"zero_point": True}),
        ("int8", {"zero_point": True}),
        ("bipolar3", {}),
    ],
    ids=str,
)
def test_codecs(weight: str, options: dict[str, Any]) -> None:
    schedule = wide(row_tiles=row_tiles(weight), scales_on="weights")
    y, wanted, _ = run(schedule, weights(100, 256, weight, **options), 30)
    assert error_of(y, wanted) < 5e-4


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("activation", "limit"), [("f16", 5e-4), ("bf16", 4e-3)])
@pytest.mark.parametrize(
    ("bits", "scales_on"),
    [(2, "accumulators"), (3, "weights"), (4, "accumulators"), (4, "weights"), (6, "accumulators"), (7, "weights")],
)
def test_tables(bits: int, activation: str, limit: float, scales_on: str) -> None:
    schedule = wide(row_tiles=row_tiles(f"lut{bits}"), scales_on=scales_on)
    qw = weights(130, 256, None, lut=lowlp.nf(bits), scale_dtype=activation)
    y, wanted, kernel = run(schedule, qw, 30, activation)
    assert error_of(y, wanted) < limit
    form = "pairs" if bits <= 4 else "entries"
    assert f"{form} of {bits} bits" in str(kernel.description.notes["lookups"])


def spread(*numbers: float) -> Any:
    """A table of 16 entries: these, and zeros."""
    return np.array([*numbers, *[0.0] * (16 - len(numbers))], np.float32)


# By the largest entry: it is a power of two, becomes one by rounding, or is next to the ends of f32's range.
EXTREME_TABLES = [
    lowlp.nf(4),
    spread(65535, -65500, 1, 0.25, 2**-9, -3 * 2**-20),
    spread(1, -(2**-11), 2**-14, 5 * 2**-20, 2**-24, 2**-25, 2**-26, 2**-39),
    spread(-1.1e30, 1.7e30, 3e25, 1e22, -1e20),
    spread(-1.1e-33, 1.7e-33, 3e-39, 1e-38),
    spread(2**-149, -(2**-148), 5 * 2**-149),
    spread(3.4e38, -1e38, 1e33),
    spread(5.1e33, -1e33, 1e29),
]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_scaled_entries_of_extreme_tables(activation: str) -> None:
    """Row by row of an identity: every entry times every scale, as one rounded product; none is infinite."""
    kind, codes = ACTIVATIONS[activation], np.tile(np.arange(16, dtype=np.uint8), (64, 8))
    numbers = np.resize([65504, -65504, 65472, 1, 6.1e-5, -6e-5, 2**-24, 0.75], (64, 1))
    scales = numbers.astype(kind)
    schedule = wide(scales_on="weights", steps=1)
    x = np.eye(128, dtype=kind)
    kernel = None
    for lut in EXTREME_TABLES:
        if activation == "f16" and np.abs(lut).max() > np.finfo(np.float32).max / 65504:
            # No product of the largest is a number of f32.
            continue
        qw = lowlp.QuantizedTensor(codes, lut=lut, scales=scales)
        spec = spec_for(qw, activation, "f32", aligned=True)
        kernel = kernel or compilation.compile_cpu(linear_kernel(spec, schedule))
        y = np.full((128, 64), np.nan, np.float32)
        operands = host_operands(qw, activation, schedule=schedule)
        kernel(x=x, **operands, y=y, m=128, x_stride=128, blocks=BLOCKS)

        bits, unscale = filled(lut, activation)
        # f16 has entries times one power of two more, and bf16, of the range of f32, as they are.
        fit, unfit = (operands["fit"], operands["unfit"]) if activation == "f16" else (1 / unscale, unscale)
        assert fit * unfit == 1
        small = (bits.view(kind).astype(np.float64) * unscale * fit).astype(kind)
        exact = lut.astype(np.float64) * fit
        lost = np.abs(small.astype(np.float64) - exact)
        rounding = np.abs(exact) * {"f16": 2.0**-11, "bf16": 2.0**-8}[activation]
        assert (lost <= np.maximum(rounding, 2.0**-24 * np.abs(exact).max())).all()

        products = (small.astype(np.float32)[codes] * scales.astype(np.float32)).astype(kind)
        assert np.isfinite(products.astype(np.float32)).all()
        with np.errstate(over="ignore"):
            wanted = products.astype(np.float32) * np.float32(unfit)
        np.testing.assert_array_equal(y.T, wanted)


@pytest.mark.parametrize(
    "schedule",
    [
        wide(64, warpgroups=4),
        wide(128, warpgroups=2, row_tiles=2, scales_on="weights"),
        wide(256, scales_on="weights", stages=2),
        wide(64, row_tiles=4, scales_on="weights", products_in_flight=1),
        wide(64, row_tiles=2, products_in_flight=3),
        wide(32, steps=1, stages=4),
        wide(32, steps=4, stages=2),
        wide(32, producer=True),
        wide(32, warpgroups=3),
        wide(64, warpgroups=2, column_tiles=2, producer=True, scales_on="weights"),
        wide(32, row_tiles=2, column_tiles=2),
        wide(16, column_tiles=4),
    ],
    ids=str,
)
def test_schedules(schedule: Schedule) -> None:
    """Groups of 128 are parts of a stage, a stage or two; tiles are shared by blocks; neither N nor M divide."""
    y, wanted, kernel = run(schedule, weights(296, 512, "int4"), schedule.columns + 5)
    assert error_of(y, wanted) < 5e-4
    assert "by tensor copies" in str(kernel.description.notes["pipelines"])


@pytest.mark.parametrize(
    ("weight", "parts", "fields"),
    [
        ("int1", 1, {"scales_on": "weights", "products_in_flight": 3, "steps": 4}),
        ("int2", 2, {"scales_on": "weights", "products_in_flight": 3, "steps": 4}),
        ("int1", 2, {"warpgroups": 2, "producer": True}),
        ("int2", 1, {"warpgroups": 2, "producer": True}),
    ],
    ids=str,
)
def test_rows_of_units(weight: str, parts: int, fields: dict[str, Any]) -> None:
    """Warps of 32 and 64 rows, in one part or two; rows of W end within a unit, and blocks share tiles."""
    schedule = wide(32, stages=2, row_tiles=parts * row_tiles(weight), **fields)
    y, wanted, _ = run(schedule, weights(584, 512, weight), 35)
    assert error_of(y, wanted) < 5e-4


@pytest.mark.parametrize("weight", ["int1", "int2"])
@pytest.mark.parametrize("scales_on", ["accumulators", "weights"])
def test_warps_that_share_units(weight: str, scales_on: str) -> None:
    """A warp has 16 rows of a unit of 32 or 64."""
    y, wanted, _ = run(wide(warpgroups=2, scales_on=scales_on), weights(200, 256, weight), 40)
    assert error_of(y, wanted) < 5e-4


@pytest.mark.parametrize(("weight", "level"), [("int1", 0), ("int2", 0), ("lut1", 3), ("lut2", 3)])
def test_warps_that_share_units_bit_by_bit(weight: str, level: int) -> None:
    """Without plans, which tables never have, a warp moves its tile's bits to the first tile's too."""
    table = {"lut": np.array([-1, 3, 0.5, 2][: 2 ** int(weight[-1])], np.float32)} if weight.startswith("lut") else {}
    qw = weights(200, 256, None if table else weight, **table)
    y, wanted, _ = run(wide(warpgroups=2), qw, 40, level=level)
    assert error_of(y, wanted) < 5e-4


@pytest.mark.parametrize(("weight", "instruction"), [("int1", "lop3.b32"), ("int2", "add.rn.f16x2")])
def test_code_of_warps_that_share_units(weight: str, instruction: str) -> None:
    """All warps have one code: for each instruction of the matrix unit a word that is rotated, and four registers."""
    spec = LinearSpec(256, 512, f"{weight} g128 f16", aligned=True)
    ptx = lowlp.compile(linear_kernel(spec, wide(64)), "sm_90a").ptx
    products = ptx.count("wgmma.mma_async")
    assert products == 8
    assert ptx.count("shf.r.wrap.b32") == products
    assert ptx.count(instruction) == 4 * products
    assert "brx.idx" not in ptx


@pytest.mark.parametrize(
    ("schedule", "k"),
    [
        (wide(16, cluster=2), 512),
        (wide(32, cluster=4, warpgroups=2, producer=True), 512),
        (wide(64, cluster=8, steps=1, stages=2), 256),
        (wide(64, cluster=4, row_tiles=2, producer=True, scales_on="weights"), 384),
        (wide(32, cluster=2, column_tiles=2, warpgroups=2, scales_on="weights"), 640),
        (wide(64, share_tiles=False, warpgroups=2, producer=True), 640),
        (wide(32, share_tiles=False, column_tiles=2, row_tiles=2, scales_on="weights"), 256),
    ],
    ids=["pairs", "fours", "fewer stages than blocks", "two parts", "side by side", "alone", "alone in parts"],
)
def test_clusters_and_blocks_have_tiles(schedule: Schedule, k: int) -> None:
    y, wanted, _ = run(schedule, weights(200, k, "int4"), 70)
    assert error_of(y, wanted) < 5e-4


@pytest.mark.parametrize(
    ("weight", "options"),
    [("uint4", {"zero_point": True}), ("int8", {}), ("int1", {}), (None, {"lut": lowlp.nf(4)})],
    ids=str,
)
def test_clusters_of_codecs(weight: str | None, options: dict[str, Any]) -> None:
    schedule = wide(32, warpgroups=2, scales_on="weights", cluster=2)
    y, wanted, _ = run(schedule, weights(200, 512, weight, **options), 40)
    assert error_of(y, wanted) < 5e-4


def test_columns_side_by_side_are_for_warpgroups() -> None:
    spec = LinearSpec(128, 512, "int4 g128 f16", aligned=True)
    linear_kernel(spec, Schedule(32, 4, stages=3, row_tiles=1))
    with pytest.raises(LowlpValueError, match=r"schedule: no kernel with stages takes .*column_tiles=2"):
        linear_kernel(spec, Schedule(32, 4, stages=3, row_tiles=1, column_tiles=2))
    with pytest.raises(LowlpValueError, match=r"column_tiles: must be one of 1, 2, 4, got 3"):
        wide(column_tiles=3)


@pytest.mark.parametrize("m", [40, 2500], ids="m{}".format)
def test_order_of_tiles(m: int) -> None:
    """Whole tiles in waves after shared ones, in bands of 2048 columns, of which the last is narrower."""
    y, wanted, _ = run(wide(256, stages=2, steps=1, column_tiles=2), weights(200, 128, "int4"), m)
    assert error_of(y, wanted) < 5e-4


def test_aligned_shares() -> None:
    """Of five tiles, by numbers of blocks that have each fraction of one; the same bits as where blocks are so many
    that shares of equal length are that fraction."""
    m, stages, schedule = 16, 7, wide(16, stages=2, steps=1, producer=True)
    qw = weights(320, 64 * stages, "int4", group_size=64)
    x = np.random.default_rng(5).normal(size=(m, 64 * stages)).astype(np.float16)
    spec = spec_for(qw, "f16", "f16", aligned=True)

    def made(kernel: compilation.CpuKernel, blocks: int) -> Any:
        y = np.full((m, 320), np.nan, np.float16)
        kernel(x=x, **host_operands(qw, "f16", schedule=schedule), y=y, m=m, x_stride=64 * stages, blocks=blocks)
        return y

    even, aligned = (
        compilation.compile_cpu(linear_kernel(spec, replace(schedule, aligned_shares=by_parts)))
        for by_parts in (False, True)
    )
    in_whole = made(even, 5)
    assert error_of(in_whole, x.astype(np.float64) @ qw.dequantize().astype(np.float64).T) < 5e-4
    of_a_tile = {20: 20, 19: 15, 15: 15, 14: 10, 9: None, 8: None, 7: None, 6: 5, 5: 5}
    for blocks, alike in of_a_tile.items():
        y = made(aligned, blocks)
        assert error_of(y, in_whole.astype(np.float64)) < 5e-4
        assert alike is None or np.array_equal(y, made(even, alike)), blocks
    for blocks in (2, 3, 4):
        y = made(aligned, blocks)
        assert error_of(y, in_whole.astype(np.float64)) < 5e-4
        # Those that are whole come after those that are shared.
        whole = 64 * (5 % blocks)
        assert np.array_equal(y[:, whole:], in_whole[:, whole:])
    assert not can_go_wide(spec, replace(schedule, steps=4, aligned_shares=True))


@pytest.mark.parametrize("group_size", [64, 256, 512])
@pytest.mark.parametrize("scales_on", ["accumulators", "weights"])
def test_groups(group_size: int, scales_on: str) -> None:
    qw = weights(72, 512, "int4", group_size=group_size, scale_dtype="bf16")
    y, wanted, _ = run(wide(scales_on=scales_on), qw, 33, "bf16")
    assert error_of(y, wanted) < 4e-3


def test_without_tensor_copies() -> None:
    """Threads copy x, and a fence lets the products see it."""
    y, wanted, kernel = run(wide(), weights(70, 256, "int4"), 20, aligned=False)
    assert error_of(y, wanted) < 5e-4
    assert "by asynchronous copies" in str(kernel.description.notes["pipelines"])


def test_without_optimisation() -> None:
    """By warps, and without stages: but for the order of additions the same."""
    qw = weights(100, 256, "int4")
    for scales_on in ("accumulators", "weights"):
        plain, wanted, _ = run(wide(scales_on=scales_on), qw, 20, level=0)
        planned, _, _ = run(wide(scales_on=scales_on), qw, 20)
        assert error_of(plain, wanted) < 5e-4
        np.testing.assert_allclose(planned.astype(float), plain.astype(float), rtol=2e-3, atol=2e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("m", "weight"), zip(CLASSES[1:], itertools.cycle(["int4", "lut4:f32:tensor"]), strict=False))
def test_what_is_chosen_does_not_spill_nor_make_ptxas_wait(m: int, weight: str) -> None:
    """Of two kinds in turns; `.ci/run` compiles all that is shipped."""
    spec = LinearSpec(57344, 8192, f"{weight} g128 f16", aligned=True)
    kernel = compilation.compile(linear_kernel(spec, schedule_for(spec, m)), "sm_90a")
    assert "spilled bytes per thread 0" in kernel.report()
    assert "remarks on products" not in kernel.report()


@pytest.mark.parametrize(("weight", "n", "k"), [("int1", 28672, 4096), ("f5e2m2", 28672, 4096)])
def test_four_warpgroups_have_registers_enough(weight: str, n: int, k: int) -> None:
    spec = LinearSpec(n, k, f"{weight} g128 f16", aligned=True)
    schedule = schedule_for(spec, 32)
    assert schedule.warpgroups == 4
    assert compilation.compile(linear_kernel(spec, schedule), "sm_90a").spilled_bytes == 0


def test_warpgroups_end_tiles_by_themselves() -> None:
    """After the last product no barrier is of both: each of the two tiles of columns has two of a warpgroup."""
    spec = LinearSpec(n=1024, k=1024, codec="int4 g128 f16", aligned=True)
    schedule = wide(
        columns=128, column_tiles=2, warpgroups=2, steps=1, scales_on="weights", producer=True, share_tiles=False
    )
    ptx = compilation.compile(linear_kernel(spec, schedule), "sm_90a").ptx
    end = ptx[ptx.rindex("wgmma.wait_group") :]
    assert len(re.findall("bar.sync number, 128;", end)) == 4
    assert not re.search(r"bar(rier)?\.sync\s+\d", end)


def test_what_spills_is_told() -> None:
    spec = LinearSpec(768, 512, "int4 g128 f16", aligned=True)
    schedule = Schedule(128, warpgroups=3, row_tiles=1, column_tiles=2, scales_on="weights", stages=2)
    with pytest.warns(ProductWarning, match="insufficient register resources"):
        kernel = compilation.compile(linear_kernel(spec, schedule), "sm_90a")
    assert kernel.spilled_bytes > 0


@pytest.mark.parametrize(
    ("m", "fields"),
    [
        (300, {"epilogue": "silu_mul"}),
        (100, {"epilogue": "gelu_tanh", "residual": "f16"}),
    ],
    ids=str,
)
def test_what_is_chosen_for_epilogues_does_not_spill(m: int, fields: dict[str, Any]) -> None:
    spec = LinearSpec(57344, 8192, "int4 g128 f16", aligned=True, **fields)
    kernel = compilation.compile(linear_kernel(spec, schedule_for(spec, m)), "sm_90a")
    assert "spilled bytes per thread 0" in kernel.report()
    assert "remarks on products" not in kernel.report()


def test_gate_and_up_without_room_for_64_columns() -> None:
    """Units of many rows leave gate and up room for fewer columns. Products without warpgroups would take twice as
    long."""
    qw = weights(512, 256, "int2", activation="bf16")
    large = LinearSpec(28672, 4096, qw.codec, activation="bf16", out="bf16", aligned=True, epilogue="silu_mul")
    schedule = schedule_for(large, 2048)
    assert schedule.warpgroups and schedule.columns == 40
    kernel = compilation.compile(linear_kernel(large, schedule), "sm_90a")
    assert kernel.spilled_bytes == 0
    spec = replace(large, n=512, k=256)
    x = np.random.default_rng(5).normal(size=(70, 256)).astype(ACTIVATIONS["bf16"])
    y = np.full((70, 256), np.nan, ACTIVATIONS["bf16"])
    program = compilation.compile_cpu(linear_kernel(spec, schedule), opt_level=2)
    operands = host_operands(qw, "bf16", "silu_mul", schedule)
    program(x=x, **operands, y=y, m=70, x_stride=256, blocks=BLOCKS)
    gate, up = np.split(x.astype(np.float64) @ qw.dequantize().astype(np.float64).T, 2, axis=1)
    assert error_of(y, gate / (1 + np.exp(-gate)) * up) < 4e-3
