"""Linear layers of SGLang: with lowlp's weights, and those that the checkpoint has under no name that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from sglang.srt.layers.quantization.base_config import LinearMethodBase
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod

from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError
from lowlp.serving.linear import PackedLinear
from lowlp.serving.names import CheckpointNames, Source

from .engine import ENGINE


class LowlpLinearMethod(PackedLinear, LinearMethodBase):  # type: ignore[misc]
    """SGLang's linear layers by `lowlp.torch.Linear`.

    served  the names of the checkpoint's modules that layers were made of; this one adds its own
    """

    engine = ENGINE

    def __init__(self, name: str, sources: Sequence[Source], method: str, settings: Settings, served: set[str]) -> None:
        super().__init__(name, sources, method, settings)
        self.served = served

    def create_weights(self, layer: torch.nn.Module, *given: Any, **named: Any) -> None:
        """Of SGLang. A method that is only asked for tells nothing of the model, so names are added here."""
        super().create_weights(layer, *given, **named)
        self.served.update(source.name for source in self.weights.pieces.sources)


class UnnamedLinearMethod(UnquantizedLinearMethod):  # type: ignore[misc]
    """A layer for which the checkpoint has no tensors: it may be one that SGLang gives another name, or merges without
    saying of what. If it is quantised there, it must not be taken for one that is not."""

    def __init__(self, name: str, names: CheckpointNames, served: set[str]) -> None:
        super().__init__()
        self.name, self.names, self.served = name, names, served

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Of SGLang. Raises `CheckpointError` where modules beside this one are quantised and in no layer, or where no
        layer at all has a name of the checkpoint."""
        beside = [source.name for source in self.names.beside(self.name) if source.name not in self.served]
        if beside or not self.served:
            left = f"{', '.join(beside)} of the checkpoint are quantised, and in no layer" if beside else ""
            raise CheckpointError(
                f"{self.name}: the checkpoint has no tensors for it; {left or 'none of its names is that of a layer'}. "
                "SGLang has other names for this model than are known here, so it is not served"
            )
        super().process_weights_after_loading(layer)
