"""What `lowlp.vllm` takes from vLLM, as small as it can be, for a GPU whose machine has no vLLM: one rank, parameters
that hold what is loaded, no scheduler. test/vllm has vLLM's own classes, on the CPU."""

from __future__ import annotations

import sys
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

ROWS = [1, 8, 32]
"""Numbers of tokens that graphs are captured for."""
MOST_ROWS = 64


class Method:
    requires_device_loading = True


class Parameter(torch.nn.Parameter):
    def __new__(cls, data: torch.Tensor, **_: Any) -> Parameter:
        return super().__new__(cls, data, requires_grad=False)

    def __init__(self, data: torch.Tensor, weight_loader: Any, **_: Any) -> None:
        self.weight_loader, self.tp_rank, self.tp_size = weight_loader, 0, 1


class MoEActivation(Enum):
    SILU = "silu"
    SWIGLUOAI_UNINTERLEAVE = "swigluoai_uninterleave"


class Layer(torch.nn.Module):
    """A linear layer, merged of matrices of `sizes` rows: shards are their numbers."""

    tp_rank, tp_size = 0, 1

    def __init__(self, k: int, sizes: list[int], method: Any, dtype: torch.dtype) -> None:
        super().__init__()
        self.sizes, self.quant_method = sizes, method
        method.create_weights(self, k, sizes, k, sum(sizes), dtype, weight_loader=self.load)

    def load(self, parameter: Any, loaded: torch.Tensor, shard: int = 0) -> None:
        first = sum(self.sizes[:shard])
        parameter.data[first : first + self.sizes[shard]] = loaded

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return self.quant_method.apply(self, x, bias)


class RoutedExperts(torch.nn.Module):
    """Experts of one rank."""

    ckpt_gate_proj_name, ckpt_up_proj_name, ckpt_down_proj_name = "gate_proj", "up_proj", "down_proj"
    activation, swiglu_alpha, swiglu_beta, swiglu_limit = MoEActivation.SILU, None, None, None
    apply_router_weight_on_input, expert_map = False, None

    def __init__(self, experts: int, hidden: int, inner: int, top_k: int, dtype: torch.dtype, make: Any) -> None:
        super().__init__()
        self.global_num_experts, self.inner, self.top_k = experts, inner, top_k
        parallel = SimpleNamespace(use_all2all_kernels=False)
        self.moe_config = SimpleNamespace(moe_parallel_config=parallel, tp_rank=0)
        self.quant_method = make(self)
        self.quant_method.create_weights(self, experts, hidden, inner, dtype, weight_loader=self.load)

    def _map_global_expert_id_to_local_expert_id(self, expert: int) -> int:
        return expert

    def load(self, parameter: Any, loaded: torch.Tensor, name: str, shard: str, expert: int) -> None:
        held = parameter.data[expert]
        if name.startswith("w13"):
            held = held[: self.inner] if shard == "w1" else held[self.inner :]
        held.copy_(loaded)

    def forward(self, x: torch.Tensor, weights: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return self.quant_method.apply(self, x, weights, ids, None, None)


class MoEMethod(Method):
    def __init__(self, moe: Any) -> None:
        self.moe = moe


def set_attributes(parameter: Any, attributes: dict[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(parameter, name, value)


def install() -> None:
    """Puts modules of vLLM's names into this process. Nothing where vLLM is installed."""
    config = SimpleNamespace(
        scheduler_config=SimpleNamespace(max_num_batched_tokens=MOST_ROWS),
        compilation_config=SimpleNamespace(cudagraph_capture_sizes=ROWS),
    )
    layers = "model_executor.layers"
    found: dict[str, dict[str, Any]] = {
        "config": {"get_current_vllm_config_or_none": lambda: config},
        "model_executor.parameter": dict.fromkeys(
            ("BasevLLMParameter", "ChannelQuantScaleParameter", "RowvLLMParameter"), Parameter
        ),
        "model_executor.utils": {"set_weight_attrs": set_attributes},
        f"{layers}.linear": {
            "LinearMethodBase": Method,
            "register_weight_loader_v2_supported_method": lambda method: method,
        },
        f"{layers}.quantization.base_config": {"QuantizeMethodBase": Method},
        f"{layers}.vocab_parallel_embedding": {"UnquantizedEmbeddingMethod": Method},
        f"{layers}.fused_moe": {"FusedMoEMethodBase": MoEMethod},
        f"{layers}.fused_moe.activation": {"MoEActivation": MoEActivation},
    }
    for path, members in found.items():
        names = ["vllm", *path.split(".")]
        for depth in range(1, len(names) + 1):
            name = ".".join(names[:depth])
            if name not in sys.modules:
                sys.modules[name] = ModuleType(name)
                sys.modules[name].__path__ = []  # type: ignore[attr-defined]
        vars(sys.modules[f"vllm.{path}"]).update(members)
