"""The operands of `linear`'s kernels: one ordered list, made of codec and epilogue.

The DSL's parameters, what is uploaded of weights, launches on a GPU and on the CPU target, tuning, the bench and saved
kernels read it. A new operand is a line here, and a role in `lowlp_runtime.operands`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lowlp import language as ll
from lowlp.numeric.vectors import Vectors
from lowlp_runtime.operands import ROWS, Operand
from lowlp_runtime.product import Product
from lowlp_runtime.vector_order import LANES, VectorOrder, padded_columns

from .integer_sums import takes_sums_of_rows, takes_sums_of_weights
from .scaled_weights import fit_of
from .schedule import Schedule
from .spec import SUMS, LinearSpec
from .tiles import tiling
from .two_levels import stored_groups

WIDE_BYTES = 16
"""Alignment of weights, and of all that wide loads and stores are to reach."""
TAKES_ALL: Final = Schedule(stages=2, warpgroups=1, scales_on="weights")
"""Kernels of this schedule take all that any kernel for a spec takes of the weights."""
# Elements that memory holds under another name.
_MEMORY_TYPES = {"e8m0": "uint8", "e4m3": "f8e4m3", "uint4": "uint8", "int6": "uint8"}
_NUMBERS = {"f32": ll.f32, "i32": ll.i32}


def product_of(spec: LinearSpec, schedule: Schedule, rows: tuple[int, int] | None = None) -> Product:
    """What the kernel for `spec`, whose work is divided as `schedule` says, multiplies.

    rows  the least and the largest number of rows of x that it is meant for; None: any
    """
    return Product(
        n=spec.n,
        k=spec.k,
        code=spec.weight,
        group_size=spec.group_size,
        family=spec.family,
        operands=tuple(_operands(spec, schedule)),
        rows=rows,
        epilogue=spec.epilogue,
        tiles=tiling(spec, schedule) if _has_tiles(spec, schedule) and not spec.experts else None,
        super_group_size=spec.super_group_size if spec.super_scale else None,
        vector_order=order.vector if (order := vector_order_of(spec, schedule)) else None,
    )


def operands_of_weights(spec: LinearSpec, schedule: Schedule | None = None) -> tuple[Operand, ...]:
    """What kernels for `spec` take of the weights. Of the schedule it matters alone whether weights are scaled, and so
    fitted (`fit_of`); None: they are not."""
    return tuple(operand for operand in _operands(spec, schedule) if operand.source == "weights")


def _has_tiles(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether blocks share the work as `tiling` says; else each has a tile of the grid."""
    return schedule.has_wgmma or (schedule.stages > 0 and spec.vectors is None)


