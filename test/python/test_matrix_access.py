"""Tiles that matrix instructions move to and from shared memory, on the CPU target: any layouts, any place of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.compiler import compilation
from lowlp.compiler.compilation import compile_cpu
from lowlp.layouts import register_layout
from lowlp.layouts.shared_layout import SharedLayout, shared_layout

Random = np.random.Generator

BITS = {"ui1": 1, "si2": 2, "ui4": 4, "f4E2M1FN": 4, "si8": 8, "f8E5M2": 8, "f16": 16, "bf16": 16, "f32": 32}
NUMPY: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16, "si8": np.int8}
STAGES = 2


def pick(random: Random, *choices: Any) -> Any:
    return choices[random.integers(len(choices))]


@dataclass
class Move:
    """x -> registers -> shared memory -> registers -> y, by one block for each stage and one for none."""

    element: str
    warps: int
    stored: lowlp.Layout
    loaded: lowlp.Layout
    shared: SharedLayout

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stored.shape


def random_layout(random: Random, shape: tuple[int, int], warps: int, per_register: int) -> lowlp.Layout:
    """Registers that are matrices, with rows along either dimension, in any order; some warps hold the same."""
    unit = lowlp.spatial(8, 4).local(1, per_register)
    if per_register <= 4 and random.random() < 0.4:
        unit = lowlp.column_spatial(4, 8).local(per_register, 1)
    grid = [extent // part for extent, part in zip(shape, unit.shape, strict=True)]
    down = math.gcd(grid[0], pick(random, 1, 2, 4), warps)
    right = math.gcd(grid[1], warps // down)
    copies = warps // (down * right)
    by_dim = [(down, grid[0] // down), (right, grid[1] // right)]
    extents, warp_modes, local_modes = [], [], []
    for d, (warp, local) in enumerate(by_dim):
        swap = random.random() < 0.5
        extents.append([local, warp] if swap else [warp, local])
        warp_modes.append((2 * d + swap, warp))
        local_modes.append((2 * d + 1 - swap, local))
    threads: list[tuple[int | None, int]] = [*warp_modes, (None, copies)]
    outer = register_layout.from_modes(extents, threads[:: pick(random, 1, -1)], local_modes[:: pick(random, 1, -1)])
    return outer * unit


def random_shared(random: Random, shape: tuple[int, int], chunk: int) -> SharedLayout:
    """Row by row or column by column, plain, padded or swizzled by chunks of 16 bytes."""
    rows, columns = (extent + pick(random, 0, 0, chunk) for extent in shape)
    kind = random.integers(6)
    if kind in (0, 5):
        return shared_layout(f"local({STAGES}, {rows}, {columns})")
    if kind == 1:
        return shared_layout(f"local({STAGES}, 1, 1).column_local(1, {rows}, {columns})")
    rows, columns = shape
    if kind == 2 and rows % chunk == 0:
        return shared_layout(f"local({STAGES}, {rows // chunk}, 1).column_local(1, {chunk}, {columns})")
    steps = f"log_step={random.integers(3)}"
    if kind == 3 and (columns // chunk).bit_count() == 1:
        return shared_layout(
            f"local({STAGES}, 1, 1).swizzle(local({rows}, {columns // chunk}), dim=1, {steps}).local(1, {chunk})"
        )
    if (rows // chunk).bit_count() == 1:
        return shared_layout(
            f"local({STAGES}, 1, 1).swizzle(local({rows // chunk}, {columns}), dim=0, {steps}).local({chunk}, 1)"
        )
    return shared_layout(f"local({STAGES}, {rows}, {columns})")


def random_move(random: Random) -> Move:
    element = pick(random, *BITS)
    per_register = 32 // BITS[element]
    side = max(8, 4 * per_register)
    shape = tuple(side * int(n) for n in random.integers(1, 2 if per_register > 4 else 3, 2))
    warps = pick(random, 1, 2, 4)
    stored, loaded = (random_layout(random, shape, warps, per_register) for _ in range(2))  # type: ignore[arg-type]
    return Move(element, warps, stored, loaded, random_shared(random, shape, 128 // BITS[element]))  # type: ignore[arg-type]


def move_text(move: Move) -> str:
    """Of small elements, whose accesses one by one are long programs, the stage is always the last."""
    block, stage = "stage", "stage"
    if BITS[move.element] <= 8:
        block, stage = "block", "last"
    dims = "x".join(map(str, move.shape))
    shared = f"!lowlp.shared<{'x'.join(map(str, move.shared.shape))}x{move.element}, {move.shared}>"
    stored, loaded = (f"!lowlp.tile<{dims}x{move.element}, {layout}>" for layout in (move.stored, move.loaded))
    whole, part = f"!lowlp.global<{STAGES + 1}x{dims}x{move.element}>", f"!lowlp.global<{dims}x{move.element}>"
    extents = ", ".join(map(str, move.shape))
    return f"""
    lowlp.kernel @move(%x: !lowlp.ptr<{move.element}>, %y: !lowlp.ptr<{move.element}>)
        attributes {{grid = affine_map<() -> ({STAGES + 1})>, num_threads = {32 * move.warps} : i64}} {{
      %c0 = arith.constant 0 : index
      %last = arith.constant {STAGES - 1} : index
      %{block} = lowlp.block_indices : index
      %s = lowlp.alloc_shared : {shared}
      %from = lowlp.view_global %x shape [{extents}] : !lowlp.ptr<{move.element}> -> {part}
      %to = lowlp.view_global %y shape [{STAGES + 1}, {extents}] : !lowlp.ptr<{move.element}> -> {whole}
      %a = lowlp.load_global %from[%c0, %c0] : {part} -> {stored}
      lowlp.store_shared %a, %s[%{stage}, %c0, %c0] : {stored}, {shared}
      lowlp.synchronize
      %b = lowlp.load_shared %s[%{stage}, %c0, %c0] : {shared} -> {loaded}
      lowlp.store_global %b, %to[%{block}, %c0, %c0] : {loaded}, {whole}
      lowlp.return
    }}"""


def thread_text(program: str, arch: str) -> str:
    module = compilation.open_program(program).operation.clone()
    compilation.run_pipeline(module, f"lowlp-to-thread{{arch={arch}}}")
    return str(module)


NUMBER_OF_MOVES = 24


@pytest.mark.sampled(8)
@pytest.mark.parametrize("number", range(NUMBER_OF_MOVES))
def test_random_moves(number: int) -> None:
    random = np.random.default_rng([6, number])
    move = random_move(random)
    text = move_text(move)
    size = math.prod(move.shape) * BITS[move.element] // 8
    x = random.integers(0, 256, size, np.uint8)
    y = np.full((STAGES + 1) * size, 0xA5, np.uint8)
    kind = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16, "si8": np.int8}.get(
        move.element, np.uint8
    )
    compile_cpu(text)(x.view(kind), y.view(kind), seed=number)
    # The stage after the last does not exist: nothing is stored, and zeros are loaded.
    beyond = x if BITS[move.element] <= 8 else np.zeros(size)
    np.testing.assert_array_equal(y.reshape(STAGES + 1, size), [*[x] * STAGES, beyond], err_msg=text)


def test_random_moves_use_matrix_instructions() -> None:
    counts = {"ldmatrix": 0, "trans : <shared>": 0, "stmatrix": 0}
    for number in range(NUMBER_OF_MOVES):
        text = thread_text(move_text(random_move(np.random.default_rng([6, number]))), "sm_90a")
        for name in counts:
            counts[name] += name in text
    assert counts["ldmatrix"] >= 12 and counts["stmatrix"] >= 10, counts
    assert counts["trans : <shared>"] >= 2, counts


FRAGMENTS_OF_A = "local(2, 4).column_local(2, 2).spatial(8, 4).local(1, 2)"
FRAGMENTS_OF_B = "local(2, 8).local(2, 1).column_spatial(4, 8).local(2, 1)"


@pytest.mark.parametrize(("layout", "mode"), [(FRAGMENTS_OF_A, ""), (FRAGMENTS_OF_B, " trans")])
@pytest.mark.parametrize(
    ("shared", "extra"), [("local(2, 32, 64)", 7), ("local(2, 1, 1).swizzle(local(32, 8), dim=1).local(1, 8)", 0)]
)
def test_bank_conflicts(layout: str, mode: str, shared: str, extra: int) -> None:
    """Rows of 128 bytes begin in one bank, unless swizzled: then 8 of them meet every bank once."""
    tile = lowlp.layout(layout)
    program = move_text(Move("f16", 1, tile, tile, shared_layout(shared)))
    program = program.replace(f"({STAGES + 1})>", f"({STAGES})>")
    assert f"]{mode} : <shared> -> vector<4xi32>" in thread_text(program, "sm_90a")
    x, y = np.zeros((32, 64), np.float16), np.zeros((3, 32, 64), np.float16)
    for site in compile_cpu(program)(x, y, sites=True)["sites"]:
        if "shared at" in site["site"]:
            # 32 * 64 elements in each of two stages, 4 * 64 at once.
            assert (site["requests"], site["bytes"]) == (16, 8192)
            assert site["extra_passes"] == extra * 4 * site["requests"], site


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_ptx_has_matrix_instructions(arch: str) -> None:
    layout = lowlp.layout(FRAGMENTS_OF_A)
    program = move_text(Move("f16", 1, layout, layout, shared_layout("local(2, 32, 64)")))
    ptx = lowlp.compile(program, arch).ptx
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in ptx
    assert ("stmatrix.sync.aligned.m8n8.x4.shared.b16" in ptx) == (arch == "sm_90a")
