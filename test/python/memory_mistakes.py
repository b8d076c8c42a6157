"""More of the mistakes that docs/errors.md lists: with copies, mbarriers, indices, promises and machines.

Importing this file adds them to `mistakes.MISTAKES`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from mistakes import MISTAKES, ROWS, WEIGHT, kernel, mistake, ran

import lowlp
from lowlp import language as ll

__all__ = ["MISTAKES"]

WARP = lowlp.spatial(32)
TILE = lowlp.spatial(8, 4).local(1, 16)


def launched(body: Any, *arguments: Any, **parameters: Any) -> object:
    """Runs a kernel of one warp on the CPU target."""
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32)(*arguments)


def on_tiles(body: Any) -> object:
    """Runs `body(view, shared, barriers, y)`: views of 8 x 64 f16, a shared tile of that shape, one mbarrier."""

    def whole(x: Any, y: Any) -> None:
        shared = ll.alloc_shared("f16", [8, 64])
        barriers = ll.alloc_mbarriers(1, arrivals=1)
        ll.synchronize()
        body(ll.view_global(x, shape=[8, 64]), shared, barriers, ll.view_global(y, shape=[8, 64]))

    memory = np.zeros(2 * 8 * 64 + 8, np.float16)
    aligned = memory[(-memory.ctypes.data // 2) % 8 :][: 2 * 8 * 64].reshape(2, 8, 64)
    pointer = ll.pointer("f16", align=16)
    return launched(whole, aligned[0], aligned[1], x=pointer, y=pointer)


def fill(view: Any, shared: Any, barriers: Any) -> None:
    ll.copy_bulk(view, shared, view_offsets=[0, 0], offsets=[0, 0], shape=[8, 64], barriers=barriers, index=0)


# --- weights ----------------------------------------------------------------------------------------------------------


@mistake("a table whose length is no power of two")
def _(folder: Path) -> object:
    return lowlp.quantize(WEIGHT, lut=np.zeros(12, np.float32))


@mistake("both a type and a table")
def _(folder: Path) -> object:
    return lowlp.quantize(WEIGHT, "int4", lut=lowlp.nf(4))


# --- compiling --------------------------------------------------------------------------------------------------------


@mistake("a tile with more elements in a thread than any kernel holds")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        tile = ll.full(0.0, "f16", layout=WARP.local(16384))
        ll.store_global(tile, ll.view_global(x, shape=[32 * 16384]), offsets=[0])

    return lowlp.compile(kernel(body))


@mistake("an op that the architecture lacks")
def _(folder: Path) -> object:
    def body(x: Any, y: Any) -> None:
        shared = ll.alloc_shared("f16", [8, 64])
        barriers = ll.alloc_mbarriers(1, arrivals=1)
        ll.synchronize()
        ll.mbarrier_expect_bytes(barriers, 0, num_bytes=1024)
        fill(ll.view_global(x, shape=[8, 64]), shared, barriers)
        ll.mbarrier_wait(barriers, 0, parity=0)

    pointer = ll.pointer("f16", align=16)
    parameters = {"x": pointer, "y": pointer}
    return lowlp.compile(ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32), "sm_80")


@mistake("rows of a gather in a layout that does not fit the tile's")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        rows = ll.full(0, "int32", layout=lowlp.spatial(16, 2).reduce([1], keep_dims=True))
        ll.gather_global(ll.view_global(x, shape=[16, 8]), rows, dim=0, offsets=[0, 0], layout=ROWS)

    return lowlp.compile(kernel(body))


# --- copies and mbarriers on the CPU target ---------------------------------------------------------------------------


@mistake("a copy that is used before it is waited for")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        ll.store_shared(ll.full(0.0, "f16", layout=TILE), shared, offsets=[0, 0])
        ll.synchronize()
        ll.copy_async(view, shared, view_offsets=[0, 0], offsets=[0, 0], shape=[8, 64])
        ll.copy_async_commit()
        ll.synchronize()
        ll.store_global(ll.load_shared(shared, offsets=[0, 0], layout=TILE), y, offsets=[0, 0])

    return on_tiles(body)


@mistake("a bulk copy that is used before its mbarrier is waited for")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        ll.mbarrier_expect_bytes(barriers, 0, num_bytes=1024)
        fill(view, shared, barriers)
        ll.store_global(ll.load_shared(shared, offsets=[0, 0], layout=TILE), y, offsets=[0, 0])

    return on_tiles(body)


@mistake("a bulk copy of more bytes than its mbarrier expects")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        ll.mbarrier_expect_bytes(barriers, 0, num_bytes=512)
        fill(view, shared, barriers)
        ll.mbarrier_wait(barriers, 0, parity=0)

    return on_tiles(body)


@mistake("a bulk copy of fewer bytes than its mbarrier expects")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        ll.mbarrier_expect_bytes(barriers, 0, num_bytes=2048)
        fill(view, shared, barriers)
        ll.mbarrier_wait(barriers, 0, parity=0)

    return on_tiles(body)


@mistake("a wait with the parity of the phase before")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        for _ in range(2):
            ll.mbarrier_expect_bytes(barriers, 0, num_bytes=1024)
            fill(view, shared, barriers)
            ll.mbarrier_wait(barriers, 0, parity=0)

    return on_tiles(body)


@mistake("more arrivals than an mbarrier was made for")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        ll.mbarrier_expect_bytes(barriers, 0, num_bytes=1024)
        ll.mbarrier_expect_bytes(barriers, 0, num_bytes=1024)

    return on_tiles(body)


@mistake("an mbarrier that is used without a barrier after its creation")
def _(folder: Path) -> object:
    def body(x: Any) -> None:
        barriers = ll.alloc_mbarriers(1, arrivals=32)
        ll.mbarrier_arrive(barriers, 0)

    return launched(body, np.zeros(32, np.float16), x=ll.pointer("f16"))


@mistake("a bulk copy of bytes that were just stored, without a fence")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        ll.store_shared(ll.full(1.0, "f16", layout=TILE), shared, offsets=[0, 0])
        ll.synchronize()
        ll.copy_bulk_to_global(shared, y, offsets=[0, 0], view_offsets=[0, 0], shape=[8, 64])
        ll.copy_bulk_commit()
        ll.copy_bulk_wait(0)

    return on_tiles(body)


def copy_from_column(column: Any, view: Any, shared: Any, barriers: Any) -> None:
    ll.mbarrier_expect_bytes(barriers, 0, num_bytes=1024)
    ll.copy_tensor(view, shared, view_offsets=[0, column], offsets=[0, 0], shape=[8, 64], barriers=barriers, index=0)
    ll.mbarrier_wait(barriers, 0, parity=0)


@mistake("a tensor copy that begins within 16 bytes of a row, known when it is traced")
def _(folder: Path) -> object:
    return on_tiles(lambda view, shared, barriers, y: copy_from_column(3, view, shared, barriers))


@mistake("a tensor copy that begins within 16 bytes of a row")
def _(folder: Path) -> object:
    def body(view: Any, shared: Any, barriers: Any, y: Any) -> None:
        copy_from_column(ll.block_indices()[0] + 3, view, shared, barriers)

    return on_tiles(body)


# --- products of warpgroups -------------------------------------------------------------------------------------------

A_FRAGMENTS = lowlp.spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)
ACCUMULATORS = lowlp.spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)
ROWS_OF_B = lowlp.spatial(8, 16).local(1, 4)
SWIZZLED = lowlp.swizzle(lowlp.local(8, 8), dim=1).local(1, 8)


def multiplied(body: Any, layout: Any = SWIZZLED) -> object:
    """Runs `body(a, b, stored)`: A, a shared tile of 8 x 64, and what is stored to it."""

    def whole(x: Any) -> None:
        stored = ll.load_global(ll.view_global(x, shape=[8, 64]), offsets=[0, 0], layout=ROWS_OF_B)
        body(ll.full(1.0, "f16", layout=A_FRAGMENTS), ll.alloc_shared("f16", [8, 64], layout), stored)

    kernel = ll.make_kernel(whole, name="kernel", parameters={"x": ll.pointer("f16")}, grid=(1,), num_threads=128)
    return kernel(np.ones((8, 64), np.float16))


@mistake("a shared tile that the hardware cannot multiply by")
def _(folder: Path) -> object:
    return multiplied(lambda a, b, stored: ll.wgmma(a, b, offsets=[0, 0], layout=ACCUMULATORS), layout=None)


@mistake("accumulators that are used before they are waited for")
def _(folder: Path) -> object:
    return multiplied(
        lambda a, b, stored: (
            ll.full(0.0, "f32", layout=ACCUMULATORS) + ll.wgmma(a, b, offsets=[0, 0], layout=ACCUMULATORS)
        )
    )


@mistake("a shared tile that was just stored, without a fence")
def _(folder: Path) -> object:
    def body(a: Any, b: Any, stored: Any) -> None:
        ll.store_shared(stored, b, offsets=[0, 0])
        ll.synchronize()
        accumulators = ll.wgmma(a, b, offsets=[0, 0], layout=ACCUMULATORS)
        ll.wgmma_commit()
        ll.wgmma_wait(0, accumulators)

    return multiplied(body)


@mistake("a shared tile that is overwritten before the wait")
def _(folder: Path) -> object:
    def body(a: Any, b: Any, stored: Any) -> None:
        ll.store_shared(stored, b, offsets=[0, 0])
        ll.fence_async()
        ll.synchronize()
        accumulators = ll.wgmma(a, b, offsets=[0, 0], layout=ACCUMULATORS)
        ll.wgmma_commit()
        ll.store_shared(stored, b, offsets=[0, 0])
        ll.wgmma_wait(0, accumulators)

    return multiplied(body)


@mistake("accumulators that are taken by a wait that does not cover them")
def _(folder: Path) -> object:
    def body(a: Any, b: Any, stored: Any) -> None:
        ll.store_shared(stored, b, offsets=[0, 0])
        ll.fence_async()
        ll.synchronize()
        accumulators = ll.wgmma(a, b, offsets=[0, 0], layout=ACCUMULATORS)
        ll.wgmma_commit()
        ll.wgmma_wait(1, accumulators)

    return multiplied(body)


# --- numbers and promises on the CPU target ---------------------------------------------------------------------------


@mistake("a row of a gather that is not there, though `in_bounds` promises it")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        view = ll.view_global(x, shape=[16, 8])
        rows = ll.full(16, "int32", layout=ROWS.reduce([1], keep_dims=True))
        tile = ll.gather_global(view, rows, dim=0, offsets=[0, 0], layout=ROWS, in_bounds=True)
        ll.store_global(tile, view, offsets=[0, 0])

    return ran(body)


@mistake("a code for which a table has no entry")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        table = ll.alloc_shared("f16", [16])
        ll.store_shared(ll.full(1.0, "f16", layout=WARP), table, offsets=[0])
        ll.synchronize()
        tile = ll.lookup(table, ll.full(16, "int32", layout=WARP))
        ll.store_global(tile, ll.view_global(x, shape=[32]), offsets=[0])

    return ran(body)


@mistake("a promise that the launch breaks")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        ll.assume(m < 16, "at most 15 rows")

    return ran(body)


@mistake("a number that is no multiple, as was promised")
def _(folder: Path) -> object:
    def body(x: Any, b: Any, m: Any) -> None:
        rows = ll.assume_divisible(m, 32)
        ll.store_global(ll.full(0.0, "f16", layout=WARP), ll.view_global(x, shape=[rows]), offsets=[0])

    return ran(body)


@mistake("a division by zero")
def _(folder: Path) -> object:
    def body(y: Any) -> None:
        view = ll.view_global(y, shape=[32])
        divisor = ll.load_global(view, offsets=[0], layout=WARP)
        ll.store_global(ll.full(7, "int32", layout=WARP) // divisor, view, offsets=[0])

    return launched(body, np.zeros(32, np.int32), y=ll.pointer("int32"))
