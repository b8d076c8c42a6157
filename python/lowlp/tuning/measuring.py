"""Times the candidates of a folder on the GPU, without the compiler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import lowlp_runtime
from lowlp_runtime.launcher import launcher_of

from .prepared import Kernel, PreparedCandidates, PreparedProblem
from .table import Table


def measure(
    prepared: PreparedCandidates, problems: Iterable[PreparedProblem], table: Table, anew: bool = False
) -> Iterator[PreparedProblem]:
    """Measures problems that the table lacks and puts the fastest candidate of each there.

    problems  of the folder
    anew      measure also what the table has, but for what it has of these very kernels

    Yields each problem when it is done. Raises what loading and launching raise.
    """
    for problem in problems:
        entry, identity = table.find(problem.key), prepared.identity(problem)
        if not entry or (anew and entry.get("kernels") != identity):
            facts = _measured(prepared, problem)
            if facts:
                table.put(problem.key, {"arch": prepared.arch, **facts, "kernels": identity})
        yield problem


def merit(times: Mapping[int, float]) -> float:
    """What the fastest has least of: the product of its times, that of a single row twice."""
    return math.prod(us**2 if m == 1 else us for m, us in times.items())


def _measured(prepared: PreparedCandidates, problem: PreparedProblem) -> dict[str, Any] | None:
    operands = Operands(problem)
    found = [
        (candidate, {kernel.m: operands.time_us(prepared, kernel) for kernel in candidate.kernels})
        for candidate in problem.candidates
        if not candidate.problem
    ]
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

    def __init__(self, problem: PreparedProblem) -> None:
        import torch

        self._n, self._k = problem.n, problem.k
        generator = torch.Generator("cuda").manual_seed(1)
        self._parts = [_operand(name, shape, generator) for name, shape in problem.operands]

    def time_us(self, prepared: PreparedCandidates, kernel: Kernel) -> float:
        """The median time of a kernel of the problem."""
        import torch

        launcher = launcher_of(prepared.load_kernel(kernel))
        x = torch.randn(kernel.m, self._k, device="cuda").half()
        y = torch.empty(kernel.m, self._n, device="cuda", dtype=torch.float16)
        arguments = (x, *self._parts, y, kernel.m, self._k, *kernel.last)
        stream = torch.cuda.current_stream()
        with lowlp_runtime.no_dependent_launch():
            timing = lowlp_runtime.measure(
                lambda: launcher(arguments, stream), repeats=15, warmups=2, stream=stream, fills=3
            )
        return timing.median_us


def _operand(name: str, shape: tuple[int, ...], generator: Any) -> Any:
    """Packed weights of random bits, zero points of 0, or small floats; 1 for a number."""
    import torch

    if not shape:
        return 1.0
    if name == "int32":
        return torch.randint(-(2**31), 2**31 - 1, shape, dtype=torch.int32, device="cuda", generator=generator)
    if name in ("uint8", "int8"):
        return torch.zeros(shape, dtype=getattr(torch, name), device="cuda")
    return (torch.rand(shape, device="cuda", generator=generator) / 64).to(getattr(torch, name))
