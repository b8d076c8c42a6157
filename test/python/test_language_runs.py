"""Kernels of the DSL run on the CPU target and computed by Python: both must agree.

A kernel marks rows of its output: `mark(y, row)` stores a row of ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import language as ll

NUM_ROWS = 64
ROW = lowlp.spatial(1, 32)


def mark(y: ll.Pointer, row: ll.Scalar | int, value: float | ll.Scalar = 1.0) -> None:
    view = ll.view_global(y, shape=[NUM_ROWS, 32])
    ll.store_global(ll.full(value, "f32", layout=ROW), view, offsets=[row, 0])


def run(body: Callable[..., None], m: int, n: int, f: float = 0.0) -> np.ndarray:
    """What a kernel leaves in the first column of its output."""
    parameters = {"y": ll.pointer("f32"), "m": ll.i32, "n": ll.i32, "f": ll.f32}
    kernel = ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32)
    y = np.zeros((NUM_ROWS, 32), np.float32)
    kernel(y, m, n, f)
    assert (y == y[:, :1]).all()
    return y[:, 0]


def marked(body: Callable[..., None], m: int, n: int) -> list[int]:
    return np.flatnonzero(run(body, m, n)).tolist()


@pytest.mark.parametrize("m", [-7, -6, -1, 0, 1, 5, 6])
@pytest.mark.parametrize("n", [-3, -1, 1, 2, 3, 6])
def test_integers_divide_as_in_python(m: int, n: int) -> None:
    def body(y, m, n, f):
        mark(y, m // n + 10)
        mark(y, m % n + 30)
        mark(y, ll.ceildiv(m, n) + 50)

    assert marked(body, m, n) == [m // n + 10, m % n + 30, -(-m // n) + 50]


@pytest.mark.parametrize("m", [-7, -6, -1, 0, 1, 5, 6])
def test_integers_divide_by_numbers(m: int) -> None:
    def body(y, m, n, f):
        mark(y, m // 3 + 10)
        mark(y, m % 3 + 30)
        mark(y, ll.ceildiv(m, 3) + 50)

    assert marked(body, m, 0) == [m // 3 + 10, m % 3 + 30, -(-m // 3) + 50]


def collatz(m: int) -> tuple[int, int]:
    steps = 0
    while m != 1:
        m = m // 2 if m % 2 == 0 else 3 * m + 1
        steps += 1
    return steps, m


@pytest.mark.parametrize("m", [1, 2, 6, 7])
def test_while_runs_as_in_python(m: int) -> None:
    def body(y, m, n, f):
        steps = 0
        while m != 1:
            m = m // 2 if m % 2 == 0 else 3 * m + 1
            steps += 1
        mark(y, steps)
        mark(y, m + 40)

    assert marked(body, m, 0) == [collatz(m)[0], 41]


@pytest.mark.parametrize(("m", "n"), [(0, 5), (3, 0), (4, 5)])
def test_nested_loops_run_as_in_python(m: int, n: int) -> None:
    def body(y, m, n, f):
        a, b, rest = 0, 1, [0, 0]
        for i in ll.range(m):
            for j in ll.range(i, n, 2):
                a, b = b, (a + b + j) % 17
                if a > b and j != 2:
                    rest[0] = rest[0] + 1
                elif i == 1 or not a < 4:
                    rest[1] = rest[1] + a
        mark(y, a)
        mark(y, b + 20)
        mark(y, rest[0] % 10 + 40)
        mark(y, rest[1] % 10 + 50)

    a, b, rest = 0, 1, [0, 0]
    for i in range(m):
        for j in range(i, n, 2):
            a, b = b, (a + b + j) % 17
            if a > b and j != 2:
                rest[0] += 1
            elif i == 1 or not a < 4:
                rest[1] += a
    assert marked(body, m, n) == [a, b + 20, rest[0] % 10 + 40, rest[1] % 10 + 50]


@pytest.mark.parametrize(("m", "n"), [(1, 2), (2, 2), (3, 2)])
def test_branches_run_as_in_python(m: int, n: int) -> None:
    def body(y, m, n, f):
        row = 5
        if m < n:
            row = m
        elif m == n:
            row, m = 9, 12
        mark(y, row)
        mark(y, ll.minimum(m, n) + 20)
        mark(y, ll.maximum(m, n) + 40)
        if 0 <= m < n <= 3 and not m > 2:
            mark(y, 63)

    expected = {1: [1, 21, 42, 63], 2: [9, 22, 52], 3: [5, 22, 43]}
    assert marked(body, m, n) == expected[m]


def test_floats_run_as_in_python() -> None:
    def body(y, m, n, f):
        value = f * 2 - 1 / f
        mark(y, 0, -value)
        mark(y, 1, value + 0.25 if f > 0.5 else 7.0)
        tile = ll.full(f, "f32", layout=ROW) / 4.0
        for _ in ll.range(m):
            tile = 1.0 - tile * f
        ll.store_global(tile, ll.view_global(y, shape=[NUM_ROWS, 32]), offsets=[2, 0])

    assert run(body, 3, 0, 2.0)[:3].tolist() == [-3.5, 3.75, -1.0]  # 0.5, 0, 1, -1


def copy_eight(x: ll.pointer("f16"), y: ll.pointer("f16")) -> None:
    tile = ll.load_global(ll.view_global(x, shape=[32]), offsets=[0], layout=lowlp.spatial(32))
    ll.store_global(tile, ll.view_global(y, shape=[32]), offsets=[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arguments": ()}, r"arguments of copy_eight\(x, y\): expected 2, got 0; missing: x, y"),
        ({"z": 1}, r"arguments of copy_eight\(x, y\): there is no 'z'; the call itself takes stream, seed"),
        ({"y": 1}, r"arguments of copy_eight\(x, y\): 'y' is given both by position and by name"),
        ({"arguments": (None, np.zeros(32, np.float16))}, "got numpy arrays and NoneType"),
        ({"seed": "a"}, "seed: expected an int in .* got 'a'"),
        ({"seed": -1}, "seed: expected an int in .* got -1"),
    ],
)
def test_launch_refuses(changes: dict[str, Any], message: str) -> None:
    kernel = lowlp.kernel(grid=(1,), num_threads=32)(copy_eight)
    x = np.zeros(32, np.float16)
    options = {"arguments": (x, x.copy()), **changes}
    with pytest.raises(lowlp.LowlpError, match=message):
        kernel(*options.pop("arguments"), **options)


def test_an_array_of_numpy_is_no_operand_and_a_scalar_of_numpy_is_a_number() -> None:
    def body(y, m, n, f):
        row = ll.full(3.0, "f32", layout=ROW)
        assert repr(row).startswith("<a tile of f32 ")
        with pytest.raises(ll.KernelTypeError, match="operands must be tiles or numbers, found ndarray"):
            np.ones(3) * row
        with pytest.raises(TypeError, match="does not support ufuncs"):
            np.exp(row)
        ll.store_global(np.float32(2) * row, ll.view_global(y, shape=[NUM_ROWS, 32]), offsets=[0, 0])

    assert run(body, 0, 0)[0] == 6


def test_arguments_by_name() -> None:
    x, y = np.arange(32, dtype=np.float16), np.zeros(32, np.float16)
    lowlp.kernel(grid=(1,), num_threads=32)(copy_eight)(y=y, x=x)
    assert (y == x).all()


def test_names_in_errors_of_declarations() -> None:
    with pytest.raises(lowlp.LowlpError, match=r"^element: there is no type 'f99'"):
        ll.pointer("f99")
    with pytest.raises(lowlp.LowlpError, match=r"^name: must be a str, found 3"):
        lowlp.kernel(grid=(1,), num_threads=32, name=3)(copy_eight)


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.zeros((32, NUM_ROWS), np.float32).T, ValueError, r"y: .* strides \(1, 64\) .* np.ascontiguousarray\(x\)"),
        (np.zeros((NUM_ROWS, 64), np.float32)[:, :32], ValueError, r"y: .* shape \(64, 32\) with strides \(64, 1\)"),
        (np.asfortranarray(np.zeros((NUM_ROWS, 32), np.float32)), ValueError, "y: .* is not laid out so"),
        (np.ma.masked_array(np.zeros((NUM_ROWS, 32), np.float32)), TypeError, r"y: masked arrays .* x.filled\(value\)"),
    ],
    ids=["transposed", "columns", "fortran", "masked"],
)
def test_arrays_lie_as_a_kernel_reads_them(array: Any, error: type[Exception], message: str) -> None:
    def body(y):
        mark(y, 0)

    kernel = ll.make_kernel(body, name="kernel", parameters={"y": ll.pointer("f32")}, grid=(1,), num_threads=32)
    with pytest.raises(error, match=message):
        kernel(array)
    assert not np.asarray(array.base if array.base is not None else array).any()
