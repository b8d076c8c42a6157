"""What ranks exchange around a module's call: `torch.distributed`'s all-reduce, and redistribution of `DTensor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard


def whole_input(x: torch.Tensor, mesh: Any, layouts: Any) -> torch.Tensor:
    """x with all of its columns, on this rank, of x in some layout; its gradient is a part of a sum."""
    plain = not isinstance(x, DTensor)
    if plain and isinstance(layouts, Replicate) and not (torch.is_grad_enabled() and x.requires_grad):
        return x
    placed = DTensor.from_local(x, mesh, [layouts], run_check=False) if plain else x
    if tuple(placed.placements) != (Replicate(),):
        placed = placed.redistribute(mesh, [Replicate()])
    return placed.to_local(grad_placements=[Partial()])


def gathered(y: torch.Tensor, mesh: Any, widths: Sequence[int]) -> torch.Tensor:
    """The columns of all ranks side by side; `widths`: how many each has."""
    widest = max(widths)
    padded = torch.nn.functional.pad(y, (0, widest - y.shape[-1])) if y.shape[-1] < widest else y
    if torch.is_grad_enabled() and y.requires_grad:
        placed = DTensor.from_local(padded.contiguous(), mesh, [Shard(y.dim() - 1)], run_check=False)
        found = placed.redistribute(mesh, [Replicate()]).to_local().split(widest, dim=-1)
    else:
        # As a DTensor it would cost the host a hundred microseconds more.
        held = padded.new_empty((len(widths) * padded.numel(),))
        dist.all_gather_into_tensor(held, padded.reshape(-1), group=mesh.get_group())
        found = held.view(len(widths), *padded.shape).unbind()
    return torch.cat([part[..., :width] for part, width in zip(found, widths, strict=True)], -1)


def added_up(y: torch.Tensor, mesh: Any) -> torch.Tensor:
    """The sum of what the ranks have, which may be in the memory of y."""
    if torch.is_grad_enabled() and y.requires_grad:
        return DTensor.from_local(y, mesh, [Partial()], run_check=False).redistribute(mesh, [Replicate()]).to_local()
    if mesh.size() > 1:
        y = y.contiguous()
        dist.all_reduce(y, group=mesh.get_group())
    return y


def in_layout(y: torch.Tensor, mesh: Any, mine: Any, wanted: Any, use_local_output: bool) -> Any:
    """y, of which each rank has an equal part, in another layout."""
    placed = DTensor.from_local(y, mesh, [mine], run_check=False)
    if tuple(placed.placements) != (wanted,):
        placed = placed.redistribute(mesh, [wanted])
    return placed.to_local() if use_local_output else placed
