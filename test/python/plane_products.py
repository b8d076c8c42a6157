"""Products of planes on the CPU target beside numpy's: what the tests of planes have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import lowlp
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import PlaneSchedule
from lowlp.kernels.linear.planes.streams import stream_kernel
from lowlp.kernels.linear.planes.warpgroups import WarpgroupSchedule, warpgroup_kernel

KINDS = ("uint", "int", "bipolar", "ternary")
FILLS = ("random", "most", "least", "alternating")


def dtype_of(kind: str, bits: int) -> str:
    """The type of a kind and width; ternary has two bits whatever the width."""
    return kind if kind == "ternary" else f"{kind}{bits}"


def codes_of(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], fill: str = "random") -> np.ndarray:
    """Numbers as `QuantizedActivations` stores them: int8 for signed types, else uint8."""
    if dtype == "ternary":
        low, high = -1, 1
    elif dtype.startswith("int"):
        low, high = int(lowlp.dtype(dtype).min), int(lowlp.dtype(dtype).max)
    else:
        low, high = 0, (1 << lowlp.dtype(dtype).bits) - 1
    if fill == "random":
        found = rng.integers(low, high, shape, endpoint=True)
    elif fill == "alternating":
        found = np.where(np.arange(np.prod(shape)).reshape(shape) % 2, low, high)
    else:
        found = np.full(shape, high if fill == "most" else low)
    return found.astype(np.int8 if low < 0 else np.uint8)


def numbers_of(codes: np.ndarray, dtype: str) -> np.ndarray:
    """What codes mean, int64."""
    wide = codes.astype(np.int64)
    return 2 * wide - ((1 << lowlp.dtype(dtype).bits) - 1) if dtype.startswith("bipolar") else wide


def wrapped(sums: np.ndarray) -> np.ndarray:
    """int64 modulo 2^32."""
    return sums.astype(np.uint64).astype(np.uint32).view(np.int32)


@dataclass
class Operands:
    """The arrays of a product, and what it is exactly.

    weights  of the family b1
    x        activations
    acc      int64 [M, N]
    """

    weights: Any
    x: Any
    acc: np.ndarray

    @classmethod
    def make(
        cls, rng: np.random.Generator, spec: PlanesSpec, m: int, fills: tuple[str, str] = ("random", "random")
    ) -> Operands:
        held = "int2" if spec.weight == "ternary" else spec.weight
        w = codes_of(rng, spec.weight, (spec.n, spec.k), fills[0])
        x = codes_of(rng, spec.activation, (m, spec.k), fills[1])
        bits = lowlp.dtype(held).bits
        scales = rng.uniform(0.5, 2.0, (spec.n, 1)).astype(np.float32)
        weights = lowlp.QuantizedTensor(
            w.view(np.uint8) & ((1 << bits) - 1),
            dtype=held,
            scales=scales.astype({"f16": np.float16}.get(spec.scale, np.float32)),
            zeros=rng.integers(-5, 6, (spec.n, 1)).astype(np.int32) if spec.zeros else None,
            activation="b1",
        )
        activations = lowlp.QuantizedActivations(
            x,
            dtype=spec.activation,
            scales=rng.uniform(0.5, 2.0, (m, 1)).astype(np.float32),
            zeros=rng.integers(-5, 6, (m, 1)).astype(np.int32) if spec.x_zeros else None,
        )
        of_w, of_x = numbers_of(w, spec.weight), numbers_of(x, spec.activation)
        of_w = of_w - weights.zeros.astype(np.int64) if spec.zeros else of_w
        of_x = of_x - activations.zeros if spec.x_zeros else of_x
        return cls(weights, activations, of_x @ of_w.T)

    def arguments(self, spec: PlanesSpec, bias: np.ndarray | None = None) -> dict[str, Any]:
        """Those of the kernel, but for y and m."""
        planes = self.x.planes
        padded = np.zeros((*planes.shape[:-1], spec.words), np.uint32)
        padded[..., : planes.shape[-1]] = planes
        found = {
            "planes": padded,
            "weights": self.weights.packed,
            "scales": self.weights.scales if spec.scale else None,
            "zeros": self.weights.zeros.astype(np.int32) if spec.zeros else None,
            "w_sums": self.weights.code_sums if spec.takes_sums_of_weights else None,
            "x_scales": self.x.scales if spec.x_scale else None,
            "x_zeros": self.x.zeros if spec.x_zeros else None,
            "x_sums": self.x.sums.astype(np.int32) if spec.takes_sums_of_x else None,
            "bias": bias,
        }
        return {name: array for name, array in found.items() if array is not None}


def kernel_of(spec: PlanesSpec, schedule: PlaneSchedule) -> Any:
    """The kernel of a schedule of either kind."""
    make: Any = warpgroup_kernel if isinstance(schedule, WarpgroupSchedule) else stream_kernel
    return make(spec, schedule)


def sums_of(spec: PlanesSpec, schedule: PlaneSchedule, operands: Operands, kernel: Any = None) -> np.ndarray:
    """What the kernel makes, int32 [M, N]."""
    y = np.full(operands.acc.shape, -77, np.int32)
    (kernel or kernel_of(spec, schedule))(**operands.arguments(spec), y=y, m=len(y))
    return y
