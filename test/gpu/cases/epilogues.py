"""Bias, epilogue and residual in the kernels that `linear` chooses, against float64."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cases.case import Case
from cases.linears import linear_case

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from linear_forms import weights
from linear_matrix import ERROR_LIMITS, TYPES

N, K = 208, 640
ROWS = (1, 16, 40, 130)
KINDS = (("int4", "f16"), ("int2", "f16"), ("nf4", "f16"), ("uint4z", "f16"), ("int8", "bf16"))
# Epilogue, types of the bias and of the residual, and of the result.
ENDINGS = (
    ("relu", "f16", "", ""),
    ("gelu", "", "f32", ""),
    ("gelu_tanh", "bf16", "", "f32"),
    ("silu", "", "", ""),
    ("silu_mul", "", "", ""),
    ("silu_mul", "f32", "f16", "f32"),
    ("", "f32", "bf16", ""),
)


def cases(arch: str) -> Iterator[Case]:
    """Each ending of each kind, for few rows and for many: for 1 and 40, or for 16 and 130."""
    for number, (kind, activation) in enumerate(KINDS):
        qw = weights(kind, N, K, scale=activation)
        for place, (epilogue, bias_type, residual_type, out) in enumerate(ENDINGS):
            columns = N // 2 if epilogue == "silu_mul" else N
            for m in ROWS[(number + place) % 2 :: 2]:
                rng = np.random.default_rng([place, m])
                x = rng.standard_normal((m, K)).astype(TYPES[activation])
                bias = rng.standard_normal(N).astype(TYPES[bias_type]) if bias_type else None
                residual = rng.standard_normal((m, columns)).astype(TYPES[residual_type]) if residual_type else None
                name = f"{kind}_{activation}_{epilogue or 'sum'}_{bias_type}_{residual_type}_m{m}"
                limit = ERROR_LIMITS[activation]
                options = {"epilogue": epilogue, "residual": residual}
                yield linear_case(name, qw, x, arch, limit, out or activation, bias, **options)
    for kind in ("int2", "nf4"):
        # By warpgroups, int2 with tiles of fewer columns than 64, for which gate and up leave no registers.
        qw = weights(kind, 2 * N, K, scale="f16")
        x = np.random.default_rng(7).standard_normal((300, K)).astype(TYPES["bf16"])
        yield linear_case(f"{kind}_narrow_gates", qw, x, arch, ERROR_LIMITS["bf16"], "bf16", epilogue="silu_mul")
