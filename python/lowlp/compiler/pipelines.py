"""The named pipelines taken apart into their passes: which of them fails, how long each takes, and where one pipeline
continues another.

`lowlp.compiler.run_pipeline` runs a pipeline whole. What is here runs its passes one after the other, as MLIR prints
them, so nothing is composed a second time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowlp._mlir import ir

_OPENING, _CLOSING = "({<[", ")}>]"
_EMIT_PTX = "lowlp-emit-ptx"
_EMIT_PTX_STEPS = ("translation to LLVM IR", "LLVM's optimiser", "LLVM's PTX backend")


def passes_of(pipeline: str, context: ir.Context) -> list[str]:
    """The passes of a pipeline of modules, each with its options, as `lowlp-emit-ptx{arch=sm_90a opt-level=3}`."""
    from lowlp._mlir.passmanager import PassManager

    text = str(PassManager.parse(f"builtin.module({pipeline})", context))
    return split_passes(text.removeprefix("builtin.module(").removesuffix(")"))


def stages_of(pipelines: Sequence[str], context: ir.Context) -> list[str]:
    """What each pipeline adds to the one before it, with whose passes it starts."""
    stages = []
    before: list[str] = []
    for pipeline in pipelines:
        passes = passes_of(pipeline, context)
        assert passes[: len(before)] == before, f"{pipeline} does not continue the pipeline before it"
        stages.append(",".join(passes[len(before) :]))
        before = passes
    return stages


def split_passes(text: str) -> list[str]:
    """`a,b{x=1,2},gpu.module(c,d)` as `a`, `b{x=1,2}`, `gpu.module(c)`, `gpu.module(d)`."""
    entries = [""]
    depth = 0
    for character in text:
        depth += (character in _OPENING) - (character in _CLOSING)
        if character == "," and depth == 0:
            entries.append("")
        else:
            entries[-1] += character
    passes = []
    for entry in filter(None, entries):
        anchor, inner = _nested(entry)
        passes += [f"{anchor}({inside})" for inside in split_passes(inner)] if anchor else [entry]
    return passes


def _nested(entry: str) -> tuple[str, str]:
    """`gpu.module(c)` as the op `gpu.module` and what runs on it; a pass of its own as two empty texts."""
    head, parenthesis, rest = entry.partition("(")
    return (head, rest.removesuffix(")")) if parenthesis and "{" not in head else ("", "")


def name_of(entry: str) -> str:
    """The pass's name without its options, and without the ops in which it runs."""
    anchor, inner = _nested(entry)
    return name_of(inner) if anchor else entry.partition("{")[0]


def failing_pass(source: str, pipeline: str, context: ir.Context) -> str:
    """The name of the pass that refuses the program `source`, or after which it is invalid; '' where none does."""
    from lowlp._mlir import ir
    from lowlp._mlir.passmanager import PassManager

    try:
        module = ir.Module.parse(source, context)
    except ir.MLIRError:
        return ""
    for entry in passes_of(pipeline, context):
        try:
            PassManager.parse(f"builtin.module({entry})", context).run(module.operation)
        except ir.MLIRError:
            return name_of(entry)
    return ""


def seconds_of_passes(module: ir.Module, pipeline: str) -> list[tuple[str, float]]:
    """Runs the pipeline on the module, in place; the name of each pass and the seconds it took. Raises `MLIRError`.

    The last pass on the way to PTX, in which LLVM does what it does, is told in its three steps.
    """
    from lowlp._mlir.passmanager import PassManager

    taken: list[tuple[str, float]] = []
    for entry in passes_of(pipeline, module.context):
        name = name_of(entry)
        entry_timed = entry.replace("seconds=false", "seconds=true") if name == _EMIT_PTX else entry
        manager = PassManager.parse(f"builtin.module({entry_timed})", module.context)
        start = time.perf_counter()
        manager.run(module.operation)
        if name == _EMIT_PTX:
            taken += zip(_EMIT_PTX_STEPS, _seconds_left_on(module), strict=True)
        else:
            taken.append((name, time.perf_counter() - start))
    return taken


def _seconds_left_on(module: ir.Module) -> list[float]:
    """What `lowlp-emit-ptx` with its option `seconds` says of its steps."""
    from lowlp._mlir import ir

    (binary,) = (op for op in module.body.operations if "lowlp.seconds" in op.attributes)
    return [ir.FloatAttr(step).value for step in ir.ArrayAttr(binary.attributes["lowlp.seconds"])]
