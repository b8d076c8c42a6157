"""What `lowlp.serving` asks of vLLM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from vllm.config import get_current_vllm_config_or_none
from vllm.model_executor.parameter import BasevLLMParameter, ChannelQuantScaleParameter, RowvLLMParameter

from lowlp.serving.engine import Engine, with_powers
from lowlp.serving.pieces import CheckpointTensor


class CheckpointParameter(CheckpointTensor, BasevLLMParameter):  # type: ignore[misc]
    """A tensor of the checkpoint that vLLM finds among a layer's parameters."""


class VllmEngine(Engine):
    """vLLM 0.33."""

    name = "vLLM"
    parameter = CheckpointParameter

    def of_rows(self, layer: torch.nn.Module, numbers: torch.Tensor, loader: Callable[..., Any]) -> Any:
        """Of `Engine`."""
        return _placed(ChannelQuantScaleParameter(data=numbers, output_dim=0, weight_loader=loader), layer)

    def of_columns(self, layer: torch.nn.Module, numbers: torch.Tensor, loader: Callable[..., Any]) -> Any:
        """Of `Engine`."""
        return _placed(RowvLLMParameter(data=numbers, input_dim=0, weight_loader=loader), layer)

    def rank(self, layer: torch.nn.Module) -> tuple[int, int]:
        """Of `Engine`."""
        parameter = self.of_rows(layer, torch.empty(0), lambda: None)
        return parameter.tp_rank, parameter.tp_size

    def rows_of_calls(self) -> tuple[int, ...]:
        """Of `Engine`; () where no config of vLLM is set, as it is while a model is built."""
        config = get_current_vllm_config_or_none()
        if config is None:
            return ()
        captured = config.compilation_config.cudagraph_capture_sizes or ()
        return with_powers(tuple(captured), config.scheduler_config.max_num_batched_tokens)


ENGINE = VllmEngine()


def _placed(parameter: Any, layer: torch.nn.Module) -> Any:
    """With the layer's place among ranks, where it has one of its own."""
    parameter.tp_rank = getattr(layer, "tp_rank", parameter.tp_rank)
    parameter.tp_size = getattr(layer, "tp_size", parameter.tp_size)
    return parameter
