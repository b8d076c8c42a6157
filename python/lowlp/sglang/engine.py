"""What `lowlp.serving` asks of SGLang."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from sglang.srt.distributed.utils import get_group_rank_size
from sglang.srt.layers.parameter import BasevLLMParameter, ChannelQuantScaleParameter, RowvLLMParameter
from sglang.srt.runtime_context import get_exec, get_schedule

from lowlp.serving.engine import Engine, with_powers
from lowlp.serving.pieces import CheckpointTensor

_RENAMED: Final = {"weight_scale_inv": "weight_scale", "activation_scale": "input_scale"}
"""What some of SGLang's models, Llama among them, call tensors of these names before they look for a parameter."""


class CheckpointParameter(CheckpointTensor, BasevLLMParameter):  # type: ignore[misc]
    """A tensor of the checkpoint that SGLang finds among a layer's parameters."""


class SglangEngine(Engine):
    """SGLang 0.5.23."""

    name = "SGLang"
    parameter = CheckpointParameter

    def other_names(self, part: str) -> tuple[str, ...]:
        """Of `Engine`."""
        return (_RENAMED[part],) if part in _RENAMED else ()

    def of_rows(self, layer: torch.nn.Module, numbers: torch.Tensor, loader: Callable[..., Any]) -> Any:
        """Of `Engine`; the loader knows the rank."""
        return ChannelQuantScaleParameter(data=numbers, output_dim=0, weight_loader=loader)

    def of_columns(self, layer: torch.nn.Module, numbers: torch.Tensor, loader: Callable[..., Any]) -> Any:
        """Of `Engine`; the loader knows the rank."""
        return RowvLLMParameter(data=numbers, input_dim=0, weight_loader=loader)

    def rank(self, layer: torch.nn.Module) -> tuple[int, int]:
        """Of `Engine`."""
        rank, ranks = get_group_rank_size(getattr(layer, "tp_group", None))
        return rank, ranks

    def rows_of_calls(self) -> tuple[int, ...]:
        """Of `Engine`; () before SGLang has published its settings."""
        try:
            graphs, schedule = get_exec().graph.cuda_graph_config, get_schedule()
        except ValueError:
            return ()
        phases = () if graphs is None else (graphs.decode, graphs.prefill)
        captured = (size for phase in phases for size in phase.bs or ())
        chunk = schedule.chunked_prefill_size
        most = chunk if chunk is not None and chunk > 0 else schedule.max_prefill_tokens
        return with_powers(tuple(captured), most or 0)


ENGINE = SglangEngine()
