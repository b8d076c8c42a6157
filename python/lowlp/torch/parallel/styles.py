"""Styles for `torch.distributed.tensor.parallel.parallelize_module`: PyTorch's own, and what they do with modules whose
weights are quantised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor import parallel as of_torch

from lowlp.kernels.linear.spec import GATED
from lowlp.ops.invariance import invariance_of
from lowlp.torch.embedding import Embedding
from lowlp.torch.experts import Experts, GroupedLinear
from lowlp.torch.linear import Linear
from lowlp.torch.merged_linear import MergedLinear
from lowlp.torch.quantized_module import QuantizedModule
from lowlp.weights.parts import Part, whole_of
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .cutting import (
    X_COLUMNS,
    columns_of_ranks,
    cut,
    cut_bias,
    linears_of,
    refuse_parts,
    rows_of_rank,
    set_extents,
)
from .exchanging import added_up, gathered, in_layout, whole_input

_IS_LAST = Shard(-1)
_SUMS = ("auto", "x", "f32")


class ColwiseParallel(of_torch.ColwiseParallel):  # type: ignore[misc]
    """Each rank has some rows of the weights, hence some columns of y: of `Linear` and `MergedLinear`, each of its
    shards; of `Embedding` some columns. Modules of PyTorch go to PyTorch's style of the same name.

    input_layouts, output_layouts, use_local_output  as PyTorch's. By default x is the same on all ranks, and each has
              its columns of y. `Replicate()` as output gathers them
    blocks    rows of matrices that lie one below the other in a `Linear`, (q, k, v) for example: each is cut. Without
              it a module with a gate is cut as gate and up
    multiple  of how many rows parts are: the width of a head, or what a `RowwiseParallel` that follows cuts its K at
              (`lowlp.weights.parts.cuts_of`); one for all blocks, or for each

    Each rank cuts the weights that it has, which are the same on all (`src_data_rank` does not count), or waits for
    `load`, on the meta device. Parts are whole units of the packed format, and differ by one of them where ranks do not
    divide them. With the module's `batch_invariant` y has the bits of the whole module's; without, those of the
    schedules for its part.

    Raises `LowlpValueError`, which names the numbers, where there are fewer units than ranks, and `LowlpTypeError` for
    other modules.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        output_layouts: Any = None,
        use_local_output: bool = True,
        blocks: Sequence[int] | None = None,
        multiple: int | Sequence[int] = 1,
    ) -> None:
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)
        self.blocks, self.multiple = blocks, multiple

    def _apply(self, module: torch.nn.Module, device_mesh: Any) -> torch.nn.Module:
        if isinstance(module, Linear | MergedLinear):
            widths = self._cut_rows(module, device_mesh)
        elif isinstance(module, Embedding):
            widths = _cut_columns_of_embedding(module, device_mesh, self.multiple)
        elif isinstance(module, QuantizedModule | Experts):
            raise _wrong_module(module, "ColwiseParallel")
        else:
            return super()._apply(module, device_mesh)
        return self.with_hooks(module, device_mesh, widths)

    def with_hooks(self, module: torch.nn.Module, device_mesh: Any, widths: Sequence[int] | None) -> torch.nn.Module:
        """Makes a module that has its part of the weights take x and give y in the layouts of the style.

        widths  the columns of y that each rank has; None for those of several blocks
        """
        wanted, layouts, is_local = self.output_layouts[0], self.input_layouts[0], self.use_local_output
        is_kept = _is_of_columns(wanted) and is_local
        if not is_kept and widths is None:
            raise LowlpValueError("output_layouts: columns of several blocks stay where they are, so Shard(-1) only")
        if widths is not None and not is_kept and not (isinstance(wanted, Replicate) and is_local):
            _check_even(widths, wanted)

        def before(_: Any, inputs: Any) -> Any:
            return whole_input(inputs[0], device_mesh, layouts), *inputs[1:]

        def after(_: Any, inputs: Any, y: Any) -> Any:
            if is_kept:
                return y
            if isinstance(wanted, Replicate) and is_local:
                return gathered(y, device_mesh, widths or ())
            return in_layout(y, device_mesh, Shard(y.dim() - 1), wanted, is_local)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module

    def _cut_rows(self, module: Any, mesh: Any) -> list[int] | None:
        """Cuts weights along N; the columns of y of each rank, None for those of several blocks."""
        linears = linears_of(module)
        if len(linears) > 1 and self.blocks is not None:
            raise LowlpValueError(f"blocks: are of one Linear, and this module has {len(linears)}")
        widths: list[int] | None = None
        for linear in linears:
            refuse_parts(linear, "")
            mine, of_all = rows_of_rank(linear, mesh.get_local_rank(), mesh.size(), self.blocks, self.multiple)
            whole = whole_of(linear._stored_header)
            if linear.batch_invariant:
                # The order of sums is that of all rows; of a part of a part, of all that there were.
                rows = max(int(linear.batch_invariant), linear.out_features)
                linear._options = (*linear._options[:2], invariance_of(rows, 1, linear.epilogue in GATED))
            cut(linear, Part(tuple(mine), whole.columns))
            cut_bias(linear, mine)
            set_extents(linear)
            is_one = len(linears) == 1 and (len(of_all) == 1 or linear.epilogue in GATED)
            widths = [part.stop - part.start for part in of_all[0]] if is_one else None
        set_extents(module)
        return widths


