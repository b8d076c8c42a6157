"""Scales on accumulators in place of weights (`lowlp-fold-scales`): exact for one weight, nearer to float64 else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from folded_products import CASES, K, N, operands, product
from packed_products import ACTIVATIONS

from lowlp.compiler.compilation import compile_cpu


def run(kernel: Any, x: Any, given: list[Any]) -> Any:
    y = np.full((len(x), N), np.nan, np.float32)
    kernel(x, *given, y, len(x), checks=False)
    return y.astype(np.float64)


def planned(kernel: Any) -> list[str]:
    return [str(note) for note in kernel.description.notes if str(note).startswith("decode ")]


@pytest.mark.parametrize(("weight", "activation", "form"), CASES)
def test_folded(weight: str, activation: str, form: str) -> None:
    given, wanted = operands(weight, activation, form)
    folded = compile_cpu(product(weight, activation, form), opt_level=1)
    assert planned(folded)
    # One weight at a time: nothing is rounded but what f32 does not hold, and an offset is added in f32.
    one = run(folded, np.eye(K, dtype=ACTIVATIONS[activation])[::4].copy(), given)
    np.testing.assert_array_equal(one, wanted.T[::4].astype(np.float32).astype(np.float64))
    x = np.random.default_rng(5).standard_normal((8, K)).astype(ACTIVATIONS[activation])
    exact = x.astype(np.float64) @ wanted.T
    errors = [
        np.linalg.norm(run(kernel, x, given) - exact) / np.linalg.norm(exact)
        for kernel in (folded, compile_cpu(product(weight, activation, form, reassociate=False), opt_level=1))
    ]
    # Weights that are rounded after their scales are off by some 2^-12 or, of bf16, 2^-9.
    assert errors[0] < 3e-6 < 1e-4 < errors[1]


def test_only_where_it_is_allowed() -> None:
    folded, kept = (
        compile_cpu(product("int4", "f16", "plain", reassociate=allowed), opt_level=1) for allowed in (True, False)
    )
    assert [kernel.description.notes["decode int4.f16"]["scales on"] for kernel in (folded, kept)] == [
        "accumulators",
        "weights",
    ]
    assert "without fold: the kernel's schedule does not say reassociate" in str(kept.description.notes["remarks"])
