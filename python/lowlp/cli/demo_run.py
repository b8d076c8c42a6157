"""The steps of `lowlp demo`, without their printing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lowlp_runtime
from lowlp.cli.demo_weights import load_demo_weight
from lowlp.compiler.architectures import DEFAULT_ARCH, current_arch
from lowlp.compiler.compilation import compile_cpu
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import TAKES_ALL, product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.numeric.dtypes import named_dtype
from lowlp.numeric.host_array import FLOAT_DTYPES
from lowlp.ops.linear import compile_linear
from lowlp.ops.linear_launch import device_operands
from lowlp.ops.linear_on_cpu import CPU_MULTIPROCESSORS
from lowlp.weights.quantize.quantization import quantize
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.arguments import bind
from lowlp_runtime.device import multiprocessors

from .device import Device
from .output import count

# What lowlp promises: the relative Frobenius error against float64, by the type of activations.
ERROR_LIMITS = {"f16": 2e-3, "bf16": 1.1e-2}
# A float with more exponent bits than f16 has needs bf16 activations.
_F16_EXPONENT_BITS = 5


@dataclass
class Outcome:
    """What a run gave."""

    result: NDArray[Any]
    counters: dict[str, int] = field(default_factory=dict)
    median_us: float | None = None
    error: float = float("nan")
    error_limit: float = 0.0


def relative_error(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """|found - wanted| / |wanted| in Frobenius norms, computed in float64."""
    wanted = wanted.astype(np.float64)
    norm = float(np.linalg.norm(wanted))
    difference = float(np.linalg.norm(found.astype(np.float64) - wanted))
    return difference / norm if norm else difference


class Demo:
    """The state that the steps share; they are called in the order in which they are written here."""

    weight: NDArray[np.float32]
    source: str
    packed: QuantizedTensor

    def __init__(self, dtype_name: str, group_size: int, rows: int, seed: int) -> None:
        """Raises `LowlpValueError` for a type that does not exist."""
        self.dtype = named_dtype(dtype_name, "--dtype")
        self.group_size = group_size
        self.rows = rows
        self.seed = seed
        wide = self.dtype.is_float and self.dtype.exponent_bits > _F16_EXPONENT_BITS
        self.activation = "bf16" if wide else "f16"

    def read_weights(self, outputs: int | None) -> None:
        """Reads the matrix, or its first `outputs` rows."""
        weight, self.source = load_demo_weight()
        self.weight = weight[:outputs]
        self.is_part = len(self.weight) < len(weight)

    def quantize(self, zero_point: bool) -> None:
        """Quantises and packs, and draws activations."""
        self.packed = quantize(self.weight, self.dtype, group_size=self.group_size, zero_point=zero_point)
        self.parts = host_operands(self.packed, self.activation)
        self.packed_bytes = np.asarray(self.parts["weights"]).nbytes
        generator = np.random.default_rng(self.seed)
        shape = (self.rows, self.weight.shape[1])
        self.x: NDArray[Any] = generator.standard_normal(shape, np.float32).astype(FLOAT_DTYPES[self.activation])

    def compile(self, arch: str | None, device: Device) -> CompiledKernel:
        """The kernel for a GPU, whether there is one or not."""
        n, k = self.packed.shape
        return compile_linear(
            n=n,
            k=k,
            m=(1, self.rows),
            weight=self.dtype.name,
            group_size=self.packed.group_size,
            activation=self.activation,
            zeros=self.packed.codec.zeros or False,
            target=arch or (current_arch() if device.is_cuda else DEFAULT_ARCH),
        )

    def execute(self, device: Device, kernel: CompiledKernel) -> Outcome:
        """Runs the kernel on a GPU, and measures it; or its program on the CPU target."""
        return self._on_gpu(kernel) if device.is_cuda else self._on_cpu()

    def _on_cpu(self) -> Outcome:
        n, k = self.packed.shape
        spec = spec_for(self.packed, self.activation, self.activation, aligned=k % 8 == 0)
        y = np.full((self.rows, n), np.nan, FLOAT_DTYPES[self.activation])
        schedule = schedule_for(spec, self.rows)
        product = product_of(spec, schedule)
        numbers = product.launch_numbers(self.rows, k, None, CPU_MULTIPROCESSORS)
        given: dict[str, Any] = product.by_name({"x": self.x, "y": y, **numbers})
        parts = host_operands(self.packed, self.activation, schedule=schedule)
        counters = compile_cpu(linear_kernel(spec, schedule))(**parts, **given, seed=self.seed)
        return Outcome(y, counters)

    def _on_gpu(self, kernel: CompiledKernel) -> Outcome:
        import torch

        n, k = self.packed.shape
        activation = {"f16": torch.float16, "bf16": torch.bfloat16}[self.activation]
        x = torch.from_numpy(self.x.astype(np.float32)).to("cuda", activation)
        y = torch.full((self.rows, n), float("nan"), dtype=activation, device="cuda")
        product = kernel.description.require_product()
        numbers = product.launch_numbers(self.rows, k, None, multiprocessors())
        given = product.by_name({"x": x, "y": y, **numbers})
        parts = device_operands(self.packed, self.activation, x.device, schedule=TAKES_ALL)
        taken = {operand.name: parts[operand.name] for operand in product.of_source("weights")}
        arguments = bind(kernel.description, {**taken, **given})

        def launch() -> None:
            kernel.launcher(arguments)

        timing = lowlp_runtime.measure(launch, stream=torch.cuda.current_stream())
        return Outcome(y.float().cpu().numpy(), median_us=timing.median_us)

    def compare(self, outcome: Outcome) -> None:
        """Fills in the error against float64, and that of the quantisation."""
        exact = self.packed.dequantize()
        outcome.error = relative_error(outcome.result, self.x.astype(np.float64) @ exact.T.astype(np.float64))
        outcome.error_limit = ERROR_LIMITS[self.activation]
        self.quantization_error = relative_error(exact, self.weight)

    def facts(self, outcome: Outcome) -> Iterator[tuple[str, str]]:
        """The rows of the table."""
        n, k = self.packed.shape
        f16_bytes = 2 * n * k
        packed_bytes = sum(np.asarray(part).nbytes for part in self.parts.values())
        zeros = ", zero points" if self.packed.zeros is not None else ""
        yield "weights", self.source + (f", first {n} rows" if self.is_part else "")
        yield "activations", f"{self.rows} x {k} {self.activation}, Gaussian, seed {self.seed}"
        yield "codec", f"{self.dtype.name}, group of {self.packed.group_size}, f16 scales{zeros}"
        yield (
            "bytes",
            f"{count(f16_bytes)} as f16 -> {count(packed_bytes)} packed ({count(self.packed_bytes)} codes), "
            f"{8 * packed_bytes / (n * k):.2f} bits per weight",
        )
        yield "quantisation error", f"{self.quantization_error:.2e} (weights, relative Frobenius)"
        yield (
            "kernel error",
            f"{outcome.error:.2e} against float64 with the same codes; limit {outcome.error_limit:.1e}",
        )
        yield from self._cost(outcome)

    def _cost(self, outcome: Outcome) -> Iterator[tuple[str, str]]:
        if outcome.median_us is not None:
            read = sum(np.asarray(part).nbytes for part in self.parts.values())
            yield (
                "time",
                f"{outcome.median_us:.1f} us median, cold L2; {read / outcome.median_us / 1e3:.0f} GB/s of weights",
            )
        elif outcome.counters:
            counted = ", ".join(
                f"{count(number)} {name.replace('_', ' ')}" for name, number in outcome.counters.items() if number
            )
            yield "emulated", counted
