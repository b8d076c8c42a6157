"""Random weights of a kind on the GPU, made by PyTorch alone: every code at random, every scale another one.

Scales are stored ones of their type, and weights mean what these say: no rounding is left to chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lowlp.numeric.array_ops import TorchOps
from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.operand_tensors import torch_type

from .cases import ACTIVATION, Shape
from .saved_weights import SavedWeights

# About the root mean square of an output of Gaussian activations: far from the ends of f16.
_OUTPUT: Final = 8.0
_SEED: Final = 20


@dataclass
class RandomWeights:
    """On the GPU: codes uint8 [N, K]; scales [N, K / group], of any float type, times the second one; zeros.
    `operands` is what kernels take of them."""

    codes: Any
    scales: Any
    zeros: Any
    operands: dict[str, Any]

    def dequantized(self, saved: SavedWeights, rows: Any = None) -> Any:
        """float64 [N, K]: the meaning of the weights; `rows`: of these rows alone, a tensor of their numbers."""
        torch = _torch()
        codes, scales, zeros = (
            part if part is None or rows is None else part[rows] for part in (self.codes, self.scales, self.zeros)
        )
        n, k = codes.shape
        group = saved.group_in(k)
        table = torch.tensor(saved.values, dtype=torch.float64, device=codes.device)
        values = torch.empty((n, k), dtype=torch.float64, device=codes.device)
        block_rows = max(1, (1 << 26) // k)
        for start in range(0, n, block_rows):
            part = slice(start, start + block_rows)
            block = table[codes[part].int()].view(-1, k // group, group)
            if zeros is not None:
                block = block - zeros[part].double()[:, :, None]
            values[part] = (block * scales[part].double()[:, :, None]).view(-1, k)
        return values


def random_weights(saved: SavedWeights, sample: dict[str, AnyArray], shape: Shape, device: Any) -> RandomWeights:
    """Weights [N, K] of this kind. Raises `LowlpValueError` where packing here differs from the compiler's."""
    torch = _torch()
    ops = TorchOps(device)
    saved.check_sample(ops, sample)
    generator = torch.Generator(device=device).manual_seed(_SEED)
    codes = torch.randint(
        0, len(saved.codes), (shape.n, shape.k), dtype=torch.uint8, device=device, generator=generator
    )
    if len(saved.codes) < 1 << saved.placement.bits:
        finite = torch.tensor(saved.codes, dtype=torch.uint8, device=device)
        codes = finite[codes.int()]
    groups = (shape.n, shape.k // saved.group_in(shape.k))
    wanted = 0.75 + 0.5 * torch.rand(groups, device=device, generator=generator)
    wanted *= _OUTPUT / (_root_mean_square(saved) * math.sqrt(shape.k))
    stored, scales, scale2 = _scales(saved, wanted)
    zeros = None
    if saved.zeros_dtype:
        limit = 1 << saved.placement.bits
        zeros = torch.randint(0, limit, groups, dtype=torch.uint8, device=device, generator=generator)
        if saved.zeros_dtype == "float16":
            zeros = zeros.half() + 0.25
        elif saved.zeros_dtype != "uint8":
            raise LowlpValueError(
                f"{saved.kind}: zero points of {saved.zeros_dtype} are not made here, only uint8 and float16"
            )
    operands = saved.make_operands(ops, codes, stored, zeros, scale2)
    for operand in saved.operands:
        if operand.element == "bf16" and operand.is_array:
            # Tables come as bits.
            operands[operand.name] = operands[operand.name].view(torch.bfloat16)
    return RandomWeights(codes, scales, zeros, operands)


def _scales(saved: SavedWeights, wanted: Any) -> tuple[Any, Any, float | None]:
    """About the scales that are wanted: as kernels take them, what they mean, and the second one or None."""
    torch = _torch()
    if saved.scale == "e8m0":
        exponents = wanted.log2().round()
        return (exponents + 127).to(torch.uint8), exponents.double().exp2(), None
    if saved.second_scale:
        # The largest is near the top of e4m3.
        scale2 = float(torch.tensor(float(wanted.max()) / 384, dtype=torch.float32))
        stored = (wanted / scale2).to(torch.float8_e4m3fn)
        return stored.view(torch.uint8), stored.double() * scale2, scale2
    stored = wanted.to(torch_type(saved.scale))
    return stored, stored, None


def random_activations(rows: int, k: int, device: Any, element: str = ACTIVATION) -> Any:
    """Gaussian [rows, K] of the type `element`."""
    torch = _torch()
    generator = torch.Generator(device=device).manual_seed(_SEED + 1)
    return torch.randn((rows, k), device=device, generator=generator).to(torch_type(element))


def _root_mean_square(saved: SavedWeights) -> float:
    values = np.array(saved.values)[list(saved.codes)]
    return float(np.sqrt(np.mean(values**2)))


def _torch() -> Any:
    import torch

    return torch
