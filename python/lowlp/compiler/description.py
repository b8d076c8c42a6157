"""Reads what the compiler says of its kernels into what a launch needs.

The pipelines leave a dictionary attribute `lowlp.kernels` on the module: for each kernel the size of a block, the grid
as an affine map over the integer parameters, the parameters, and, if it has any, the bytes of dynamic shared memory,
the parts of its workspace and its tensor maps, and whether it waits for the kernel in front of it by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lowlp._layout import Placement
from lowlp.errors import LowlpRuntimeError
from lowlp_runtime.description import KernelDescription, Parameter
from lowlp_runtime.tensor_map import TensorMap
from lowlp_runtime.workspace import WorkspacePart

if TYPE_CHECKING:
    from lowlp._mlir import ir

# The element types of pointers, as `lowlp_runtime` names them.
_BYTE_ELEMENTS = {"f16": "f16", "bf16": "bf16", "f32": "f32"} | {
    f"{sign}i{bits}": f"{letter}{bits}" for sign, letter in (("s", "i"), ("u", "u")) for bits in (8, 16, 32)
}


def element_name(element: str) -> str:
    """What an array behind a pointer to the MLIR type `element` holds: packed codes are bytes."""
    return _BYTE_ELEMENTS.get(element, "u8")


def read_kernels(module: ir.Module, compiler_version: str, notes: Mapping[str, object]) -> list[KernelDescription]:
    """The descriptions of all kernels in a module that went through a pipeline."""
    from lowlp._mlir import ir

    attributes = module.operation.attributes
    if "lowlp.kernels" not in attributes:
        raise LowlpRuntimeError("the module has no attribute lowlp.kernels: no pipeline has run on it")
    kernels = []
    for entry in ir.DictAttr(attributes["lowlp.kernels"]):
        facts = ir.DictAttr(entry.attr)
        parameters = [_read_parameter(ir.DictAttr(p)) for p in ir.ArrayAttr(facts["parameters"])]
        integers = [p.name for p in parameters if p.is_integer]
        grid_map = ir.AffineMapAttr(facts["grid"])
        shared_bytes = int(ir.IntegerAttr(facts["shared_bytes"]).value) if "shared_bytes" in facts else 0
        x, y, z = (int(extent) for extent in ir.DenseI32ArrayAttr(facts["block_size"]))
        kernels.append(
            KernelDescription(
                name=str(entry.name),
                parameters=tuple(parameters),
                grid=_read_grid(grid_map, integers),
                block=(x, y, z),
                shared_bytes=shared_bytes,
                workspace=tuple(_read_part(ir.DictAttr(p), integers) for p in ir.ArrayAttr(facts["workspace"]))
                if "workspace" in facts
                else (),
                dependent_launch="dependent_launch" in facts,
                compiler_version=compiler_version,
                notes={**notes, **_read_decisions(facts, shared_bytes)},
                tensor_maps=tuple(
                    _read_tensor_map(ir.DictAttr(entry), parameters, integers)
                    for entry in (ir.ArrayAttr(facts["tensor_maps"]) if "tensor_maps" in facts else ())
                ),
            )
        )
    return kernels


def packed_format_of(module: ir.Module) -> int | None:
    """The version of the packed format in which a program of the block level reads weights; None where it reads none.
    Passes turn views of packed weights into views of words."""
    from lowlp._mlir import ir

    found = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name != "lowlp.view_packed":
            return ir.WalkResult.ADVANCE
        found.append(operation)
        return ir.WalkResult.INTERRUPT

    module.operation.walk(visit)
    return int(Placement.format_version) if found else None


def _read_tensor_map(facts: ir.DictAttr, parameters: list[Parameter], integers: list[str]) -> TensorMap:
    from lowlp._mlir import ir

    def number(name: str) -> int:
        return int(ir.IntegerAttr(facts[name]).value)

    def expressions(name: str) -> tuple[Any, ...]:
        return tuple(_read_expression(result, integers) for result in ir.AffineMapAttr(facts[name]).value.results)

    return TensorMap(
        parameter=parameters[number("parameter")].name,
        element_bytes=number("element_bytes"),
        extents=expressions("extents"),
        strides=expressions("strides"),
        box=tuple(int(extent) for extent in ir.DenseI64ArrayAttr(facts["box"])),
        swizzle=number("swizzle"),
    )


_ALU_STEPS = ("lop3", "prmt", "rotate")
_FMA_STEPS = ("fma", "mul32")


def _read_plan(text: str) -> tuple[str, dict[str, str]]:
    """The name of a decode plan, and its cost and lines, from its text (dialect/lib/Decode/PlanText.cpp)."""
    header, *rest = text.strip().splitlines()
    _, placement, ending, *_ = header.split()
    parts = Placement.find(placement).parts
    lines: dict[str, str] = {}
    kinds: list[str] = []
    for line in rest:
        name, _, what = line.partition(" = ")
        if name.startswith("r") and what:
            kinds.append(what.split()[0])
        words = line.split()
        lines[name if what else " ".join(words[:2])] = what or " ".join(words[2:])
    weights = parts * sum(line.startswith("slot ") for line in lines)
    counts = {
        "ALU": sum(kind in _ALU_STEPS for kind in kinds),
        "FMA": sum(kind in _FMA_STEPS for kind in kinds),
        "conversion": kinds.count("round"),
    }
    cost = ", ".join(f"{count / weights:.3g} {pipe}" for pipe, count in counts.items() if count or pipe == "ALU")
    return f"decode {placement}", {"scales on": ending, "instructions per weight": cost, **lines}


def _read_decisions(facts: ir.DictAttr, shared_bytes: int) -> dict[str, object]:
    """What the compiler has decided, for the report: exchanges between threads, lookups, codebooks, stages, products
    by warpgroups, what sharing memory saves."""
    from lowlp._mlir import ir

    decisions: dict[str, object] = {}
    if "report" not in facts:
        return decisions
    facts = ir.DictAttr(facts["report"])
    for name in ("layouts", "exchanges", "lookups", "codebooks", "pipelines", "warpgroups"):
        if name in facts:
            texts = [str(ir.StringAttr(text).value) for text in ir.ArrayAttr(facts[name])]
            decisions[name] = {str(number): text for number, text in enumerate(texts, 1)}
    if "decode_plans" in facts:
        for text in ir.ArrayAttr(facts["decode_plans"]):
            name, lines = _read_plan(str(ir.StringAttr(text).value))
            decisions[name] = lines
    if "unshared_bytes" in facts:
        unshared = int(ir.IntegerAttr(facts["unshared_bytes"]).value)
        decisions["shared memory"] = {"bytes": shared_bytes, "bytes without sharing": unshared}
    return decisions


def _read_parameter(facts: ir.DictAttr) -> Parameter:
    from lowlp._mlir import ir

    name = str(ir.StringAttr(facts["name"]).value)
    kind = str(ir.TypeAttr(facts["type"]).value)
    divisible_by = int(ir.IntegerAttr(facts["divisible_by"]).value) if "divisible_by" in facts else 1
    if not kind.startswith("!lowlp.ptr<"):
        return Parameter(name, kind, divisible_by=divisible_by)
    element = element_name(kind.removeprefix("!lowlp.ptr<").removesuffix(">"))
    natural = int(re.sub(r"\D", "", element)) // 8
    align = int(ir.IntegerAttr(facts["align"]).value) if "align" in facts else natural
    return Parameter(name, "pointer", element, alignment_bytes=align, writable="written" in facts)


def _read_part(facts: ir.DictAttr, names: list[str]) -> WorkspacePart:
    """The bytes of a part are the product of its extents, times the bits of an element, rounded up to bytes."""
    from lowlp._mlir import ir

    size: object = int(ir.IntegerAttr(facts["element_bits"]).value)
    for extent in ir.AffineMapAttr(facts["shape"]).value.results:
        factor = _read_expression(extent, names)
        size = size * factor if isinstance(size, int) and isinstance(factor, int) else ["*", size, factor]
    size_bytes = -(-size // 8) if isinstance(size, int) else ["ceildiv", size, 8]
    return WorkspacePart(str(ir.StringAttr(facts["name"]).value), size_bytes, "zeroed" in facts)  # type: ignore[arg-type]


def _read_grid(attribute: ir.AffineMapAttr, names: list[str]) -> Any:
    results = attribute.value.results
    extents: list[object] = [_read_expression(result, names) for result in results]
    return (*extents, *[1] * (3 - len(extents)))


def _read_expression(expression: Any, names: list[str]) -> object:
    from lowlp._mlir import ir

    if isinstance(expression, ir.AffineConstantExpr):
        return int(ir.AffineConstantExpr(expression).value)
    if isinstance(expression, ir.AffineDimExpr):
        return ["param", names[ir.AffineDimExpr(expression).position]]
    for operator, kind in (
        ("+", ir.AffineAddExpr),
        ("*", ir.AffineMulExpr),
        ("mod", ir.AffineModExpr),
        ("floordiv", ir.AffineFloorDivExpr),
        ("ceildiv", ir.AffineCeilDivExpr),
    ):
        if isinstance(expression, kind):
            binary = kind(expression)
            return [operator, _read_expression(binary.lhs, names), _read_expression(binary.rhs, names)]
    raise LowlpRuntimeError(f"grid: affine expression {expression} is of no known kind")
