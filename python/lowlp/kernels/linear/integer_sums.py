"""Sums of products of integers, and what they become.

Weights u are bytes without sign that count up from 0; a code is the number a u + c, less a zero point z; and an element
of x the number a' q + c', with c' = -z' of a row (`activations`). A sum of int32 of products u q becomes

    sum of numbers = a' (a * sum + (c - z) * (sum of q)) + c' * (sum of the numbers of the weights)

exactly, and then f32, times the scale of the weights, and times that of x: each is rounded once, in this order. Where
groups have scales, f32 adds what groups come to, in order; but integer scales of groups go on sums in int32, and so do
zero points of groups with 's32' (`LinearSpec.adds_integers`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp.numeric.dtypes import DType

from .activations import Meaning, meaning_of, needs_parts
from .spec import SUMS, LinearSpec

if TYPE_CHECKING:
    from .parts import Arguments

BEGINS_ANEW_K: Final = 128
"""Weights along K after which a sum of 8-bit floats is added to one in f32."""
_FEW_ROWS: Final = 16
_ONES = {"uint8": 0x01010101, "int8": 0x01010101, "f8e4m3": 0x38383838}


def meaning(spec: LinearSpec) -> Meaning:
    """Of the stored codes of the weights, or of signed ones."""
    if spec.takes_signs:
        return Meaning(1, 0)
    code = spec.codec.code
    assert isinstance(code, DType)
    return meaning_of(code)


def has_offset(spec: LinearSpec) -> bool:
    """Whether what warpgroups multiply in bytes is not the number that a code means, up to a factor: bytes of f8e4m3
    hold the signs of signed integers, which are decoded for that."""
    if spec.is_of_integers:
        return meaning(spec) != Meaning(1, 0)
    code = spec.codec.code
    if not isinstance(code, DType) or code.is_float:
        return False
    found = meaning_of(code)
    return found.factor != 1 or found.offset not in (0, -(1 << (spec.bits - 1)))


def sum_type(spec: LinearSpec) -> str:
    """Of the accumulators of products."""
    return "int32" if spec.is_of_integers else "f32"


def total_type(spec: LinearSpec) -> str:
    """Of the accumulators of a tile."""
    return "int32" if spec.adds_integers else "f32"


def is_one_sum(spec: LinearSpec) -> bool:
    """Whether all products of a row add up in int32, with nothing done to those of a group."""
    return spec.adds_integers and not sums_by_group(spec)


def begins_anew(spec: LinearSpec) -> bool:
    """Whether sums of bytes begin anew with each group of weights, or of 8-bit floats every `BEGINS_ANEW_K`."""
    return spec.is_of_bytes and not is_one_sum(spec)


def sums_by_group(spec: LinearSpec) -> bool:
    """Whether sums of groups are multiplied or corrected in int32."""
    return spec.adds_integers and spec.groups > 1 and (spec.has_integer_scales or bool(spec.zeros))


def adds_in_parts(spec: LinearSpec) -> bool:
    """Whether one sum of a row begins anew at times, so that it stays within int32."""
    return is_one_sum(spec) and needs_parts(spec.activation, spec.bits, spec.k)


def takes_sums_of_rows(spec: LinearSpec) -> bool:
    """Whether kernels take the sums of the codes of each row of x."""
    return is_one_sum(spec) and bool(meaning(spec).offset or spec.zeros)


def takes_sums_of_weights(spec: LinearSpec) -> bool:
    """Whether kernels take the sums of the numbers of each row of weights: where x has zero points."""
    return spec.x_zeros or spec.x_bipolar > 0


def for_many_rows(spec: LinearSpec, rows: int, has_warpgroups: bool) -> LinearSpec:
    """The spec for at least so many rows of x: products by `wgmma` add groups in f32, though their scales are integers,
    since no program of warpgroups multiplies sums of int32."""
    if not spec.has_integer_scales or rows <= _FEW_ROWS or not has_warpgroups:
        return spec
    return replace(spec, integer_sums=False)


def ones(spec: LinearSpec, held: Layout) -> ll.Tile:
    """Weights that are all 1."""
    if spec.operand_type not in _ONES:
        return ll.full(1.0, spec.operand_type, layout=held)
    words = ll.full(_ONES[spec.operand_type], "uint32", layout=local(held.num_local // 4) * spatial(held.num_threads))
    return ll.view(words, dtype=spec.operand_type, layout=held)


def numbers_of_group(spec: LinearSpec, raw: ll.Tile, sum_x: ll.Tile, zeros: ll.Tile | None) -> ll.Tile:
    """The sums of numbers of a group, int32.

    zeros  integer zero points of its rows, of any type; None: none, or some that are taken off later
    """
    factor, offset = meaning(spec)
    number = raw if factor == 1 else raw * factor
    if zeros is not None:
        return number + (offset - ll.cast(zeros, "int32")) * sum_x
    return number if offset == 0 else number + sum_x * offset


def with_integer_group(
    spec: LinearSpec, acc: ll.Tile, raw: ll.Tile, sum_x: ll.Tile, scale: ll.Tile, zeros: ll.Tile | None
) -> ll.Tile:
    """The accumulators of int32 with what a group adds to them; scale and zero points are integers in f32."""
    number = numbers_of_group(spec, raw, sum_x, zeros)
    return acc + (number * ll.cast(scale, "int32") if spec.has_integer_scales else number)


def numbers_of_rows(
    spec: LinearSpec,
    acc: ll.Tile,
    operands: Arguments,
    zeros: ll.Tile | None,
    row: ll.Scalar,
    of_columns: Callable[[str], ll.Tile],
) -> ll.Tile:
    """What accumulators of whole rows are the sums of, before scales of x and second scales of weights.

    acc    int32, or f32 where `adds_integers` does not hold: then scales are on them
    zeros  zero points of the rows, which are integers, where they are one sum
    row    of the weights and their scales, at which the tile begins
    of_columns  numbers of the columns, by the name of the operand
    """
    rows = acc.layout.reduce([1], keep_dims=True)
    if is_one_sum(spec):
        sum_x = of_columns("x_sums") if takes_sums_of_rows(spec) else acc
        acc = numbers_of_group(spec, acc, sum_x, zeros)
    if not takes_sums_of_weights(spec):
        return acc
    sums_view = ll.view_global(operands.weight_sums, shape=[spec.rows_of_weights, 1])
    of_weights = ll.load_global(sums_view, offsets=[row, 0], layout=rows)
    if spec.x_bipolar:
        return acc * 2 - of_weights * ((1 << spec.x_bipolar) - 1)
    x_zeros = of_columns("x_zeros")
    return acc - (x_zeros if spec.adds_integers else ll.cast(x_zeros, "f32")) * of_weights


def names_of_columns(spec: LinearSpec) -> list[str]:
    """The operands with a number for each row of x that the end of a tile takes."""
    names = ["x_scales"] if spec.x_scale == "token" and not has_sums_alone(spec) else []
    if not spec.is_of_integers:
        return names
    names += ["x_sums"] if is_one_sum(spec) and takes_sums_of_rows(spec) else []
    return names + (["x_zeros"] if takes_sums_of_weights(spec) and not spec.x_bipolar else [])


def number_of_columns(spec: LinearSpec, operands: Arguments, name: str, column: ll.Scalar, held: Layout) -> ll.Tile:
    """A number for each column of y^T from `column` on, [1, columns], held as `held`; of scales of all of x the one."""
    strides = [0, 0] if name == "x_scales" and spec.x_scale == "tensor" else [0, 1]
    view = ll.view_global(getattr(operands, name), shape=[1, operands.m], strides=strides)
    return ll.load_global(view, offsets=[0, column], layout=held)


def has_sums_alone(spec: LinearSpec) -> bool:
    """Whether results are the sums themselves."""
    return spec.out == SUMS
