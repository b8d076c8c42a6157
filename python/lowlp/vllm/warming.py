"""Kernels for the numbers of rows that vLLM will call with, made while weights are loaded: before its graphs are
captured, which compile nothing."""

from __future__ import annotations

import torch
from vllm.config import get_current_vllm_config_or_none

from lowlp.torch import warm_up
from lowlp.torch.quantized_module import QuantizedModule


def rows_of_calls() -> tuple[int, ...]:
    """The numbers of tokens that vLLM captures graphs for, and powers of two up to the most that it computes at once;
    () where no config of vLLM is set, as it is while a model is built."""
    config = get_current_vllm_config_or_none()
    if config is None:
        return ()
    most = config.scheduler_config.max_num_batched_tokens
    captured = config.compilation_config.cudagraph_capture_sizes or ()
    powers = (1 << bit for bit in range(most.bit_length()))
    return tuple(sorted({*captured, *powers, most}))


def warm(module: torch.nn.Module, tokens: tuple[int, ...], dtype: torch.dtype, rows_per_token: int = 1) -> None:
    """Compiles and launches a layer's kernels, on a GPU.

    rows_per_token  of x: for experts how many a token chooses
    """
    held = [part for part in module.modules() if isinstance(part, QuantizedModule)]
    if tokens and held and held[0].packed.is_cuda:
        warm_up(module, [count * rows_per_token for count in tokens], dtype=dtype, progress=False)
