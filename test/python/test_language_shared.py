"""Shared memory in the DSL: kernels run on the CPU target, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp import language as ll

SWIZZLED = lowlp.swizzle(lowlp.local(16, 4), dim=1, log_step=1).local(1, 8)
ROWS = lowlp.spatial(4, 16).local(4, 2)


def copy_kernel(dtype: str, m: int, n: int, layout: object, in_bounds: bool = False) -> ll.Kernel:
    """Block (i, j) copies a part of 16 x 32 to stage 1 of shared memory, and from there to its place in y."""

    def body(x: Any, y: Any) -> None:
        bi, bj = ll.block_indices()
        source = ll.view_global(x, shape=[m, n])
        result = ll.view_global(y, shape=[-(-m // 16) * 16, -(-n // 32) * 32])
        s = ll.alloc_shared(dtype, (2, 16, 32), layout)
        ll.copy_async(
            source, s, view_offsets=[bi * 16, bj * 32], offsets=[1, 0, 0], shape=[16, 32], in_bounds=in_bounds
        )
        ll.copy_async_commit()
        ll.copy_async_wait(0)
        ll.synchronize()
        tile = ll.load_shared(s, offsets=[1, 0, 0], layout=ROWS)
        ll.store_global(tile, result, offsets=[bi * 16, bj * 32])

    parameters = {"x": ll.pointer(dtype, align=16), "y": ll.pointer(dtype, align=16)}
    return ll.make_kernel(body, name="copy", parameters=parameters, grid=(-(-m // 16), -(-n // 32)), num_threads=64)


@pytest.mark.parametrize(
    "layout", [None, lowlp.column_local(2, 16, 32), "local(2, 1, 1).swizzle(local(16, 4), dim=1).local(1, 8)"]
)
@pytest.mark.parametrize("dtype", ["int8", "f16", "bf16", "f32"])
@pytest.mark.parametrize(("m", "n"), [(16, 32), (40, 48), (17, 31), (3, 36)])
def test_copies_zero_what_lies_outside(dtype: str, m: int, n: int, layout: object) -> None:
    kind = {"int8": np.int8, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}[dtype]
    x = np.random.default_rng(m).integers(-100, 100, (m, n)).astype(kind)
    expected = np.pad(x, ((0, -m % 16), (0, -n % 32)))
    y = np.full_like(expected, 77)
    copy_kernel(dtype, m, n, layout)(x, y, seed=n)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dtype", ["uint1", "int3", "int6", "f5e2m2"])
def test_copies_of_parts_of_bytes(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 256, 32 * 32 * lowlp.dtype(dtype).bits // 8, np.uint8)
    y = np.zeros_like(x)
    copy_kernel(dtype, 32, 32, None, in_bounds=True)(x, y)
    np.testing.assert_array_equal(x, y)


def test_a_broken_promise_is_reported() -> None:
    x, y = np.ones((17, 32), np.float16), np.ones((32, 32), np.float16)
    with pytest.raises(lowlp.LowlpError, match=r"lowlp\.copy_async.*promises in_bounds"):
        copy_kernel("f16", 17, 32, None, in_bounds=True)(x, y)


@pytest.mark.parametrize(("dtype", "n", "instruction"), [
    ("f16", 32, "cp.async.cg.shared.global"), ("f16", 34, "cp.async.ca.shared.global"), ("f16", 33, "ld.global")
])  # fmt: skip
def test_ptx_copies_as_wide_as_alignment_allows(dtype: str, n: int, instruction: str) -> None:
    ptx = lowlp.compile(copy_kernel(dtype, 32, n, None), "sm_80", assemble=False).ptx
    assert instruction in ptx
    assert "cp.async.commit_group" in ptx and "cp.async.wait_group" in ptx


def trace(body: Callable[[Any], None]) -> str:
    parameters = {"x": ll.pointer("f16")}
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=64).mlir


def test_a_shared_tile_is_typed_by_its_layout() -> None:
    def body(x: Any) -> None:
        ll.alloc_shared("int6", [16, 32], SWIZZLED)

    text = trace(body)
    assert "!lowlp.shared<16x32xsi6, swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)>" in text


def refused(body: Callable[[ll.SharedTile, ll.GlobalView], object]) -> str:
    def kernel(x: Any) -> None:
        body(ll.alloc_shared("f16", [2, 16, 32]), ll.view_global(x, shape=[16, 32]))

    with pytest.raises(ll.KernelError) as caught:
        trace(kernel)
    return str(caught.value)


@pytest.mark.parametrize(("body", "message"), [
    (lambda s, v: ll.alloc_shared("f16", 4), "shape: must be a list of ints, found int 4"),
    (lambda s, v: ll.alloc_shared("f16", [4, 0]), r"shape: must have extents of at least 1, found \[4, 0\]"),
    (lambda s, v: ll.alloc_shared("f16", [4, 4], SWIZZLED), r"shape: \[4, 4\] is not the shape of the layout, \[16"),
    (lambda s, v: ll.alloc_shared("f16", [4], 4), "layout: layout must be a str, a Layout or a SharedLayout"),
    (lambda s, v: ll.alloc_shared("f16", [4], "spatial(4)"), "layout: the layout of a shared tile has 1 thread"),
    (lambda s, v: ll.load_shared(v, offsets=[0, 0], layout=ROWS), "source: must be a tile made by ll.alloc_shared"),
    (lambda s, v: ll.load_shared(s, offsets=[0, 0], layout=ROWS), "offsets: expected one for each of the 3 dimensions"),
    (lambda s, v: ll.load_shared(s, offsets=0, layout=ROWS), "offsets: must be a list of ints and index scalars"),
    (
        lambda s, v: ll.load_shared(s, offsets=[0, 0, 0], layout=lowlp.spatial(1, 1, 1, 64)),
        "layout: has 4 dimensions, but only 3 are there",
    ),
    (
        lambda s, v: ll.store_shared(ll.full(0.0, "f32", layout=ROWS), s, offsets=[0, 0, 0]),
        "tile: element types must match: the tile holds f32, shared memory f16; use ll.cast",
    ),
    (
        lambda s, v: ll.copy_async(s, s, view_offsets=[0], offsets=[0], shape=[1]),
        "view: must be a view made by ll.view_global",
    ),
    (
        lambda s, v: ll.copy_async(v, ll.alloc_shared("bf16", [4]), view_offsets=[0, 0], offsets=[0], shape=[4]),
        "view: element types must match: it holds f16, shared memory bf16",
    ),
    (
        lambda s, v: ll.copy_async(v, s, view_offsets=[0, 0], offsets=[0, 0, 0], shape=[16, 33]),
        r"shape: \[16, 33\] is larger than the shared tile, \[2, 16, 32\]",
    ),
    (
        lambda s, v: ll.copy_async(v, s, view_offsets=[0, 0], offsets=[0, 0, 0], shape=[1, 4, 4]),
        "shape: has 3 dimensions, but only 2 are there",
    ),
    (lambda s, v: ll.copy_async_wait(8), "n: must be an int from 0 to 7, found int 8"),
])  # fmt: skip
def test_wrong_arguments_are_named(body: Callable[..., object], message: str) -> None:
    assert re.search(message, refused(body))
