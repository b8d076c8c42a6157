"""Tensors of a checkpoint that another program has read, in memory, for the readers of formats.

A serving engine reads files itself, and gives each layer its tensors: what `TensorFiles` does with files, this does
with arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from lowlp.checkpoints.detection import FORMATS
from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.own import METHOD
from lowlp.checkpoints.own import layers as own_layers
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TYPES, Place, TensorFiles, bare
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray, as_host_array

_KINDS: Final = {dtype: kind for kind, dtype in TYPES.items()}


class HeldTensors(TensorFiles):
    """Tensors in memory, by the names that their files have for them."""

    def __init__(self, tensors: Mapping[str, object], where: str) -> None:
        """Raises `CheckpointError` for types that no file has.

        tensors  numpy arrays, or tensors of PyTorch on the CPU; not copied
        where    what errors say they are from
        """
        self.paths = (Path(where),)
        self.metadata: dict[str, str] = {}
        self._maps = [None]
        self._held: dict[str, AnyArray] = {}
        self._places: dict[str, Place] = {}
        for name, tensor in tensors.items():
            array = as_host_array(tensor, name)
            kind = _KINDS.get(array.dtype)
            if kind is None:
                raise CheckpointError(f"{name}: elements of the type {array.dtype.name} are not read")
            self._held[name] = array
            self._places[name] = Place(0, 0, kind, array.shape)

    def _memory(self, name: str, place: Place) -> AnyArray:
        found = np.ascontiguousarray(self._held[bare(name)]).view()
        found.flags.writeable = False
        return found.reshape(place.shape)

    def release(self, names: object) -> None:
        """Nothing: they are the caller's."""


def layer_of_tensors(name: str, tensors: Mapping[str, object], method: str, settings: Settings) -> Layer:
    """The one quantised layer whose tensors these are.

    name      of the module, as the checkpoint has it: 'model.layers.0.mlp.down_proj'
    tensors   by their names within it: 'qweight', 'scales', ...
    method    one of `FORMATS`, or 'lowlp'
    settings  the checkpoint's

    Raises `CheckpointError`, which names the layer.
    """
    files = HeldTensors({f"{name}.{part}": tensor for part, tensor in tensors.items()}, name)
    found = list(own_layers(files, settings) if method == METHOD else FORMATS[method](files, settings, True))
    if len(found) != 1:
        listed = ", ".join(sorted(tensors)) or "none"
        raise CheckpointError(f"{name}: its tensors make no layer of the method {method}: {listed}")
    return found[0]
