"""`lowlp.linear` with weights of codebooks, on the CPU target."""

import dataclasses
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import QuantizedTensor
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.codebooks.schedules import codebook_schedule
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.numeric.vectors import Vectors
from lowlp.ops.linear_kernels import compile_for_cpu
from lowlp.schedules.device import H200, device_like
from lowlp_runtime import LowlpValueError
from lowlp_runtime.operand_arrays import host_operands as arrays_of_operands
from lowlp_runtime.stored_weights import StoredWeights

NUMPY: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
}
# Small matrices are padded most.
pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
LIMITS = {"f16": 2e-3, "bf16": 1.1e-2}


def weights(
    random: np.random.Generator, vectors: Vectors, n: int, k: int, group: int, scale: Any = np.float16
) -> QuantizedTensor:
    """Weights of random codes, with books for the blocks of `vectors`."""
    codes = [random.integers(0, 1 << bits, (n, k // vectors.vector)) for bits in vectors.bits_of_books]
    scales = random.normal(0, 0.1, (n, k // group)).astype(scale)
    held = np.stack(codes, axis=-1).astype(vectors.code_dtype)
    if vectors.lattices:
        return QuantizedTensor(held, codebooks=str(vectors), scales=scales)
    counts: tuple[int, ...] = ()
    if vectors.block:
        sizes = [size or extent for size, extent in zip(vectors.block, (n, k)[-len(vectors.block) :], strict=True)]
        counts = tuple(-(-extent // size) for extent, size in zip((n, k), sizes, strict=True))
    shape = (*counts, vectors.books, 1 << vectors.bits, vectors.vector)
    kind = str(vectors.entries)
    entries = random.integers(-128, 128, shape) if kind == "int8" else random.normal(0, 1, shape)
    factors = random.uniform(0.01, 0.1, shape[:-2]).astype(np.float32) if vectors.has_book_scales else None
    per = vectors.book_per if vectors.block else None
    qw = QuantizedTensor(
        held, codebooks=entries.astype(NUMPY[kind]), scales=scales, book_scales=factors, book_per=per, group_size=group
    )
    return qw.spread() if vectors.spread else qw


def vectors_of(text: str) -> Vectors:
    found = lowlp.Codec.parse(text).vectors
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("codec", "n", "k", "group", "m", "activation"),
    [
        ("vec8:2x8:f16", 48, 256, 256, 5, "f16"),  # AQLM 2x8
        ("vec8:1x8:f16", 33, 256, 64, 40, "f16"),  # several groups in a unit
        ("vec8:1x16:f16", 33, 128, 128, 1, "bf16"),  # AQLM 1x16, entries rounded to the activations' type
        ("vec4:1x8:f16:32x128", 64, 320, 160, 17, "f16"),  # GPTVQ, the last block shorter
        ("vec4:1x8:int8:32x256", 80, 384, 128, 3, "bf16"),  # and with books of 8 bits
        ("vec2:1x8:f16", 40, 200, 40, 3, "f16"),
        ("vec8:2x12:f8e4m3", 40, 264, 24, 3, "f16"),  # groups that share steps
        ("vec8:2x12:f16:32x*", 64, 256, 256, 9, "f16"),
        ("vec16:2x8:bf16", 33, 208, 208, 2, "bf16"),
        ("vec16:1x4:int8", 33, 128, 16, 1, "f16"),
        ("e8p", 40, 256, 256, 3, "f16"),
        ("e8p+e81b", 40, 320, 64, 3, "f16"),
        ("e8p+e8p", 20, 128, 128, 2, "bf16"),
    ],
)
def test_products(codec: str, n: int, k: int, group: int, m: int, activation: str) -> None:
    """Against float64 with the dequantised weights; and rows of I give these, to the bit where entries are exact."""
    random = np.random.default_rng(k + n)
    vectors = vectors_of(codec)
    qw = weights(random, vectors, n, k, group, np.float32 if vectors.lattices else np.float16)
    values = qw.dequantize()
    x = random.standard_normal((m, k)).astype(NUMPY[activation])
    y = lowlp.linear(x, qw, out_dtype="f32")
    wanted = x.astype(np.float64) @ values.astype(np.float64).T
    assert np.linalg.norm(y - wanted) <= LIMITS[activation] * np.linalg.norm(wanted)
    unit = np.eye(k, dtype=NUMPY[activation])
    found = lowlp.linear(unit, qw, out_dtype="f32").T
    if vectors.entries in ("f16", "bf16") and vectors.entries != activation:
        assert np.linalg.norm(found - values) <= LIMITS[activation] * np.linalg.norm(values)
    else:
        # Sums of two and more books too: both entries have few bits.
        assert np.array_equal(found, values)
        assert np.array_equal(lowlp.linear(unit, qw).T, values.astype(NUMPY[activation]))


def test_what_follows_the_product() -> None:
    """Bias, gate and up, a residual, and rows of x that lie apart."""
    random = np.random.default_rng(1)
    qw = weights(random, vectors_of("vec8:2x8:f16:32x*"), 64, 256, 128)
    x = random.standard_normal((6, 300)).astype(np.float16)[:, 3:259]
    bias = random.standard_normal(64).astype(np.float32)
    residual = random.standard_normal((6, 32)).astype(np.float16)
    y = lowlp.linear(x, qw, bias=bias, epilogue="silu_mul", residual=residual, out_dtype="f32")
    gate, up = np.split(x.astype(np.float64) @ qw.dequantize().T + bias, 2, axis=1)
    wanted = gate / (1 + np.exp(-gate)) * up + residual
    assert np.linalg.norm(y - wanted) <= 1e-5 * np.linalg.norm(wanted)


def test_rows_do_not_depend_on_others() -> None:
    random = np.random.default_rng(2)
    qw = weights(random, vectors_of("vec8:2x8:f16"), 64, 512, 512)
    x = random.standard_normal((16, 512)).astype(np.float16)
    y = lowlp.linear(x, qw, out_dtype="f32")
    for m in (3, 9):
        assert np.array_equal(lowlp.linear(x[:m], qw, out_dtype="f32"), y[:m])


def test_results_do_not_depend_on_where_entries_are() -> None:
    """A book with entries and codes in another order is the same weights (VQ-LLM's cache may hold any part of it)."""
    random = np.random.default_rng(3)
    qw = weights(random, vectors_of("vec4:2x8:f16"), 32, 256, 64)
    assert qw.codebooks is not None
    order = random.permutation(256)
    codes = np.argsort(order).astype(np.uint8)[qw.codes]
    other = QuantizedTensor(codes, codebooks=qw.codebooks[:, order], scales=qw.scales)
    x = random.standard_normal((4, 256)).astype(np.float16)
    assert np.array_equal(lowlp.linear(x, other), lowlp.linear(x, qw))


def run_as(qw: QuantizedTensor, x: Any, schedule: Schedule, epilogue: str = "") -> Any:
    """y as f32 by the kernel that divides its work so."""
    spec = spec_for(qw, "f16", "f32", aligned=True, epilogue=epilogue)
    y = np.full((len(x), spec.columns_of_y), np.nan, np.float32)
    operands = host_operands(qw, "f16", epilogue)
    compile_for_cpu(spec, schedule)(**operands, x=x.reshape(-1), y=y, m=len(x), x_stride=x.shape[1])
    return y


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("codec", "n", "k", "group", "m", "schedules"),
    [
        (
            "vec4:1x8:int8:64x128",
            128,
            384,
            64,
            20,
            [Schedule(32, 2), Schedule(16, 4, stages=3, row_tiles=1), Schedule(8, 2, stages=4, row_tiles=2)],
        ),
        ("vec8:1x8:f16:32x384", 64, 640, 64, 5, [Schedule(8, 1, stages=4, row_tiles=2)]),
        (
            "vec8:2x8:f16",
            80,
            512,
            512,
            11,
            [Schedule(16, 2, stages=3, row_tiles=1), Schedule(8, 3, stages=2, row_tiles=4, steps=2)],
        ),
        ("vec8:1x8:f16", 48, 512, 64, 3, [Schedule(8, 2, stages=4, row_tiles=2)]),  # groups within a unit
        # Codes that name one of two copies, of which both are there, or the first.
        (
            "vec4:2x12+1:int8",
            64,
            512,
            512,
            5,
            [Schedule(8, 2, stages=2, row_tiles=1), Schedule(8, 2, stages=2, row_tiles=2, second_copies=True)],
        ),
        ("vec2:1x8:f16:32x*", 64, 256, 128, 9, [Schedule(16, 2, stages=3, row_tiles=1)]),
        ("vec8:2x12:f8e4m3", 40, 512, 256, 5, [Schedule(8, 2, stages=3, row_tiles=2, steps=2)]),
        ("e8p+e81b", 32, 512, 512, 5, [Schedule(8, 2, stages=3, row_tiles=1)]),
    ],
)
def test_any_division_of_the_work_gives_the_same(
    codec: str, n: int, k: int, group: int, m: int, schedules: list[Schedule]
) -> None:
    """To the bit, with stages and without, for gate and up too."""
    random = np.random.default_rng(4)
    qw = weights(random, vectors_of(codec), n, k, group)
    x = random.standard_normal((m, k)).astype(np.float16)
    for epilogue in ("", "silu_mul"):
        wanted = run_as(qw, x, Schedule(8, 1), epilogue)
        for schedule in schedules:
            assert np.array_equal(run_as(qw, x, schedule, epilogue), wanted)


@pytest.mark.parametrize(
    ("codec", "k", "epilogue", "splits"),
    [
        ("vec8:1x8:f16", 512, "", 1),
        ("vec4:1x8:f16:64x128", 384, "silu_mul", 1),
        ("vec8:2x8:int8", 512, "gelu", 2),
        ("vec16:1x8:bf16", 1024, "", 1),
        ("e8p+e81b", 512, "", 1),
    ],
)
def test_stages_of_few_rows(codec: str, k: int, epilogue: str, splits: int) -> None:
    """Stages with fewer rows than there are columns, and than there are in all, give the same to the bit."""
    random = np.random.default_rng(6)
    qw = weights(random, vectors_of(codec), 128, k, k)
    spec = spec_for(qw, "f16", "f32", "f32", True, epilogue, "f16")
    m, columns = 7, spec.columns_of_y
    x = random.standard_normal((m, k)).astype(np.float16)
    residual = random.standard_normal((m, columns)).astype(np.float16)
    bias = random.standard_normal(128).astype(np.float32)
    found = []
    for rows in (0, 1, 2, 4):
        schedule = Schedule(8, 2, stages=3, row_tiles=2, splits=splits, staged_rows=rows)
        y, product = np.full((m, columns), np.nan, np.float32), product_of(spec, schedule)
        given = {"x": x.reshape(-1), "bias": bias, "residual": residual.reshape(-1), "y": y}
        given |= product.launch_numbers(m, k, columns, 2)
        compile_for_cpu(spec, schedule)(**host_operands(qw, "f16", epilogue), **product.by_name(given))
        found.append(y)
    for y in found[1:]:
        assert np.array_equal(y, found[0])


def test_schedules() -> None:
    """With stages where units are whole, else without; all numbers of rows add in one order."""
    random = np.random.default_rng(5)
    qw = weights(random, vectors_of("vec8:2x8:f16"), 256, 512, 512)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    found = [schedule_for(spec, m, batch_invariant=True) for m in range(1, 7)]
    assert [schedule.staged_rows for schedule in found] == [1, 2, 4, 4, 0, 0]
    assert found[0].stages and {dataclasses.replace(schedule, staged_rows=0) for schedule in found} == {found[-1]}
    pairs = spec_for(weights(random, vectors_of("vec2:1x8:f16"), 256, 512, 512), "f16", "f16", aligned=True)
    alone = schedule_for(pairs, 1, batch_invariant=True)
    assert alone.stages and not alone.staged_rows
    assert schedule_for(spec, 200, batch_invariant=True).columns == 64
    assert schedule_for(dataclasses.replace(spec, n=57344, k=8192), 8, batch_invariant=True).blocks_per_sm == 2
    assert not schedule_for(spec_for(qw, "f16", "f16"), 1, batch_invariant=True).stages
    of_blocks = spec_for(weights(random, vectors_of("vec8:1x8:f16:48x64"), 96, 512, 512), "f16", "f16", aligned=True)
    assert schedule_for(of_blocks, 1) == Schedule(8, 1)
    with pytest.raises(LowlpValueError, match=r"^schedule: no kernel takes .* as Schedule\(columns=8, warps=8,"):
        compile_for_cpu(of_blocks, Schedule(8, 8))


def test_stages_of_x_fit_shared_memory() -> None:
    """Short codes make units long: four stages of 64 rows of x would take more than a block has."""
    spec = LinearSpec(256, 1024, Codec(lowlp.vq(8, 2), "tensor", "f32"), aligned=True)
    for m in (1, 33, 64, 100):
        schedule = schedule_for(spec, m, batch_invariant=True)
        units = schedule.stages * schedule.steps
        assert units * spec.unit_k * schedule.columns * 2 < device_like("sm_90a").shared_bytes


def test_books_of_one_block_are_those_of_all_weights() -> None:
    random = np.random.default_rng(7)
    books = random.integers(-8, 8, (1, 1, 1, 16, 4)).astype(np.float16)
    codes = random.integers(0, 16, (16, 32, 1)).astype(np.uint8)
    qw = QuantizedTensor(codes, codebooks=books, book_per=(None, 128))
    assert np.array_equal(lowlp.linear(np.eye(128, dtype=np.float16), qw).T, qw.dequantize())


def test_the_inner_loop() -> None:
    """One PRMT and one load of 16 bytes for a code of 2x8, and beside these x, codes and copies. The assembler may use
    the registers that the blocks of a multiprocessor leave it: else it loads codes when they are waited for."""
    kernel = lowlp.compile_linear(
        n=512,
        k=2048,
        weight=lowlp.vq(vector=8, bits=8, books=2),
        m=(1, 8),
        group_size=None,
        schedule=Schedule(8, 4, stages=4, row_tiles=2, blocks_per_sm=2),
    )
    assert ".minnctapersm 2" in kernel.ptx
    loop = kernel.ptx.split("mma.sync", 1)[1].rsplit("mma.sync", 1)[0]
    # Of a unit of 128 weights: two tiles, four chunks, two books, two rows; and x of each chunk.
    assert kernel.ptx.count("prmt.b32") == 32 and kernel.ptx.count("ld.shared.v4") == 32 + 4
    assert "shfl" not in kernel.ptx and ".local" not in kernel.ptx and "ld.shared.b" not in kernel.ptx
    assert not {"and.b32", "shr.u32", "bfe.u32", "shf.r"} & set(loop.split())


def test_the_inner_loop_of_bytes() -> None:
    """Of a vector of int8 4 PRMT and 4 subtractions beside its address; 128 is added where the cache is filled."""
    schedule = Schedule(8, 4, stages=4, row_tiles=2)
    weight = lowlp.vq(vector=8, bits=8, books=2, entries="int8")
    ptx = lowlp.compile_linear(n=512, k=2048, weight=weight, m=(1, 8), group_size=None, schedule=schedule).ptx
    fill, loop = ptx.split("mma.sync", 1)
    vectors = ptx.count("ld.shared.v2")
    assert vectors == 32 and ptx.count("add.rn.f16x2") == 4 * vectors and ptx.count("prmt.b32") == (4 + 1) * vectors
    assert "xor.b32" in fill and "xor.b32" not in loop and ".local" not in ptx


@pytest.mark.parametrize("text", ["vec8:2x8:f16", "vec8:1x16:f16", "vec4:1x8:f16:256x256", "vec8:2x8:int8"])
def test_an_early_start(text: str) -> None:
    """Codes are in flight and books there before x is waited for, and x is read after that alone."""
    vectors = vectors_of(text)
    schedule = codebook_schedule(LinearSpec(8192, 2048, Codec(vectors, "channel", "f16"), aligned=True), 8, H200)
    of: Any = {"n": 8192, "k": 2048, "weight": vectors, "m": (3, 8), "schedule": schedule}
    kernel = lowlp.compile_linear(**of, dependent_launch=True)
    before, after = kernel.ptx.split("griddepcontrol.wait")
    assert "griddepcontrol.launch_dependents" in before and kernel.description.dependent_launch
    assert "st.shared" in before and "cp.async" not in before and "st.global" not in before and "cp.async" in after
    plain = lowlp.compile_linear(**of)
    assert "griddepcontrol" not in plain.ptx and not plain.description.dependent_launch


def test_kernels_ahead_of_time(tmp_path: Path) -> None:
    """A kernel of `compile_linear`, saved and loaded, names the operands that books are."""
    vectors = lowlp.vq(vector=8, bits=8, books=2)
    kernel = lowlp.compile_linear(n=64, k=256, weight=vectors, m=(1, 8), group_size=None)
    kernel.save(tmp_path / "k.lowlp")
    product = lowlp.load(tmp_path / "k.lowlp").description.product
    assert product is not None and product.code == "vec8-2x8"
    shapes = {operand.name: (operand.element, operand.shape) for operand in product.operands}
    assert shapes["codebooks"] == ("f16", (2, 256, 8)) and shapes["codebooks_unscale"] == ("f32", ())
    qw = weights(np.random.default_rng(5), vectors, 64, 256, 256)
    stored = StoredWeights.of(qw)
    assert stored.code == product.code
    made = arrays_of_operands(product.operands, {name: stored.read(name) for name in stored.types})
    assert np.array_equal(made["codebooks"] * np.float32(made["codebooks_unscale"]), qw.codebooks)


def test_refusals() -> None:
    random = np.random.default_rng(6)
    x = np.zeros((1, 256), np.float16)
    with pytest.raises(LowlpValueError, match=r"^weight: books of blocks of 24 rows have no kernels; must be"):
        lowlp.linear(x, weights(random, vectors_of("vec8:2x8:f16:24x256"), 48, 256, 256))
    qw = weights(random, vectors_of("vec8:2x8:f16:32x256"), 48, 256, 256)
    with pytest.raises(LowlpValueError, match=r"^epilogue: silu_mul with books of blocks needs a multiple of 16 rows"):
        lowlp.linear(x, qw, epilogue="silu_mul")
    with pytest.raises(LowlpValueError, match=r"^weight: kernels compute e8p from tables that saved weights lack"):
        lowlp.compile_linear(n=64, k=256, weight=Vectors.lattice("e8p"))
    with pytest.raises(LowlpValueError, match=r"^table: must be None for vectors, got 'tensor'"):
        lowlp.compile_linear(n=64, k=256, weight=lowlp.vq(8, 8), table="tensor")
    with pytest.raises(LowlpValueError, match=r"^group_size: must be a multiple of the 8 weights of a code, got 4"):
        lowlp.compile_linear(n=64, k=256, weight=lowlp.vq(8, 8), group_size=4)
    with pytest.raises(LowlpValueError, match=r"^permutation: must be False, since columns of vectors have one order"):
        lowlp.compile_linear(n=64, k=256, weight=lowlp.vq(8, 8), permutation=True)
