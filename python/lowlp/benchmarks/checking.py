"""Whether what is timed computes the right thing: the same product in float64, on the GPU."""

from __future__ import annotations

import math
from typing import Any, Final

OUR_TOLERANCE: Final = 2e-3
"""Relative Frobenius error that lowlp promises with f16 activations."""
PEER_TOLERANCE: Final = 1e-2
"""Of peers. Some round scaled weights or zero points to f16; a wrong product is off by 1 and more."""


def reference(x: Any, weights: Any) -> Any:
    """x @ weights^T in float64; x [M, K] and weights [N, K] of any float type."""
    return x.double() @ weights.double().T


def relative_error(y: Any, wanted: Any) -> float:
    """The Frobenius norm of the difference over that of `wanted`, infinite where y is not finite everywhere."""
    if tuple(y.shape) != tuple(wanted.shape):
        return math.inf
    error = float((y.double() - wanted).norm() / wanted.norm())
    return error if math.isfinite(error) else math.inf


def poison(y: Any) -> None:
    """Fills an output with NaN, so that what is not written is seen."""
    y.fill_(math.nan)


def poison_next(torch: Any, shape: tuple[int, int], device: Any) -> None:
    """Leaves NaN in the memory that PyTorch will most likely hand out next for f16 outputs of this shape.

    For libraries that allocate their own output.
    """
    scratch = torch.full(shape, math.nan, dtype=torch.float16, device=device)
    del scratch


def problem_of(error: float, tolerance: float) -> str:
    """What is wrong with an error, or ''."""
    if error <= tolerance:
        return ""
    return f"wrong result: relative error {error:.2e}, allowed {tolerance:.0e}"
