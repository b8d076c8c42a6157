"""One run: what is measured in which order, and the file that has it after each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from lowlp.benchmarks.results import Run
from lowlp.benchmarks.worker import deadline_after

from .cases import Case
from .results import HUMMING, LOOP, OURS, TORCH, ExpertsResults, ExpertsRow

PEERS: Final = {"torch": TORCH, "humming": HUMMING, "loop": LOOP}
Item = tuple[str, Case]


def items_of(cases: list[Case], peers: tuple[str, ...]) -> list[Item]:
    """Those of the same weights side by side, torch's once for all kinds of ours."""
    items: list[Item] = []
    seen = set()
    for place, case in enumerate(cases):
        items.append((OURS, case))
        items += [(LOOP, case)] if "loop" in peers else []
        following = cases[place + 1] if place + 1 < len(cases) else None
        if "humming" in peers and (following is None or not _is_alike(following, case)):
            items += [(HUMMING, other) for other in cases if _is_alike(other, case)]
        weights = (case.model, case.product)
        is_last = following is None or (following.model, following.product) != weights
        if is_last and "torch" in peers and weights not in seen:
            seen.add(weights)
            items += [(TORCH, other) for other in cases if _is_alike(other, case)]
    return items


def _is_alike(case: Case, other: Case) -> bool:
    """Whether it has the same weights."""
    return (case.model, case.product, case.kind) == (other.model, other.product, other.kind)


def run(
    items: list[Item],
    of_run: Run,
    out: Path,
    measure: Callable[[str, Case], ExpertsRow],
    show: Callable[[int, int, str], None],
    deadline_s: float | None = None,
) -> ExpertsResults:
    """Measures all and writes `out` after each.

    measure     times an item; what it raises becomes the problem of the row
    show        called with (items done, of how many, what is measured)
    deadline_s  after so many seconds nothing further is begun; None: all is
    """
    results = ExpertsResults(of_run)
    is_late = deadline_after(deadline_s)
    for done, (who, case) in enumerate(items):
        if is_late():
            of_run.notes.append("the deadline came before all was measured")
            break
        show(done, len(items), f"{who} {case}")
        try:
            row = measure(who, case)
        except Exception as error:
            # Memory that a case needs, or a peer that is not there, costs its rows and no others.
            row = ExpertsRow(who, case, problem=f"{type(error).__name__}: {error}".splitlines()[0][:300])
        results.rows.append(row)
        results.save(out)
    show(len(items), len(items), "done")
    results.save(out)
    return results
