"""The versions of VQ-LLM's table IV of products with codebooks, beside ours: a table of times, and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from .cases import ABLATED, BOOK_KINDS, VERSIONS, Shape, version_name
from .report import markdown
from .requirements import LARGEST
from .results import Results

if TYPE_CHECKING:
    from lowlp.drawing.picture import Picture

PAPERS_MEAN: Final = 1 - 0.4613
"""The paper's best versions take so much of the time of GC, on average of its products and attention, on an RTX 4090
(VQ-LLM, section VII-B)."""
_OURS: Final = "lowlp"
_ABSENT: Final = "no time"


def ablation_table(results: Results) -> str:
    """Microseconds of each version and of ours, and what part of the time of GC that is; '' where none was measured."""
    rows = []
    for kind, shape, m in _measured(results):
        of_gc = _us(results, kind, VERSIONS[0], shape, m)
        cells = [part_cell(_us(results, kind, version, shape, m), of_gc) for version in (*VERSIONS, "")]
        rows.append([BOOK_KINDS[kind].label, str(shape), str(m), *cells])
    names = [f"{version.upper()}:" for version in VERSIONS]
    return markdown(["what:", "N x K:", "M", *names, f"{_OURS}:"], rows) if rows else ""


def ablation_picture(results: Results) -> Picture | None:
    """Bars of the same parts at the largest shape, a group for each product; None where none was measured."""
    from .charts import COLORS, Series, bars  # drawings need layouts, which are compiled

    found = [case for case in _measured(results) if _us(results, case[0], VERSIONS[0], *case[1:])]
    cases = [case for case in found if case[1] == LARGEST]
    if not cases:
        return None

    def part(version: str, kind: str, shape: Shape, m: int) -> float | None:
        us, of_gc = _us(results, kind, version, shape, m), _us(results, kind, VERSIONS[0], shape, m)
        return us / of_gc if us and of_gc else None

    series = [
        Series(version.upper() or _OURS, tuple(part(version, *case) for case in cases), color)
        for version, color in zip((*VERSIONS[1:], ""), COLORS, strict=True)
    ]
    labels = [f"{BOOK_KINDS[kind].label}, M = {m}" for kind, _, m in cases]
    title = f"Part of the time of GC, N x K = {LARGEST}; the line: the paper's best versions on average, on an RTX 4090"
    return bars(title, labels, series, rule=PAPERS_MEAN, step=0.25)


def _measured(results: Results) -> Iterator[tuple[str, Shape, int]]:
    """The products of which a version has a row."""
    found = dict.fromkeys((row.kind, row.shape, row.m) for row in results.rows if row.who == "lowlp")
    bases = {version_name(kind, version): kind for kind in ABLATED for version in VERSIONS}
    yield from dict.fromkeys((bases[kind], shape, m) for kind, shape, m in found if kind in bases)


def _us(results: Results, kind: str, version: str, shape: Shape, m: int) -> float | None:
    return results.time("lowlp", version_name(kind, version), shape, m)


def part_cell(us: float | None, of_gc: float | None) -> str:
    """Microseconds, and what part of the time of GC that is."""
    if us is None:
        return _ABSENT
    return f"{us:.4g}" if of_gc is None else f"{us:.4g} ({us / of_gc:.2f})"
