"""Codebooks on the CPU target: what is looked up, wherever entries are kept, in whatever order and copies."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.errors import CpuTargetError
from lowlp.weights.codebook_order import order_by_frequency

PATH = Path(__file__).resolve().parents[2] / "examples" / "vq_gemv.py"


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("vq_gemv", PATH)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


vq_gemv = load_example()
random = np.random.default_rng(23)
THREADS, ROWS, GROUPS = 64, 32, 8
# Two warps: lane (g, t) of each has the codes of rows g and g + 8, and of groups t and t + 4.
CODES = lowlp.spatial(2, 1).local(2, 2).spatial(8, 4)
NUMPY: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "int8": np.int8,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "uint8": np.uint8,
    "uint16": np.uint16,
}


def values_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "int8":
        return random.integers(-128, 128, shape).astype(np.int8)
    return random.standard_normal(shape).astype(NUMPY[dtype])


def kernel_of(body: Callable[..., None], dtype: str = "f16", align: int = 16) -> ll.Kernel:
    """Of one block: codes x of 8 bits, codebooks c of a type and an alignment, and vectors y of that type."""
    parameters = {"x": ll.pointer("uint8"), "c": ll.pointer(dtype, align=align), "y": ll.pointer(dtype)}
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)


def lookups(
    shape: tuple[int, int, int],
    dtype: str,
    code: str,
    schedule: str = "auto",
    along: int = 1,
    result: str = "f16",
    **loading: Any,
) -> ll.Kernel:
    """y[r] = codebook r's vectors of x[.., r], for codes [rows, groups] of each book; entries of 8 bits as `result`."""
    books, entries, vector = shape
    extents = [ROWS * (vector if along == 0 else 1), GROUPS * (vector if along == 1 else 1)]
    result = result if dtype in ("int8", "f8e4m3") else dtype

    def body(x, c, y):
        book = ll.load_codebook(ll.view_global(c, shape=[books, entries, vector]), **loading)
        codes_view = ll.view_global(x, shape=[books, ROWS, GROUPS])
        y_view = ll.view_global(y, shape=[books, *extents])
        for r in range(books):
            codes = ll.load_global(codes_view, offsets=[r, 0, 0], layout=CODES)
            values = ll.lookup_vectors(codes, book, book=r, along=along, dtype=result)
            ll.store_global(values, y_view, offsets=[r, 0, 0])

    parameters = {"x": ll.pointer(code), "c": ll.pointer(dtype, align=16), "y": ll.pointer(result)}
    return ll.make_kernel(
        body,
        name="kernel",
        parameters=parameters,
        grid=(1,),
        num_threads=THREADS,
        schedule=ll.KernelSchedule(codebooks=schedule),
    )


def run(
    kernel: compilation.CpuKernel, codes: np.ndarray, codebooks: np.ndarray, along: int = 1, result: str = "f16"
) -> dict[str, Any]:
    """Runs `lookups` and checks every value; the counters."""
    books, _, vector = codebooks.shape
    wanted = np.stack([codebooks[r][codes[r]] for r in range(books)])  # [books, rows, groups, v]
    wanted = wanted if along == 1 else wanted.transpose(0, 1, 3, 2)
    stored = codebooks.dtype if codebooks.dtype.itemsize == 2 else np.dtype(NUMPY[result])
    rows, columns = (ROWS, GROUPS * vector) if along == 1 else (ROWS * vector, GROUPS)
    y = np.zeros((books, rows, columns), stored)
    raw = codebooks.view(np.uint8) if codebooks.dtype == ml_dtypes.float8_e4m3fn else codebooks
    counters: dict[str, Any] = kernel(codes, raw, y, sites=True)
    np.testing.assert_array_equal(y, wanted.reshape(y.shape).astype(stored))
    return counters


