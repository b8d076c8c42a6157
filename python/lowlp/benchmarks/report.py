"""Results as a report: tables in Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from .acceptance import ABSENT, INCOMPLETE, MISSED, Cell, cells, fractions, speedup
from .cases import ALL_KINDS, FORMAT_KINDS, KINDS, ROWS, SHAPES, Shape
from .peers import NAMES
from .requirements import FRACTION_ROWS, Timed
from .results import PLAIN, PLAIN_RIVAL, Results

_NOTHING = ""
# Up to here a batch is one of decoding, above one of prefill.
_DECODE_ROWS = 128


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; numbers, all columns but those whose head ends in ':', are set to the right."""
    lines = [
        "| " + " | ".join(name.rstrip(":") for name in head) + " |",
        "|" + "|".join("---" if name.endswith(":") else "--:" for name in head) + "|",
    ]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def acceptance_tables(results: Results) -> list[str]:
    """All requirements, in a table for batches up to 128 rows and one for larger ones.

    A row is for a pair of weights and rival, a column for an M. One of which nothing was measured has no
    column, unless that is so of all.
    """
    return [
        table
        for columns in ([m for m in ROWS if m <= _DECODE_ROWS], [m for m in ROWS if m > _DECODE_ROWS])
        if (table := _acceptance_table(results, columns))
    ]


def _acceptance_table(results: Results, columns: Sequence[int]) -> str:
    by_row: dict[tuple[str, str], dict[int, Cell]] = {}
    for cell in cells(results):
        if cell.m in columns:
            by_row.setdefault((cell.requirement.kind, cell.requirement.text), {})[cell.m] = cell
    measured = [m for m in columns if any(m in found and found[m].value is not None for found in by_row.values())]
    columns = measured or columns
    rows = [
        [KINDS[kind].label, text, *(_cell(found[m]) if m in found else _NOTHING for m in columns)]
        for (kind, text), found in by_row.items()
    ]
    return markdown(["what:", "against:", *(f"M = {m}" for m in columns)], rows)


def _cell(cell: Cell) -> str:
    """The value, with the factors that are required; bold where it is missed, on all shapes or those that there are."""
    if cell.value is None:
        return ABSENT
    asked = f"({_factors(cell)})"
    if cell.status == MISSED:
        return f"**{_down(cell.value)} missed** {asked}"
    if cell.status == INCOMPLETE:
        count = len(cell.shapes)
        text = f"{_down(cell.value)} on {count} of {count + len(cell.missing)} shapes"
        return f"{text if cell.value >= 1 else f'**{text}**'} {asked}"
    return f"{_down(cell.value)} {asked}"


def _down(value: float) -> str:
    """Rounded down to three digits, so that what is missed never reads as 1."""
    return f"{math.floor(value * 1000) / 1000:.3f}"


def _factors(cell: Cell) -> str:
    """'1.6x; 1.7x at 57344x8192'."""
    general = cell.requirement.factors[cell.m]
    special = {shape: factors[cell.m] for shape, factors in cell.requirement.special.items() if cell.m in factors}
    return "; ".join([f"{general:.3g}x", *(f"{factor:.3g}x at {shape}" for shape, factor in special.items())])


def summary(results: Results) -> dict[str, int]:
    """How many cells have which status."""
    return Counter(cell.status for cell in cells(results))


def reached_so_far(results: Results) -> int:
    """How many incomplete cells are at 1 or more on the shapes that were measured."""
    return sum(cell.status == INCOMPLETE and (cell.value or 0.0) >= 1 for cell in cells(results))


def fraction_summary(results: Results) -> dict[str, int]:
    """How many fractions of the floor of which a least is asked for have which status."""
    return Counter(fraction.status for fraction in fractions(results) if fraction.least is not None)


def missed(results: Results) -> list[str]:
    """A line for each missed cell, with its worst shape."""
    lines = []
    for cell in cells(results):
        if cell.value is not None and cell.status == MISSED:
            worst = min(cell.shapes, key=lambda shape: cell.shapes[shape])
            lines.append(
                f"{KINDS[cell.requirement.kind].label} against {cell.requirement.text}, M = {cell.m}: "
                f"{_down(cell.value)}; worst {worst} with {_down(cell.shapes[worst])}"
            )
    return lines


