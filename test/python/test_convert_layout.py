"""`lowlp.convert_layout` on the CPU target: random layouts and types, and each of its ways."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import CpuKernel, compile_cpu
from lowlp.layouts import register_layout
from lowlp.numeric import dtypes

Random = np.random.Generator

TYPES = [t for t in dtypes.all_dtypes() if not t.name.startswith("bipolar")]
WIDE = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}
WIDE |= {name: np.dtype(name) for name in ("int16", "uint16", "int32", "uint32")}
STEPS = 3


def primes(n: int) -> list[int]:
    """The prime factors of n."""
    factor = next((p for p in range(2, n + 1) if n % p == 0), None)
    return [] if factor is None else [factor, *primes(n // factor)]


def deal(random: Random, shape: tuple[int, ...], threads: int) -> lowlp.Layout:
    """Any layout of the shape: its prime factors are dealt out to threads and locals, in any order."""
    extents = [[int(p) for p in random.permutation(primes(extent))] for extent in shape]
    room = primes(threads)
    held: list[list[tuple[int | None, int]]] = [[], []]
    for mode, extent in enumerate(e for dim in extents for e in dim):
        to_threads = extent in room and random.random() < 0.8
        if to_threads:
            room.remove(extent)
        held[0 if to_threads else 1].append((mode, extent))
    held[0] += [(None, extent) for extent in room]
    for digits in held:
        random.shuffle(digits)  # type: ignore[arg-type]
    return register_layout.from_modes(extents, held[0], held[1])


def moving_kernel(dtype: lowlp.DType, first: lowlp.Layout, second: lowlp.Layout) -> str:
    """A program that copies STEPS tiles, each loaded as `first` and stored as `second`."""
    shape = "x".join(map(str, first.shape))
    a, b = (f"!lowlp.tile<{shape}x{dtype.mlir}, {layout}>" for layout in (first, second))
    view = f"!lowlp.global<{STEPS}x{shape}x{dtype.mlir}>"
    offsets = ", ".join(["%k", *["%c0"] * len(first.shape)])
    extents = ", ".join(map(str, (STEPS, *first.shape)))
    return f"""
    lowlp.kernel @move(%x: !lowlp.ptr<{dtype.mlir}>, %y: !lowlp.ptr<{dtype.mlir}>)
        attributes {{grid = affine_map<() -> (1)>, num_threads = {first.num_threads} : i64}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %steps = arith.constant {STEPS} : index
      %from = lowlp.view_global %x shape [{extents}] : !lowlp.ptr<{dtype.mlir}> -> {view}
      %to = lowlp.view_global %y shape [{extents}] : !lowlp.ptr<{dtype.mlir}> -> {view}
      scf.for %k = %c0 to %steps step %c1 {{
        %a = lowlp.load_global %from[{offsets}] : {view} -> {a}
        %b = lowlp.convert_layout %a : {a} -> {b}
        lowlp.store_global %b, %to[{offsets}] : {b}, {view}
      }}
      lowlp.return
    }}"""


def check_moves(dtype: lowlp.DType, first: lowlp.Layout, second: lowlp.Layout, seed: int) -> CpuKernel:
    """Runs the conversion and compares the bits; returns the kernel."""
    kernel = compile_cpu(moving_kernel(dtype, first, second))
    num_bits = STEPS * math.prod(first.shape) * dtype.bits
    # Words of 32 bits, since elements that share a byte are stored by atomics of words.
    memory = np.random.default_rng(seed).integers(0, 256, -(-num_bits // 32) * 4, dtype=np.uint8)
    x = memory.view(WIDE.get(dtype.name, np.dtype(np.uint8)))
    y = np.zeros_like(x)
    for order in range(2):
        y.view(np.uint8)[...] = 0
        kernel(x, y, seed=seed + order)
        wanted, found = (np.unpackbits(array.view(np.uint8), bitorder="little")[:num_bits] for array in (x, y))
        np.testing.assert_array_equal(found, wanted, err_msg=f"{first} -> {second}")
    return kernel


def ways(kernel: CpuKernel) -> list[str]:
    """What the compiler says of its conversions."""
    exchanges: Any = kernel.description.notes["exchanges"]
    return [str(text).split(": ", 1)[1] for text in exchanges.values()]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("number", range(48))
def test_random_layouts(number: int) -> None:
    random = np.random.default_rng([5, number])
    threads = 32 * int(random.integers(1, 5))
    factors = [int(p) for p in random.permutation([*primes(threads), *random.choice([2, 2, 2, 3, 5], size=2)])]
    rank = int(random.integers(1, 4))
    dims = random.integers(rank, size=len(factors))
    shape = tuple(math.prod(f for f, d in zip(factors, dims, strict=True) if d == dim) for dim in range(rank))
    dtype = TYPES[random.integers(len(TYPES))]
    check_moves(dtype, deal(random, shape, threads), deal(random, shape, threads), seed=number)


EACH_WAY = {
    "nothing": (lowlp.spatial(8, 4).local(2, 2), lowlp.spatial(8, 4).column_local(2, 2), "nothing"),
    "choices": (
        lowlp.layout("local(2).reduce(spatial(32), dims=[0])"),
        lowlp.layout("spatial(2).reduce(spatial(16), dims=[0])"),
        "choices between registers",
    ),
    "lanes": (lowlp.spatial(8, 4), lowlp.column_spatial(8, 4), "1 shuffle"),
    "digits": (
        lowlp.local(2, 1).spatial(2, 16),
        lowlp.spatial(2, 1).local(2, 1).spatial(1, 16),
        "1 shuffle",
    ),
    "warps": (lowlp.spatial(2, 32), lowlp.column_spatial(2, 32), "shared memory"),
    "many": (lowlp.local(32, 1).spatial(1, 32), lowlp.local(1, 32).spatial(32, 1), "shared memory"),
    "threes": (lowlp.spatial(32, 3), lowlp.column_spatial(32, 3), "shared memory"),
}


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8", "uint3"])
@pytest.mark.parametrize("name", EACH_WAY)
def test_each_way(name: str, dtype: str) -> None:
    first, second, way = EACH_WAY[name]
    kernel = check_moves(lowlp.dtype(dtype), first, second, seed=3)
    if dtype == "f32":
        assert ways(kernel)[0].startswith(way)


@pytest.mark.parametrize(("dtype", "arch"), [("f16", "sm_80"), ("uint3", "sm_90a")])
@pytest.mark.parametrize("name", EACH_WAY)
def test_ptxas_takes_each_way(name: str, dtype: str, arch: str) -> None:
    first, second, _ = EACH_WAY[name]
    kernel = lowlp.compile(moving_kernel(lowlp.dtype(dtype), first, second), arch)
    assert kernel.cubin
    assert kernel.spilled_bytes == 0


@pytest.mark.parametrize("dtype", ["f16", "int4", "float6_e3m2"])
def test_numbers_that_stay_together_travel_together(dtype: str) -> None:
    """Four neighbours of 8 bits or less are one word: as many shuffles as one number takes."""
    element = lowlp.dtype(dtype)
    run = 32 // element.bits
    first, second = (layout.local(1, run) for layout in (lowlp.spatial(8, 4), lowlp.column_spatial(8, 4)))
    assert ways(check_moves(element, first, second, seed=1))[0].startswith("1 shuffle")


def test_conversion_through_shared_memory_has_no_bank_conflicts() -> None:
    first, second, _ = EACH_WAY["many"]
    kernel = compile_cpu(moving_kernel(lowlp.dtype("f32"), first, second))
    x = np.arange(STEPS * 1024, dtype=np.float32)
    y = np.zeros_like(x)
    sites = [site for site in kernel(x, y, sites=True)["sites"] if "_shared" in site["site"]]
    assert len(sites) == 2
    assert [site["extra_passes"] for site in sites] == [0, 0]


def test_conversion_in_the_dsl() -> None:
    rows, columns = lowlp.spatial(2, 32).local(8, 1), lowlp.column_spatial(16, 4).local(1, 8)

    @lowlp.kernel(grid=(1,), num_threads=64)
    def turn(x: ll.pointer("f16"), y: ll.pointer("f16")) -> None:
        view = ll.view_global(x, shape=[16, 32])
        tile = ll.convert_layout(ll.load_global(view, offsets=[0, 0], layout=rows), columns)
        assert tile.layout == columns
        ll.store_global(ll.transpose(tile), ll.view_global(y, shape=[32, 16]), offsets=[0, 0])

    x = np.random.default_rng(1).standard_normal((16, 32)).astype(np.float16)
    y = np.zeros((32, 16), np.float16)
    turn(x, y)
    np.testing.assert_array_equal(y, x.T)
    report = lowlp.compile(turn, "sm_80", assemble=False).report()
    assert "conversion at test_convert_layout.py" in report and "passes of the banks" in report
    assert "bytes without sharing" in report


def test_conversion_to_another_shape_is_refused() -> None:
    @lowlp.kernel(grid=(1,), num_threads=32)
    def wrong(x: ll.pointer("f16")) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[8, 4]), offsets=[0, 0], layout=lowlp.spatial(8, 4))
        ll.convert_layout(tile, lowlp.spatial(4, 8))

    with pytest.raises(ll.KernelValueError, match=r"layout: must have the shape of the tile, \[8, 4\], found \[4, 8\]"):
        _ = wrong.mlir