def data(shape: tuple[int, int, int], dtype: str, code: str) -> tuple[np.ndarray, np.ndarray]:
    books, entries, _ = shape
    return random.integers(0, entries, (books, ROWS, GROUPS)).astype(NUMPY[code]), values_of(shape, dtype)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize(
    ("shape", "dtype", "code"),
    [
        ((2, 256, 8), "f16", "uint8"),
        ((1, 256, 4), "bf16", "uint8"),
        ((3, 200, 2), "f16", "uint8"),
        ((1, 300, 16), "f16", "uint16"),
        ((2, 256, 8), "int8", "uint8"),
        ((1, 256, 2), "int8", "uint8"),
        ((1, 4096, 8), "f8e4m3", "uint16"),
    ],
)
def test_values(shape: tuple[int, int, int], dtype: str, code: str, along: int, level: int) -> None:
    kernel = compilation.compile_cpu(lookups(shape, dtype, code, along=along), opt_level=level)
    assert ("codebooks" in kernel.description.notes) == (level == 1)
    run(kernel, *data(shape, dtype, code), along=along)


@pytest.mark.parametrize("result", ["f16", "bf16"])
@pytest.mark.parametrize("dtype", ["int8", "f8e4m3"])
def test_every_entry_of_8_bits(dtype: str, result: str) -> None:
    """In each place of a word."""
    bits = np.arange(256, dtype=np.uint8)
    if dtype == "f8e4m3":
        bits[[127, 255]] = 0
    entries = np.stack([np.roll(bits, place) for place in range(4)], axis=1)[None].view(NUMPY[dtype])
    codes = np.arange(256, dtype=np.uint8).reshape(1, ROWS, GROUPS)
    kernel = compilation.compile_cpu(lookups(entries.shape, dtype, "uint8", result=result), opt_level=1)
    run(kernel, codes, entries, result=result)


CACHES = [
    ll.CodebookCache(),
    ll.CodebookCache(shared=256),
    ll.CodebookCache(shared=256, copies=8, line_bytes=256),
    ll.CodebookCache(shared=100, copies=4),
    ll.CodebookCache(shared=7, copies=32, line_bytes=1056),
    ll.CodebookCache(registers=3),
    ll.CodebookCache(registers=8, shared=100, copies=2),
]


@pytest.mark.parametrize("dtype", ["f16", "int8"])
@pytest.mark.parametrize("cache", CACHES)
def test_no_cache_changes_a_value(cache: ll.CodebookCache, dtype: str) -> None:
    shape = (2, 256, 8)
    codes, codebooks = data(shape, dtype, "uint8")
    codes[:, :4] %= 12  # some of each level
    kernel = compilation.compile_cpu(lookups(shape, dtype, "uint8", cache=cache))
    run(kernel, codes, codebooks)


@pytest.mark.parametrize("schedule", ["gc", "sc", "o1", "o2", "o3", "o4", "auto"])
def test_schedules(schedule: str) -> None:
    shape = (2, 512, 8)
    codes = np.minimum(random.zipf(1.3, (2, ROWS, GROUPS)) - 1, 511).astype(np.uint16)
    ordered, codebooks, frequencies = order_by_frequency(
        np.moveaxis(codes, 0, -1).astype(np.uint16), values_of(shape, "f16")
    )
    kernel = compilation.compile_cpu(
        lookups(shape, "f16", "uint16", schedule=schedule, frequencies=frequencies), opt_level=1
    )
    run(kernel, np.ascontiguousarray(np.moveaxis(ordered, -1, 0)), codebooks)
    notes: Any = kernel.description.notes["codebooks"]
    (text,) = notes.values()
    placed = {"gc": "0 in shared memory", "sc": "512 in shared memory (1 copy"}
    assert placed.get(schedule, "512 in shared" if schedule in ("o1", "auto") else "in registers") in text
    if schedule in ("o2", "o3", "o4"):
        assert " 0 in registers" not in text


