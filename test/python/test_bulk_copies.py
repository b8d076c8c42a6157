"""mbarriers, bulk copies and tensor copies, run on the CPU target: what is right, and each mistake that it finds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import CpuTargetError, LowlpError

THREADS = 64
ROWS, COLUMNS, STEPS, STAGES = 8, 64, 7, 3
STAGE_BYTES = ROWS * COLUMNS * 2
HELD = lowlp.spatial(8, 8).local(1, 8)
SWIZZLED = lowlp.local(STAGES, 1, 1).swizzle(lowlp.local(ROWS, COLUMNS // 8), dim=1).local(1, 8)
SEEDS = range(8)
BUGS = [
    "no wait", "wrong parity", "no empty wait", "wrong empty parity", "no bytes", "too few bytes", "too many bytes",
    "no fence", "no synchronize",
]  # fmt: skip


def make_ring(bug: str = "", *, tensor: bool = False) -> ll.Kernel:
    """y[8, 64] = the sum of the 7 tiles of x[8, 448], which the first thread copies through a ring of three stages."""

    copy = ll.copy_tensor if tensor else ll.copy_bulk
    announced = {"too few bytes": STAGE_BYTES - 16, "too many bytes": STAGE_BYTES + 16}.get(bug, STAGE_BYTES)
    expect: Callable[..., None] = ll.mbarrier_expect_bytes
    if bug == "no bytes":
        expect = lambda *arguments, **named: None  # noqa: E731

    @lowlp.kernel(grid=(1,), num_threads=THREADS)
    def ring(x: ll.pointer("f16", align=16), y: ll.pointer("f32", align=16)) -> None:
        x_view = ll.view_global(x, shape=[ROWS, STEPS * COLUMNS])
        y_view = ll.view_global(y, shape=[ROWS, COLUMNS])
        stages = ll.alloc_shared("f16", [STAGES, ROWS, COLUMNS], SWIZZLED if tensor else None)
        full = ll.alloc_mbarriers(STAGES, arrivals=1)
        empty = ll.alloc_mbarriers(STAGES, arrivals=THREADS)
        if bug != "no synchronize":
            ll.synchronize()

        @ll.inline
        def fill(stage: int | ll.Scalar, step: int | ll.Scalar) -> None:
            expect(full, stage, num_bytes=announced)
            copy(
                x_view, stages, view_offsets=[0, step * COLUMNS], offsets=[stage, 0, 0], shape=[ROWS, COLUMNS],
                barriers=full, index=stage,
            )  # fmt: skip

        for stage in range(STAGES):
            fill(stage, stage)
        acc = ll.full(0.0, "f32", layout=HELD)
        for step in ll.range(STEPS):
            stage, turn = step % STAGES, step // STAGES
            if bug != "no wait":
                ll.mbarrier_wait(full, stage, parity=turn + 1 if bug == "wrong parity" else turn)
            acc = acc + ll.cast(ll.load_shared(stages, offsets=[stage, 0, 0], layout=HELD), "f32")
            # What plain stores wrote takes a fence before a bulk copy may write it.
            ll.store_shared(ll.full(0.0, "f16", layout=HELD), stages, offsets=[stage, 0, 0])
            ll.mbarrier_arrive(empty, stage)
            if step + STAGES < STEPS:
                if bug != "no empty wait":
                    ll.mbarrier_wait(empty, stage, parity=turn + 1 if bug == "wrong empty parity" else turn)
                if bug != "no fence":
                    ll.fence_async()
                fill(stage, step + STAGES)
        ll.store_global(acc, y_view, offsets=[0, 0])

    return ring


def run_ring(kernel: Callable[..., object], seed: int, **options: object) -> None:
    x = np.random.default_rng(seed).integers(-8, 8, (ROWS, STEPS * COLUMNS)).astype(np.float16)
    y = np.full((ROWS, COLUMNS), np.nan, np.float32)
    kernel(x, y, seed=seed, **options)
    np.testing.assert_array_equal(y, x.reshape(ROWS, STEPS, COLUMNS).sum(axis=1, dtype=np.float32))


@pytest.mark.parametrize("tensor", [False, True])
def test_a_ring_of_stages(tensor: bool) -> None:
    kernel = compile_cpu(make_ring(tensor=tensor))
    for seed in SEEDS:
        run_ring(kernel, seed)
    run_ring(kernel, 0, checks=False)
    run_ring(kernel, 0, sites=True)


EXPECTED = {
    # Another thread may read before the first one has begun to copy.
    "no wait": r"lowlp\.load_shared at .*test_bulk_copies\.py:\d+:\d+: (uninitialised read|read of 16 bytes at byte "
    r"offset \d+ of shared memory .* was not waited for, issued by thread \(0, 0, 0\) at "
    r"lowlp\.copy_bulk at .*\.py:\d+)",
    "wrong parity": r"lowlp\.load_shared at .*(uninitialised read| was not waited for)",
    "no empty wait": r"race: .*nor does an mbarrier order them|was not waited for",
    "wrong empty parity": r"race: .*nor does an mbarrier order them|was not waited for",
    "no bytes": r"deadlock: .*lowlp\.mbarrier_wait at .*test_bulk_copies\.py:\d+:\d+ \(the mbarrier at byte offset "
    r"\d+, whose phase 0 lacks 1 of 1 arrivals, and 1024 bytes came that no arrival announced\)",
    "too few bytes": r"lowlp\.copy_bulk at .*more bytes than announced|was not waited for",
    "too many bytes": r"deadlock: .*whose phase 0 lacks 0 of 1 arrivals and 16 bytes",
    "no fence": r"lowlp\.copy_bulk at .*missing fence: write of 128 bytes .* by a bulk copy and the write by thread .* "
    r"at lowlp\.store_shared at .* have no fence_async between them",
    "no synchronize": r"is not there yet for this thread: no barrier lies between|there is no mbarrier at byte offset",
}


@pytest.mark.parametrize("bug", BUGS)
def test_each_mistake_is_found(bug: str) -> None:
    kernel = compile_cpu(make_ring(bug))
    for seed in SEEDS:
        with pytest.raises(CpuTargetError, match=EXPECTED[bug]):
            run_ring(kernel, seed)


def make_box(layout: object, dtype: str, box: tuple[int, int]) -> ll.Kernel:
    """Copies the box at (i, j) of x[m, k] to y, zeros where x ends."""
    rows, columns = box
    held = lowlp.local(rows // 8, 1).spatial(8, 4).local(1, columns // 4)

    @lowlp.kernel(grid=(1,), num_threads=32)
    def take(
        x: ll.pointer(dtype, align=16), y: ll.pointer(dtype, align=16), m: ll.i32, k: ll.integer(32, divisible_by=16),
        i: ll.i32, j: ll.i32,
    ) -> None:  # fmt: skip
        x_view = ll.view_global(x, shape=[m, k])
        y_view = ll.view_global(y, shape=[rows, columns])
        before = ll.alloc_shared("uint8", [48])
        shared = ll.alloc_shared(dtype, [rows, columns], layout)
        barrier = ll.alloc_mbarriers(1, arrivals=1)
        ll.synchronize()
        ll.mbarrier_expect_bytes(barrier, 0, num_bytes=rows * columns * lowlp.dtype(dtype).bits // 8)
        ll.copy_tensor(
            x_view, shared, view_offsets=[i, j], offsets=[0, 0], shape=[rows, columns], barriers=barrier, index=0
        )
        ll.mbarrier_wait(barrier, 0, parity=0)
        ll.store_global(ll.load_shared(shared, offsets=[0, 0], layout=held), y_view, offsets=[0, 0])
        assert before.shape == (48,)

    return take


LAYOUTS = {
    ("f16", (16, 64)): lowlp.swizzle(lowlp.local(16, 8), dim=1).local(1, 8),
    ("f16", (16, 32)): lowlp.swizzle(lowlp.local(16, 4), dim=1, log_step=1).local(1, 8),
    ("uint8", (24, 32)): lowlp.swizzle(lowlp.local(24, 2), dim=1, log_step=2).local(1, 16),
    ("f32", (8, 32)): lowlp.swizzle(lowlp.local(8, 8), dim=1).local(1, 4),
    ("f32", (8, 64)): None,
    ("int8", (8, 64)): None,
}


@pytest.mark.parametrize(("dtype", "box"), LAYOUTS)
def test_boxes_of_tensors(dtype: str, box: tuple[int, int]) -> None:
    kind = {"f16": np.float16, "f32": np.float32, "uint8": np.uint8, "int8": np.int8}[dtype]
    kernel = compile_cpu(make_box(LAYOUTS[dtype, box], dtype, box))
    (tensor_map,) = kernel.description.tensor_maps
    assert (tensor_map.parameter, tensor_map.box) == ("x", box)
    m, k = 45, 112
    x = np.random.default_rng(3).integers(1, 100, (m, k)).astype(kind)
    padded = np.zeros((m + 200, k + 400), kind)
    padded[100 : 100 + m, 200 : 200 + k] = x
    for i, j in ((0, 0), (7, 16), (-5, -16), (40, 96), (44, 96), (60, 0), (0, -192)):
        y = np.ones(box, kind)
        kernel(x, y, m, k, i, j)
        np.testing.assert_array_equal(y, padded[100 + i : 100 + i + box[0], 200 + j : 200 + j + box[1]])


def test_a_box_begins_at_16_bytes_of_a_row() -> None:
    kernel = compile_cpu(make_box(None, "f32", (8, 64)))
    x, y = np.ones((45, 112), np.float32), np.ones((8, 64), np.float32)
    with pytest.raises(CpuTargetError, match=r"copy_tensor at .*does not begin at a multiple of 16 bytes of a row"):
        kernel(x, y, 45, 112, 7, 9)


def make_store(*, fence: bool = True, wait: bool = True, columns: int = 128) -> ll.Kernel:
    """Writes the tile of x to the last 64 columns of y by a bulk copy, then changes the shared tile."""

    @lowlp.kernel(grid=(2,), num_threads=32)
    def store(x: ll.pointer("f16", align=16), y: ll.pointer("f16", align=16)) -> None:
        (block,) = ll.block_indices()
        layout = lowlp.spatial(4, 8).local(1, 8)
        shared = ll.alloc_shared("f16", [4, 64])
        tile = ll.load_global(ll.view_global(x, shape=[8, 64]), offsets=[block * 4, 0], layout=layout)
        ll.store_shared(tile, shared, offsets=[0, 0])
        if fence:
            ll.fence_async()
        ll.synchronize()
        ll.copy_bulk_to_global(
            shared, ll.view_global(y, shape=[8, columns]), offsets=[0, 0], view_offsets=[block * 4, columns - 64],
            shape=[4, 64],
        )  # fmt: skip
        ll.copy_bulk_commit()
        if wait:
            ll.copy_bulk_wait(0, read=True)
        ll.synchronize()
        ll.store_shared(tile + tile, shared, offsets=[0, 0])

    return store


def test_a_tile_goes_to_global_memory() -> None:
    x = np.arange(8 * 64, dtype=np.float16).reshape(8, 64)
    for checks in (True, False):
        y = np.zeros((8, 128), np.float16)
        compile_cpu(make_store())(x, y, checks=checks)
        np.testing.assert_array_equal(y[:, 64:], x)
        assert not y[:, :64].any()
    with pytest.raises(
        CpuTargetError, match=r"copy_bulk_to_global at .*missing fence: read of 128 bytes .* the write by"
    ):
        compile_cpu(make_store(fence=False))(x, np.zeros((8, 128), np.float16))
    with pytest.raises(CpuTargetError, match=r"store_shared at .* changes bytes that an asynchronous copy still reads"):
        compile_cpu(make_store(wait=False))(x, np.zeros((8, 128), np.float16))


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_120a"])
def test_ptx_assembles(arch: str) -> None:
    ring = lowlp.compile(make_ring(), arch)
    for text in (
        "mbarrier.init.shared::cta.b64", "fence.mbarrier_init.release.cluster", "mbarrier.arrive.expect_tx",
        "mbarrier.try_wait.parity", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "fence.proxy.async",
    ):  # fmt: skip
        assert text in ring.ptx
    tensors = lowlp.compile(make_ring(tensor=True), arch)
    assert "cp.async.bulk.tensor.2d.shared::cluster.global.tile" in tensors.ptx
    assert ".param .align 64 .b8 ring_param_2[128]" in tensors.ptx
    assert "cp.async.bulk.wait_group.read 0" in lowlp.compile(make_store(), arch).ptx


def test_older_architectures_are_refused() -> None:
    with pytest.raises(LowlpError, match=r"copy_bulk.*sm_80|sm_80.*copy_bulk"):
        lowlp.compile(make_ring(), "sm_80")
    with pytest.raises(LowlpError, match=r"sm_89"):
        lowlp.compile(make_ring(tensor=True), "sm_89")


def test_misaligned_copies_are_reported() -> None:
    def body(x: ll.Pointer, offset: ll.Scalar) -> None:
        view = ll.view_global(x, shape=[256])
        shared = ll.alloc_shared("f16", [64])
        barrier = ll.alloc_mbarriers(1, arrivals=1)
        ll.synchronize()
        ll.mbarrier_expect_bytes(barrier, 0, num_bytes=128)
        ll.copy_bulk(view, shared, view_offsets=[offset], offsets=[0], shape=[64], barriers=barrier, index=0)
        ll.mbarrier_wait(barrier, 0, parity=0)

    parameters = {"x": ll.pointer("f16", align=16), "offset": ll.i32}
    kernel = compile_cpu(ll.make_kernel(body, name="copy", parameters=parameters, grid=(1,), num_threads=32))
    x = np.zeros(256 + 8, np.float16)
    x = x[(-x.ctypes.data // 2) % 8 :][:256]
    kernel(x, 8)
    with pytest.raises(
        CpuTargetError, match=r"copy_bulk at .*: read of 128 bytes at byte offset 8 of argument 'x'.*misali"
    ):
        kernel(x, 4)
    with pytest.raises(
        CpuTargetError, match=r"copy_bulk at .*: a bulk copy takes whole rows, but an element lies outside"
    ):
        kernel(x, 200)
