"""Embeddings that multiply what they look up by a number, as those of Gemma and BART do."""

from __future__ import annotations

import inspect
import re
from typing import Final

import torch

from lowlp.torch import Embedding
from lowlp_runtime.errors import LowlpValueError

_ROUNDED: Final = "returnsuper().forward(input_ids)*self.embed_scale.to(self.weight.dtype)"
_EXACT: Final = "returnsuper().forward(input_ids)*self.embed_scale"


class ScaledEmbedding(Embedding):
    """A `lowlp.torch.Embedding` whose rows are multiplied by a number.

    scale    the number
    rounded  whether it is rounded to the type of the result first
    """

    def scale_by(self, scale: float, rounded: bool) -> ScaledEmbedding:
        """Sets the number, and returns itself."""
        self.scale = scale
        kinds = (torch.float32, torch.float16, torch.bfloat16)
        self._factors = {kind: float(torch.tensor(scale, dtype=kind)) if rounded else scale for kind in kinds}
        return self

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """[*ids.shape, embedding_dim] of ids in 0..num_embeddings-1."""
        found = super().forward(ids)
        return found * self._factors[found.dtype]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, scale={self.scale:g}"


def scale_of(module: torch.nn.Module, name: str) -> tuple[float, bool] | None:
    """What a module multiplies its rows by, and whether that is rounded first; None: nothing.

    Raises `LowlpValueError` for modules that compute something else than `torch.nn.Linear` and `torch.nn.Embedding` do,
    which a module of lowlp in their place would not.
    """
    computed = type(module).forward
    if computed in (torch.nn.Linear.forward, torch.nn.Embedding.forward):
        return None
    try:
        source = re.sub(r"\s", "", inspect.getsource(computed))
    except (OSError, TypeError):
        source = ""
    scale = getattr(module, "scalar_embed_scale", getattr(module, "embed_scale", None))
    if isinstance(module, torch.nn.Embedding) and isinstance(scale, float | int):
        for ending, rounded in ((_ROUNDED, True), (_EXACT, False)):
            if source.endswith(ending):
                return float(scale), rounded
    raise LowlpValueError(f"{name}: {type(module).__name__} computes something of its own, which lowlp does not")


def scaled_like(found: torch.nn.Module, scale: tuple[float, bool] | None) -> torch.nn.Module:
    """An embedding of the same weights that multiplies; `found` itself where there is no number."""
    if scale is None or not isinstance(found, Embedding):
        return found
    tensors = {part: found.get_buffer(part) for part in found._names}
    made = ScaledEmbedding.of_tensors(tensors, found._stored_header, found.dtype)
    assert isinstance(made, ScaledEmbedding)
    return made.scale_by(*scale)
