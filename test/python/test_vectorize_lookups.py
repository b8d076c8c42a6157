"""Lookups in pairs and copies, made by the compiler: whole programs on the CPU target, against numpy."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp import packing
from lowlp.compiler import compilation

random = np.random.default_rng(11)
THREADS = 64
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
TILE = lowlp.layout("spatial(2, 1).column_local(2, 2).spatial(8, 4).local(1, 2)")
ROWS, COLUMNS = TILE.shape


def fill(t: ll.Pointer, dtype: str, bits: int, offset: Any = 0) -> ll.SharedTile:
    """A plain table of 2**bits entries from `offset` of t on, visible to all threads."""
    table = ll.alloc_shared(dtype, [1 << bits])
    layout = lowlp.local(4).spatial(THREADS)
    view = ll.view_global(t, shape=[4 << bits])
    ll.store_shared(ll.load_global(view, offsets=[offset], layout=layout), table, offsets=[0])
    ll.synchronize()
    return table


def make(body: Any, bits: int, dtype: str) -> ll.Kernel:
    parameters = {"x": ll.pointer(f"uint{bits}"), "t": ll.pointer(dtype), "y": ll.pointer(dtype), "n": ll.i32}
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)


def stream(bits: int, dtype: str) -> ll.Kernel:
    """y = t[x], for n tiles one after the other."""

    def body(x, t, y, n):
        table = fill(t, dtype, bits)
        for i in ll.range(0, n):
            codes = ll.load_global(ll.view_global(x, shape=[n * ROWS, COLUMNS]), offsets=[i * ROWS, 0], layout=TILE)
            values = ll.lookup(table, codes)
            ll.store_global(values, ll.view_global(y, shape=[n * ROWS, COLUMNS]), offsets=[i * ROWS, 0])

    return make(body, bits, dtype)


def run(kernel: compilation.CpuKernel, bits: int, dtype: str, tiles: int = 3) -> dict[str, Any]:
    """Runs a `stream` on random codes and checks it; the counters."""
    codes = random.integers(0, 1 << bits, (tiles * ROWS, COLUMNS))
    packed = np.packbits(codes.reshape(-1, 1) >> np.arange(bits) & 1, bitorder="little")
    table = random.normal(size=4 << bits).astype(DTYPES[dtype])
    y = np.zeros(codes.shape, DTYPES[dtype])
    counters: dict[str, Any] = kernel(packed, table, y, tiles, sites=True)
    np.testing.assert_array_equal(y, table[codes])
    return counters


def with_pass(kernel: ll.Kernel, options: str) -> compilation.CpuKernel:
    """The kernel after the pass with these options, and no other pass that is optional."""
    module = compilation.open_program(kernel)
    compilation.run_pipeline(module, f"lowlp.kernel(lowlp-vectorize-lookups{{{options}}})")
    return compilation.compile_cpu(str(module), opt_level=0)


def decision(kernel: compilation.CpuKernel) -> str:
    lookups: Any = kernel.description.notes["lookups"]
    (text,) = lookups.values()
    return str(text).split(": ", 1)[1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", range(1, 9))
def test_the_pipeline_chooses(bits: int, dtype: str) -> None:
    plain = compilation.compile_cpu(stream(bits, dtype), opt_level=0)
    assert "lookups" not in plain.description.notes
    run(plain, bits, dtype)
    chosen = compilation.compile_cpu(stream(bits, dtype), opt_level=1)
    assert f"of {bits} bit" in decision(chosen)
    run(chosen, bits, dtype)


@pytest.mark.parametrize("copies", [1, 2, 8, 32])
@pytest.mark.parametrize("form", ["pair", "entry"])
@pytest.mark.parametrize("bits", [2, 3, 4, 5])
def test_forms_and_copies(bits: int, form: str, copies: int) -> None:
    kernel = with_pass(stream(bits, "f16"), f"form={form} copies={copies}")
    expected = {"pair": "pairs", "entry": "entries"}[form]
    assert decision(kernel).startswith(f"{expected} of {bits} bits, ")
    counters = run(kernel, bits, "f16")
    (lookup,) = [site for site in counters["sites"] if site["site"].startswith("lowlp.lookup")]
    assert lookup["site"].startswith("lowlp.lookup_pairs") == (form == "pair")
    if copies == 32:
        assert lookup["requests"] > 0 == lookup["extra_passes"]


def test_pairs_have_half_the_loads() -> None:
    requests = []
    for form in ("entry", "pair"):
        counters = run(with_pass(stream(4, "f16"), f"form={form}"), 4, "f16")
        (lookup,) = [site for site in counters["sites"] if site["site"].startswith("lowlp.lookup")]
        requests.append(lookup["requests"])
    assert requests[0] == 2 * requests[1] > 0


def refilled(waits: bool) -> ll.Kernel:
    """As `stream`, but every tile has a table of its own."""

    def body(x, t, y, n):
        for i in ll.range(0, n):
            if waits:
                ll.synchronize()
            table = fill(t, "f16", 4, i * 16)
            for _ in ll.range(0, n):
                codes = ll.load_global(ll.view_global(x, shape=[n * ROWS, COLUMNS]), offsets=[i * ROWS, 0], layout=TILE)
                values = ll.lookup(table, codes)
                ll.store_global(values, ll.view_global(y, shape=[n * ROWS, COLUMNS]), offsets=[i * ROWS, 0])

    return make(body, 4, "f16")


@pytest.mark.parametrize("seed", range(4))
def test_tables_may_change_from_tile_to_tile(seed: int) -> None:
    """The CPU target reports a race if a barrier is missing between one table's lookups and the next."""
    kernel = with_pass(refilled(waits=True), "form=pair copies=4")
    assert decision(kernel).startswith("pairs")
    tiles = 4
    codes = random.integers(0, 16, (tiles, ROWS, COLUMNS))
    packed = np.packbits(codes.reshape(-1, 1) >> np.arange(4) & 1, bitorder="little")
    table = random.normal(size=(4, 16)).astype(np.float16)
    y = np.zeros(codes.shape, np.float16)
    kernel(packed, table, y, tiles, seed=seed)
    np.testing.assert_array_equal(y, np.stack([table[i][codes[i]] for i in range(tiles)]))


