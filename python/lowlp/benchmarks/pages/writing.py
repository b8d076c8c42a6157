"""Writes docs/performance.md, a page that a reader gets through, and a page of details for each subject."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final

from lowlp.benchmarks.results import Results

from . import activations, attention, codebooks, decoding, drawn, experts, weights
from .measured import Linker, Measured, describe_all

DETAILS: Final = "measurements"
"""The folder of the details, beside the page."""
_SUBJECTS: Final[dict[str, ModuleType]] = {
    "weights": weights,
    "random-problems": drawn,
    "codebooks": codebooks,
    "attention": attention,
    "quantised-activations": activations,
    "experts": experts,
    "models": decoding,
}
_METHOD = """\
Codes, scales and activations are random
over the whole tensors. A time is the median over repeats of one call's time on the device, from event to event. Each
repeat starts with a cold, clean L2: a buffer of 256 MiB is read first. One function times all libraries. A result is
first compared with float64, in memory that was filled with NaN: ours may be off by 2e-3 (relative Frobenius), a
peer's by 1e-2 of the meaning of its own weights. What fails has no time."""


def write_report(results: Results, data: Path, page: Path) -> list[Path]:
    """Writes the plots beside the results' file, the page, and its details; returns what was written.

    data   the results' file, NAME.json; plots go beside it. What else lies there under its name is shown too: notes in
           Markdown, NAME.notes.md and NAME.SUBJECT.notes.md, and results on drawn problems, NAME.models-*.json, of
           attention, quantised activations, experts and whole models, NAME.attention-*.json and so on
    page   docs/performance.md; details go to measurements/SUBJECT.md beside it

    Raises `LowlpValueError` for files beside it that hold other things than their names say.
    """
    measured = Measured.beside(results, data)
    texts = {**measured.pictures(), **pages(measured, page)}
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def pages(measured: Measured, page: Path) -> dict[Path, str]:
    """The texts of `page` and of its details, by their paths. The same results give the same texts."""
    folder = page.parent / DETAILS
    found = {}
    for name, subject in _SUBJECTS.items():
        parts = [*subject.details(measured, Linker(folder)), measured.notes.get(name, "")]
        if name != "weights" and not any(part.strip() for part in parts):
            continue
        above = (
            f"Details of {Linker(folder).link('Performance', page)}, written by `lowlp bench --report`; do not edit."
        )
        found[folder / f"{name}.md"] = _joined([f"# {subject.TITLE}", above, *parts])
    return {page: _joined(_parts(measured, page, found)), **found}


def _parts(measured: Measured, page: Path, details: dict[Path, str]) -> Iterator[str]:
    links = Linker(page.parent)
    gpus = list(dict.fromkeys(run.gpu for run in measured.results.runs))
    yield "# Performance" + (f" on one {gpus[0]}" if len(gpus) == 1 else "")
    yield f"Written by `lowlp bench --report` from {links.link('the results', measured.data)}; do not edit."
    yield "## How it was measured"
    yield _METHOD
    yield describe_all(measured.results.runs)
    for name, subject in _SUBJECTS.items():
        parts = list(subject.summary(measured, links))
        if not parts:
            continue
        yield f"## {subject.TITLE}"
        yield from parts
        path = page.parent / DETAILS / f"{name}.md"
        if path in details:
            yield f"{links.link('Details', path)}."
    if notes := measured.notes.get("", ""):
        yield "## What limits them"
        yield notes


def _joined(parts: Iterator[str] | list[str]) -> str:
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
