"""`linear` with stages on the CPU target, with all checks: schedules, codecs, shapes, and work that blocks share."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from lowlp._mlir import ir
from packed_products import ACTIVATIONS

import lowlp
from lowlp.compiler import compilation
from lowlp.errors import CpuTargetError, LowlpValueError
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.streaming_layouts import can_stream, row_parts
from lowlp.numeric.host_array import memory_of_rows

PLAIN = Schedule(columns=8, warps=2, row_tiles=4, stages=3, producer=False)
BY_PRODUCER = replace(PLAIN, producer=True)
WITHOUT_TENSOR_COPIES = "sm_80"
ERROR_LIMITS = {"f16": 5e-4, "bf16": 4e-3}


def weights(n: int, k: int, weight: str | None, *, group_size: int = 128, **options: Any) -> lowlp.QuantizedTensor:
    matrix = np.random.default_rng(4).normal(size=(n, k)).astype(np.float32)
    return lowlp.quantize(matrix, weight, group_size=group_size, **options)


def random_x(m: int, k: int, activation: str = "f16") -> Any:
    return np.random.default_rng(5).normal(size=(m, k)).astype(ACTIVATIONS[activation])


def compiled(
    schedule: Schedule,
    qw: lowlp.QuantizedTensor,
    activation: str = "f16",
    *,
    target: str = "sm_90a",
    aligned: bool = True,
    out: str | None = None,
) -> compilation.CpuKernel:
    spec = spec_for(qw, activation, out or activation, aligned=aligned)
    assert can_stream(spec, schedule)
    return compilation.compile_cpu(linear_kernel(spec, schedule), target)


def run(
    kernel: compilation.CpuKernel,
    qw: lowlp.QuantizedTensor,
    x: Any,
    blocks: int,
    seed: int = 0,
    kind: Any = None,
    schedule: Schedule | None = None,
) -> Any:
    """y, as numbers of `kind` or of x, of `blocks` blocks that share the work."""
    y = np.full((x.shape[0], qw.shape[0]), np.nan, kind or x.dtype)
    activation = next(name for name, kind in ACTIVATIONS.items() if x.dtype == kind)
    stride = x.strides[0] // x.itemsize if x.shape[0] > 1 else x.shape[1]
    operands = host_operands(qw, activation, schedule=schedule)
    kernel(x=memory_of_rows(x), **operands, y=y, m=x.shape[0], x_stride=stride, blocks=blocks, seed=seed)
    return y


def note_of(kernel: compilation.CpuKernel) -> str:
    """What the compiler says of the kernel's loop."""
    pipelines: Any = kernel.description.notes["pipelines"]
    return str(pipelines["1"])


def named(value: Any) -> str:
    """The id of a parameter; of a schedule what differs from PLAIN."""
    if not isinstance(value, Schedule):
        return str(value)
    changed = {name: field for name, field in asdict(value).items() if field != getattr(PLAIN, name)}
    return "_".join(f"{name}{int(field)}" for name, field in changed.items()) or "plain"


