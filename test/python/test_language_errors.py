"""What users of the DSL get wrong: the class of the error, its text, and its line."""

from __future__ import annotations

from typing import Any

import pytest
from refused_kernels import COLUMNS, FLAT, PARAMETERS, ROWS, refused, zeros

import lowlp
from lowlp import language as ll
from lowlp.errors import CompileError

# --- instructions -----------------------------------------------------------------------------------------------------


def test_view_keeps_the_bits_per_thread() -> None:
    def body(x, b, m, f):
        data = ll.load_global(ll.view_global(b, shape=[96]), offsets=[0], layout=FLAT)
        ll.view(data, dtype="int8", layout=ROWS)  # here

    refused(body, ll.KernelValueError, "a view must keep the bits per thread: source holds 24, result holds 32")


def test_layout_is_for_the_threads_of_the_block() -> None:
    def body(x, b, m, f):
        ll.full(0.0, "f32", layout=lowlp.spatial(8, 8))  # here

    refused(body, ll.KernelValueError, "layout: spatial(8, 8) is for 64 threads, but the block has 32")


def test_one_offset_for_each_dimension() -> None:
    def body(x, b, m, f):
        view = ll.view_global(x, shape=[m, 8, 8])
        ll.load_global(view, offsets=[0, 0], layout=ROWS)  # here

    refused(body, ll.KernelValueError, "offsets: expected one for each of the view's 3 dimensions, found 2")


def test_tile_has_no_more_dimensions_than_the_view() -> None:
    def body(x, b, m, f):
        ll.load_global(ll.view_global(x, shape=[128]), offsets=[0], layout=ROWS)  # here

    refused(body, ll.KernelValueError, "the tile has 2 dimensions, but the view has only 1")


def test_offset_is_an_integer() -> None:
    def body(x, b, m, f):
        view = ll.view_global(x, shape=[16, 8])
        ll.load_global(view, offsets=[0, f], layout=ROWS)  # here

    refused(body, ll.KernelTypeError, "offsets[1]: must be an int or an index scalar, found an f32 scalar")


def test_stored_tile_has_the_type_of_the_view() -> None:
    def body(x, b, m, f):
        view = ll.view_global(x, shape=[16, 8])
        ll.store_global(zeros(), view, offsets=[0, 0])  # here

    refused(body, ll.KernelTypeError, "the tile holds f32, the view f16; use ll.cast")


def test_view_global_checks_shape_and_strides() -> None:
    def negative(x, b, m, f):
        ll.view_global(x, shape=[m, -1])  # here

    def few_strides(x, b, m, f):
        ll.view_global(x, shape=[m, 8], strides=[1])  # here

    def no_pointer(x, b, m, f):
        ll.view_global(m, shape=[8])  # here

    refused(negative, ll.KernelValueError, "shape[1]: must be at least 1, found -1")
    refused(few_strides, ll.KernelValueError, "strides: expected one for each of the 2 dimensions, found 1")
    refused(no_pointer, ll.KernelTypeError, "source: must be a pointer parameter, found an index scalar")


def test_dtype_exists() -> None:
    def body(x, b, m, f):
        ll.cast(zeros(), "int9")  # here

    refused(body, ll.KernelValueError, "dtype: ")


def test_full_checks_type_and_range() -> None:
    def integer(x, b, m, f):
        ll.full(0, "int6", layout=ROWS)  # here

    def large(x, b, m, f):
        ll.full(1e5, "f16", layout=ROWS)  # here

    refused(
        integer, ll.KernelValueError, "dtype: must be one of f16, bf16, f32, int16, int32, uint16, uint32, found int6"
    )
    refused(large, ll.KernelValueError, "value: 100000.0 is beyond the largest f16, 65504.0")


def test_dot_checks_types_and_shapes() -> None:
    def types(x, b, m, f):
        a, w = zeros("f16"), zeros("bf16")
        ll.dot(a, w, zeros())  # here

    def sums(x, b, m, f):
        a = zeros("f16")
        ll.dot(a, a, a)  # here

    def inner(x, b, m, f):
        a = zeros("f16")
        ll.dot(a, a, zeros())  # here

    refused(types, ll.KernelTypeError, "8-bit integers, or f8e4m3 and f8e5m2, found f16 and bf16")
    refused(sums, ll.KernelTypeError, "c must hold f32, found f16")
    refused(inner, ll.KernelValueError, "K must match: a is [16, 8], b is [16, 8]")


# --- operators --------------------------------------------------------------------------------------------------------


