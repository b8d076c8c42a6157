"""Weights that a program scales itself, decoded by plans: every code at every place of a unit, for every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from packed_products import ACTIVATIONS, packed_weights, scaled_product, valid_codes, values_of
from test_decode_plans import PAIRS, every_code

import lowlp
from lowlp.compiler import compilation

# Codes that the activation type holds as they are, a few of them: each plan is proved on all codes when it is made.
FEW = {
    "f16": "int1 uint1 int2 int3 uint4 int5 int6 uint7 int8 f3e1m1 f4e2m1 f5e2m2 f6e3m2 f6e2m3 f7e4m2 f8e4m3 f8e5m2",
    "bf16": "uint3 int4 f6e3m2 f8e7m0",
}
EXACT = [
    (weight, activation)
    for weight, activation in PAIRS
    if lowlp.Codec(lowlp.dtype(weight), "channel").prescale(activation) == 1.0 and weight in FEW[activation].split()
]


def rounded(values: Any, activation: str) -> Any:
    """To the activation type and back, as float64; through f32, which holds products of two numbers of it."""
    return values.astype(np.float32).astype(ACTIVATIONS[activation]).astype(np.float64)


def run(kernel: Any, x: Any, packed: Any, scales: Any, *zeros: Any) -> Any:
    y = np.full((len(x), len(scales)), np.nan, np.float32)
    kernel(x, packed, scales, y, *zeros, checks=False)
    return y


def is_planned(kernel: Any) -> bool:
    return any(str(note).startswith("decode ") for note in kernel.description.notes)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("weight", "activation"), EXACT, ids=lambda value: value)
def test_every_code_at_every_place(weight: str, activation: str) -> None:
    codes = every_code(weight, activation)
    scales = np.random.default_rng(1).uniform(-1, 1, len(codes)).astype(ACTIVATIONS[activation])
    kernel = compilation.compile_cpu(scaled_product(len(codes), 64, weight, activation), opt_level=1)
    assert is_planned(kernel)
    y = run(kernel, np.eye(64, dtype=ACTIVATIONS[activation]), packed_weights(codes, weight, activation), scales)
    wanted = rounded(values_of(codes, weight) * scales.astype(np.float64)[:, None], activation)
    np.testing.assert_array_equal(y.T, wanted)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("weight", "zeros"), [("uint2", "f16"), ("uint4", "uint8"), ("int4", "int8"), ("uint8", "bf16"), ("int3", "uint8")]
)
def test_zero_points(weight: str, zeros: str, activation: str) -> None:
    random = np.random.default_rng(2)
    codes = random.choice(valid_codes(weight), (128, 64))
    x = random.integers(-3, 4, (16, 64)).astype(ACTIVATIONS[activation])
    scales = random.choice([0.25, 1, 2, 3], 128).astype(ACTIVATIONS[activation])
    points = random.integers(0, 1 << 4, 128)
    program = scaled_product(128, 16, weight, activation, zeros=zeros)
    given = points.astype(ACTIVATIONS.get(zeros, zeros))
    wanted = (values_of(codes, weight) - points[:, None]) * scales.astype(np.float64)[:, None]
    wanted = x.astype(np.float64) @ rounded(wanted, activation).T
    packed = packed_weights(codes, weight, activation)
    for level in (0, 1):
        kernel = compilation.compile_cpu(program, opt_level=level)
        # A byte less -4 may need 9 bits, which bf16 has not.
        holds = (weight, zeros, activation) != ("int3", "uint8", "bf16")
        assert is_planned(kernel) == (level == 1 and holds)
        np.testing.assert_array_equal(run(kernel, x, packed, scales, given), wanted)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_zero_points_that_are_no_integers(activation: str) -> None:
    """Differences are rounded as in the program. Those of signed codes would be from stored codes: no plan is made."""
    random = np.random.default_rng(3)
    x = np.eye(64, dtype=ACTIVATIONS[activation])
    scales = random.normal(size=128).astype(ACTIVATIONS[activation])
    zeros = random.normal(size=128).astype(ACTIVATIONS[activation]) * 3
    for weight in ("uint4", "int4"):
        codes = random.choice(valid_codes(weight), (128, 64))
        packed = packed_weights(codes, weight, activation)
        program = scaled_product(128, 64, weight, activation, zeros=activation)
        kernels = [compilation.compile_cpu(program, opt_level=level) for level in (0, 1)]
        assert [is_planned(kernel) for kernel in kernels] == [False, weight == "uint4"]
        plain, planned = (run(kernel, x, packed, scales, zeros) for kernel in kernels)
        np.testing.assert_array_equal(planned, plain)
        difference = rounded(values_of(codes, weight) - zeros.astype(np.float64)[:, None], activation)
        wanted = rounded(difference * scales.astype(np.float64)[:, None], activation)
        np.testing.assert_array_equal(plain.T, wanted)
