"""Products with slabs of dequantised weights, by PyTorch: what a CPU computes, and gradients on every device.

A slab is some rows of the weights in float32. So at no time the whole matrix exists, and what is computed is the exact
meaning of the weights times x, rounded as PyTorch's float32 products are, and at the end to the type of the result.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import torch

from lowlp.errors import CpuProductWarning, frames_to_user
from lowlp.kernels.epilogues import GPT_OSS_LIMIT, GPT_OSS_SLOPE
from lowlp.ops.embedding import dequantized_rows
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_SLAB_ELEMENTS: Final = 1 << 20
_MAX_WORKERS: Final = 8
_ACTIVATIONS: Final = (torch.float16, torch.bfloat16, torch.float32)


def _silu_mul(y: torch.Tensor) -> torch.Tensor:
    gate, up = y.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def _gpt_oss(y: torch.Tensor) -> torch.Tensor:
    gate, up = y.chunk(2, dim=-1)
    gate, up = gate.clamp(max=GPT_OSS_LIMIT), up.clamp(-GPT_OSS_LIMIT, GPT_OSS_LIMIT)
    return (up + 1) * gate * torch.sigmoid(GPT_OSS_SLOPE * gate)


EPILOGUES: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "": lambda y: y,
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": functools.partial(torch.nn.functional.gelu, approximate="tanh"),
    "silu": torch.nn.functional.silu,
    "silu_mul": _silu_mul,
    "gpt_oss": _gpt_oss,
}
"""By the names that `lowlp.linear` has."""


def product_with_slabs(
    x: torch.Tensor, qw: QuantizedTensor, bias: torch.Tensor | None, epilogue: str, out_dtype: torch.dtype
) -> torch.Tensor:
    """epilogue(x @ w^T + bias) of x [..., K], float16, bfloat16 or float32, on the CPU."""
    _say_once()
    n, k = qw.shape
    if x.dtype not in _ACTIVATIONS:
        raise LowlpTypeError(f"x: expected float16, bfloat16 or float32, got {x.dtype}")
    if x.ndim == 0 or x.shape[-1] != k:
        raise LowlpValueError(f"x: the last dimension must be K = {k}, got shape {tuple(x.shape)}")
    rows = x.detach().reshape(-1, k).float()
    y = torch.empty(rows.shape[0], n, dtype=torch.float32)
    if rows.shape[0]:
        for slab, weights in _slabs(qw, rows.device):
            torch.mm(rows, weights.t(), out=y[:, slab])
    if bias is not None:
        y += bias.detach().float()
    y = EPILOGUES[epilogue](y).to(out_dtype)
    return y.reshape(*x.shape[:-1], y.shape[-1])


def transposed_product(gradient: torch.Tensor, qw: QuantizedTensor, dtype: torch.dtype) -> torch.Tensor:
    """gradient @ w of gradient [..., N], on its device: the gradient of x where that of x @ w^T is given."""
    n, k = qw.shape
    rows = gradient.reshape(-1, n).float()
    result = torch.zeros(rows.shape[0], k, dtype=torch.float32, device=gradient.device)
    for slab, weights in _slabs(qw, gradient.device):
        result.addmm_(rows[:, slab], weights)
    return result.to(dtype).reshape(*gradient.shape[:-1], k)


def _slabs(qw: QuantizedTensor, device: torch.device) -> Iterator[tuple[slice, torch.Tensor]]:
    """Ranges of rows and their weights, float32 on the device."""
    slabs = qw.form.bands(_SLAB_ELEMENTS)
    if device.type != "cpu":
        for slab in slabs:
            ids = torch.arange(slab.start, slab.stop, device=device)
            yield slab, dequantized_rows(ids, qw, "f32")
        return
    workers = min(os.cpu_count() or 1, _MAX_WORKERS, len(slabs))
    if workers == 1:
        for slab in slabs:
            yield slab, torch.from_numpy(qw.dequantize(slab))
        return
    with ThreadPoolExecutor(workers) as pool:
        # So many at a time, and not all of them before the first is used.
        for first in range(0, len(slabs), workers):
            some = slabs[first : first + workers]
            yield from zip(some, map(torch.from_numpy, pool.map(qw.dequantize, some)), strict=True)


@functools.cache
def _say_once() -> None:
    warnings.warn(
        "modules of lowlp.torch on a CPU multiply with slabs of dequantised weights, by PyTorch: right, and slower "
        "than weights that are not quantised. lowlp.linear runs the GPU's program on the CPU, with all checks",
        CpuProductWarning,
        stacklevel=frames_to_user(),
    )
