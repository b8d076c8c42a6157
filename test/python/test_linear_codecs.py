"""`lowlp.linear` with small scales, a second scale and one scale for all, and what it refuses, on the CPU target."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from codec_samples import SCALES, random_tensor
from hypothesis import given, settings
from hypothesis import strategies as st

import lowlp
from lowlp.dtypes import dtype
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear import LinearSpec

ACTIVATIONS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


@given(
    st.sampled_from(["int1", "uint4", "int6", "f4e2m1", "f6e3m2", "f7e5m1", "f8e4m3"]),
    st.sampled_from(list(SCALES)),
    st.sampled_from(["", "integer zeros", "scale2", "zeros and scale2"]),
    st.sampled_from(["", "tensor"]),
    st.sampled_from(list(ACTIVATIONS)),
    st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_the_identity_gives_dequantize(
    name: str, scale: str, extra: str, group: str, activation: str, seed: int
) -> None:
    qw = random_tensor(np.random.default_rng(seed), dtype(name), 11, 3, 24, scale, extra, "", group)
    k = qw.shape[1]
    y = lowlp.linear(np.eye(k, dtype=ACTIVATIONS[activation]), qw, out_dtype="f32")
    np.testing.assert_array_equal(y.T, qw.dequantize())


@pytest.mark.parametrize(
    "arguments",
    [
        {"dtype": "f4e2m1", "group_size": 16, "scale_dtype": "e4m3"},
        {"dtype": "f4e2m1", "group_size": 32, "scale_dtype": "e8m0"},
        {"dtype": "f6e3m2", "group_size": 32, "scale_dtype": "e8m0"},
        {"dtype": "f8e4m3", "group_size": 32, "scale_dtype": "e8m0"},
        {"dtype": "int4", "group_size": "tensor"},
        {"dtype": "uint4", "group_size": "tensor", "zero_point": "offset"},
    ],
)
def test_random_activations_and_bias(arguments: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    qw = lowlp.quantize(rng.normal(0, 0.02, (24, 96)).astype(np.float32), **arguments)
    x, bias = rng.normal(size=(5, 96)).astype(np.float16), rng.normal(size=24).astype(np.float32)
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T + bias
    np.testing.assert_allclose(lowlp.linear(x, qw, bias=bias, out_dtype="f32"), wanted, rtol=1e-4, atol=1e-5)


def test_tables_are_refused_by_their_codec() -> None:
    qw = lowlp.quantize(np.ones((8, 64), np.float32), lut=lowlp.nf(4), group_size=64)
    with pytest.raises(
        LowlpValueError,
        match=r"qw: lut4:f32:\w+ g64 f16 has a table of values; kernels are offered for integers and floats of 1 to 8",
    ):
        lowlp.linear(np.ones((1, 64), np.float16), qw)


def test_compile_linear_takes_a_second_scale() -> None:
    common: dict[str, Any] = {"n": 16, "k": 32, "weight": "f4e2m1", "group_size": 16, "scale_dtype": "f32"}
    kernel = lowlp.compile_linear(**common, scale2=True)
    assert "scale2" in kernel.ir("block")
    with pytest.raises(LowlpValueError, match="scale2, offsets: at most one of them may be given, got both"):
        lowlp.compile_linear(**common, scale2=True, offsets=True)
    with pytest.raises(LowlpValueError, match="scale2, offsets: at most one"):
        LinearSpec(16, 32, "int4", 16, scale2=True, offsets=True)
