"""Whether what is timed computes the right thing: the same product in float64, on the GPU."""

from __future__ import annotations

import math
from typing import Any, Final

OUR_TOLERANCE: Final = 2e-3
"""Relative Frobenius error that lowlp promises with f16 activations."""
PEER_TOLERANCE: Final = 1e-2
"""Of peers. Some round scaled weights or zero points to f16; a wrong product is off by 1 and more."""
_COARSER: Final = {"f16": 1.0, "bf16": 4.0}
"""Results of bf16 are rounded to 8 bits: 1.7e-3 by that alone, and what is rounded on the way may double it."""


def tolerance(of_f16: float, activation: str) -> float:
    """The tolerance of one with f16 activations and results, for others."""
    return of_f16 * _COARSER[activation]


def sampled_columns(count: int, most: int | None, device: Any) -> Any:
    """The columns of a result that are compared, ascending: one at random of each of `most` equal parts, so that no
    wide tile is left out; None: all, where `most` is None or there are no more."""
    import torch

    if most is None or count <= most:
        return None
    generator = torch.Generator(device=device).manual_seed(count)
    ends = torch.arange(most + 1, device=device, dtype=torch.float64) * count / most
    spread = torch.rand(most, device=device, dtype=torch.float64, generator=generator)
    return (ends[:-1] + spread * (ends[1:] - ends[:-1])).floor().long().clamp_(max=count - 1)


def reference(x: Any, weights: Any) -> Any:
    """x @ weights^T in float64; x [M, K] and weights [N, K] of any float type."""
    return x.double() @ weights.double().T


def relative_error(y: Any, wanted: Any, columns: Any = None) -> float:
    """The Frobenius norm of the difference over that of `wanted`, infinite where y is not finite everywhere.

    columns  of y, which are those of `wanted`; None: all
    """
    if columns is not None:
        if not bool(y.isfinite().all()):
            return math.inf
        y = y[:, columns]
    if tuple(y.shape) != tuple(wanted.shape):
        return math.inf
    error = float((y.double() - wanted).norm() / wanted.norm())
    return error if math.isfinite(error) else math.inf


def poison(y: Any) -> None:
    """Fills an output with NaN, so that what is not written is seen."""
    y.fill_(math.nan)


def poison_next(torch: Any, shape: tuple[int, int], device: Any) -> None:
    """Leaves NaN in the memory that PyTorch will most likely hand out next for outputs of 16 bits and this shape.

    For libraries that allocate their own output.
    """
    scratch = torch.full(shape, math.nan, dtype=torch.float16, device=device)
    del scratch


def problem_of(error: float, allowed: float) -> str:
    """What is wrong with an error, or ''."""
    if error <= allowed:
        return ""
    return f"wrong result: relative error {error:.2e}, allowed {allowed:.0e}"
