"""Linear layers of an engine with lowlp's weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.torch import Linear, MergedLinear

from .engine import Engine
from .names import Source
from .warming import warm
from .weights import PackedWeights, product_of


class PackedLayer:
    """What methods of layers with packed weights share, whatever the engine computes with them.

    engine  of the class's layers
    """

    engine: ClassVar[Engine]

    def __init__(self, name: str, sources: Sequence[Source], method: str, settings: Settings) -> None:
        self.weights = PackedWeights(self.engine, name, sources, method, settings)

    def create_weights(
        self,
        layer: torch.nn.Module,
        input_size_per_partition: int,
        output_partition_sizes: list[int],
        input_size: int,
        output_size: int,
        params_dtype: torch.dtype,
        **extra_weight_attrs: Any,
    ) -> None:
        """Of the engine: parameters for the checkpoint's tensors."""
        loader = extra_weight_attrs["weight_loader"]
        self.weights.create(layer, sum(output_partition_sizes), input_size_per_partition, params_dtype, loader)


class PackedLinear(PackedLayer):
    """Linear layers - of columns, of rows, merged, replicated - by `lowlp.torch.Linear`."""

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of the engine: packs what was loaded, and makes the kernels."""
        made, padding = self.weights.make(layer)
        if padding:
            raise CheckpointError(
                f"{self.weights.name}: {padding} of the {self.weights.rows} rows that this rank has of it are beyond "
                "the end of the checkpoint's matrices"
            )
        layer.lowlp = made[0] if len(made) == 1 else MergedLinear(made)
        warm(layer.lowlp, self.weights.tokens, self.weights.dtype)
        bias = getattr(layer, "bias", None)
        if bias is not None and bias.is_cuda:
            # A product with a bias is a launch of its own, which graphs must find made too.
            with torch.no_grad():
                for count in self.weights.tokens:
                    x = torch.zeros(count, self.weights.columns, dtype=self.weights.dtype, device=bias.device)
                    self.apply(layer, x, bias)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """Of the engine: y [..., N] of x [..., K]."""
        module = layer.lowlp
        if isinstance(module, Linear):
            return product_of(module, x, bias)
        biases: Sequence[torch.Tensor | None] = [None] * len(module.shards)
        if bias is not None:
            biases = bias.split([shard.out_features for shard in module.shards])
        return torch.cat(
            [product_of(shard, x, held) for shard, held in zip(module.shards, biases, strict=True)], dim=-1
        )
