"""What blocks share, on the CPU target: atomics against NumPy, semaphores and workspaces beside their broken twins."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import CpuKernel, compile_cpu
from lowlp.errors import CpuTargetError

BLOCKS, SIZE = 5, 64
PAIRS = lowlp.spatial(32).local(2)
SINGLES = lowlp.local(2).spatial(32)
Array = npt.NDArray[Any]
COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def numpy_type(dtype: str) -> np.dtype[Any]:
    return np.dtype({"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}.get(dtype, dtype))


def rows(dtype: str) -> Array:
    """Numbers whose sums are exact in any order."""
    random = np.random.default_rng(3)
    if dtype in ("int32", "uint32"):
        return random.integers(0, 2**32, (BLOCKS, SIZE), np.uint32).view(dtype)
    return random.integers(-4, 5, (BLOCKS, SIZE)).astype(numpy_type(dtype))


# --- atomics ----------------------------------------------------------------------------------------------------------


def atomic_kernel(kind: str, dtype: str, layout: lowlp.Layout, extent: int) -> CpuKernel:
    """All blocks' rows of x into y, of which only `extent` elements may be touched."""

    @lowlp.kernel(grid=(BLOCKS,), num_threads=32)
    def combine(x: ll.pointer(dtype, align=16), y: ll.pointer(dtype, align=16)) -> None:
        (block,) = ll.block_indices()
        row = ll.load_global(ll.view_global(x, shape=[BLOCKS, SIZE]), offsets=[block, 0], layout=layout)
        ll.atomic_rmw(kind, row, ll.view_global(y, shape=[extent]), offsets=[0])

    return compile_cpu(combine)


@pytest.mark.parametrize("layout", [PAIRS, SINGLES])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, dtype) for dtype in ("int32", "uint32") for kind in COMBINE]
    + [("add", dtype) for dtype in ("f32", "f16", "bf16")],
)
def test_atomics_in_global_memory(kind: str, dtype: str, layout: lowlp.Layout) -> None:
    x = rows(dtype)
    extent = SIZE - 4
    kernel = atomic_kernel(kind, dtype, layout, extent)
    wanted = x[0].copy()
    for row in x:
        wanted[:extent] = COMBINE[kind](wanted, row)[:extent]
    for seed in range(3):
        y = x[0].copy()
        counters = kernel(x, y, seed=seed)
        np.testing.assert_array_equal(y, wanted)
    pairs = 2 if layout == PAIRS and dtype in ("f16", "bf16") else 1
    assert counters["atomics"] == BLOCKS * extent // pairs


@pytest.mark.parametrize(("kind", "dtype"), [("max", "int32"), ("exchange", "uint32"), ("add", "f32"), ("add", "f16")])
def test_atomics_in_shared_memory_and_old_values(kind: str, dtype: str) -> None:
    @lowlp.kernel(grid=(1,), num_threads=32)
    def combine(x: ll.pointer(dtype, align=16), y: ll.pointer(dtype, align=16)) -> None:
        x_view = ll.view_global(x, shape=[BLOCKS, SIZE])
        y_view = ll.view_global(y, shape=[2, SIZE])
        first, second = (ll.load_global(x_view, offsets=[row, 0], layout=PAIRS) for row in range(2))
        shared = ll.alloc_shared(dtype, [SIZE])
        ll.store_shared(first, shared, offsets=[0])
        ll.synchronize()
        old = ll.atomic_rmw(kind, second, shared, offsets=[2], fetch=True)
        ll.synchronize()
        ll.store_global(ll.load_shared(shared, offsets=[0], layout=PAIRS), y_view, offsets=[0, 0])
        ll.store_global(old, y_view, offsets=[1, 0])

    x, y = rows(dtype), np.zeros((2, SIZE), numpy_type(dtype))
    combine(x, y)
    new = x[1] if kind == "exchange" else COMBINE[kind](x[0], np.roll(x[1], 2))
    wanted = np.concatenate([x[0, :2], x[1, :-2] if kind == "exchange" else new[2:]])
    np.testing.assert_array_equal(y[0], wanted)
    # What lay outside of the shared tile was zero.
    np.testing.assert_array_equal(y[1], np.concatenate([x[0, 2:], np.zeros(2, x.dtype)]))


