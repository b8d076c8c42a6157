"""Experts on several GPUs: some experts on each, or a part of all."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ParallelStyle

from lowlp.torch.experts import Experts, GroupedLinear
from lowlp.weights.parts import Part, cuts_of, ranges, whole_of
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .cutting import columns_of_ranks, cut, cut_bias, refuse_parts, rows_of_rank, set_extents
from .exchanging import added_up, whole_input

_CUTS = ("experts", "inner")


class ExpertParallel(ParallelStyle):  # type: ignore[misc]
    """Of `Experts`: each rank has some of the experts, or of all of them some of the inner columns; y is the sum over
    the ranks. Tokens, their experts and weights are the same on all ranks.

    cut  'experts': which load the ranks as tokens choose them; 'inner': gate and up are cut along N, down along K, so
         that ranks have equal work whatever is chosen

    Numbers of experts that ranks do not divide give parts that differ by one. Raises `LowlpTypeError` for other
    modules, and `LowlpValueError`, which names the numbers.
    """

    def __init__(self, cut: str = "experts") -> None:
        super().__init__()
        if cut not in _CUTS:
            raise LowlpValueError(f"cut: must be one of {', '.join(_CUTS)}, got {cut!r:.40}")
        self.cut = cut

    def _apply(self, module: torch.nn.Module, device_mesh: Any) -> torch.nn.Module:
        if not isinstance(module, Experts):
            raise LowlpTypeError(f"{type(module).__name__}: ExpertParallel is for lowlp.torch.Experts")
        for linear in (module.gate_up, module.down):
            refuse_parts(linear, "")
        first = _cut_experts(module, device_mesh) if self.cut == "experts" else _cut_inner(module, device_mesh)

        def before(_: Any, inputs: Any) -> Any:
            x, experts, weights = inputs
            return whole_input(x, device_mesh, Replicate()), experts - first if first else experts, weights

        def after(_: Any, inputs: Any, y: Any) -> Any:
            return added_up(y, device_mesh)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module


def _cut_experts(module: Experts, mesh: Any) -> int:
    """Cuts the list of experts; returns the first one of this rank."""
    mine = ranges(module.gate_up.experts, mesh.size(), 1, "E")[mesh.get_local_rank()]
    for linear in (module.gate_up, module.down):
        whole = whole_of(linear._stored_header)
        cut(linear, Part(whole.rows, whole.columns, mine))
        if linear.bias is not None:
            linear.bias = torch.nn.Parameter(linear.bias.detach()[mine].clone(), requires_grad=False)
        set_extents(linear)
    return int(mine.start)


def _cut_inner(module: Experts, mesh: Any) -> int:
    """Cuts each expert; returns 0."""
    rank, ranks = mesh.get_local_rank(), mesh.size()
    gate_up, down = module.gate_up, module.down
    step = cuts_of(down._stored_header).columns
    rows = rows_of_rank(gate_up, rank, ranks, None, step)[0]
    columns = columns_of_ranks([down], ranks, cuts_of(gate_up._stored_header).rows)[rank]
    _cut_grouped(gate_up, Part(tuple(rows), whole_of(gate_up._stored_header).columns), rows)
    _cut_grouped(down, Part(whole_of(down._stored_header).rows, columns), [slice(None)] if rank == 0 else [])
    return 0


def _cut_grouped(linear: GroupedLinear, part: Part, bias: list[slice]) -> None:
    cut(linear, part._replace(matrices=whole_of(linear._stored_header).matrices))
    cut_bias(linear, bias)
    set_extents(linear)
