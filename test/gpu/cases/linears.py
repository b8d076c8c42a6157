"""`linear` for every codec: x = I, where the result must be the weights to the bit, and random products."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lowlp
from cases.case import Case
from lowlp.errors import PaddingWarning
from lowlp.kernels.linear import linear_kernel
from lowlp.kernels.linear_operands import host_operands, spec_for
from lowlp.kernels.linear_schedules import schedule_for
from lowlp.kernels.linear_spec import LinearSpec, Schedule
from lowlp.linear_kernels import last_arguments

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import linear_matrix as matrix
from linear_matrix import TYPES, Config

# Few, so that blocks share tiles of small matrices.
MULTIPROCESSORS = 5


@functools.lru_cache(maxsize=8)
def compiled(spec: LinearSpec, schedule: Schedule, arch: str) -> Any:
    """The kernel; the same for cases that follow each other."""
    return lowlp.compile(linear_kernel(spec, schedule), arch)


def linear_case(
    name: str,
    qw: lowlp.QuantizedTensor,
    x: np.ndarray,
    arch: str,
    tolerance: float,
    out: str = "f32",
    bias: Any = None,
    schedule: Schedule | None = None,
) -> Case:
    """`linear` of x [M, K], with the schedule for M or another; with a tolerance of 0, x is the identity."""
    m, (n, k) = x.shape[0], qw.shape
    activation = next(kind for kind in matrix.ACTIVATIONS if x.dtype == TYPES[kind])
    bias_type = "" if bias is None else next(kind for kind in TYPES if bias.dtype == TYPES[kind])
    spec = spec_for(qw, activation, out, bias_type, aligned=k % 8 == 0)
    schedule = schedule or schedule_for(spec, m)
    kernel = compiled(spec, schedule, arch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaddingWarning)
        operands = host_operands(qw, activation)
    values = [x, *operands, *([] if bias is None else [bias]), np.zeros((m, n), TYPES[out]), m, k]
    values.extend(last_arguments(spec, schedule, m, MULTIPROCESSORS))
    names = [parameter.name for parameter in kernel.description.parameters]
    with np.errstate(over="ignore"):
        if tolerance == 0.0:
            wanted = qw.dequantize().T.astype(TYPES[out]).astype(np.float32)
        else:
            wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T + (0 if bias is None else bias)
    facts = {"codec": str(qw.codec), "shape": [m, n, k]}
    return Case(name, kernel, dict(zip(names, values, strict=True)), "y", wanted, tolerance, facts)


def product_cases(config: Config, n: int, k: int, arch: str) -> Iterator[Case]:
    """Random products for every number of rows, the outputs f16 or bf16 as the activations or f32."""
    qw = config.weights(n, k, seed=n)
    kind = TYPES[config.activation]
    rng = np.random.default_rng(k)
    x = rng.standard_normal((max(matrix.ROWS), k)).astype(np.float32).astype(kind)
    for index, m in enumerate(row for row in matrix.ROWS if row):
        bias = rng.standard_normal(n).astype(np.float32).astype(list(TYPES.values())[index // 3])
        out = "f32" if index % 3 == 2 else config.activation
        name = f"product_{config}_{m}x{n}x{k}"
        limit = matrix.ERROR_LIMITS[config.activation]
        yield linear_case(name, qw, x[:m], arch, limit, out, bias if index % 3 else None)


def cases(arch: str) -> Iterator[Case]:
    """The whole matrix with x = I, and random products."""
    for index, config in enumerate(matrix.FULL + matrix.EXTRAS):
        k = 2 * config.k if config in matrix.EXTRAS and config.group else config.k
        k -= k % (config.group or 1)
        identity = np.eye(k, dtype=TYPES[config.activation])
        out = config.activation if index % 3 == 0 else "f32"
        qw = config.weights(17 + 7 * index % 60, k, seed=index)
        # No result depends on the schedule, and narrow tiles compile several times as fast.
        schedule = Schedule((8, 16, 8, 8, 32)[index % 5], (1, 2)[index % 2])
        yield linear_case(f"identity_{config}", qw, identity, arch, 0.0, out, schedule=schedule)
    for config, n, k in matrix.PRODUCTS + matrix.LARGE_PRODUCTS:
        yield from product_cases(config, n, k, arch)
