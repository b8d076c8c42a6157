"""What the kernels for `linear` have in common: fragments, decoding, scaling, finishing accumulators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from lowlp import language as ll
from lowlp.kernels.epilogues import applied
from lowlp.layouts.register_layout import Layout, layout, local, spatial
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.group_codes import PACKED_CODE_TYPES
from lowlp.weights.packing import UNIT_K as UNIT_K

from .integer_sums import (
    has_sums_alone,
    meaning,
    number_of_columns,
    numbers_of_group,
    numbers_of_rows,
    sums_by_group,
    with_integer_group,
)
from .operand_list import parameters_of
from .scaled_weights import E4M3_UNSCALE as E4M3_UNSCALE
from .scaled_weights import fit_of, prescale_of_codes
from .schedule import Schedule
from .segments import STEP_K as STEP_K
from .spec import LinearSpec
from .two_levels import number_of_fields, rounds_once, stored_groups, stored_taken

# The fragments of mma.sync m16n8k16, and of bytes m16n8k32 (PTX ISA, "Matrix Fragments for mma.m16n8k16", "m16n8k32"),
# by the bytes of an element.
_A_FRAGMENTS: Final = {size: layout(f"column_local(2, 2).spatial(8, 4).local(1, {4 // size})") for size in (1, 2)}
_X_FRAGMENTS: Final = {size: layout(f"local(1, 2).spatial(8, 4).local(1, {4 // size})") for size in (1, 2)}
A_FRAGMENT, X_FRAGMENT = _A_FRAGMENTS[2], _X_FRAGMENTS[2]
ACCUMULATOR_FRAGMENT = layout("local(2, 1).spatial(8, 4).local(1, 2)")


def a_fragment(spec: LinearSpec) -> Layout:
    """How a warp holds the weights of a product."""
    return _A_FRAGMENTS[spec.x_bytes]


def x_fragment(spec: LinearSpec) -> Layout:
    """How a warp holds the rows of x of a product."""
    return _X_FRAGMENTS[spec.x_bytes]


def _codes(spec: LinearSpec) -> Codec:
    """What the packed words are seen as: bytes without sign are of stored codes, whatever numbers these are."""
    is_stored = spec.is_of_integers and not spec.takes_signs
    return Codec.codes_alone(dtype(f"uint{spec.bits}")) if is_stored else spec.codec


def packed_view(spec: LinearSpec, weights: ll.Pointer) -> Any:
    """The packed weights: the rows of each product after those of the one before."""
    return ll.view_packed(
        weights,
        shape=[max(1, spec.experts) * spec.packed_rows, spec.k],
        codec=_codes(spec),
        family=spec.placed_for,
        unit_k=spec.unit_k,
    )


def view_of_result(spec: LinearSpec, array: ll.Pointer, m: ll.Scalar, stride: ll.Scalar | int) -> Any:
    """y^T, or the residual as that: rows of y, which are `stride` elements apart, are columns."""
    return ll.view_global(array, shape=[spec.columns_of_y, m], strides=[1, stride])


@dataclass(frozen=True)
class Arguments:
    """What a kernel gets as it is traced, by the names of its operands (`operand_list`); None for what it lacks."""

    x: Any
    weights: Any
    scales: Any
    y: Any
    m: Any
    x_stride: Any
    correctors: Any = None
    table: Any = None
    table_unscale: Any = None
    codebooks: Any = None
    codebooks_unscale: Any = None
    book_scales: Any = None
    scale2: Any = None
    super_scales: Any = None
    super_offsets: Any = None
    permutation: Any = None
    fit: Any = None
    unfit: Any = None
    bias: Any = None
    residual: Any = None
    residual_stride: Any = None
    blocks: Any = None
    x_scales: Any = None
    x_sums: Any = None
    x_zeros: Any = None
    weight_sums: Any = None
    row_offsets: Any = None


def make_linear(
    spec: LinearSpec,
    schedule: Schedule,
    trace: Callable[[Arguments], None],
    grid: Callable[..., object],
    num_threads: int,
    **hints: Any,
) -> ll.Kernel:
    """The kernel whose program `trace` writes.

    grid   as `ll.make_kernel` takes it
    hints  fields of its `ll.KernelSchedule`, beside those of lookups
    """

    def body(**operands: Any) -> None:
        trace(Arguments(**operands))

    return ll.make_kernel(
        body,
        name=f"linear_{re.sub(r'[^0-9A-Za-z]', '_', spec.weight)}_{spec.activation}",
        parameters=parameters_of(spec, schedule),
        grid=grid,
        num_threads=num_threads,
        schedule=ll.KernelSchedule(table_form=schedule.table_form, table_copies=schedule.table_copies, **hints),
    )


class Views(NamedTuple):
    """How kernels with stages see their operands.

    x                   [units of K, M, weights of a unit], or [M, K]; x and y are None where nothing is multiplied
    weights             packed
    scales, correctors  [groups, N], or [groups / n, n, N], or [., bytes that fields fill, N]; the scales in place of
                        correctors that are not there
    super_scales, super_offsets  [super-groups, N]; None where they are not there
    y                   y^T
    """

    x: Any
    weights: Any
    scales: Any
    correctors: Any
    y: Any
    super_scales: Any = None
    super_offsets: Any = None


def streamed_views(
    spec: LinearSpec, operands: Arguments, groups_at_once: int = 0, by_bytes: bool = False, x_units: int = 1
) -> Views:
    """The views of a kernel with stages.

    groups_at_once, by_bytes  as for `views_of_weights`
    x_units                   units of x that are one of its view; 0: all, and x is [M, K]
    """
    x_unit = spec.unit_k * x_units
    x_shape, x_strides = [operands.m, spec.k], [operands.x_stride, 1]
    if x_units:
        x_shape, x_strides = [spec.k // x_unit, operands.m, x_unit], [x_unit, operands.x_stride, 1]
    x_view = ll.view_global(operands.x, shape=x_shape, strides=x_strides)
    y_view = view_of_result(spec, operands.y, operands.m, spec.columns_of_y)
    return views_of_weights(spec, operands, groups_at_once, by_bytes)._replace(x=x_view, y=y_view)


def views_of_weights(spec: LinearSpec, operands: Arguments, groups_at_once: int = 0, by_bytes: bool = False) -> Views:
    """The views of a kernel with stages, without x and y.

    groups_at_once  so many groups each are a dimension of their own of scales and correctors; 0: none
    by_bytes        bytes that are filled by fields of groups are, of packed scales and correctors
    """

    def per_group(array: ll.Pointer, kind: str) -> Any:
        rows = spec.rows_of_weights
        shape = [stored_groups(spec, kind), rows]
        if by_bytes and kind in PACKED_CODE_TYPES:
            in_bytes = stored_taken(kind, 1)
            shape = [stored_groups(spec, kind) // in_bytes, in_bytes, rows]
        if groups_at_once:
            shape = [spec.groups // groups_at_once, stored_groups(spec, kind, groups_at_once), rows]
        return ll.view_global(array, shape=shape)

    w_view = packed_view(spec, operands.weights)
    s_view = per_group(operands.scales, spec.scale)
    c_view = per_group(operands.correctors, spec.corrector) if spec.corrector else s_view
    return Views(None, w_view, s_view, c_view, None, *super_views(spec, operands))


def super_views(spec: LinearSpec, operands: Arguments) -> tuple[Any, Any]:
    """Super-scales and super-offsets as [super-groups, N]; None for what is not there."""
    given = (operands.super_scales, operands.super_offsets)
    scales, offsets = (
        None if array is None else ll.view_global(array, shape=[spec.supers, spec.rows_of_weights]) for array in given
    )
    return scales, offsets


def scale_and_zero(
    spec: LinearSpec, scale: ll.Tile, zero: ll.Tile | None, fit: ll.Scalar | None
) -> tuple[ll.Tile, ll.Tile | None]:
    """What is subtracted from decoded weights, if anything is, and what they are then multiplied by, in the activation
    type.

    scale  in that type, a column
    zero   zero points as they are stored, beside it; None without
    fit    the power of two by which the type holds the weights (`fit_of`); None without one
    """
    if fit is not None and not spec.table:
        factor = ll.full(fit * 2.0 if spec.is_bipolar else fit, "f32", layout=scale.layout)
        scale = scale * ll.cast(factor, spec.activation)
    elif spec.is_bipolar:
        scale = scale * 2.0
    if zero is not None:
        return scale, ll.cast(zero, spec.activation)
    if spec.is_bipolar:
        return scale, ll.full(((1 << spec.bits) - 1) / 2, spec.activation, layout=scale.layout)
    return scale, None


def needs_sum_of_x(spec: LinearSpec) -> bool:
    """Whether what the accumulators hold is put right with the sums of x of a group."""
    if spec.is_of_integers:
        is_by_group = not spec.adds_integers or sums_by_group(spec)
        return is_by_group and bool(spec.corrector or meaning(spec).offset)
    return bool(spec.corrector) or spec.is_bipolar


def can_leave_parts(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether accumulators of shared tiles are in the range of results, where f16 is to hold them."""
    if schedule.parts_type == "f32" or spec.is_of_bytes:
        return schedule.parts_type == "f32"
    is_plain = not spec.table and not spec.scale2 and spec.scale != "e4m3" and prescale_of_codes(spec) == 1.0
    # Factors that are taken off at the end leave them in another range.
    return spec.out == "f16" and is_plain and fit_of(spec, schedule) is None


