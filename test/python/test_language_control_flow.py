"""Traced loops and branches of the DSL, and what stays Python's own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lowlp
from lowlp import language as ll

ROWS = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
TILE = "!tile_16x8xf32"


def trace(body: Callable[..., None]) -> str:
    """The IR of a kernel with an output y, two integers and a float."""
    parameters = {"y": ll.pointer("f32"), "m": ll.i32, "n": ll.i32, "f": ll.f32}
    return ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1, 1), num_threads=32).mlir


def zeros() -> ll.Tile:
    return ll.full(0.0, "f32", layout=ROWS)


def store(y: ll.Pointer, tile: ll.Tile, row: ll.Scalar | int = 0) -> None:
    ll.store_global(tile, ll.view_global(y, shape=[1 << 20, 8]), offsets=[row, 0])


def lines_with(text: str, word: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if word in line]


# --- for --------------------------------------------------------------------------------------------------------------


def test_loop_carries_what_it_assigns() -> None:
    def body(y, m, n, f):
        a, b, count = zeros(), ll.full(1.0, "f32", layout=ROWS), 0
        for _ in ll.range(2, n, 3):
            a, b = b, a + b
            count += 1
        store(y, a - b, count)

    text = trace(body)
    (loop,) = lines_with(text, "scf.for")
    assert "= %c2 to %0 step %c3" in loop
    assert f"-> ({TILE}, {TILE}, index)" in loop
    (step,) = lines_with(text, "scf.yield")
    assert step.startswith("scf.yield %arg2, %")


def test_annotated_variables_are_variables() -> None:
    def body(y, m, n, f):
        acc: ll.Tile = zeros()
        for i in ll.range(n):
            part: ll.Tile
            part = acc + f
            acc: ll.Tile = part + acc
            store(y, part, i)
        store(y, acc)

    assert len(lines_with(trace(body), "iter_args")) == 1


def test_temporary_is_not_carried() -> None:
    def body(y, m, n, f):
        for i in ll.range(n):
            tile = zeros() * f
            store(y, tile, i)

    assert "iter_args" not in trace(body)


def test_nested_loops_carry_through() -> None:
    def body(y, m, n, f):
        acc = zeros()
        for i in ll.range(m):
            part = zeros()
            for j in ll.range(i, n):
                part = part + f
                store(y, part, i * 4 + j)
            acc = acc + part
        store(y, acc)

    text = trace(body)
    outer, inner = lines_with(text, "scf.for")
    assert outer.count(TILE) == inner.count(TILE) == 1
    assert "%arg0 to" in inner


def test_range_of_python_unrolls() -> None:
    def body(y, m, n, f):
        acc = zeros()
        for i in range(3):
            if i == 1:
                continue
            acc = acc + float(i)
        for i, scale in enumerate((2.0, 4.0)):
            acc = acc * scale
        store(y, acc, i)

    text = trace(body)
    assert "scf." not in text
    assert len(lines_with(text, "lowlp.add")) == 2
    assert len(lines_with(text, "lowlp.mul")) == 2


def test_lists_tuples_and_dicts_are_carried_by_value() -> None:
    def body(y, m, n, f):
        tiles = [zeros() for _ in range(2)]
        state = {"sum": zeros(), "at": (0, "name")}
        for k in ll.range(n):
            for i in range(2):
                tiles[i] = tiles[i] + float(i)
            state["sum"] = state["sum"] + tiles[0]
            state = {"sum": state["sum"], "at": (k, "name")}
        store(y, tiles[0] + tiles[1] + state["sum"], state["at"][0])
        assert state["at"][1] == "name"

    (loop,) = lines_with(trace(body), "scf.for")
    assert loop.endswith(f"-> ({TILE}, {TILE}, {TILE}, index) {{")


def test_number_that_the_body_leaves_as_it_was_stays_a_number() -> None:
    def body(y, m, n, f):
        i = 1
        for _ in ll.range(n):
            for i in range(2):
                store(y, zeros(), i)
        assert isinstance(i, int)

    trace(body)


def test_loop_variable_may_be_unpacked_by_python() -> None:
    def body(y, m, n, f):
        for i, (a, b) in [(0, (1, 2)), (1, (3, 4))]:
            store(y, zeros(), i + a + b)

    assert lines_with(trace(body), "arith.constant 8 : index")


def test_same_name_in_two_loops() -> None:
    def body(y, m, n, f):
        for i in ll.range(m):
            t = zeros()
            store(y, t, i)
        for i in ll.range(n):
            t = ll.cast(zeros(), "f16")
            store(y, ll.cast(t, "f32"), i)

    assert len(lines_with(trace(body), "scf.for")) == 2


# --- if ---------------------------------------------------------------------------------------------------------------


def test_branches_merge_what_they_assign() -> None:
    def body(y, m, n, f):
        acc, row = zeros(), 0
        if m > n:
            acc, new = acc + f, 1
        else:
            row, new = 2, m
        store(y, acc, row + new)

    text = trace(body)
    (branch,) = lines_with(text, "scf.if")
    assert branch.endswith(f"-> ({TILE}, index, index) {{")
    assert lines_with(text, "arith.cmpi sgt")


def test_numbers_that_agree_stay_numbers() -> None:
    def body(y, m, n, f):
        if m > n:
            k, value = 3, 1
            store(y, zeros())
        else:
            k, value = 3, 2.5
        assert k == 3
        store(y, zeros() + value)

    (branch,) = lines_with(trace(body), "scf.if")
    assert branch.endswith("-> (f32) {")


def test_branches_change_lists_of_their_own() -> None:
    def body(y, m, n, f):
        tiles = [zeros(), zeros()]
        if m > n:
            tiles[0] = tiles[0] + f
        else:
            tiles[1] = tiles[1] - f
        store(y, tiles[0] * tiles[1])

    text = trace(body)
    (branch,) = lines_with(text, "scf.if")
    assert branch.endswith(f"-> ({TILE}, {TILE}) {{")
    zero, other = (line.split(" = ")[0] for line in lines_with(text, "splat %cst "))
    yields = lines_with(text, "scf.yield")
    assert [line.split(" : ")[0].endswith(f", {other}") for line in yields] == [True, False]
    assert yields[1].startswith(f"scf.yield {zero}, ")


def test_if_without_else_keeps_the_value() -> None:
    def body(y, m, n, f):
        acc = zeros()
        if f < 1.5:
            acc = -acc
        store(y, acc)

    text = trace(body)
    assert lines_with(text, "arith.cmpf olt")
    assert len(lines_with(text, "scf.yield")) == 2


@pytest.mark.parametrize("flag", [True, False])
def test_condition_of_python_chooses(flag: bool) -> None:
    def body(y, m, n, f):
        if flag:
            tile = zeros()
        elif m > n:
            tile = zeros() + 1.0
        else:
            tile = zeros() + 2.0
        store(y, tile)

    assert ("scf.if" in trace(body)) is not flag


def test_branch_of_python_may_return_early() -> None:
    early = True

    def body(y, m, n, f):
        if early:
            return
        store(y, zeros())

    assert "store_global" not in trace(body)


def test_conditions_combine() -> None:
    def body(y, m, n, f):
        if (0 <= m < n or not f > 0.0) and True:
            store(y, zeros())
        flag = m == n and n != 3
        if ~flag | (m >= 2):
            store(y, zeros(), 1 if flag else n)

    text = trace(body)
    assert len(lines_with(text, "arith.andi")) == 3
    assert len(lines_with(text, "arith.ori")) == 2
    assert len(lines_with(text, "scf.if")) == 3


def test_python_values_keep_and_or_not() -> None:
    def body(y, m, n, f):
        empty: list[int] = []
        assert (empty or "x") == "x"
        assert (empty and undefined) == []  # noqa: F821
        assert not empty
        assert ("yes" if not empty else "no") == "yes"

    trace(body)


# --- while ------------------------------------------------------------------------------------------------------------


def test_while_carries_and_tests() -> None:
    def body(y, m, n, f):
        acc, i = zeros(), 1
        while i < n:
            acc, i = acc + f, i * 2
        store(y, acc, i)

    text = trace(body)
    (loop,) = lines_with(text, "scf.while")
    assert f"({TILE}, index) -> ({TILE}, index)" in loop
    assert len(lines_with(text, "arith.cmpi")) == 1
    assert lines_with(text, "scf.condition(%")


def test_while_with_new_constants_keeps_earlier_ops() -> None:
    def body(y, m, n, f):
        acc = zeros() + f
        i = m
        while i * 77 + 55 < 1234:
            i = i + 99
        store(y, acc, i)

    text = trace(body)
    assert len(lines_with(text, "arith.muli")) == 1
    assert len(lines_with(text, "lowlp.add")) == 1


def test_while_of_python_unrolls() -> None:
    def body(y, m, n, f):
        i = 0
        while i < 3:
            store(y, zeros(), i)
            i += 1
        while True:
            i += 1
            if i > 5:
                break

    assert len(lines_with(trace(body), "store_global")) == 3


# --- functions --------------------------------------------------------------------------------------------------------


def accumulate(acc: ll.Tile, times: int) -> ll.Tile:
    for _ in range(times):
        acc = acc + 1.0
    return acc


@ll.inline
def accumulate_traced(acc: ll.Tile, times: ll.Scalar) -> ll.Tile:
    """Adds one `times` times."""
    for _ in ll.range(times):
        acc = acc + 1.0
    return acc


def test_plain_function_is_traced() -> None:
    def body(y, m, n, f):
        store(y, accumulate(zeros(), 3))

    assert len(lines_with(trace(body), "lowlp.add")) == 3


def test_inline_function_has_traced_loops() -> None:
    def body(y, m, n, f):
        store(y, accumulate_traced(zeros(), n))

    assert len(lines_with(trace(body), "scf.for")) == 1
    assert accumulate_traced.__doc__ == "Adds one `times` times."


def test_function_within_a_kernel_has_traced_loops() -> None:
    def body(y, m, n, f):
        def twice(tile):
            for _ in ll.range(m):
                tile = tile + tile
            return tile

        add = lambda tile: tile + f  # noqa: E731
        store(y, add(twice(zeros())))

    assert len(lines_with(trace(body), "scf.for")) == 1
