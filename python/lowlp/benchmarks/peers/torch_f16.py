"""PyTorch with f16 weights: what a user has without quantisation. cuBLAS multiplies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowlp.benchmarks.cases import WeightKind


class _Product:
    detail = ""

    def __init__(self, weights: Any) -> None:
        self._weights = weights

    def __call__(self, x: Any) -> Any:
        import torch

        return torch.nn.functional.linear(x, self._weights)

    def dequantized(self) -> Any:
        return self._weights


class _Torch:
    name = "torch"
    package = "torch"
    module = "torch"

    def supports(self, kind: WeightKind | None) -> bool:
        return kind is None

    def make(self, kind: WeightKind | None, weights: Any, rows: Sequence[int]) -> _Product:
        return _Product(weights)


PEER = _Torch()