def error_of(y: Any, x: Any, qw: lowlp.QuantizedTensor) -> float:
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    return float(np.linalg.norm(y.astype(np.float64) - wanted) / np.linalg.norm(wanted))


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "schedule",
    [
        PLAIN,
        BY_PRODUCER,
        replace(PLAIN, stages=2),
        replace(BY_PRODUCER, stages=2),
        replace(BY_PRODUCER, stages=9),
        replace(PLAIN, stages=9),
        replace(PLAIN, warps=1, slices=2),
        replace(BY_PRODUCER, warps=2, slices=4),
        replace(BY_PRODUCER, units=2),
        replace(PLAIN, units=2, slices=2),
        replace(BY_PRODUCER, steps=4),
        replace(PLAIN, steps=2, slices=2, units=2),
        replace(BY_PRODUCER, warps=1, row_tiles=8),
        replace(PLAIN, columns=16),
        replace(BY_PRODUCER, columns=32, slices=2),
        replace(BY_PRODUCER, columns=64, warps=4),
    ],
    ids=named,
)
@pytest.mark.parametrize("target", ["sm_90a", WITHOUT_TENSOR_COPIES])
def test_schedules(schedule: Schedule, target: str) -> None:
    """Of one tile or more of columns, of rows that do not divide, with 5 blocks that share tiles."""
    qw = weights(200, 512, "int4")
    x = random_x(schedule.columns + 3, 512)
    kernel = compiled(schedule, qw, target=target)
    copies = "asynchronous copies" if target == WITHOUT_TENSOR_COPIES else "tensor copies"
    if schedule.producer and target != WITHOUT_TENSOR_COPIES:
        copies += " of a producer warp"
    assert note_of(kernel).startswith(f"{schedule.stages} stages of ")
    assert note_of(kernel).endswith(f" bytes by {copies}")
    assert error_of(run(kernel, qw, x, 5), x, qw) < ERROR_LIMITS["f16"]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    "schedule",
    [
        PLAIN,
        BY_PRODUCER,
        replace(BY_PRODUCER, warps=3, row_tiles=2, slices=2),
        replace(BY_PRODUCER, warps=1, row_tiles=5, slices=4, columns=16),
        replace(PLAIN, warps=5, row_tiles=1, slices=2, steps=2),
        replace(BY_PRODUCER, warps=1, row_tiles=2, slices=8),
        replace(BY_PRODUCER, warps=7, row_tiles=4, units=2, stages=2),
    ],
    ids=named,
)
@pytest.mark.parametrize("target", ["sm_90a", WITHOUT_TENSOR_COPIES])
def test_a_tile_of_a_block(schedule: Schedule, target: str) -> None:
    """No tile is shared, and rows and columns do not divide; the copies of 448 scales go in pieces."""
    qw = weights(472, 512, "int4")
    x = random_x(schedule.columns + 3, 512)
    schedule = replace(schedule, share_tiles=False)
    tiles = 2 * -(-472 // schedule.rows)
    kernel = compiled(schedule, qw, target=target)
    found = run(kernel, qw, x, tiles)
    assert error_of(found, x, qw) < ERROR_LIMITS["f16"]
    # Sums of a row do not depend on the others.
    assert np.array_equal(run(kernel, qw, x[2:3], tiles // 2), found[2:3])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [640, 1152])
@pytest.mark.parametrize("units", [1, 2])
def test_a_tile_begins_anywhere_along_k(k: int, units: int) -> None:
    """K is not whole stages of 256 or 512, of which each of 3 tiles begins at another; a row's sums are the same for
    8 and 16 columns."""
    schedule = replace(BY_PRODUCER, warps=2, slices=4, units=units, share_tiles=False)
    qw = weights(3 * schedule.rows, k, "int4")
    x = random_x(11, k)
    narrow, wide = (compiled(replace(schedule, columns=columns), qw) for columns in (8, 16))
    found = run(wide, qw, x, 3)
    assert error_of(found, x, qw) < ERROR_LIMITS["f16"]
    assert np.array_equal(run(narrow, qw, x[:8], 3), found[:8])


@pytest.mark.parametrize("schedule", [PLAIN, replace(BY_PRODUCER, slices=2)], ids=named)
def test_blocks_share_tiles(schedule: Schedule) -> None:
    """Of 2 tiles with 8 or 4 stages: no block has part of one, or 2 to 8 have; more blocks than stages get nothing."""
    qw = weights(256, 512, "int4")
    x = random_x(5, 512)
    kernel = compiled(schedule, qw)
    for blocks in (1, 2, 3, 4, 5, 8, 11, 16, 40):
        assert error_of(run(kernel, qw, x, blocks), x, qw) < ERROR_LIMITS["f16"], blocks


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("weight", "activation", "options"),
    [
        ("int4", "f16", {}),
        ("int4", "bf16", {}),
        ("int3", "f16", {}),
        ("int6", "bf16", {}),
        ("f6e3m2", "f16", {}),
        ("uint4", "f16", {"zero_point": True}),
        ("uint4", "bf16", {"zero_point": "float"}),
        ("uint2", "f16", {"zero_point": True}),
        ("bipolar3", "f16", {}),
        ("int8", "f16", {"scale_dtype": "e8m0"}),
        ("f4e2m1", "bf16", {"scale_dtype": "e8m0"}),
        (None, "f16", {"lut": lowlp.nf(4)}),
        (None, "bf16", {"lut": lowlp.nf(4)}),
    ],
    ids=named,
)
@pytest.mark.parametrize("target", ["sm_90a", WITHOUT_TENSOR_COPIES])
def test_codecs(weight: str | None, activation: str, options: dict[str, Any], target: str) -> None:
    qw = weights(136, 512, weight, **options)
    x = random_x(9, 512, activation)
    kernel = compiled(replace(BY_PRODUCER, slices=2), qw, activation, target=target)
    assert error_of(run(kernel, qw, x, 3), x, qw) < ERROR_LIMITS[activation]


def test_offsets() -> None:
    rng = np.random.default_rng(7)
    qw = lowlp.QuantizedTensor(
        rng.integers(0, 16, (100, 256)).astype(np.uint8),
        dtype="uint4",
        scales=rng.uniform(0.1, 2, (100, 2)).astype(np.float16),
        offsets=rng.normal(size=(100, 2)).astype(np.float32),
        group_size=128,
    )
    x = random_x(3, 256)
    assert error_of(run(compiled(BY_PRODUCER, qw), qw, x, 2), x, qw) < ERROR_LIMITS["f16"]


@pytest.mark.parametrize("group_size", [64, 256, 512])
@pytest.mark.parametrize("slices", [1, 2, 4])
def test_groups(group_size: int, slices: int) -> None:
    """A step has several groups, one, or a part of one."""
    qw = weights(128, 1024, "int4", group_size=group_size)
    x = random_x(4, 1024)
    assert error_of(run(compiled(replace(BY_PRODUCER, slices=slices), qw), qw, x, 3), x, qw) < ERROR_LIMITS["f16"]


@pytest.mark.parametrize("schedule", [PLAIN, replace(BY_PRODUCER, slices=2, steps=2)], ids=named)
@pytest.mark.parametrize("weight", ["int4", "f6e3m2", "bipolar3"])
def test_an_identity_gives_the_weights(schedule: Schedule, weight: str) -> None:
    qw = weights(72, 256, weight)
    x = np.eye(256, dtype=np.float16)
    wanted = qw.dequantize().astype(np.float16).T
    np.testing.assert_array_equal(run(compiled(schedule, qw), qw, x, 3), wanted)


@pytest.mark.parametrize("schedule", [replace(PLAIN, slices=2), BY_PRODUCER], ids=named)
@pytest.mark.parametrize("target", ["sm_90a", WITHOUT_TENSOR_COPIES])
def test_no_order_of_blocks_and_threads_changes_a_bit(schedule: Schedule, target: str) -> None:
    qw = weights(200, 512, "int3")
    x = random_x(12, 512)
    kernel = compiled(schedule, qw, target=target, out="f32")
    first = run(kernel, qw, x, 7, kind=np.float32)
    for seed in range(1, 6):
        np.testing.assert_array_equal(run(kernel, qw, x, 7, seed, np.float32), first)


@pytest.mark.parametrize("weight", ["int4", "int6", "f6e3m2"])
def test_a_row_depends_on_no_other(weight: str) -> None:
    """Alone, among 8 and among 16, with the columns that each of them takes; the division of the work is the same."""
    qw = weights(200, 512, weight)
    x = random_x(16, 512)
    division = replace(BY_PRODUCER, slices=2)
    batch = run(compiled(replace(division, columns=16), qw, out="f32"), qw, x, 5, kind=np.float32)
    narrow = compiled(division, qw, out="f32")
    np.testing.assert_array_equal(run(narrow, qw, x[:8], 5, kind=np.float32), batch[:8])
    for row in (0, 7, 15):
        alone = run(narrow, qw, x[row : row + 1], 5, kind=np.float32)
        np.testing.assert_array_equal(alone, batch[row : row + 1])


def test_rows_of_x_that_are_not_aligned() -> None:
    """Threads load them, and the note says why."""
    qw = weights(128, 256, "int4")
    wide = random_x(6, 300)
    kernel = compiled(BY_PRODUCER, qw, aligned=False)
    assert note_of(kernel).endswith("by asynchronous copies: x promises no alignment of 16 bytes")
    x = wide[:, 3:259]
    assert error_of(run(kernel, qw, x, 3), x, qw) < ERROR_LIMITS["f16"]


def test_the_architecture_of_the_cpu_target_is_checked() -> None:
    qw = weights(128, 256, "int4")
    with pytest.raises(LowlpValueError, match="target: unknown architecture 'sm_42'; known are sm_80"):
        compiled(PLAIN, qw, target="sm_42")


# --- mistakes ---------------------------------------------------------------------------------------------------------


def without(schedule: Schedule, qw: lowlp.QuantizedTensor, name: str, place: int, target: str) -> compilation.CpuKernel:
    """The kernel whose loop has its stages, without the op number `place` among those of a name."""
    module = compilation.open_program(linear_kernel(spec_for(qw, "f16", "f16", aligned=True), schedule))
    passes = (
        f"lowlp.kernel(lowlp-reinterpret-layouts,lowlp-choose-rings{{arch={target}}},lowlp-pipeline{{arch={target}}})"
    )
    compilation.run_pipeline(module, passes)
    found: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == name:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    found[place].erase()
    return compilation.compile_cpu(module.operation.get_asm(enable_debug_info=True), target)


@pytest.mark.parametrize(
    ("schedule", "target", "name", "place", "text"),
    [
        (BY_PRODUCER, "sm_90a", "lowlp.mbarrier_wait", 0, "race|one arrival too many"),
        (BY_PRODUCER, "sm_90a", "lowlp.mbarrier_wait", 1, "was not waited for"),
        (PLAIN, "sm_90a", "lowlp.mbarrier_wait", 0, "race|one arrival too many"),
        (PLAIN, "sm_90a", "lowlp.mbarrier_wait", 1, "was not waited for"),
        (PLAIN, "sm_90a", "lowlp.mbarrier_arrive", 0, "deadlock"),
        (PLAIN, WITHOUT_TENSOR_COPIES, "lowlp.copy_async_wait", 0, "was not waited for"),
        (PLAIN, WITHOUT_TENSOR_COPIES, "lowlp.synchronize", 0, "race|was not waited for"),
    ],
    ids=named,
)
def test_a_missing_wait_is_found(schedule: Schedule, target: str, name: str, place: int, text: str) -> None:
    qw = weights(128, 1024, "int4")
    kernel = without(replace(schedule, stages=2), qw, name, place, target)
    for seed in range(4):
        with pytest.raises(CpuTargetError, match=text):
            run(kernel, qw, random_x(3, 1024), 1, seed)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "weight, warps, row_tiles, parts, gives",
    [
        ("int2", 2, 14, 7, (True, True)),
        ("int4", 2, 14, 7, (True, True)),
        ("int3", 4, 7, 1, (False, True)),
        ("int4", 4, 7, 1, (False, True)),
    ],
)
def test_blocks_of_448_rows(weight: str, warps: int, row_tiles: int, parts: int, gives: tuple[bool, bool]) -> None:
    """Of 8 warps, which take the registers that a producer gives away where they have many accumulators. Where a warp
    has 224 rows, products of 16 columns do not fit beside these: those of parts do. A row has the same result with 8
    columns and with 16."""
    qw, x = weights(451, 1024, weight), random_x(16, 1024)
    spec = spec_for(qw, "f16", "f32", aligned=True)
    narrow = Schedule(8, warps, stages=2, row_tiles=row_tiles, slices=8 // warps, share_tiles=False)
    wide = replace(narrow, columns=16)
    assert (row_parts(spec, narrow), row_parts(spec, wide)) == (1, parts)
    assert (narrow.exchanges_registers, wide.exchanges_registers) == gives
    y = run(compiled(wide, qw, out="f32"), qw, x, 2, kind=np.float32)
    assert error_of(y, x, qw) < 1e-5
    few = run(compiled(narrow, qw, out="f32"), qw, x[:3], 2, kind=np.float32)
    np.testing.assert_array_equal(y[:3], few)
