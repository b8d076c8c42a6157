"""Times the candidates of a folder on the GPU, without the compiler."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import lowlp_runtime
from lowlp_runtime.arguments import bind
from lowlp_runtime.launcher import launcher_of
from lowlp_runtime.operand_tensors import torch_type
from lowlp_runtime.operands import Operand

from .measured import MeasuredFile
from .prepared import Kernel, PreparedCandidates, PreparedProblem


def measure(
    prepared: PreparedCandidates, problems: Iterable[PreparedProblem], file: MeasuredFile, anew: bool = False
) -> Iterator[PreparedProblem]:
    """Measures problems that the file lacks and puts the fastest candidate of each there.

    problems  of the folder
    anew      measure also what the file has, but for what it has of these very kernels

    Yields each problem when it is done. Raises what loading and launching raise.
    """
    for problem in problems:
        entry, identity = file.find(problem.key), prepared.identity(problem)
        if not entry or (anew and entry.get("kernels") != identity):
            facts = _measured(prepared, problem)
            if facts:
                file.put(problem.key, {"arch": prepared.arch, **facts, "kernels": identity})
        yield problem


def merit(times: Mapping[int, float]) -> float:
    """What the fastest has least of: the product of its times, that of a single row twice."""
    return math.prod(us**2 if m == 1 else us for m, us in times.items())


def _measured(prepared: PreparedCandidates, problem: PreparedProblem) -> dict[str, Any] | None:
    operands = Operands(prepared.multiprocessors)
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

    def __init__(self, multiprocessors: int) -> None:
        import torch

        self._multiprocessors = multiprocessors
        self._generator = torch.Generator("cuda").manual_seed(1)
        self._made: dict[Operand, Any] = {}

    def time_us(self, prepared: PreparedCandidates, kernel: Kernel) -> float:
        """The median time of a kernel of the problem."""
        import torch

        launcher = launcher_of(prepared.load_kernel(kernel))
        product = launcher.description.require_product()
        arguments = {operand.name: self._of_weights(operand) for operand in product.of_source("weights")}
        x = torch.randn(kernel.m, product.k, device="cuda").half()
        y = torch.empty(kernel.m, product.n, device="cuda", dtype=torch.float16)
        numbers = product.launch_numbers(kernel.m, product.k, None, self._multiprocessors)
        arguments.update(product.by_name({"x": x, "y": y, **numbers}))
        in_order = bind(launcher.description, arguments)
        stream = torch.cuda.current_stream()
        with lowlp_runtime.no_dependent_launch():
            timing = lowlp_runtime.measure(
                lambda: launcher(in_order, stream), repeats=15, warmups=2, stream=stream, fills=3
            )
        return timing.median_us

    def _of_weights(self, operand: Operand) -> Any:
        """Made once: the kernels of a problem read the same."""
        if operand not in self._made:
            self._made[operand] = _random(operand, self._generator)
        return self._made[operand]


def _random(operand: Operand, generator: Any) -> Any:
    """Packed weights of random bits; scales, zero points and the like of small numbers; 1 for a number."""
    import torch

    if not operand.is_array:
        return 1.0
    # What belongs to weights has no extent that depends on the rows of x.
    shape = [int(extent) for extent in operand.shape]
    if operand.role == "packed":
        limits = -(2**31), 2**31 - 1
        return torch.randint(*limits, shape, dtype=torch.int32, device="cuda", generator=generator)
    element = torch_type(operand.element)
    if not element.is_floating_point:
        # A scale of 2^-127 for e8m0, and zero points of 0.
        return torch.zeros(shape, dtype=element, device="cuda")
    return (torch.rand(shape, device="cuda", generator=generator) / 64).to(element)
