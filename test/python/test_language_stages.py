"""`ll.range` with stages, `ll.dot` by slices of K and `ll.fma`: what they do on the CPU target, and refuse."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from refused_kernels import refused

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import compile_cpu

ROW = lowlp.spatial(32).local(2)


def sum_of_rows(stages: int, producer: bool, step: int = 1, *, columns: int = 64) -> ll.Kernel:
    """y = the sum of each `step`-th of m rows of x."""

    def body(x: Any, y: Any, m: Any) -> None:
        x_view = ll.view_global(x, shape=[m, columns])
        acc = ll.full(0.0, "f16", layout=ROW)
        for row in ll.range(0, m, step, stages=stages, producer=producer):
            acc = acc + ll.load_global(x_view, offsets=[row, 0], layout=ROW)
        ll.store_global(acc, ll.view_global(y, shape=[64]), offsets=[0])

    parameters = {"x": ll.pointer("f16", align=16), "y": ll.pointer("f16"), "m": ll.i32}
    return ll.make_kernel(body, name="sum_of_rows", parameters=parameters, grid=(1,), num_threads=32)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("producer", [False, True])
@pytest.mark.parametrize("stages", [2, 3, 9])
def test_loops_of_any_length(stages: int, producer: bool, target: str) -> None:
    """Of no iterations, of fewer than there are stages, and of several rounds; by steps of 1 and of 3."""
    for step in (1, 3):
        kernel = compile_cpu(sum_of_rows(stages, producer, step), target)
        for m in (0, 1, stages - 1, stages, stages + 1, 4 * stages + 1, 30):
            x = np.random.default_rng(m).integers(-9, 9, (max(m, 1), 64)).astype(np.float16)
            y = np.full(64, np.nan, np.float16)
            kernel(x, y, m, seed=m)
            np.testing.assert_array_equal(y, x[:m:step].sum(axis=0) if m else 0)


def test_without_stages_and_unoptimised() -> None:
    x = np.random.default_rng(0).integers(-9, 9, (7, 64)).astype(np.float16)
    for kernel in (compile_cpu(sum_of_rows(0, False)), compile_cpu(sum_of_rows(3, True), opt_level=0)):
        assert "pipelines" not in kernel.description.notes
        y = np.empty(64, np.float16)
        kernel(x, y, 7)
        np.testing.assert_array_equal(y, x.sum(axis=0))


def test_a_loop_behind_one_with_a_producer() -> None:
    """It has mbarriers of its own, which the producer's warp makes too."""

    def body(x: Any, y: Any, m: Any) -> None:
        view = ll.view_global(x, shape=[m, 64])
        acc = ll.full(0.0, "f16", layout=ROW)
        for row in ll.range(m, stages=3, producer=True):
            acc = acc + ll.load_global(view, offsets=[row, 0], layout=ROW)
        for row in ll.range(m, stages=2):
            acc = acc + ll.load_global(view, offsets=[row, 0], layout=ROW)
        ll.store_global(acc, ll.view_global(y, shape=[64]), offsets=[0])

    parameters = {"x": ll.pointer("f16", align=16), "y": ll.pointer("f16"), "m": ll.i32}
    kernel = compile_cpu(ll.make_kernel(body, name="two", parameters=parameters, grid=(1,), num_threads=32), "sm_90a")
    x, y = np.ones((5, 64), np.float16), np.full(64, np.nan, np.float16)
    kernel(x, y, 5)
    np.testing.assert_array_equal(y, 10)


