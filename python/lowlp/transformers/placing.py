"""Which module of a model each weight of a checkpoint belongs to, and what of either is left over.

Names of a checkpoint become the model's by transformers' own renamings, which differ by architecture and version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import torch
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key

from lowlp.checkpoints import Layer
from lowlp.errors import CheckpointError
from lowlp.torch import Embedding, Linear

from .embeddings import scale_of

_IGNORED: Final = (
    # Read into `Layer.inputs`; results stay as they are, which is more exact.
    r"\.(input|output)_(scale|global_scale|activation_scale|zero_point)$",
    # Of caches, which have the model's type.
    r"\.[qkv]_scale$",
    # What older versions of transformers kept.
    r"rotary_emb\.inv_freq$",
    r"(^|\.)position_ids$",
)
_MOST_NAMED: Final = 5


class Waiting(torch.nn.Module):  # type: ignore[misc]
    """In the place of a module until its weights are read: as large as them for maps of devices, with its bias.

    takes    `Linear` or `Embedding`
    scale    what an embedding multiplies its rows by, as `scale_of` says
    head     the rows of a head, which stay on one rank
    style    of tensor parallelism: the name in the plan, and the mesh; None: every rank has it whole
    """

    def __init__(self, module: torch.nn.Module, nbytes: int, name: str) -> None:
        super().__init__()
        self.scale = scale_of(module, name)
        self.takes: type[Linear] | type[Embedding] = Embedding if isinstance(module, torch.nn.Embedding) else Linear
        self.shape = tuple(module.weight.shape)
        self.dtype: torch.dtype = module.weight.dtype
        self.name, self.head = name, 1
        self.style: tuple[str, Any] | None = None
        if nbytes:
            self.register_buffer("waiting", torch.empty(nbytes, dtype=torch.uint8, device="meta"))
        self.bias = getattr(module, "bias", None)


@dataclass
class Placing:
    """What of a checkpoint goes where.

    layers   quantised weights by the name of their module in the model
    tied     module whose weights are those of another, by name -> that other's name
    renamed  name in the checkpoint -> name in the model, of all tensors
    """

    layers: dict[str, Layer] = field(default_factory=dict)
    tied: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)


class _Names:
    """transformers' names for those of a checkpoint."""

    def __init__(self, model: Any) -> None:
        found = get_model_conversion_mapping(model)
        self._renamings = [entry for entry in found if isinstance(entry, WeightRenaming)]
        self._converters = [entry for entry in found if isinstance(entry, WeightConverter)]
        self._prefix = model.base_model_prefix
        self._state = model.state_dict()

    def of(self, name: str) -> tuple[str, list[str]]:
        """The name in the model, and, where tensors are put together on loading, all that come of them."""
        new, pattern = self._renamed(name, self._renamings, self._converters)
        if new not in self._state and name in self._state:
            new, pattern = self._renamed(name, [], [])
        if pattern is None:
            return new, []
        converter = next(entry for entry in self._converters if pattern in entry.source_patterns)
        first = converter.target_patterns[0]
        return new, [new.replace(first, other) for other in converter.target_patterns]

    def _renamed(self, name: str, renamings: Any, converters: Any) -> tuple[str, Any]:
        found: tuple[str, Any] = rename_source_key(name, renamings, converters, self._prefix, self._state)
        return found


class Opened(Protocol):
    """A checkpoint that was opened: quantised layers by name, names of arrays, and how many bytes a layer has."""

    @property
    def layers(self) -> dict[str, Layer]: ...
    @property
    def arrays(self) -> tuple[str, ...]: ...
    def stored_bytes(self, name: str) -> int: ...


