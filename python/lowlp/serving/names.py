"""The tensors of a checkpoint by the modules of an engine's model: which of them are quantised, and from which tensors.

Configs name the layers that are left out in a dozen ways; the names of the tensors say it in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lowlp.errors import CheckpointError

_OF_QUANTISED: Final = frozenset(
    ("qweight", "weight_packed", "weight_scale", "weight_scale_inv", "W_q", "codes", "scales", "header")
)
"""Of tensors of a module: with one of these it is quantised, whatever the format."""
_OF_ATTENTION: Final = tuple(f"{what}_{kind}" for what in ("q", "k", "v", "kv") for kind in ("scale", "zero_point"))


_EMBEDDINGS: Final = ("embed_tokens", "word_embeddings", "wte", "tok_embeddings", "token_embedding", "embeddings")
"""What models call the embedding of their tokens. Half of vLLM's do not tell the method which module it is."""


@dataclass(frozen=True)
class Source:
    """A module of the checkpoint.

    name   as the checkpoint has it
    parts  its tensors' names within it, without a bias, and their types as safetensors calls them
    bias   whether it has one
    """

    name: str
    parts: Mapping[str, str]
    bias: bool = False

    @property
    def is_quantised(self) -> bool:
        """Whether these are tensors of quantised weights."""
        return bool(_OF_QUANTISED.intersection(self.parts))


class CheckpointNames:
    """The names of a checkpoint's tensors, by those that the engine's model has for them."""

    def __init__(self, types: Mapping[str, str], names: Mapping[str, str] | None = None) -> None:
        """types  the type of each of the checkpoint's tensors, as safetensors calls it, by name
        names  the engine's name of each, and the checkpoint's; None: the same
        """
        self._types = dict(types)
        self._names = dict(names) if names is not None else {name: name for name in types}
        self._parts: dict[str, dict[str, str]] = {}
        self._files: dict[str, str] = {}
        for name, file_name in self._names.items():
            module, _, part = name.rpartition(".")
            if module and part not in _OF_ATTENTION:
                self._parts.setdefault(module, {})[part] = self._types[file_name]
                self._files.setdefault(module, file_name.rpartition(".")[0])

    def mapped(self, name_of: Callable[[str], str | None]) -> CheckpointNames:
        """With the names that the engine's model has for them; those that it has none for are left out."""
        pairs = ((name_of(name), file_name) for name, file_name in self._names.items())
        return CheckpointNames(self._types, {name: file_name for name, file_name in pairs if name is not None})

    def source(self, module: str) -> Source | None:
        """What the checkpoint has for a module, None for nothing."""
        parts = self._parts.get(module)
        if parts is None:
            return None
        own = {part: kind for part, kind in parts.items() if part != "bias"}
        return Source(self._files[module], own, "bias" in parts)

    def quantised(self, module: str, merged: Mapping[str, Sequence[str]]) -> list[Source]:
        """The modules of the checkpoint that make one of the engine's; [] where it is not quantised.

        merged  the engine's `packed_modules_mapping`: the last part of the name of a module, and those of what it is
                made of

        Raises `CheckpointError` where some of them are quantised and others not.
        """
        whole = self.source(module)
        if whole is not None:
            return [whole] if whole.is_quantised else []
        found = [source for source in map(self.source, _shards(module, merged)) if source is not None]
        quantised = [source for source in found if source.is_quantised]
        if quantised and len(quantised) != len(found):
            plain = next(source.name for source in found if not source.is_quantised)
            raise CheckpointError(
                f"{module}: is one module to the engine, of which {quantised[0].name} is quantised and {plain} is not"
            )
        return quantised

    def of_experts(self, module: str) -> list[Source]:
        """The modules of the experts below a module of the engine, in any order; [] where they are not quantised."""
        below = [name for name in self._parts if name.startswith(f"{module}.")]
        found = [source for source in map(self.source, below) if source is not None]
        return found if any(source.is_quantised for source in found) else []

    def embedding(self) -> list[Source]:
        """The embedding of tokens where it is quantised, for a module of the engine without a name; else []. Raises
        `CheckpointError` where several modules could be it."""
        named = [name for name in self._parts if name.rpartition(".")[2] in _EMBEDDINGS]
        found = [source for source in map(self.source, named) if source is not None and source.is_quantised]
        if len(found) > 1:
            listed = ", ".join(source.name for source in found)
            raise CheckpointError(
                f"{listed}: several embeddings are quantised, and the engine does not say which one it makes"
            )
        return found

    def has(self, module: str) -> bool:
        """Whether the checkpoint has a tensor of a module."""
        return module in self._parts

    def has_any(self, module: str, merged: Mapping[str, Sequence[str]]) -> bool:
        """Whether the checkpoint has a tensor of a module, or of one that it is merged of, as in `quantised`."""
        return self.has(module) or any(map(self.has, _shards(module, merged)))

    def beside(self, module: str) -> list[Source]:
        """The quantised modules of the checkpoint that have the parent of this one."""
        parent = module.rpartition(".")[0]
        found = [self.source(name) for name in self._parts if name.rpartition(".")[0] == parent]
        return [source for source in found if source is not None and source.is_quantised]

    def quantised_within(self, part: str) -> list[str]:
        """The names, in the checkpoint, of quantised modules whose names have a part: 'experts'."""
        found = [self.source(name) for name in self._parts if part in name.split(".")]
        return [source.name for source in found if source is not None and source.is_quantised]


def _shards(module: str, merged: Mapping[str, Sequence[str]]) -> list[str]:
    parent, _, last = module.rpartition(".")
    return [f"{parent}.{shard}" if parent else shard for shard in merged.get(last, ())]
