"""Times of drawn problems as tables in Markdown, for a terminal and for the page."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from lowlp.benchmarks.report import markdown

from .judging import (
    INEXACT_COST,
    INEXACT_OVER_TORCH,
    RANGES,
    SMALL_GROUPS_COST,
    Judged,
    RowsRange,
    groups_of,
    judged,
    mean_of,
    worst,
)
from .model_results import ModelResults

WORST: Final = 10


def section(found: ModelResults) -> Iterator[str]:
    """All that is to be said of a run, paragraph by paragraph."""
    cells = judged(found)
    had, apart = [cell for cell in cells if not cell.is_apart], [cell for cell in cells if cell.is_apart]
    exact = [cell for cell in had if cell.kind.is_scaled_exactly]
    yield f"{len(cells)} of {len(found.problems)} problems have times, {len(had)} of these beside humming."
    yield f"Kinds that humming has: its or torch's time, whichever is less, over ours.\n\n{by_rows(exact)}"
    yield (
        "Kinds that humming has whose scales the activation type does not hold (f32, two levels, other types): their "
        f"weights are made in f32 and rounded once.\n\n{by_rows_inexact(had)}"
    )
    yield f"Kinds that humming lacks, or failed with.\n\n{by_rows_apart(apart)}"
    yield (
        f"Groups of 16 and 32: our time over that of groups of 128 and the bytes that smaller groups add. At most "
        f"{SMALL_GROUPS_COST} is asked for.\n\n{small_groups(cells)}"
    )
    yield f"By kind, over the fastest peer, torch or humming.\n\n{by_kind(cells)}"
    yield f"The {WORST} worst.\n\n{worst_cells(cells)}"
    lines = problems(found)
    if lines:
        yield "What has no time:\n\n" + "\n".join(f"- {line}" for line in lines)


def by_rows(cells: Sequence[Judged]) -> str:
    """Means by range of M, of kinds that humming has; bold where something is missed."""
    rows = []
    for one in RANGES:
        inside = _within(cells, one)
        plain, required = mean_of(inside, lambda cell: cell.plain), mean_of(inside, lambda cell: cell.required)
        ratio = mean_of(inside, lambda cell: cell.ratio)
        rows.append(
            [
                str(one),
                str(plain.count),
                _ratio(plain.mean),
                _ratio(required.mean, 1.0),
                f"{one.factor:.2f}x",
                _ratio(ratio.least, one.worst),
                f"{one.worst:.2f}",
            ]
        )
    head = ["M:", "problems", "plain", "required / ours", "factor", "worst", "at least"]
    return markdown(head, rows)


def means_of_runs(runs: Sequence[ModelResults]) -> str:
    """Means by range of M of several runs, a column each, of kinds that humming has whose scales the activation type
    holds: 'required / ours (plain; worst; problems)', bold where something is missed."""
    found = [[cell for cell in judged(run) if not cell.is_apart and cell.kind.is_scaled_exactly] for run in runs]
    rows = []
    for one in RANGES:
        texts = [str(one), f"{one.factor:.2f}x", f"{one.worst:.2f}"]
        for cells in found:
            inside = _within(cells, one)
            plain, required = mean_of(inside, lambda cell: cell.plain), mean_of(inside, lambda cell: cell.required)
            least = mean_of(inside, lambda cell: cell.ratio).least
            numbers = f"{_ratio(required.mean, 1.0)} ({_ratio(plain.mean)}; {_ratio(least, one.worst)}; {plain.count})"
            texts.append(numbers if plain.count else "none")
        rows.append(texts)
    columns = [f"{run.seed}, {run.run.gpu.removeprefix('NVIDIA ')}" for run in runs]
    return markdown(["M:", "factor", "worst may be", *columns], rows)


def by_rows_inexact(cells: Sequence[Judged]) -> str:
    """Of scales that the activation type does not hold, by range of M: over the best peer, what they cost of our groups
    of 128 beyond the bytes that they add, and over torch; bold where a limit is missed."""
    rows = []
    for one in RANGES:
        inside = [cell for cell in _within(cells, one) if not cell.kind.is_scaled_exactly]
        plain, torch = mean_of(inside, lambda cell: cell.plain), mean_of(inside, lambda cell: cell.over_torch)
        costs = [cost for cell in inside if (cost := cell.small_groups_cost) is not None]
        cost = mean_of(inside, lambda cell: cell.small_groups_cost).mean
        most = next((most for rows_, most in INEXACT_COST if one.least <= rows_), None)
        least = None if most else INEXACT_OVER_TORCH
        rows.append(
            [
                str(one),
                str(plain.count),
                _ratio(plain.mean),
                _ratio(plain.least),
                str(len(costs)),
                _cost(cost, most),
                _cost(max(costs, default=None), most),
                "" if most is None else f"{most:.2f}x",
                _ratio(torch.mean, least),
            ]
        )
    head = ["M:", "problems", "over the best peer", "worst", "with a twin", "over our groups of 128", "worst"]
    return markdown([*head, "at most", "over torch"], rows)


def by_rows_apart(cells: Sequence[Judged]) -> str:
    """Means by range of M, of kinds that humming lacks: against torch and against our groups of 128."""
    rows = []
    for one in RANGES:
        inside = _within(cells, one)
        torch, twin = mean_of(inside, lambda cell: cell.over_torch), mean_of(inside, lambda cell: cell.over_twin)
        rows.append(
            [
                str(one),
                str(torch.count),
                _ratio(torch.mean),
                _ratio(torch.least),
                str(twin.count),
                _ratio(twin.mean),
                _ratio(twin.least),
            ]
        )
    head = ["M:", "problems", "over torch", "worst", "with a twin", "over our groups of 128", "worst of these"]
    return markdown(head, rows)


def small_groups(cells: Sequence[Judged]) -> str:
    """What groups of 16 and 32 cost, by range of M; scales that the activation type does not hold apart."""
    rows = []
    for one in RANGES:
        inside = _within(cells, one)
        exact = [cell for cell in inside if cell.kind.is_scaled_exactly]
        wide = [cell for cell in inside if not cell.kind.is_scaled_exactly]
        texts = [str(one)]
        for part in (exact, wide):
            costs = [cost for cell in part if (cost := cell.small_groups_cost) is not None]
            mean = mean_of(part, lambda cell: cell.small_groups_cost)
            texts += [str(mean.count), _cost(mean.mean), _cost(max(costs, default=None))]
        rows.append(texts)
    head = ["M:", "problems", "mean", "worst", "of other scales", "mean", "worst"]
    return markdown(head, rows)


def by_kind(cells: Sequence[Judged]) -> str:
    """Means by each field of the kinds, of few rows and of many."""
    rows = []
    for field, value, inside in groups_of(cells):
        texts = [field, value]
        for part in _by_size(inside):
            mean = mean_of(part, lambda cell: cell.plain)
            texts += [str(mean.count), _ratio(mean.mean), _ratio(mean.least)]
        rows.append(texts)
    sizes = ("M to 64", "M to 512", "M above")
    return markdown(["by:", "", *(text for size in sizes for text in (size, "mean", "worst"))], rows)


def _by_size(cells: Sequence[Judged]) -> list[list[Judged]]:
    tests: list[Callable[[int], bool]] = [lambda m: m <= 64, lambda m: 64 < m <= 512, lambda m: m > 512]
    return [[cell for cell in cells if test(cell.problem.m)] for test in tests]


def worst_cells(cells: Sequence[Judged], count: int = WORST) -> str:
    """The problems of least ratio, with what the estimate thought of them."""
    rows = []
    for cell in worst(cells, count):
        assert cell.rival is not None, "rated problems have a rival"
        name, rival_us = cell.rival
        ours_us, again = cell.ours_us, ""
        if cell.turns is not None:
            again = "in turns"
            ours_us, rival_us = statistics.median(cell.turns.ours_us), statistics.median(cell.turns.rival_us)
        estimate, off = cell.problem.estimated_us, cell.over_estimate
        rows.append(
            [
                cell.problem.kind,
                str(cell.problem.shape),
                str(cell.problem.m),
                _us(ours_us),
                f"{_us(rival_us)} {name}",
                _ratio(cell.ratio, cell.range.worst if cell.kind.is_scaled_exactly else None),
                again,
                "none" if estimate is None else _us(estimate),
                "" if off is None else f"{off:.2f}",
                cell.problem.by,
                cell.problem.products,
            ]
        )
    head = ["kind:", "N x K:", "M", "ours", "rival", "ratio", "again:", "estimate", "ours / estimate", "chosen by:"]
    return markdown([*head, "products:"], rows)


def problems(found: ModelResults) -> list[str]:
    """A line for each time that is lacking; ours first."""
    rows = sorted((row for row in found.results.rows if row.us is None), key=lambda row: row.who != "lowlp")
    return [f"{row.who} {row.kind} {row.shape} M={row.m}: {row.problem}" for row in rows]


def _within(cells: Sequence[Judged], rows: RowsRange) -> list[Judged]:
    return [cell for cell in cells if cell.problem.m in rows]


def _ratio(value: float | None, least: float | None = None) -> str:
    """Two digits, rounded down so that what is missed never reads as met; bold where it is missed."""
    if value is None:
        return ""
    text = f"{int(value * 100) / 100:.2f}"
    return f"**{text}**" if least is not None and value < least else text


def _cost(value: float | None, most: float | None = SMALL_GROUPS_COST) -> str:
    """Two digits, bold where it is more than it may be."""
    if value is None:
        return ""
    return f"**{value:.2f}**" if most is not None and value > most else f"{value:.2f}"


def _us(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"
