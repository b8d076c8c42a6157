"""Times the candidates of a folder on the GPU, without the compiler."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic
from typing import Any

import lowlp_runtime
from lowlp_runtime.arguments import bind
from lowlp_runtime.launcher import launcher_of

from .measured import MeasuredFile
from .operands import RandomOperands
from .prepared import Candidate, Kernel, PreparedCandidates, PreparedProblem

Times = list[tuple[Candidate, dict[int, float]]]
"""Candidates and their times in us, by numbers of rows."""


def measure(
    prepared: PreparedCandidates,
    problems: Iterable[PreparedProblem],
    file: MeasuredFile,
    anew: bool = False,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[PreparedProblem]:
    """Measures problems that the file lacks and puts the fastest candidate of each there.

    problems  of the folder
    anew      measure also what the file has, but for what it has of these very kernels
    is_over   whether to end before the next problem

    Yields each problem when it is done. Raises what loading and launching raise.
    """
    for problem in problems:
        if is_over():
            return
        entry, identity = file.find(problem.key), prepared.identity(problem)
        if not entry or (anew and entry.get("kernels") != identity):
            facts = _fastest(times_of(prepared, problem))
            if facts:
                file.put(problem.key, {"arch": prepared.arch, **facts, "kernels": identity})
        yield problem


def until(budget_s: float | None) -> Callable[[], bool]:
    """Whether so many seconds from now are over; None: never."""
    end = math.inf if budget_s is None else monotonic() + budget_s
    return lambda: monotonic() >= end


def merit(times: Mapping[int, float]) -> float:
    """What the fastest has least of: the product of its times, that of a single row twice."""
    return math.prod(us**2 if m == 1 else us for m, us in times.items())


def times_of(prepared: PreparedCandidates, problem: PreparedProblem) -> Times:
    """Of all candidates that are of use. Of those whose results must be the same to the bit, the ones whose results
    are not those of most are left out."""
    operands = Operands(prepared.multiprocessors)
    found = [
        (candidate, {kernel.m: operands.time_us(prepared, kernel) for kernel in candidate.kernels})
        for candidate in problem.candidates
        if not candidate.problem
    ]
    wrong = operands.wrong_files()
    return [(one, us) for one, us in found if not any(kernel.file in wrong for kernel in one.kernels)]


def _fastest(found: Times) -> dict[str, Any] | None:
    if not found:
        return None
    best, times = min(found, key=lambda entry: merit(entry[1]))
    return {
        "schedule": best.schedule,
        "us": {str(m): round(us, 2) for m, us in times.items()},
        "us_of_estimate": {str(m): round(us, 2) for m, us in found[0][1].items()},
        "candidates": len(found),
    }


class Operands:
    """Operands of one problem on the GPU; time does not depend on what they hold."""

    def __init__(self, multiprocessors: int) -> None:
        self._operands = RandomOperands(multiprocessors)
        self._results: dict[int, list[Any]] = {}
        self._kinds: dict[int, dict[str, int]] = {}

    def time_us(self, prepared: PreparedCandidates, kernel: Kernel) -> float:
        """The median time of a kernel of the problem."""
        import torch

        launcher = launcher_of(prepared.load_kernel(kernel))
        arguments = self._operands.arguments(launcher.description, kernel.m)
        in_order = bind(launcher.description, arguments)
        stream = torch.cuda.current_stream()
        with lowlp_runtime.no_dependent_launch():
            if self._operands.is_exact(launcher.description):
                launcher(in_order, stream)
                self._note(kernel, arguments["y"])
            timing = lowlp_runtime.measure(
                lambda: launcher(in_order, stream), repeats=15, warmups=2, stream=stream, fills=3
            )
        return timing.median_us

    def wrong_files(self) -> set[str]:
        """Kernels whose results are not those of most."""
        wrong = set()
        for kinds in self._kinds.values():
            ((right, _),) = Counter(kinds.values()).most_common(1)
            wrong |= {file for file, kind in kinds.items() if kind != right}
        return wrong

    def _note(self, kernel: Kernel, y: Any) -> None:
        """Which of the results found so far a kernel has."""
        import torch

        y = y.view(torch.uint8)
        results = self._results.setdefault(kernel.m, [])
        kind = next((number for number, other in enumerate(results) if torch.equal(y, other)), len(results))
        if kind == len(results):
            results.append(y.clone())
        self._kinds.setdefault(kernel.m, {})[kernel.file] = kind
