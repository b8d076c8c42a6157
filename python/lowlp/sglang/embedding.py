"""Embeddings and heads of SGLang with lowlp's weights, of their own or of one another."""

from __future__ import annotations

import torch
from sglang.srt.layers.quantization.base_config import QuantizeMethodBase
from sglang.srt.layers.quantization.unquant import UnquantizedEmbeddingMethod

from lowlp.errors import CheckpointError
from lowlp.serving.embedding import PackedEmbedding, TiedHead

from .engine import ENGINE


class LowlpEmbeddingMethod(PackedEmbedding, QuantizeMethodBase):  # type: ignore[misc]
    """Rows of a quantised table where they are looked up, and the product with it for a head. Many of SGLang's models
    have one module for both."""

    engine = ENGINE


class TiedHeadMethod(TiedHead, UnquantizedEmbeddingMethod):  # type: ignore[misc]
    """A head without tensors in the checkpoint, whose embedding is quantised.

    name   of the head
    layer  the head, whose `tie_weights` would look for the embedding's weight
    """

    def __init__(self, name: str, layer: torch.nn.Module) -> None:
        super().__init__()
        self.name, self.is_tied = name, False

        def tie_weights(embed_tokens: torch.nn.Module) -> torch.nn.Module:
            self.is_tied = self.tie(layer, embed_tokens)
            return layer

        layer.__dict__["tie_weights"] = tie_weights

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of SGLang. Raises `CheckpointError` for a head that was to get the embedding's weights as a tensor."""
        if not self.is_tied:
            raise CheckpointError(
                f"{self.name}: the checkpoint has no tensors for it, and the embedding, whose weights it would share, "
                "is quantised and not in this process (pipeline parallelism), or shared in a way that is not served"
            )