def fraction_table(results: Results) -> str:
    """Fractions of the floor at the largest shape."""
    found = {(fraction.kind, fraction.m): fraction for fraction in fractions(results)}
    rows = []
    for name, kind in KINDS.items():
        least = found[name, FRACTION_ROWS[0]].least
        texts = []
        for m in FRACTION_ROWS:
            fraction = found[name, m]
            text = ABSENT if fraction.value is None else _down(fraction.value)
            texts.append(f"**{text} missed**" if fraction.status == MISSED else text)
        rows.append([kind.label, "" if least is None else f"{least:.2f}", *texts])
    return markdown(["what:", "at least", *(f"M = {m}" for m in FRACTION_ROWS)], rows)


def speedup_table(results: Results, who: str) -> str:
    """The peer's times over ours, geometric means over all shapes; '' where there is none."""
    rows = []
    for name, kind in {**KINDS, **FORMAT_KINDS}.items():
        against = Timed(who, "f16" if who == "torch" else name)
        values = [speedup(results, name, against, m) for m in ROWS]
        if any(value is not None for value in values):
            rows.append([kind.label, *("" if value is None else f"{value:.2f}" for value in values)])
    return markdown(["what:", *(f"M = {m}" for m in ROWS)], rows) if rows else ""


def times_table(results: Results, shape: Shape) -> str:
    """All medians at one shape, in microseconds; '' where there are none."""
    order = ["lowlp", *NAMES]
    found: dict[tuple[int, int, str, str], dict[int, str]] = {}
    kinds = ["f16", *ALL_KINDS]
    for row in results.rows:
        if row.shape != shape or row.kind not in kinds or row.who not in order:
            continue
        key = (kinds.index(row.kind), order.index(row.who), row.kind, row.who)
        found.setdefault(key, {})[row.m] = "failed" if row.us is None else _microseconds(row.us)
    rows = [
        [ALL_KINDS[kind].label if kind in ALL_KINDS else kind, who, *(times.get(m, "") for m in ROWS)]
        for (_, _, kind, who), times in sorted(found.items())
    ]
    return markdown(["what:", "whose:", *(f"M = {m}" for m in ROWS)], rows) if rows else ""


def plain_table(results: Results) -> str:
    """Medians of a kernel without layouts, and how much longer than `linear` it takes; '' where there are none."""
    found: dict[tuple[str, Shape], dict[int, str]] = {}
    for row in results.rows:
        rival = results.time(PLAIN_RIVAL, row.kind, row.shape, row.m)
        if row.who == PLAIN:
            text = "failed" if row.us is None or rival is None else f"{_microseconds(row.us)} ({row.us / rival:.2f}x)"
            found.setdefault((row.kind, row.shape), {})[row.m] = text
    columns = sorted({m for times in found.values() for m in times})
    rows = [
        [KINDS[kind].label, str(shape), *(times.get(m, _NOTHING) for m in columns)]
        for (kind, shape), times in found.items()
    ]
    return markdown(["what:", "N x K:", *(f"M = {m}" for m in columns)], rows) if rows else ""


def _microseconds(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def problems(results: Results) -> list[str]:
    """A line for each row without a time; rows of one unit with the same problem share one."""
    shared: dict[tuple[str, str, Shape, str], list[int]] = {}
    for row in results.rows:
        if row.us is None:
            shared.setdefault((row.who, row.kind, row.shape, row.problem), []).append(row.m)
    return [
        f"{who} {kind} {shape}, M = {', '.join(map(str, rows))}: {problem}"
        for (who, kind, shape, problem), rows in shared.items()
    ]


def short_table(results: Results) -> str:
    """Times of the shapes that were measured, for a terminal."""
    shapes = dict.fromkeys([*SHAPES, *(row.shape for row in results.rows)])
    parts = [(shape, times_table(results, shape)) for shape in shapes]
    return "\n\n".join(f"N x K = {shape}, microseconds\n{table}" for shape, table in parts if table)
