"""Rounding of x as checkpoints want it: by the product where it has such a form, else before it.

A product of quantised activations takes scales of tokens that are found at run time. Other schemes - one scale that the
checkpoint has, scales of groups - round x to the numbers that it would have, and multiply as without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import torch

from lowlp.checkpoints import InputQuantization
from lowlp.errors import CheckpointError
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpValueError

from .linear import Linear
from .products import placed_for

_LARGEST: Final = {"f8e4m3": 448.0, "f8e5m2": 57344.0, "f4e2m1": 6.0}
_FLOATS: Final = {"f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}
# Between neighbouring magnitudes of e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
_BETWEEN_E2M1: Final = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
_E2M1: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_LEAST: Final = 1e-12


def largest_of(dtype: str) -> float:
    """The largest number of a type that x is rounded to. Raises `CheckpointError` for others."""
    if dtype in _LARGEST:
        return _LARGEST[dtype]
    if dtype.startswith("int") and dtype[3:].isdigit() and 2 <= int(dtype[3:]) <= 8:
        return float((1 << (int(dtype[3:]) - 1)) - 1)
    raise CheckpointError(f"the checkpoint rounds x to {dtype}, which is not read; activations=None leaves x as it is")


def rounded(x: torch.Tensor, inputs: InputQuantization) -> torch.Tensor:
    """x [..., K] with the numbers that its rounding keeps, of its type."""
    wide = x.float()
    k = x.shape[-1]
    if isinstance(inputs.per, int):
        # The last group may be short.
        wide = torch.nn.functional.pad(wide, (0, -k % inputs.per)).unflatten(-1, (-1, inputs.per))
    largest = largest_of(inputs.dtype)
    if inputs.scale is not None and not isinstance(inputs.per, int):
        scale: Any = inputs.scale
    else:
        peak = wide.abs().amax() if inputs.per == "tensor" else wide.abs().amax(-1, keepdim=True)
        scale = (peak / largest).clamp_min(_LEAST)
        if inputs.dtype == "f4e2m1":
            # Scales of NVFP4 are e4m3, over the one of the tensor that the checkpoint has.
            whole = inputs.scale or 1.0
            scale = (scale / whole).clamp(2.0**-9, 448.0).to(torch.float8_e4m3fn).float() * whole
    found = _nearest(wide / scale, inputs.dtype, largest) * scale
    if isinstance(inputs.per, int):
        found = found.flatten(-2)[..., :k]
    return found.to(x.dtype)


def _nearest(numbers: torch.Tensor, dtype: str, largest: float) -> torch.Tensor:
    if dtype in _FLOATS:
        return numbers.clamp(-largest, largest).to(_FLOATS[dtype]).float()
    if dtype == "f4e2m1":
        values = torch.tensor(_E2M1, dtype=torch.float32, device=numbers.device)
        between = torch.tensor(_BETWEEN_E2M1, dtype=torch.float32, device=numbers.device)
        return values[torch.bucketize(numbers.abs(), between)] * numbers.sign()
    return numbers.round().clamp(-largest - 1, largest)


class RoundedLinear(Linear):
    """A `lowlp.torch.Linear` whose x is rounded first, as a checkpoint says."""

    inputs: InputQuantization

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y [..., N] of x [..., K]."""
        return super().forward(rounded(x, self.inputs))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, inputs={self.inputs.dtype} by {self.inputs.per}"


def linear_of(
    qw: QuantizedTensor,
    bias: torch.Tensor | None,
    inputs: InputQuantization | None,
    device: torch.device,
    dtype: torch.dtype,
) -> Linear:
    """The module of weights, whose x is rounded as `inputs` says; None: not at all."""
    if inputs is None:
        return Linear.from_quantized(qw, bias, device=device, dtype=dtype)
    largest_of(inputs.dtype)
    if inputs.dynamic and inputs.per == "token":
        try:
            placed = placed_for(qw, inputs.dtype, None, device)
            return Linear.from_quantized(placed, bias, activation=inputs.dtype, device=device, dtype=dtype)
        except LowlpValueError:
            pass  # No product of quantised activations takes these weights exactly.
    found = RoundedLinear.from_quantized(qw, bias, device=device, dtype=dtype)
    assert isinstance(found, RoundedLinear)
    found.inputs = inputs
    return found


def settings_of(module: torch.nn.Module) -> dict[str, Any]:
    """What config.json says of a module besides its weights; {}: nothing."""
    if isinstance(module, RoundedLinear):
        return {"inputs": asdict(module.inputs)}
    if not isinstance(module, Linear):
        return {}
    given = {"activation": module.activation, "path": module.path, "epilogue": module.epilogue}
    return {name: value for name, value in given.items() if value is not None}


def linear_with(
    settings: Mapping[str, Any],
    qw: QuantizedTensor,
    bias: torch.Tensor | None,
    device: torch.device,
    dtype: torch.dtype,
) -> Linear:
    """The module that `settings_of` described. Raises `CheckpointError` for settings that there are not."""
    unknown = sorted(settings.keys() - {"inputs", "activation", "path", "epilogue"})
    if unknown:
        raise CheckpointError(f"modules: {unknown[0]!r} is no setting of a module in config.json")
    if "inputs" in settings:
        try:
            inputs = InputQuantization(**settings["inputs"])
        except TypeError as error:
            raise CheckpointError(f"modules: inputs: {error}") from None
        found = RoundedLinear.from_quantized(qw, bias, device=device, dtype=dtype)
        assert isinstance(found, RoundedLinear)
        found.inputs = inputs
        return found
    return Linear.from_quantized(qw, bias, device=device, dtype=dtype, **settings)
