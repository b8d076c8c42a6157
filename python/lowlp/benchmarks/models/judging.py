"""Times of drawn problems judged: how much faster than the best peer, and against what is required.

    plain     = best peer's time / ours
    ratio     = rival's time / ours, with the rival the best peer up to 512 rows and torch above
    required  = max(rival's time / factor, empty kernel + 1.08 x floor) / ours

Kinds that humming has no kernels for are apart: they are held against torch and against our own kernel with groups of
128. So are scales that the activation type does not hold, which have limits of their own.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lowlp.benchmarks.acceptance import geometric_mean
from lowlp.benchmarks.cases import Shape, WeightKind
from lowlp.benchmarks.floor import Ceilings, required_us, weight_bytes

from .folder import Problem
from .model_results import ModelResults, Turns


@dataclass(frozen=True)
class RowsRange:
    """Numbers of rows that are judged together.

    factor  of speed over the rival that the mean must reach
    worst   the least ratio that one problem may have
    """

    least: int
    most: int
    factor: float
    worst: float

    def __contains__(self, m: int) -> bool:
        return self.least <= m <= self.most

    def __str__(self) -> str:
        return f"{self.least} to {self.most}"


RANGES: Final = (
    RowsRange(1, 16, 1.30, 0.96),
    RowsRange(17, 64, 1.20, 0.95),
    RowsRange(65, 128, 1.10, 0.93),
    RowsRange(129, 512, 1.03, 0.92),
    RowsRange(513, 8192, 1.00, 0.97),
)
DECODE_MOST: Final = 512
"""Above so many rows torch is the rival."""
SMALL_GROUPS_COST: Final = 1.12
"""What groups of 16 and 32 may cost of those of 128, beyond the bytes that they add."""
INEXACT_COST: Final = ((32, 1.12), (DECODE_MOST, 1.4))
"""What scales that the activation type does not hold may cost, up to so many rows, of groups of 128 that it holds."""
INEXACT_OVER_TORCH: Final = 0.75
"""What they must reach of torch's speed above."""


@dataclass(frozen=True)
class Judged:
    """A problem with times, in microseconds; None where there is none.

    number       in the draw
    floor_us     what the hardware needs at least
    empty_us     an empty kernel
    bytes_us     to read what smaller groups add to the weights of the twin
    turns        where it was timed again in turns with the rival
    """

    number: int
    problem: Problem
    kind: WeightKind
    ours_us: float
    humming_us: float | None
    torch_us: float | None
    twin_us: float | None
    floor_us: float
    empty_us: float
    bytes_us: float
    turns: Turns | None = None

    @property
    def is_apart(self) -> bool:
        """Whether humming has no time for it."""
        return self.humming_us is None

    @property
    def range(self) -> RowsRange:
        return next(one for one in RANGES if self.problem.m in one)

    @property
    def best_peer(self) -> tuple[str, float] | None:
        """Its name and time."""
        times = [("torch", self.torch_us), ("humming", self.humming_us)]
        found = [(name, us) for name, us in times if us is not None]
        return min(found, key=lambda one: one[1], default=None)

    @property
    def rival(self) -> tuple[str, float] | None:
        """The name and time of what it is judged by."""
        if self.problem.m <= DECODE_MOST:
            return self.best_peer
        return None if self.torch_us is None else ("torch", self.torch_us)

    @property
    def plain(self) -> float | None:
        """The best peer's time / ours."""
        return None if self.best_peer is None else self.best_peer[1] / self.ours_us

    @property
    def ratio(self) -> float | None:
        """The rival's time / ours; where they were timed again, by the medians of the turns."""
        if self.turns is not None:
            return statistics.median(self.turns.rival_us) / statistics.median(self.turns.ours_us)
        return None if self.rival is None else self.rival[1] / self.ours_us

    @property
    def required(self) -> float | None:
        """The required time / ours."""
        if self.rival is None:
            return None
        return required_us(self.rival[1], self.range.factor, self.empty_us, self.floor_us) / self.ours_us

    @property
    def over_torch(self) -> float | None:
        """torch's time / ours."""
        return None if self.torch_us is None else self.torch_us / self.ours_us

    @property
    def over_twin(self) -> float | None:
        """The time of our kernel with groups of 128 / ours."""
        return None if self.twin_us is None else self.twin_us / self.ours_us

    @property
    def small_groups_cost(self) -> float | None:
        """Our time / what groups of 128 take and the bytes that smaller ones add; None where the twin is of another
        type."""
        if self.twin_us is None or not self.problem.twin.startswith(f"{self.kind.dtype} "):
            return None
        return self.ours_us / (self.twin_us + self.bytes_us)

    @property
    def over_estimate(self) -> float | None:
        """Our time / what was estimated."""
        return self.problem.estimated_us and self.ours_us / self.problem.estimated_us