def sums_of_triangle(stages: int, producer: bool, waits: bool) -> ll.Kernel:
    """y[i] = w + the sum of rows i to 2 i of x, for even i: each by a loop of its own, some without iterations."""

    def body(x: Any, w: Any, y: Any, m: Any) -> None:
        x_view, w_view = ll.view_global(x, shape=[2 * m, 64]), ll.view_global(w, shape=[2 * m, 64])
        y_view = ll.view_global(y, shape=[m, 64])
        if waits:
            ll.wait_for_dependencies()
        for i in ll.range(0, m, 2):
            acc = ll.full(0.0, "f16", layout=ROW)
            for k in ll.range(i, stages=stages, producer=producer):
                row = ll.load_global(x_view, offsets=[2 * i - k, 0], layout=ROW)
                acc = acc + row * ll.load_global(w_view, offsets=[k, 0], layout=ROW)
            ll.store_global(acc, y_view, offsets=[i, 0])

    arrays = {name: ll.pointer("f16", align=16, constant=waits and name == "w") for name in ("x", "w", "y")}
    return ll.make_kernel(body, name="sums_of_triangle", parameters={**arrays, "m": ll.i32}, grid=(1,), num_threads=32)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("producer", "waits"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("stages", [2, 5])
def test_a_loop_in_a_loop(stages: int, producer: bool, waits: bool, target: str) -> None:
    """The places of the ring go on from one to the next; what a producer copies does not wait for the end of one."""
    kernel = compile_cpu(sums_of_triangle(stages, producer, waits), target)
    assert "pipelines" in kernel.description.notes
    for m in (0, 1, 3, 14):
        x, w = np.random.default_rng(m).integers(-3, 4, (2, max(2 * m, 1), 64)).astype(np.float16)
        y = np.full((max(m, 1), 64), 99, np.float16)
        kernel(x, w, y, m, seed=m)
        for i in range(m):
            wanted = sum((x[2 * i - k] * w[k] for k in range(i)), np.zeros(64, np.float16))
            np.testing.assert_array_equal(y[i], 99 if i % 2 else wanted)


def test_what_a_loop_around_carries_is_not_for_a_producer() -> None:
    """It would have to compute it too."""

    def body(x: Any, y: Any, m: Any) -> None:
        view, first = ll.view_global(x, shape=[m, 64]), m * 0
        acc = ll.full(0.0, "f16", layout=ROW)
        for _ in ll.range(2):
            for row in ll.range(first, m, stages=2, producer=True):
                acc = acc + ll.load_global(view, offsets=[row, 0], layout=ROW)
            first = first + 1
        ll.store_global(acc, ll.view_global(y, shape=[64]), offsets=[0])

    parameters = {"x": ll.pointer("f16", align=16), "y": ll.pointer("f16"), "m": ll.i32}
    kernel = compile_cpu(
        ll.make_kernel(body, name="carries", parameters=parameters, grid=(1,), num_threads=32), "sm_90a"
    )
    assert "not computed by arithmetic alone" in str(kernel.description.notes["remarks"])
    x, y = np.ones((5, 64), np.float16), np.full(64, np.nan, np.float16)
    kernel(x, y, 5)
    np.testing.assert_array_equal(y, 9)


def test_the_producer_is_a_warp_more() -> None:
    for producer, threads in ((False, 32), (True, 64)):
        kernel = lowlp.compile(sum_of_rows(3, producer), "sm_90a")
        assert f"threads per block          {threads}" in kernel.report()


def test_range_refuses() -> None:
    def none(x, b, m, f):  # type: ignore[no-untyped-def]
        for _ in ll.range(m, stages=1):  # here
            pass

    def many(x, b, m, f):  # type: ignore[no-untyped-def]
        for _ in ll.range(m, stages=10):  # here
            pass

    def text(x, b, m, f):  # type: ignore[no-untyped-def]
        for _ in ll.range(m, stages="3"):  # here
            pass

    def alone(x, b, m, f):  # type: ignore[no-untyped-def]
        for _ in ll.range(m, producer=True):  # here
            pass

    def number(x, b, m, f):  # type: ignore[no-untyped-def]
        for _ in ll.range(m, stages=2, producer=1):  # here
            pass

    refused(none, ll.KernelValueError, "stages: must be 0 or 2 to 9, found 1")
    refused(many, ll.KernelValueError, "stages: must be 0 or 2 to 9, found 10")
    refused(text, ll.KernelTypeError, "stages: must be an int, found str '3'")
    refused(alone, ll.KernelValueError, "producer: needs stages")
    refused(number, ll.KernelTypeError, "producer: must be a bool, found int 1")


# --- slices of K ------------------------------------------------------------------------------------------------------

A = lowlp.column_spatial(1, 2) * lowlp.layout("column_local(2, 2).spatial(8, 4).local(1, 2)")
B = lowlp.spatial(2, 1) * lowlp.layout("local(2, 1).column_spatial(4, 8).local(2, 1)")
ACCUMULATORS = lowlp.layout("local(2, 1).spatial(8, 4).local(1, 2)")


def test_a_product_by_slices() -> None:
    """Two warps, each with its half of K: rows 0 to 15 of accumulators are the first's, rows 16 to 31 the second's."""

    def body(a: Any, b: Any, d: Any) -> None:
        a_tile = ll.load_global(ll.view_global(a, shape=[16, 32]), offsets=[0, 0], layout=A)
        b_tile = ll.load_global(ll.view_global(b, shape=[32, 8]), offsets=[0, 0], layout=B)
        accumulators = ll.dot(
            a_tile, ll.cast(b_tile, "bf16"), ll.full(0.0, "f32", layout=lowlp.spatial(2, 1) * ACCUMULATORS)
        )
        ll.store_global(accumulators, ll.view_global(d, shape=[32, 8]), offsets=[0, 0])

    parameters = {"a": ll.pointer("bf16"), "b": ll.pointer("int8"), "d": ll.pointer("f32")}
    kernel = ll.make_kernel(body, name="slices", parameters=parameters, grid=(1,), num_threads=64)
    rng = np.random.default_rng(2)
    a = rng.integers(-9, 9, (16, 32)).astype(ml_dtypes.bfloat16)
    b = rng.integers(-99, 99, (32, 8)).astype(np.int8)
    d = np.empty((32, 8), np.float32)
    kernel(a, b, d)
    exact, weights = a.astype(np.float32), b.astype(np.float32)
    np.testing.assert_array_equal(d[:16], exact[:, :16] @ weights[:16])
    np.testing.assert_array_equal(d[16:], exact[:, 16:] @ weights[16:])


def test_dot_refuses_slices_that_do_not_divide() -> None:
    a_layout = lowlp.layout("column_local(2, 2).spatial(8, 4).local(1, 2)")
    b_layout = lowlp.layout("local(2, 1).column_spatial(4, 8).local(2, 1)")

    def rows(x, b, m, f):  # type: ignore[no-untyped-def]
        a, w = ll.full(0.0, "f16", layout=a_layout), ll.full(0.0, "f16", layout=b_layout)
        ll.dot(a, w, ll.full(0.0, "f32", layout="local(3, 1).spatial(8, 4).local(1, 2)"))  # here

    def slices(x, b, m, f):  # type: ignore[no-untyped-def]
        a, w = ll.full(0.0, "f16", layout=a_layout), ll.full(0.0, "f16", layout=b_layout)
        ll.dot(a, w, ll.full(0.0, "f32", layout=lowlp.local(3, 1) * ACCUMULATORS))  # here

    refused(rows, ll.KernelValueError, "c must be [16, 8], or a multiple of the rows, found [24, 8]")
    refused(slices, ll.KernelValueError, "c has rows for 3 slices of K, which do not divide K = 16")


# --- the rest ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_fma_rounds_once(kind: str) -> None:
    def body(a: Any, b: Any, c: Any, d: Any) -> None:
        tiles = [ll.load_global(ll.view_global(p, shape=[64]), offsets=[0], layout=ROW) for p in (a, b, c)]
        ll.store_global(ll.fma(*tiles), ll.view_global(d, shape=[64]), offsets=[0])

    numpy_type = np.dtype({"f32": np.float32, "f16": np.float16}[kind])
    parameters = {name: ll.pointer(kind) for name in "abcd"}
    kernel = ll.make_kernel(body, name="fma", parameters=parameters, grid=(1,), num_threads=32)
    a, b = (np.random.default_rng(i).uniform(1, 2, 64).astype(numpy_type) for i in (1, 2))
    # All that is left is what rounding the product would lose.
    c = -(a * b)
    d = np.empty(64, numpy_type)
    kernel(a, b, c, d)
    exact = a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)
    np.testing.assert_array_equal(d, exact.astype(numpy_type))
    assert np.count_nonzero(d) > 32
