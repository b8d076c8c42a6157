"""Loading a model of which each rank has a part, from one checkpoint of which each reads its part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from lowlp import checkpoints
from lowlp.checkpoints.own import PackedParts
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp.torch.experts import GroupedLinear
from lowlp.torch.quantized_module import QuantizedModule, header_difference
from lowlp.torch.stored_tensors import tensors_of
from lowlp.weights.parts import Part, part_of_arrays, whole_of, without_permutation
from lowlp.weights.quantized_tensor import QuantizedTensor

from .cutting import X_COLUMNS

_MOST_NAMED = 5


class Read(NamedTuple):
    """What this rank read.

    nbytes  of weights, and of other tensors
    of      bytes of all of these in the checkpoint
    """

    nbytes: int
    of: int


def load(model: torch.nn.Module, path: str | os.PathLike[str], *, device: Any = None, strict: bool = True) -> Read:
    """Loads weights into a model whose modules may have parts (`ColwiseParallel` and the others), on the meta device
    for example: of each module its part is read, from a checkpoint of lowlp no more than that; of other formats the
    whole layer, which is cut. Names are those of the model's state, `layer.weight` for quantised weights.

    path    as for `lowlp.checkpoints.open`
    device  where everything goes; None: where tensors are, and the CPU for those on the meta device
    strict  whether tensors that the checkpoint lacks, or has beyond the model, are an error

    Every rank calls it, and nothing is sent. Raises `CheckpointError`, which names the tensor.
    """
    opened = checkpoints.open(path)
    used: set[str] = set()
    lacking: list[str] = []
    nbytes = 0
    for name, module in model.named_modules():
        if isinstance(module, QuantizedModule):
            target = f"{name}.weight".removeprefix(".")
            used.add(target)
            if target in opened.layers:
                nbytes += _load_weights(module, opened, target, device)
            else:
                lacking.append(target)
    for name, owner, last, tensor in _others(model):
        used.add(name)
        if name in opened.arrays:
            nbytes += _load_array(name, owner, last, tensor, opened, device)
        else:
            lacking.append(name)
    left = [name for name in opened.names if name not in used]
    # The first rank alone adds biases of sums.
    left = [name for name in left if not (name.endswith(".bias") and f"{name.removesuffix('bias')}weight" in used)]
    for what, names in (("lacks", lacking), ("has, beyond the model,", left)):
        if strict and names:
            more = f" and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED)
            raise CheckpointError(
                f"{opened.path}: {what} {', '.join(names[:_MOST_NAMED])}{more}; strict=False loads the rest"
            )
    return Read(nbytes, sum(opened.stored_bytes(name) for name in opened.names if name not in left))


def _load_weights(module: QuantizedModule, opened: checkpoints.Checkpoint, name: str, device: Any) -> int:
    layer = opened.layers[name]
    if layer.transforms:
        raise CheckpointError(f"{name} ({layer.format}): its layer transforms x or y, which modules of lowlp do not")
    header, part = module.part_of or (module._stored_header, whole_of(module._stored_header))
    found: Any = layer.parts()
    parts: PackedParts | _HeldParts = found if isinstance(found, PackedParts) else _HeldParts(module, opened, name)
    _check_header(name, header, parts.header)
    nbytes = parts.part_bytes(part)
    fill(module, parts, device if device is not None else _place(module.get_buffer("packed")))
    opened.release(name)
    return nbytes


def fill(module: QuantizedModule, parts: PackedParts | _HeldParts, device: Any) -> None:
    """Gives a module its part of weights that are stored, on a device; nothing else of them is read."""
    part = module.part_of[1] if module.part_of else whole_of(module._stored_header)
    columns = None
    if X_COLUMNS in module._buffers:
        # A part of permuted weights, for columns of x in the order in which they are packed.
        columns = torch.from_numpy(np.array(parts.stored("permutation")[part.columns])).long()
        parts = parts.without_permutation()
    tensors, made = tensors_of(parts.part(part), device, of_experts=isinstance(module, GroupedLinear))
    module._set_weights(tensors, made)
    if columns is not None:
        module._buffers[X_COLUMNS] = columns.to(device)


class _HeldParts:
    """Weights of another format, which are read and packed whole before they are cut."""

    def __init__(self, module: QuantizedModule, opened: checkpoints.Checkpoint, name: str) -> None:
        whole = opened.layers[name].load(module._fields["family"])
        self._arrays, self.header = whole.to_arrays()
        self._bytes = opened.stored_bytes(name)

    def stored(self, part: str) -> AnyArray:
        """A stored array."""
        return self._arrays[part]

    def part(self, part: Part) -> QuantizedTensor:
        """Some rows and columns."""
        return part_of_arrays(self.stored, self.header, part)

    def part_bytes(self, part: Part) -> int:
        """Bytes that were read for a part: all."""
        return self._bytes

    def without_permutation(self) -> _HeldParts:
        """As `PackedParts.without_permutation`."""
        self.header = without_permutation(self.header)
        return self


def _check_header(name: str, header: str, stored: str) -> None:
    wrong = header_difference(header, stored, "that of the checkpoint")
    if wrong:
        raise CheckpointError(f"{name}: {wrong}")


def _others(model: torch.nn.Module) -> Iterator[tuple[str, torch.nn.Module, str, torch.Tensor]]:
    """Parameters and buffers that are no quantised weights: name, module, name there, tensor."""
    for prefix, module in model.named_modules():
        own = {*module._names, "header"} if isinstance(module, QuantizedModule) else set()
        for last, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None and last not in own and last not in module._non_persistent_buffers_set:
                yield f"{prefix}.{last}".removeprefix("."), module, last, tensor


def _load_array(
    name: str, owner: Any, last: str, tensor: torch.Tensor, opened: checkpoints.Checkpoint, device: Any
) -> int:
    array: Any = opened[name]
    local: Any = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    index: tuple[Any, ...] = ()
    if hasattr(tensor, "to_local"):
        index = _index_of(tensor)
    elif last == "bias" and isinstance(owner, QuantizedModule) and owner.part_of is not None:
        index = _index_of_bias(owner)
    pieces = [array[some] for some in index] if index else [array]
    joined = np.concatenate(pieces, -1) if len(pieces) > 1 else np.array(pieces[0])
    if tuple(joined.shape) != tuple(local.shape):
        raise CheckpointError(f"{name}: expected shape {list(local.shape)}, got {list(joined.shape)}")
    if joined.dtype.name == "bfloat16":
        found = torch.from_numpy(joined.view(np.int16)).view(torch.bfloat16)
    else:
        found = torch.from_numpy(joined)
    found = found.to(device=device if device is not None else _place(local), dtype=local.dtype)
    if hasattr(tensor, "to_local"):
        from torch.distributed.tensor import DTensor

        placed: Any = tensor
        found = DTensor.from_local(
            found, placed.device_mesh, placed.placements, run_check=False, shape=placed.shape, stride=placed.stride()
        )
    if last in owner._parameters:
        owner._parameters[last] = torch.nn.Parameter(found, requires_grad=tensor.requires_grad)
    else:
        owner._buffers[last] = found
    opened.release(name)
    return int(joined.nbytes)


def _index_of(tensor: Any) -> tuple[Any, ...]:
    """The one piece of a whole array that this rank's part of a `DTensor` is."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    shape, offset = compute_local_shape_and_global_offset(tensor.shape, tensor.device_mesh, tensor.placements)
    return (tuple(slice(first, first + extent) for first, extent in zip(offset, shape, strict=True)),)


def _index_of_bias(module: QuantizedModule) -> tuple[Any, ...]:
    """The pieces of a whole bias that go with a part."""
    assert module.part_of is not None
    part = module.part_of[1]
    lead = () if part.matrices is None else (part.matrices,)
    return tuple((*lead, rows) for rows in part.rows)


def _place(tensor: torch.Tensor) -> Any:
    return torch.device("cpu") if tensor.is_meta else tensor.device
