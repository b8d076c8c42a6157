"""The versions of VQ-LLM's table IV of attention over codebooks, beside ours: a table of times, and a picture."""

from __future__ import annotations

from typing import Final

from lowlp.benchmarks.ablation import PAPERS_MEAN, part_cell
from lowlp.benchmarks.charts import COLORS, Series, bars
from lowlp.benchmarks.report import markdown
from lowlp.drawing.picture import Picture
from lowlp.kernels.attention.spec import VERSIONS

from .cases import Case
from .results import OURS, AttentionResults

VERSIONS_END: Final = "-versions.svg"
"""What the picture's name has in place of the results' '.json'."""


def versions_table(results: AttentionResults) -> str:
    """Microseconds of each version and of ours, and what part of the time of GC that is; '' where none was measured."""
    rows = []
    for kind, case in _measured(results):
        of_gc = _us(results, kind, case, VERSIONS[0])
        cells = [part_cell(_us(results, kind, case, version), of_gc) for version in (*VERSIONS, "")]
        rows.append([kind, str(case), *cells])
    names = [f"{version.upper()}:" for version in VERSIONS]
    return markdown(["cache:", "what:", *names, f"{OURS}:"], rows) if rows else ""


def versions_picture(results: AttentionResults) -> Picture | None:
    """Bars of the same parts, a group for each case; None where none was measured."""
    cases = [found for found in _measured(results) if _us(results, *found, VERSIONS[0])]
    if not cases:
        return None

    def part(version: str, kind: str, case: Case) -> float | None:
        us, of_gc = _us(results, kind, case, version), _us(results, kind, case, VERSIONS[0])
        return us / of_gc if us and of_gc else None

    series = [
        Series(version.upper() or OURS, tuple(part(version, *found) for found in cases), color)
        for version, color in zip((*VERSIONS[1:], ""), COLORS, strict=True)
    ]
    labels = [f"{kind}, {case.batch} x {case.tokens}" for kind, case in cases]
    title = "Attention, part of the time of GC; the line: the paper's best versions on average, on an RTX 4090"
    return bars(title, labels, series, rule=PAPERS_MEAN, step=0.25)


def _measured(results: AttentionResults) -> list[tuple[str, Case]]:
    """Kinds and cases of which a version has a row."""
    return list(dict.fromkeys((row.kind, row.case) for row in results.rows if row.variant in VERSIONS))


def _us(results: AttentionResults, kind: str, case: Case, version: str) -> float | None:
    row = results.find(OURS, kind, case, version)
    return None if row is None else row.us
