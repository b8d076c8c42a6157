"""Embeddings and heads of an engine with lowlp's weights, of their own or of one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.torch import Embedding, Linear

from .linear import PackedLayer
from .names import Source
from .warming import warm
from .weights import product_of


class PackedEmbedding(PackedLayer):
    """Rows of a quantised table where they are looked up, and the product with it for a head."""

    def __init__(self, name: str, sources: Sequence[Source], method: str, settings: Settings) -> None:
        super().__init__(name, sources, method, settings)
        self.padding = 0

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of the engine: packs what was loaded, and makes the kernels of a head."""
        made, self.padding = self.weights.make(layer)
        if len(made) != 1:
            raise CheckpointError(f"{self.weights.name}: expected one matrix, got {len(made)}")
        layer.lowlp = made[0]
        warm(layer.lowlp, self.weights.tokens, self.weights.dtype)
        table = self._table(layer)
        warm(table, self.weights.tokens, self.weights.dtype)

    def embedding(self, layer: torch.nn.Module, input_: torch.Tensor) -> torch.Tensor:
        """Of the engine: rows [..., K] of ids [...], which are those of this rank."""
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
        """Of the engine: logits of this rank's rows, zero for rows of padding, which the engine drops."""
        if not self.padding:
            return product_of(layer.lowlp, x, bias)
        held = None if bias is None else bias[: -self.padding]
        return torch.nn.functional.pad(product_of(layer.lowlp, x, held), (0, self.padding))


_EMBEDDING: Final = "lowlp_tied"


class TiedHead:
    """A head without tensors in the checkpoint, above the engine's method for a head that is not quantised: that of an
    embedding, quantised or not."""

    def tie(self, layer: torch.nn.Module, embedding: torch.nn.Module) -> bool:
        """The head takes the weights of a quantised embedding, which are not loaded yet; False for another one."""
        if not isinstance(embedding.quant_method, PackedEmbedding):
            return False
        del layer.weight
        layer.__dict__[_EMBEDDING] = embedding
        return True

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of the engine: nothing for a head that is tied to lowlp's weights."""
        if _EMBEDDING not in layer.__dict__:
            super().process_weights_after_loading(layer)  # type: ignore[misc]

    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Of the engine: logits."""
        tied = layer.__dict__.get(_EMBEDDING)
        found: torch.Tensor = (
            super().apply(layer, x, bias)  # type: ignore[misc]
            if tied is None
            else tied.quant_method.apply(tied, x, bias)
        )
        return found
