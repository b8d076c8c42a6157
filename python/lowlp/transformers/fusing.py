"""Projections of the same x as one product: q, k and v of an attention, gate and up of an MLP.

The model's own code still calls q_proj, k_proj and v_proj; the first that it calls with an x computes all of them. An
MLP that computes down_proj(silu(gate_proj(x)) * up_proj(x)) becomes two products, the first with 'silu_mul'.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any, Final

import torch

from lowlp.torch import Linear
from lowlp.weights.concatenation import concat
from lowlp_runtime.errors import LowlpValueError

_GATED: Final = "self.down_proj(self.act_fn(self.gate_proj(x))*self.up_proj(x))"
_SILU: Final = ("SiLU", "SiLUActivation")


class _Together(torch.nn.Module):  # type: ignore[misc]
    """The product of several projections, and what of its last result was not asked for yet."""

    def __init__(self, linear: Linear, sizes: Sequence[int]) -> None:
        super().__init__()
        self.linear = linear
        self.sizes = list(sizes)
        # x and its parts, as one object, so that threads see those of one call.
        self.last: tuple[torch.Tensor, list[torch.Tensor]] | None = None

    def part(self, x: torch.Tensor, number: int) -> torch.Tensor:
        """The result of one projection."""
        last = self.last
        if last is None or last[0] is not x:
            self.last = last = (x, list(self.linear(x).split(self.sizes, dim=-1)))
        found = last[1][number]
        if number == len(self.sizes) - 1:
            self.last = None
        return found


class FusedPart(torch.nn.Module):  # type: ignore[misc]
    """One of several projections of the same x, in the place of its module."""

    def __init__(self, together: _Together, number: int) -> None:
        super().__init__()
        if number == 0:
            self.together = together
        # Not as a module where it is not the first: a state has it once.
        self._held = (together,)
        self.number = number
        self.in_features, self.out_features = together.linear.in_features, together.sizes[number]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y [..., out_features] of x [..., in_features]."""
        return self._held[0].part(x, self.number)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, part={self.number}"


class FusedGatedMLP(torch.nn.Module):  # type: ignore[misc]
    """down_proj(silu(gate) * up), where one product gives the argument."""

    def __init__(self, gate_up_proj: Linear, down_proj: torch.nn.Module) -> None:
        super().__init__()
        self.gate_up_proj, self.down_proj = gate_up_proj, down_proj

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y [..., hidden] of x [..., hidden]."""
        found: torch.Tensor = self.down_proj(self.gate_up_proj(x))
        return found


def fuse_projections(model: torch.nn.Module) -> int:
    """Fuses what can be, in place, and returns how many products it saves a call of the model.

    Projections are fused where they have one codec, activation type and path; others stay as they are. A fused model
    cannot be saved.
    """
    saved = 0
    for name, module in list(model.named_modules()):
        gated = _gate_and_up(module)
        if gated is not None:
            model.set_submodule(name, gated)
            saved += 1
            continue
        for names in (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")):
            parts = [module._modules.get(part) for part in names]
            joined = _joined(parts, None)
            if joined is not None:
                together = _Together(joined, [part.out_features for part in parts if isinstance(part, Linear)])
                for number, part in enumerate(names):
                    setattr(module, part, FusedPart(together, number))
                saved += len(names) - 1
    return saved


def is_fused(model: torch.nn.Module) -> bool:
    """Whether `fuse_projections` has changed a model."""
    return any(isinstance(module, FusedPart | FusedGatedMLP) for module in model.modules())


def _gate_and_up(module: torch.nn.Module) -> FusedGatedMLP | None:
    """An MLP as two products; None for others, and for those whose weights cannot be joined."""
    if type(getattr(module, "act_fn", None)).__name__ not in _SILU or "down_proj" not in module._modules:
        return None
    try:
        source = inspect.getsource(type(module).forward)
    except (OSError, TypeError):
        return None
    if _GATED not in re.sub(r"\s", "", source) or module._forward_pre_hooks or module._forward_hooks:
        return None
    joined = _joined([module._modules.get("gate_proj"), module._modules.get("up_proj")], "silu_mul")
    return None if joined is None else FusedGatedMLP(joined, module._modules["down_proj"])


def _joined(parts: Sequence[Any], epilogue: str | None) -> Linear | None:
    """The modules as one; None where they cannot be."""
    if not all(type(part) is Linear and part.epilogue is None for part in parts):
        return None
    first: Linear = parts[0]
    options = (first.activation, first.path, first.batch_invariant)
    if first.batch_invariant > 1 or any((p.activation, p.path, p.batch_invariant) != options for p in parts):
        return None
    try:
        weights = concat([part.quantized for part in parts])
    except LowlpValueError:
        return None
    bias = None
    if any(part.bias is not None for part in parts):
        like = next(part.bias for part in parts if part.bias is not None)
        bias = torch.cat([like.new_zeros(part.out_features) if part.bias is None else part.bias for part in parts])
    fused = Linear.from_quantized(
        weights,
        bias,
        epilogue=epilogue,
        activation=first.activation,
        path=first.path,
        batch_invariant=first.batch_invariant,
        device=first.get_buffer("packed").device,
        dtype=first.dtype if bias is None else bias.dtype,
    )
    fused.eval()
    return fused
