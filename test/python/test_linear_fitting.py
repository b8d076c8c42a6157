"""What is counted of a kernel of `linear` before it is compiled is what the compiler lays out."""

import random
import re

import pytest

from lowlp.compiler import compilation
from lowlp.kernels.linear.candidates import candidates
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.fitting import fitted, other_bytes, padding_of_slices, registers, stage_bytes
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.streaming_layouts import Layouts
from lowlp.ops.linear_kernels import compile_for_gpu
from lowlp.schedules.device import H200

ARCH = "sm_90a"
SEED = 46
# What is kept free beside what is counted; and what is counted too much: barriers, rows that lie further apart.
SPARE_BYTES, MUCH_BYTES = 1024, 4 * 1024
# Room for a table's copies, which is kept free though fewer may be taken.
TABLE_BYTES = 48 * 1024
SPECS = [
    LinearSpec(n=4096, k=3072, codec="int4 g128 f16", aligned=True, epilogue="silu_mul"),
    LinearSpec(n=14336, k=3840, codec="uint3 g48 f32 zeros:uint8", aligned=True, residual="f32"),
    LinearSpec(n=4096, k=3072, codec="uint8 g64 f16 offsets:f32", aligned=True, out="f32"),
    LinearSpec(n=4096, k=3072, codec="f4e2m1 g16 e4m3 scale2", aligned=True, row_scale2=True),
    LinearSpec(n=4096, k=3072, codec="int6 g32 uint4 super:f16:g256", aligned=True),
    LinearSpec(n=4096, k=3072, codec="uint4 g64 int6 offsets:int6 super:f16:g256", aligned=True),
    LinearSpec(n=4096, k=3072, codec="lut6:f32:tensor g64 bf16", activation="bf16", out="bf16", aligned=True),
    LinearSpec(n=4096, k=3072, codec="lut5:f32:tensor g16 f16", aligned=True),
    LinearSpec(n=57344, k=8192, codec="int4 g64 f16", aligned=True),
]


def laid_out(spec: LinearSpec, schedule: Schedule) -> tuple[int, int, int]:
    """Stages of a kernel, the bytes of each, and the bytes of shared memory of all, as the compiler says them."""
    module = compilation.open_program(linear_kernel(spec, schedule))
    compilation.run_pipeline(module, f"lowlp-to-thread{{arch={ARCH}}}")
    text = str(module)
    ring = re.search(r'pipelines = \["(\d+) stages of (\d+) bytes', text)
    total = re.search(r"lowlp.shared_bytes = (\d+)", text)
    assert ring and total
    return int(ring[1]), int(ring[2]), int(total[1])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.codec.text)
def test_shared_memory_is_what_the_compiler_lays_out(spec: LinearSpec) -> None:
    number = SPECS.index(spec)
    schedule = random.Random(SEED + number).choice(list(candidates(spec, (16, 64, 256)[number % 3])))
    stages, bytes_of_stage, total = laid_out(spec, schedule)
    assert (stages, bytes_of_stage) == (schedule.stages, stage_bytes(spec, schedule)), schedule
    beside, counted = total - stages * bytes_of_stage, other_bytes(spec, schedule)
    assert beside <= counted + SPARE_BYTES, schedule
    assert counted <= beside + MUCH_BYTES + (TABLE_BYTES if spec.table else 0), schedule


@pytest.mark.parametrize("row_tiles", [1, 2, 7, 13])
@pytest.mark.parametrize(
    ("columns", "warps", "slices"), [(8, 1, 8), (8, 1, 4), (8, 2, 4), (16, 1, 8), (16, 4, 2), (32, 3, 4), (32, 6, 2)]
)
def test_padding_of_what_slices_exchange_is_counted(columns: int, warps: int, slices: int, row_tiles: int) -> None:
    schedule = Schedule(columns, warps, stages=2, row_tiles=row_tiles, slices=slices)
    layouts = Layouts(LinearSpec(n=4096, k=4096, codec="int4 g128 f16"), schedule)
    _, rows, _ = layouts.gathered.shape
    bytes_of_all = rows * columns * slices * 4
    taken = layouts.sliced_accumulators.exchanged_bytes(layouts.gathered, 32)
    counted = bytes_of_all * (1 + padding_of_slices(schedule, rows))
    assert bytes_of_all < taken <= counted <= taken + 2 * MUCH_BYTES


