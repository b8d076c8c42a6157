"""`linear` by warpgroups with weights of codebooks, on the CPU target with its checks."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_linear_codebooks import LIMITS, NUMPY, vectors_of, weights
from test_linear_epilogues import wanted_of

import lowlp
from lowlp import QuantizedTensor
from lowlp.compiler.compilation import compile, compile_cpu
from lowlp.kernels.linear import operands
from lowlp.kernels.linear.codebooks.book_sums import largest_book
from lowlp.kernels.linear.codebooks.vector_order import vector_order_kernel
from lowlp.kernels.linear.codebooks.wide import can_look_up_wide
from lowlp.kernels.linear.codebooks.wide_schedules import with_columns_for
from lowlp.kernels.linear.operand_list import vector_order_of
from lowlp.kernels.linear.operands import for_weights, host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.tiles import tiles_of
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide
from lowlp.ops import linear_on_cpu
from lowlp.ops.linear_kernels import gpu_ordering_kernel
from lowlp_runtime import LowlpValueError
from lowlp_runtime.ordered_rows import launch_numbers
from lowlp_runtime.product_arguments import check_weights
from lowlp_runtime.stored_weights import StoredWeights
from lowlp_runtime.vector_order import VectorOrder, order_of_vectors, padded_columns

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
# Fewer than there are tiles, so that blocks share some.
BLOCKS = 3


def wide(columns: int = 32, **fields: Any) -> Schedule:
    return Schedule(columns, **({"stages": 2, "steps": 2, "warpgroups": 1, "row_tiles": 1} | fields))


@cache
def compiled(spec: LinearSpec, schedule: Schedule) -> Any:
    return compile_cpu(linear_kernel(spec, schedule))


def run(
    qw: QuantizedTensor, x: Any, schedule: Schedule, activation: str = "f16", epilogue: str = "", bias: Any = None
) -> Any:
    """y as f32, of rows of x whose columns are in the order of vectors; a bias is of f32."""
    has_bias = bias is not None
    spec = for_weights(spec_for(qw, activation, "f32", epilogue=epilogue, bias="f32" if has_bias else ""), qw)
    assert can_look_up_wide(spec, schedule)
    m, k = x.shape
    order = order_of_vectors(k, vector_order_of(spec, schedule) or VectorOrder(2))
    rows = np.ascontiguousarray(np.pad(x, ((0, 0), (0, 1)))[:, order])
    y = np.full((m, spec.columns_of_y), np.nan, np.float32)
    blocks = tiles_of(spec, schedule, m) if schedule.has_tile_each else BLOCKS
    numbers = {"m": m, "x_stride": rows.shape[1], "blocks": blocks}
    operands = host_operands(qw, activation, epilogue) | ({"bias": bias} if has_bias else {})
    compiled(spec, schedule)(x=rows.reshape(-1), **operands, y=y, **numbers)
    return y


@pytest.mark.parametrize(
    ("codec", "n", "k", "group", "activation", "schedule"),
    [
        # A part of a unit in each stage, and parts of tiles that blocks share.
        ("vec8:1x8:f16", 100, 520, 520, "f16", wide(warpgroups=2, steps=1, stages=3)),
        ("vec8:2x8:f16", 100, 328, 328, "f16", wide(scales_on="weights", producer=False)),
        ("vec8:2x8:bf16", 72, 136, 136, "bf16", wide(row_tiles=2)),  # units of 32 rows, in each warp, and shared by two
        ("vec8:2x8:f16", 72, 136, 136, "f16", wide()),
        ("vec4:1x8:f16:64x128", 100, 600, 600, "f16", wide(share_tiles=False)),  # GPTVQ, the last block shorter
        ("vec4:1x8:f16:64x128", 100, 600, 600, "f16", wide(steps=1)),  # parts of tiles that begin in a block
        ("vec4:1x8:int8:128x256", 200, 768, 768, "f16", wide(warpgroups=2)),
        # Four blocks at once: whole units of each, and parts; entries of 8, 16 and 4 bytes.
        ("vec4:1x8:f16:64x128", 100, 1024, 1024, "f16", wide(16, steps=8, blocks_at_once=4)),
        ("vec4:1x8:bf16:128x256", 200, 2048, 2048, "bf16", wide(warpgroups=2, steps=4, blocks_at_once=4)),
        ("vec8:1x8:f16:128x256", 200, 2048, 2048, "f16", wide(steps=8, warpgroups=2, blocks_at_once=4)),
        ("vec2:1x8:f16:64x128", 64, 1024, 1024, "f16", wide(steps=2, blocks_at_once=4)),
        ("vec4:1x8:f16:64x128", 100, 512, 512, "f16", wide(steps=8, blocks_at_once=4)),  # all of K
        ("vec8:2x8:f16:64x256", 100, 1024, 1024, "f16", wide(cluster=2, scales_on="weights")),
        # Results by parts of their columns, in turns.
        ("vec8:2x8:f16", 200, 328, 328, "f16", wide(128, column_tiles=2, warpgroups=2, scales_on="weights")),
        ("vec4:1x8:f16:128x128", 150, 256, 256, "f16", wide(144, warpgroups=2, steps=1)),
        ("vec8:2x8:int8:64x*", 150, 256, 256, "f16", wide(scales_on="weights")),
        ("vec4:1x8:f16", 100, 640, 64, "f16", wide()),  # several groups in a stage
        ("vec2:1x8:f16", 100, 200, 200, "f16", wide(column_tiles=2, columns=16)),
        ("vec8:4x8:int8", 72, 136, 136, "bf16", wide(scales_on="weights")),
        # Codes that are spread: the first copies alone, both, those of blocks, and two books that are one.
        ("vec8:2x12:f8e4m3", 100, 520, 520, "f16", wide(warpgroups=2, scales_on="weights")),
        ("vec8:2x12+1:f8e4m3", 100, 520, 520, "f16", wide(warpgroups=2, scales_on="weights", second_copies=True)),
        ("vec8:2x12+1:f8e4m3", 100, 520, 520, "f16", wide(warpgroups=2, scales_on="weights")),
        ("vec2:1x10+1:f16:128x256", 200, 768, 768, "f16", wide(warpgroups=2, second_copies=True)),
        ("vec4:1x11+1:f16:128x256", 200, 768, 768, "f16", wide(row_tiles=2, steps=4, second_copies=True)),
        ("vec8:2x12+1:f16", 72, 520, 520, "f16", wide(steps=4)),
        ("vec4:2x13+1:f16:128x256", 200, 768, 768, "f16", wide(row_tiles=2, steps=4)),
        ("vec16:2x8:bf16", 100, 208, 208, "bf16", wide()),
        ("vec16:1x2:f16", 70, 1024, 1024, "f16", wide(share_tiles=False)),
        ("vec8:1x16:f16", 33, 128, 128, "f16", wide(cluster=2, steps=1)),
        ("e8p", 40, 256, 256, "f16", wide()),
        # Slices of stages, which warpgroups have each: of several units, ragged stages, two tiles of rows, a cluster.
        ("e8p", 100, 640, 640, "f16", wide(warpgroups=2, slices=2, steps=4, share_tiles=False)),
        ("vec2:1x8:f16", 100, 448, 448, "f16", wide(16, warpgroups=4, slices=4, steps=4)),
        ("vec2:1x8:f16", 200, 448, 448, "f16", wide(warpgroups=4, slices=2, steps=4, row_tiles=2, share_tiles=False)),
        ("vec8:2x8:f16", 100, 1024, 1024, "f16", wide(warpgroups=4, slices=2, steps=4, cluster=2, scales_on="weights")),
        ("vec4:1x8:f16:64x256", 100, 1024, 1024, "f16", wide(warpgroups=2, slices=2, steps=4, share_tiles=False)),
        ("e8p+e81b", 40, 320, 320, "bf16", wide(scales_on="weights")),
    ],
)
def test_products(codec: str, n: int, k: int, group: int, activation: str, schedule: Schedule) -> None:
    """Against float64 with the dequantised weights; and rows of I give these, to the bit where no sum of books is."""
    random = np.random.default_rng(k + n)
    qw = weights(random, vectors_of(codec), n, k, group)
    values = qw.dequantize().astype(np.float64)
    x = np.vstack([random.standard_normal((17, k)), np.eye(k)[-25:]]).astype(NUMPY[activation])
    y = run(qw, x, schedule, activation)
    wanted = x.astype(np.float64) @ values.T
    assert np.linalg.norm(y - wanted) <= LIMITS[activation] * np.linalg.norm(wanted)
    found, wanted = y[17:], values.T[-25:]
    if schedule.scales_on == "accumulators":
        assert np.array_equal(found, wanted.astype(np.float32))
    else:
        assert np.linalg.norm(found - wanted) <= LIMITS[activation] * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("codec", "schedule", "blocks"),
    [
        # Of 2 tiles, in thirds, 3 blocks have one; 20 stages are fewer than blocks.
        ("vec4:1x8:f16:64x128", wide(steps=1, aligned_shares=True), 5),
        ("vec4:1x8:f16:64x128", wide(steps=1), 24),
        ("vec4:1x8:f16:64x*", wide(steps=1), 24),
    ],
)
def test_blocks_without_work(codec: str, schedule: Schedule, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They load books of rows and K that there are."""
    monkeypatch.setattr(f"{__name__}.BLOCKS", blocks)
    random = np.random.default_rng(9)
    qw = weights(random, vectors_of(codec), 100, 600, 600)
    x = random.standard_normal((9, 600)).astype(np.float16)
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    assert np.linalg.norm(run(qw, x, schedule) - wanted) <= LIMITS["f16"] * np.linalg.norm(wanted)


