"""Asynchronous copies of the DSL on the CPU target: they land at their wait, and what comes before is reported."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import CpuKernel, compile_cpu
from lowlp.errors import CpuTargetError

ROWS = lowlp.spatial(8, 8).local(1, 8)
SEEDS = range(6)


def make_pipeline(*, waits: int | None = 1, synchronize: bool = True, writes_source: bool = False) -> CpuKernel:
    """y = the sum of the four tiles of 8 x 64 of x, copied with two stages; `waits` groups may be in flight."""

    def body(x: Any, y: Any) -> None:
        x_view = ll.view_global(x, shape=[4, 8, 64])
        stages = ll.alloc_shared("f16", [2, 8, 64])

        def fill(step: int) -> None:
            if step < 4:
                ll.copy_async(x_view, stages, view_offsets=[step, 0, 0], offsets=[step % 2, 0, 0], shape=[8, 64])
            ll.copy_async_commit()

        fill(0)
        acc = ll.full(0.0, "f16", layout=ROWS)
        for step in range(4):
            fill(step + 1)
            if waits is not None:
                ll.copy_async_wait(waits)
            if synchronize:
                ll.synchronize()
            if writes_source:
                ll.store_global(acc, x_view, offsets=[step + 1, 0, 0])
            acc = acc + ll.load_shared(stages, offsets=[step % 2, 0, 0], layout=lowlp.spatial(8, 8).local(1, 8))
            if synchronize:
                ll.synchronize()
        ll.store_global(acc, ll.view_global(y, shape=[8, 64]), offsets=[0, 0])

    parameters = {"x": ll.pointer("f16", align=16), "y": ll.pointer("f16", align=16)}
    return compile_cpu(ll.make_kernel(body, name="pipeline", parameters=parameters, grid=(1,), num_threads=64))


def inputs() -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(0).integers(-9, 9, (4, 8, 64)).astype(np.float16), np.zeros((8, 64), np.float16)


def test_a_correct_pipeline() -> None:
    kernel = make_pipeline()
    for seed in SEEDS:
        for checks in (True, "races", False):
            x, y = inputs()
            kernel(x, y, seed=seed, checks=checks)
            np.testing.assert_array_equal(y, x.sum(axis=0))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            {"waits": None},
            r"lowlp\.load_shared at .*test_late_copies\.py:\d+:\d+: read of 16 bytes at byte offset \d+ of shared "
            r"memory \(2048 bytes\) touches bytes of an asynchronous copy that was not waited for, issued by thread "
            r"\(\d+, 0, 0\) at lowlp\.copy_async at .*test_late_copies\.py:\d+:\d+; block \(0, 0, 0\), thread "
            r"\(\d+, 0, 0\)$",
        ),
        ({"waits": 2}, r"lowlp\.load_shared at .* was not waited for, issued by thread"),
        ({"writes_source": True}, r"store_global at .* changes bytes that an asynchronous copy still reads, issued by"),
    ],
)
def test_each_mistake_is_found(wrong: dict[str, Any], text: str) -> None:
    kernel = make_pipeline(**wrong)
    for seed in SEEDS:
        with pytest.raises(CpuTargetError, match=text):
            kernel(*inputs(), seed=seed)


def test_other_threads_need_a_barrier() -> None:
    def body(x: Any, y: Any) -> None:
        shared = ll.alloc_shared("f16", [8, 64])
        ll.copy_async(ll.view_global(x, shape=[8, 64]), shared, view_offsets=[0, 0], offsets=[0, 0], shape=[8, 64])
        ll.copy_async_commit()
        ll.copy_async_wait(0)
        tile = ll.load_shared(shared, offsets=[0, 0], layout=lowlp.column_spatial(8, 8).local(1, 8))
        ll.store_global(tile, ll.view_global(y, shape=[8, 64]), offsets=[0, 0])

    parameters = {"x": ll.pointer("f16", align=16), "y": ll.pointer("f16", align=16)}
    kernel = compile_cpu(ll.make_kernel(body, name="copy", parameters=parameters, grid=(1,), num_threads=64))
    for seed in SEEDS:
        with pytest.raises(CpuTargetError, match=r"was not waited for|race: .*lowlp\.copy_async at|uninitialised read"):
            kernel(np.zeros((8, 64), np.float16), np.zeros((8, 64), np.float16), seed=seed)
