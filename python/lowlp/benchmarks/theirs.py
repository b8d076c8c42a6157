"""A peer's product: checked against the meaning of its own weights, then timed by the function that times ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lowlp_runtime.operand_tensors import torch_type

from .cases import ACTIVATION, Shape, WeightKind
from .checking import PEER_TOLERANCE, poison_next, problem_of, reference, relative_error, sampled_columns, tolerance
from .peers import Peer
from .random_weights import random_activations
from .results import Row, rounded, with_times
from .timing import Effort, time_call


def random_matrix(shape: Shape, element: str = ACTIVATION, device: Any = "cuda") -> Any:
    """Gaussian weights [N, K] of the type `element`, the same at every call."""
    import torch

    generator = torch.Generator(device=device).manual_seed(shape.n + shape.k)
    weights = torch.randn((shape.n, shape.k), device=device, generator=generator)
    return weights.div_(math.sqrt(shape.k)).to(torch_type(element))


class TheirProduct:
    """A peer with weights of one kind and shape on the GPU.

    kind             what it has; or the type of its weights, 'f16' or 'bf16', where it does not quantise them
    checked_columns  of a result, at most, are compared with float64; None: all
    """

    def __init__(
        self,
        peer: Peer,
        kind: WeightKind | str,
        shape: Shape,
        rows: Sequence[int],
        device: Any,
        checked_columns: int | None = None,
    ) -> None:
        self._peer, self._shape = peer, shape
        self._kind, element = (kind, kind) if isinstance(kind, str) else (kind.name, kind.activation)
        weights = random_matrix(shape, element, device)
        self._product = peer.make(None if isinstance(kind, str) else kind, weights, rows)
        del weights
        self._x = random_activations(max(rows), shape.k, device, element)
        self._columns = sampled_columns(shape.n, checked_columns, device)
        meaning = self._product.dequantized()
        self._wanted = reference(self._x, meaning if self._columns is None else meaning[self._columns])
        self._tolerance = tolerance(PEER_TOLERANCE, element)

    def measure(self, m: int, stream: int, effort: Effort) -> Row:
        """Checks and times M rows. Raises what the peer raises."""
        import torch

        x = self._x[:m]
        # The first call may compile and search for a schedule, in memory that others then get.
        self._product(x)
        torch.cuda.synchronize()
        poison_next(torch, (m, self._shape.n), x.device)
        y = self._product(x)
        torch.cuda.synchronize()
        error = relative_error(y, self._wanted[:m], self._columns)
        found = Row(
            self._peer.name, self._kind, self._shape.n, self._shape.k, m, None, error=rounded(error, 3),
            tolerance=self._tolerance, problem=problem_of(error, self._tolerance), detail=self._product.detail,
        )  # fmt: skip
        if found.problem:
            return found
        return with_times(found, time_call(lambda: self._product(x), stream, effort))
