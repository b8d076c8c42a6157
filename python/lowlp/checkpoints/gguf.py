"""GGUF checkpoints: which tensors a file has, as weights that keep its codes, or as arrays.

Names are the file's: 'blk.0.attn_q.weight'. llama.cpp writes the rows of q and k of some architectures in another
order; here rows are as the file has them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np

from lowlp.checkpoints import gguf_blocks, gguf_vectors
from lowlp.checkpoints.gguf_file import GgufFile, StoredTensor
from lowlp.checkpoints.layers import Layer, Parts
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

PLAIN: Final[dict[int, np.dtype[Any]]] = {
    0: np.dtype(np.float32),
    1: np.dtype(np.float16),
    24: np.dtype(np.int8),
    25: np.dtype(np.int16),
    26: np.dtype(np.int32),
    27: np.dtype(np.int64),
    28: np.dtype(np.float64),
    30: np.dtype(ml_dtypes.bfloat16),
}
"""Number of a type without blocks -> numpy's."""

_PART: Final = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")
_BY_GROUP: Final = {"scales", "zeros", "offsets", "super_scales", "super_offsets"}
_REFUSED: Final = {4: "Q4_2", 5: "Q4_3", 9: "Q8_1", 15: "Q8_K", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8"}


def is_later_part(path: Path) -> bool:
    """Whether a file is the second or a later one of a model that several hold, 'x-00002-of-00003.gguf'."""
    found = _PART.search(path.name)
    return found is not None and int(found[1]) > 1


def parts_of(file: GgufFile) -> list[GgufFile]:
    """The files of a model, of which `file` may be the first. Raises `CheckpointError` and `LowlpOSError`."""
    count = file.metadata.get("split.count", 1)
    if not isinstance(count, int) or count <= 1:
        return [file]
    name = _PART.search(file.path.name)
    if name is None or int(name[1]) != 1 or int(name[2]) != count:
        raise CheckpointError(
            f"{file.path}: is one of {count} files of a model; name the first, '...-00001-of-{count:05d}.gguf'"
        )
    stem = file.path.name[: name.start()]
    others = [file.path.with_name(f"{stem}-{number:05d}-of-{count:05d}.gguf") for number in range(2, count + 1)]
    return [file, *map(GgufFile, others)]


def layers(file: GgufFile) -> list[Layer]:
    """The quantised weights of a file. Raises `CheckpointError` for types that are not read, by name, and for tensors
    that reach beyond the file."""
    found = []
    for tensor in file.tensors.values():
        file.octets(tensor, stored_bytes(file, tensor))
        if tensor.kind in PLAIN:
            continue
        kind = block_type(file, tensor)
        find = _Find(file, tensor, kind)
        found.append(Layer(tensor.name, tensor.shape, f"GGUF {kind.name}", (tensor.name,), find))
    return found


def with_rows(layer: Layer, order: AnyArray) -> Layer:
    """A layer [N, K] of a GGUF file with its rows in another order: row i is the file's row `order[i]`. Blocks are
    moved as they are. Raises `CheckpointError` for other layers, and for what is no order of its rows."""
    find = layer.find_parts
    if not isinstance(find, _Find) or len(layer.shape) != 2:
        raise CheckpointError(f"{layer.name} ({layer.format}): its rows are not put in another order")
    if not np.array_equal(np.sort(order), np.arange(layer.shape[0])):
        raise CheckpointError(f"{layer.name}: expected an order of its {layer.shape[0]} rows")
    return replace(layer, find_parts=replace(find, order=np.asarray(order, np.int64)))


def block_type(file: GgufFile, tensor: StoredTensor) -> gguf_blocks.BlockType:
    """The blocks of a quantised tensor. Raises `CheckpointError`."""
    kind = gguf_blocks.TYPES.get(tensor.kind) or gguf_vectors.TYPES.get(tensor.kind)
    if kind is None:
        name = _REFUSED.get(tensor.kind, str(tensor.kind))
        known = ", ".join(found.name for found in (*gguf_blocks.TYPES.values(), *gguf_vectors.TYPES.values()))
        raise CheckpointError(f"{file.path}: {tensor.name}: blocks of type {name} are not read; read are {known}")
    if len(tensor.shape) not in (2, 3):
        raise CheckpointError(
            f"{file.path}: {tensor.name}: expected weights [N, K] or [E, N, K], got shape {list(tensor.shape)}"
        )
    if tensor.shape[-1] % kind.weights or 0 in tensor.shape:
        raise CheckpointError(
            f"{file.path}: {tensor.name}: K must be a multiple of the {kind.weights} weights of a block of "
            f"{kind.name}, got shape {list(tensor.shape)}"
        )
    return kind


def stored_bytes(file: GgufFile, tensor: StoredTensor) -> int:
    """Bytes of a tensor in its file. Raises `CheckpointError` for types that are not read."""
    count = math.prod(tensor.shape)
    if tensor.kind in PLAIN:
        return count * PLAIN[tensor.kind].itemsize
    kind = block_type(file, tensor)
    return count // kind.weights * kind.octets


def array_of(file: GgufFile, name: str) -> AnyArray:
    """A tensor without blocks, read-only, where the file is mapped."""
    tensor = file.tensors[name]
    dtype = PLAIN[tensor.kind]
    octets = file.octets(tensor, stored_bytes(file, tensor))
    return octets.view(dtype).reshape(tensor.shape)


@dataclass(frozen=True)
class _Find:
    """Finds what a tensor's weights are made of.

    order  which of its rows comes where; None: as they are
    """

    file: GgufFile
    tensor: StoredTensor
    kind: gguf_blocks.BlockType
    order: AnyArray | None = None

    def __call__(self) -> Parts:
        kind = self.kind
        *outer, k = self.tensor.shape
        octets = self.file.octets(self.tensor, stored_bytes(self.file, self.tensor))
        blocks = octets.reshape(math.prod(outer), k // kind.weights, kind.octets)
        if self.order is not None:
            blocks = blocks[self.order]
        arguments = kind.arguments(blocks)
        for name in _BY_GROUP & arguments.keys():
            arguments[name] = arguments[name].reshape(*outer, -1)

        def read(rows: slice) -> AnyArray:
            codes = kind.codes(blocks[rows])
            return codes.reshape(codes.shape[0], *((k // kind.vector, 1) if kind.vector > 1 else (k,)))

        return Parts(self.tensor.shape, read, arguments)
