"""Rows of x in one launch: the RMS norm, silu(gate) * up, a transform, then codes and all that belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lowlp import language as ll

from .block import Block
from .long_rows import LongRow, division_of_parts
from .planes import plane_strides
from .rounding import extremes_of
from .source import Source, source_parameters
from .spec import Division, RowsSpec, division_of


def rows_kernel(spec: RowsSpec) -> ll.Kernel:
    """The block program.

    Parameters: those of `Source`; `given` or `extremes`, f32; codes, scales, sums, zeros, planes as the rule has them,
    or y; numbers rows, outer, and strides of planes in words.
    """
    held = division_of(spec)
    division = held or division_of_parts(spec)

    def trace(**operands: Any) -> None:
        if spec.early:
            ll.launch_dependents()
            ll.wait_for_dependencies()
        block = LongRow(spec, operands) if held is None else Block(spec, held, operands)
        block.run()

    return ll.make_kernel(
        trace,
        name=f"quantize_{spec.rule.kind.name}" if spec.rule else "transform",
        parameters=parameters_of(spec),
        grid=grid_of(spec, division),
        num_threads=division.num_threads,
    )


def grid_of(spec: RowsSpec, division: Division) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Blocks of rows by outer indices; first what there may be more than 65535 of (CUDA programming guide, technical
    specifications)."""
    if spec.grouped:
        return lambda rows, outer: (outer, ll.ceildiv(rows, division.rows))
    return lambda rows, outer: (ll.ceildiv(rows, division.rows), outer)


def extremes_kernel(spec: RowsSpec) -> ll.Kernel:
    """The block program that finds the extremes of all finite rows, for scales of a tensor.

    Parameters: those of `Source`; extremes, f32 as int32 [2], zeros before: the largest magnitude of a number below 0,
    and the largest number; or the largest magnitude in the second place.
    """
    held, rule = division_of(spec), spec.rule
    assert rule is not None, "rows without scales"
    division = held or division_of_parts(spec)

    def trace(**operands: Any) -> None:
        if spec.early:
            ll.launch_dependents()
            ll.wait_for_dependencies()
        if held is None:
            found = LongRow(spec, operands).extremes()
        else:
            found = extremes_of(Source(spec, held, operands).load(), rule.symmetric)
        view = ll.view_global(operands["extremes"], shape=[1, 2])
        for place, numbers in ((0, found.low), (1, found.high)):
            if numbers is not None:
                # Floats that are not negative are in the order of their bits.
                most = ll.max(-numbers if place == 0 else numbers, 0, keep_dims=True)
                words = ll.view(ll.abs(most), dtype="int32", layout=most.layout)
                ll.atomic_rmw("max", words, view, offsets=[0, place])

    return ll.make_kernel(
        trace,
        name="find_extremes",
        parameters=source_parameters(spec) | {"extremes": ll.pointer("int32"), "rows": ll.i32, "outer": ll.i32},
        grid=grid_of(spec, division),
        num_threads=division.num_threads,
    )


def parameters_of(spec: RowsSpec) -> dict[str, ll.Parameter]:
    """Of `rows_kernel`, in order."""
    parameters, rule = source_parameters(spec), spec.rule
    if rule is None:
        parameters["y"] = ll.pointer(spec.source, align=16)
        return parameters | {"rows": ll.i32, "outer": ll.i32}
    kind = rule.kind
    if rule.scale == "given":
        parameters["given"] = ll.pointer("f32")
    if rule.scale == "tensor":
        parameters["extremes"] = ll.pointer("int32")
    stored = kind.dtype if kind.is_float else "int8" if kind.low else "uint8"
    parameters |= {"codes": ll.pointer(stored, align=16), "scales": ll.pointer("f32")}
    if not kind.is_float:
        parameters["sums"] = ll.pointer("int32")
    if rule.has_zeros:
        parameters["zeros"] = ll.pointer("int32")
    if spec.planes:
        parameters |= {"planes": ll.pointer("uint32", align=16)} | plane_strides()
    return parameters | {"rows": ll.i32, "outer": ll.i32}
