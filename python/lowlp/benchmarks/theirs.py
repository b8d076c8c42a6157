"""A peer's product: checked against the meaning of its own weights, then timed by the function that times ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .cases import KINDS, Shape
from .checking import PEER_TOLERANCE, poison_next, problem_of, reference, relative_error
from .peers import Peer
from .random_weights import random_activations
from .results import Row, rounded, with_times
from .timing import Effort, time_call


class TheirProduct:
    """A peer with weights of one kind and shape on the GPU."""

    def __init__(self, peer: Peer, kind: str, shape: Shape, rows: Sequence[int], device: Any) -> None:
        import torch

        self._peer, self._kind, self._shape = peer, kind, shape
        generator = torch.Generator(device=device).manual_seed(shape.n + shape.k)
        weights = torch.randn((shape.n, shape.k), device=device, generator=generator) / math.sqrt(shape.k)
        self._product = peer.prepare(KINDS.get(kind), weights.half(), rows)
        del weights
        self._x = random_activations(max(rows), shape.k, device)
        self._wanted = reference(self._x, self._product.dequantized())

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
        error = relative_error(y, self._wanted[:m])
        found = Row(
            self._peer.name, self._kind, self._shape.n, self._shape.k, m, None, error=rounded(error, 3),
            tolerance=PEER_TOLERANCE, problem=problem_of(error, PEER_TOLERANCE), detail=self._product.detail,
        )  # fmt: skip
        if found.problem:
            return found
        return with_times(found, time_call(lambda: self._product(x), stream, effort))
