"""Divisions of integers on the CPU target that a CPU would end the process at."""

from __future__ import annotations

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import CpuKernel, compile_cpu
from lowlp.errors import CpuTargetError

ROW = lowlp.spatial(32)
LEAST = -(2**63)


def quotients(opt_level: int) -> CpuKernel:
    """Marks y[0] where m // n, m % n and ceildiv(m, n) are what the arguments say."""

    def body(y, m, n, quotient, rest, ceiling):
        if (m // n == quotient) & (m % n == rest) & (ll.ceildiv(m, n) == ceiling):
            ll.store_global(ll.full(1.0, "f32", layout=ROW), ll.view_global(y, shape=[32]), offsets=[0])

    names = ("m", "n", "quotient", "rest", "ceiling")
    parameters = {"y": ll.pointer("f32"), **dict.fromkeys(names, ll.i64)}
    return compile_cpu(
        ll.make_kernel(body, name="divide", parameters=parameters, grid=(1,), num_threads=32), opt_level=opt_level
    )


@pytest.mark.parametrize("opt_level", [0, 2])
def test_divisions_of_numbers_wrap_and_report_zero(opt_level: int) -> None:
    divide = quotients(opt_level)
    for arguments in ((7, -2, -4, -1, -3), (LEAST, -1, LEAST, 0, LEAST), (LEAST, 2, LEAST // 2, 0, LEAST // 2)):
        y = np.zeros(32, np.float32)
        divide(y, *arguments)
        assert y.all()
    with pytest.raises(CpuTargetError, match=r" at .*test_cpu_divisions\.py:\d+:\d+: division by zero; block"):
        divide(np.zeros(32, np.float32), 100, 0, 0, 0, 0)


@pytest.mark.parametrize("rows", [1, 4])
def test_elements_outside_of_the_view_are_not_divided_by_zero(rows: int) -> None:
    layout = lowlp.local(rows, 1).spatial(1, 32)

    def body(x: ll.Pointer, y: ll.Pointer) -> None:
        divisors = ll.load_global(ll.view_global(x, shape=[1, 20]), offsets=[0, 0], layout=lowlp.spatial(1, 32))
        divisors = ll.cast(divisors, "int32") + 0 if rows == 1 else ll.broadcast_to(divisors, layout)
        quotients = ll.full(100, "int32", layout=layout) // divisors
        rests = ll.full(100, "int32", layout=layout) % divisors
        ll.store_global(quotients + rests, ll.view_global(y, shape=[rows, 20]), offsets=[0, 0])

    parameters = {"x": ll.pointer("int32"), "y": ll.pointer("int32")}
    kernel = ll.make_kernel(body, name="divide", parameters=parameters, grid=(1,), num_threads=32)
    x, y = np.arange(1, 21, dtype=np.int32), np.zeros((rows, 20), np.int32)
    kernel(x, y)
    np.testing.assert_array_equal(y, np.tile(100 // x + 100 % x, (rows, 1)))
    x[19] = 0
    with pytest.raises(CpuTargetError, match=r"division by zero.*thread \(19, 0, 0\)"):
        kernel(x, y)


def test_an_exchange_between_threads_hides_no_element_outside() -> None:
    def body(x: ll.Pointer, y: ll.Pointer) -> None:
        divisors = ll.load_global(ll.view_global(x, shape=[6, 8]), offsets=[0, 0], layout=lowlp.spatial(8, 8))
        divisors = ll.convert_layout(divisors, lowlp.column_spatial(8, 8))
        quotients = ll.full(100, "int32", layout=lowlp.column_spatial(8, 8)) // divisors
        ll.store_global(quotients, ll.view_global(y, shape=[6, 8]), offsets=[0, 0])

    parameters = {"x": ll.pointer("int32"), "y": ll.pointer("int32")}
    kernel = ll.make_kernel(body, name="divide", parameters=parameters, grid=(1,), num_threads=64)
    x, y = np.arange(1, 49, dtype=np.int32).reshape(6, 8), np.zeros((6, 8), np.int32)
    kernel(x, y)
    np.testing.assert_array_equal(y, 100 // x)
