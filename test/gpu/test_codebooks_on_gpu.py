"""Products with weights of codebooks on a GPU: as on the CPU target, with stages and without."""

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.ops import linear_launch
from lowlp.weights.codebook_order import ordered_by_frequency

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

from linear_launches import check_chain  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
NUMPY: dict[str, Any] = {"f16": np.float16, "int8": np.int8, "f8e4m3": ml_dtypes.float8_e4m3fn}


def weights(vector: int, bits: int, books: int, entries: str, n: int, k: int, block: Any) -> lowlp.QuantizedTensor:
    random = np.random.default_rng(n + k)
    codes = random.integers(0, 1 << bits, (n, k // vector, books)).astype(np.uint8 if bits <= 8 else np.uint16)
    counts = (-(-n // block[0]), -(-k // block[1])) if block else ()
    shape = (*counts, books, 1 << bits, vector)
    drawn = random.integers(-128, 128, shape) if entries == "int8" else random.normal(0, 1, shape)
    factors = None if entries == "f16" else random.uniform(0.01, 0.1, shape[:-2]).astype(np.float32)
    scales = random.uniform(0.01, 0.02, (n, 1)).astype(np.float16)
    return lowlp.QuantizedTensor(
        codes, codebooks=drawn.astype(NUMPY[entries]), scales=scales, book_scales=factors, book_per=block
    )


@pytest.mark.parametrize(
    ("vector", "bits", "books", "entries", "n", "k", "block"),
    [
        (8, 8, 2, "f16", 1000, 1024, None),
        (4, 8, 1, "f16", 1024, 2048, (256, 256)),
        (8, 12, 2, "int8", 520, 768, None),
        (2, 8, 1, "f8e4m3", 300, 520, None),  # rows that are no whole units: without stages
        (8, 16, 1, "f16", 256, 512, None),
        (8, 8, 2, "f16", 512, 4096, None),  # K is divided among blocks
    ],
)
def test_products(vector: int, bits: int, books: int, entries: str, n: int, k: int, block: Any) -> None:
    check(weights(vector, bits, books, entries, n, k, block), books == 1 or entries != "f16")


@pytest.mark.parametrize(
    ("vector", "bits", "books", "entries", "n", "k", "block"),
    [
        (8, 12, 2, "f16", 1000, 1024, None),  # either order of two books
        (8, 12, 2, "int8", 520, 4096, None),  # a second place of each entry
        (8, 12, 1, "f16", 300, 520, None),
        (4, 10, 2, "f8e4m3", 256, 2048, (64, 512)),
        (8, 12, 2, "f16", 256, 1024, (64, 512)),
    ],
)
def test_spread_codes(vector: int, bits: int, books: int, entries: str, n: int, k: int, block: Any) -> None:
    spread = weights(vector, bits, books, entries, n, k, block).spread()
    assert spread.codec.vectors is not None and spread.codec.vectors.spread
    check(spread, books == 1)
    rows = torch.tensor([n - 1, 0, 7], device="cuda")
    found = lowlp.embedding(rows, spread, out_dtype="f32")
    assert np.array_equal(found.cpu().numpy(), spread.dequantize()[rows.cpu().numpy()])


@pytest.mark.parametrize("name", ["e8p", "e8p+e81b", "e8p+e8p"])
def test_computed_books(name: str) -> None:
    random = np.random.default_rng(5)
    bits = {"e8p": (16,), "e8p+e81b": (16, 8), "e8p+e8p": (16, 16)}[name]
    codes = np.stack([random.integers(0, 1 << width, (520, 128)) for width in bits], axis=-1).astype(np.uint16)
    scales = random.uniform(0.01, 0.02, (520, 1)).astype(np.float32)
    check(lowlp.QuantizedTensor(codes, codebooks=name, scales=scales), name == "e8p")


def test_frequent_entries() -> None:
    """Those kept in shared memory and those in global memory, by a kernel that takes both."""
    random = np.random.default_rng(6)
    codes = (np.minimum(random.zipf(1.2, (2048, 1024, 1)), 1 << 16) - 1).astype(np.uint16)
    books = random.normal(0, 1, (1, 1 << 16, 8)).astype(np.float16)
    scales = random.uniform(0.01, 0.02, (2048, 1)).astype(np.float16)
    ordered = ordered_by_frequency(lowlp.QuantizedTensor(codes, codebooks=books, scales=scales))
    assert schedule_for(spec_for(ordered, "f16", "f16", aligned=True), 1).kept_entries
    check(ordered, True)


@pytest.mark.parametrize(
    ("vector", "books", "n", "k", "least"), [(2, 1, 5120, 5120, 1), (8, 2, 28672, 4096, 3), (4, 1, 4096, 4096, 1)]
)
def test_rows_of_a_batch(vector: int, books: int, n: int, k: int, least: int) -> None:
    """Each has the same bits whatever the others are: with up to 16, or those that take no partial sums."""
    qw = weights(vector, 8, books, "f16", n, k, None)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    assert schedule_for(spec, 16).warpgroups and schedule_for(spec, 1).partial_sums == (least > 1)
    x = torch.randn(16, k, device="cuda", dtype=torch.float16)
    every = lowlp.linear(x, qw)
    wanted = x.double() @ torch.from_numpy(qw.dequantize()).cuda().double().T
    assert torch.linalg.norm(every.double() - wanted) <= 2e-3 * torch.linalg.norm(wanted)
    for m in range(least, 16):
        assert torch.equal(lowlp.linear(x[:m], qw), every[:m])
        assert torch.equal(lowlp.linear(x[16 - m :], qw), every[16 - m :])


def check(qw: lowlp.QuantizedTensor, is_exact: bool) -> None:
    k, values = qw.shape[1], qw.dequantize()
    x = torch.randn(60, k, device="cuda", dtype=torch.float16)
    wanted = x.cpu().numpy().astype(np.float64) @ values.astype(np.float64).T
    every = lowlp.linear(x, qw, out_dtype="f32", batch_invariant=True)
    assert np.linalg.norm(every.cpu().numpy() - wanted) <= 2e-3 * np.linalg.norm(wanted)
    for m in (1, 17):
        # All numbers of rows add in one order, where that is asked for.
        assert torch.equal(lowlp.linear(x[:m], qw, out_dtype="f32", batch_invariant=True), every[:m])
    unit = torch.eye(k, device="cuda", dtype=torch.float16)
    found = lowlp.linear(unit, qw, out_dtype="f32", batch_invariant=True).T.cpu().numpy()
    if is_exact:
        assert np.array_equal(found, values)
    else:
        # Tensor cores cut off what their sums do not hold.
        np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("vector", "books", "n", "block", "schedule"),
    [
        (8, 1, 1000, None, Schedule(16, 3, stages=3, row_tiles=2, steps=2, blocks_per_sm=2)),
        (8, 2, 520, None, Schedule(8, 4, stages=4, row_tiles=1, steps=2, splits=4, blocks_per_sm=3)),
        (4, 1, 1024, (256, 256), Schedule(16, 8, stages=2, row_tiles=2, steps=2, blocks_per_sm=2)),
        (2, 1, 300, None, Schedule(8, 2, stages=4, row_tiles=2, steps=4)),
    ],
)
def test_stages_of_several_units(
    vector: int, books: int, n: int, block: Any, schedule: Schedule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by stages of one unit, to the bit."""
    x = torch.randn(13, 2048, device="cuda", dtype=torch.float16)
    found = []
    for steps in (1, schedule.steps):
        form = dataclasses.replace(schedule, steps=steps)
        monkeypatch.setattr(linear_launch, "schedule_for", lambda *_, form=form, **__: form)
        # Calls are kept with a tensor.
        qw = weights(vector, 8, books, "f16", n, 2048, block)
        found.append(lowlp.linear(x, qw, out_dtype="f32"))
    assert torch.equal(found[0], found[1])
    wanted = x.cpu().numpy().astype(np.float64) @ qw.dequantize().astype(np.float64).T
    assert np.linalg.norm(found[0].cpu().numpy() - wanted) <= 2e-3 * np.linalg.norm(wanted)


@pytest.mark.parametrize("m", [1, 5, 16])
def test_chains_begin_early(m: int) -> None:
    """Each product reads what the one before it has written, and adds parts where that has added its own."""
    n = 1024
    forms = [(8, 8, 2, "f16", None), (8, 16, 1, "f16", None), (4, 8, 1, "f16", (256, 256)), (8, 12, 2, "int8", None)]
    made = [weights(*form[:4], n, n, form[4]) for form in forms]
    lattice = np.random.default_rng(5).integers(0, 1 << 16, (n, n // 8, 1)).astype(np.uint16)
    made.append(lowlp.QuantizedTensor(lattice, codebooks="e8p", scales=np.full((n, 1), 0.02, np.float32)))
    x = torch.randn(m, n, device="cuda", dtype=torch.float16)
    bias = torch.randn(n, device="cuda")

    def run() -> Any:
        y = x
        for step in range(20):
            y = lowlp.linear(y, made[step % len(made)], bias=bias, residual=y if step % 2 else None)
            y = torch.nn.functional.layer_norm(y, (n,)) if step % 7 == 6 else y * 0.25
            y = lowlp.linear(y.clamp(-8, 8), made[(step + 1) % len(made)]) * 0.1
        return y

    check_chain(run, times=20)


@pytest.mark.parametrize(("books", "entries"), [(1, "f16"), (2, "int8"), (4, "f8e4m3")])
def test_one_and_two_rows(books: int, entries: str) -> None:
    """By sums of products of entries: one row has the bits of two, rows of I give the entries of one book, and a chain
    of launches that begin early, and a graph of it, give what launches one after the other do."""
    k = 4096
    qw = weights(8, 8, books, entries, k, k, None)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    assert all(linear_launch.schedule_for(spec, m).partial_sums for m in (1, 2))
    values = qw.dequantize()
    x = torch.randn(2, k, device="cuda", dtype=torch.float16)
    y = lowlp.linear(x, qw, out_dtype="f32")
    wanted = x.cpu().numpy().astype(np.float64) @ values.astype(np.float64).T
    assert np.linalg.norm(y.cpu().numpy() - wanted) <= 1e-5 * np.linalg.norm(wanted)
    assert torch.equal(lowlp.linear(x[:1], qw, out_dtype="f32"), y[:1])
    for column in (0, 17, k - 1):
        unit = torch.zeros(1, k, device="cuda", dtype=torch.float16)
        unit[0, column] = 1
        found = lowlp.linear(unit, qw, out_dtype="f32")[0].cpu().numpy()
        # Sums of several may nearly vanish.
        np.testing.assert_allclose(found, values[:, column], rtol=0, atol=0 if books == 1 else 1e-7)

    def chain() -> Any:
        start = x
        for _ in range(6):
            start = lowlp.linear(start, qw) / 64
            start = lowlp.linear(lowlp.linear(start, qw) * 0.01, qw) * 0.01
        return start

    check_chain(chain)


WIDE: dict[str, Any] = {"stages": 2, "steps": 2, "warpgroups": 2, "row_tiles": 1}


@pytest.mark.parametrize(
    ("vector", "bits", "books", "entries", "n", "k", "block", "schedule"),
    [
        (8, 8, 1, "f16", 1000, 1032, None, Schedule(128, column_tiles=2, **WIDE)),
        (8, 8, 1, "f16", 1000, 1032, None, Schedule(128, **WIDE | {"steps": 1, "stages": 3})),
        (8, 8, 2, "f16", 2056, 2048, None, Schedule(128, column_tiles=2, scales_on="weights", **WIDE)),
        (8, 8, 2, "f16", 1000, 520, None, Schedule(64, **WIDE)),
        (4, 8, 1, "f16", 1024, 2048, (256, 256), Schedule(128, share_tiles=False, **WIDE | {"row_tiles": 2})),
        (4, 8, 1, "f16", 1024, 2048, (256, 256), Schedule(64, **WIDE)),
        (8, 12, 2, "int8", 520, 768, None, Schedule(64, scales_on="weights", **WIDE)),
        (8, 12, 2, "int8", 1000, 1032, None, Schedule(128, column_tiles=2, scales_on="weights", **WIDE | {"steps": 1})),
        (8, 12, 2, "f16", 1000, 1032, None, Schedule(88, column_tiles=2, scales_on="weights", **WIDE | {"steps": 1})),
        (2, 8, 1, "f8e4m3", 300, 520, None, Schedule(96, **WIDE)),
        (16, 8, 1, "f16", 256, 1024, None, Schedule(64, **WIDE | {"steps": 4})),
        (8, 16, 1, "f16", 256, 512, None, Schedule(64, cluster=2, **WIDE)),
        (2, 8, 1, "f16", 1000, 1088, None, Schedule(32, slices=4, **WIDE | {"steps": 4, "warpgroups": 4})),
        (8, 8, 1, "f16", 1000, 1024, None, Schedule(48, slices=2, cluster=2, **WIDE | {"steps": 8})),
        (8, 8, 2, "f16", 520, 1152, None, Schedule(16, slices=2, scales_on="weights", **WIDE | {"steps": 4})),
    ],
)
def test_products_by_warpgroups(
    vector: int,
    bits: int,
    books: int,
    entries: str,
    n: int,
    k: int,
    block: Any,
    schedule: Schedule,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """x goes through the kernel that puts it in the order of vectors; rows of I give one book's weights to the bit."""
    monkeypatch.setattr(linear_launch, "schedule_for", lambda *_, **__: schedule)
    qw = weights(vector, bits, books, entries, n, k, block)
    values = qw.dequantize()
    x = torch.cat([torch.randn(203, k, device="cuda"), torch.eye(k, device="cuda")[-97:]]).half()
    wanted = x.cpu().numpy().astype(np.float64) @ values.astype(np.float64).T
    for _ in range(3):
        found = lowlp.linear(x, qw, out_dtype="f32").cpu().numpy()
        assert np.linalg.norm(found - wanted) <= 2e-3 * np.linalg.norm(wanted)
        if books == 1:
            assert np.array_equal(found[203:], values.T[-97:])


def test_chosen_schedules_by_warpgroups() -> None:
    """Those of the choice for many rows, in a saved kernel's way too; one kernel after the other without a wait."""
    qw = weights(8, 8, 2, "f16", 8192, 4096, None)
    columns = slice(0, 64)
    values = qw.dequantize()[columns].astype(np.float64)
    for m in (48, 200, 1100):
        x = torch.randn(m, 4096, device="cuda", dtype=torch.float16)
        wanted = x.cpu().numpy().astype(np.float64) @ values.T
        kernel = lowlp.compile_linear(
            n=8192, k=4096, weight=lowlp.vq(8, 8, 2), m=(m, m), group_size=None, dependent_launch=True
        )
        for y in (lowlp.linear(x, qw), kernel(x, qw), lowlp.linear(x, qw)):
            found = y[:, columns].cpu().numpy()
            assert np.linalg.norm(found - wanted) <= 2e-3 * np.linalg.norm(wanted)