def test_tall_tiles_of_one_row_fit() -> None:
    """208 rows by eight slices, whose padding was counted too low once: three stages of one row of x did not fit."""
    spec = LinearSpec(n=26752, k=6656, codec="f4e2m1 channel f16", activation="f8e4m3", x_scale="token", aligned=True)
    tall = Schedule(8, 1, stages=3, row_tiles=13, slices=8, share_tiles=False, staged_rows=1)
    assert laid_out(spec, fitted(spec, tall))[2] <= H200.shared_bytes


@pytest.mark.parametrize("weight", ["f4e2m1 g32 e8m0", "f8e4m3 g32 e8m0", "int4 g128 f16"])
@pytest.mark.parametrize(("n", "k"), [(57344, 8192), (26752, 6656)])
def test_floats_of_8_bits_have_stages(weight: str, n: int, k: int) -> None:
    spec = LinearSpec(n=n, k=k, codec=weight, activation="f8e4m3", x_scale="token", aligned=True)
    assert all(schedule_for(spec, m).stages for m in (1, 16, 32, 64))


@pytest.mark.parametrize(("n", "k", "m"), [(11008, 4096, 685), (57344, 8192, 278)])
def test_zero_points_of_x_leave_room_for_sums(n: int, k: int, m: int) -> None:
    """They lie in registers beside scales until a tile ends: of 240 columns `ptxas` spilled 740 bytes for them."""
    spec = LinearSpec(
        n=n, k=k, codec="int8 channel f16", activation="int8", x_scale="token", x_zeros=True, aligned=True
    )
    found = compile_for_gpu(spec, schedule_for(spec, m), ARCH).resources
    assert found and found.spilled_bytes == 0


@pytest.mark.parametrize(
    ("spec", "rows", "wide"),
    [(SPECS[0], 16, False), (SPECS[3], 32, False), (SPECS[3], 64, True), (SPECS[7], 48, True)],
    ids=lambda value: value.codec.text if isinstance(value, LinearSpec) else str(value),
)
def test_registers_that_are_counted_suffice(spec: LinearSpec, rows: int, wide: bool) -> None:
    """Of the schedule that is thought to need most: the assembler keeps all in registers."""
    fitting = [schedule for schedule in candidates(spec, rows) if bool(schedule.warpgroups) == wide]
    most = max(fitting, key=lambda schedule: registers(spec, schedule))
    found = compile_for_gpu(spec, most, ARCH).resources
    assert found and found.spilled_bytes == 0, most
    # Where a producer gives registers away, the assembler tells of the launch.
    assert most.exchanges_registers or found.registers <= registers(spec, most), most


def test_few_columns_of_small_groups_fit_too() -> None:
    """Rows that are taken in parts of 16 columns are one part of 8, in blocks whose producer gives nothing away."""
    spec = LinearSpec(n=21504, k=5376, codec="int4 g16 bf16", activation="bf16", out="bf16", aligned=True)
    found = compile_for_gpu(spec, schedule_for(spec, 8), ARCH).resources
    assert found and found.spilled_bytes == 0


@pytest.mark.parametrize(
    ("codec", "n", "k", "rows", "activation"),
    [
        ("uint8 g128 f16 zeros:f16", 7680, 5120, 30, "f16"),
        ("int1 g16 bf16", 10240, 8192, 14, "bf16"),
        ("int2 channel bf16", 12288, 4096, 14, "bf16"),
    ],
)
def test_long_stages_and_float_zeros_fit_too(codec: str, n: int, k: int, rows: int, activation: str) -> None:
    """Of problems drawn at random those whose registers were counted too low by up to 40."""
    spec = LinearSpec(n=n, k=k, codec=codec, activation=activation, out=activation, aligned=True)
    found = compile_for_gpu(spec, schedule_for(spec, rows), ARCH).resources
    assert found and found.spilled_bytes == 0