def place(model: Any, checkpoint: Opened, strict: bool) -> Placing:
    """Finds the modules, a model on the meta device, and puts `Waiting` in their places.

    Raises `CheckpointError` for weights of what is no `torch.nn.Linear` or `torch.nn.Embedding`, for shapes that
    differ, and, if `strict`, for tensors that the checkpoint or the model lacks.
    """
    names, found = _Names(model), Placing()
    expected = set(model.state_dict())
    provided: set[str] = set()
    for name in checkpoint.arrays:
        found.renamed[name], several = names.of(name)
        provided |= set(several or [found.renamed[name]])
    for name, layer in checkpoint.layers.items():
        target, several = names.of(name)
        module = None if several else _module_of(model, target)
        if module is None:
            raise CheckpointError(_no_place(name, layer, target, bool(several)))
        if tuple(module.weight.shape) != layer.shape:
            raise CheckpointError(
                f"{name} ({layer.format}): is of shape {list(layer.shape)}, and the model's {target} of "
                f"{list(module.weight.shape)}"
            )
        if layer.transforms:
            raise CheckpointError(
                f"{name} ({layer.format}): its layer transforms x or y besides the product, which modules of lowlp do "
                "not; lowlp.checkpoints.open(path) gives weights and transforms"
            )
        base = target.removesuffix(".weight")
        found.layers[base] = layer
        provided.add(target)
        for tensor in layer.tensors:
            found.renamed[tensor] = names.of(tensor)[0]
    _tie(model, found, provided)
    biases = {f"{base}.bias" for base in found.layers} & provided - expected
    _check(model, expected | biases, provided, strict)
    for base, layer in found.layers.items():
        module = model.get_submodule(base)
        waiting = Waiting(module, checkpoint.stored_bytes(layer.name), base)
        if f"{base}.bias" in biases:
            # Tools write biases of zeros, or of corrections, beside layers that have none.
            zeros = torch.zeros(layer.shape[0], dtype=module.weight.dtype, device="meta")
            waiting.bias = torch.nn.Parameter(zeros, requires_grad=False)
        model.set_submodule(base, waiting)
    for base in found.tied:
        model.set_submodule(base, Waiting(model.get_submodule(base), 0, base))
    model._keys_to_ignore_on_load_unexpected = _ignored(model, found)
    return found


def _module_of(model: Any, name: str) -> Any:
    try:
        module = model.get_submodule(name.removesuffix(".weight"))
    except AttributeError:
        return None
    is_taken = name.endswith(".weight") and isinstance(module, torch.nn.Linear | torch.nn.Embedding)
    return module if is_taken else None


def _no_place(name: str, layer: Layer, target: str, is_merged: bool) -> str:
    if is_merged or len(layer.shape) == 3 or ".experts." in name:
        return f"{name} ({layer.format}): weights of experts are not read into modules of transformers yet"
    return f"{name} ({layer.format}): the model has no torch.nn.Linear or torch.nn.Embedding {target!r}"


def _tie(model: Any, found: Placing, provided: set[str]) -> None:
    """Notes modules whose weights are those of quantised ones, and takes them from what transformers ties."""
    pairs = dict(getattr(model, "all_tied_weights_keys", {}) or {})
    for target, source in pairs.items():
        mine, other = target.removesuffix(".weight"), source.removesuffix(".weight")
        if mine in found.layers and source not in provided:
            mine, other = other, mine
        if mine in found.layers:
            forget_tie(model, target)  # both are there, each with weights of its own
        elif other in found.layers and f"{mine}.weight" in provided:
            forget_tie(model, target)
        elif other in found.layers:
            found.tied[mine] = other
            forget_tie(model, target)
            provided.add(f"{mine}.weight")
        elif target in provided or source in provided:
            provided |= {target, source}


def forget_tie(model: Any, target: str) -> None:
    """Makes transformers tie a parameter no more."""
    model.all_tied_weights_keys = {name: other for name, other in model.all_tied_weights_keys.items() if name != target}
    for module in model.modules():
        keys = getattr(module, "_tied_weights_keys", None)
        if isinstance(keys, dict):
            module._tied_weights_keys = {
                name: other for name, other in keys.items() if not re.search(rf"{name}$", target)
            }


def _check(model: Any, expected: set[str], provided: set[str], strict: bool) -> None:
    if not strict:
        return
    missing = _without(expected - provided, model._keys_to_ignore_on_load_missing)
    left = _without(provided - expected, [*(model._keys_to_ignore_on_load_unexpected or ()), *_IGNORED])
    for what, names in (("lacks", missing), ("has, beyond the model,", left)):
        if names:
            shown = ", ".join(names[:_MOST_NAMED]) + (
                f" and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED)
            )
            raise CheckpointError(f"the checkpoint {what} tensors: {shown}; strict=False loads the rest")


def _without(names: set[str], patterns: Iterable[str] | None) -> list[str]:
    found = [re.compile(pattern) for pattern in patterns or ()]
    return sorted(name for name in names if not any(pattern.search(name) for pattern in found))


def _ignored(model: Any, found: Placing) -> set[str]:
    """Patterns of names that transformers is not to report: lowlp reads these tensors itself."""
    own = sorted({found.renamed[name] for layer in found.layers.values() for name in layer.tensors})
    return {*(model._keys_to_ignore_on_load_unexpected or ()), *_IGNORED, f"^({'|'.join(map(re.escape, own))})$"}