def test_tiles_of_one_type() -> None:
    def dtypes(x, b, m, f):
        zeros() + zeros("f16")  # here

    def layouts(x, b, m, f):
        zeros() * ll.full(0.0, "f32", layout=COLUMNS)  # here

    def codes(x, b, m, f):
        tile = ll.load_global(ll.view_global(b, shape=[16, 8]), offsets=[0, 0], layout=ROWS)
        tile * 2.0  # here

    def half_by_single(x, b, m, f):
        zeros("f16") * f  # here

    refused(dtypes, ll.KernelTypeError, "+: element types must match: f32 and f16; cast one of them")
    refused(layouts, ll.KernelTypeError, "*: layouts must match: local(2, 1).spatial(8, 4).local(1, 2) and ")
    allowed = "f16, bf16, f32, int16, int32, uint16 or uint32"
    refused(codes, ll.KernelTypeError, f"*: computes in {allowed}, but the tile holds uint8; cast it first")
    refused(half_by_single, ll.KernelTypeError, "an f32 scalar fills tiles of f32, found an f32 scalar for f16")


def test_scalars_of_one_type() -> None:
    def mixed(x, b, m, f):
        m + f  # here

    def slash(x, b, m, f):
        m / 2  # here

    def zero(x, b, m, f):
        m // 0  # here

    def text(x, b, m, f):
        m + "1"  # here

    refused(mixed, ll.KernelTypeError, "operands of + must have one type, found an index scalar and an f32 scalar")
    refused(slash, ll.KernelTypeError, "/ is for floats; integers are divided by // or ll.ceildiv")
    refused(zero, ll.KernelValueError, "//: division by zero")
    refused(text, ll.KernelTypeError, "found an index scalar and str '1'")


def test_traced_value_is_no_number_of_python() -> None:
    def unrolled(x, b, m, f):
        for _ in range(m):  # here
            pass

    def smaller(x, b, m, f):
        min(m, 3)  # here

    def element(x, b, m, f):
        zeros()[0]  # here

    refused(unrolled, ll.KernelTypeError, "use ll.range for a loop")
    refused(smaller, ll.KernelTypeError, "ll.minimum and ll.maximum for min and max")
    refused(element, ll.KernelTypeError, "tiles are used as a whole")


# --- loops and branches -----------------------------------------------------------------------------------------------


def test_carried_variable_keeps_its_type() -> None:
    def tile(x, b, m, f):
        acc = zeros()
        for _ in ll.range(4):
            acc = ll.cast(acc, "f16")  # here

    def number(x, b, m, f):
        count = 0
        while m > count:
            count = count + 1
            count = f  # here

    def opaque(x, b, m, f):
        rows = ROWS
        for _ in ll.range(m):
            rows = COLUMNS  # here

    def grown(x, b, m, f):
        tiles = [zeros()]
        for _ in ll.range(m):
            tiles = [*tiles, zeros()]  # here

    error = refused(tile, ll.KernelTypeError, "variable `acc` must keep its type in the loop at line ")
    layout = "local(2, 1).spatial(8, 4).local(1, 2)"
    assert f"it is a tile of f32 with layout {layout} before and a tile of f16 with layout {layout} after" in str(error)
    assert f"loop at line {error.line - 1}:" in str(error)
    refused(number, ll.KernelTypeError, "it is int 0 before and an f32 scalar after the body")
    refused(opaque, ll.KernelTypeError, "variable `rows` must keep its type")
    refused(grown, ll.KernelTypeError, "it is a list of 1 before and a list of 2 after the body")


def test_branches_agree_on_types() -> None:
    def types(x, b, m, f):
        if m > 3:
            acc = zeros()
        else:
            acc = zeros("f16")  # here
        return acc

    def expression(x, b, m, f):
        zeros() if m > 3 else 1  # here

    refused(types, ll.KernelTypeError, "variable `acc` must have one type in both branches of the if at line ")
    refused(expression, ll.KernelTypeError, "(the expression)")


def test_variable_has_no_value_after() -> None:
    def after_loop(x, b, m, f):
        for _ in ll.range(m):
            tile = zeros()
        ll.cast(tile, "f16")  # here

    def loop_variable(x, b, m, f):
        for i in ll.range(m):
            pass
        i + 1  # here

    def one_branch(x, b, m, f):
        if m > 3:
            tile = zeros()
        -tile  # here

    def read_first(x, b, m, f):
        for _ in ll.range(m):
            tile = tile + 1.0  # noqa: F821  # here

    refused(after_loop, ll.KernelValueError, "`tile` is assigned only in the loop at line ")
    refused(loop_variable, ll.KernelValueError, "`i` is assigned only in the loop at line ")
    refused(one_branch, ll.KernelValueError, "`tile` is assigned in only one branch of the if at line ")
    refused(read_first, ll.KernelValueError, "`tile` is read before it is assigned in the loop at line ")


