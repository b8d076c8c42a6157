"""`CompiledKernel.report()`: what a kernel costs, then what was decided about it, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lowlp_runtime.description import KernelDescription

_PLAN = "decode "
# What a plan's note holds beside its steps.
_PLAN_FACTS = ("scales on", "instructions per weight")


def report_lines(description: KernelDescription, verbose: bool) -> Iterator[str]:
    """The lines after the first: resources, the schedule and other numbers, decisions, what passes left undone."""
    block = " x ".join(str(extent) for extent in description.block if extent > 1) or "1"
    for found in description.resources:
        yield from _section(f"{found.assembler} {found.arch}", found.in_words())
    yield _fact("threads per block", block, 1)
    if description.product is not None:
        yield _fact("rows of x", description.product.rows_in_words, 1)
    if description.packed_format is not None:
        yield _fact("packed format", description.packed_format, 1)
    for name, note in description.notes.items():
        if name.startswith(_PLAN) and isinstance(note, Mapping) and not verbose:
            yield from _section(name, {key: note[key] for key in _PLAN_FACTS if key in note})
        else:
            yield from _section(name, note)


def _section(name: str, note: object) -> Iterator[str]:
    if isinstance(note, Mapping):
        yield f"  {name}"
        for key, value in note.items():
            yield _fact(key, value, 2)
    else:
        yield _fact(name, note, 1)


def _fact(name: str, value: object, depth: int) -> str:
    return f"{'  ' * depth}{name:<{28 - 2 * depth}} {value}"
