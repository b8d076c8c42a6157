"""Tables of `lowlp bench --activations`: section by section what was required, what was reached, and by which path."""

from __future__ import annotations

from collections.abc import Sequence

from lowlp.benchmarks.report import markdown
from lowlp.benchmarks.results import Results

from .cases import KINDS, OURS
from .choices import choices_table
from .chosen import chosen_path
from .targets import OVER_HALVES, TARGETS, Cell, cells, is_well_chosen, mean, over_halves

MET, MISSED, ABSENT = "met", "missed", "-"


def required_table(results: Results) -> str:
    """By kind and M, required over ours: the geometric mean over shapes, of the path that `linear` takes. From 1 on it
    is met. In brackets the factor asked; plain, peers over ours without floors."""
    every = cells(results)
    rows_of_m = sorted({cell.m for cell in every})
    lines = []
    for name, kind in KINDS.items():
        found = {m: _required([cell for cell in every if cell.kind == kind and cell.m == m]) for m in rows_of_m}
        if any(found.values()):
            lines.append([kind.title, *(found[m] or ABSENT for m in rows_of_m)])
            assert name in TARGETS
    return markdown(["required / ours:", *(f"M = {m}" for m in rows_of_m)], lines) if lines else ""


def _required(found: Sequence[Cell]) -> str:
    parts = []
    plain = []
    for cell in found:
        path = chosen_path(cell.kind, cell.shape, cell.m, tuple(cell.times))
        over = cell.over_required(path)
        if over is not None and cell.rival is not None:
            parts.append(1 / over)
            plain.append(cell.rival[1] / cell.times[path])
    value, ratio = mean(parts), mean(plain)
    if value is None or ratio is None:
        return ""
    factor = TARGETS[found[0].kind.name].factors.get(found[0].m)
    text = f"{value:.2f} ({ratio:.2f} of {factor})"
    return text if value >= 1 else f"**{text} missed**"


def times_table(results: Results) -> str:
    """Microseconds of each path of ours and of the best rival, by shape and M; what `linear` takes is bold."""
    lines = []
    for cell in cells(results):
        path = chosen_path(cell.kind, cell.shape, cell.m, tuple(cell.times))
        ours = [
            "" if other not in cell.times else _us(cell.times[other], other == path)
            for other in ("planes", "s8", "fp8", "f16")
        ]
        rival = "" if cell.rival is None else f"{_us(cell.rival[1])} {' '.join(cell.rival[0])}"
        required = cell.required_us(path)
        lines.append(
            [cell.kind.title, str(cell.shape), str(cell.m), *ours, rival, "" if required is None else _us(required)]
        )
    return markdown(["kind:", "N x K:", "M", "planes", "s8", "fp8", "f16", "best rival:", "required"], lines)


def badly_chosen(results: Results) -> list[str]:
    """A line for each cell where another path of ours is more than 5 % faster than the one that is taken, and where
    that is slower than halves."""
    lines = []
    for cell in cells(results):
        path = chosen_path(cell.kind, cell.shape, cell.m, tuple(cell.times))
        if not is_well_chosen(cell, path):
            best = cell.path
            assert best is not None
            lines.append(
                f"{cell.kind.title} {cell.shape} M = {cell.m}: {path} {_us(cell.times[path])}, {best} "
                f"{_us(cell.times[best])}"
            )
    return lines


def halves_lines(results: Results) -> list[str]:
    """torch in f16 over our W2A2, where that is asked."""
    found = [(cell, over_halves(results, cell)) for cell in cells(results)]
    return [
        f"{cell.kind.title} {cell.shape} M = {cell.m}: {over:.2f} times as fast as torch f16 ({OVER_HALVES} asked)"
        for cell, over in found
        if over is not None
    ]


def problems(results: Results) -> list[str]:
    """A line for each row without a time."""
    return [f"{row.who} {row.kind} {row.shape} M = {row.m}: {row.problem}" for row in results.rows if row.us is None]


def our_problems(results: Results) -> list[str]:
    """Those of ours."""
    return [line for line in problems(results) if line.startswith(OURS)]


def text_of(results: Results) -> str:
    """All tables, what is chosen badly, and what has no time."""
    run = results.runs[-1]
    empty = "" if run.empty_us is None else f", empty kernel {_us(run.empty_us)} us"
    parts = [f"{run.gpu}, driver {run.driver}, {run.date}{empty}"]
    parts += [f"microseconds\n{times_table(results)}", f"geometric means over shapes\n{required_table(results)}"]
    if choices := choices_table(results):
        parts.append(f"cells whose path takes more than 5 % longer than another\n{choices}")
    for title, lines in (
        ("W2A2", halves_lines(results)),
        ("another path is more than 5 % faster", badly_chosen(results)),
        ("no time", problems(results)),
        ("notes", list(run.notes)),
    ):
        if lines:
            parts.append("\n".join((f"{title}:", *lines)))
    return "\n\n".join(parts)


def _us(value: float, is_bold: bool = False) -> str:
    text = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return f"**{text}**" if is_bold else text
