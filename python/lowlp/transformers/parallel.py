"""Tensor parallelism by transformers' plans, for modules whose weights lowlp reads.

A plan names a style for each module. transformers lets a style cut parameters before anything is read, and wrap the
module's forward. Here a `Waiting` module keeps the style, and when its weights are read, lowlp's own style of that name
cuts them. So plans stay as they are, and modules that are not quantised go to transformers' styles.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

import torch
from transformers.distributed.tensor_parallel import ALL_PARALLEL_STYLES, TensorParallelLayer

from lowlp.checkpoints import Layer
from lowlp.checkpoints.own import PackedParts
from lowlp.errors import CheckpointError
from lowlp.torch.quantized_module import QuantizedModule
from lowlp.torch.stored_tensors import tensor_types
from lowlp.weights.boundaries import columns_between_cuts
from lowlp.weights.parts import cuts_of, ranges, whole_of
from lowlp.weights.words import form_for
from lowlp_runtime.errors import LowlpError

from .placing import Waiting

_WHOLE: Final = ("replicate", "replicated_with_grad_allreduce", "mla_kv_a_proj")
"""Styles of modules that every rank has whole, and which do nothing but for gradients of weights."""
_OURS: Final = (
    *("colwise", "colwise_rep", "colwise_gather_output", "packed_colwise"),
    *("rowwise", "rowwise_rep", "rowwise_split_input", "embedding_rowwise", "embedding_colwise"),
)
_HEADS: Final = ("q_proj", "k_proj", "v_proj")
_INNER: Final = {"gate_proj": "down_proj", "up_proj": "down_proj", "fc1": "fc2"}
"""Module -> the one after it, which is cut along K where this one is cut along N."""


class _Style(TensorParallelLayer):  # type: ignore[misc]
    """A style of transformers that leaves modules of lowlp to lowlp."""

    def __init__(self, name: str, plain: Any) -> None:
        self.name, self.plain = name, plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def validate_param(self, module: Any, param: Any, mesh: Any, parameter_name: Any = None) -> None:
        """Of transformers: what there is to refuse before a parameter is cut."""
        if not isinstance(module, Waiting):
            self.plain.validate_param(module, param, mesh, parameter_name=parameter_name)

    def shard_param(self, module: Any, param: Any, mesh: Any) -> None:
        """Of transformers: cuts a parameter. A bias of ours is read whole, and cut with the weights."""
        if not isinstance(module, Waiting):
            self.plain.shard_param(module, param, mesh)

    def install_forward(self, module: Any, mesh: Any) -> Any:
        """Of transformers: wraps a module's forward; ours is wrapped when it is there."""
        if not isinstance(module, Waiting):
            return self.plain.install_forward(module, mesh)
        heads = module.shape[0] // module.head
        if module.head > 1 and heads % mesh.size():
            raise CheckpointError(f"{module.name}: {heads} heads cannot be divided among {mesh.size()} ranks")
        module.style = (self.name, mesh)
        return module


def register_styles() -> None:
    """Puts styles that know modules of lowlp in the place of transformers' own."""
    if not torch.distributed.is_available():
        return
    for name in (*_OURS, *_WHOLE):
        plain = ALL_PARALLEL_STYLES.get(name)
        if plain is not None and not isinstance(plain, _Style):
            ALL_PARALLEL_STYLES.register(name, _Style(name, plain))


