"""`LowlpConfig`: the quantisation method 'lowlp' of vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from vllm.model_executor.layers.fused_moe import RoutedExperts, UnquantizedFusedMoEMethod
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig, QuantizeMethodBase
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding

from lowlp.checkpoints.own import METHOD
from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.serving.claims import claims, method_of
from lowlp.serving.names import CheckpointNames

from .claims import lacking
from .embedding import LowlpEmbeddingMethod, TiedHeadMethod
from .experts import LowlpMoEMethod
from .linear import LowlpLinearMethod

_LEAST_CAPABILITY = 80


class LowlpConfig(QuantizationConfig):  # type: ignore[misc]
    """A checkpoint that lowlp serves. Which modules are quantised, the names of its tensors say.

    fields  the checkpoint's quantisation config

    Raises `CheckpointError` for methods that are not served.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__()
        self.method = method_of(fields)
        self.settings = Settings(dict(fields), "quantization_config")
        self.names: CheckpointNames | None = None

    def __repr__(self) -> str:
        return f"LowlpConfig(method={self.method!r})"

    @classmethod
    def get_name(cls) -> str:
        """Of vLLM."""
        return METHOD

    @classmethod
    def get_supported_act_dtypes(cls) -> list[torch.dtype]:
        """Of vLLM."""
        return [torch.float16, torch.bfloat16]

    @classmethod
    def get_min_capability(cls) -> int:
        """Of vLLM: 8.0."""
        return _LEAST_CAPABILITY

    @staticmethod
    def get_config_filenames() -> list[str]:
        """Of vLLM: where the config is if config.json has none."""
        return ["quantize_config.json", "quant_config.json"]

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LowlpConfig:
        """Of vLLM."""
        return cls(config)

    @classmethod
    def override_quantization_method(
        cls, hf_quant_cfg: dict[str, Any], user_quant: str | None, hf_config: Any = None
    ) -> str | None:
        """Of vLLM: 'lowlp' for checkpoints that are claimed."""
        return METHOD if claims(hf_quant_cfg, user_quant, lacking) else None

    def maybe_update_config(self, model_name: str, hf_config: Any = None, revision: str | None = None) -> None:
        """Of vLLM: reads the names of the checkpoint's tensors. Raises `CheckpointError` where there are none."""
        from vllm.transformers_utils.config import get_safetensors_params_metadata

        found = get_safetensors_params_metadata(model_name, revision=revision)
        if not found:
            raise CheckpointError(f"{model_name}: has no safetensors files whose tensors could be named")
        self.names = CheckpointNames({name: str(info.get("dtype")) for name, info in found.items()})

    def apply_vllm_mapper(self, hf_to_vllm_mapper: Any) -> None:
        """Of vLLM: the names that a model's class has for the checkpoint's tensors."""
        if self.names is not None:
            self.names = self.names.mapped(hf_to_vllm_mapper.map_name)

    @staticmethod
    def get_checkpoint_weight_mapper() -> Any:
        """Of vLLM: all tensors are loaded; by default it drops `g_idx`, without which act-order is lost."""
        from vllm.model_executor.models.utils import WeightsMapper

        return WeightsMapper()

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        """Of vLLM: how a layer is computed; None where vLLM decides. Raises `CheckpointError`, which names the layer,
        for what cannot be served."""
        is_embedding = isinstance(layer, VocabParallelEmbedding)
        if not isinstance(layer, LinearBase | RoutedExperts) and not is_embedding:
            return None
        if self.names is None:
            raise CheckpointError(f"{prefix}: the names of the checkpoint's tensors were not read")
        if isinstance(layer, RoutedExperts):
            experts = self.names.of_experts(prefix)
            if not experts:
                return UnquantizedFusedMoEMethod(layer.moe_config)
            return LowlpMoEMethod(prefix, experts, self.method, self.settings, layer)
        if is_embedding:
            sources = self.names.quantised(prefix, {}) if prefix else self.names.embedding()
            if sources:
                return LowlpEmbeddingMethod(prefix or sources[0].name, sources, self.method, self.settings)
            is_tied = isinstance(layer, ParallelLMHead) and not self.names.has(prefix)
            return TiedHeadMethod() if is_tied else None
        sources = self.names.quantised(prefix, self.packed_modules_mapping)
        return LowlpLinearMethod(prefix, sources, self.method, self.settings) if sources else UnquantizedLinearMethod()
