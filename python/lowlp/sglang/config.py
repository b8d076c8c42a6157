"""`LowlpConfig`: the quantisation method 'lowlp' of SGLang."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import torch
from sglang.srt.layers.linear import LinearBase
from sglang.srt.layers.moe.fused_moe_triton.layer import FusedMoE
from sglang.srt.layers.quantization.base_config import QuantizationConfig, QuantizeMethodBase
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from sglang.srt.layers.vocab_parallel_embedding import ParallelLMHead, VocabParallelEmbedding

from lowlp.checkpoints.checkpoint import tensor_files
from lowlp.checkpoints.own import METHOD
from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.serving.claims import claims, method_of
from lowlp.serving.names import CheckpointNames

from .claims import lacking
from .embedding import LowlpEmbeddingMethod, TiedHeadMethod
from .linear import LowlpLinearMethod, UnnamedLinearMethod

_LEAST_CAPABILITY: Final = 80
_MERGED: Final = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
"""What nearly all of SGLang's models merge; half of them do not say it."""
_OF_SGLANG: Final = ("hf_config", "packed_modules_mapping")
"""Fields that SGLang adds to a checkpoint's."""


class LowlpConfig(QuantizationConfig):  # type: ignore[misc]
    """A checkpoint that lowlp serves. Which modules are quantised, the names of its tensors say.

    fields  the checkpoint's quantisation config, and what SGLang adds to it

    Raises `CheckpointError` for methods that are not served.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__()
        self.method = method_of(fields)
        of_checkpoint = {name: value for name, value in fields.items() if name not in _OF_SGLANG}
        self.settings = Settings(of_checkpoint, "quantization_config")
        self.packed_modules_mapping = dict(fields.get("packed_modules_mapping") or {})
        self.names: CheckpointNames | None = None
        self.served: set[str] = set()

    def __repr__(self) -> str:
        return f"LowlpConfig(method={self.method!r})"

    @classmethod
    def get_name(cls) -> str:
        """Of SGLang."""
        return METHOD

    @classmethod
    def get_supported_act_dtypes(cls) -> list[torch.dtype]:
        """Of SGLang."""
        return [torch.float16, torch.bfloat16]

    @classmethod
    def get_min_capability(cls) -> int:
        """Of SGLang: 8.0."""
        return _LEAST_CAPABILITY

    @staticmethod
    def get_config_filenames() -> list[str]:
        """Of SGLang: where the config is if config.json has none."""
        return ["quantize_config.json", "quant_config.json"]

    @staticmethod
    def get_scaled_act_names() -> list[str]:
        """Of SGLang: none."""
        return []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LowlpConfig:
        """Of SGLang."""
        return cls(config)

    @classmethod
    def override_quantization_method(cls, hf_quant_cfg: Any, user_quant: str | None) -> str | None:
        """Of SGLang: 'lowlp' for checkpoints that are claimed."""
        is_claimed = isinstance(hf_quant_cfg, Mapping) and claims(hf_quant_cfg, user_quant, lacking)
        return METHOD if is_claimed else None

    def apply_weight_name_mapper(self, hf_to_sglang_mapper: Any) -> None:
        """Of SGLang: the names that a model's class has for the checkpoint's tensors."""
        if self.names is not None:
            self.names = self.names.mapped(hf_to_sglang_mapper._map_name)

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        """Of SGLang: how a layer is computed; None where SGLang decides. Raises `CheckpointError`, which names the
        layer, for what cannot be served."""
        if not isinstance(layer, LinearBase | FusedMoE | VocabParallelEmbedding):
            return None
        if self.names is None:
            raise CheckpointError(f"{prefix}: the names of the checkpoint's tensors were not read")
        if isinstance(layer, FusedMoE):
            self._refuse_experts(prefix, self.names)
            return None
        if isinstance(layer, VocabParallelEmbedding):
            return self._of_embedding(layer, prefix, self.names)
        sources = self.names.quantised(prefix, self._merged())
        if sources:
            return LowlpLinearMethod(prefix, sources, self.method, self.settings, self.served)
        if self.names.has_any(prefix, self._merged()):
            return UnquantizedLinearMethod()
        return UnnamedLinearMethod(prefix, self.names, self.served)

    def _merged(self) -> dict[str, tuple[str, ...]]:
        """The model's merged layers; some models have them by the part of the model that has them."""
        found = dict(_MERGED)
        for name, shards in self.packed_modules_mapping.items():
            named = shards if isinstance(shards, Mapping) else {name: shards}
            found |= {merged: tuple(parts) for merged, parts in named.items()}
        return found

    def _of_embedding(self, layer: torch.nn.Module, prefix: str, names: CheckpointNames) -> QuantizeMethodBase | None:
        is_head = isinstance(layer, ParallelLMHead)
        name = prefix or ("lm_head" if is_head else "")
        is_named = bool(name) and names.has(name)
        sources = names.quantised(name, {}) if is_named or is_head else names.embedding()
        if sources:
            return LowlpEmbeddingMethod(name or sources[0].name, sources, self.method, self.settings)
        return TiedHeadMethod(name, layer) if is_head and not is_named and names.embedding() else None

    @staticmethod
    def _refuse_experts(prefix: str, names: CheckpointNames) -> None:
        quantised = [source.name for source in names.of_experts(prefix) if source.is_quantised]
        if not quantised and not names.of_experts(prefix):
            quantised = names.quantised_within("experts")
        if quantised:
            raise CheckpointError(
                f"{prefix or 'experts'}: {quantised[0]} is quantised, and quantised experts are not served by lowlp in "
                "SGLang; vLLM with lowlp serves them"
            )


def read_names(config: Any, model_config: Any, load_config: Any, *others: Any, **more: Any) -> None:
    """After SGLang has made the config of a checkpoint: reads the names of its tensors. Raises `CheckpointError` where
    there are none."""
    if not isinstance(config, LowlpConfig):
        return
    folder = Path(model_config.model_path)
    if not folder.is_dir():
        from sglang.srt.model_loader.weight_utils import download_weights_from_hf

        # They are loaded next, and SGLang downloads once.
        patterns = ["*.safetensors", "*.safetensors.index.json"]
        place = download_weights_from_hf(
            model_config.model_path,
            load_config.download_dir,
            patterns,
            model_config.revision,
            ignore_patterns=load_config.ignore_patterns,
        )
        folder = Path(place)
    files = tensor_files(folder)
    if files is None:
        raise CheckpointError(f"{model_config.model_path}: has no safetensors files whose tensors could be named")
    config.names = CheckpointNames({name: files.kind(name) for name in files.names})
