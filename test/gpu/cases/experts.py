"""Products of experts: few rows and many, empty experts, all rows with one, gates; the cases of the CPU's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cases.case import Case
from cases.linears import MULTIPROCESSORS, compiled, type_of
from lowlp.kernels.linear.experts import blocks_of_experts
from lowlp.kernels.linear.experts_choosing import rows_of_tile, schedule_for_experts
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import for_weights, host_operands, spec_for
from lowlp.schedules.device import device_like

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from linear_matrix import ERROR_LIMITS, TYPES
from test_grouped_linear import BF16, CASES, F16, expected, offsets_of, weights

MORE: dict[str, tuple[Any, ...]] = {
    "mxfp4, few rows": ((40, 96, 256), [0, 1, 9, 0] * 10, "mxfp4", 32, {}, {"bias": F16}),
    "mxfp4, many rows": ((3, 192, 256), [90, 0, 200], "mxfp4", 32, {}, {}),
    "int4, many rows": ((2, 256, 384), [130, 170], "int4", 128, {}, {"residual": F16}),
}


def cases(arch: str) -> Iterator[Case]:
    """Each with rows that lie side by side."""
    for name, (shape, rows, dtype, group, more, product) in {**CASES, **MORE}.items():
        x_type, epilogue = product.get("x", F16), product.get("epilogue", "")
        activation = "bf16" if x_type is BF16 else "f16"
        qw = weights(shape, dtype, group, **more, activation=activation)
        rng, offsets = np.random.default_rng(shape[0]), offsets_of(rows)
        m, (_, n, k) = int(offsets[-1]), shape
        columns = n // 2 if epilogue == "silu_mul" else n
        x = rng.normal(size=(m, k)).astype(x_type)
        bias = rng.normal(size=shape[:2]).astype(product["bias"]) if "bias" in product else None
        residual = rng.normal(size=(m, columns)).astype(product["residual"]) if "residual" in product else None
        out = product.get("out", activation)
        spec = for_weights(
            spec_for(qw, activation, out, type_of(bias), k % 8 == columns % 8 == 0, epilogue, type_of(residual)), qw
        )
        schedule = schedule_for_experts(spec, m, device_like(arch))
        product_of_kernel = product_of(spec, schedule)
        given = {"x": x, "bias": bias, "residual": residual, "row_offsets": offsets}
        numbers = product_of_kernel.launch_numbers(m, k, None if residual is None else columns, MULTIPROCESSORS)
        tile = rows_of_tile(spec, schedule)
        numbers["blocks"] = blocks_of_experts(spec, schedule, tile, m, MULTIPROCESSORS)
        by_role = {**{role: part for role, part in given.items() if part is not None}, **numbers}
        by_role["y"] = np.zeros((m, columns), TYPES[out])
        values = {**host_operands(qw, activation, epilogue, schedule), **product_of_kernel.by_name(by_role)}
        wanted = expected(x, qw, offsets, bias, residual, epilogue)
        facts = {"codec": str(qw.codec), "shape": [m, n, k], "experts": shape[0]}
        label = name.replace(" ", "_").replace(",", "")
        kernel = compiled(spec, schedule, arch)
        yield Case(f"experts_{label}", kernel, values, "y", wanted, ERROR_LIMITS[activation], facts)