def added(
    spec: LinearSpec,
    acc: ll.Tile,
    raw: ll.Tile,
    sum_x: ll.Tile,
    scale: ll.Tile,
    corrector: ll.Tile | None,
    table_unscale: ll.Scalar | None,
    factor: float | None = None,
) -> ll.Tile:
    """The result `acc` with what a group adds to it: its raw products, its sums of x, and its scales and correctors as
    f32. For one weight it rounds as `dequantize` does.

    factor  that is taken off the codes, in place of `prescale_of_codes`; the result has what is left
    """
    if spec.adds_integers:
        return with_integer_group(spec, acc, raw, sum_x, scale, corrector)
    if spec.is_of_integers:
        zeros = corrector if spec.zeros in ("int8", "uint8", "int16") else None
        raw = ll.cast(numbers_of_group(spec, raw, sum_x, zeros), "f32")
        corrector = None if zeros is not None else corrector
        sum_x = ll.cast(sum_x, "f32") if corrector is not None else sum_x
    factor = prescale_of_codes(spec) if factor is None else factor
    if spec.table:
        raw = raw * table_unscale
    elif factor != 1.0:
        raw = raw * (1.0 / factor)
    if spec.is_bipolar and not spec.is_of_integers:
        raw = raw * 2.0 - sum_x * float((1 << spec.bits) - 1)
    if corrector is not None and rounds_once(spec):
        if spec.zeros:
            return ll.fma(scale, ll.fma(corrector * -1.0, sum_x, raw), acc)
        return ll.fma(scale, raw, ll.fma(corrector, sum_x, acc))
    if corrector is not None and spec.offsets:
        return acc + (scale * raw + corrector * sum_x)
    if corrector is not None:
        raw = raw - corrector * sum_x
    return ll.fma(scale, raw, acc)


