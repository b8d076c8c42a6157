"""`lowlp inspect`: what a saved kernel holds. Reads the file with the run time alone: no compiler, no GPU."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import KernelDescription, Parameter
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.grid import GridExpression
from lowlp_runtime.operands import Operand
from lowlp_runtime.workspace import WorkspacePart

from . import inspect_model, output

Held = TypeVar("Held", str, bytes)

LEVELS = ("block", "thread", "nvvm")
_AXES = "xyz"


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "inspect",
        help="tell what a saved kernel or a checkpoint holds",
        description="Tell what a saved kernel holds: code, parameters, grid, and what the compiler decided. With an "
        "option print that part alone. Of a quantised checkpoint tell its format, and of each layer codec, bits, bytes "
        "and how far rounding may have moved a weight. Needs neither compiler nor GPU.",
        epilog="examples:\n  lowlp inspect out/linear_int6_f16_sm_90a.lowlp\n"
        "  lowlp inspect out/linear_int6_f16_sm_90a.lowlp --ptx | less\n"
        "  lowlp inspect out/linear_int6_f16_sm_90a.lowlp --cubin -o k.cubin && nvdisasm k.cubin\n"
        "  lowlp inspect TheModel-GPTQ\n"
        "  lowlp inspect model.Q4_K_M.gguf --json",
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument(
        "file",
        metavar="KERNEL|MODEL",
        help="a kernel, written by `lowlp compile --emit lowlp` or `save`; or a checkpoint: a folder, a .safetensors "
        "file, its index, or a .gguf file",
    )
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument("--ir", choices=LEVELS, help="print the program at this level")
    texts.add_argument("--ptx", action="store_true", help="print the PTX")
    texts.add_argument("--cubin", action="store_true", help="write the machine code; with -o, or to a pipe")
    texts.add_argument("--json", action="store_true", help="print the description, or all of a checkpoint, as JSON")
    parser.add_argument(
        "--arch", metavar="ARCH", help="with --ptx or --cubin: for this architecture, where there are several"
    )
    parser.add_argument(
        "-o",
        dest="output",
        default=output.STDOUT,
        metavar="OUT",
        help="file to write; - is stdout (default: -)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prints the text that was asked for, or the summary."""
    if inspect_model.is_model(Path(options.file)):
        for name in ("ir", "ptx", "cubin", "arch"):
            if getattr(options, name):
                raise LowlpValueError(f"--{name}: allowed with a saved kernel only, and {options.file} is a checkpoint")
        output.write(options.output, inspect_model.told(Path(options.file), options.json))
        return 0
    data = Path(options.file).read_bytes()
    kernel = KernelBinary.from_bytes(data, source=options.file)
    if options.arch and not (options.ptx or options.cubin):
        raise LowlpValueError("--arch: allowed with --ptx and --cubin only")
    output.write(options.output, _wanted(options, data, kernel))
    return 0


def _wanted(options: argparse.Namespace, data: bytes, kernel: KernelBinary) -> str | bytes:
    if options.ir:
        return _held(kernel.ir, options.ir, f"{options.file}: IR")
    if options.ptx:
        return _held(kernel.ptx, options.arch or next(iter(kernel.ptx), ""), f"{options.file}: PTX")
    if options.cubin:
        arch = options.arch or next(iter(kernel.cubins), "")
        return _held(kernel.cubins, arch, f"{options.file}: machine code")
    if options.json:
        return json.dumps(kernel.description.to_json(), indent=1)
    return "\n".join(_summary(options.file, data, kernel))


def _held(texts: Mapping[str, Held], name: str, what: str) -> Held:
    if name not in texts:
        raise LowlpValueError(f"{what} {name!r} is not held; held: {', '.join(texts) or 'none'}")
    return texts[name]


