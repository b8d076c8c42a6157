"""Tables in shared memory on the CPU target: entries and pairs, in copies, of codes in slices; conflicts of banks."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from refused_kernels import refused

import lowlp
from lowlp import language as ll
from lowlp.errors import CpuTargetError

random = np.random.default_rng(9)
THREADS = 64
ROWS, COLUMNS = 32, 16
# Two warps, each with the A operands of a matrix instruction.
TILE = lowlp.layout("spatial(2, 1).column_local(2, 2).spatial(8, 4).local(1, 2)")
DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """The codes without gaps, low bits first."""
    return np.packbits(codes.reshape(-1, 1) >> np.arange(bits) & 1, bitorder="little")


def plain_table(t: ll.Pointer, dtype: str, bits: int) -> ll.SharedTile:
    """The entries in shared memory, visible to all threads."""
    table = ll.alloc_shared(dtype, [1 << bits])
    layout = lowlp.local(4).spatial(THREADS)
    ll.store_shared(
        ll.load_global(ll.view_global(t, shape=[1 << bits]), offsets=[0], layout=layout), table, offsets=[0]
    )
    ll.synchronize()
    return table


def look_up(
    bits: int, dtype: str, shape: list[int], layout: Any = None, slices: tuple[int, ...] | None = None, code: str = ""
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """What a table of that shape gives for random codes, what it should, and the counters of the launch."""
    widths = slices or (bits,)

    def body(t, y, x0, x1, x2, x3):
        table = plain_table(t, dtype, bits)
        expanded = ll.alloc_shared(dtype, shape, layout)
        ll.expand_table(table, expanded, slices=slices)
        ll.synchronize()
        views = [ll.view_global(x, shape=[ROWS, COLUMNS]) for x in (x0, x1, x2, x3)[: len(widths)]]
        codes = [ll.load_global(view, offsets=[0, 0], layout=TILE) for view in views]
        values = ll.lookup(expanded, codes[0]) if len(shape) == 2 else ll.lookup_pairs(expanded, *codes)
        ll.store_global(values, ll.view_global(y, shape=[ROWS, COLUMNS]), offsets=[0, 0])

    codes = random.integers(0, 1 << bits, (ROWS, COLUMNS))
    table = random.normal(size=1 << bits).astype(DTYPES[dtype])
    y = np.zeros((ROWS, COLUMNS), DTYPES[dtype])
    parameters = {"t": ll.pointer(dtype), "y": ll.pointer(dtype)}
    starts = [0, *itertools.accumulate(widths)]
    arguments = []
    for i, width in enumerate(widths):
        parameters[f"x{i}"] = ll.pointer(code or f"uint{width}")
        part = codes >> starts[i] & (1 << width) - 1
        arguments.append(part.astype(code) if code else pack(part, width))
    kernel = ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)
    counters = kernel(table, y, *arguments, sites=True)
    return y, table[codes], counters


def extra_passes(counters: dict[str, Any], op: str) -> int:
    """Passes of the banks beyond one a request."""
    (site,) = [site for site in counters["sites"] if site["site"].startswith(op)]
    assert site["requests"] > 0
    return int(site["extra_passes"])


def look_up_plain(x, t, y):
    codes = ll.load_global(ll.view_global(x, shape=[ROWS, COLUMNS]), offsets=[0, 0], layout=TILE)
    ll.store_global(
        ll.lookup(plain_table(t, "f16", 4), codes), ll.view_global(y, shape=[ROWS, COLUMNS]), offsets=[0, 0]
    )


def launch_plain(code: str, codes: np.ndarray) -> None:
    table = random.normal(size=16).astype(np.float16)
    y = np.zeros((ROWS, COLUMNS), np.float16)
    parameters = {"x": ll.pointer(code), "t": ll.pointer("f16"), "y": ll.pointer("f16")}
    kernel = ll.make_kernel(look_up_plain, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)
    kernel(pack(codes, 4) if code == "uint4" else codes, table, y)
    np.testing.assert_array_equal(y, table[codes])


def test_codes_become_entries() -> None:
    launch_plain("uint4", random.integers(0, 16, (ROWS, COLUMNS), dtype=np.uint8))


def test_a_code_without_an_entry_is_reported() -> None:
    codes = random.integers(0, 16, (ROWS, COLUMNS)).astype(np.int32)
    launch_plain("int32", codes)
    for wrong in (16, -1):
        codes[0, 2] = wrong  # thread 1
        with pytest.raises(CpuTargetError, match=r"lowlp\.lookup at .*: a code names no entry.*thread \(1, 0, 0\)"):
            launch_plain("int32", codes)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("copies", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", range(1, 7))
def test_pairs(bits: int, dtype: str, copies: int) -> None:
    if 4 << 2 * bits > 227 * 1024 // copies:
        copies = 227 * 1024 // (4 << 2 * bits)
        copies = 1 << copies.bit_length() - 1
    y, wanted, counters = look_up(bits, dtype, [4**bits, copies, 2])
    np.testing.assert_array_equal(y, wanted)
    if copies == 32 or 4**bits * copies <= 32:
        assert extra_passes(counters, "lowlp.lookup_pairs") == 0


@pytest.mark.parametrize("slices", [(2, 1), (4, 1), (4, 2), (1, 3, 2), (1, 1, 1, 1), (1, 2, 1, 2)])
@pytest.mark.parametrize("copies", [1, 4])
def test_pairs_of_codes_in_slices(slices: tuple[int, ...], copies: int) -> None:
    bits = sum(slices)
    y, wanted, _ = look_up(bits, "f16", [4**bits, copies, 2], slices=slices)
    np.testing.assert_array_equal(y, wanted)


def test_a_table_of_pairs_may_lie_in_any_order_of_pairs_and_copies() -> None:
    y, wanted, _ = look_up(3, "bf16", [64, 8, 2], lowlp.column_local(64, 8, 1).local(1, 1, 2))
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("copies", [64, 128])
@pytest.mark.parametrize(("bits", "code"), [(3, ""), (7, ""), (8, ""), (7, "int32")])
def test_entries_in_words_of_a_lane(bits: int, code: str, copies: int) -> None:
    y, wanted, counters = look_up(bits, "f16", [1 << bits, copies], code=code)
    np.testing.assert_array_equal(y, wanted)
    assert extra_passes(counters, "lowlp.lookup") == 0


def test_pairs_in_lines_of_256_bytes() -> None:
    y, wanted, counters = look_up(3, "f16", [64, 64, 2], slices=(2, 1))
    np.testing.assert_array_equal(y, wanted)
    assert extra_passes(counters, "lowlp.lookup_pairs") == 0


@pytest.mark.sampled(20)
@pytest.mark.parametrize("copies", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 7, 8])
def test_entries(bits: int, dtype: str, copies: int) -> None:
    layout = lowlp.local(1 << (bits - 1), copies).local(2, 1)
    y, wanted, counters = look_up(bits, dtype, [1 << bits, copies], layout)
    np.testing.assert_array_equal(y, wanted)
    if copies == 32 or copies << (bits - 1) <= 32:
        assert extra_passes(counters, "lowlp.lookup ") == 0


@pytest.mark.parametrize("code", ["", "int32", "uint16"])
def test_entries_beside_their_copies(code: str) -> None:
    y, wanted, _ = look_up(5, "f16", [32, 8], code=code)
    np.testing.assert_array_equal(y, wanted)


def test_conflicts_of_one_copy_are_counted() -> None:
    """What the counts of no conflicts above rest on: 256 words in 32 banks."""
    _, _, counters = look_up(4, "f16", [256, 1, 2])
    requests = ROWS * COLUMNS // 2 // 32
    assert extra_passes(counters, "lowlp.lookup_pairs") >= requests
    _, _, counters = look_up(8, "f16", [256, 1])
    assert extra_passes(counters, "lowlp.lookup ") >= 2 * requests


def test_what_is_refused() -> None:
    flat = lowlp.local(2, 1).spatial(8, 4).local(1, 2)

    def ints(dtype, layout):
        return ll.cast(ll.full(0, "uint32", layout=layout), dtype)

    def table(x, b, m, f):
        ll.lookup(x, ll.full(0, "int32", layout=flat))  # here

    def table_rank(x, b, m, f):
        ll.lookup(ll.alloc_shared("f16", [2, 2, 8]), ll.full(0, "int32", layout=flat))  # here

    def codes(x, b, m, f):
        ll.lookup(ll.alloc_shared("f16", [8]), ll.full(0.0, "f32", layout=flat))  # here

    def copies(x, b, m, f):
        ll.lookup(ll.alloc_shared("f16", [8, 3]), ints("uint3", flat))  # here

    def pairs_rank(x, b, m, f):
        ll.lookup_pairs(ll.alloc_shared("f16", [16, 2]), ints("uint2", flat))  # here

    def pairs_type(x, b, m, f):
        ll.lookup_pairs(ll.alloc_shared("f32", [16, 4, 2]), ints("uint2", flat))  # here

    def no_slices(x, b, m, f):
        ll.lookup_pairs(ll.alloc_shared("f16", [16, 4, 2]))  # here

    def wide(x, b, m, f):
        ll.lookup_pairs(ll.alloc_shared("f16", [16, 4, 2]), ints("uint8", flat))  # here

    def shape(x, b, m, f):
        ll.lookup_pairs(ll.alloc_shared("f16", [16, 4, 2]), ints("uint3", flat))  # here

    def odd(x, b, m, f):
        ll.lookup_pairs(ll.alloc_shared("f16", [16, 4, 2]), ints("uint2", "spatial(8, 4)"))  # here

    def expand_source(x, b, m, f):
        ll.expand_table(ll.alloc_shared("f16", [4, 1]), ll.alloc_shared("f16", [16, 4, 2]))  # here

    def expand_slices(x, b, m, f):
        ll.expand_table(ll.alloc_shared("f16", [8]), ll.alloc_shared("f16", [64, 4, 2]), slices=[2, 2])  # here

    refused(table, ll.KernelTypeError, "table: must be a tile made by ll.alloc_shared, found the pointer `x`")
    refused(table_rank, ll.KernelValueError, "table: must have 1 or 2 dimensions, found 3")
    refused(codes, ll.KernelTypeError, "codes: works on integers, but the tile holds f32")
    refused(copies, ll.VerificationError, "a table has a power of two of copies, at most 128, but this one has 3")
    refused(pairs_rank, ll.KernelValueError, "table: must have 3 dimensions, found 2")
    refused(pairs_type, ll.KernelTypeError, "table: must hold f16 or bf16, found a shared tile of f32")
    refused(no_slices, ll.KernelValueError, "slices: expected at least one tile of codes")
    refused(
        wide,
        ll.KernelTypeError,
        "slices[0]: computes in uint1, uint2, uint3, uint4, uint5 or uint6, but ",
    )
    refused(shape, ll.VerificationError, "the table of pairs must be of 64 x copies x 2 elements, but is 16x4x2")
    refused(odd, ll.VerificationError, "each thread must hold pairs of codes, but holds 1")
    refused(expand_source, ll.KernelValueError, "table: must have 1 dimension, found 2")
    refused(expand_slices, ll.VerificationError, "the slices must have 3 bits together, but have 4")
