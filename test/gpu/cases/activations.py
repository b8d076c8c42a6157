"""Quantised activations, their norms, gates and transforms; the results are to be those of the CPU target."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

import lowlp
from cases.case import Case
from lowlp.activations.kinds import activation_kind
from lowlp.activations.quantize import Rule
from lowlp.kernels.activations.spec import Norm
from lowlp.ops.activation_launch import Launch, Matrix, Work, launches_of, matrix_of, memory_of

WRITTEN = ("codes", "scales", "sums", "zeros", "planes", "y", "residual_out")


def rule(dtype: str, scale: str = "token", symmetric: bool = True, group: int | None = None, block: int = 0) -> Rule:
    return Rule(activation_kind(dtype), scale, symmetric, 1.0, block, group)


def rows(m: int, columns: int, dtype: object = np.float16) -> Matrix:
    x = np.random.default_rng(m * columns).standard_normal((m, columns), np.float32) * 3
    return matrix_of(x.astype(dtype))


def works() -> Iterator[tuple[str, Matrix, Work]]:
    """One of each kind, and two of a size that is worth timing."""
    x = rows(33, 1024)
    yield "int8", x, Work(1024, rule("int8"))
    yield "uint4_zeros", x, Work(1024, rule("uint4", symmetric=False), planes=True)
    yield "int4_planes", rows(5, 1000, ml_dtypes.bfloat16), Work(1000, rule("int4"), planes=True)
    yield "bipolar1", rows(64, 4096, np.float32), Work(4096, rule("bipolar1"), planes=True)
    yield "f8e4m3", x, Work(1024, rule("f8e4m3"))
    yield "f8e5m2", rows(7, 96), Work(96, rule("f8e5m2"))
    yield "unaligned", rows(3, 37), Work(37, rule("int8"), planes=True)
    yield "long", rows(2, 70001, np.float32), Work(70001, rule("int6", symmetric=False), planes=True)
    yield "tensor", x, Work(1024, rule("int8", "tensor"))
    yield "groups", x, Work(1024, rule("int4", group=128), group_size=128, planes=True)
    yield "hadamard", rows(9, 8192), Work(8192, rule("int4", block=8192), hadamard=8192, planes=True)
    yield "hadamard_28", rows(3, 28 * 64), Work(28 * 64, rule("int4", block=28 * 64), hadamard=28 * 64)
    norm = Norm("f16", 1e-5, residual=True)
    weight = np.linspace(0.5, 1.5, 5120).astype(np.float16)
    yield "rms_norm", rows(6, 5120), Work(5120, rule("int8"), norm=norm, weight=weight, residual=rows(6, 5120))
    # `ll.exp` may differ in the last place, and then codes: within half of a step in a few places.
    yield "silu_mul", rows(5, 2 * 2048), Work(2048, rule("int8", block=512), silu=True, hadamard=512)
    yield "many_rows", rows(2048, 8192), Work(8192, rule("int8"))
    yield "many_rows_planes", rows(512, 8192), Work(8192, rule("int4"), planes=True)


def given(array: np.ndarray) -> np.ndarray:
    """As every PyTorch has it."""
    memory = memory_of(array)
    return memory.view(np.int32) if memory.dtype == np.uint32 else memory


def cases_of(name: str, launch: Launch, arch: str) -> Iterator[Case]:
    kernel = lowlp.compile(launch.make(), arch)
    outputs = [output for output in WRITTEN if output in launch.arrays]
    for output in outputs[:1] if name.startswith("many") else outputs:
        arguments: dict[str, Any] = {key: given(array) for key, array in launch.arrays.items()}
        wanted = arguments[output].copy()
        tolerance = 2e-2 if name.startswith("silu") else 0.0
        yield Case(f"activations_{name}_{output}", kernel, arguments | launch.numbers, output, wanted, tolerance)


def cases(arch: str) -> Iterator[Case]:
    """Every launch of each, with what the CPU target has made of what came before it."""
    for name, x, work in works():
        launches = launches_of(x, work)[1]
        for number, launch in enumerate(launches):
            text = name if len(launches) == 1 else f"{name}_{number}"
            lowlp.compile_cpu(launch.make())(
                **{key: memory_of(array) for key, array in launch.arrays.items()}, **launch.numbers
            )
            # The launch that finds extremes adds to what is there, which would be poison.
            if launch.key[0] != "extremes":
                yield from cases_of(text, launch, arch)