def _summary(file: str, data: bytes, kernel: KernelBinary) -> Iterator[str]:
    described = kernel.description
    yield f"kernel {described.name}"
    facts = [
        ("file", f"{file}, {output.count(len(data))} bytes, format version {described.format_version}"),
        ("sha256 of file", hashlib.sha256(data).hexdigest()),
        ("sha256 of kernel", kernel.content_hash),
        ("compiled by", f"lowlp {described.compiler_version}" if described.compiler_version else "not recorded"),
        ("blocks of grid", grid_in_words(described)),
        ("block", " x ".join(str(extent) for extent in described.block) + " threads"),
        ("dynamic shared", f"{output.count(described.shared_bytes)} bytes per block"),
    ]
    if kernel.before is not None:
        facts.append(("launched after", f"{kernel.before.description.name}, which makes its x"))
    facts.extend(_facts_of_weights(described))
    yield output.aligned(facts, "  ")
    for title, held in (
        ("code", _code(kernel)),
        ("IR", _ir(kernel)),
        ("parameters", map(_parameter, described.parameters)),
        *([("operands", map(_operand, described.product.operands))] if described.product else []),
        *([("workspace", map(_part, described.workspace))] if described.workspace else []),
        *([("resources", _resources(described))] if described.resources else []),
    ):
        yield title
        yield output.aligned(held, "  ") or "  none"
    yield "decided"
    yield output.aligned(_notes(described.notes), "  ") or "  nothing recorded"


def _code(kernel: KernelBinary) -> Iterator[tuple[str, str]]:
    for arch, text in kernel.ptx.items():
        yield f"PTX {arch}", f"{output.count(len(text.encode()))} bytes"
    for arch, cubin in kernel.cubins.items():
        yield f"machine code {arch}", f"{output.count(len(cubin))} bytes"


def _ir(kernel: KernelBinary) -> Iterator[tuple[str, str]]:
    for level, text in kernel.ir.items():
        yield level, f"{output.count(len(text.splitlines()))} lines"


def _parameter(parameter: Parameter) -> tuple[str, str]:
    if parameter.is_pointer:
        access = "written" if parameter.writable else "read"
        return parameter.name, f"pointer to {parameter.element}, {access}, aligned to {parameter.alignment_bytes} bytes"
    multiple = f", a multiple of {parameter.divisible_by}" if parameter.divisible_by > 1 else ""
    return parameter.name, parameter.kind + multiple


def _facts_of_weights(described: KernelDescription) -> Iterator[tuple[str, str]]:
    if described.product is not None:
        product = described.product
        supers = "" if product.super_group_size is None else f", super-groups of {product.super_group_size}"
        yield "product", f"{product.code} weights [{product.n}, {product.k}], groups of {product.group_size}{supers}"
        yield "rows of x", product.rows_in_words
        yield "family", product.family
    if described.packed_format is not None:
        yield "packed format", str(described.packed_format)


def _operand(operand: Operand) -> tuple[str, str]:
    extents = f" [{', '.join(map(str, operand.shape))}]" if operand.is_array else ""
    made = f", {operand.transform}" if operand.transform else ""
    return operand.name, f"{operand.role} of the {operand.source}, {operand.element}{extents}{made}"


def _resources(described: KernelDescription) -> Iterator[tuple[str, str]]:
    for found in described.resources:
        for name, number in found.in_words().items():
            yield f"{found.assembler} {found.arch}: {name}", output.count(number)


def _part(part: WorkspacePart) -> tuple[str, str]:
    content = "zero between launches" if part.zeroed else "scratch"
    return part.name, f"{_formula(part.size_bytes)} bytes, {content}"


def _notes(notes: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested notes as 'plan: decode'."""
    for name, value in notes.items():
        if isinstance(value, Mapping):
            yield from _notes(value, f"{prefix}{name}: ")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{name}", ", ".join(map(str, value))
        else:
            yield f"{prefix}{name}", output.count(value) if type(value) is int else str(value)


def grid_in_words(description: KernelDescription) -> str:
    """The grid's extents as formulas: 'x: ceil(m / 16) * 192'. Axes of extent 1 are left out."""
    extents = [(axis, _formula(e)) for axis, e in zip(_AXES, description.grid, strict=True) if e != 1]
    return ", ".join(f"{axis}: {text}" for axis, text in extents) or "1"


def _formula(expression: str | GridExpression, within: str = "") -> str:
    if not isinstance(expression, tuple) or expression[0] == "param":
        return str(expression[-1] if isinstance(expression, tuple) else expression)
    operator, *operands = expression
    if operator in ("ceildiv", "floordiv"):
        left, right = (_formula(operand, "/") for operand in operands)
        return f"{'ceil' if operator == 'ceildiv' else 'floor'}({left} / {right})"
    sign = "mod" if operator == "mod" else str(operator)
    text = f" {sign} ".join(_formula(operand, sign) for operand in operands)
    # A sum inside of a product, and anything inside of mod or a quotient, would read otherwise without.
    return f"({text})" if within in ("mod", "/") or (within == "*" and sign != "*") else text