Asked = Mapping[str, ll.Tile]
"""What `finished` takes of operands and was loaded before, by their names."""


def names_of_rows(spec: LinearSpec) -> list[str]:
    """The operands with a number for each row of the weights that `finished` takes."""
    names = ["scales"] if _scales_sums(spec) else []
    names += ["scale2"] if spec.row_scale2 else []
    return names + (["bias"] if spec.bias and not has_sums_alone(spec) else [])


def numbers_of(
    spec: LinearSpec, operands: Arguments, names: Sequence[str], row: ll.Scalar, rows: Layout
) -> dict[str, ll.Tile]:
    """The numbers of rows of the weights, from a row on, of these operands by name."""
    views = {name: ll.view_global(getattr(operands, name), shape=[spec.rows_of_weights, 1]) for name in names}
    return {name: ll.load_global(view, offsets=[row, 0], layout=rows) for name, view in views.items()}


def finished(
    spec: LinearSpec,
    accumulators: tuple[ll.Tile, ...],
    operands: Arguments,
    residual: Any,
    row: ll.Scalar,
    column: ll.Scalar,
    loaded: Layout | None = None,
    first_of_expert: ll.Scalar | None = None,
    asked_of_rows: Sequence[Asked] | None = None,
    asked_of_columns: Asked | None = None,
) -> ll.Tile:
    """A tile of y^T from `row` and `column` on as it is stored: the accumulators of its products, with the second
    scale, the bias, the epilogue and the residual, rounded.

    residual  `view_of_result`, or None
    loaded    how threads hold the residual when they load it, of a view [M, columns of y]; None: as the accumulators
    first_of_expert  the row of all weights at which those of the tile's expert begin; None without experts
    asked_of_rows, asked_of_columns  of each product, and of x, what was loaded before, with columns as threads hold
              them then; None: it is loaded here
    """
    layout_of_accumulators = accumulators[0].layout
    columns = layout_of_accumulators.reduce([0], keep_dims=True)

    def of_columns(name: str) -> ll.Tile:
        if asked_of_columns and name in asked_of_columns:
            return ll.convert_layout(asked_of_columns[name], columns)
        return number_of_columns(spec, operands, name, column, columns)

    if has_sums_alone(spec):
        first = row if first_of_expert is None else row + first_of_expert
        return _scaled_numbers(spec, accumulators[0], operands, first, of_columns)
    values = []
    for product, (first_row, acc) in enumerate(zip(spec.first_rows, accumulators, strict=True)):
        rows = layout_of_accumulators.reduce([1], keep_dims=True)
        row_of_weights = row + first_row if first_of_expert is None else row + first_row + first_of_expert
        if asked_of_rows is not None:
            of_rows = asked_of_rows[product]
        else:
            of_rows = numbers_of(spec, operands, names_of_rows(spec), row_of_weights, rows)
        if spec.is_of_integers:
            acc = _scaled_numbers(spec, acc, operands, row_of_weights, of_columns, of_rows.get("scales"))
        if spec.row_scale2:
            acc = acc * of_rows["scale2"]
        elif spec.scale2:
            acc = acc * operands.scale2
        if spec.x_scale:
            acc = acc * of_columns("x_scales")
        if operands.bias is not None:
            acc = acc + as_f32(of_rows["bias"], spec.bias)
        values.append(acc)
    result = applied(spec.epilogue, tuple(values))
    if residual is not None:
        if loaded is None:
            added_tile = ll.load_global(residual, offsets=[row, column], layout=layout_of_accumulators)
        else:
            rows_of_y = ll.load_global(residual, offsets=[column, row], layout=loaded.permute([1, 0]))
            added_tile = ll.convert_layout(ll.transpose(rows_of_y), layout_of_accumulators)
        result = result + ll.cast(added_tile, "f32")
    return ll.cast(result, spec.out)