@pytest.mark.parametrize("schedule", [wide(), wide(share_tiles=False)])
def test_the_first_books_of_blocks_come_before_the_launch_in_front_has_ended(schedule: Schedule) -> None:
    weight = vectors_of("vec4:1x8:f16:64x256")
    of: Any = {"n": 512, "k": 1024, "weight": weight, "group_size": None, "m": (17, 32), "schedule": schedule}
    ptx = lowlp.compile_linear(**of, target="sm_90a", dependent_launch=True).ptx
    # The last wait in front of products is that of the warps that multiply.
    before = ptx[: ptx.index("wgmma.mma_async")]
    assert 0 < before.find("st.shared") < before.rfind("griddepcontrol.wait")


@pytest.mark.parametrize(
    "schedule",
    [
        wide(128, warpgroups=2),  # by rows of y in shared memory
        wide(128, column_tiles=2),  # by conversions
        wide(64, row_tiles=2, share_tiles=False),
        wide(40),  # all at once
    ],
)
def test_epilogues_of_some_columns_at_a_time(schedule: Schedule) -> None:
    random = np.random.default_rng(8)
    n, k, bias = 136, 264, random.standard_normal(136).astype(np.float32)
    qw = weights(random, vectors_of("vec8:2x8:f16"), n, k, k)
    schedule = replace(schedule, scales_on="weights")
    x = (0.1 * random.standard_normal((150, k))).astype(np.float16)
    y = run(qw, x, schedule, epilogue="gelu", bias=bias)
    wanted = wanted_of(x, qw, "gelu", bias, 0.0)
    assert np.linalg.norm(y - wanted) <= LIMITS["f16"] * np.linalg.norm(wanted)
    spec = LinearSpec(8192, 8192, "vec8:2x8:f16 channel f16", epilogue="gelu", aligned=True)
    assert compile(linear_kernel(spec, schedule), "sm_90a").spilled_bytes == 0


