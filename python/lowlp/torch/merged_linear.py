"""`lowlp.torch.MergedLinear`: projections of the same x, each with a codec of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lowlp.weights.concatenation import concat
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .linear import Linear


class MergedLinear(torch.nn.Module):  # type: ignore[misc]
    """Merged projections, [q; k; v] or [gate; up], whose shards may differ in codec: 4 bits for q and k, 6 for v.

    shards  of one in_features, without epilogues

    y is the concatenation of what the shards compute, in their order. Shards of one codec that lie next to each other
    are one launch after `merge_alike`.
    """

    def __init__(self, shards: Sequence[Linear]) -> None:
        super().__init__()
        if not shards or not all(isinstance(shard, Linear) for shard in shards):
            raise LowlpTypeError(f"shards: expected modules of lowlp.torch.Linear, got {shards!r:.60}")
        first = shards[0]
        for number, shard in enumerate(shards):
            if shard.in_features != first.in_features or shard.epilogue:
                raise LowlpValueError(
                    f"shards[{number}]: expected in_features = {first.in_features} and no epilogue, got "
                    f"{shard.in_features} and {shard.epilogue!r}"
                )
        self.in_features = first.in_features
        self.out_features = sum(shard.out_features for shard in shards)
        self.shards = torch.nn.ModuleList(shards)

    @classmethod
    def from_linears(cls, modules: Sequence[torch.nn.Linear], codecs: Any, **options: Any) -> MergedLinear:
        """Quantises modules with the same x, as `Linear.from_linear` does.

        codecs   one for all, or a list of one for each
        options  as of `Linear.from_linear`, for all
        """
        given = list(codecs) if isinstance(codecs, list | tuple) else [codecs] * len(modules)
        if len(given) != len(modules):
            raise LowlpValueError(f"codecs: expected one, or one for each of {len(modules)} modules, got {len(given)}")
        shards = [Linear.from_linear(module, code, **options) for module, code in zip(modules, given, strict=True)]
        return cls(shards)

    def merge_alike(self) -> MergedLinear:
        """Puts neighbours with one codec, bias or none, and options into one shard each, where their rows are whole
        units of the packed format; returns itself."""
        merged: list[Linear] = []
        for shard in self.shards:
            last = merged[-1] if merged else None
            joined = None if last is None else _joined(last, shard)
            if joined is None:
                merged.append(shard)
            else:
                merged[-1] = joined
        self.shards = torch.nn.ModuleList(merged)
        return self

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y [..., out_features] of x [..., in_features]."""
        parts = [shard(x) for shard in self.shards]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


def _joined(first: Linear, second: Linear) -> Linear | None:
    """Both as one module; None where they cannot be one."""
    options = [(shard.activation, shard.path, shard.bias is None, shard.batch_invariant) for shard in (first, second)]
    # Rows of two matrices are none of one that a number could name.
    if options[0] != options[1] or first.batch_invariant > 1:
        return None
    host: list[QuantizedTensor] = [first.quantized, second.quantized]
    try:
        weights = concat(host)
    except LowlpValueError:
        return None
    bias = None if first.bias is None or second.bias is None else torch.cat([first.bias, second.bias])
    return Linear.from_quantized(
        weights,
        bias,
        activation=first.activation,
        path=first.path,
        batch_invariant=first.batch_invariant,
        device=first._tensors()[0].device,
        dtype=first.dtype if bias is None else bias.dtype,
    )
