"""Corrections of estimates by which the planner compares planes and bytes, fitted to what was measured.

    python -m lowlp.benchmarks.activations.calibration benchmarks/results/*.activations-*.json

prints them, as `lowlp.kernels.linear.planner` has them, and how the choice does on each shape when it is fitted to the
others. Needs the compiler and no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.results import Results
from lowlp.kernels.linear.measured import measured_schedules
from lowlp.kernels.linear.planner import (
    CLASSES_OF_ROWS,
    CORRECTIONS,
    Correction,
    Corrections,
    Times,
    blended,
    class_of_rows,
    corrected,
    uncorrected,
)
from lowlp.schedules.device import H200
from lowlp.weights.family_choice import LEAST_GAIN, gain_of_planes

from .cases import KINDS
from .preparing import codec_of
from .targets import MOST_OVER_OTHER_PATHS, cells, mean


class Sample(NamedTuple):
    """A problem that was measured by planes and by bytes.

    estimated  as the planner has it, without corrections
    """

    name: str
    shape: Shape
    m: int
    estimated: Times
    measured: Times


class Verdict(NamedTuple):
    """How choices did: of how many those that took more than `MOST_OVER_OTHER_PATHS` times what the fastest path took,
    the worst ratio, and the geometric mean."""

    bad: int
    of: int
    worst: float
    mean: float


def samples(every: Iterable[Results]) -> list[Sample]:
    """All that files of results have of both paths."""
    found = []
    for results in every:
        for cell in cells(results):
            if "planes" not in cell.times or "s8" not in cell.times:
                continue
            codec = codec_of(cell.kind.weights)
            shape = cell.shape
            raw = uncorrected(codec, shape.n, shape.k, cell.kind.bits, cell.m, H200, measured_schedules())
            if raw is not None:
                measured = Times(cell.times["planes"], cell.times["s8"])
                found.append(Sample(cell.kind.name, shape, cell.m, raw, measured))
    return found


def fitted(found: Sequence[Sample]) -> tuple[Corrections, ...]:
    """Corrections with the least squares of relative errors, of each class of rows; constants are not negative."""
    classes = range(len(CLASSES_OF_ROWS) + 1)
    of_class = [[one for one in found if class_of_rows(one.m) == number] for number in classes]
    return tuple(
        Corrections(
            _line([(one.estimated.planes, one.measured.planes) for one in some]),
            _line([(one.estimated.bytes, one.measured.bytes) for one in some]),
        )
        for some in of_class
    )


def _line(pairs: Sequence[tuple[float, float]]) -> Correction:
    estimated, measured = np.array(pairs).T
    rows = np.stack([estimated / measured, 1 / measured], 1)
    factor, more = np.linalg.lstsq(rows, np.ones(len(pairs)), rcond=None)[0]
    if more < 0:
        # Of small matrices it would make times of nothing.
        factor, more = float(rows[:, 0].sum() / (rows[:, 0] ** 2).sum()), 0.0
    return Correction(round(float(factor), 3), round(float(more), 2))


def judged(found: Iterable[Sample], corrections: Sequence[Corrections]) -> Verdict:
    """How the planner's choice does by these corrections."""
    over = []
    for one in found:
        kind = KINDS[one.name]
        by_rates = gain_of_planes(kind.weights.bits, kind.bits, rows=one.m)
        gain = blended(corrected(one.estimated, one.m, corrections), by_rates)
        taken = one.measured.planes if gain >= LEAST_GAIN else one.measured.bytes
        over.append(taken / min(one.measured))
    return Verdict(sum(ratio > MOST_OVER_OTHER_PATHS for ratio in over), len(over), max(over), mean(over) or 1.0)


def held_out(found: Sequence[Sample]) -> dict[Shape, Verdict]:
    """For each shape, how the choice does there by corrections that are fitted to the other shapes."""
    verdicts = {}
    for shape in dict.fromkeys(one.shape for one in found):
        others = [one for one in found if one.shape != shape]
        verdicts[shape] = judged([one for one in found if one.shape == shape], fitted(others))
    return verdicts


def main(files: Sequence[str]) -> int:
    """Prints corrections and verdicts for files of results."""
    found = samples(Results.load(Path(name)) for name in files)
    if not found:
        print("no problem was measured by planes and by bytes", file=sys.stderr)
        return 1
    for corrections in fitted(found):
        print(corrections)
    for name, verdict in (("as it is", judged(found, CORRECTIONS)), ("fitted to all", judged(found, fitted(found)))):
        print(f"{name}: {verdict}")
    for shape, verdict in held_out(found).items():
        print(f"{shape} by the others: {verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
