"""Requirements held against results: one cell for each requirement and M, the geometric mean over all shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .cases import KINDS, SHAPES, Shape
from .floor import Ceilings, required_us
from .requirements import FRACTION_ROWS, LARGEST, REQUIREMENTS, Requirement, Timed, least_fraction
from .results import Results

MET, MISSED, INCOMPLETE, ABSENT = "met", "missed", "incomplete", "not measured"


@dataclass(frozen=True)
class Cell:
    """What was measured for one requirement at one M.

    value    geometric mean over the shapes of required time / our time; None where no shape has both times
    shapes   that value of each shape that has both times
    missing  the shapes that lack one, and whose
    """

    requirement: Requirement
    m: int
    value: float | None
    shapes: dict[Shape, float]
    missing: dict[Shape, str]

    @property
    def status(self) -> str:
        """'met' only where all shapes are there."""
        if self.value is None:
            return ABSENT
        if self.missing:
            return INCOMPLETE
        return MET if self.value >= 1 else MISSED


def geometric_mean(values: Iterable[float]) -> float | None:
    """None of no values."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else None


def cells(results: Results, shapes: tuple[Shape, ...] = SHAPES) -> list[Cell]:
    """All cells, in the order of the requirements."""
    return [cell(results, requirement, m, shapes) for requirement in REQUIREMENTS for m in requirement.factors]


def cell(results: Results, requirement: Requirement, m: int, shapes: tuple[Shape, ...] = SHAPES) -> Cell:
    """One requirement at one M."""
    ratios: dict[Shape, float] = {}
    missing: dict[Shape, str] = {}
    for shape in shapes:
        found = _ratio(results, requirement, shape, m)
        if isinstance(found, str):
            missing[shape] = found
        else:
            ratios[shape] = found
    return Cell(requirement, m, geometric_mean(ratios.values()), ratios, missing)


def _ratio(results: Results, requirement: Requirement, shape: Shape, m: int) -> float | str:
    """Required time / our time, or whose time is missing."""
    ours = results.find("lowlp", requirement.kind, shape, m)
    wanted = [Timed("lowlp", requirement.kind), *requirement.against]
    missing = [timed for timed in wanted if results.time(timed.who, timed.kind, shape, m) is None]
    if missing or ours is None or ours.us is None:
        return ", ".join(f"{timed.who} {timed.kind}" for timed in missing)
    run = results.run_of(ours)
    if run.empty_us is None:
        return "empty kernel"
    floor_us = Ceilings(run.read_bytes_per_s).floor_us(KINDS[requirement.kind], shape, m)
    peer_us = min(results.time(timed.who, timed.kind, shape, m) or math.inf for timed in requirement.against)
    return required_us(peer_us, requirement.factor(shape, m), run.empty_us, floor_us) / ours.us


@dataclass(frozen=True)
class Fraction:
    """How much of the read bandwidth a kernel uses at the largest shape; `least` is asked for, or nothing."""

    kind: str
    m: int
    value: float | None
    least: float | None

    @property
    def status(self) -> str:
        if self.value is None:
            return ABSENT
        return "" if self.least is None else MET if self.value >= self.least else MISSED


def fractions(results: Results) -> list[Fraction]:
    """Of all kinds, at the M at which something is asked."""
    return [fraction(results, name, LARGEST, m) for name in KINDS for m in FRACTION_ROWS]


def fraction(results: Results, name: str, shape: Shape, m: int) -> Fraction:
    """The time of moving all bytes once at the read bandwidth, over the time measured."""
    kind = KINDS[name]
    row = results.find("lowlp", name, shape, m)
    value = None
    if row is not None and row.us is not None:
        value = Ceilings(results.run_of(row).read_bytes_per_s).bytes_us(kind, shape, m) / row.us
    return Fraction(name, m, value, least_fraction(kind.bits))


def speedup_over_best(
    results: Results, name: str, rivals: Sequence[Timed], m: int, shapes: tuple[Shape, ...] = SHAPES
) -> float | None:
    """The geometric mean over the shapes of the least of the rivals' times over ours; None unless all shapes have
    ours and the first rival's."""
    ratios = []
    for shape in shapes:
        ours = results.time("lowlp", name, shape, m)
        theirs = [results.time(rival.who, rival.kind, shape, m) for rival in rivals]
        if ours is None or theirs[0] is None:
            return None
        ratios.append(min(us for us in theirs if us is not None) / ours)
    return geometric_mean(ratios)


def speedup(results: Results, name: str, against: Timed, m: int, shapes: tuple[Shape, ...] = SHAPES) -> float | None:
    """The geometric mean over the shapes of the peer's time over ours; None unless all shapes have both."""
    ratios = []
    for shape in shapes:
        ours, theirs = results.time("lowlp", name, shape, m), results.time(against.who, against.kind, shape, m)
        if ours is None or theirs is None:
            return None
        ratios.append(theirs / ours)
    return geometric_mean(ratios)