def test_any_order_of_entries() -> None:
    codes, codebooks = data((2, 256, 8), "f16", "uint8")
    ordered, books, frequencies = order_by_frequency(np.moveaxis(codes, 0, -1), codebooks)
    assert frequencies == sorted(frequencies, reverse=True) and sum(frequencies) == codes.size
    for r in range(2):
        np.testing.assert_array_equal(books[r][ordered[..., r]], codebooks[r][codes[r]])


@pytest.mark.parametrize(
    ("vector", "dtype", "copies"), [(8, "f16", 8), (4, "f16", 16), (8, "int8", 16), (2, "f16", 32)]
)
def test_as_many_copies_as_a_phase_has_lanes_have_no_conflicts(vector: int, dtype: str, copies: int) -> None:
    shape = (1, 256, vector)
    codes, codebooks = data(shape, dtype, "uint8")
    kernel = compilation.compile_cpu(lookups(shape, dtype, "uint8"), opt_level=1)
    notes: Any = kernel.description.notes["codebooks"]
    assert f"{copies} copies, 256 bytes apart" in notes["1"] and "1.00 passes" in notes["1"]
    extra = passes_of_lookups(run(kernel, codes, codebooks))
    assert extra == 0
    single = compilation.compile_cpu(lookups(shape, dtype, "uint8", schedule="sc"), opt_level=1)
    assert passes_of_lookups(run(single, codes, codebooks)) > 0


def passes_of_lookups(counters: dict[str, Any]) -> int:
    """The extra passes that lookups took in shared memory."""
    sites = [site for site in counters["sites"] if site["site"].startswith("lowlp.lookup_vectors")]
    assert sites
    return sum(int(site["extra_passes"]) for site in sites)


@pytest.mark.parametrize("cache", [ll.CodebookCache(), ll.CodebookCache(shared=200, copies=8)])
def test_a_code_beyond_the_entries(cache: ll.CodebookCache) -> None:
    codes, codebooks = data((1, 200, 8), "f16", "uint8")
    codes[0, 3, 5] = 200
    kernel = compilation.compile_cpu(lookups((1, 200, 8), "f16", "uint8", cache=cache))
    with pytest.raises(CpuTargetError, match=r"(?s)lowlp\.lookup_vectors.*a code names no entry of the codebook"):
        kernel(codes, codebooks, np.zeros((1, ROWS, GROUPS * 8), np.float16))


def test_a_book_outside_of_the_view() -> None:
    def body(c, y, n):
        book = ll.load_codebook(ll.view_global(c, shape=[2, 256, 8]), offsets=[n])
        codes = ll.cast(ll.full(0, "uint32", layout=CODES), "uint8")
        ll.store_global(ll.lookup_vectors(codes, book), ll.view_global(y, shape=[ROWS, GROUPS * 8]), offsets=[0, 0])

    parameters = {"c": ll.pointer("f16"), "y": ll.pointer("f16"), "n": ll.i32}
    kernel = compilation.compile_cpu(
        ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)
    )
    y = np.zeros((ROWS, GROUPS * 8), np.float16)
    kernel(values_of((2, 256, 8), "f16"), y, 1)
    with pytest.raises(CpuTargetError, match="the codebook lies outside of the view"):
        kernel(values_of((2, 256, 8), "f16"), y, 2)


def test_a_codebook_that_does_not_fit() -> None:
    with pytest.raises(
        lowlp.LowlpError, match="codebooks = sc needs 1048576 bytes of shared memory, but 232448 are free"
    ):
        compilation.compile_cpu(lookups((1, 65536, 8), "f16", "uint16", schedule="sc"), opt_level=1)
    large = compilation.compile_cpu(lookups((1, 65536, 8), "f16", "uint16"), opt_level=1)
    notes: Any = large.description.notes["codebooks"]
    assert "no frequencies are known: L1 is as fast" in notes["1"]
    run(large, *data((1, 65536, 8), "f16", "uint16"))


def book_of(t: Any) -> ll.Codebook:
    return ll.load_codebook(ll.view_global(t, shape=[2, 256, 8]))