def test_one_of_the_threads_that_hold_an_element_changes_it() -> None:
    everyone = lowlp.reduce(lowlp.spatial(32, 1), dims=[0]).local(4)

    @lowlp.kernel(grid=(3,), num_threads=32)
    def count(y: ll.pointer("int32")) -> None:
        ll.atomic_rmw("add", ll.full(1, "int32", layout=everyone), ll.view_global(y, shape=[4]), offsets=[0])

    y = np.zeros(4, np.int32)
    count(y)
    assert (y == 3).all()


def test_an_atomic_races_with_a_plain_access() -> None:
    def make(is_broken: bool) -> ll.Kernel:
        @lowlp.kernel(grid=(2,), num_threads=32)
        def kernel(y: ll.pointer("int32")) -> None:
            view = ll.view_global(y, shape=[32])
            tile = ll.full(1, "int32", layout=lowlp.spatial(32))
            ll.atomic_rmw("add", tile, view, offsets=[0])
            if is_broken:
                ll.store_global(tile, view, offsets=[0])

        return kernel

    make(False)(np.zeros(32, np.int32))
    with pytest.raises(CpuTargetError, match=r"race: .* of argument 'y' .* have no (order|barrier)"):
        make(True)(np.zeros(32, np.int32))


# --- semaphores and workspaces ----------------------------------------------------------------------------------------


def chain_kernel(mistake: str = "") -> CpuKernel:
    """Block i adds i to what block i - 1 has left in the workspace; the last one stores it."""

    @lowlp.kernel(grid=lambda n: (n,), num_threads=32)
    def chain(y: ll.pointer("int32"), n: ll.i32) -> None:
        (block,) = ll.block_indices()
        sums = ll.alloc_global("int32", [64])
        turn = ll.alloc_global("int32", lambda n: (ll.ceildiv(n, 1000),), zeroed=True)
        layout = lowlp.spatial(32).local(2)
        if mistake != "no acquire":
            ll.semaphore_acquire(turn, offsets=[0], value=block + 1 if mistake == "deadlock" else block)
        total = ll.full(block, "int32", layout=layout)
        if block > 0:
            total = total + ll.load_global(sums, offsets=[0], layout=layout)
        if mistake == "early release":
            ll.semaphore_release(turn, offsets=[0], value=block + 1)
        if block < n - 1:
            ll.store_global(total, sums, offsets=[0])
            if mistake != "early release":
                ll.semaphore_release(turn, offsets=[0], value=block + 1)
        else:
            ll.store_global(total, ll.view_global(y, shape=[64]), offsets=[0])
            if mistake != "left behind":
                ll.semaphore_release(turn, offsets=[0], value=0)

    return compile_cpu(chain)


def test_blocks_in_turn() -> None:
    kernel = chain_kernel()
    for seed in range(4):
        for n in (1, 7, 100):
            y = np.zeros(64, np.int32)
            kernel(y, n, seed=seed, workers=1 + seed % 3)
            assert (y == n * (n - 1) // 2).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ("no acquire", r"(race: .* lowlp\.alloc_global at .*test_language_order\.py|uninitialised read)"),
        (
            "early release",
            r"race: .* of argument 'lowlp\.alloc_global at .*test_language_order\.py:\d+:\d+' \(256 bytes\)",
        ),
        (
            "deadlock",
            r"deadlock: no block can go on; block \(0, 0, 0\): thread \(0, 0, 0\) at lowlp\.semaphore_acquire at "
            r".*test_language_order\.py:\d+:\d+ waits for 1 at byte offset 0 of argument 'lowlp\.alloc_global at "
            r".*' \(4 bytes\), which holds 0",
        ),
        (
            "left behind",
            r"lowlp\.alloc_global at .*test_language_order\.py:\d+:\d+: must be zero again when the kernel ends, but "
            r"kernel 'chain' leaves 6 in the byte at offset 0, and 1 of 4 bytes not zero",
        ),
    ],
)
def test_mistakes_are_found(mistake: str, text: str, seed: int) -> None:
    with pytest.raises(CpuTargetError, match=text):
        chain_kernel(mistake)(np.zeros(64, np.int32), 7, seed=seed)


