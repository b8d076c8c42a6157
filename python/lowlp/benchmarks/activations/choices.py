"""How often the path that is taken is slower than another one that was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from lowlp.benchmarks.report import markdown
from lowlp.benchmarks.results import Results

from .chosen import chosen_path, packed_path
from .targets import MOST_OVER_OTHER_PATHS, Cell, cells

_HALVES: Final = "f16"
_FEW: Final = (1, 16)
_ALL: Final = (1, 4096)


class Count(NamedTuple):
    """Of cells with other paths: those whose path takes more than 5 % longer than the fastest, and the worst ratio."""

    of: int
    bad: int
    worst: float


def counted(found: Iterable[Cell], path_of: Callable[[Cell], str], with_halves: bool) -> Count:
    """How the paths of cells did.

    path_of      the path that is taken; cells that have no time of it are not counted
    with_halves  whether f16 counts as another path; only cells that have it do then
    """
    over = []
    for cell in found:
        taken = path_of(cell)
        others = [path for path in cell.times if path != taken and (path != _HALVES or with_halves)]
        if taken in cell.times and others and (_HALVES in cell.times or not with_halves):
            best = min(cell.times[path] for path in (taken, *others))
            over.append(cell.times[taken] / best)
    return Count(len(over), sum(ratio > MOST_OVER_OTHER_PATHS for ratio in over), max(over, default=1.0))


def choices_table(results: Results) -> str:
    """A line for each way in which weights may be packed, '' where no cell has several paths."""
    every = cells(results)
    with_planes = [cell for cell in every if "planes" in cell.kind.paths]
    few = [cell for cell in every if _FEW[0] <= cell.m <= _FEW[1]]
    ways: list[tuple[str, list[Cell], Callable[[Cell], str]]] = [
        (
            "for the rows of each cell",
            every,
            lambda cell: chosen_path(cell.kind, cell.shape, cell.m, tuple(cell.times)),
        ),
        (f"once, for {_FEW[0]} to {_FEW[1]} rows", few, lambda cell: packed_path(cell.kind, cell.shape, _FEW)),
        (f"once, for {_ALL[0]} to {_ALL[1]} rows", every, lambda cell: packed_path(cell.kind, cell.shape, _ALL)),
        ("as bytes already", with_planes, lambda _: "s8"),
        ("as planes already", with_planes, lambda _: "planes"),
    ]
    lines = []
    for title, some, path_of in ways:
        exact, halves = (counted(some, path_of, with_halves) for with_halves in (False, True))
        if exact.of or halves.of:
            lines.append([title, *_texts(exact), *_texts(halves)])
    if not lines:
        return ""
    return markdown(["weights are packed:", "planes, bytes", "worst", "f16 too", "worst"], lines)


def _texts(count: Count) -> tuple[str, str]:
    return (f"{count.bad} of {count.of}", f"{count.worst:.2f}") if count.of else ("", "")
