"""lowlp's own checkpoints: safetensors files, and a config.json whose quantization_config has the method 'lowlp'.

    <name>.packed, <name>.scales, ...   the arrays of `QuantizedTensor.to_arrays` of the weights <name>
    <name>                              arrays, as they are

The metadata of each file has the version of this format under 'lowlp', and the header of the weights <name> under
'lowlp:<name>'. Version 1 is read by all later versions of lowlp; packed words have a version of their own, which the
header says (docs/packed-format.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np

from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.meaning import Meaning
from lowlp.weights.quantized_tensor import QuantizedTensor

METHOD: Final = "lowlp"
KEY: Final = "lowlp"
VERSION: Final = 1


class PackedParts:
    """Weights whose words are in a file."""

    def __init__(self, files: TensorFiles, tensors: Mapping[str, str], header: str) -> None:
        self._files = files
        self._tensors = tensors
        self._header = header

    @property
    def meaning(self) -> Meaning:
        """What the codes mean."""
        return self._made({part: self._files.array(name) for part, name in self._tensors.items()}).meaning

    def pack(self, activation: object = None) -> QuantizedTensor:
        """The weights; packed anew where they are for another family than `activation` says."""
        found = self._made({part: np.array(self._files.array(name)) for part, name in self._tensors.items()})
        return found if activation is None else found.pack_for(activation)

    def _made(self, arrays: Mapping[str, AnyArray]) -> QuantizedTensor:
        return QuantizedTensor.from_arrays(arrays, self._header)


def layers(files: TensorFiles) -> Iterator[Layer]:
    """The quantised weights of a checkpoint of lowlp. Raises `CheckpointError` for another version."""
    version = files.metadata.get(KEY)
    if version != str(VERSION):
        raise CheckpointError(
            f"{files.paths[0]}: a checkpoint of lowlp of format version {version!r:.20} is not read; this lowlp reads "
            f"{VERSION}"
        )
    for key, header in files.metadata.items():
        name = key.removeprefix(f"{KEY}:")
        if name != key:
            yield _layer(files, name, header)


def _layer(files: TensorFiles, name: str, header: str) -> Layer:
    try:
        fields = json.loads(header)
        shape = tuple(int(extent) for extent in fields["shape"])
        code = str(fields.get("vectors") or fields["dtype"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{name}: its header is not as lowlp writes it: {error!r:.80}") from None
    prefix = f"{name}."
    tensors = {
        found.removeprefix(prefix): found
        for found in files.names
        if found.startswith(prefix) and "." not in found.removeprefix(prefix)
    }
    return Layer(name, shape, f"lowlp, {code}", tuple(tensors.values()), partial(PackedParts, files, tensors, header))
