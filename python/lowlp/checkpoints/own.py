"""lowlp's own checkpoints: safetensors files, and a config.json whose quantization_config has the method 'lowlp'.

    <module>.packed, <module>.scales, ...  the arrays of `QuantizedTensor.to_arrays` of the weights <module>.weight
    <module>.header                        uint8, their header
    <name>                                 arrays, as they are

These are the buffers of `lowlp.torch.Linear`, so a model's state dict is such a checkpoint. PyTorch has int32 for the
words and bfloat16 for its bits, which are read as well. Weights of another name have that name in place of <module>,
and in the file's metadata under 'lowlp:<name>'. The metadata of files that lowlp writes have the version of this format
under 'lowlp', as config.json has it: version 1 is read by all later versions of lowlp. Packed words have a version of
their own, which the header says (docs/packed-format.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.meaning import Meaning
from lowlp.weights.part_packing import repacked_part
from lowlp.weights.parts import Part, part_of_arrays, pieces, without_permutation
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.stored_arrays import stored_types
from lowlp_runtime.errors import LowlpError

METHOD: Final = "lowlp"
KEY: Final = "lowlp"
VERSION: Final = 1


HEADER: Final = "header"


class PackedParts:
    """Weights whose words are in a file."""

    def __init__(self, files: TensorFiles, tensors: Mapping[str, str], header: str) -> None:
        self._files = files
        self._tensors = tensors
        self._header = header

    @property
    def meaning(self) -> Meaning:
        """What the codes mean."""
        return self._made(copies=False).meaning

    def pack(self, activation: object = None) -> QuantizedTensor:
        """The weights; packed anew where they are for another family than `activation` says."""
        found = self._made(copies=True)
        return found if activation is None else found.pack_for(activation)

    @property
    def header(self) -> str:
        """Of the weights."""
        return self._header

    def part(self, part: Part) -> QuantizedTensor:
        """Some rows and columns: nothing else is read. Raises as `part_of_arrays`."""
        return part_of_arrays(self.stored, self._header, part)

    def part_bytes(self, part: Part) -> int:
        """Bytes that are read for a part."""
        found = 0
        for name in self._tensors:
            array = self.stored(name)
            found += sum(array[index].nbytes for index in pieces(name, array.shape, self._header, part)[0])
        return found

    def without_permutation(self) -> PackedParts:
        """The same words, for columns in the order in which they are packed."""
        tensors = {part: name for part, name in self._tensors.items() if part != "permutation"}
        return PackedParts(self._files, tensors, without_permutation(self._header))

    def stored(self, part: str) -> AnyArray:
        """A stored array, where the file is mapped."""
        if part not in self._tensors:
            raise CheckpointError(f"{part}: is missing, and the header names it")
        return _of_stored_type(self._files.array(self._tensors[part]), stored_types(self._header)[part])

    def pack_part(self, rows: slice, columns: slice, activation: object = None) -> QuantizedTensor:
        """Some rows and columns of weights [N, K]."""
        return repacked_part(self._made(copies=True), rows, columns, activation)

    def _made(self, copies: bool) -> QuantizedTensor:
        arrays = {}
        for part, kind in stored_types(self._header).items():
            if part in self._tensors:
                array = self._files.array(self._tensors[part])
                arrays[part] = _of_stored_type(np.array(array) if copies else array, kind)
        return QuantizedTensor.from_arrays(arrays, self._header)


def _of_stored_type(array: AnyArray, kind: np.dtype[Any]) -> AnyArray:
    """PyTorch's types for words and bfloat16 as those that are stored."""
    same = {("int32", "uint32"), ("bfloat16", "uint16")}
    return array.view(kind) if (array.dtype.name, kind.name) in same else array


def is_own(files: TensorFiles) -> bool:
    """Whether tensors or metadata are those of a checkpoint of lowlp."""
    return KEY in files.metadata or any(f"{base}.packed" in files for base in files.ending(f".{HEADER}"))


def base_of(name: str) -> str:
    """What the names of the arrays of weights begin with."""
    return name.removesuffix(".weight")


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised weights of a checkpoint of lowlp. Raises `CheckpointError` for another version."""
    said = settings.integer("version", default=VERSION)
    for version in (files.metadata.get(KEY, str(VERSION)), str(said)):
        if version != str(VERSION):
            raise CheckpointError(
                f"{files.paths[0]}: a checkpoint of lowlp of format version {version!r:.20} is not read; this lowlp "
                f"reads {VERSION}"
            )
    for base in files.ending(f".{HEADER}"):
        if f"{base}.packed" in files:
            yield _layer(files, base, files.metadata.get(f"{KEY}:{base}", f"{base}.weight"))


def _layer(files: TensorFiles, base: str, name: str) -> Layer:
    text = files.array(f"{base}.{HEADER}", (None,), ("uint8",)).tobytes().decode("utf-8", "replace")
    try:
        parts = tuple(stored_types(text))
        fields = json.loads(text)
        shape = tuple(int(extent) for extent in fields["shape"])
        code = str(fields.get("vectors") or fields["dtype"])
    except LowlpError as error:
        raise CheckpointError(f"{base}.{error}") from None
    tensors = {part: f"{base}.{part}" for part in parts if f"{base}.{part}" in files}
    used = (*tensors.values(), f"{base}.{HEADER}")
    return Layer(name, shape, f"lowlp, {code}", used, partial(PackedParts, files, tensors, text))
