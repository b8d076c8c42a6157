"""The choice of schedules held against random ones that fit: how much longer the chosen kernel takes than the best of
all that were timed.

All candidates of a problem are timed once, then the chosen one, the one that estimates alone would choose, and the
three fastest again in turns: the least of many times that vary is too small a time.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from lowlp.benchmarks.measuring import open_product, serve_on_gpu
from lowlp.benchmarks.ours import OurProduct
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.results import Row, Run
from lowlp.benchmarks.session import calibrated_run, check_machine
from lowlp.benchmarks.timing import Effort
from lowlp.benchmarks.worker import Settings, Unit, Worker, deadline_after
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.whole_file import write_whole

from .folder import PreparedProblems, Problem, problem_of

FORMAT: Final = 1
CHOSEN: Final = 0
"""The number of the chosen kernel among those of a problem; the candidates follow."""
EFFORT: Final = Effort(budget_ms=6.0, least=7, most=30)
CHECKED_COLUMNS: Final = 64
AGAIN: Final = 3
_ROUNDS: Final = 3
LIMITS: Final = (1.06, 1.12, 1.25)
"""Times of the best for which the share of problems is told."""


@dataclass(frozen=True)
class KernelsUnit(Unit):
    """Kernels of one problem: `rows` are their numbers, and m the rows of x."""

    m: int = 0

    def failed(self, m: int, problem: str) -> Row:
        """The row that says why there is no time; `m` is the number of the kernel."""
        return Row(self.who, self.kind, self.shape.n, self.shape.k, self.m, None, problem=problem, detail=str(m))


@dataclass(frozen=True)
class Ranked:
    """A problem with times, in microseconds, by the number of the kernel.

    us         once each; None where there is none
    again      in turns the chosen one, that of estimates alone, and the fastest
    estimates  what each would take
    schedules  of each
    """

    problem: Problem
    us: tuple[float | None, ...]
    again: dict[int, tuple[float, ...]]
    estimates: tuple[float | None, ...]
    schedules: tuple[dict[str, Any], ...]

    @property
    def timed(self) -> int:
        """How many candidates have a time."""
        return sum(us is not None for us in self.us[1:])

    def rank(self, number: int = CHOSEN) -> int | None:
        """The place of the kernel among all with a time, from 1."""
        found = self.us[number]
        return None if found is None else 1 + sum(us is not None and us < found for us in self.us)

    def over_best(self, number: int = CHOSEN) -> float | None:
        """The kernel's time over that of the best, from the turns; at least 1."""
        medians = {one: statistics.median(times) for one, times in self.again.items() if times}
        return medians[number] / min(medians.values()) if number in medians else None


@dataclass
class Ranking:
    """One run. `with_measured`: whether schedules were chosen by measured ones too."""

    seed: int
    with_measured: bool
    run: Run
    problems: list[Ranked] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Writes the file, whole or not at all."""
        head = {"format": FORMAT, "set": "candidates", "seed": self.seed, "with_measured": self.with_measured}
        text = json.dumps({**head, "run": asdict(self.run)}, indent=1, allow_nan=False).removesuffix("\n}")
        lines = ",\n  ".join(json.dumps(_to_json(ranked), allow_nan=False) for ranked in self.problems)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f'{text},\n "problems": [\n  {lines}\n ]\n}}\n'.encode())

    @staticmethod
    def load(path: Path) -> Ranking:
        """Reads the file. Raises `LowlpValueError` where it is of another kind or format, `OSError`."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if (data["format"], data["set"]) != (FORMAT, "candidates"):
                raise ValueError(f"format {data['format']!r:.40} of {data['set']!r:.40}")
            problems = [_of_json(one) for one in data["problems"]]
            return Ranking(data["seed"], data["with_measured"], Run(**data["run"]), problems)
        except (ValueError, KeyError, TypeError) as error:
            raise LowlpValueError(f"{path}: no times of candidates in format {FORMAT}: {error!r}") from error


def measure(
    folder: Path,
    out: Path,
    deadline_s: float | None,
    show: Callable[[int, int, str], None],
    ends: Callable[[], bool] = lambda: False,
) -> Ranking:
    """Times all candidates of a folder, and writes `out` after each problem.

    deadline_s  after so many seconds no further problem is begun; None: all are
    show        called with (problems done, of how many, what was measured)
    ends        tells whether a deadline of the caller's has come

    Raises `DeviceError` where there is no GPU or no PyTorch, `LowlpValueError` for a folder without candidates.
    """
    check_machine()
    index, prepared = PreparedKernels.load_index(folder), PreparedProblems.load(folder)
    index.check_device(multiprocessors())
    problems = [problem for problem in prepared.problems if problem.candidates]
    if not problems:
        raise LowlpValueError(f"--kernels: {folder} has no candidates; prepare it with --candidates")
    is_late = deadline_after(deadline_s)
    settings = Settings(folder, EFFORT, host_cost=False, checked_columns=CHECKED_COLUMNS)
    worker = Worker(settings, 60.0, run_worker)
    try:
        found = Ranking(prepared.seed, prepared.with_measured, calibrated_run(worker, ()))
        left_out = len(prepared.problems) - len(problems)
        if left_out:
            found.run.notes.append(f"{left_out} problems have no other schedule that fits")
        for number, problem in enumerate(problems, 1):
            if ends():
                break
            if is_late():
                found.run.notes.append(f"the deadline came after {number - 1} of {len(problems)} problems")
                break
            found.problems.append(_ranked(worker, index, problem))
            show(number, len(problems), str(problem))
            found.save(out)
    finally:
        worker.close()
    found.save(out)
    return found


