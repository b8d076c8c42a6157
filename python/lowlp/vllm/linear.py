"""Linear layers of vLLM with lowlp's weights."""

from __future__ import annotations

from vllm.model_executor.layers.linear import LinearMethodBase, register_weight_loader_v2_supported_method

from lowlp.serving.linear import PackedLinear

from .engine import ENGINE


@register_weight_loader_v2_supported_method
class LowlpLinearMethod(PackedLinear, LinearMethodBase):  # type: ignore[misc]
    """vLLM's linear layers by `lowlp.torch.Linear`."""

    engine = ENGINE
    requires_device_loading = False
