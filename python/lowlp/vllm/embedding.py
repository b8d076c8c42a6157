"""Embeddings and heads of vLLM with lowlp's weights, of their own or of one another."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from vllm.model_executor.layers.quantization.base_config import QuantizeMethodBase
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.torch import Embedding, Linear

from .linear import PackedLayer, product_of
from .names import Source
from .warming import warm


class LowlpEmbeddingMethod(PackedLayer, QuantizeMethodBase):  # type: ignore[misc]
    """Rows of a quantised table where they are looked up, and the product with it for a head."""

    def __init__(self, name: str, sources: Sequence[Source], method: str, settings: Settings) -> None:
        super().__init__(name, sources, method, settings)
        self.padding = 0

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of vLLM: packs what was loaded, and makes the kernels of a head."""
        made, self.padding = self.weights.make(layer)
        if len(made) != 1:
            raise CheckpointError(f"{self.weights.name}: expected one matrix, got {len(made)}")
        layer.lowlp = made[0]
        warm(layer.lowlp, self.weights.tokens, self.weights.dtype)
        table = self._table(layer)
        warm(table, self.weights.tokens, self.weights.dtype)

    def embedding(self, layer: torch.nn.Module, input_: torch.Tensor) -> torch.Tensor:
        """Of vLLM: rows [..., K] of ids [...], which are those of this rank."""
        found: torch.Tensor = self._table(layer)(input_)
        return found

    def _table(self, layer: torch.nn.Module) -> Embedding:
        held: Embedding | None = layer.__dict__.get("lowlp_table")
        if held is None:
            module: Linear = layer.lowlp
            held = Embedding.of_tensors(module._buffers, module._stored_header, self.weights.dtype)
            # No child of the layer, so that its buffers are there once.
            layer.__dict__["lowlp_table"] = held
        return held

    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Of vLLM: logits of this rank's rows, zero for rows of padding, which vLLM drops."""
        if not self.padding:
            return product_of(layer.lowlp, x, bias)
        held = None if bias is None else bias[: -self.padding]
        return torch.nn.functional.pad(product_of(layer.lowlp, x, held), (0, self.padding))

    def tie_weights(self, layer: torch.nn.Module, embed_tokens: torch.nn.Module) -> torch.nn.Module:
        """Of vLLM: refused, since the checkpoint has a head of its own."""
        raise CheckpointError(
            f"{self.weights.name}: the model ties it to the embedding, and the checkpoint has weights of its own for it"
        )


class TiedHeadMethod(UnquantizedEmbeddingMethod):  # type: ignore[misc]
    """A head without tensors in the checkpoint: that of an embedding, quantised or not."""

    def tie_weights(self, layer: torch.nn.Module, embed_tokens: torch.nn.Module) -> torch.nn.Module:
        """Of vLLM: the head takes the embedding's weights, which are not loaded yet."""
        if not isinstance(embed_tokens.quant_method, LowlpEmbeddingMethod):
            return super().tie_weights(layer, embed_tokens)
        del layer.weight
        layer.__dict__["lowlp_tied"] = embed_tokens
        return layer

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of vLLM: nothing for a head that is tied to lowlp's weights."""
        if "lowlp_tied" not in layer.__dict__:
            super().process_weights_after_loading(layer)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Of vLLM: logits."""
        tied = layer.__dict__.get("lowlp_tied")
        if tied is None:
            return super().apply(layer, x, bias)
        return tied.quant_method.apply(tied, x, bias)
