"""A kernel whose threads hold more than their registers: what compiling it says."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any, Final

import pytest

import lowlp
from lowlp import language as ll
from lowlp.errors import SpillWarning
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import EPILOGUES, LinearSpec
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


@pytest.mark.filterwarnings("ignore::lowlp.errors.ProductWarning")
def test_schedules_that_lowlp_chose_are_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were chosen for their time, with what they spill; those that a user gave are told."""
    vectors = lowlp.vq(vector=8, bits=12, books=2, entries="int8")
    of: dict[str, Any] = {"n": 512, "k": 2048, "weight": vectors, "group_size": None, "m": (129, 256)}
    spilling = Schedule(256, stages=2, warpgroups=2, row_tiles=2, steps=1, scales_on="weights")
    with pytest.warns(SpillWarning, match="each thread spills"):
        given = lowlp.compile_linear(**of, schedule=spilling)
    assert given.spilled_bytes > 64
    monkeypatch.setattr("lowlp.ops.linear.schedule_for", lambda *_, **__: spilling)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SpillWarning)
        assert lowlp.compile_linear(**of).spilled_bytes == given.spilled_bytes


@pytest.mark.parametrize(
    ("codec", "epilogue", "m"),
    [("vec8:2x12:int8 channel f16", "silu_mul", 16), ("vec4:2x12:int8 g64 f16", "", 16), ("e8p channel f16", "", 64)],
)
def test_what_few_rows_of_codebooks_spill(codec: str, epilogue: str, m: int) -> None:
    """Little: gate and up, codes of 12 bits in groups, and as many columns as few rows have."""
    spec = LinearSpec(8192, 8192, codec, epilogue=epilogue, aligned=True)
    schedule = schedule_for(spec, m)
    assert compile_for_gpu(spec, schedule, "sm_90a").spilled_bytes <= 64


CODECS: Final = (
    *("vec8:1x8:f16", "vec8:2x8:f16", "vec8:4x8:f16", "vec8:2x8:int8", "vec8:1x10:f16", "vec8:2x10:f16"),
    *("vec8:1x12:f16", "vec8:2x12:f16", "vec8:2x12:int8", "vec8:2x12:f8e4m3", "vec8:1x13:f16", "vec8:1x16:f16"),
    *("vec8:2x16:f16", "vec4:1x8:f16", "vec4:2x8:f16", "vec4:1x10:f16", "vec4:1x12:f16", "vec2:1x8:f16"),
    *("vec16:1x12:f16", "vec4:1x8:f16:256x256", "vec4:1x8:int8:256x256", "vec2:1x4:f16:256x256"),
    *("vec2:1x6:f16:256x256", "vec4:1x8:f16:128x*", "e8p", "e8p+e8p", "e8p+e81b"),
)
EXTENTS: Final = tuple(64 * n for n in (8, 9, 14, 16, 18, 24, 40, 64, 76, 80, 108, 128, 172, 216, 296, 448, 896))
ROWS: Final = (1, 2, 3, 5, 8, 12, 16, 17, 24, 32, 33, 48, 64, 65, 100, 128, 200, 256, 300, 512, 600, 1024, 1500, 4096)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("number", range(300))
def test_products_with_codebooks_that_nobody_named(number: int) -> None:
    """Of the schedule that is chosen no product waits for another, and threads spill little."""
    drawn = random.Random(f"product {number}")
    codec, n, k, m = drawn.choice(CODECS), drawn.choice(EXTENTS), drawn.choice(EXTENTS), drawn.choice(ROWS)
    group = drawn.choice(("channel", "channel", *(f"g{size}" for size in (32, 64, 128) if k % size == 0)))
    activation, epilogue = drawn.choice(("f16", "bf16")), drawn.choice(("", *EPILOGUES))
    codec = f"{codec} {group} {'f32' if codec.startswith('e8p') else 'f16'}"
    spec = LinearSpec(n, k, codec, activation, activation, drawn.choice(("", "f16")), epilogue, aligned=True)
    kernel = compile_for_gpu(spec, schedule_for(spec, m), "sm_90a")
    assert kernel.spilled_bytes <= 192 and kernel.product_remarks == 0, (spec, m)
