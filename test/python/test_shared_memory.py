"""Shared memory of the block dialect, run on the CPU target."""

from __future__ import annotations

import numpy as np
import pytest

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import CpuTargetError

STAGES = "local(3, 1, 1).swizzle(local(16, 4), dim=1, log_step=1).local(1, 8)"
ROWS = "spatial(2, 32).local(8, 1)"
COLUMNS = "local(1, 4).column_spatial(16, 4).local(1, 2)"
HELD_TWICE = "reduce(spatial(2, 1, 1), dims=[0]).spatial(8, 4).local(2, 8)"


def through_shared_memory(element: str, first: str, second: str, shared: str) -> str:
    """A kernel that moves a tile of 16 x 32 through stage 1 of shared memory, from one layout to another."""
    memory = f"!lowlp.shared<3x16x32x{element}, {shared}>"
    a, b = (f"!lowlp.tile<16x32x{element}, {layout}>" for layout in (first, second))
    view = f"!lowlp.global<16x32x{element}>"
    return f"""
    lowlp.kernel @move(%x: !lowlp.ptr<{element}> {{lowlp.name = "x", lowlp.align = 16 : i64}},
                       %y: !lowlp.ptr<{element}> {{lowlp.name = "y", lowlp.align = 16 : i64}})
        attributes {{grid = affine_map<() -> (1)>, num_threads = 64 : i64}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %s = lowlp.alloc_shared : {memory}
      %from = lowlp.view_global %x shape [16, 32] : !lowlp.ptr<{element}> -> {view}
      %to = lowlp.view_global %y shape [16, 32] : !lowlp.ptr<{element}> -> {view}
      %a = lowlp.load_global %from[%c0, %c0] : {view} -> {a}
      lowlp.store_shared %a, %s[%c1, %c0, %c0] : {a}, {memory}
      lowlp.synchronize
      %b = lowlp.load_shared %s[%c1, %c0, %c0] : {memory} -> {b}
      lowlp.store_global %b, %to[%c0, %c0] : {b}, {view}
      lowlp.return
    }}"""


ELEMENTS = ("ui1", "si2", "ui3", "si5", "si6", "!lowlp.float<e2m2>", "f6E3M2FN", "ui7", "si8", "f8E4M3FN", "f16", "f32")


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("element", "shared"),
    [
        *((element, STAGES) for element in ELEMENTS),
        *((element, "local(3, 16, 32)") for element in ELEMENTS[::2]),
        *((element, "column_local(3, 16, 32)") for element in ELEMENTS[1::2]),
    ],
)
def test_every_element_type_goes_through(element: str, shared: str) -> None:
    bits = lowlp.dtype("f16").bits if element == "f16" else 0
    bits = bits or {"!lowlp.float<e2m2>": 5, "f6E3M2FN": 6, "f8E4M3FN": 8, "f32": 32}.get(element) or int(element[2:])
    kind = {"f16": np.float16, "f32": np.float32, "si8": np.int8}.get(element, np.uint8)
    x = np.random.default_rng(bits).integers(0, 128, 16 * 32 * bits // 8, np.uint8).view(kind)
    for first, second in ((ROWS, COLUMNS), (COLUMNS, HELD_TWICE), (HELD_TWICE, ROWS)):
        y = np.zeros_like(x)
        kernel = compile_cpu(through_shared_memory(element, first, second, shared))
        kernel(x, y, seed=bits)
        np.testing.assert_array_equal(x, y)
        assert kernel.description.shared_bytes == 3 * 16 * 32 * bits // 8


def shifted(load_at: int, store_at: int, flag: str = "") -> str:
    """A kernel that stores a tile of 4 x 32 at row `store_at` and loads one from row `load_at`."""
    return f"""
    !tile = !lowlp.tile<4x32xf32, spatial(1, 32).local(4, 1)>
    lowlp.kernel @shift(%x: !lowlp.ptr<f32>, %y: !lowlp.ptr<f32>)
        attributes {{grid = affine_map<() -> (1)>, num_threads = 32 : i64}} {{
      %c0 = arith.constant 0 : index
      %load_at = arith.constant {load_at} : index
      %store_at = arith.constant {store_at} : index
      %zero = arith.constant 0.0 : f32
      %s = lowlp.alloc_shared : !lowlp.shared<4x32xf32>
      %behind = lowlp.alloc_shared : !lowlp.shared<4x32xf32>
      %zeros = lowlp.splat %zero : f32 -> !tile
      lowlp.store_shared %zeros, %s[%c0, %c0] : !tile, !lowlp.shared<4x32xf32>
      lowlp.store_shared %zeros, %behind[%c0, %c0] : !tile, !lowlp.shared<4x32xf32>
      lowlp.synchronize
      %from = lowlp.view_global %x shape [4, 32] : !lowlp.ptr<f32> -> !lowlp.global<4x32xf32>
      %to = lowlp.view_global %y shape [8, 32] : !lowlp.ptr<f32> -> !lowlp.global<8x32xf32>
      %a = lowlp.load_global %from[%c0, %c0] : !lowlp.global<4x32xf32> -> !tile
      lowlp.store_shared %a, %s[%store_at, %c0] {flag} : !tile, !lowlp.shared<4x32xf32>
      lowlp.synchronize
      %b = lowlp.load_shared %s[%load_at, %c0] {flag} : !lowlp.shared<4x32xf32> -> !tile
      %c = lowlp.load_shared %behind[%c0, %c0] : !lowlp.shared<4x32xf32> -> !tile
      lowlp.store_global %b, %to[%c0, %c0] : !tile, !lowlp.global<8x32xf32>
      %c4 = arith.constant 4 : index
      lowlp.store_global %c, %to[%c4, %c0] : !tile, !lowlp.global<8x32xf32>
      lowlp.return
    }}"""


@pytest.mark.parametrize(("load_at", "store_at"), [(0, 0), (1, 0), (0, 2), (-1, 1), (3, -2), (5, 0), (0, 7)])
def test_elements_outside_are_zero_and_not_written(load_at: int, store_at: int) -> None:
    x = np.arange(1, 4 * 32 + 1, dtype=np.float32).reshape(4, 32)
    y = np.full((8, 32), np.nan, np.float32)
    compile_cpu(shifted(load_at, store_at))(x, y)
    held = {store_at + row: x[row] for row in range(4) if 0 <= store_at + row < 4}
    expected = [held.get(load_at + row, np.zeros(32)) for row in range(4)]
    np.testing.assert_array_equal(y, [*expected, *np.zeros((4, 32))])


def test_a_broken_promise_is_reported() -> None:
    x, y = np.ones((4, 32), np.float32), np.ones((8, 32), np.float32)
    compile_cpu(shifted(0, 0, "in_bounds"))(x, y)
    with pytest.raises(CpuTargetError, match=r"lowlp\.load_shared.*promises in_bounds"):
        compile_cpu(shifted(1, 0, "in_bounds"))(x, y)


def test_ptx_has_dynamic_shared_memory() -> None:
    kernel = lowlp.compile(through_shared_memory("f16", ROWS, COLUMNS, STAGES), "sm_80", assemble=False)
    assert ".extern .shared .align 1024 .b8 lowlp_shared_memory[]" in kernel.ptx
    assert "ld.shared" in kernel.ptx and "st.shared" in kernel.ptx and "bar.sync" in kernel.ptx
    assert kernel.description.shared_bytes == 3 * 16 * 32 * 2