def judged(found: ModelResults) -> list[Judged]:
    """All problems that we have a time for, where an empty kernel has one."""
    run, results = found.run, found.results
    turns = {one.problem: one for one in found.turns}
    ceilings = Ceilings(run.read_bytes_per_s)
    judged_ = []
    for number, problem in enumerate(found.problems):
        kind, shape, m = found.kinds[problem.kind], problem.shape, problem.m
        ours = results.time("lowlp", kind.name, shape, m)
        if ours is None or run.empty_us is None:
            continue
        twin = found.kinds.get(problem.twin)
        judged_.append(
            Judged(
                number,
                problem,
                kind,
                ours,
                results.time("humming", kind.name, shape, m),
                results.time("torch", kind.activation, shape, m),
                results.time("lowlp", twin.name, shape, m) if twin else None,
                ceilings.floor_us(kind, shape, m),
                run.empty_us,
                _added_us(kind, twin, shape, ceilings),
                turns.get(number),
            )
        )
    return judged_


def _added_us(kind: WeightKind, twin: WeightKind | None, shape: Shape, ceilings: Ceilings) -> float:
    if twin is None:
        return 0.0
    added = weight_bytes(kind, shape) - weight_bytes(twin, shape)
    return max(0, added) / ceilings.read_bytes_per_s * 1e6


def worst(cells: Iterable[Judged], count: int) -> list[Judged]:
    """Those of least ratio, the worst first."""
    rated = [(ratio, cell.number, cell) for cell in cells if (ratio := cell.ratio) is not None]
    return [cell for _, _, cell in sorted(rated, key=lambda one: one[:2])[:count]]


@dataclass(frozen=True)
class Mean:
    """A geometric mean over some problems, and the least of them; both None over none."""

    count: int
    mean: float | None
    least: float | None


def mean_of(cells: Iterable[Judged], value: Callable[[Judged], float | None]) -> Mean:
    """Of those that have the value."""
    values = [one for cell in cells if (one := value(cell)) is not None]
    return Mean(len(values), geometric_mean(values), min(values, default=None))


def groups_of(cells: Sequence[Judged]) -> Iterator[tuple[str, str, list[Judged]]]:
    """The problems by each field of their kinds, and by what chose the schedule: (field, value, problems)."""
    fields: dict[str, Callable[[Judged], str]] = {
        "codes": lambda cell: _family(cell.kind),
        "bits": lambda cell: str(cell.kind.bits),
        "group": lambda cell: str(cell.kind.group or "channel"),
        "scales": lambda cell: cell.kind.scale,
        "zero points": lambda cell: cell.kind.zeros or "none",
        "activations": lambda cell: cell.kind.activation,
        "chosen by": lambda cell: cell.problem.by,
    }
    for field, value_of in fields.items():
        values = sorted({value_of(cell) for cell in cells})
        for value in values:
            yield field, value, [cell for cell in cells if value_of(cell) == value]


def _family(kind: WeightKind) -> str:
    """What the codes are, whatever their bits."""
    if kind.table:
        return "table"
    return "float" if kind.dtype.startswith("f") else kind.dtype.rstrip("0123456789")
