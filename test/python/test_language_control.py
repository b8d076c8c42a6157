"""Promises, output and the early end of blocks, on the CPU target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refused_kernels import refused

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.errors import CpuTargetError

LANES = lowlp.spatial(32)


def launch(body: Any, parameters: dict[str, Any], *arguments: Any, grid: Any = (1,), threads: int = 32) -> None:
    kernel = ll.make_kernel(body, name="kernel", parameters=parameters, grid=grid, num_threads=threads)
    compilation.compile_cpu(kernel)(*arguments)


# --- promises ---------------------------------------------------------------------------------------------------------


def test_promises_are_checked() -> None:
    def body(n):
        ll.assume(n < 100, "n must be small")
        m = ll.assume_range(ll.assume_divisible(n, 8), 0, 64)
        ll.print("n // 5 is", m // 5)

    launch(body, {"n": ll.i32}, 32)
    for wrong, text in (
        (100, r"lowlp\.assume at .*: n must be small"),
        (20, r"lowlp\.assume_divisible at .*: the number is no multiple of 8, as was promised"),
        (64, r"lowlp\.assume at .*: the number must be at least 0 and less than 64"),
        (-8, r"lowlp\.assume at .*: the number must be at least 0 and less than 64"),
    ):
        with pytest.raises(CpuTargetError, match=text):
            launch(body, {"n": ll.i32}, wrong)


def test_numbers_of_32_bits_are_divided_as_such() -> None:
    def quotients(high: int):  # type: ignore[no-untyped-def]
        def body(y, n):
            m = ll.assume_range(n, 0, high)
            parts = (m // 7, m % 7, m // 7 // 5, m // 7 % 5)
            view = ll.view_global(y, shape=[128])
            for index, part in enumerate(parts):
                ll.store_global(ll.full(part, "int32", layout=lowlp.spatial(32)), view, offsets=[32 * index])

        parameters = {"y": ll.pointer("int32"), "n": ll.i64}
        return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32)

    for high in (1 << 31, 1 << 40):
        y = np.zeros((4, 32), np.int32)
        compilation.compile_cpu(quotients(high))(y, 123456789)
        assert y[:, 0].tolist() == [123456789 // 7, 123456789 % 7, 123456789 // 35, 123456789 // 7 % 5]
    narrow, wide = (lowlp.compile(quotients(high), "sm_90a").ptx for high in (1 << 31, 1 << 40))
    assert "mul.wide.u32" in narrow or "mul.hi.u32" in narrow
    assert "mul.hi.u64" not in narrow and "mul.hi.s64" not in narrow
    assert "mul.hi.s64" in wide or "mul.hi.u64" in wide


def test_a_promised_divisor_makes_accesses_wide() -> None:
    layout = lowlp.spatial(32).local(8)

    def thread_program(promises: bool) -> str:
        def body(x, y, n):
            offset = ll.assume_divisible(n, 8) if promises else n
            tile = ll.load_global(ll.view_global(x, shape=[1024]), offsets=[offset], layout=layout)
            ll.store_global(tile, ll.view_global(y, shape=[256]), offsets=[0])

        parameters = {"x": ll.pointer("f16", align=16), "y": ll.pointer("f16", align=16), "n": ll.i32}
        kernel = ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32)
        return lowlp.compile(kernel, "sm_90a").ir("thread")

    assert "-> vector<8xf16>" in thread_program(True)
    assert "-> vector<8xf16>" not in thread_program(False)


# --- output -----------------------------------------------------------------------------------------------------------


def test_print_writes_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    def body(n, f):
        bi, _ = ll.block_indices()
        ll.print("100% of block", bi, "has n =", n, "and f =", f * 2.0, 7, 0.5, n > 3, True)
        ll.print()

    launch(body, {"n": ll.i32, "f": ll.f32}, 5, 0.25, grid=(2, 2), threads=64)
    assert capfd.readouterr().out == "100% of block 0 has n = 5 and f = 0.5 7 0.5 1 True\n\n"


def test_all_blocks_print_where_that_is_asked(capfd: pytest.CaptureFixture[str]) -> None:
    def body(n):
        (bi,) = ll.block_indices()
        ll.print("block", bi * 10000000000, "of", n, all_blocks=True)

    launch(body, {"n": ll.i32}, 3, grid=lambda n: (n,))
    lines = capfd.readouterr().out.splitlines()
    assert sorted(lines) == ["block 0 of 3", "block 10000000000 of 3", "block 20000000000 of 3"]


@pytest.mark.parametrize("dtype", ["f16", "f32", "int32", "uint32", "int4", "uint8", "f4e2m1"])
def test_the_elements_of_a_tile_are_printed(dtype: str, capfd: pytest.CaptureFixture[str]) -> None:
    layout = lowlp.spatial(8, 4).local(1, 2)

    def body():
        rows, columns = (ll.iota(dim, layout=layout, dtype="int32") for dim in (0, 1))
        values = rows - columns if not dtype.startswith("u") else rows + columns
        if dtype == "uint32":
            values = ll.cast(values, "uint32") + (2**32 - 20)
        ll.print_tile("50%", ll.cast(values, dtype))

    launch(body, {})
    wanted = {}
    for row in range(8):
        for column in range(8):
            value: float = row - column if not dtype.startswith("u") else row + column
            if dtype == "uint32":
                value += 2**32 - 20
            elif dtype == "f4e2m1":
                value = float(lowlp.f4e2m1.decode(lowlp.f4e2m1.encode([value]))[0])
            wanted[row, column] = f"50%[{row}, {column}] = {value:g}" if dtype[0] == "f" else None
            wanted[row, column] = wanted[row, column] or f"50%[{row}, {column}] = {int(value)}"
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(wanted.values())


def test_an_element_that_several_threads_hold_is_printed_once(capfd: pytest.CaptureFixture[str]) -> None:
    def body():
        tile = ll.iota(0, layout=lowlp.spatial(4, 8), dtype="int32")
        ll.print_tile("sum", ll.sum(tile, 1))

    launch(body, {}, grid=(2,))
    assert sorted(capfd.readouterr().out.splitlines()) == ["sum[0] = 0", "sum[1] = 8", "sum[2] = 16", "sum[3] = 24"]


# --- the end ----------------------------------------------------------------------------------------------------------


def store_line(y, row, value):
    ll.store_global(
        ll.full(value, "int32", layout=lowlp.spatial(64)), ll.view_global(y, shape=[512]), offsets=[row * 64]
    )


def early(y, n):
    """Ends odd blocks at once, block 4 in a loop, and the others after a barrier."""
    (bi,) = ll.block_indices()
    if bi % 2 > 0:
        ll.exit()
    shared = ll.alloc_shared("int32", [64])
    ll.store_shared(ll.full(bi, "int32", layout=lowlp.spatial(64)), shared, offsets=[0])
    ll.synchronize()
    total = ll.load_scalar(shared, offsets=[63])
    for i in ll.range(n):
        if bi == 4:  # noqa: SIM102
            if i == 3:
                store_line(y, bi, 1000 + i)
                ll.exit()
        total = total + i
        ll.synchronize()
    store_line(y, bi, total)


def test_blocks_end_early() -> None:
    y = np.full((8, 64), -1, np.int32)
    launch(early, {"y": ll.pointer("int32"), "n": ll.i32}, y, 5, grid=(8,), threads=64)
    wanted = [10, -1, 12, -1, 1003, -1, 16, -1]
    np.testing.assert_array_equal(y, np.repeat(np.array(wanted)[:, None], 64, axis=1))


def test_what_follows_an_exit_does_not_run() -> None:
    def body(y):
        store_line(y, 0, 1)
        ll.exit()
        store_line(y, 0, 2)

    y = np.zeros(512, np.int32)
    launch(body, {"y": ll.pointer("int32")}, y, threads=64)
    np.testing.assert_array_equal(y[:64], np.ones(64))


def test_an_exit_from_a_while_loop() -> None:
    def body(y, n):
        i = ll.minimum(n, 0)
        while i < 100:
            i = i + 1
            if i == n:
                store_line(y, 0, i)
                ll.exit()
        store_line(y, 0, -5)

    y = np.zeros(512, np.int32)
    launch(body, {"y": ll.pointer("int32"), "n": ll.i32}, y, 42, threads=64)
    np.testing.assert_array_equal(y[:64], np.full(64, 42))
    launch(body, {"y": ll.pointer("int32"), "n": ll.i32}, y, 101, threads=64)
    np.testing.assert_array_equal(y[:64], np.full(64, -5))


# --- errors -----------------------------------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    def known(x, b, m, f):
        ll.assume(1 > 2, "one is less")  # here

    def condition(x, b, m, f):
        ll.assume(m)  # here

    def message(x, b, m, f):
        ll.assume(m > 0, 5)  # here

    def divisor(x, b, m, f):
        ll.assume_divisible(m, 0)  # here

    def traced_divisor(x, b, m, f):
        ll.assume_divisible(m, m)  # here

    def bounds(x, b, m, f):
        ll.assume_range(m, 5, 5)  # here

    def bound(x, b, m, f):
        ll.assume_range(m, 0, m)  # here

    def braces(x, b, m, f):
        ll.print("{}", m)  # here

    def tile(x, b, m, f):
        ll.print("tile", ll.full(0.0, "f32", layout=LANES))  # here

    def label(x, b, m, f):
        ll.print_tile(3, ll.full(0.0, "f32", layout=LANES))  # here

    refused(known, ll.KernelValueError, "condition: is False: one is less")
    refused(condition, ll.KernelTypeError, "condition: must be a bool or a bool scalar, found an index scalar")
    refused(message, ll.KernelTypeError, "message: must be a str, found int 5")
    refused(divisor, ll.KernelValueError, "divisor: must be positive, and less than 2**63, found 0")
    refused(traced_divisor, ll.KernelTypeError, "divisor: must be an int, found an index scalar")
    refused(bounds, ll.KernelValueError, "low: must be less than high, found 5 and 5")
    refused(bound, ll.KernelTypeError, "low, high: must be ints, found int 0 and an index scalar")
    refused(braces, ll.KernelValueError, "values: text must not hold {}, found '{}'; pass values between texts")
    refused(tile, ll.KernelTypeError, "; use ll.print_tile")
    refused(label, ll.KernelTypeError, "label: must be a str, found int 3")