def vector_order_of(spec: LinearSpec, schedule: Schedule) -> VectorOrder | None:
    """The order of vectors in which x comes, padded, as a kernel before this one makes it
    (`lowlp_runtime.vector_order`); None: x comes as it is, or in the order of the weights. For vectors of two weights
    that is one order where blocks do not come at once, so that x is taken as it is if its rows are aligned and need no
    padding."""
    if spec.vectors is None or not schedule.has_wgmma:
        return None
    vector: int = spec.vectors.vector
    if schedule.blocks_at_once > 1:
        return VectorOrder(vector, spec.book_columns or 0, schedule.stage_k // LANES)
    is_one = vector == 2 and spec.aligned and spec.k == padded_columns(spec.k)
    return None if is_one else VectorOrder(vector)


def _operands(spec: LinearSpec, schedule: Schedule | None) -> Iterator[Operand]:
    columns, rows = spec.columns_of_y, spec.rows_of_weights
    supers = (spec.supers, rows)
    units, *rest = spec.placement.packed_shape(spec.packed_rows, spec.k)
    words = (max(1, spec.experts) * units, *rest)
    yield Operand("x", "x", spec.activation, (ROWS, spec.k))
    yield Operand("weights", "packed", "uint32", words, "apart" if spec.is_packed_apart else "")
    yield Operand("scales", "scales", spec.scale, (stored_groups(spec, spec.scale), rows), "by_group")
    if spec.super_scale:
        yield Operand("super_scales", "super_scales", spec.super_scale, supers, "by_group")
    if spec.corrector:
        role, stored = "zeros" if spec.zeros else "offsets", stored_groups(spec, spec.corrector)
        yield Operand("correctors", role, spec.corrector, (stored, rows), "by_group")
    if spec.has_super_offsets:
        yield Operand("super_offsets", "super_offsets", spec.super_scale, supers, "by_group")
    if spec.table:
        tables = {"tensor": (), "channel": (spec.n,), "group": (spec.n, spec.groups)}[spec.table]
        yield Operand("table", "lut", spec.activation, (*tables, 1 << spec.bits), "filled")
        yield Operand("table_unscale", "lut_unscale", "f32", transform="unfill")
    if spec.vectors:
        yield from _operands_of_books(spec, spec.vectors)
    if spec.scale2:
        yield Operand("scale2", "scale2", "f32", *(((rows,), "by_row") if spec.row_scale2 else ()))
    if spec.ordered_rows:
        yield Operand("permutation", "permutation", "int32", (spec.k,))
    if fit := fit_of(spec, schedule):
        yield Operand("fit", "fit", "f32", transform=str(fit))
        yield Operand("unfit", "unfit", "f32", transform=str(fit))
    if spec.bias:
        yield Operand("bias", "bias", spec.bias, (spec.experts, spec.n) if spec.experts else (spec.n,))
    if spec.residual:
        yield Operand("residual", "residual", spec.residual, (ROWS, columns))
    yield from _operands_of_quantised(spec)
    if spec.experts:
        yield Operand("row_offsets", "row_offsets", "int32", (spec.experts + 1,))
    yield Operand("y", "y", "int32" if spec.out == SUMS else spec.out, (ROWS, columns))
    yield Operand("m", "m", "i32")
    yield Operand("x_stride", "x_stride", "i64")
    if spec.residual:
        yield Operand("residual_stride", "residual_stride", "i64")
    if schedule and (spec.experts or _has_tiles(spec, schedule)):
        yield Operand("blocks", "blocks", "i32")


def _operands_of_quantised(spec: LinearSpec) -> Iterator[Operand]:
    """What comes with x that is quantised."""
    if spec.x_scale:
        yield Operand("x_scales", "x_scales", "f32", (ROWS if spec.x_scale == "token" else 1,))
    if not spec.is_of_integers:
        return
    if takes_sums_of_rows(spec):
        yield Operand("x_sums", "x_sums", "int32", (ROWS,))
    if spec.x_zeros:
        yield Operand("x_zeros", "x_zeros", "int32", (ROWS,))
    if takes_sums_of_weights(spec):
        yield Operand("weight_sums", "weight_sums", "int32" if spec.adds_integers else "f32", (spec.rows_of_weights,))


def _operands_of_books(spec: LinearSpec, vectors: Vectors) -> Iterator[Operand]:
    shape, copies = spec.shape_of_books, vectors.spread if vectors.spread == "copies" else ""
    if vectors.lattices:
        # What vectors are computed from.
        yield Operand("codebooks", "codebooks", "int8", shape)
        yield Operand("book_scales", "book_scales", "f32", (vectors.books,))
        return
    if vectors.has_book_scales:
        yield Operand("codebooks", "codebooks", str(vectors.entries), shape, copies)
        yield Operand("book_scales", "book_scales", "f32", shape[:-2])
        return
    sums = "sums " if vectors.books > 1 and spec.activation == "f16" else ""
    yield Operand("codebooks", "codebooks", spec.activation, shape, f"filled {sums}{copies}".strip())
    yield Operand("codebooks_unscale", "codebooks_unscale", "f32", transform=f"unfill {sums}".strip())


def parameters_of(spec: LinearSpec, schedule: Schedule) -> dict[str, ll.Parameter]:
    """The parameters of the kernel for `spec`, by name: its operands, with what may be promised of each."""
    return {operand.name: _parameter(operand, spec, schedule) for operand in _operands(spec, schedule)}


def operands_as_meant(spec: LinearSpec, schedule: Schedule) -> tuple[Operand, ...]:
    """What a kernel takes of the weights that makes them as `dequantize()` has them, without a power of two."""
    return tuple(operand for operand in operands_of_weights(spec, schedule) if operand.role not in ("fit", "unfit"))


def parameters_as_meant(spec: LinearSpec, schedule: Schedule) -> dict[str, ll.Parameter]:
    """The parameters of such a kernel, which runs when nobody writes any of the weights."""
    constant = replace(spec, dependent_launch=True)
    return {operand.name: _parameter(operand, constant, schedule) for operand in operands_as_meant(spec, schedule)}


def _divisor(operand: Operand, spec: LinearSpec) -> int:
    """Of a stride in elements, with which rows begin where wide loads may."""
    return 16 if operand.role == "x_stride" and spec.is_of_bytes else 8


def _parameter(operand: Operand, spec: LinearSpec, schedule: Schedule) -> ll.Parameter:
    is_made = operand.role in ("x", "x_stride") and vector_order_of(spec, schedule) is not None
    if operand.element == "i64":
        return ll.integer(64, divisible_by=_divisor(operand, spec) if spec.aligned or is_made else 1)
    if not operand.is_array:
        return _NUMBERS[operand.element]
    # Results of warpgroups are stored 16 bytes at a time.
    is_wide = {
        "x": spec.aligned or is_made,
        "residual": spec.aligned,
        "packed": True,
        "codebooks": True,
        "scales": True,
        "zeros": True,
        "offsets": True,
        "scale2": True,
        "super_scales": True,
        "super_offsets": True,
        "permutation": True,
        "y": schedule.has_wgmma,
    }
    return ll.pointer(
        _MEMORY_TYPES.get(operand.element, operand.element),
        align=WIDE_BYTES if is_wide.get(operand.role, False) else None,
        constant=operand.source == "weights" and spec.dependent_launch,
    )
