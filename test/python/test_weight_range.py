"""Weights that f16 holds only times a power of two, in kernels that scale them: large, tiny, and both in a tensor."""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.compiler.compilation import CpuKernel, compile_cpu
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import for_weights, host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.scaled_weights import can_scale_weights
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide

K = 128
ON_WEIGHTS = Schedule(32, stages=2, warpgroups=1, row_tiles=4, steps=2, producer=False, scales_on="weights")


def scaled(kind: str, scale: float, group: int = 128) -> lowlp.QuantizedTensor:
    """Weights [64, K] with scales of up to `scale`, and what the kind has beside them, of their size."""
    rng = np.random.default_rng(3)
    name, _, extra = kind.partition(" ")
    scales = rng.uniform(0.5, 1, (64, K // group)) * scale
    more: dict[str, Any] = {"dtype": name}
    if name == "lut4":
        more = {"lut": np.arange(-127, 127, 16, dtype=np.float32)}
    if "offsets" in extra:
        more["offsets"] = (rng.uniform(-1, 1, scales.shape) * scale).astype(np.float32)
    if "zeros" in extra:
        more["zeros"] = rng.integers(0, 8, scales.shape).astype(np.float32 if "float" in extra else np.uint8)
    if "scale2" in extra:
        more["scale2"], scales = np.float32(scale), scales / scale
    if "rows" in extra:
        more["scale2"] = np.float32(scale) * rng.uniform(0.5, 1, 64).astype(np.float32)
    types = {"f32": np.float32, "e8m0": ml_dtypes.float8_e8m0fnu, "e4m3": ml_dtypes.float8_e4m3fn}
    scale_type = next((found for word, found in types.items() if word in extra.split()), np.float16)
    if "super" in extra:
        more["super_scales"] = more["super_offsets"] = (scales[:, :1] / 64).astype(
            np.float16 if scale > 1e-3 else np.float32
        )
        more["offsets"], scales = rng.integers(0, 64, scales.shape).astype(np.uint8), scales / scale * 64
        scale_type = np.uint8
    codes = rng.integers(0, 4 if name.endswith("2") else 16, (64, K)).astype(np.uint8)
    return lowlp.QuantizedTensor(codes, scales=scales.astype(scale_type), group_size=group, **more)


@functools.cache
def kernel_of(spec: LinearSpec) -> CpuKernel:
    """One that scales weights."""
    assert can_go_wide(spec, ON_WEIGHTS)
    return compile_cpu(linear_kernel(spec, ON_WEIGHTS))


def product(qw: lowlp.QuantizedTensor, x: Any, spec: LinearSpec | None = None) -> Any:
    """By a kernel that scales weights; in f32 unless `spec` says otherwise."""
    spec = spec or spec_for(qw, "f16", "f32", aligned=True)
    described = product_of(spec, ON_WEIGHTS)
    numbers = described.by_name(described.launch_numbers(len(x), K, None, multiprocessors=2))
    y = np.full((len(x), 64), np.nan, spec.out.replace("f", "float"))
    kernel_of(spec)(x=x, **host_operands(qw, "f16", schedule=ON_WEIGHTS), y=y, **numbers)
    return y


KINDS = [
    ("int4", 32), ("int4 f32", 32), ("uint4 zeros", 128), ("uint4 float zeros", 32), ("int4 offsets f32", 128),
    ("bipolar2", 128), ("f4e2m1 e8m0", 32), ("lut4", 128), ("lut4 f32", 32), ("int4 f32 scale2", 32),
    ("int4 e4m3 scale2", 32), ("int4 f32 scale2 rows", 32), ("uint4 super", 32),
]  # fmt: skip


# Every third kind: each is a compilation, and rows of I try all.
@pytest.mark.parametrize(("kind", "group"), KINDS[::3])
def test_weights_of_every_size_keep_their_bits(kind: str, group: int) -> None:
    for scale in (30000, 1, 1e-6):
        qw = scaled(kind, scale, group)
        x = (np.random.default_rng(0).normal(size=(40, K)) / 64).astype(np.float16)
        wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
        error = np.linalg.norm(product(qw, x) - wanted) / np.linalg.norm(wanted)
        assert error <= 5e-4, scale


@pytest.mark.sampled(8)
@pytest.mark.parametrize("scale", [30000, 6e-5, 1e-6])
@pytest.mark.parametrize(("kind", "group"), KINDS)
def test_rows_of_the_identity_are_rounded_once(kind: str, group: int, scale: float) -> None:
    """Also to infinity and to subnormal numbers, by whatever kernel `linear` takes."""
    qw = scaled(kind, scale, group)
    y = lowlp.linear(np.eye(K, dtype=np.float16)[40:], qw)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y.T, qw.dequantize()[:, 40:].astype(np.float16))


@pytest.mark.parametrize(
    ("kind", "scale", "is_scaled"),
    [
        ("int4", 1, True), ("int4", 30000, True), ("int4 f32", 30000, True), ("int4", 1e-6, False),
        ("uint4 offsets", 30000, False), ("f4e2m1 e8m0", 1e-6, True), ("lut4", 30000, True), ("lut4", 3e-7, False),
    ],
)  # fmt: skip
def test_weights_are_scaled_where_that_keeps_values(kind: str, scale: float, is_scaled: bool) -> None:
    qw = scaled(kind, scale, 32)
    assert for_weights(spec_for(qw, "f16", "f16"), qw).scales_weights == is_scaled
    assert for_weights(spec_for(qw, "f16", "f32"), qw).scales_weights


@pytest.mark.parametrize(("least", "others", "in_f16"), [(-20, 107, True), (-27, 107, False), (-127, 1, False)])
def test_scales_of_e8m0_are_f16_where_that_keeps_values(least: int, others: int, in_f16: bool) -> None:
    """Those that f16 lacks, and 2^-127 of a tensor that is as tiny, have weights made in f32."""
    rng = np.random.default_rng(4)
    scales = rng.integers(others, others + 22, size=(64, K // 32)).astype(np.uint8)
    scales[::2, ::2] = 127 + least
    codes = rng.integers(0, 16, size=(64, K)).astype(np.uint8)
    qw = lowlp.QuantizedTensor(codes, dtype="f4e2m1", scales=scales.view(ml_dtypes.float8_e8m0fnu), group_size=32)
    spec = for_weights(spec_for(qw, "f16", "f16", aligned=True), qw)
    assert (spec.f16_powers, can_scale_weights(spec), spec.scales_weights) == (in_f16, in_f16, True)
    y = product(qw, np.eye(K, dtype=np.float16), spec)
    np.testing.assert_array_equal(y.T, qw.dequantize().astype(np.float16))


@pytest.mark.parametrize(("least", "is_held"), [(0.0, True), (2.0**-9, True), (2.0**-10 + 2.0**-20, False)])
def test_zero_points_that_are_floats_take_one_instruction_where_it_rounds_alike(least: float, is_held: bool) -> None:
    """Where f32 holds every difference of a code and a zero point; a code of 63 less the last one takes 26 bits."""
    rng = np.random.default_rng(5)
    zeros = rng.uniform(0.5, 40, (64, K // 32)).astype(np.float16)
    zeros[::3] = least
    scales = rng.uniform(0.001, 0.02, zeros.shape).astype(np.float16)
    codes = rng.integers(0, 64, size=(64, K)).astype(np.uint8)
    qw = lowlp.QuantizedTensor(codes, dtype="uint6", scales=scales, zeros=zeros, group_size=32)
    spec = for_weights(spec_for(qw, "f16", "f16", aligned=True), qw)
    assert spec.f32_differences == is_held
    y = product(qw, np.eye(K, dtype=np.float16), spec)
    np.testing.assert_array_equal(y.T, qw.dequantize().astype(np.float16))
