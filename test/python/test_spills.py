"""A kernel whose threads hold more than their registers: what compiling it says."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import lowlp
from lowlp import language as ll
from lowlp.errors import SpillWarning
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.ops.linear_kernels import compile_for_gpu


def sums(rows: int) -> ll.Kernel:
    """Holds a tile of rows x 64 in a warp across a barrier and a loop."""

    def body(x: Any, y: Any, n: Any) -> None:
        view = ll.view_global(x, shape=[rows, 64])
        tile = ll.load_global(view, offsets=[0, 0], layout=lowlp.local(rows, 2).spatial(1, 32))
        total = tile
        for _ in ll.range(n):
            total = total * 1.5 + tile
        ll.store_global(total, ll.view_global(y, shape=[rows, 64]), offsets=[0, 0])

    parameters = {"x": ll.pointer("f32"), "y": ll.pointer("f32"), "n": ll.i32}
    return ll.make_kernel(body, name="sums", parameters=parameters, grid=(1,), num_threads=32)


def test_spills_are_told_at_the_users_line() -> None:
    for _ in range(2):  # from the cache too
        with pytest.warns(SpillWarning) as told:
            kernel = lowlp.compile(sums(128))
        (warning,) = told
        assert kernel.spilled_bytes > 256
        text = f"kernel sums for sm_90a: each thread spills {kernel.spilled_bytes} bytes of registers to memory"
        assert str(warning.message).startswith(text)
        assert Path(warning.filename) == Path(__file__)


def test_kernels_without_spills_are_quiet() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lowlp.compile(sums(16)).spilled_bytes == 0


def test_schedules_that_lowlp_chose_are_quiet() -> None:
    """They were chosen for their time; those that a user gave are told."""
    vectors = lowlp.vq(vector=8, bits=12, books=2, entries="int8")
    schedule = Schedule(32, stages=3, warpgroups=4, row_tiles=1, steps=4, scales_on="weights")
    of: dict[str, Any] = {"n": 8192, "k": 8192, "weight": vectors, "group_size": None, "m": (17, 32)}
    with pytest.warns(SpillWarning, match="each thread spills"):
        given = lowlp.compile_linear(**of, schedule=schedule)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec = LinearSpec(8192, 8192, Codec(vectors, "channel", "f16"), aligned=True)
        assert compile_for_gpu(spec, schedule, "sm_90a").spilled_bytes == given.spilled_bytes