def test_value_does_not_leave_its_loop() -> None:
    def body(x, b, m, f):
        tiles = []
        for _ in ll.range(m):
            tiles.append(zeros())
        tiles[0] + 1.0  # here

    refused(body, ll.KernelValueError, "is used after the end of the loop at line ")


@pytest.mark.parametrize("statement", ["break", "continue", "return"])
def test_loop_over_ll_range_is_not_left(statement: str) -> None:
    def with_break(x, b, m, f):
        for _ in ll.range(m):
            zeros()
            break  # here

    def with_continue(x, b, m, f):
        for i in ll.range(m):
            if i > 3:
                continue  # here

    def with_return(x, b, m, f):
        for _ in ll.range(m):
            for _ in range(3):
                return  # here

    body = {"break": with_break, "continue": with_continue, "return": with_return}[statement]
    refused(body, ll.KernelValueError, f"`{statement}` is not allowed in a loop over ll.range")


class Holder:
    """Something with an attribute."""

    tile: Any = None


def test_what_nothing_carries_is_not_assigned() -> None:
    outside = [0]

    def attribute(x, b, m, f):
        holder = Holder()
        for _ in ll.range(m):
            holder.tile = zeros()  # here

    def closure(x, b, m, f):
        if m > 3:
            outside[0] = 1  # here

    def python(x, b, m, f):
        holder = Holder()
        for i in range(3):
            holder.tile = zeros()
            outside[0] = i

    refused(
        attribute, ll.KernelValueError, "assigning `holder.tile`, which is no variable of the kernel, is not allowed"
    )
    refused(closure, ll.KernelValueError, "assigning `outside[0]`, which is no variable of the kernel, is not allowed")
    ll.make_kernel(python, name="kernel", parameters=PARAMETERS, grid=(1,), num_threads=32).module()
    assert outside == [2]


def test_traced_branch_is_not_left() -> None:
    def body(x, b, m, f):
        if m > 3:
            return  # here
        zeros()

    refused(body, ll.KernelValueError, "`return` is not allowed under a condition that is known only when the kernel")


def test_loop_has_no_else() -> None:
    def body(x, b, m, f):
        for _ in ll.range(m):
            zeros()
        else:
            zeros()  # here

    refused(body, ll.KernelValueError, "`else` of a loop is not allowed in a loop over ll.range")


def test_range_is_used_in_for_only() -> None:
    def comprehension(x, b, m, f):
        [i for i in ll.range(m)]  # noqa: C416  # here

    def step(x, b, m, f):
        for _ in ll.range(0, m, -1):  # here
            pass

    refused(comprehension, ll.KernelTypeError, "ll.range is traced only as `for ... in ll.range(...)`")
    refused(step, ll.KernelValueError, "step: must be positive, found -1")


def test_condition_is_a_comparison() -> None:
    def body(x, b, m, f):
        if m:  # here
            zeros()

    refused(body, ll.KernelTypeError, "a condition must be a comparison or a bool, found an index scalar")


def test_kernel_changes_no_globals() -> None:
    def body(x, b, m, f):
        global ROWS  # here
        ROWS = None

    refused(body, ll.KernelValueError, "`global` is not allowed in a kernel")


# --- the verifier -----------------------------------------------------------------------------------------------------


def test_verifier_names_the_line() -> None:
    def body(x, b, m, f):
        view = ll.view_global(x, shape=[16, 8])
        tile = ll.load_global(view, offsets=[0, 0], layout=ROWS)
        (copy,) = [tile]
        copy.layout = COLUMNS
        ll.cast(copy, "f32")  # here

    error = refused(body, ll.VerificationError, "'lowlp.cast' op layouts must match: source has 'local(2, 1).spatial")
    assert isinstance(error, CompileError)
    assert error.diagnostics[0].startswith(f"{__file__}:{error.line}: 'lowlp.cast' op")


# --- kernels in kernels -----------------------------------------------------------------------------------------------


def nothing(x: Any) -> None:
    """A kernel's body."""


def test_kernel_is_not_called_in_a_kernel() -> None:
    inner = ll.make_kernel(nothing, name="inner", parameters={"x": ll.i32}, grid=(1,), num_threads=32)

    def body(x, b, m, f):
        inner(m)  # here

    refused(body, ll.KernelTypeError, "kernel `inner` cannot be called in a kernel")


def test_value_of_another_kernel_is_refused() -> None:
    kept = []

    def first(x, b, m, f):
        kept.append(zeros())

    def second(x, b, m, f):
        kept[0] + 1.0  # here

    ll.make_kernel(first, name="first", parameters=PARAMETERS, grid=(1,), num_threads=32).module()
    refused(second, ll.KernelValueError, "of kernel `first` is used in kernel `kernel`")
