"""Packed weights through `wgmma`: the same words as for `mma.sync`, decoded into the registers of a warpgroup."""

from __future__ import annotations

import numpy as np
import pytest
from packed_products import ACTIVATIONS, packed_weights, valid_codes, values_of, warpgroup_product

import lowlp
from lowlp.compiler import compilation


@pytest.mark.parametrize("weight", ["uint1", "uint2", "uint3", "int3", "uint4", "int6", "f6e3m2", "int8"])
def test_warpgroups(weight: str) -> None:
    """Units of 64 and of 32 rows are shared by the warps of a warpgroup, those of 16 rows are not."""
    random = np.random.default_rng(3)
    codes = random.choice(valid_codes(weight), (128, 128))
    x = random.integers(-3, 4, (128, 128)).astype(np.float16)
    expected = x.astype(np.float64) @ values_of(codes, weight).T
    program = warpgroup_product(128, 128, weight, "f16")
    packed = packed_weights(codes, weight, "f16")
    y = np.full(expected.shape, np.nan, np.float32)
    kernel = compilation.compile_cpu(program, opt_level=1)
    assert any(str(note).startswith("decode ") for note in kernel.description.notes)
    kernel(x, packed, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("weight", ["int1", "uint2", "int3", "int4", "f4e2m1", "int8"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_scaled(weight: str, activation: str) -> None:
    """Signed integers count from below 0, and the scales of a row go on its weights."""
    random = np.random.default_rng(3)
    codes = random.choice(valid_codes(weight), (128, 128))
    x = random.integers(-3, 4, (128, 128)).astype(ACTIVATIONS[activation])
    scales = random.choice([0.25, 1, 2, 3], 128).astype(ACTIVATIONS[activation])
    weights = (values_of(codes, weight) * scales.astype(np.float64)[:, None]).astype(ACTIVATIONS[activation])
    expected = x.astype(np.float64) @ weights.astype(np.float64).T
    program = warpgroup_product(128, 128, weight, activation, scaled=True)
    packed = packed_weights(codes, weight, activation)
    y = np.full(expected.shape, np.nan, np.float32)
    for level in (0, 1):
        kernel = compilation.compile_cpu(program, opt_level=level)
        assert any(str(note).startswith("decode ") for note in kernel.description.notes) == (level == 1)
        kernel(x, packed, y, scales)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("weight", ["uint1", "uint3", "int4", "uint4", "uint6", "uint8"])
@pytest.mark.parametrize("scaled", [False, True])
def test_no_spills(weight: str, scaled: bool) -> None:
    kernel = compilation.compile(warpgroup_product(128, 128, weight, "f16", scaled=scaled), "sm_90a")
    facts = kernel.report()
    assert f"decode {lowlp.packing.placement_name(lowlp.dtype(weight), 'f16')}" in facts
    assert "spilled bytes per thread 0" in facts
