"""Cutting modules: what a module has becomes a part of it, in place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import torch

from lowlp.kernels.linear.spec import GATED
from lowlp.torch.embedding import Embedding
from lowlp.torch.experts import GroupedLinear
from lowlp.torch.linear import Linear
from lowlp.torch.merged_linear import MergedLinear
from lowlp.torch.quantized_module import QuantizedModule
from lowlp.torch.stored_tensors import host_array, tensor_types, tensors_of
from lowlp.weights.parts import (
    Part,
    cuts_of,
    packed_shape_of,
    part_header,
    part_of_pieces,
    pieces,
    ranges,
    whole_of,
    without_permutation,
)
from lowlp_runtime.errors import LowlpValueError

X_COLUMNS: Final = "x_columns"
"""The name of the buffer with the columns of x that a part of permuted weights multiplies."""


def refuse_parts(module: QuantizedModule, name: str) -> None:
    """Raises `LowlpValueError` for a module that has a part already."""
    if module.part_of is not None:
        raise LowlpValueError(f"{name or type(module).__name__}: is cut already, into {module.part_of[1]}")


def rows_of_rank(
    module: QuantizedModule, rank: int, ranks: int, blocks: Sequence[int] | None, multiples: int | Sequence[int]
) -> tuple[list[slice], list[list[slice]]]:
    """The rows of a rank, of each block, and those of all ranks.

    blocks     rows of matrices one below the other, each of which is cut; None: one, or gate and up where the module
               has a gate
    multiples  of how many rows parts are, beside those where weights can be cut; one for each block, or for all

    Raises `LowlpValueError`, which names the numbers.
    """
    n, step = module._shape[0], cuts_of(module._stored_header).rows
    if isinstance(module, GroupedLinear):
        n = module.out_features
    has_gate = getattr(module, "epilogue", None) in GATED
    sizes = list(blocks) if blocks is not None else [n // 2] * 2 if has_gate else [n]
    if sum(sizes) != n or min(sizes) < 1 or (has_gate and (len(sizes) != 2 or sizes[0] != sizes[1])):
        wanted = f"{n // 2}, {n // 2} of gate and up" if has_gate else f"positive numbers that add up to N = {n}"
        raise LowlpValueError(f"blocks: expected {wanted}, got {sizes}")
    each = [multiples] * len(sizes) if isinstance(multiples, int) else list(multiples)
    if len(each) != len(sizes) or min(each) < 1:
        raise LowlpValueError(f"multiple: expected a positive int, or one for each of {len(sizes)} blocks, got {each}")
    mine, of_all, first = [], [], 0
    for number, (size, multiple) in enumerate(zip(sizes, each, strict=True)):
        if number < len(sizes) - 1 and size % step:
            raise LowlpValueError(
                f"blocks: rows of each but the last must be a multiple of {step}, where these weights can be cut, got "
                f"{size}"
            )
        # Of several blocks each part is followed by another, so it ends where weights can be cut.
        found = ranges(size, ranks, math.lcm(step, multiple), "N")
        of_all.append(found)
        mine.append(slice(first + found[rank].start, first + found[rank].stop))
        first += size
    return mine, of_all


def columns_of_ranks(modules: Iterable[QuantizedModule], ranks: int, multiple: int) -> list[slice]:
    """The columns of each rank, at places where all of these modules can be cut."""
    held = list(modules)
    steps = [cuts_of(module._stored_header).columns for module in held]
    return ranges(held[0]._shape[1], ranks, math.lcm(multiple, *steps), "K")


def cut(module: QuantizedModule, part: Part) -> None:
    """Makes a module one of a part of its weights. Where these are permuted and cut along K, the part has no
    permutation any more, and the buffer `X_COLUMNS` says which columns of x it multiplies."""
    header = module._stored_header
    held = dict(zip(module._names, module._tensors(), strict=True))
    columns = None
    if "permutation" in held and part.columns != whole_of(header).columns:
        columns = held.pop("permutation")[part.columns].long()
        header = without_permutation(header)
    tensors, cut_header = _part_of_tensors(held, header, part, isinstance(module, GroupedLinear))
    module.part_of = (module._stored_header, part)
    module._set_weights(tensors, cut_header)
    if columns is not None:
        module.register_buffer(X_COLUMNS, columns, persistent=False)


def _part_of_tensors(
    held: dict[str, torch.Tensor], header: str, part: Part, of_experts: bool
) -> tuple[dict[str, torch.Tensor], str]:
    found = {}
    for name in tensor_types(header):
        indices, axis = pieces(name, tuple(held[name].shape), header, part)
        some = [held[name][index] for index in indices]
        found[name] = some[0].clone() if len(some) == 1 else torch.cat(some, axis)
    device = held["packed"].device
    if device.type == "meta":
        cut_header = part_header(header, part)
        found["packed"] = torch.empty(packed_shape_of(cut_header), dtype=torch.int32, device=device)
        return found, cut_header
    qw = part_of_pieces({name: host_array(tensor, name) for name, tensor in found.items()}, header, part)
    return tensors_of(qw, device, of_experts=of_experts)


def cut_bias(module: Any, rows: Sequence[slice]) -> None:
    """Leaves these elements of a module's bias, along its last dimension; none of them without."""
    if module.bias is None:
        return
    bias = None
    if rows:
        held = torch.cat([module.bias.detach()[..., some] for some in rows], -1)
        bias = torch.nn.Parameter(held, requires_grad=module.bias.requires_grad)
    module.bias = bias


def linears_of(module: torch.nn.Module) -> list[Linear]:
    """The modules that a product consists of."""
    return list(module.shards) if isinstance(module, MergedLinear) else [module]


def set_extents(module: Any) -> None:
    """Makes a module say the extents of its part."""
    if isinstance(module, MergedLinear):
        module.in_features = module.shards[0].in_features
        module.out_features = sum(shard.out_features for shard in module.shards)
    elif isinstance(module, Embedding):
        module.num_embeddings, module.embedding_dim = module._shape
    elif isinstance(module, GroupedLinear):
        module.experts, module.out_features, module.in_features = module._fields["shape"]
    else:
        module.out_features, module.in_features = module._shape