def _scales_sums(spec: LinearSpec) -> bool:
    """Whether sums of rows of integers are multiplied by a scale of each row, in one level."""
    return spec.is_of_integers and spec.adds_integers and not has_sums_alone(spec) and not spec.super_scale


def _scaled_numbers(
    spec: LinearSpec,
    acc: ll.Tile,
    operands: Arguments,
    row: ll.Scalar,
    of_columns: Callable[[str], ll.Tile],
    scales: ll.Tile | None = None,
) -> ll.Tile:
    """Sums of numbers of rows of integers, times the scales of rows of weights; without them where results are sums.

    row         of the weights, at which the tile begins
    of_columns  numbers of rows of x, by the name of the operand
    scales      where `_scales_sums`
    """
    rows = acc.layout.reduce([1], keep_dims=True)

    def stored(array: ll.Pointer) -> ll.Tile:
        view = ll.view_global(array, shape=[spec.rows_of_weights, 1])
        return ll.load_global(view, offsets=[row, 0], layout=rows)

    def of_rows(array: ll.Pointer, kind: str) -> ll.Tile:
        if kind in PACKED_CODE_TYPES:
            return number_of_fields(kind, 0, lambda byte: stored(array))
        return as_f32(stored(array), kind)

    has_zeros = spec.adds_integers and spec.zeros and not sums_by_group(spec)
    zeros = of_rows(operands.correctors, spec.zeros) if has_zeros else None
    numbers = numbers_of_rows(
        spec, acc, operands, zeros, row, lambda name: ll.broadcast_to(of_columns(name), acc.layout)
    )
    if not spec.adds_integers or has_sums_alone(spec):
        return numbers
    numbers = ll.cast(numbers, "f32")
    if spec.super_scale and not spec.has_integer_scales:
        return numbers * (of_rows(operands.scales, spec.scale) * of_rows(operands.super_scales, spec.super_scale))
    if spec.super_scale:
        return numbers * of_rows(operands.super_scales, spec.super_scale)
    assert scales is not None, "sums are scaled"
    return numbers * as_f32(scales, spec.scale)