# --- packed weights ---------------------------------------------------------------------------------------------------


def packed_lookups(bits: int, dtype: str, shape: tuple[int, int], steps: int) -> ll.Kernel:
    """y = t[w] for packed codes w, `steps` steps of 16 along K at a time."""
    placement = packing.find_placement(f"lut{bits}", dtype)
    tiles = placement.row_tiles
    layout = lowlp.layout(f"local({tiles}, {steps}).column_local(2, 2).spatial(8, 4).local(1, 2)")
    n, k = shape

    def body(w, t, y):
        table = ll.alloc_shared(dtype, [1 << bits])
        entries = ll.load_global(ll.view_global(t, shape=[1 << bits]), offsets=[0], layout=lowlp.local(8).spatial(32))
        ll.store_shared(entries, table, offsets=[0])
        ll.synchronize()
        weights = ll.view_packed(w, shape=[n, k], dtype=f"uint{bits}", placement=placement.name)
        for row in ll.range(0, n, 16 * tiles):
            for column in ll.range(0, k, 64):
                for step in range(0, 4, steps):
                    codes = ll.load_packed(weights, offsets=[row, column], layout=layout, first_step=step)
                    view = ll.view_global(y, shape=[n, k])
                    ll.store_global(ll.lookup(table, codes), view, offsets=[row, column + 16 * step])

    parameters = {"w": ll.pointer("uint32", align=16), "t": ll.pointer(dtype), "y": ll.pointer(dtype)}
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("steps", [4, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", range(1, 9))
def test_packed_codes_are_looked_up_by_their_slices(bits: int, dtype: str, steps: int) -> None:
    n, k = 128, 128
    codes = random.integers(0, 1 << bits, (n, k)).astype(np.uint8)
    packed = packing.pack(codes, k, f"lut{bits}", dtype)
    table = random.normal(size=1 << bits).astype(DTYPES[dtype])
    kernel = packed_lookups(bits, dtype, (n, k), steps)
    for opt_level in (0, 2):
        y = np.zeros((n, k), DTYPES[dtype])
        compilation.compile_cpu(kernel, opt_level=opt_level)(packed, table, y)
        np.testing.assert_array_equal(y, table[codes])


@pytest.mark.parametrize("steps", [4, 2, 1])
@pytest.mark.parametrize(
    ("bits", "form", "copies"), [(3, "pair", 1), (3, "pair", 32), (5, "entry", 1), (6, "entry", 4), (7, "entry", 32)]
)
def test_slices_put_together_go_to_any_table(bits: int, form: str, copies: int, steps: int) -> None:
    """Indices within a byte of the address; across two; and with bit 0 apart."""
    module = compilation.open_program(packed_lookups(bits, "f16", (64, 64), steps))
    passes = f"lowlp-vectorize-lookups{{form={form} copies={copies}}},lowlp-decompose-bit-slices"
    compilation.run_pipeline(module, f"lowlp.kernel(lowlp-reinterpret-layouts,{passes})")
    codes = random.integers(0, 1 << bits, (64, 64)).astype(np.uint8)
    table = random.normal(size=1 << bits).astype(np.float16)
    y = np.zeros(codes.shape, np.float16)
    compilation.compile_cpu(str(module), opt_level=0)(packing.pack(codes, 64, f"lut{bits}", "f16"), table, y)
    np.testing.assert_array_equal(y, table[codes])


@pytest.mark.parametrize(("bits", "slices"), [(3, [2, 1]), (5, [4, 1])])
def test_tables_of_sliced_codes_follow_the_slices(bits: int, slices: list[int]) -> None:
    module = compilation.open_program(packed_lookups(bits, "f16", (128, 128), 4))
    passes = "lowlp-reinterpret-layouts,lowlp-vectorize-lookups{form=pair},lowlp-decompose-bit-slices"
    compilation.run_pipeline(module, f"lowlp.kernel({passes})")
    text = str(module)
    assert f"slices {slices}" in text
    assert re.search(r"lowlp\.lookup_pairs %\w+, %\w+, %\w+ :", text)
    assert f"xui{bits}," not in text
