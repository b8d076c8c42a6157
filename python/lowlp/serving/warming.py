"""Kernels for the numbers of rows that an engine will call with, made while weights are loaded: before its graphs are
captured, which compile nothing."""

from __future__ import annotations

import torch

from lowlp.torch import warm_up
from lowlp.torch.quantized_module import QuantizedModule


def warm(module: torch.nn.Module, tokens: tuple[int, ...], dtype: torch.dtype, rows_per_token: int = 1) -> None:
    """Compiles and launches a layer's kernels, on a GPU.

    rows_per_token  of x: for experts how many a token chooses
    """
    held = [part for part in module.modules() if isinstance(part, QuantizedModule)]
    if tokens and held and held[0].packed.is_cuda:
        warm_up(module, [count * rows_per_token for count in tokens], dtype=dtype, progress=False)
