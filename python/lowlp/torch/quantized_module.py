"""What modules with quantised weights have in common: the weights as buffers that no cast touches."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import numpy as np
import torch
from torch.autograd import forward_ad

from lowlp.numeric.codec import Codec
from lowlp.weights.parts import Part
from lowlp.weights.quantize.quantization import scale_by_default
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.stored_arrays import stored_types
from lowlp_runtime.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError

from .stored_tensors import HeldWeights, forget, in_stored_type, tensor_types, weights_of

HEADER: Final = "header"
"""The name of the buffer with the header of the weights: JSON as uint8."""
# Names of this module's own: what the host does at each call counts.
_is_compiling: Final = torch.compiler.is_compiling
_modes: Final = torch._C._len_torch_dispatch_stack
_tracing_state: Final = torch._C._get_tracing_state
_transform: Final = torch._C._functorch.peek_interpreter_stack
_has_autocast: Final = torch._C._is_any_autocast_enabled
_ACTIVATION_TYPES: Final = {"f16": torch.float16, "bf16": torch.bfloat16}

Self = TypeVar("Self", bound="QuantizedModule")


class QuantizedModule(torch.nn.Module):  # type: ignore[misc]
    """Weights [N, K] as buffers: those of `QuantizedTensor.to_arrays`, and `header`, their description as bytes of
    JSON.

    They go where the module goes: `.to(device)`, `state_dict`, safetensors, `deepcopy`, pickle. Casts (`.half()`,
    `.to(torch.bfloat16)`, `.float()`) leave them as they are, since other bits would be other weights.
    `load_state_dict` refuses weights of another version of the format, and those of another codec or shape than the
    module has.
    """

    part_of: tuple[str, Part] | None = None
    """Of a module that has a part of its weights (`lowlp.torch.parallel`): the header of the whole, and which part."""

    def __init__(self, tensors: Mapping[str, torch.Tensor], header: str) -> None:
        super().__init__()
        self._names: tuple[str, ...] = ()
        self._set_weights(tensors, header)

    def _set_weights(self, tensors: Mapping[str, torch.Tensor], header: str) -> None:
        """Puts other weights in the place of those that the module has."""
        for name in self._names:
            del self._buffers[name]
        self._stored_header = header
        self._names = tuple(tensor_types(header))
        self._held = HeldWeights(self._names, header)
        for name in self._names:
            self.register_buffer(name, tensors[name])
        self.register_buffer(HEADER, _bytes_of(header, tensors["packed"].device))

    @property
    def quantized(self) -> QuantizedTensor:
        """The weights. On a GPU their words stay there, and are fetched where the host reads them. Raises
        `LowlpValueError` on the meta device."""
        return weights_of(self._tensors(), self._stored_header)

    @property
    def codec(self) -> Codec:
        """What the codes mean."""
        return self.quantized.codec

    def dequantize(self) -> torch.Tensor:
        """The exact meaning of the weights, float32 [N, K], where they are."""
        found = torch.from_numpy(self.quantized.dequantize())
        return found.to(self._tensors()[0].device)

    def extra_repr(self) -> str:
        """Codec, bits for a weight with all that comes with it, and bytes."""
        n, k = self._shape
        nbytes = self.weight_bytes
        return f"{self._what()}, {8 * nbytes / (n * k):.2f} bits per weight, {nbytes:,} bytes"

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights: words with their padding, scales, and what else comes with them."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self._tensors())

    @property
    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self._stored_header)
        return fields

    @property
    def _shape(self) -> tuple[int, int]:
        n, k = self._fields["shape"]
        return n, k

    def _what(self) -> str:
        """The type of the codes, of groups and of scales, also where there are no numbers."""
        fields = self._fields
        code = fields.get("vectors") or (fields["dtype"] if fields["lut"] is None else f"lut of {fields['dtype']}")
        return f"{code}, group={fields['group']}, scales={fields['scales']}"

    def _tensors(self) -> list[torch.Tensor]:
        """The weights' buffers, in the order in which operators take them."""
        held = self._buffers
        return [held[name] for name in self._names]

    def _apply(self: Self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        # Every cast and move of `torch.nn.Module` comes by here.
        own = {id(self._buffers[name]) for name in (*self._names, HEADER)}

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            found = fn(tensor)
            if id(tensor) in own and found.dtype != tensor.dtype:
                return tensor.to(found.device)
            return found

        super()._apply(moved, recurse)
        # What comes from the meta device has no numbers yet.
        self._buffers[HEADER] = _bytes_of(self._stored_header, self._tensors()[0].device)
        return self

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        stored = state_dict.get(prefix + HEADER)
        if isinstance(stored, torch.Tensor):
            wrong = self._wrong_header(stored)
            if wrong:
                error_msgs.append(f"{prefix}{HEADER}: {wrong}")
                return
        for name, kind in tensor_types(self._stored_header).items():
            tensor = state_dict.get(prefix + name)
            if isinstance(tensor, torch.Tensor):
                state_dict[prefix + name] = found = in_stored_type(tensor, kind)
                if found.dtype != kind:
                    error_msgs.append(f"{prefix}{name}: expected elements of {kind}, got {found.dtype}")
                    return
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        forget(self._tensors()[0])

    def _wrong_header(self, stored: torch.Tensor) -> str:
        """What is wrong with the header of a state; '' where it is the module's own."""
        if stored.dtype != torch.uint8 or stored.is_meta:
            return f"expected a tensor of uint8 with numbers, got {stored.dtype} on {stored.device}"
        text = bytes(stored.cpu().numpy()).decode(errors="replace")
        try:
            stored_types(text)
        except (LowlpValueError, LowlpTypeError) as error:
            return str(error)
        return header_difference(self._stored_header, text, "that of the state")


def header_difference(header: str, other: str, whose: str) -> str:
    """In which fields another header differs from a module's; '' where in none."""
    mine, theirs = json.loads(header), json.loads(other)
    differ = [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
    return "; ".join(f"the module's {name} is {mine.get(name)!r}, and {whose} {theirs.get(name)!r}" for name in differ)


def is_plain_call(x: torch.Tensor) -> bool:
    """Whether nothing looks on that has to see an operator: no tracer, mode, transform, autocast or tangents. Asking
    costs a tenth of what PyTorch's dispatch to a function of Python does."""
    return (
        not _is_compiling()
        and type(x) is torch.Tensor
        and forward_ad._current_level < 0
        and not _modes()
        and _tracing_state() is None
        and _transform() is None
        and not _has_autocast()
    )


def refuse_tangent(**tensors: torch.Tensor | None) -> None:
    """Raises `LowlpRuntimeError` for a tensor that carries a tangent of forward-mode differentiation, which operators
    would lose without a word."""
    if torch.compiler.is_compiling() or forward_ad._current_level < 0:
        return
    for name, tensor in tensors.items():
        if tensor is not None and tensor.is_floating_point() and forward_ad.unpack_dual(tensor).tangent is not None:
            raise LowlpRuntimeError(
                f"{name}: has a tangent of forward-mode differentiation (torch.func.jvp, forward_ad), which operators "
                "of lowlp.torch do not have; they have gradients, by backward() and torch.func.vjp"
            )


def activation_type(family: str, dtype: torch.dtype | None) -> torch.dtype:
    """The type of activations that weights of a family are meant for: `dtype` where it is one that kernels take."""
    if dtype in _ACTIVATION_TYPES.values():
        return dtype
    return _ACTIVATION_TYPES.get(family, torch.float16)


def family_of(dtype: torch.dtype) -> str:
    """The family of weights that are used with activations of this type; of float32, which kernels do not take, f16."""
    return "bf16" if dtype == torch.bfloat16 else "f16"


def options_of(dtype: torch.dtype, options: Mapping[str, Any], activation: str | None = None) -> dict[str, Any]:
    """The options of `lowlp.quantize` for a module whose weights are of this type: those given, the family, and of
    bfloat16 scales of bfloat16 where nobody says which.

    activation  the type that x is quantised to, or None; sums of integers take scales of either type alike, so they
                have the finer ones
    """
    family = family_of(dtype)
    return {"activation": family, "scale_dtype": scale_by_default("f16" if activation else family), **options}


def _bytes_of(header: str, device: torch.device) -> torch.Tensor:
    return torch.tensor(np.frombuffer(header.encode(), np.uint8), device=device)
