"""Products of experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lowlp.benchmarks.experts import results as of_experts

from .measured import Linker, Measured, describe

TITLE: Final = "Experts"
_SUMMARY = f"""\
`lowlp bench --experts`: `grouped_linear` of both products of a layer of experts. Each cell is the geometric mean over
its cases of the time asked / our time, and how many of them meet it. Asked is an empty kernel +
{of_experts.OVER_FLOOR} x the floor (bytes of the experts that have rows / read bandwidth) up to
{of_experts.MOST_DECODED} tokens, and at most the time of bf16 `torch._grouped_mm` and of humming's product of the same
weights / {of_experts.FACTORS[0]} up to {of_experts.MOST_FASTER} tokens, / {of_experts.FACTORS[1]} beyond."""


def summary(measured: Measured, links: Linker) -> Iterator[str]:
    """Asked over ours."""
    if not measured.experts:
        return
    yield _SUMMARY
    for path, one in measured.experts.items():
        yield f"{describe(one.run)}; {links.link('results', path)}"
        yield of_experts.summary_table(one)


def details(measured: Measured, links: Linker) -> Iterator[str]:
    """All times."""
    for path, one in measured.experts.items():
        yield f"{describe(one.run)}; {links.link('results', path)}"
        yield of_experts.table(one)
