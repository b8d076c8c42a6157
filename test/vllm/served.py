"""lowlp's config of vLLM, for checkpoints of test/serving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from encoded import Tensors, types_of
from vllm.model_executor.layers.quantization import get_quantization_config

from lowlp.serving.names import CheckpointNames


def config_of(
    fields: Mapping[str, Any], modules: Mapping[str, Tensors], merged: Mapping[str, list[str]] | None = None
) -> Any:
    """For a checkpoint with these modules."""
    config = get_quantization_config("lowlp").from_config(dict(fields))
    config.names = CheckpointNames(types_of(modules))
    config.packed_modules_mapping = dict(merged or {})
    return config