def as_f32(tile: ll.Tile, kind: str, factor: ll.Scalar | None = None) -> ll.Tile:
    """Scales, zero points and the like as f32, which holds all of them exactly; times `factor`, a power of two."""
    if kind == "e4m3":
        return ll.cast(as_small_f16(tile), "f32") * (E4M3_UNSCALE if factor is None else factor * E4M3_UNSCALE)
    if kind != "e8m0":
        result = ll.cast(tile, "f32")
    else:
        # 2^(e - 127) has e where f32 has its exponent; 2^-127 is half of the least normal number.
        bits = ll.maximum(ll.cast(tile, "uint32") << 23, 1 << 22)
        result = ll.view(bits, dtype="f32", layout=bits.layout)
    return result if factor is None else result * factor


def power_in_f16(tile: ll.Tile, factor: ll.Scalar) -> ll.Tile:
    """Scales of e8m0 times `factor`, a power of two, rounded to f16; 2^-127, which f32 has no exponent for, is 0."""
    bits = ll.cast(tile, "uint32") << 23
    return ll.cast(ll.view(bits, dtype="f32", layout=bits.layout) * factor, "f16")


def as_activation(tile: ll.Tile, kind: str, activation: str) -> ll.Tile:
    """Scales in the activation type, which holds all of them; those of e4m3 divided by `E4M3_UNSCALE`."""
    if kind == "e4m3":
        return ll.cast(as_small_f16(tile), activation)
    if kind != "e8m0":
        return ll.cast(tile, activation)
    # As for f32.
    bits = ll.cast(ll.maximum(ll.cast(tile, "uint32") << 7, 1 << 6), "uint16")
    return ll.view(bits, dtype=activation, layout=bits.layout)


def as_small_f16(tile: ll.Tile) -> ll.Tile:
    """Numbers of e4m3, none of them NaN, divided by `E4M3_UNSCALE`.

    By a shift and a mask, where a conversion takes the time of many instructions: exponent and mantissa follow the sign
    in both types, and f16 has one bit between, which the sign's extension has set and the mask clears.
    """
    code = ll.cast(ll.view(tile, dtype="int8", layout=tile.layout), "int32")
    bits = ll.cast(ll.view(code << 7, dtype="uint32", layout=code.layout) & 0xBFFF, "uint16")
    return ll.view(bits, dtype="f16", layout=bits.layout)


def covers_whole_tables(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether tiles and stages end where rows and groups do."""
    rows = schedule.rows // spec.products * schedule.multicast
    return spec.columns_of_y % rows == 0 and spec.k % schedule.stage_k == 0


def decoder(
    spec: LinearSpec,
    table: ll.Pointer | None,
    threads: int,
    factor_of_table: ll.Scalar | None = None,
    are_inside: bool = False,
    factor: float | None = None,
) -> Callable[[ll.Tile, ll.Scalar, ll.Scalar], ll.Tile]:
    """What turns codes of a group and of rows from `row` on into operands: their values, times `factor`, which is
    `prescale_of_codes` where none is given; for a block of `threads`.

    factor_of_table  a power of two by which the entries of a tensor's table are multiplied, rounded in their type
    are_inside       no codes of rows or groups that are not there are looked up
    """
    entries = 1 << spec.bits
    factor = prescale_of_codes(spec) if factor is None else factor

    def cast(codes: ll.Tile, group: ll.Scalar, row: ll.Scalar) -> ll.Tile:
        if codes.dtype.name == spec.operand_type:
            return codes
        if factor == 1.0:
            return ll.cast(codes, spec.operand_type)
        return ll.cast(ll.cast(codes, "f32") * factor, spec.operand_type)

    if table is None:
        return cast
    if spec.table == "tensor":
        table_layout = local(-(-entries // threads)) * spatial(threads)
        loaded = ll.load_global(ll.view_global(table, shape=[entries]), offsets=[0], layout=table_layout)
        if factor_of_table is not None:
            loaded = ll.cast(ll.cast(loaded, "f32") * factor_of_table, spec.activation)
        shared = ll.alloc_shared(spec.activation, table_layout.shape)
        ll.store_shared(loaded, shared, offsets=[0])
        ll.synchronize()
        return lambda codes, group, row: ll.lookup(shared, codes)
    tables = spec.groups if spec.table == "group" else 1
    view = ll.view_global(
        table,
        shape=[spec.groups, spec.n, entries],
        strides=[entries if spec.table == "group" else 0, tables * entries, 1],
    )
    return lambda codes, group, row: ll.gather_global(
        view, codes, dim=-1, offsets=[group, row, 0], layout=codes.layout, in_bounds=are_inside
    )
