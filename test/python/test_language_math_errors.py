"""What users get wrong with functions, comparisons, reductions and broadcasts of tiles."""

from __future__ import annotations

import pytest
from refused_kernels import COLUMNS, ROWS, refused, zeros

import lowlp
from lowlp import language as ll


def codes() -> ll.Tile:
    return ll.cast(zeros(), "int6")


@pytest.mark.parametrize("name", ["abs", "exp", "exp2", "log2", "sqrt", "rsqrt", "tanh"])
def test_functions_compute_in_floats(name: str) -> None:
    def body(x, b, m, f):
        getattr(ll, name)(codes())  # here

    def number(x, b, m, f):
        getattr(ll, name)(2.0)  # here

    allowed = "f16, bf16, f32, int16 or int32" if name == "abs" else "f16, bf16 or f32"
    refused(body, ll.KernelTypeError, f"{name}: computes in {allowed}, but the tile holds int6; cast it first")
    refused(number, ll.KernelTypeError, "tile: must be a tile, found float 2.0")


def test_extremes_and_comparisons_check_operands() -> None:
    def types(x, b, m, f):
        ll.maximum(zeros(), zeros("f16"))  # here

    def layouts(x, b, m, f):
        _ = zeros() < ll.full(0.0, "f32", layout=COLUMNS)  # here

    def text(x, b, m, f):
        ll.equal(zeros(), "a")  # here

    def no_tile(x, b, m, f):
        ll.not_equal(1.0, 2.0)  # here

    refused(types, ll.KernelTypeError, "maximum: element types must match: f32 and f16; cast one of them")
    refused(layouts, ll.KernelTypeError, f"<: layouts must match: {ROWS} and {COLUMNS}")
    refused(text, ll.KernelTypeError, "==: operands must be tiles or numbers")
    refused(no_tile, ll.KernelTypeError, "!=: must be a tile, found float 2.0")


def test_where_checks_operands() -> None:
    def condition(x, b, m, f):
        ll.where(codes(), zeros(), 1.0)  # here

    def types(x, b, m, f):
        ll.where(zeros() < 1.0, zeros(), zeros("f16"))  # here

    def numbers(x, b, m, f):
        ll.where(zeros() < 1.0, 1.0, 2.0)  # here

    def text(x, b, m, f):
        ll.where(zeros() < 1.0, zeros(), "a")  # here

    def number_for_codes(x, b, m, f):
        ll.where(zeros() < 1.0, codes(), 1.0)  # here

    refused(condition, ll.KernelTypeError, "condition: must be a tile of uint1, found a tile of int6")
    refused(types, ll.KernelTypeError, "where: element types must match: f32 and f16; cast one of them")
    refused(numbers, ll.KernelTypeError, "b: must be a tile, found float 2.0")
    refused(text, ll.KernelTypeError, "b: must be a tile or a number, found str 'a'")
    refused(
        number_for_codes,
        ll.KernelTypeError,
        "b: computes in f16, bf16, f32, int16, int32, uint16 or uint32, but the tile holds int6",
    )


def test_reductions_check_tile_and_dimension() -> None:
    def element(x, b, m, f):
        ll.sum(codes(), 0)  # here

    def beyond(x, b, m, f):
        ll.max(zeros(), 2)  # here

    def traced(x, b, m, f):
        ll.min(zeros(), m)  # here

    refused(
        element,
        ll.KernelTypeError,
        "sum: computes in f16, bf16, f32, int32 or uint32, but the tile holds int6; cast it first",
    )
    refused(beyond, ll.KernelValueError, "dim: must be from -2 to 1, found 2")
    refused(traced, ll.KernelTypeError, "dim: must be an int, found an index scalar")


def test_iota_checks_the_dimension() -> None:
    def beyond(x, b, m, f):
        ll.iota(-3, layout=ROWS)  # here

    def long(x, b, m, f):
        ll.iota(0, layout=lowlp.local(2**20).spatial(32))  # here

    refused(beyond, ll.KernelValueError, "dim: must be from -2 to 1, found -3")
    refused(long, ll.KernelValueError, "dim: f32 holds indices of extents up to 16777216, found 33554432")


def test_broadcast_names_thread_and_element() -> None:
    def body(x, b, m, f):
        row = ll.full(0.0, "f32", layout=lowlp.spatial(1, 32))
        row + ll.full(0.0, "f32", layout=lowlp.spatial(32, 1).local(1, 32))  # here

    def shape(x, b, m, f):
        ll.broadcast_to(zeros(), lowlp.spatial(32, 1))  # here

    refused(body, ll.VerificationError, "thread 0 does not hold element (0, 1) of the source")
    refused(shape, ll.VerificationError, "a tile of shape (16, 8) does not broadcast to (32, 1)")


def test_transpose_names_every_dimension_once() -> None:
    def body(x, b, m, f):
        ll.transpose(zeros(), [0, 0])  # here

    def text(x, b, m, f):
        ll.transpose(zeros(), "ab")  # here

    refused(body, ll.KernelValueError, "dims: dimension 0 is named twice in (0, 0)")
    refused(text, ll.KernelTypeError, "dims: must be ints, found str 'ab'")


def test_rescale_takes_f32() -> None:
    def halves(x, b, m, f):
        ll.rescale(zeros("f16"), zeros("f16"))  # here

    def shapes(x, b, m, f):
        ll.rescale(zeros(), ll.full(1.0, "f32", layout=lowlp.local(3).spatial(32)))  # here

    refused(halves, ll.KernelTypeError, "values: computes in f32, but the tile holds f16; cast it first")
    refused(shapes, ll.VerificationError, "does not broadcast")