def _ranked(worker: Worker, index: PreparedKernels, problem: Problem) -> Ranked:
    def times(numbers: list[int]) -> list[float | None]:
        unit = KernelsUnit("lowlp", problem.kind, problem.shape, tuple(numbers), problem.m)
        return [row.us for row in worker.measure(unit)]

    us = times(list(range(len(problem.candidates) + 1)))
    timed = sorted((value, number) for number, value in enumerate(us) if value is not None and number != CHOSEN)
    again = list(dict.fromkeys([CHOSEN, problem.by_estimate, *(number for _, number in timed[:AGAIN])]))
    turns: dict[int, list[float]] = {number: [] for number in again}
    for number, value in zip(again * _ROUNDS, times(again * _ROUNDS), strict=True):
        if value is not None:
            turns[number].append(value)
    chosen = next(
        (entry.schedule for entry in index.kernels if _is_of(problem, entry.kind, entry.n, entry.k, entry.rows)), {}
    )
    return Ranked(
        problem,
        tuple(us),
        {number: tuple(values) for number, values in turns.items()},
        (problem.estimated_us, *(candidate.estimated_us for candidate in problem.candidates)),
        (chosen, *(candidate.entry.schedule for candidate in problem.candidates)),
    )


def _is_of(problem: Problem, kind: str, n: int, k: int, rows: tuple[int, ...]) -> bool:
    return (kind, n, k) == (problem.kind, problem.n, problem.k) and problem.m in rows


def summary(found: Ranking, count: int = 10) -> list[str]:
    """How many problems are within which part of the best, and the worst ones; of estimates alone too, where
    measurements chose some."""
    if not found.problems:
        return ["no problem has times"]
    candidates = sum(one.timed for one in found.problems) / len(found.problems)
    lines = [f"seed {found.seed}: {len(found.problems)} problems, {candidates:.0f} candidates each in the mean"]
    if found.with_measured:
        lines += _shares("chosen by measurements and estimate", found.problems, lambda _: CHOSEN, count)
    return lines + _shares("chosen by estimate alone", found.problems, lambda one: one.problem.by_estimate, count)


def _shares(what: str, problems: list[Ranked], number_of: Callable[[Ranked], int], count: int) -> list[str]:
    """Of the kernels that `number_of` names."""
    rated = [(over, place) for place, one in enumerate(problems) if (over := one.over_best(number_of(one))) is not None]
    lines = [f"{what}: {len(rated)} problems have times"]
    for limit in LIMITS:
        share = sum(over <= limit for over, _ in rated) / max(1, len(rated))
        lines.append(f"  within {limit - 1:.0%} of the best: {share:.1%}")
    for over, place in sorted(rated, reverse=True)[:count]:
        one = problems[place]
        lines.append(f"  {over:.2f}x the best, place {one.rank(number_of(one))} of {one.timed + 1}: {one.problem}")
    return lines


def _to_json(ranked: Ranked) -> dict[str, Any]:
    data = asdict(ranked)
    # The schedules and estimates say what the candidates are.
    del data["problem"]["candidates"]
    return data


def _of_json(data: dict[str, Any]) -> Ranked:
    """The inverse."""
    return Ranked(
        problem_of({**data["problem"], "candidates": ()}),
        tuple(data["us"]),
        {int(number): tuple(times) for number, times in data["again"].items()},
        tuple(data["estimates"]),
        tuple(data["schedules"]),
    )


# --- the worker's side ------------------------------------------------------------------------------------------------


def run_worker(connection: Any, settings: Settings) -> None:
    """Serves the parent until it hangs up."""
    serve_on_gpu(connection, settings, _open)


def _open(prepared: PreparedKernels | None, unit: Unit, settings: Settings, device: Any) -> Any:
    if not isinstance(unit, KernelsUnit) or prepared is None:
        return open_product(prepared, unit, settings, device)
    return _Kernels(prepared, unit, settings, device)


class _Kernels:
    """The kernels of one problem, which read the same weights."""

    def __init__(self, prepared: PreparedKernels, unit: KernelsUnit, settings: Settings, device: Any) -> None:
        self._m = unit.m
        problem = _problem_of(prepared.folder, unit)
        chosen = prepared.entry(unit.kind, unit.shape, unit.m)
        self._entries = [chosen, *(candidate.entry for candidate in problem.candidates)]
        self._product = OurProduct(prepared, unit.kind, unit.shape, unit.m, device, settings.checked_columns)

    def measure(self, m: int, stream: int, effort: Effort) -> Row:
        """Times the kernel of number m."""
        entry = self._entries[m]
        if entry.problem or entry.spilled_bytes:
            raise LowlpValueError(entry.problem or entry.slow_code)
        return self._product.measure_entry(entry, self._m, stream, effort)


@cache
def _problems(folder: Path) -> dict[tuple[str, int, int, int], Problem]:
    return {(one.kind, one.n, one.k, one.m): one for one in PreparedProblems.load(folder).problems}


def _problem_of(folder: Path, unit: KernelsUnit) -> Problem:
    return _problems(folder)[unit.kind, unit.shape.n, unit.shape.k, unit.m]
