"""Embeddings and heads of vLLM with lowlp's weights, of their own or of one another."""

from __future__ import annotations

import torch
from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

from lowlp.errors import CheckpointError
from lowlp.serving.embedding import PackedEmbedding, TiedHead

from .engine import ENGINE


class LowlpEmbeddingMethod(PackedEmbedding, QuantizeMethodBase):  # type: ignore[misc]
    """Rows of a quantised table where they are looked up, and the product with it for a head."""

    engine = ENGINE
    requires_device_loading = False

    def tie_weights(self, layer: torch.nn.Module, embed_tokens: torch.nn.Module) -> torch.nn.Module:
        """Of vLLM: refused, since the checkpoint has a head of its own."""
        raise CheckpointError(
            f"{self.weights.name}: the model ties it to the embedding, and the checkpoint has weights of its own for it"
        )


class TiedHeadMethod(TiedHead, UnquantizedEmbeddingMethod):  # type: ignore[misc]
    """A head without tensors in the checkpoint: that of an embedding, quantised or not."""

    def tie_weights(self, layer: torch.nn.Module, embed_tokens: torch.nn.Module) -> torch.nn.Module:
        """Of vLLM: the head takes the embedding's weights."""
        return layer if self.tie(layer, embed_tokens) else super().tie_weights(layer, embed_tokens)