def divided(base: str, waiting: Waiting, new: QuantizedModule, multiple: int) -> None:
    """Cuts a module, with its weights or on the meta device, as the style of its place says. Raises `CheckpointError`
    for styles of no such modules, and where it cannot be cut."""
    from torch.distributed.tensor import Replicate

    from lowlp.torch.parallel import ColwiseParallel, RowwiseParallel

    if "forward" in vars(waiting):
        raise CheckpointError(
            f"{base}: the plan's style is for no packed weights; those for them are {', '.join(_OURS)}"
        )
    if waiting.style is None or waiting.style[0] in _WHOLE:
        return
    name, mesh = waiting.style
    gathers = name in ("colwise_rep", "colwise_gather_output", "embedding_colwise")
    output = {"output_layouts": Replicate()} if gathers else {}
    if name in ("rowwise", "rowwise_rep", "rowwise_split_input", "embedding_rowwise"):
        comes_whole = name not in ("rowwise", "embedding_rowwise")
        style: Any = RowwiseParallel(multiple=multiple, **({"input_layouts": Replicate()} if comes_whole else {}))
    elif name == "packed_colwise":
        style = ColwiseParallel(blocks=[new._shape[0] // 2] * 2, multiple=multiple)
    else:
        style = ColwiseParallel(multiple=multiple, **output)
    try:
        style._apply(new, mesh)
    except LowlpError as error:
        raise CheckpointError(f"{base} ({name}): {error}") from None


def head_of(model: Any, base: str, rows: int) -> int:
    """The rows of a head of a projection to queries, keys or values; 1 of other modules."""
    if base.rpartition(".")[2] not in _HEADS:
        return 1
    config = model.config.get_text_config()
    head = int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
    return head if rows % head == 0 else 1


def multiple_of(base: str, waiting: Waiting, layers: dict[str, Layer]) -> int:
    """Of how many rows or columns parts of a module are: whole heads, and what the layer after it can be cut at."""
    parent, _, last = base.rpartition(".")
    found = waiting.head
    for before, after in _INNER.items():
        if last in (before, after) and (layer := layers.get(f"{parent}.{after}")) is not None:
            found = math.lcm(found, _columns_of_cuts(layer))
    return found


def _columns_of_cuts(layer: Layer) -> int:
    parts = layer.parts()
    if isinstance(parts, PackedParts):
        return cuts_of(parts.header).columns
    meaning = parts.meaning
    return columns_between_cuts(form_for(layer.shape, meaning.group_size, meaning.code, None), meaning)


def family_said(header: str) -> str:
    """For activations of which type the words of stored weights are placed."""
    return str(json.loads(header)["family"])


def read_part(base: str, waiting: Waiting, parts: PackedParts, multiple: int, device: Any) -> QuantizedModule:
    """A module of this rank's part of weights of a checkpoint of lowlp, of which no more is read."""
    types = tensor_types(parts.header)
    meta = {name: torch.empty(parts.stored(name).shape, dtype=kind, device="meta") for name, kind in types.items()}
    from lowlp.torch.parallel.loading import fill as fill_part

    module: QuantizedModule = waiting.takes.of_tensors(meta, parts.header, waiting.dtype)
    divided(base, waiting, module, multiple)
    fill_part(module, parts, device)
    return module


def cut_bias_of_part(module: QuantizedModule) -> None:
    """Leaves what goes with a module's part of its bias, which was read whole: sums get it from the first rank."""
    if module.part_of is None:
        return
    from lowlp.torch.parallel.cutting import cut_bias

    header, part = module.part_of
    if part.columns == whole_of(header).columns:
        cut_bias(module, part.rows)
    elif part.columns.start > 0:
        cut_bias(module, [])


def share_part(base: str, style: tuple[str, Any] | None, source: QuantizedModule, found: QuantizedModule) -> None:
    """Makes `found`, which has the buffers of `source`, a head with the embedding's rows of this rank, where these are
    divided. Raises `CheckpointError` where the plan has no such head."""
    if source.part_of is None:
        return
    from torch.distributed.tensor import Replicate

    from lowlp.torch.parallel import ColwiseParallel

    header, part = source.part_of
    (rows,), whole = part.rows, whole_of(header)
    if style is None or style[0] not in ("colwise_rep", "colwise_gather_output") or part.columns != whole.columns:
        raise CheckpointError(
            f"{base}: shares weights that the plan divides, so its style must be colwise_gather_output"
        )
    mesh = style[1]
    every = ranges(whole.rows[0].stop, mesh.size(), cuts_of(header).rows, "N")
    assert every[mesh.get_local_rank()] == rows, "both are cut by one rule"
    found.part_of = source.part_of
    widths = [one.stop - one.start for one in every]
    ColwiseParallel(output_layouts=Replicate()).with_hooks(found, mesh, widths)


register_styles()
