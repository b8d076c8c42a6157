"""What products with quantised activations must reach on an H200: factors over other libraries, by M.

The required time of a cell is max(peer / factor, empty kernel + 1.08 floor), as `floor.required_us` has it; the table
has geometric means over shapes of required over ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.floor import READ_BYTES_PER_S, required_us
from lowlp.benchmarks.results import Results

from .cases import HUMMING, INT_MM, KINDS, ROWS, SCALED_MM, SHAPES, TORCH, ActivationKind, who

Rival = tuple[str, str]
"""Who, and the kind of its weights."""

_OPS_PER_S: Final = {"planes": 15.0e15, "s8": 1.84e15, "fp8": 1.70e15, "f16": 0.84e15}
"""Sustained rates of the instructions with random operands, measured; of planes for one of each side."""
MOST_OVER_OTHER_PATHS: Final = 1.05
OVER_HALVES: Final = 3.0
"""As many times as fast as torch in f16 W2A2 must be with many rows."""
_MANY_ROWS: Final = 1024


@dataclass(frozen=True)
class Target:
    """By M, factors over the fastest of `rivals`.

    rivals  those that take such weights; each that was measured counts
    """

    factors: Mapping[int, float]
    rivals: tuple[Rival, ...]


def _factors(*factors: float) -> Mapping[int, float]:
    return MappingProxyType(dict(zip(ROWS, factors, strict=True)))


def _humming(weights: str, *activations: str) -> tuple[Rival, ...]:
    return tuple((who_, weights) for who_ in (activations or HUMMING))


_SCALED: Final = ((SCALED_MM, "f8e4m3"),)
_W4A8: Final = _factors(1.1, 1.25, 1.4, 1.05, 0.97, 0.97)
_W2A8: Final = _factors(1.6, 1.8, 1.5, 1.0, 0.93, 0.97)

TARGETS: Final = {
    "w1a1": Target(_factors(2.0, 2.0, 2.5, 3.0, 4.0, 4.5), (*_humming("int1"), *_SCALED)),
    "w1a2": Target(_factors(2.0, 2.0, 2.5, 2.3, 2.5, 2.7), (*_humming("int1"), *_SCALED)),
    "w2a2": Target(_factors(1.6, 1.7, 2.0, 1.3, 1.5, 1.6), (*_humming("int2"), *_SCALED)),
    "w2a4": Target(_factors(1.5, 1.6, 1.5, 1.05, 0.97, 0.97), _humming("int2")),
    "w3a3": Target(_factors(1.3, 1.4, 1.4, 1.05, 0.97, 0.97), _humming("int3")),
    "w3a4": Target(_factors(1.3, 1.4, 1.4, 1.05, 0.97, 0.97), _humming("int3")),
    "w4a4": Target(_factors(1.05, 1.2, 1.4, 1.05, 0.97, 0.97), _humming("int4")),
    "w1a8": Target(_factors(2.0, 1.8, 1.5, 1.0, 0.93, 0.97), _humming("int1 g128")),
    "w2a8": Target(_W2A8, _humming("int2 g128")),
    "ternary": Target(_W2A8, _humming("int2 g128")),
    "w4a8": Target(_W4A8, _humming("int4", HUMMING[0])),
    "w4a8-levels": Target(_W4A8, _humming("int4 g128", HUMMING[0])),
    "w4a8-fp8": Target(_W4A8, _humming("f4e2m1", HUMMING[1])),
    "w4a8-fp8-int": Target(_W4A8, _humming("int4 g128", HUMMING[1])),
    "w8a8": Target(_factors(1.0, 1.0, 1.3, 1.4, 1.4, 1.4), ((INT_MM, "int8"),)),
    "w8a8-fp8": Target(_factors(1.0, 1.0, 1.1, 1.0, 0.97, 0.97), _SCALED),
}
"""By name of a kind."""


def rivals_of(kinds: Iterable[str], peers: Iterable[str]) -> list[Rival]:
    """What kinds are held against, of these peers, each once; torch in f16 always."""
    wanted = [(TORCH, "f16"), *(rival for kind in kinds for rival in TARGETS[kind].rivals)]
    allowed = set(peers)
    return [rival for rival in dict.fromkeys(wanted) if rival[0] in allowed]


def floor_us(
    kind: ActivationKind, path: str, shape: Shape, m: int, read_bytes_per_s: float = READ_BYTES_PER_S
) -> float:
    """Microseconds to move weights, scales, codes of x and results, or to multiply, whichever takes longer."""
    weights = kind.weights
    moved = shape.n * shape.k * weights.bits / 8
    moved += shape.n * (shape.k // weights.group if weights.group else 1) * (0.5 if weights.has_levels else 2)
    of_x = {"planes": kind.bits / 8, "f16": 2.0}.get(path, 1.0)
    moved += m * (shape.k * of_x + 2 * shape.n)
    products = weights.bits * kind.bits if path == "planes" else 1
    return 1e6 * max(moved / read_bytes_per_s, 2.0 * m * shape.n * shape.k * products / _OPS_PER_S[path])


@dataclass(frozen=True)
class Cell:
    """Of one kind, shape and M: our times by path, and what is required, in microseconds; None where there is none.

    path              the fastest of ours
    rival             whose time is the peers' best, with that time
    read_bytes_per_s  what floors are computed with
    """

    kind: ActivationKind
    shape: Shape
    m: int
    times: Mapping[str, float]
    rival: tuple[Rival, float] | None
    empty_us: float
    read_bytes_per_s: float = READ_BYTES_PER_S

    @property
    def path(self) -> str | None:
        return min(self.times, key=self.times.__getitem__) if self.times else None

    def required_us(self, path: str) -> float | None:
        """What the time must be at the most, by the floor of a path; None without a rival."""
        if self.rival is None:
            return None
        factor = TARGETS[self.kind.name].factors.get(self.m)
        if factor is None:
            return None
        floor = floor_us(self.kind, path, self.shape, self.m, self.read_bytes_per_s)
        return required_us(self.rival[1], factor, self.empty_us, floor)

    def over_required(self, path: str) -> float | None:
        """The time of a path over what is required."""
        required, us = self.required_us(path), self.times.get(path)
        return None if required is None or us is None else us / required


def cells(results: Results, shapes: Iterable[Shape] = SHAPES, rows: Iterable[int] = ROWS) -> list[Cell]:
    """All that have a time of ours."""
    empty = max((run.empty_us or 0.0 for run in results.runs), default=0.0)
    read = max((run.read_bytes_per_s for run in results.runs), default=READ_BYTES_PER_S)
    found = []
    measured = {row.shape for row in results.rows}
    every_shape = [*shapes, *sorted(measured - set(shapes))]
    every_m = sorted({*rows, *(row.m for row in results.rows)})
    for kind in KINDS.values():
        for shape in every_shape:
            for m in every_m:
                times = {path: results.time(who(path), kind.name, shape, m) for path in kind.paths}
                known = {path: us for path, us in times.items() if us is not None}
                if not known:
                    continue
                theirs = [(rival, results.time(*rival, shape, m)) for rival in TARGETS[kind.name].rivals]
                timed = [(rival, us) for rival, us in theirs if us is not None]
                best = min(timed, key=lambda one: one[1]) if timed else None
                found.append(Cell(kind, shape, m, known, best, empty, read))
    return found


def mean(numbers: Iterable[float]) -> float | None:
    """The geometric mean; None of none."""
    logs = [math.log(number) for number in numbers]
    return math.exp(sum(logs) / len(logs)) if logs else None


def is_well_chosen(cell: Cell, chosen: str) -> bool:
    """Whether the path that is chosen takes at most 1.05 times the fastest one's time."""
    return chosen not in cell.times or cell.times[chosen] <= MOST_OVER_OTHER_PATHS * min(cell.times.values())


def over_halves(results: Results, cell: Cell) -> float | None:
    """torch in f16 over ours; None where no factor is asked."""
    torch_us = results.time(TORCH, "f16", cell.shape, cell.m)
    if cell.kind.name != "w2a2" or cell.m < _MANY_ROWS or torch_us is None or not cell.times:
        return None
    return torch_us / min(cell.times.values())
