"""`lowlp.torch.warm_up`: everything that a first call makes, made ahead."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import torch

from lowlp.weights.quantize.progress_bar import shown
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .embedding import Embedding
from .experts import GroupedLinear
from .linear import Linear
from .quantized_module import QuantizedModule

_MAX_WORKERS: Final = 8


def warm_up(
    model: torch.nn.Module, rows: Sequence[int] | int = (1,), *, dtype: torch.dtype | None = None, progress: bool = True
) -> torch.nn.Module:
    """Compiles the kernels of a model's quantised modules for some numbers of rows, on as many threads as there are
    processors, uploads what they take, and launches each once; returns the model when the GPU is done.

    After that, calls with these numbers of rows compile nothing and wait for nothing, and may be captured in a CUDA
    graph. Kernels come from the cache of kernels where an earlier process made them.

    rows      numbers of rows of x, all but its last dimension multiplied; of embeddings numbers of ids, of
              experts tokens times the experts of each
    dtype     of x: float16 or bfloat16; None: each module's `dtype`, which is that of the weights that it was made of
    progress  show a bar, where tqdm is installed

    On a CPU, where nothing is compiled, modules compute once. Raises `LowlpValueError` for a model without quantised
    modules, one on the meta device, or rows below 1.
    """
    counts = [rows] if isinstance(rows, int) else list(rows)
    if not counts or not all(isinstance(count, int) and not isinstance(count, bool) for count in counts):
        raise LowlpTypeError(f"rows: expected an int or several, got {rows!r:.60}")
    if min(counts) < 1:
        raise LowlpValueError(f"rows: must be at least 1, got {min(counts)}")
    if dtype not in (None, torch.float16, torch.bfloat16):
        raise LowlpTypeError(f"dtype: expected None, torch.float16 or torch.bfloat16, got {dtype}")
    modules = {name: module for name, module in model.named_modules() if isinstance(module, QuantizedModule)}
    if not modules:
        raise LowlpValueError("model: has no quantised module; lowlp.torch.quantize_ makes them")
    calls = list(itertools.product(modules.values(), sorted(set(counts), reverse=True)))
    on_gpu = any(tensor.is_cuda for module in modules.values() for tensor in module._tensors())
    # Modules on a CPU divide their work among processors by themselves.
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_WORKERS) if on_gpu else 1) as pool:
        done = pool.map(lambda call: _call(call[0], call[1], dtype), calls)
        for _ in shown(done, "calls", len(calls), progress, "call", "warm up"):
            pass
    if on_gpu:
        torch.cuda.synchronize()
    return model


def _call(module: QuantizedModule, rows: int, dtype: torch.dtype | None) -> None:
    device = module._tensors()[0].device
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        if isinstance(module, Linear):
            module(torch.zeros(rows, module.in_features, dtype=dtype or module.dtype, device=device))
        elif isinstance(module, Embedding):
            module(torch.zeros(rows, dtype=torch.int64, device=device))
        elif isinstance(module, GroupedLinear):
            x = torch.zeros(rows, module.in_features, dtype=dtype or module.dtype, device=device)
            module(x, torch.zeros(module.experts + 1, dtype=torch.int32, device=device))
