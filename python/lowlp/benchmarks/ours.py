"""Our own kernels: from a folder, checked, then timed."""

from __future__ import annotations

from typing import Any

from lowlp_runtime.arguments import bind
from lowlp_runtime.dependent_launch import no_dependent_launch
from lowlp_runtime.launch import launch

from .cases import Shape
from .checking import OUR_TOLERANCE, poison, problem_of, reference, relative_error
from .prepared import PreparedKernels
from .random_weights import random_activations, random_weights
from .results import Row, rounded, with_times
from .timing import Effort, time_call


class OurProduct:
    """One kind of weights of one shape on the GPU, with the product in float64 for up to `most_rows` rows."""

    def __init__(self, prepared: PreparedKernels, kind: str, shape: Shape, most_rows: int, device: Any) -> None:
        self._prepared, self._kind, self._shape = prepared, kind, shape
        saved = prepared.weights[kind]
        weights = random_weights(saved, prepared.sample(kind), shape, device)
        self._operands = weights.operands
        self._x = random_activations(most_rows, shape.k, device)
        self._wanted = reference(self._x, weights.dequantized(saved))

    @no_dependent_launch()
    def measure(self, m: int, stream: int, effort: Effort) -> Row:
        """Checks and times M rows. Raises what loading and launching raise.

        Launches do not overlap what is in front of them: otherwise weights could be fetched before the time begins.
        """
        import torch

        n, k = self._shape.n, self._shape.k
        entry = self._prepared.entry(self._kind, self._shape, m)
        kernel = self._prepared.load(entry)
        y = torch.empty((m, n), dtype=torch.float16, device=self._x.device)
        product = kernel.description.require_product()
        numbers = product.launch_numbers(m, k, None, self._prepared.multiprocessors)
        given = product.by_name({"x": self._x[:m], "y": y, **numbers})
        arguments = bind(kernel.description, {**given, **self._operands})
        poison(y)
        launch(kernel, arguments, stream=stream)
        torch.cuda.synchronize()
        error = relative_error(y, self._wanted[:m])
        found = Row(
            "lowlp", self._kind, n, k, m, None, error=rounded(error, 3), tolerance=OUR_TOLERANCE,
            problem=problem_of(error, OUR_TOLERANCE),
        )  # fmt: skip
        if found.problem:
            return found
        timing = time_call(lambda: launch(kernel, arguments, stream=stream), stream, effort)
        return with_times(found, timing)
