"""What the CPU target finds in running kernels: races and uninitialised reads, each beside a correct twin."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from lowlp._mlir import ir
from lowlp._mlir._mlir_libs import _compiler
from lowlp._mlir.passmanager import PassManager

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import CpuKernel, compile_cpu
from lowlp.errors import CpuTargetError, LowlpValueError

ROW = lowlp.spatial(1, 32)
SEEDS = range(4)


def make_store(stride: int) -> ll.Kernel:
    """Block i stores a tile of 32 elements at i * stride."""

    def body(y: ll.Pointer) -> None:
        (block,) = ll.block_indices()
        view = ll.view_global(y, shape=[1, 128])
        ll.store_global(ll.full(1.0, "f32", layout=ROW), view, offsets=[0, block * stride])

    return ll.make_kernel(body, name="fill", parameters={"y": ll.pointer("f32")}, grid=(4,), num_threads=32)


@pytest.mark.parametrize("seed", SEEDS)
def test_blocks_that_store_to_the_same_tile_race(seed: int) -> None:
    y = np.zeros((1, 128), np.float32)
    text = (
        r"lowlp\.store_global at .*test_cpu_checks\.py:\d+:\d+: race: write of 4 bytes at byte offset \d+ of "
        r"argument 'y' \(512 bytes\) and the write by block \(\d, 0, 0\), thread \(\d+, 0, 0\) at "
        r"lowlp\.store_global at .* have no order"
    )
    with pytest.raises(CpuTargetError, match=text):
        make_store(16)(y, seed=seed)
    make_store(16)(y, seed=seed, checks="bounds")
    make_store(32)(y, seed=seed)
    assert (y == 1).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_fields_within_a_byte_may_be_stored_by_different_threads(seed: int) -> None:
    def body(x: ll.Pointer, y: ll.Pointer) -> None:
        (block,) = ll.block_indices()
        tile = ll.load_global(ll.view_global(x, shape=[1, 128]), offsets=[0, block * 32], layout=ROW)
        ll.store_global(tile, ll.view_global(y, shape=[1, 128]), offsets=[0, block * 32])

    parameters = {"x": ll.pointer("uint5"), "y": ll.pointer("uint5")}
    copy = compile_cpu(ll.make_kernel(body, name="copy", parameters=parameters, grid=(4,), num_threads=32))
    x = np.random.default_rng(seed).integers(0, 256, 128 * 5 // 8, np.uint8)
    y = np.zeros(128 * 5 // 8, np.uint8)
    copy(x, y, seed=seed, undefined=["y"])
    np.testing.assert_array_equal(y, x)


def make_copy(first: Any, second: Any) -> CpuKernel:
    """Stores a tile to y with one layout and loads it with another, then stores it to z."""

    def body(y: ll.Pointer, z: ll.Pointer) -> None:
        shape = [32, 32]
        ll.store_global(ll.full(1.0, "f32", layout=first), ll.view_global(y, shape=shape), offsets=[0, 0])
        tile = ll.load_global(ll.view_global(y, shape=shape), offsets=[0, 0], layout=second)
        ll.store_global(tile, ll.view_global(z, shape=shape), offsets=[0, 0])

    parameters = {"y": ll.pointer("f32"), "z": ll.pointer("f32")}
    return compile_cpu(ll.make_kernel(body, name="copy", parameters=parameters, grid=(1,), num_threads=32))


@pytest.mark.parametrize("seed", SEEDS)
def test_load_of_what_other_threads_store_races(seed: int) -> None:
    y, z = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    with pytest.raises(CpuTargetError, match=r"race: .* have no barrier between them; block \(0, 0, 0\)"):
        make_copy(lowlp.local(32, 1).spatial(1, 32), lowlp.local(1, 32).spatial(32, 1))(y, z, seed=seed)
    make_copy(lowlp.local(32, 1).spatial(1, 32), lowlp.local(32, 1).spatial(1, 32))(y, z, seed=seed)
    assert (z == 1).all()


REVERSE = """
module attributes {{gpu.container_module}} {{ gpu.module @kernels {{
  gpu.func @reverse(%p: !simt.ptr<global>) kernel attributes {{known_block_size = array<i32: 64, 1, 1>}} {{
    %thread = gpu.thread_id x
    %index = arith.index_cast %thread : index to i64
    %four = arith.constant 4 : i64
    %offset = arith.muli %index, %four : i64
    %last = arith.constant 252 : i64
    %mirrored = arith.subi %last, %offset : i64
    %value = simt.load %p[%mirrored] align 4 : !simt.ptr<global> -> f32 loc("lowlp.load_global"("reverse.py":3:5))
    {barrier}
    simt.store %value, %p[%offset] align 4 : f32, !simt.ptr<global> loc("lowlp.store_global"("reverse.py":4:5))
    gpu.return
  }}
}} }}
"""


def reverse(values: np.ndarray, barrier: str, seed: int) -> None:
    with ir.Context():
        module = ir.Module.parse(REVERSE.format(barrier=barrier))
        PassManager.parse("builtin.module(lowlp-to-cpu)").run(module.operation)
        program = _compiler.CpuProgram(module.operation, 2)
    address = values.ctypes.data
    allocations = [(address, values.nbytes, "values", True, True)]
    program.run("reverse", (1, 1, 1), (64, 1, 1), 0, [("ptr", address)], allocations, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_missing_barrier_is_found(seed: int) -> None:
    values = np.arange(64, dtype=np.float32)
    with pytest.raises(RuntimeError, match=r"race: .*reverse\.py:[34]:5 have no barrier between them"):
        reverse(values.copy(), "", seed)
    reverse(values, "gpu.barrier", seed)
    assert (values == np.arange(63, -1, -1)).all()


def test_read_of_an_undefined_array() -> None:
    layout = lowlp.local(32, 1).spatial(1, 32)
    y, z = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    make_copy(layout, layout)(y, z, undefined=["y", "z"])

    def body(y: ll.Pointer) -> None:
        view = ll.view_global(y, shape=[32, 32])
        tile = ll.load_global(view, offsets=[0, 0], layout=layout)
        ll.store_global(tile + 1.0, view, offsets=[0, 0])

    add = compile_cpu(ll.make_kernel(body, name="add", parameters={"y": ll.pointer("f32")}, grid=(1,), num_threads=32))
    add(y)
    add(y, undefined=["y"], checks="races")
    with pytest.raises(CpuTargetError, match=r"lowlp\.load_global at .*: uninitialised read: read of 4 bytes at"):
        add(y, undefined=["y"])


def test_wrong_options_are_refused() -> None:
    kernel = compile_cpu(make_store(32))
    y = np.zeros((1, 128), np.float32)
    for wrong in ("none", 1, None, ["races"]):
        with pytest.raises(LowlpValueError, match=r"^checks: expected True, False or one of 'bounds', .*, got "):
            kernel(y, checks=wrong)  # type: ignore[arg-type]
    for wrong_names in ("y", ["x"]):
        with pytest.raises(LowlpValueError, match=r"^undefined: expected names of arrays, a list of \['y'\], got"):
            kernel(y, undefined=wrong_names)
    for right in (True, False, "all", "bounds", "races", "uninitialised"):
        kernel(y, checks=right)


def test_what_a_kernel_only_reads_may_not_be_written() -> None:
    layout = lowlp.local(32, 1).spatial(1, 32)
    y = np.zeros((32, 32), np.float32)
    # Two arguments may be one array, as long as the accesses do not race.
    make_copy(layout, layout)(y, y)
    assert (y == 1).all()


@pytest.mark.parametrize(
    ("layout", "sectors"),
    [
        (lowlp.local(32, 1).spatial(1, 32), 4),  # a request of the warp is a row: 128 bytes
        (lowlp.local(1, 32).spatial(32, 1), 32),  # a request is a column: every lane has a sector of its own
    ],
)
def test_counts_by_op_show_coalescing(layout: Any, sectors: int) -> None:
    y, z = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    counters = make_copy(layout, layout)(y, z, sites=True)
    assert len(counters["sites"]) == 3
    for site in counters["sites"]:
        assert site["site"].startswith(("lowlp.load_global at ", "lowlp.store_global at "))
        assert (site["bytes"], site["requests"], site["extra_passes"]) == (4096, 32, 0)
        assert site["sectors"] == 32 * sectors
    assert "sites" not in make_copy(layout, layout)(y, z)


def turning(synchronizes: bool) -> CpuKernel:
    def body(y: ll.Pointer) -> None:
        shared = ll.alloc_shared("f32", [2, 32])
        ll.store_shared(ll.full(1.0, "f32", layout=lowlp.spatial(2, 32)), shared, offsets=[0, 0])
        if synchronizes:
            ll.synchronize()
        tile = ll.load_shared(shared, offsets=[0, 0], layout=lowlp.column_spatial(2, 32))
        ll.store_global(tile, ll.view_global(y, shape=[2, 32]), offsets=[0, 0])

    parameters = {"y": ll.pointer("f32")}
    return compile_cpu(ll.make_kernel(body, name="turn", parameters=parameters, grid=(1,), num_threads=64))


def test_a_missing_barrier_is_named_where_the_read_comes_first() -> None:
    y = np.zeros((2, 32), np.float32)
    turning(synchronizes=True)(y)
    kernel = turning(synchronizes=False)
    text = (
        r"load_shared at .*: uninitialised read: .* nothing has written yet; missing barrier: thread \(.*\) at "
        r"lowlp\.store_shared at .* writes them without a barrier between the two; block"
    )
    for seed, checks in itertools.product(SEEDS, (True, "uninitialised")):
        with pytest.raises(CpuTargetError, match=text):
            kernel(y, seed=seed, checks=checks)
