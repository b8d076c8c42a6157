"""Kernels in which several features meet, on the CPU target: workspaces with tensor maps, matrices with bulk copies."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import CpuKernel, compile_cpu
from lowlp.errors import CpuTargetError, LowlpError

COLUMNS = 64
ROW = lowlp.spatial(1, COLUMNS)


@lowlp.kernel(grid=lambda m: (m,), num_threads=COLUMNS)
def sum_of_rows(
    factor: ll.f32,
    x: ll.pointer("f16", align=16),
    m: ll.i32,
    n: ll.i64,
    y: ll.pointer("f16", align=16),
    term: ll.f32,
    stride: ll.i32,
) -> None:
    """y = the sum of factor * x + term over all rows; the last block adds up what all have left in scratch memory."""
    (block,) = ll.block_indices()
    arrived = ll.alloc_global("int32", [3], zeroed=True)
    scratch = ll.alloc_global("f32", lambda m, n: [m, n])
    shared = ll.alloc_shared("f16", [1, COLUMNS])
    filled = ll.alloc_mbarriers(1, arrivals=1)
    ll.synchronize()
    ll.mbarrier_expect_bytes(filled, 0, num_bytes=2 * COLUMNS)
    rows = ll.view_global(x, shape=[m, COLUMNS], strides=[stride, 1])
    ll.copy_tensor(rows, shared, view_offsets=[block, 0], offsets=[0, 0], shape=[1, COLUMNS], barriers=filled, index=0)
    ll.mbarrier_wait(filled, 0, parity=0)
    row = ll.cast(ll.load_shared(shared, offsets=[0, 0], layout=ROW), "f32")
    ll.store_global(row * factor + term, scratch, offsets=[block, 0])
    ll.semaphore_release(arrived, offsets=[1], value=1, add=True)
    if block < m - 1:
        ll.exit()
    ll.semaphore_acquire(arrived, offsets=[1], value=m)
    total = ll.full(0.0, "f32", layout=ROW)
    for i in ll.range(m):
        total = total + ll.load_global(scratch, offsets=[i, 0], layout=ROW)
    ll.store_global(ll.cast(total, "f16"), ll.view_global(y, shape=[1, COLUMNS]), offsets=[0, 0])
    ll.semaphore_release(arrived, offsets=[1], value=0)


def test_a_kernel_has_a_workspace_and_tensor_maps() -> None:
    kernel = compile_cpu(sum_of_rows)
    x = np.random.default_rng(0).integers(-4, 5, (5, 72)).astype(np.float16)
    wanted = (x[:, :COLUMNS].astype(np.float32) * 2 + 1).sum(0).astype(np.float16)
    for seed in range(4):
        y = np.zeros(COLUMNS, np.float16)
        kernel(2.0, x, 5, COLUMNS, y, 1.0, 72, seed=seed)
        np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_the_workspace_lies_before_the_tensor_maps(opt_level: int) -> None:
    """A launch gives the kernel its arguments, then the workspace pointer, then the maps."""
    compiled = lowlp.compile(sum_of_rows, "sm_90a", opt_level=opt_level)
    assert compiled.cubin
    signature = compiled.ptx[compiled.ptx.index(".entry") : compiled.ptx.index(".reqntid")]
    types = re.findall(r"\.param \.(?:align 64 \.)?(\w+)", signature)
    assert types == ["f32", "u64", "u32", "u64", "u64", "f32", "u32", "u64", "b8"]
    (map_address,) = re.findall(r"mov\.b64 \s*%rd\d+, (\w+_param_\d+);", compiled.ptx)
    assert map_address.endswith("_param_8")
    assert re.search(r"ld\.param\.b64 .*_param_7\]", compiled.ptx)


MATRIX = lowlp.spatial(8, 4).local(1, 2)  # what stmatrix stores
PLAIN = lowlp.spatial(4, 8).local(2, 1)


def store_kernel(layout: lowlp.Layout, *, fence: bool = True, waits: bool = True, exits: bool = False) -> CpuKernel:
    """x to y by way of registers, a shared tile and a bulk copy."""

    @lowlp.kernel(grid=(1,), num_threads=32)
    def store(x: ll.pointer("f16", align=16), y: ll.pointer("f16", align=16)) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[8, 8]), offsets=[0, 0], layout=layout)
        shared = ll.alloc_shared("f16", [8, 8])
        ll.store_shared(tile, shared, offsets=[0, 0])
        if fence:
            ll.fence_async()
        ll.synchronize()
        ll.copy_bulk_to_global(
            shared, ll.view_global(y, shape=[8, 8]), offsets=[0, 0], view_offsets=[0, 0], shape=[8, 8]
        )
        ll.copy_bulk_commit()
        if waits:
            ll.copy_bulk_wait(0, read=True)
        if exits:
            ll.exit()

    return compile_cpu(store)


@pytest.mark.parametrize("layout", [MATRIX, PLAIN])
@pytest.mark.parametrize("exits", [False, True])
def test_a_bulk_copy_takes_what_was_stored(layout: lowlp.Layout, exits: bool) -> None:
    x = np.arange(64, dtype=np.float16).reshape(8, 8)
    for seed in range(4):
        y = np.zeros_like(x)
        store_kernel(layout, exits=exits)(x, y, seed=seed)
        np.testing.assert_array_equal(y, x)
        with pytest.raises(CpuTargetError, match=r"missing fence: read of .* by a bulk copy and the write by thread"):
            store_kernel(layout, fence=False, exits=exits)(x, y, seed=seed)
        with pytest.raises(
            CpuTargetError,
            match=r"copy_bulk_to_global at .*: the thread ended before this copy was waited for, and may not have read",
        ):
            store_kernel(layout, waits=False, exits=exits)(x, y, seed=seed)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**40])
def test_an_integer_that_does_not_fit_is_refused(number: int) -> None:
    x = np.zeros((1, COLUMNS), np.float16)
    with pytest.raises(LowlpError, match=rf"^m: must be in -2\*\*31\.\.2\*\*31-1 \(i32\), got {number}$") as error:
        sum_of_rows(1.0, x, number, COLUMNS, np.zeros(COLUMNS, np.float16), 0.0, COLUMNS)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("divide", [lambda a, b: a // b, lambda a, b: a % b, ll.ceildiv], ids=["//", "%", "ceildiv"])
def test_a_divisor_that_the_device_reads(divide: Callable[..., ll.Scalar]) -> None:
    """Of 0 it is reported: the processor would end the whole process."""

    def body(x, y, n):
        divisor = ll.load_scalar(ll.view_global(x, shape=[1]), offsets=[0])
        result = ll.full(divide(n, divisor), "int32", layout=lowlp.spatial(32))
        ll.store_global(result, ll.view_global(y, shape=[32]), offsets=[0])

    parameters = {"x": ll.pointer("int32"), "y": ll.pointer("int32"), "n": ll.i32}
    kernel = ll.make_kernel(body, name="divide", parameters=parameters, grid=(1,), num_threads=32)
    y = np.zeros(32, np.int32)
    for number, divisor in [(7, 2), (-7, 2), (7, -2), (-8, -2)]:
        kernel(np.array([divisor], np.int32), y, number)
        wanted = -(-number // divisor) if divide is ll.ceildiv else divide(number, divisor)
        np.testing.assert_array_equal(y, wanted)
    with pytest.raises(CpuTargetError, match=r"test_combined_features\.py:\d+:\d+: division by zero"):
        kernel(np.zeros(1, np.int32), y, 7)