def test_blocks_count_themselves_in() -> None:
    """The last block waits until all others have added 1, and sums up what they left."""

    @lowlp.kernel(grid=(40,), num_threads=64)
    def gather(y: ll.pointer("f32")) -> None:
        (block,) = ll.block_indices()
        parts = ll.alloc_global("f32", [39, 64])
        count = ll.alloc_global("int32", [2, 3], zeroed=True)
        layout = lowlp.spatial(64)
        if block < 39:
            ll.store_global(ll.full(2.0, "f32", layout=lowlp.spatial(1, 64)), parts, offsets=[block, 0])
            ll.semaphore_release(count, offsets=[1, 2], value=1, add=True)
        else:
            ll.semaphore_acquire(count, offsets=[1, 2], value=39)
            total = ll.full(0.0, "f32", layout=layout)
            for part in ll.range(39):
                total = total + ll.load_global(parts, offsets=[part, 0], layout=layout)
            ll.store_global(total, ll.view_global(y, shape=[64]), offsets=[0])
            ll.semaphore_release(count, offsets=[1, 2], value=0)

    kernel = compile_cpu(gather)
    for seed in range(4):
        y = np.zeros(64, np.float32)
        kernel(y, seed=seed)
        assert (y == 78.0).all()


def test_scratch_is_undefined_at_first() -> None:
    @lowlp.kernel(grid=(1,), num_threads=32)
    def read(y: ll.pointer("f32")) -> None:
        scratch = ll.alloc_global("f32", [32])
        tile = ll.load_global(scratch, offsets=[0], layout=lowlp.spatial(32))
        ll.store_global(tile, ll.view_global(y, shape=[32]), offsets=[0])

    with pytest.raises(CpuTargetError, match=r"uninitialised read: .* of argument 'lowlp\.alloc_global at "):
        read(np.zeros(32, np.float32))


def test_description_and_code() -> None:
    @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, 16),), num_threads=32)
    def kernel(y: ll.pointer("f32"), m: ll.i32) -> None:
        (block,) = ll.block_indices()
        sums = ll.alloc_global("f32", lambda m: (ll.ceildiv(m, 16), m + 1))
        codes = ll.alloc_global("int6", [3, 7])
        locks = ll.alloc_global("int32", lambda m: ll.ceildiv(m, 16), zeroed=True)
        assert sums.shape == (None, None)
        assert codes.shape == (3, 7)
        ll.semaphore_acquire(locks, offsets=[block], value=0)
        row = ll.full(1.0, "bf16", layout=lowlp.spatial(32))
        ll.atomic_rmw("add", ll.cast(row, "f32"), sums, offsets=[block, 0])
        ll.semaphore_release(locks, offsets=[block], value=0)

    for arch in ("sm_80", "sm_90a", "sm_120a"):
        compiled = lowlp.compile(kernel, arch)
        assert compiled.cubin
        assert [word in compiled.ptx for word in ("ld.acquire.gpu", "st.release.gpu")] == [True, True]
        layout = compiled.description.lay_out_workspace({"m": 33})
        assert [placed.size_bytes for placed in layout.parts] == [3 * 34 * 4, 16, 12]
        assert [placed.offset_bytes for placed in layout.parts] == [0, 512, -256]
        assert [parameter.name for parameter in compiled.description.parameters] == ["y", "m"]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120a"])
def test_an_add_to_a_semaphore_is_behind_what_the_block_did(arch: str) -> None:
    """A store, a barrier of the block, and an addition that releases, in this order."""

    @lowlp.kernel(grid=(4,), num_threads=64)
    def kernel(y: ll.pointer("f32"), count: ll.pointer("int32")) -> None:
        (block,) = ll.block_indices()
        tile = ll.full(1.0, "f32", layout=lowlp.spatial(64))
        ll.store_global(tile, ll.view_global(y, shape=[4, 64]), offsets=[block, 0])
        ll.semaphore_release(ll.view_global(count, shape=[1]), offsets=[0], value=1, add=True)

    compiled = lowlp.compile(kernel, arch)
    assert compiled.cubin
    ordered = r"st\.global[^\n]*;.*bar(rier)?\.sync[^\n]*;.*red\.release\.gpu\.global\.add"
    assert re.search(ordered, compiled.ptx, re.DOTALL), compiled.ptx
