"""Tensors of the checkpoint, as an engine gives them to a layer: held until all have come, and then read by the reader
of their format.

Of each matrix that the engine merges (q, k and v) the tensors stay apart, so that each keeps its bits, its groups, its
second scale and its order of columns. Which rows and columns of them this rank has, `slicing` asks of the engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import torch

from lowlp.checkpoints.held_tensors import layer_of_tensors
from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.settings import Settings
from lowlp.errors import CheckpointError

from .names import Source

_TYPES: Final = {
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
}


class CheckpointTensor:
    """A tensor of the checkpoint by its name within a module, and its type as safetensors calls it: with the base class
    of an engine's parameters a parameter without elements, so that the engine finds it, and gives its loader what the
    file has under that name."""

    data: torch.Tensor
    device: torch.device

    def __new__(cls, part: str, kind: str, loader: Any) -> Any:
        # Of the tensor's type, since vLLM warns of another.
        return super().__new__(cls, data=torch.empty(0, dtype=_TYPES.get(kind, torch.float32)))  # type: ignore[call-arg]

    def __init__(self, part: str, kind: str, loader: Any) -> None:
        super().__init__(data=self.data, weight_loader=loader)  # type: ignore[call-arg]
        self.part = part


class Pieces:
    """The tensors of one layer, by the matrices that it is merged of: keys are the engine's ids of shards, None for one
    matrix, or for one that the checkpoint has merged already.

    name     of the layer
    sources  the checkpoint's modules that it is made of
    engine   what errors call the engine
    """

    def __init__(self, name: str, sources: Sequence[Source], engine: str) -> None:
        self.name, self.sources, self.engine = name, tuple(sources), engine
        self.tensors: dict[Hashable, dict[str, torch.Tensor]] = {}

    def keep(self, key: Hashable, part: str, tensor: torch.Tensor) -> None:
        """Holds a copy of a tensor, on the CPU, since loaders use their buffers again."""
        self.tensors.setdefault(key, {})[part] = tensor.detach().to("cpu", copy=True)

    @property
    def seem_complete(self) -> bool:
        """Whether as many tensors have come as the checkpoint has for this layer, for as many matrices."""
        held = sum(map(len, self.tensors.values()))
        return held == sum(len(source.parts) for source in self.sources) and len(self.tensors) == len(self.sources)

    def layers(self, method: str, settings: Settings) -> dict[Hashable, Layer]:
        """The layers of the matrices. Raises `CheckpointError`, which names this layer, for what has not come."""
        if not self.tensors:
            listed = ", ".join(f"{source.name}.{part}" for source in self.sources for part in source.parts)
            raise CheckpointError(f"{self.name}: none of its tensors was loaded: {listed:.300}")
        keys = sorted(self.tensors, key=lambda key: _place(key) or 0)
        return {key: self.layer(key, _source(self.sources, key), method, settings) for key in keys}

    def layer(self, key: Hashable, source: Source, method: str, settings: Settings) -> Layer:
        """The layer of one matrix."""
        missing = sorted(source.parts.keys() - self.tensors[key].keys())
        if missing:
            raise CheckpointError(
                f"{self.name}: {self.engine} has not loaded {source.name}.{missing[0]}, which the files have"
            )
        found = layer_of_tensors(source.name, self.tensors[key], method, settings)
        if found.transforms:
            raise CheckpointError(
                f"{source.name} ({found.format}): its layer transforms x or y besides the product, which is not served"
            )
        return found


def parts_of(sources: Sequence[Source]) -> dict[str, str]:
    """The tensors that any of these modules has, by name, and their types."""
    return {part: kind for source in sources for part, kind in sorted(source.parts.items())}


def _source(sources: Sequence[Source], key: Hashable) -> Source:
    """The checkpoint's module that is the matrix of a shard."""
    place = _place(key)
    return sources[place if place is not None and place < len(sources) else 0]


def _place(key: Hashable) -> int | None:
    """Which of the merged matrices a shard's id is."""
    if isinstance(key, tuple):
        return _place(key[0])
    if isinstance(key, int):
        return key
    return {"q": 0, "k": 1, "v": 2}.get(str(key))