@pytest.mark.parametrize(
    ("codec", "k", "group", "schedule"),
    [
        ("vec8:2x8:f16:64x*", 256, 128, wide(row_tiles=2, share_tiles=False)),
        ("vec4:1x8:f16:64x128", 256, 128, wide(row_tiles=2)),
        ("vec4:1x8:f16:64x128", 1024, 1024, wide(row_tiles=2, steps=4, blocks_at_once=4)),
    ],
)
def test_gate_and_up_with_books_of_rows(codec: str, k: int, group: int, schedule: Schedule) -> None:
    """Each of both has a book of its own, one of them of another block of rows."""
    random = np.random.default_rng(1)
    qw = weights(random, vectors_of(codec), 256, k, group)
    x = random.standard_normal((20, k)).astype(np.float16)
    y = run(qw, x, schedule, epilogue="silu_mul")
    gate, up = np.split(x.astype(np.float64) @ qw.dequantize().T, 2, axis=1)
    wanted = gate / (1 + np.exp(-gate)) * up
    assert np.linalg.norm(y - wanted) <= 1e-5 * np.linalg.norm(wanted)


SUMS = ["vec8:2x8:int8", "vec8:3x8:int8", "vec8:2x8:f8e4m3", "vec8:3x8:f8e4m3", "e8p+e8p", "e8p+e81b"]
FAR = [(1e-9, 1e-7), (3e5, 2e3), (-2.0, 3.0), (0.7, -1e-3), (0.0, 3.0), (1.0, 0.0)]


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("codec", SUMS)
def test_sums_of_books_are_as_exact_as_f16(codec: str, is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever book has the largest scale, and whether or not that is known: `compile_linear` takes any weights."""
    if not is_known:
        monkeypatch.setattr(operands, "largest_book", lambda *_: -1)
    random = np.random.default_rng(2)
    qw = weights(random, vectors_of(codec), 64, 256, 256)
    x = random.standard_normal((5, 256)).astype(np.float16)
    for scales in (*FAR, (1.0, 1.001), (1.0, 2.05), (1.0, 20.0), (20.0, 1.0)):
        factors = np.array([*scales, scales[0] / 3][: vectors_of(codec).books], np.float32)
        far = QuantizedTensor(qw.codes, **named_books(qw), scales=qw.scales, book_scales=factors)
        wanted = x.astype(np.float64) @ far.dequantize().astype(np.float64).T
        found = run(far, x, wide(scales_on="weights"))
        # Half a unit of f16 for factors, and for sums.
        assert np.linalg.norm(found - wanted) <= 8e-4 * np.linalg.norm(wanted), scales


def test_the_largest_book() -> None:
    """It is the same one in all blocks, and other books' entries are not much larger than its own."""
    wide_entries, narrow = np.full((2, 4, 8), 100, np.int8), np.full((2, 4, 8), 3, np.int8)
    mixed = np.stack([narrow[0], wide_entries[0]])
    for scales, entries, book in (
        ([1.0, -2.0], None, 1),
        ([[2.0, 1.0], [0.0, 0.0], [-3.0, 3.0]], None, 0),
        ([[2.0, 1.0], [1.0, 2.0]], None, -1),
        ([0.0, 1e-30], wide_entries, 1),
        ([2.0, 1.0], mixed, -1),
        ([1.0, 2.0], mixed, 1),
        ([1.0, 1e-3], narrow.astype(np.float32), 0),
        ([1.0, 1e-5], narrow.astype(np.float32), -1),
        ([1.0, 0.0], narrow.astype(np.float32), 0),
    ):
        assert largest_book(np.array(scales, np.float32), entries) == book


@pytest.mark.parametrize(
    ("codec", "unknown", "known"),
    [
        ("vec8:2x8:f8e4m3", (64, 64, 0), (64, 0, 0)),
        ("vec8:2x8:int8", (128, 0, 64), (128, 0, 0)),
        ("e8p+e8p", (128, 0, 64), (128, 0, 0)),
    ],
)
def test_instructions_of_sums(codec: str, unknown: tuple[int, int, int], known: tuple[int, int, int]) -> None:
    """Of a loop that makes 128 registers of weights: fewer where the book with the largest scale is known."""
    spec = LinearSpec(1024, 2048, f"{codec} channel f16", aligned=True)
    schedule = wide(64, warpgroups=2, steps=4, scales_on="weights")
    for book, wanted in ((-1, unknown), (1, known)):
        ptx = compile(linear_kernel(replace(spec, largest_book=book), schedule), "sm_90a").ptx
        loop = next(part for part in ptx.split("\n$L") if "wgmma.mma_async" in part)
        assert tuple(loop.count(f"{name}.rn.f16x2") for name in ("fma", "mul", "add")) == wanted


@pytest.mark.parametrize("codec", ["vec8:2x8:int8", "vec8:2x8:f8e4m3", "e8p+e8p"])
def test_books_whose_scales_are_zero(codec: str) -> None:
    random = np.random.default_rng(3)
    qw = weights(random, vectors_of(codec), 64, 256, 256)
    none = QuantizedTensor(qw.codes, **named_books(qw), scales=qw.scales, book_scales=np.zeros(2, np.float32))
    assert not run(none, np.ones((5, 256), np.float16), wide(scales_on="weights")).any()


def named_books(qw: QuantizedTensor) -> dict[str, Any]:
    """The argument that names the books of weights."""
    vectors = vectors_of(str(qw.codec))
    return {"codebooks": str(vectors) if vectors.lattices else qw.codebooks}


@pytest.mark.parametrize(
    ("codec", "k", "begin", "schedule", "is_ordered"),
    [
        ("vec8:1x8:f16", 256, 3, wide(), True),
        ("vec8:1x8:f16", 200, 3, wide(), True),
        ("vec2:1x8:f16", 256, 8, wide(), False),  # in order as they are
        ("vec2:1x8:f16", 256, 3, wide(), True),
        ("vec2:1x8:f16", 200, 8, wide(), True),
        ("vec4:1x8:f16:64x128", 1024, 3, wide(steps=4, blocks_at_once=4), True),
    ],
)
def test_linear_puts_x_in_order(
    codec: str, k: int, begin: int, schedule: Schedule, is_ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are not aligned, of a length that is no whole unit, with bias and residual."""
    random = np.random.default_rng(3)
    qw = weights(random, vectors_of(codec), 48, k, k)
    memory = random.standard_normal((71, k + 16)).astype(np.float16)
    # Numpy aligns to 16 bytes; strides are whole 16 bytes.
    x = memory[:70, begin : k + begin]
    bias = random.standard_normal(48).astype(np.float32)
    residual = random.standard_normal((70, 48)).astype(np.float16)
    monkeypatch.setattr(linear_on_cpu, "schedule_for", lambda *_, **__: schedule)
    ordered, put = [], linear_on_cpu.ordered_on_cpu
    monkeypatch.setattr(linear_on_cpu, "ordered_on_cpu", lambda *args, **of: ordered.append(1) or put(*args, **of))
    y = lowlp.linear(x, qw, bias=bias, residual=residual, out_dtype="f32")
    assert bool(ordered) == is_ordered
    wanted = x.astype(np.float64) @ qw.dequantize().T + bias + residual
    assert np.linalg.norm(y - wanted) <= 1e-5 * np.linalg.norm(wanted)


def test_the_order_of_vectors() -> None:
    first = order_of_vectors(64, VectorOrder(8))[:16]
    assert first.tolist() == [0, 1, 8, 9, 16, 17, 24, 25, 2, 3, 10, 11, 18, 19, 26, 27]
    assert order_of_vectors(64, VectorOrder(2)).tolist() == list(range(64))
    for vector in (4, 8, 16):
        order = order_of_vectors(72, VectorOrder(vector))
        assert len(order) == padded_columns(72) == 128
        assert sorted(order) == [*range(72), *[72] * 56]
        # Lane t has registers p of a block: of both operands the same weights.
        block = order[: 4 * vector].reshape(vector // 2, 4, 2)
        for lane in range(4):
            assert block[:, lane].reshape(-1).tolist() == list(range(lane * vector, (lane + 1) * vector))
    # Of four blocks at once lane t has block r ^ t at turn r: all weights of a span, one after the other.
    order = order_of_vectors(1024, VectorOrder(4, block=128, span=64))
    assert sorted(order) == list(range(1024))
    turns = order[:256].reshape(4, 4, 2, 4, 2)  # turn, step, pair, lane, weight of the pair
    for turn in range(4):
        for lane in range(4):
            weights = (turn ^ lane) * 128 + np.arange(64).reshape(4, 4, 2, 2)[:, lane]
            np.testing.assert_array_equal(turns[turn, :, :, lane], weights)


@pytest.mark.parametrize(
    ("k", "order", "aligned"),
    [
        (4104, VectorOrder(8), True),
        (100, VectorOrder(4), False),
        (2000, VectorOrder(16), True),
        (68, VectorOrder(2), False),
        (36, VectorOrder(4), True),
        (1026, VectorOrder(2), True),
        (9 * 1024, VectorOrder(4, 256, 128), True),
        (2048, VectorOrder(8, 256, 64), False),
        (1024, VectorOrder(2, 128, 32), True),
    ],
)
def test_rows_in_the_order_of_vectors(k: int, order: VectorOrder, aligned: bool) -> None:
    """Also of several parts, and of rows that end within a unit, and within what a thread loads."""
    random = np.random.default_rng(k)
    kernel, columns = compile_cpu(vector_order_kernel(k, order, aligned, True)), order_of_vectors(k, order)
    stride = k + 8 - k % 8 if aligned else k + 3
    for m, multiprocessors in ((1, 132), (3, 1)):
        memory = random.integers(0, 1 << 16, (m, stride), dtype=np.uint16)
        y = np.full((m, padded_columns(k)), 7, np.uint16)
        numbers: dict[str, Any] = launch_numbers(padded_columns(k), m, stride, multiprocessors, gathers=False)
        kernel(x=memory.reshape(-1), y=y, **numbers)
        np.testing.assert_array_equal(y, np.pad(memory[:, :k], ((0, 0), (0, 1)))[:, columns])


@pytest.mark.parametrize(
    ("codec", "k", "group"),
    [
        ("vec4:1x8:f16:64x128", 768, 768),  # six blocks
        ("vec4:1x8:f16:64x128", 1024, 128),  # rows with several scales
        ("vec4:1x8:int8:64x128", 1024, 1024),  # books with scales
        ("vec4:2x8:f16:64x128", 1024, 1024),
        ("vec16:1x8:f16:64x128", 1024, 1024),  # entries that are read by halves
        ("vec4:1x8:f16:64x*", 1024, 1024),
    ],
)
def test_blocks_that_do_not_come_at_once(codec: str, k: int, group: int) -> None:
    scale = "channel" if group == k else f"g{group}"
    spec = LinearSpec(100, k, f"{codec} {scale} f16", aligned=True)
    assert not can_look_up_wide(spec, wide(steps=4, blocks_at_once=4))
    assert not can_go_wide(LinearSpec(256, 1024, "int4 g128 f16", aligned=True), wide(steps=4, blocks_at_once=4))
    with pytest.raises(LowlpValueError, match="blocks_at_once: must be 1 without stages or without warpgroups, got 4"):
        Schedule(16, 4, stages=3, blocks_at_once=4)
    assert can_look_up_wide(spec, wide(steps=2)) or codec.startswith("vec16") or "2x8" in codec


@pytest.mark.parametrize(
    ("codec", "n", "k", "schedule"),
    [
        ("vec2:1x8:f16", 200, 512, wide(16, warpgroups=2)),
        ("vec8:2x12:f8e4m3", 200, 1024, wide(16, scales_on="weights", warpgroups=3, steps=4)),
        ("e8p", 512, 256, wide(16, warpgroups=4, steps=1)),
        ("e8p", 256, 512, wide(16, warpgroups=4, slices=4, steps=8, share_tiles=False)),
    ],
)
def test_few_rows_have_the_same_bits(codec: str, n: int, k: int, schedule: Schedule) -> None:
    """Whatever else is in their batch: of the schedule for 1 to 16 rows only the columns differ."""
    random = np.random.default_rng(n)
    qw = weights(random, vectors_of(codec), n, k, k)
    x = random.standard_normal((16, k)).astype(np.float16)
    found = run(qw, x, schedule)
    wanted = x.astype(np.float64) @ qw.dequantize().T
    assert np.linalg.norm(found - wanted) <= LIMITS["f16"] * np.linalg.norm(wanted)
    for m in (1, 9):
        assert np.array_equal(run(qw, x[:m], with_columns_for(schedule, m)), found[:m])


def test_the_inner_loop(tmp_path: Path) -> None:
    """One PRMT and one load of 16 bytes for a code of 2x8, no value from lane to lane; and the kernel before it, which
    is saved with it."""
    vectors = lowlp.vq(vector=8, bits=8, books=2)
    schedule = Schedule(128, stages=3, warpgroups=2, row_tiles=1, steps=2, column_tiles=1, scales_on="weights")
    kernel = lowlp.compile_linear(n=1024, k=2048, weight=vectors, m=(64, 128), group_size=None, schedule=schedule)
    loop = next(part for part in kernel.ptx.split("\n$L") if "wgmma.mma_async" in part)
    # Of two units of 64 weights: 4 lookups of 2 books each, beside codes.
    assert loop.count("prmt.b32") == 16 and loop.count("ld.shared.v4") == 16 + 1
    assert "shfl" not in loop and ".local" not in kernel.ptx and kernel.spilled_bytes == 0
    assert kernel.product_remarks == 0
    kernel.save(tmp_path / "k.lowlp")
    loaded = lowlp.load(tmp_path / "k.lowlp")
    assert loaded.description.product is not None and loaded.description.product.vector_order == 8
    before = loaded.binary.before
    assert before is not None and before.description.name == "order_vectors"
    # As an older lowlp saved it.
    gathering = gpu_ordering_kernel(2048, None, True, False, "sm_90a").binary
    qw = weights(np.random.default_rng(0), vectors_of("vec8:2x8:f16"), 1024, 2048, 2048)
    with pytest.raises(LowlpValueError, match="was saved by an older lowlp"):
        check_weights(replace(loaded.binary, before=gathering), loaded.description.product, StoredWeights.of(qw))


def test_pairs_are_in_order(tmp_path: Path) -> None:
    """Vectors of two weights take x as it is, but of rows that are no whole units."""
    schedule = wide(64)
    for k, order in ((256, None), (200, 2)):
        kernel = lowlp.compile_linear(
            n=128, k=k, weight=lowlp.vq(vector=2, bits=8, books=1), m=(17, 64), group_size=None, schedule=schedule
        )
        kernel.save(tmp_path / "k.lowlp")
        loaded = lowlp.load(tmp_path / "k.lowlp")
        assert loaded.description.product is not None and loaded.description.product.vector_order == order
        assert (loaded.binary.before is None) == (order is None)
