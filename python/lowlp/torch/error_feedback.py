"""Rounding column after column, each with the error of those before it: GPTQ (arXiv 2210.17323), for scalar codes.

With H = mean of x x^T, the squared error of a layer's outputs is sum over rows of (w - q) H (w - q)^T. Once column j is
rounded, the columns after it make up best for its error e by

    w[j+1:] -= e / U[j, j] * U[j, j+1:]        U upper triangular, U^T U = (H + damping)^-1

Scales are those that `lowlp.quantize` finds for the weights as they are, by a search with the diagonal of H as
importance; they stay. Codes are the nearest of a group's values, whatever formula or table gives these.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from lowlp.weights.quantize.quantization import quantize
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpRuntimeError, LowlpValueError

from .grids import Grid, with_codes

_BLOCK: Final = 128
_DAMPING: Final = 0.01
"""Of the mean of H's diagonal, added to the diagonal: what GPTQ's authors take."""


def quantize_with_feedback(
    w: torch.Tensor, moments: torch.Tensor, dtype: object = None, *, damping: float = _DAMPING, **options: Any
) -> QuantizedTensor:
    """`lowlp.quantize` with feedback of errors.

    w        [N, K], on any device, which computes
    moments  float32 [K, K], the mean of x_i x_j over calibration inputs
    dtype, options  of `lowlp.quantize`, for scalar codes; where `search` is not given, it is made
    damping  a positive number

    Returns weights of the codec that `lowlp.quantize` gives, with the same scales and other codes. Raises as that, and
    `LowlpValueError` for vectors and for moments that are not finite.
    """
    if options.get("vq") is not None:
        raise LowlpValueError("error_feedback: takes scalar codes, got vq")
    if tuple(moments.shape) != (w.shape[1], w.shape[1]) or not bool(torch.isfinite(moments).all()):
        raise LowlpValueError(f"moments: expected finite [{w.shape[1]}, {w.shape[1]}], got {tuple(moments.shape)}")
    moments = moments.to(device=w.device, dtype=torch.float32)
    if options.get("search", True) is not False:
        options = {"search": True, **options, "importance": moments.diagonal().clamp(min=0)}
    start = quantize(w, dtype, **options)
    if start.codec.vectors is not None:
        raise LowlpValueError(f"error_feedback: takes scalar codes, got {start.codec}")
    codes = _rounded(w.float().clone(), Grid(start, w.device), _inverse_root(moments, damping))
    return with_codes(start, codes)


def _inverse_root(moments: torch.Tensor, damping: float) -> torch.Tensor:
    """U. Columns that no input reaches have no error that counts: their diagonal becomes 1."""
    h = moments.double().clone()
    diagonal = h.diagonal()
    diagonal[diagonal <= 0] = 1.0
    diagonal += damping * diagonal.mean()
    for _ in range(8):
        lower, failed = torch.linalg.cholesky_ex(h)
        if not int(failed):
            inverse = torch.cholesky_inverse(lower)
            return torch.linalg.cholesky(inverse, upper=True).float()
        diagonal += diagonal.mean()
    raise LowlpRuntimeError("calibration: second moments of the inputs have no inverse; take more of them")


def _rounded(w: torch.Tensor, grid: Grid, root: torch.Tensor) -> torch.Tensor:
    """The codes, uint8 [N, K], of w, which is overwritten: a block of columns at a time, whose errors the columns after
    the block get together."""
    n, k = w.shape
    codes = torch.empty(n, k, dtype=torch.uint8, device=w.device)
    for first in range(0, k, _BLOCK):
        stop = min(first + _BLOCK, k)
        errors = torch.empty(n, stop - first, device=w.device)
        for column in range(first, stop):
            codes[:, column], values = grid.nearest(w[:, column], column)
            error = (w[:, column] - values) / root[column, column]
            w[:, column + 1 : stop] -= torch.outer(error, root[column, column + 1 : stop])
            errors[:, column - first] = error
        w[:, stop:] -= errors @ root[first:stop, stop:]
    return codes
