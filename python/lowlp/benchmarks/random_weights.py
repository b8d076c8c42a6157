"""Random weights of a kind on the GPU, made by PyTorch alone: every code at random, every scale another one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from lowlp.numeric.array_ops import TorchOps
from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.errors import LowlpValueError

from .cases import GROUP_SIZE, Shape
from .saved_weights import SavedWeights

# About the root mean square of an output of Gaussian activations: far from the ends of f16.
_OUTPUT: Final = 8.0
_SEED: Final = 20


@dataclass
class RandomWeights:
    """Codes uint8 [N, K], scales f16 [N, K / 128] and zeros, on the GPU; `operands` is what kernels take of them."""

    codes: Any
    scales: Any
    zeros: Any
    operands: dict[str, Any]

    def dequantized(self, saved: SavedWeights) -> Any:
        """float64 [N, K]: the meaning of the weights."""
        torch = _torch()
        n, k = self.codes.shape
        table = torch.tensor(saved.values, dtype=torch.float64, device=self.codes.device)
        values = torch.empty((n, k), dtype=torch.float64, device=self.codes.device)
        rows = max(1, (1 << 26) // k)
        for start in range(0, n, rows):
            part = slice(start, start + rows)
            block = table[self.codes[part].int()].view(-1, k // GROUP_SIZE, GROUP_SIZE)
            if self.zeros is not None:
                block = block - self.zeros[part].double()[:, :, None]
            values[part] = (block * self.scales[part].double()[:, :, None]).view(-1, k)
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
    groups = (shape.n, shape.k // GROUP_SIZE)
    spread = 0.75 + 0.5 * torch.rand(groups, device=device, generator=generator)
    scales = (spread * (_OUTPUT / (_root_mean_square(saved) * math.sqrt(shape.k)))).half()
    zeros = None
    if saved.zeros_dtype:
        if saved.zeros_dtype != "uint8":
            raise LowlpValueError(f"{saved.kind}: zero points of {saved.zeros_dtype} are not made here, only uint8")
        limit = 1 << saved.placement.bits
        zeros = torch.randint(0, limit, groups, dtype=torch.uint8, device=device, generator=generator)
    return RandomWeights(codes, scales, zeros, saved.make_operands(ops, codes, scales, zeros))


def random_activations(rows: int, k: int, device: Any) -> Any:
    """Gaussian f16 [rows, K]."""
    torch = _torch()
    generator = torch.Generator(device=device).manual_seed(_SEED + 1)
    return torch.randn((rows, k), device=device, generator=generator).half()


def _root_mean_square(saved: SavedWeights) -> float:
    values = np.array(saved.values)[list(saved.codes)]
    return float(np.sqrt(np.mean(values**2)))


def _torch() -> Any:
    import torch

    return torch
