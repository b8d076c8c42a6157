"""Scalars, constants and tiles of the DSL, op by op."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import lowlp
from lowlp import language as ll

ROWS = lowlp.local(2, 1).spatial(8, 4).local(1, 2)


def ops_of(expression: Callable[..., object]) -> list[str]:
    """The ops that compute an expression of block indices i, j, integers m, n and a float f; without constants."""

    def body(m, n, f):
        i, j = ll.block_indices()
        result.append(expression(i, j, m, n, f))

    result: list[object] = []
    parameters = {"m": ll.i32, "n": ll.i64, "f": ll.f32}
    kernel = ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1, 1), num_threads=32)
    lines = (line.split("=", 1)[-1].split() for line in kernel.mlir.splitlines() if " = " in line)
    return [op[0].removeprefix("arith.") for op in lines if op[0].startswith("arith.") and op[0] != "arith.constant"]


@pytest.mark.parametrize(
    ("expression", "ops"),
    [
        (lambda i, j, m, n, f: i + 2 * j - 1, ["muli", "addi", "subi"]),
        (lambda i, j, m, n, f: -i, ["subi"]),
        (lambda i, j, m, n, f: +i, []),
        (lambda i, j, m, n, f: i // 8, ["divsi"]),
        (lambda i, j, m, n, f: (i * 4 + j) % 3, ["muli", "addi", "remsi"]),
        (lambda i, j, m, n, f: m // 8, ["index_cast", "floordivsi"]),
        (lambda i, j, m, n, f: (i - 1) % 3, ["subi", "remsi", "cmpi", "addi", "select"]),
        (lambda i, j, m, n, f: 7 % m, ["index_cast", "cmpi", "floordivsi", "muli", "subi"]),
        (lambda i, j, m, n, f: ll.ceildiv(i, 16), ["addi", "divsi"]),
        (lambda i, j, m, n, f: ll.ceildiv(m, 16), ["index_cast", "ceildivsi"]),
        (lambda i, j, m, n, f: ll.minimum(i, 3), ["minsi"]),
        (lambda i, j, m, n, f: ll.maximum(2, j), ["maxsi"]),
        (lambda i, j, m, n, f: ll.minimum(f, 0.5), ["minimumf"]),
        (lambda i, j, m, n, f: ll.maximum(f, 1), ["maximumf"]),
        (lambda i, j, m, n, f: (i < j, i != 3, j <= 2), ["cmpi", "cmpi", "cmpi"]),
        (lambda i, j, m, n, f: f * 2 + 1.5 - f / 3, ["mulf", "addf", "divf", "subf"]),
        (lambda i, j, m, n, f: -f, ["negf"]),
        (lambda i, j, m, n, f: (f == 1, f != 2.0), ["cmpf", "cmpf"]),
        (lambda i, j, m, n, f: i + np.int64(3), ["addi"]),
        (lambda i, j, m, n, f: (ll.ceildiv(7, 2), ll.minimum(3, 4), ll.maximum(1.0, 2.0)), []),
    ],
)
def test_expression_becomes_ops(expression: Callable[..., object], ops: list[str]) -> None:
    # index_cast stands at the entry of the kernel, in front of all.
    assert ops_of(expression) == ops


def test_numbers_of_python_are_computed_by_python() -> None:
    assert (ll.ceildiv(7, 2), ll.ceildiv(-7, 2), ll.minimum(3, 4), ll.maximum(1.0, 2.0)) == (4, -3, 3, 2.0)


def test_constants_are_made_once_at_the_entry() -> None:
    @lowlp.kernel(grid=(1, 1), num_threads=32)
    def kernel(y: ll.pointer("f32")):
        i, j = ll.block_indices()
        view = ll.view_global(y, shape=[64, 64])
        for k in ll.range(4):
            ll.store_global(ll.full(0.0, "f32", layout=ROWS), view, offsets=[i * 16 + k * 4, j * 16])
            ll.store_global(ll.full(-0.0, "f32", layout=ROWS), view, offsets=[i * 16 + k * 4, j * 16])

    assert kernel.mlir.count("arith.constant 16 : index") == 1
    assert kernel.mlir.count("arith.constant 0.000000e+00 : f32") == 1
    assert kernel.mlir.count("arith.constant -0.000000e+00 : f32") == 1


def test_tiles_compute() -> None:
    @lowlp.kernel(grid=(1,), num_threads=32)
    def kernel(x: ll.pointer("f16"), y: ll.pointer("f32"), f: ll.f32):
        x_view, y_view = ll.view_global(x, shape=[16, 8]), ll.view_global(y, shape=[16, 8])
        tile = ll.load_global(x_view, offsets=[0, 0], layout=str(ROWS))
        assert tile.dtype == lowlp.dtype("f16")
        assert tile.layout == ROWS
        assert tile.shape == (16, 8)
        halves = (1 - tile) * 2.0 / (tile + tile)
        singles = f * ll.cast(halves, "f32") - 0.5
        singles += 3 / -singles
        ll.store_global(singles, y_view, offsets=[0, 0])

    text = kernel.mlir
    assert text.count("lowlp.sub") == 2
    assert text.count("lowlp.mul") == 2
    assert text.count("lowlp.div") == 2
    assert text.count("lowlp.add") == 2
    assert text.count("lowlp.neg") == 1
    assert "lowlp.splat %f : f32" in text
    assert "arith.constant 2.000000e+00 : f16" in text


def test_full_takes_infinities() -> None:
    @lowlp.kernel(grid=(1,), num_threads=32)
    def kernel(y: ll.pointer("f32")):
        tile = ll.full(float("-inf"), "bf16", layout=ROWS)
        ll.store_global(ll.cast(tile, "f32"), ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

    assert "0xFF80 : bf16" in kernel.mlir


@pytest.mark.parametrize(
    ("grid", "text"),
    [
        ((4, 5), "() -> (4, 5)"),
        (7, "() -> (7)"),
        (lambda: (2, 3, 4), "() -> (2, 3, 4)"),
    ],
)
def test_grid_of_numbers(grid: object, text: str) -> None:
    kernel = ll.make_kernel(without_parameters, name="kernel", parameters={}, grid=grid, num_threads=64)
    assert text in kernel.mlir


def without_parameters() -> None:
    ll.block_indices()


def with_integers(m, f, n) -> None:  # type: ignore[no-untyped-def]
    ll.block_indices()


@pytest.mark.parametrize(
    ("grid", "text"),
    [
        (lambda m: ll.ceildiv(m, 16), "(d0, d1) -> (d0 ceildiv 16)"),
        (lambda n: (n + 3, 2 * n), "(d0, d1) -> (d1 + 3, d1 * 2)"),
        (lambda n, m: (m - n, (5 - m) % 4), "(d0, d1) -> (d0 - d1, (-d0 + 5) mod 4)"),
        (lambda m, n: ((m + n) // 8 * 3, -m, 1), "(d0, d1) -> (((d0 + d1) floordiv 8) * 3, -d0, 1)"),
    ],
)
def test_grid_of_parameters(grid: object, text: str) -> None:
    parameters = {"m": ll.i32, "f": ll.f32, "n": ll.i64}
    kernel = ll.make_kernel(with_integers, name="kernel", parameters=parameters, grid=grid, num_threads=64)
    assert text in kernel.mlir