def ones() -> ll.Tile:
    return ll.cast(ll.full(1, "uint32", layout=lowlp.local(2, 1).spatial(8, 4)), "uint8")


MISTAKES: list[tuple[Any, str]] = [
    (lambda t: ll.load_codebook(t), "view: must be a view made by ll.view_global"),
    (lambda t: ll.load_codebook(ll.view_global(t, shape=[8])), "one of 1 dimensions takes"),
    (lambda t: ll.load_codebook(ll.view_global(t, shape=[256, 8]), cache=8), "cache: must be an ll.CodebookCache"),
    (lambda t: ll.lookup_vectors(ones(), t), "codebook: must be made by ll.load_codebook"),
    (lambda t: ll.lookup_vectors(ones(), book_of(t), book=2), "book: must be from -2 to 1, found 2"),
    (lambda t: ll.lookup_vectors(ones(), book_of(t), along=2), "along: must be from -2 to 1, found 2"),
    (lambda t: ll.lookup_vectors(ones(), book_of(t), part=[0, 0]), "part: must have fewer than the 2 dimensions"),
    (
        lambda t: ll.switch_codebook(book_of(t), ll.view_global(t, shape=[256, 8])),
        r"view: must hold a codebook of f16 of shape \[2, 256, 8\]",
    ),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_mistakes(mistake: Any, message: str) -> None:
    def body(t):
        mistake(t)

    kernel = ll.make_kernel(body, name="kernel", parameters={"t": ll.pointer("f16")}, grid=(1,), num_threads=32)
    with pytest.raises(ll.KernelError, match=message):
        kernel.module()


def test_one_load_and_one_instruction_for_an_address_a_code() -> None:
    """The inner loop of AQLM 2x8 (`examples/vq_gemv.py`), for 64 rows of W and 256 of K."""
    ptx = lowlp.compile(vq_gemv.make_gemv(8, 256, 512, warps=2, tiles=4), "sm_90a").ptx
    loop = max(ptx.split("$L__BB"), key=lambda text: text.count("mma.sync"))
    lookups = 2 * 4 * 2 * vq_gemv.STEPS  # books, tiles, halves of a tile, steps
    assert loop.count("mma.sync") == lookups
    assert loop.count("prmt") == lookups
    assert loop.count("ld.shared.v4") == lookups + vq_gemv.STEPS  # those of x
    assert loop.count("ld.shared") == loop.count("ld.shared.v4")
    assert "shfl" not in ptx and ".local" not in ptx


@pytest.mark.parametrize(("m", "n", "k"), [(16, 64, 256), (3, 50, 768)])
def test_the_example(m: int, n: int, k: int) -> None:
    assert vq_gemv.run(m, n, k, level=1) < 1e-6


@pytest.mark.parametrize("level", [0, 1])
def test_the_example_of_the_block_dialect(level: int) -> None:
    m, n, k = 8, 64, 256
    x = random.standard_normal((m, k)).astype(np.float16)
    codes, books = random.integers(0, 256, (n, k // 8, 2)).astype(np.uint8), values_of((2, 256, 8), "f16")
    y = np.full((m, n), np.nan, np.float32)
    program = PATH.with_suffix(".mlir").read_text(encoding="utf-8")
    lowlp.compile_cpu(program, opt_level=level)(x, codes.reshape(n, -1), books, y)
    wanted = x.astype(np.float64) @ vq_gemv.values_of(codes, books).T
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-6 * np.abs(wanted).max() * k)


@pytest.mark.parametrize(
    ("dtype", "result"), [("int8", "f16"), ("int8", "bf16"), ("f8e4m3", "f16"), ("f8e4m3", "bf16")]
)
def test_every_entry_of_a_byte(dtype: str, result: str) -> None:
    def body(x, c, y):
        book = ll.load_codebook(ll.view_global(c, shape=[256, 2]))
        codes = ll.load_global(ll.view_global(x, shape=[ROWS, GROUPS]), offsets=[0, 0], layout=CODES)
        values = ll.lookup_vectors(codes, book, dtype=result)
        ll.store_global(values, ll.view_global(y, shape=[ROWS, 2 * GROUPS]), offsets=[0, 0])

    parameters = {"x": ll.pointer("uint8"), "c": ll.pointer(dtype), "y": ll.pointer(result)}
    kernel = compilation.compile_cpu(
        ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)
    )
    entries = np.arange(256, dtype=np.uint8)
    entries[entries % 128 == 127] = 0 if dtype == "f8e4m3" else 127  # no numbers
    codebook = np.stack([entries, entries[::-1]], axis=1)
    codes = random.permutation(256).astype(np.uint8).reshape(ROWS, GROUPS)
    y = np.zeros((ROWS, 2 * GROUPS), NUMPY[result])
    kernel(codes, codebook.view(np.int8) if dtype == "int8" else codebook, y)
    wanted = codebook.view(NUMPY[dtype])[codes].reshape(ROWS, -1).astype(np.float32)
    np.testing.assert_array_equal(y.astype(np.float32), wanted)
    codebook[7, 1] = 0x7F
    if dtype == "f8e4m3":
        with pytest.raises(CpuTargetError, match="an entry of the codebook is no number"):
            kernel(codes, codebook, y)


def matrices(along: int) -> ll.Kernel:
    """Values held as operand a (along=1) or b (along=0) of a product, of codes of which each lane has one at a time."""
    codes_held = lowlp.spatial(2, 1).column_spatial(16, 2) if along == 1 else lowlp.spatial(1, 2).spatial(2, 16)
    if along == 1:
        held = lowlp.spatial(2, 1).column_local(2, 2).spatial(8, 4).local(1, 2)
    else:
        held = lowlp.spatial(1, 2).local(2, 2).column_spatial(4, 8).local(2, 1)
    shape = [32, 2] if along == 1 else [2, 32]
    parts = lowlp.local(3, 1, 1) * codes_held

    def body(x, c, y):
        book = ll.load_codebook(ll.view_global(c, shape=[2, 200, 8]))
        codes = ll.load_global(ll.view_global(x, shape=[3, *shape]), offsets=[0, 0, 0], layout=parts)
        extents = [32, 16] if along == 1 else [16, 32]
        view = ll.view_global(y, shape=[3, *extents])
        for i in range(3):
            values = ll.lookup_vectors(codes, book, book=1, along=along, part=[i])
            ll.store_global(ll.convert_layout(values, layout=held), view, offsets=[i, 0, 0])

    return kernel_of(body, dtype="bf16")


@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize("level", [0, 1])
def test_matrices_of_entries(along: int, level: int) -> None:
    codes = random.integers(0, 200, (3, 32, 2) if along == 1 else (3, 2, 32)).astype(np.uint8)
    codebook = values_of((2, 200, 8), "bf16")
    y = np.zeros((3, 32, 16) if along == 1 else (3, 16, 32), codebook.dtype)
    kernel = compilation.compile_cpu(matrices(along), opt_level=level)
    counters: dict[str, Any] = kernel(codes, codebook, y, sites=True)
    wanted = codebook[1][codes] if along == 1 else codebook[1][codes].transpose(0, 1, 3, 2)
    np.testing.assert_array_equal(y, wanted.reshape(y.shape))
    exchanges = str(kernel.description.notes["exchanges"])
    assert ("looked up as matrices" in exchanges) == (level == 1)
    if level == 1:
        assert passes_of_lookups(counters) == 0
    codes[1, 0, 1] = 200
    with pytest.raises(CpuTargetError, match="a code names no entry of the codebook"):
        kernel(codes, codebook, y)


def test_matrices_take_one_load_for_32_codes() -> None:
    ptx = lowlp.compile(matrices(1), "sm_90a").ptx
    assert ptx.count("ldmatrix.sync.aligned.m8n8.x4.shared.b16") == ptx.count("prmt.b32") == 3
    assert "shfl" not in ptx
