"""`linear` for every codec: x = I, where the result must be the weights to the bit, and random products."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import lowlp
from cases.case import Case
from lowlp.errors import PaddingWarning
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import product_of, vector_order_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.schedules.device import device_like
from lowlp_runtime.vector_order import order_of_vectors

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import linear_matrix as matrix
from linear_matrix import TYPES, Config
from test_linear_epilogues import wanted_of

# Few, so that blocks share tiles of small matrices.
MULTIPROCESSORS = 5


@functools.lru_cache(maxsize=8)
def compiled(spec: LinearSpec, schedule: Schedule, arch: str) -> Any:
    """The kernel; the same for cases that follow each other."""
    return lowlp.compile(linear_kernel(spec, schedule), arch)


def type_of(array: Any) -> str:
    """The name of the type of activations, results, a bias or a residual; '' of None."""
    return "" if array is None else next(kind for kind in TYPES if array.dtype == TYPES[kind])


def linear_case(
    name: str,
    qw: lowlp.QuantizedTensor,
    x: np.ndarray,
    arch: str,
    tolerance: float,
    out: str = "f32",
    bias: Any = None,
    schedule: Schedule | None = None,
    epilogue: str = "",
    residual: Any = None,
) -> Case:
    """`linear` of x [M, K], with the schedule for M or another; with a tolerance of 0, x is the identity."""
    m, k = x.shape
    activation = type_of(x)
    spec = spec_for(qw, activation, out, type_of(bias), k % 8 == 0, epilogue, type_of(residual))
    columns = spec.columns_of_y
    if residual is not None and columns % 8:
        spec = replace(spec, aligned=False)
    schedule = schedule or schedule_for(spec, m, device_like(arch))
    kernel = compiled(spec, schedule, arch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PaddingWarning)
        operands = host_operands(qw, activation, epilogue, schedule)
    product = product_of(spec, schedule)
    rows = x
    if order := vector_order_of(spec, schedule):
        # Another kernel puts columns in this order.
        rows = np.ascontiguousarray(np.pad(x, ((0, 0), (0, 1)))[:, order_of_vectors(k, order)])
    given = {"x": rows, "bias": bias, "residual": residual, "y": np.zeros((m, columns), TYPES[out])}
    numbers = product.launch_numbers(m, rows.shape[1], None if residual is None else columns, MULTIPROCESSORS)
    by_role = {**{role: part for role, part in given.items() if part is not None}, **numbers}
    values = {**operands, **product.by_name(by_role)}
    with np.errstate(over="ignore"):
        if tolerance == 0.0:
            wanted = qw.dequantize().T.astype(TYPES[out]).astype(np.float32)
        else:
            wanted = wanted_of(x, qw, epilogue or None, *(0.0 if part is None else part for part in (bias, residual)))
    facts = {"codec": str(qw.codec), "shape": [m, qw.shape[0], k]}
    return Case(name, kernel, values, "y", wanted, tolerance, facts)


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
