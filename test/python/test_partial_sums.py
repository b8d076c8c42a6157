"""Products with codebooks of one and two rows by sums of products of entries, on the CPU target."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from test_linear_codebooks import NUMPY, run_as, vectors_of, weights

import lowlp
from lowlp import language as ll
from lowlp.errors import CpuTargetError, LowlpValueError
from lowlp.kernels.linear.choosing import reason_for, schedule_for
from lowlp.kernels.linear.codebooks.partial_sums import has_partial_sums
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.ops.linear_kernels import compile_for_gpu
from lowlp.schedules.device import device_like

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
ROWS = 2


def schedule_of(warps: int, row_tiles: int, splits: int, kept_rows: int = ROWS) -> Schedule:
    return Schedule(8, warps, row_tiles=row_tiles, splits=splits, partial_sums=True, kept_rows=kept_rows)


@pytest.mark.parametrize(
    ("codec", "n", "k", "group", "schedule"),
    [
        ("vec8:2x8:f16", 200, 1536, 1536, schedule_of(4, 2, 2)),  # the last rows are no whole tile
        ("vec8:1x8:f16", 64, 1280, 1280, schedule_of(8, 1, 2)),  # parts of two and three units
        ("vec4:1x8:int8", 130, 640, 640, schedule_of(4, 1, 5)),  # a unit each
        ("vec2:1x8:f16", 48, 192, 192, schedule_of(16, 1, 1)),
        ("vec8:4x8:f16", 80, 256, 128, schedule_of(4, 2, 1)),  # a scale for every other unit
        ("vec8:2x8:f8e4m3", 40, 512, 128, schedule_of(4, 1, 1)),  # and for each
    ],
)
def test_sums(codec: str, n: int, k: int, group: int, schedule: Schedule) -> None:
    """Against float64; one row has the bits of two, five take three blocks, and rows of I give `dequantize`."""
    random = np.random.default_rng(n + k)
    qw = weights(random, vectors_of(codec), n, k, group)
    values = qw.dequantize()
    x = random.standard_normal((5, k)).astype(np.float16)
    y = run_as(qw, x, schedule)
    wanted = x.astype(np.float64) @ values.astype(np.float64).T
    assert np.linalg.norm(y - wanted) <= 1e-6 * np.linalg.norm(wanted)
    alone = run_as(qw, x[:1], dataclasses.replace(schedule, kept_rows=1))
    assert np.array_equal(alone, y[:1]) and np.array_equal(run_as(qw, x[:2], schedule), y[:2])
    rows = np.eye(k, dtype=np.float16)[random.choice(k, 6, replace=False)]
    assert np.array_equal(run_as(qw, rows, schedule), rows.astype(np.float32) @ values.T)


def test_endings_and_numbers_that_are_none() -> None:
    """Bias, epilogue and residual, and bfloat16; a row with an infinity has no finite result, and changes no other."""
    random = np.random.default_rng(3)
    qw = weights(random, vectors_of("vec8:1x8:f16"), 2048, 4096, 4096)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    assert schedule_for(spec, 2).partial_sums
    x = random.standard_normal((2, 4096)).astype(np.float16)
    bias, residual = (random.standard_normal(shape).astype(np.float16) for shape in ((2048,), (2, 2048)))
    y = lowlp.linear(x, qw, bias=bias, epilogue="gelu_tanh", residual=residual, out_dtype="f32")
    z = x.astype(np.float64) @ qw.dequantize().T + bias
    wanted = z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))) + residual
    assert np.linalg.norm(y - wanted) <= 1e-5 * np.linalg.norm(wanted)
    brains = x.astype(NUMPY["bf16"])
    wanted = brains.astype(np.float64) @ qw.dequantize().T
    assert np.linalg.norm(lowlp.linear(brains, qw, out_dtype="f32") - wanted) <= 1.1e-2 * np.linalg.norm(wanted)
    changed = x.copy()
    changed[1, 17] = np.inf
    with np.errstate(invalid="ignore"):
        z = lowlp.linear(changed, qw, out_dtype="f32")
    assert np.isnan(z[1]).all() and np.array_equal(z[0], lowlp.linear(x, qw, out_dtype="f32")[0])


def test_what_is_chosen() -> None:
    """For one and two rows alone, K divided alike, where both take less; never where all rows add in one order."""

    def spec_of(codec: str, n: int, k: int) -> LinearSpec:
        return LinearSpec(n, k, Codec(vectors_of(codec), "channel", "f16"), aligned=True)

    for codec, n, k in (("vec8:2x8:f16", 57344, 8192), ("vec8:1x8:f16", 4096, 4096), ("vec8:4x8:f16", 8192, 28672)):
        spec = spec_of(codec, n, k)
        one, two, three = (schedule_for(spec, m, among=()) for m in (1, 2, 3))
        assert one.partial_sums and two == dataclasses.replace(one, kept_rows=2) and not three.partial_sums
        assert not schedule_for(spec, 1, batch_invariant=True, among=()).partial_sums
        assert "sums of products of entries" in reason_for(spec, 1, among=())
        small = device_like("sm_86")  # two tables would take more shared memory than a block has
        assert not schedule_for(spec, 1, small, among=()).partial_sums
    # Entries of two weights, books of blocks, lattices, and codes of 12 bits.
    for codec in ("vec2:1x8:f16", "vec4:1x8:f16:256x256", "e8p", "vec8:2x12:f16"):
        assert not schedule_for(spec_of(codec, 57344, 8192), 1, among=()).partial_sums
    assert not has_partial_sums(spec_of("vec4:4x8:f16", 256, 256), schedule_of(16, 1, 1))  # 64 codes in a unit
    spec = spec_of("vec8:2x8:f16", 4096, 4096)
    assert not has_partial_sums(dataclasses.replace(spec, k=4100), schedule_of(16, 1, 1))
    staged = dataclasses.replace(schedule_of(16, 1, 1), stages=2, warpgroups=1, multicast=2)
    integers = LinearSpec(4096, 4096, Codec.parse("int4 g128 f16"), aligned=True)
    for of, schedule in ((spec, schedule_of(16, 1, 64)), (spec, staged), (integers, schedule_of(16, 1, 1))):
        with pytest.raises(LowlpValueError, match=r"^schedule: no kernel takes .* as Schedule\(columns=8, warps=16,"):
            compile_for_gpu(of, schedule, "sm_90a")
    assert schedule_for(spec, 0, among=()).kept_rows == 1


@pytest.mark.parametrize(("codec", "row_tiles", "splits"), [("vec8:2x8:f16", 7, 4), ("vec8:1x8:f16", 2, 8)])
def test_machine_code(codec: str, row_tiles: int, splits: int) -> None:
    """One load of shared memory, one PRMT, half a selection and one addition a code, and nothing in local memory."""
    spec = LinearSpec(57344, 8192, Codec(vectors_of(codec), "channel", "f16"), aligned=True)
    kernel = compile_for_gpu(spec, schedule_of(16, row_tiles, splits, 1), "sm_90a")
    loop = kernel.ptx.split("bar.sync")[1]
    codes = 16 * row_tiles
    assert loop.count("ld.shared") == codes and loop.count("prmt.b32") == codes
    assert loop.count("selp.b32") <= codes // 2 + 8 and loop.count("add.rn.f32") + loop.count("add.f32") == codes
    assert "shfl" not in loop and ".local" not in kernel.ptx and kernel.spilled_bytes == 0


@pytest.mark.parametrize("columns", [32, 64, 96])
def test_lookups_of_any_line(columns: int) -> None:
    """Codes of 8 bits in lines of 128, 256 and 384 bytes, from a column on; and those after the last entry are
    reported, as is a column after which codes have none."""
    codes_of_lanes = "local(1, 8).local(2, 1).spatial(8, 4)"

    def body(codes: Any, entries: Any, y: Any, first: Any) -> None:
        table = ll.alloc_shared("f32", [200, columns])
        held = ll.load_global(
            ll.view_global(entries, shape=[200, columns]),
            offsets=[0, 0],
            layout=f"local(200, {columns // 32}).spatial(1, 32)",
        )
        ll.store_shared(held, table, offsets=[0, 0], in_bounds=True)
        ll.synchronize()
        tile = ll.load_global(ll.view_global(codes, shape=[16, 32]), offsets=[0, 0], layout=codes_of_lanes)
        sums = ll.full(1.0, "f32", layout="local(2, 1).spatial(8, 4)")
        sums = ll.sum(ll.add_lookups(tile, table, sums, column=first), dim=1, keep_dims=True)
        ll.store_global(sums, ll.view_global(y, shape=[16, 1]), offsets=[0, 0])

    parameters = {
        "codes": ll.pointer("uint8"),
        "entries": ll.pointer("f32"),
        "y": ll.pointer("f32"),
        "first": ll.integer(32),
    }
    kernel = lowlp.compile_cpu(
        ll.make_kernel(body, name="sums", parameters=parameters, grid=lambda first: (1,), num_threads=32)
    )
    random = np.random.default_rng(columns)
    codes, entries = random.integers(0, 200, (16, 32)).astype(np.uint8), random.standard_normal((200, columns))
    y = np.zeros((16, 1), np.float32)
    for first in range(0, columns, 32):
        kernel(codes, entries.astype(np.float32), y, first)
        wanted = 4 + entries[codes, first + np.arange(32)].sum(1)
        np.testing.assert_allclose(y[:, 0], wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(CpuTargetError, match="the columns of the codes leave the table"):
        kernel(codes, entries.astype(np.float32), y, columns - 16)
    codes[3, 2] = 210
    with pytest.raises(CpuTargetError, match="a code names no entry of the table"):
        kernel(codes, entries.astype(np.float32), y, 0)