class RowwiseParallel(of_torch.RowwiseParallel):  # type: ignore[misc]
    """Each rank has some columns of the weights, and y is the sum over the ranks: of `Linear` and `MergedLinear`; of
    `Embedding` some rows of the vocabulary. Modules of PyTorch go to PyTorch's style of the same name.

    input_layouts, output_layouts, use_local_output  as PyTorch's. By default each rank has its columns of x, and y is
              the same on all. `Replicate()` as input takes the rank's columns out of x; weights with a permutation
              (act-order) need it, since their columns lie anywhere in x
    multiple  of how many columns parts are, beside those where weights can be cut
    sums      the type in which ranks add: 'x', that of x; 'f32', which is nearer and moves twice the bytes; 'auto',
              'f32' for x in bfloat16, whose roundings add up to more than 2e-3 of y for four ranks, and else 'x'

    The bias is added by the first rank. With `activation` each rank rounds its part of x by scales of that part.
    Otherwise as `ColwiseParallel`.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        output_layouts: Any = None,
        use_local_output: bool = True,
        multiple: int = 1,
        sums: str = "auto",
    ) -> None:
        super().__init__(input_layouts=input_layouts, output_layouts=output_layouts, use_local_output=use_local_output)
        if sums not in _SUMS:
            raise LowlpValueError(f"sums: must be one of {', '.join(_SUMS)}, got {sums!r:.40}")
        self.multiple, self.sums = multiple, sums

    def _apply(self, module: torch.nn.Module, device_mesh: Any) -> torch.nn.Module:
        if isinstance(module, Embedding):
            return self._apply_to_vocabulary(module, device_mesh)
        if isinstance(module, QuantizedModule | Experts) and not isinstance(module, Linear):
            raise _wrong_module(module, "RowwiseParallel")
        if not isinstance(module, Linear | MergedLinear):
            return super()._apply(module, device_mesh)
        layouts, wanted, is_local = self.input_layouts[0], self.output_layouts[0], self.use_local_output
        mine = self._cut_columns(module, device_mesh, _is_of_columns(layouts))
        linears = linears_of(module)

        def before(_: Any, inputs: Any) -> Any:
            x = inputs[0]
            if isinstance(x, torch.Tensor) and not _is_of_columns(layouts):
                x = _columns_of(whole_input(x, device_mesh, layouts), linears[0], mine)
            elif hasattr(x, "to_local"):
                x = x.redistribute(device_mesh, [Shard(x.dim() - 1)]).to_local()
            if x.shape[-1] != linears[0].in_features:
                raise LowlpValueError(
                    f"x: expected the {linears[0].in_features} columns {mine.start} to {mine.stop - 1} of this rank, "
                    f"got {x.shape[-1]}; cut the layer before with ColwiseParallel(multiple=...) at the same columns"
                )
            return x, *inputs[1:]

        def after(_: Any, inputs: Any, y: Any) -> Any:
            if isinstance(wanted, Replicate) and is_local:
                found = added_up(y, device_mesh)
            else:
                found = _in_layout_of_sums(y, device_mesh, wanted, is_local)
            return found.to(inputs[0].dtype)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module

    def _cut_columns(self, module: Any, mesh: Any, comes_in_parts: bool) -> slice:
        linears = linears_of(module)
        for linear in linears:
            refuse_parts(linear, "")
            if linear.epilogue:
                raise LowlpValueError(
                    f"epilogue: {linear.epilogue} is of whole sums, and each rank has a part; use a module without"
                )
            if "permutation" in linear._names and (comes_in_parts or len(linears) > 1):
                raise LowlpValueError(
                    "input_layouts: weights with a permutation (act-order) multiply columns from all of x, so K is cut "
                    "for x that every rank has whole: RowwiseParallel(input_layouts=Replicate()) after "
                    "ColwiseParallel(output_layouts=Replicate()); for one Linear"
                )
        mine: slice = columns_of_ranks(linears, mesh.size(), self.multiple)[mesh.get_local_rank()]
        for linear in linears:
            cut(linear, Part(whole_of(linear._stored_header).rows, mine))
            cut_bias(linear, [slice(None)] if mesh.get_local_rank() == 0 else [])
            linear.sums = self.sums
            set_extents(linear)
        set_extents(module)
        return mine

    def _apply_to_vocabulary(self, module: Embedding, mesh: Any) -> Embedding:
        refuse_parts(module, "")
        wanted, is_local, count = self.output_layouts[0], self.use_local_output, module.num_embeddings
        rows = rows_of_rank(module, mesh.get_local_rank(), mesh.size(), None, self.multiple)[0][0]
        cut(module, Part((rows,), whole_of(module._stored_header).columns))
        module.rows_of_whole = (rows.start, rows.stop, count)
        set_extents(module)

        def after(_: Any, inputs: Any, y: Any) -> Any:
            if isinstance(wanted, Replicate) and is_local:
                return added_up(y, mesh)
            return _in_layout_of_sums(y, mesh, wanted, is_local)

        module.register_forward_hook(after)
        return module


def _in_layout_of_sums(y: torch.Tensor, mesh: Any, wanted: Any, is_local: bool) -> Any:
    return in_layout(y, mesh, Partial(), wanted, is_local)


def _columns_of(x: torch.Tensor, linear: Linear, mine: slice) -> torch.Tensor:
    """The columns of x that a part multiplies."""
    permuted = linear._buffers.get(X_COLUMNS)
    return x[..., mine].contiguous() if permuted is None else x.index_select(-1, permuted)


def _cut_columns_of_embedding(module: Embedding, mesh: Any, multiple: Any) -> list[int]:
    refuse_parts(module, "")
    if "permutation" in module._names:
        raise LowlpValueError("permutation: rows of embeddings come in their own order, so these are cut along N only")
    if not isinstance(multiple, int):
        raise LowlpTypeError(f"multiple: expected an int for an Embedding, got {multiple!r:.40}")
    every = columns_of_ranks([module], mesh.size(), multiple)
    cut(module, Part(whole_of(module._stored_header).rows, every[mesh.get_local_rank()]))
    set_extents(module)
    return [part.stop - part.start for part in every]


def _is_of_columns(layout: Any) -> bool:
    return bool(layout == _IS_LAST)


def _check_even(widths: Sequence[int], wanted: Any) -> None:
    if len(set(widths)) > 1:
        raise LowlpValueError(
            f"output_layouts: {wanted} is of equal parts as DTensor has them, and ranks have {list(widths)} columns; "
            "use Replicate(), or Shard(-1) with use_local_output=True"
        )


def _wrong_module(module: torch.nn.Module, style: str) -> LowlpTypeError:
    of_experts = isinstance(module, Experts | GroupedLinear)
    return LowlpTypeError(
        f"{type(module).__name__}: {style} is for Linear, MergedLinear and Embedding"
        + ("; ExpertParallel divides an Experts" if of_experts else "")
    )
