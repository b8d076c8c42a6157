"""The versions of VQ-LLM's table IV of products with codebooks, beside ours: a table of times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .cases import ABLATED, BOOK_KINDS, VERSIONS, Shape, version_name
from .report import markdown
from .results import Results

PAPERS_MEAN: Final = 1 - 0.4613
"""The paper's best versions take so much of the time of GC, on average of its products and attention, on an RTX 4090
(VQ-LLM, section VII-B)."""
OURS: Final = "lowlp"
_ABSENT: Final = "no time"


def ablation_table(results: Results) -> str:
    """Microseconds of each version and of ours, and what part of the time of GC that is; '' where none was measured."""
    rows = []
    for kind, shape, m in measured_products(results):
        of_gc = us_of(results, kind, VERSIONS[0], shape, m)
        cells = [part_cell(us_of(results, kind, version, shape, m), of_gc) for version in (*VERSIONS, "")]
        rows.append([BOOK_KINDS[kind].label, str(shape), str(m), *cells])
    names = [f"{version.upper()}:" for version in VERSIONS]
    return markdown(["what:", "N x K:", "M", *names, f"{OURS}:"], rows) if rows else ""


def measured_products(results: Results) -> Iterator[tuple[str, Shape, int]]:
    """The products of which a version has a row."""
    found = dict.fromkeys((row.kind, row.shape, row.m) for row in results.rows if row.who == "lowlp")
    bases = {version_name(kind, version): kind for kind in ABLATED for version in VERSIONS}
    yield from dict.fromkeys((bases[kind], shape, m) for kind, shape, m in found if kind in bases)


def us_of(results: Results, kind: str, version: str, shape: Shape, m: int) -> float | None:
    """Microseconds of a version of the paper, or of ours, ''; None where it has no time."""
    return results.time("lowlp", version_name(kind, version), shape, m)


def part_cell(us: float | None, of_gc: float | None) -> str:
    """Microseconds, and what part of the time of GC that is."""
    if us is None:
        return _ABSENT
    return f"{us:.4g}" if of_gc is None else f"{us:.4g} ({us / of_gc:.2f})"
