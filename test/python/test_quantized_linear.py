"""`lowlp.linear` of quantised activations: sums of integers are numpy's, those of floats within a bound."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from quantized_products import (
    FILLS,
    INTEGERS,
    OTHERS,
    WEIGHTS,
    activations,
    check_pair,
    error_of,
    scaled,
    sums_of,
    weights,
)

import lowlp
from lowlp.errors import LowlpError, LowlpValueError
from lowlp.kernels.linear.paths import choose_path
from lowlp.kernels.linear.schedule import Schedule

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")

_SAMPLE = random.Random(20)


@pytest.mark.parametrize("weight", [f"int{bits}" for bits in range(1, 9)])
def test_sums_with_all_widths_of_signed_activations_are_exact(weight: str) -> None:
    for number, x in enumerate(INTEGERS):
        check_pair(weight, x, 5, 70, 200, FILLS[number % 3])


@pytest.mark.parametrize(("weight", "x"), [(_SAMPLE.choice(WEIGHTS), _SAMPLE.choice(OTHERS)) for _ in range(5)])
def test_sums_of_other_types_on_either_side_are_exact(weight: str, x: str) -> None:
    check_pair(weight, x, 19, 48, 160, "largest")
    check_pair(weight, x, 19, 48, 160)


def test_sums_of_long_rows_stay_exact() -> None:
    """Beyond 65793 weights sums of bytes times powers of two leave int32, though those of the numbers do not."""
    for weight in ("int3", "int8"):
        check_pair(weight, "int8", 1, 16, 67584, "alternating")


@pytest.mark.parametrize(
    ("weight", "m", "n", "k"), [("int4", 3, 512, 1024), ("uint2", 16, 130, 512), ("bipolar1", 40, 64, 320)]
)
def test_one_scale_a_row_rounds_as_numpy_does(weight: str, m: int, n: int, k: int) -> None:
    xq, qw = activations("int8", m, k), weights(weight, n, k)
    bias = np.random.default_rng(3).standard_normal(n).astype(np.float32)
    np.testing.assert_array_equal(lowlp.linear(xq, qw, bias=bias, out_dtype="f32"), scaled(xq, qw, bias))
    halves = scaled(xq, qw).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(lowlp.linear(xq, qw, out_dtype="bf16"), halves)


@pytest.mark.parametrize(
    ("weight", "x", "group_size", "parts"),
    [
        ("int4", "int8", 128, {}),
        ("uint4", "uint4", 32, {}),
        ("int2", "int8", 16, {"zeros": None}),
        ("uint3", "bipolar2", 64, {"zeros": np.linspace(0, 7, 96 * 4, dtype=np.float16).reshape(96, 4)}),
        ("int8", "int4", 64, {"offsets": np.linspace(-1, 1, 96 * 4, dtype=np.float32).reshape(96, 4)}),
    ],
)
def test_scales_of_groups_go_on_sums_in_f32(weight: str, x: str, group_size: int, parts: dict[str, Any]) -> None:
    xq, qw = activations(x, 9, 256), weights(weight, 96, 256, group_size, **parts)
    assert error_of(lowlp.linear(xq, qw, out_dtype="f32"), xq, qw) < 1e-6


def test_integer_scales_of_groups_are_exact() -> None:
    """Sums of int32 are multiplied by them, and floats only at the end."""
    random_numbers = np.random.default_rng(4)
    scales = random_numbers.integers(1, 16, (48, 8)).astype(np.uint8)
    supers = random_numbers.uniform(0.5, 2, (48, 1)).astype(np.float32)
    qw = weights("int4", 48, 256, 32, scales=scales, super_scales=supers, super_group_size=None, scale_dtype="uint4")
    xq = activations("int8", 6, 256)
    numbers = qw.codec.values().astype(np.int64)[qw.codes] * np.repeat(scales.astype(np.int64), 32, 1)
    expected = (np.asarray(xq.codes).astype(np.int64) @ numbers.T).astype(np.float32) * supers.T * np.asarray(xq.scales)
    np.testing.assert_array_equal(lowlp.linear(xq, qw, out_dtype="f32"), expected)


@pytest.mark.parametrize("scale", ["uint4", "int6", "int8"])
@pytest.mark.parametrize(
    ("weight", "activation", "group_size", "steps"),
    [
        ("f4e2m1", "f8e4m3", None, 2),
        ("f4e2m1", "f8e4m3", 256, 8),
        ("int4", "int8", None, 4),
        ("int4", "f8e4m3", None, 0),
        ("int8", "int8", None, 0),
    ],
)
def test_scales_in_two_levels_multiply_bytes(
    weight: str, activation: str, group_size: int | None, steps: int, scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whole rows, and of groups that have several sums of 8-bit floats in a stage; 0 steps: as it is chosen."""
    if steps:
        schedule = Schedule(stages=2, row_tiles=1, warpgroups=1, columns=40, steps=steps)
        if activation == "int8":
            schedule = replace(schedule, columns=48)
        monkeypatch.setattr("lowlp.ops.linear_on_cpu.schedule_for", lambda *_, **__: schedule)
    random_numbers = np.random.default_rng(3)
    codes = random_numbers.integers(0, 1 << lowlp.dtype(weight).bits, (96, 1024)).astype(np.uint8)
    low, high = {"uint4": (0, 15), "int6": (-31, 31), "int8": (-127, 127)}[scale]
    scales = random_numbers.integers(low, high + 1, (96, 1024 // (group_size or 1024)))
    supers = random_numbers.uniform(0.5, 2, (96, 1)).astype(np.float16)
    qw = lowlp.QuantizedTensor(
        codes,
        dtype=weight,
        group_size=group_size,
        scales=scales,
        scale_dtype=scale,
        super_scales=supers,
        activation=activation,
    )
    xq = lowlp.quantize_activations(random_numbers.standard_normal((37, 1024)).astype(np.float32), activation)
    path = "fp8" if activation == "f8e4m3" else "s8"
    assert error_of(lowlp.linear(xq, qw, out_dtype="f32", path=path), xq, qw) < 1e-6


def test_x_is_quantised_within_the_call() -> None:
    x = np.random.default_rng(5).standard_normal((2, 3, 192)).astype(np.float32)
    qw = weights("int4", 64, 192)
    xq = lowlp.quantize_activations(x, "int6")
    y = lowlp.linear(x, qw, activation="int6", epilogue="relu")
    assert y.dtype == np.float16 and y.shape == (2, 3, 64)
    np.testing.assert_array_equal(y, lowlp.linear(xq, qw, epilogue="relu"))


def test_rows_of_unit_matrices_give_the_codes() -> None:
    x = lowlp.QuantizedActivations(np.eye(64, dtype=np.int8), dtype="int8", scales=1.0)
    qw = weights("int7", 40, 64)
    np.testing.assert_array_equal(lowlp.linear(x, qw, out_dtype="s32").T, qw.codec.values()[qw.codes])


@pytest.mark.parametrize(
    ("weight", "x", "group_size"),
    [("int4", "f8e4m3", 128), ("f4e2m1", "f8e5m2", 32), ("bipolar2", "f8e4m3", -1), ("f8e4m3", "f8e4m3", -1)],
)
def test_products_of_8_bit_floats_are_within_the_bound(weight: str, x: str, group_size: int) -> None:
    random_numbers = np.random.default_rng(6)
    qw = lowlp.quantize(
        random_numbers.standard_normal((48, 256)).astype(np.float32), weight, group_size=group_size, activation="f8e4m3"
    )
    xq = lowlp.quantize_activations(random_numbers.standard_normal((7, 256)).astype(np.float32), x)
    assert error_of(lowlp.linear(xq, qw, out_dtype="f32"), xq, qw) < 1e-6


def test_nan_rows_stay_apart() -> None:
    x = np.ones((3, 64), np.float32)
    x[1, 5] = np.inf
    y = lowlp.linear(x, weights("int4", 32, 64), activation="int8", out_dtype="f32")
    assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()


@pytest.mark.parametrize(
    ("weight", "x", "parts", "message"),
    [
        ("f6e3m2", "int8", {}, "qw: int8 activations take integer and bipolar weights"),
        ("int6", "f8e4m3", {}, "qw: f8e4m3 does not hold the values of int6"),
        (
            "int4",
            "int8",
            {"path": "fp8"},
            "path: 'fp8' does not serve: fp8 takes activations that are floats, got int8",
        ),
        ("int4", "int8", {"path": "s9"}, "path: must be None or one of planes, s8, fp8, f16"),
        ("int4", "f8e4m3", {"out_dtype": "s32"}, "out_dtype: sums of int32"),
        (
            "int4",
            "int8",
            {"out_dtype": "s32", "bias": np.zeros(16, np.float32)},
            "bias: must be None with out_dtype='s32'",
        ),
        ("int4", "int8", {"activation": "int8"}, "activation: x is quantised already, to int8"),
    ],
)
def test_refusals_name_what_is_wrong(weight: str, x: str, parts: dict[str, Any], message: str) -> None:
    w = np.random.default_rng(7).standard_normal((16, 64)).astype(np.float32)
    xq = lowlp.quantize_activations(np.ones((2, 64), np.float16), x)
    with pytest.raises(LowlpValueError, match=message):
        lowlp.linear(xq, lowlp.quantize(w, weight, group_size=-1), **parts)


@pytest.mark.parametrize(
    ("weight", "x", "parts", "message"),
    [
        (
            "int2",
            "int2",
            {"path": "planes", "bias": [0.0] * 16},
            "bias: expected float16, bfloat16 or float32, got list",
        ),
        ("int4", "int8", {"epilogue": np.zeros(2)}, "epilogue: must be None or one of relu"),
        ("int4", "int8", {"path": np.zeros(2)}, "path: must be None or one of planes"),
        ("int4", None, {"activation": np.zeros(2)}, "activation: expected a name such as 'int6' or a DType"),
        ("int4", None, {"activation": "f16"}, "activation: activations are int2 to int8"),
        ("int4", None, {"activation": "uint1"}, "activation: uint1 has zero points"),
        ("int4", "int8", {"out_dtype": np.zeros(2)}, "out_dtype: expected a name"),
    ],
)
def test_arguments_of_other_types_are_refused_by_name(weight: str, x: Any, parts: Any, message: str) -> None:
    rows = np.ones((2, 64), np.float16)
    with pytest.raises(LowlpError, match=message):
        lowlp.linear(rows if x is None else lowlp.quantize_activations(rows, x), weights(weight, 16, 64), **parts)


def test_tensors_beside_quantised_rows_have_their_library_and_no_gradient() -> None:
    torch = pytest.importorskip("torch")
    xq, qw = activations("int2", 2, 64), weights("int2", 16, 64).pack_for("b1")
    with pytest.raises(LowlpError, match="residual: expected a numpy array, as x is one, got Tensor"):
        lowlp.linear(xq, qw, residual=torch.zeros(2, 16))
    with pytest.raises(LowlpError, match="bias: requires a gradient"):
        lowlp.linear(torch.ones(2, 64), qw, activation="int8", bias=torch.zeros(16, requires_grad=True))
    sums = sums_of(xq, qw)
    for name in ("int32", np.int32, torch.int32):
        np.testing.assert_array_equal(lowlp.linear(xq, qw, out_dtype=name), sums)


def test_the_path_of_halves_dequantises() -> None:
    xq, qw = activations("int8", 4, 128), weights("int4", 32, 128).pack_for("f16")
    y = lowlp.linear(xq, qw, path="f16", out_dtype="f32")
    assert error_of(y, xq, qw) < 1e-3


@pytest.mark.parametrize(
    ("bits", "n", "k", "rows", "name"),
    [
        (4, 8192, 8192, None, "s8"),
        (2, 8192, 8192, None, "planes"),
        (1, 4096, 4096, 1, "planes"),
        # One pair of widths and as many rows, by the shape alone.
        (4, 1024, 4096, 128, "planes"),
        (4, 57344, 8192, 128, "s8"),
    ],
)
def test_a_path_comes_with_its_reason(bits: int, n: int, k: int, rows: int | None, name: str) -> None:
    path = choose_path(lowlp.Codec(lowlp.dtype(f"int{bits}"), "channel"), n, k, "int8", 2, "sm_90a", rows=rows)
    assert path.name == name and "times as fast as bytes" in path.reason
    assert re.search(rf"planes \d+\.\d us, bytes \d+\.\d us \({n}x{k}, {rows or 4096} rows\)", path.reason)


def test_rates_decide_where_nothing_was_measured() -> None:
    codec = lowlp.Codec(lowlp.dtype("int4"), "channel")
    assert "more than 16" not in choose_path(codec, 64, 64, "int8", 4, "sm_90a").reason
    assert choose_path(codec, 64, 64, "int8", 8, "sm_90a").reason.endswith("products of planes were measured")
    assert choose_path(codec, 512, 512, "int8", 1, "sm_80") == (
        "planes",
        "4 x 1 planes would be 2.00 times as fast as bytes: by rates of sm_80",
    )
    grouped = choose_path(lowlp.Codec(lowlp.dtype("int1"), 128), 8192, 8192, "int8", 1, "sm_90a", rows=256)
    assert grouped == ("s8", "no planes: groups of 128 have fewer than 1024 weights")


def test_compiled_kernels_are_of_bytes() -> None:
    kernel = lowlp.compile_linear(n=256, k=512, weight="int4", group_size=None, activation="int8", m=(1, 16))
    assert "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32" in kernel.ptx
    assert kernel.description.product is not None and kernel.description.product.family == "s8"
    assert "s8: 4 x 8 planes" in str(kernel.report())
    sums = sums_of(activations("int8", 1, 64), weights("int4", 16, 64))
    assert sums.dtype == np.int32


def test_compiled_kernels_refuse_codes_that_mean_something_else() -> None:
    kernel = lowlp.compile_linear(n=16, k=64, weight="int4", group_size=None, activation="uint8", m=(1, 16))
    qw = weights("int4", 16, 64)
    with pytest.raises(LowlpError, match=r"x: .* takes codes of unsigned integers, got bipolar4"):
        kernel(activations("bipolar4", 2, 64), qw)
    unsigned = lowlp.QuantizedActivations(np.ones((2, 64), np.uint8), dtype="uint4", scales=1.0)
    with pytest.raises(LowlpError, match=r"x: .* takes PyTorch tensors on a CUDA device, got ndarray"):
        kernel(unsigned, qw)


@pytest.mark.parametrize(
    ("weight", "m", "division"),
    [
        ("int4", 40, {"warpgroups": 2, "columns": 48, "steps": 2}),
        ("uint3", 40, {"warpgroups": 1, "columns": 32, "cluster": 2, "share_tiles": False}),
        ("bipolar1", 24, {"warpgroups": 1, "columns": 24, "row_tiles": 4, "steps": 2}),
        ("int8", 130, {"warpgroups": 2, "columns": 64, "column_tiles": 2}),
        ("int6", 17, {"columns": 32, "warps": 2, "row_tiles": 2, "slices": 2, "units": 2}),
    ],
)
def test_every_division_of_the_work_adds_the_same_sums(
    weight: str, m: int, division: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = Schedule(**{"stages": 3, "row_tiles": 1, **division})
    monkeypatch.setattr("lowlp.ops.linear_on_cpu.schedule_for", lambda *_, **__: schedule)
    xq, qw = activations("int8", m, 512), weights(weight, 200, 512)
    np.testing.assert_array_equal(lowlp.linear(xq, qw, out_dtype="f32"), scaled(xq, qw))


@pytest.mark.parametrize(
    ("weight", "group_size", "division"),
    [
        ("int4", 128, {"warpgroups": 1, "columns": 24, "steps": 4}),
        ("int1", 64, {"warpgroups": 1, "columns": 32, "row_tiles": 4, "steps": 2}),
        ("int2", 64, {"warpgroups": 1, "columns": 16, "column_tiles": 2, "row_tiles": 2, "steps": 4}),
        ("int8", 256, {"columns": 16, "warps": 2, "row_tiles": 2, "slices": 2, "units": 2}),
    ],
)
def test_every_division_scales_groups(
    weight: str, group_size: int, division: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = Schedule(**{"stages": 3, "row_tiles": 1, **division})
    monkeypatch.setattr("lowlp.ops.linear_on_cpu.schedule_for", lambda *_, **__: schedule)
    halves = np.random.default_rng(8).uniform(0.5, 2, (192, 512 // group_size)).astype(np.float16)
    xq, qw = activations("int8", 40, 512), weights(weight, 192, 512, group_size, scales=halves)
    assert error_of(lowlp.linear(xq, qw, out_dtype="f32"), xq, qw) < 1e-6


@pytest.mark.parametrize(
    ("weight", "columns", "tiles", "steps"),
    [("f4e2m1", 40, 1, 2), ("f8e4m3", 40, 1, 4), ("f8e4m3", 8, 4, 2), ("int4", 40, 1, 2)],
)
def test_8_bit_floats_are_multiplied_by_warpgroups(
    weight: str, columns: int, tiles: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = Schedule(stages=3, row_tiles=1, warpgroups=1, columns=columns, column_tiles=tiles, steps=steps)
    monkeypatch.setattr("lowlp.ops.linear_on_cpu.schedule_for", lambda *_, **__: schedule)
    random_numbers = np.random.default_rng(6)
    w = random_numbers.standard_normal((96, 512)).astype(np.float32)
    qw = lowlp.quantize(w, weight, group_size=-1, zero_point=False, activation="f8e4m3")
    xq = lowlp.quantize_activations(random_numbers.standard_normal((37, 512)).astype(np.float32), "f8e4m3")
    assert error_of(lowlp.linear(xq, qw, out_dtype="f32"), xq, qw) < 1e-6


@pytest.mark.parametrize("k", [320, 352])
@pytest.mark.parametrize(
    ("weight", "activation", "division"),
    [
        ("int8", "int8", {"warpgroups": 2, "columns": 48, "steps": 4}),
        ("f8e4m3", "f8e4m3", {"warpgroups": 2, "columns": 40, "steps": 2}),
        ("uint4", "int8", {"columns": 16, "warps": 1, "row_tiles": 2, "slices": 4, "steps": 2}),
        ("f8e4m3", "f8e4m3", {"columns": 8, "warps": 2, "row_tiles": 2, "slices": 2, "units": 2}),
    ],
)
def test_the_last_stage_may_end_after_rows_of_one_scale_do(
    weight: str, activation: str, k: int, division: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of units of 64 weights, and of narrow ones."""
    schedule = Schedule(**{"stages": 3, "row_tiles": 1, **division})
    monkeypatch.setattr("lowlp.ops.linear_on_cpu.schedule_for", lambda *_, **__: schedule)
    random_numbers = np.random.default_rng(9)
    w = random_numbers.standard_normal((200, k)).astype(np.float32)
    qw = lowlp.quantize(w, weight, group_size=-1, zero_point=weight == "uint4", activation=activation)
    xq = lowlp.quantize_activations(random_numbers.standard_normal((7, k)).astype(np.float32), activation)
    path = "fp8" if activation == "f8e4m3" else "s8"
    assert error_of(lowlp.linear(xq, qw, out_dtype="f32", path=path), xq, qw) < 1e-6


@pytest.mark.parametrize(("k", "extents"), [(512, 3), (448, 2)])
def test_x_is_copied_in_rows_of_128_bytes(k: int, extents: int) -> None:
    schedule = Schedule(stages=3, row_tiles=1, warpgroups=2, columns=64, steps=4)
    kernel = lowlp.compile_linear(
        n=256, k=k, weight="int8", group_size=None, activation="int8", schedule=schedule, target="sm_90a"
    )
    (of_x,) = (each for each in kernel.description.tensor_maps if each.parameter == "x")
    assert (of_x.box[-1], of_x.swizzle, len(of_x.extents)) == (128, 128, extents)


@pytest.mark.parametrize(("weight", "row_tiles"), [("int2", 2), ("int3", 1), ("int4", 1)])
def test_signs_of_integers_are_signs_of_8_bit_floats(
    weight: str, row_tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of I give the weights, every code among them; sums of x would round 2^14 away."""
    schedule = Schedule(stages=3, row_tiles=row_tiles, warpgroups=1, columns=64, steps=2)
    monkeypatch.setattr("lowlp.ops.linear_on_cpu.schedule_for", lambda *_, **__: schedule)
    codes = np.random.default_rng(4).integers(0, 1 << lowlp.dtype(weight).bits, (128, 256)).astype(np.uint8)
    scales = np.full((128, 2), 0.5, np.float32)
    qw = lowlp.QuantizedTensor(codes, dtype=weight, group_size=128, scales=scales, activation="f8e4m3")
    x = np.eye(256, dtype=np.float32)[:60]
    x[:, 255] = 256.0
    y = lowlp.linear(lowlp.quantize_activations(x, "f8e4m3", scale=1.0), qw, out_dtype="f32")
    np.testing.assert_array_equal(y, x @ qw.dequantize().T)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("weight", "m"), [("int4", 256), ("int1", 1024)])
def test_many_rows_take_products_of_warpgroups_without_spills(weight: str, m: int) -> None:
    kernel = lowlp.compile_linear(n=8192, k=8192, weight=weight, group_size=None, activation="int8", m=(m, m))
    assert re.search(r"wgmma.mma_async.sync.aligned.m64n\d+k32.s32.u8.s8", kernel.ptx)
    assert "without warpgroups" not in str(kernel.report())
    assert kernel.spilled_bytes == 0
    assert kernel.resources is None or not kernel.resources.product_remarks


@pytest.mark.parametrize("weight", ["f8e4m3", "int4"])
def test_many_rows_of_8_bit_floats_take_large_tiles_without_spills(weight: str) -> None:
    """One product for 32 weights along K of three warpgroups or more than 128 columns, none of them with ones; what a
    tile comes to is scaled."""
    kernel = lowlp.compile_linear(
        n=14336, k=14336, weight=weight, group_size=None, activation="f8e4m3", m=(2254, 2254), gpu="NVIDIA H200"
    )
    assert len(re.findall(r"wgmma.mma_async.sync.aligned.m64n\d+k32.f32.e4m3.e4m3", kernel.ptx)) == 4
    assert kernel.spilled_bytes == 0
    assert kernel.resources is None or not kernel.resources.product_remarks


@pytest.mark.parametrize(
    ("name", "family"),
    [("int8", "s8"), ("uint8", "s8"), ("int4", "s8"), ("bipolar2", "s8"), ("ternary", "s8"), ("f8e5m2", "e4m3")],
)
def test_weights_are_packed_for_activations_by_the_names_that_linear_takes(name: str, family: str) -> None:
    w = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
    qw = lowlp.quantize(w, "int4", group_size=-1, activation=name)
    assert (qw.family, qw.pack_for(lowlp.dtype("f16")).pack_for(name).family) == (family, family)
    for other in ("int1", "f6e3m2", "int9", "quaternary"):
        with pytest.raises(LowlpValueError, match=rf"activation: must be one of f16, .*ternary, .*, got '{other}'"):
            lowlp.quantize(w, "int4", group_size=-1, activation=other)


@pytest.mark.parametrize("scale", ["f16", "f32"])
@pytest.mark.parametrize("weight", ["int1", "int2", "int4", "int8"])
def test_sums_of_groups_become_floats_without_conversions(weight: str, scale: str) -> None:
    arguments = {"n": 512, "k": 1024, "weight": weight, "activation": "int8", "group_size": 128, "scale_dtype": scale}
    ptx = lowlp.compile_linear(**arguments, m=(1, 16)).ptx
    assert "mma.sync" in ptx and "cvt.rn.f32.s32" not in ptx and "shr.s32" not in ptx


@pytest.mark.parametrize(("code", "x_code"), [(-128, -127), (127, 127), (-128, 127)])
def test_sums_of_the_largest_codes_of_a_group_are_exact(code: int, x_code: int) -> None:
    codes = np.full((32, 256), code, np.int8)
    scales = np.full((32, 2), 2.0**-10, np.float16)
    parts = {"dtype": "int8", "scales": scales, "group_size": 128, "activation": "int8"}
    qw = lowlp.QuantizedTensor(codes.view(np.uint8), **parts)
    x_scales = np.full((3, 1), 2.0**-10, np.float32)
    xq = lowlp.QuantizedActivations(np.full((3, 256), x_code, np.int8), dtype="int8", scales=x_scales)
    y = lowlp.linear(xq, qw, path="s8", out_dtype="f32")
    np.testing.assert_array_equal(y, np.full((3, 32), 256 * code * x_code * 2.0**-20, np.float32))


def test_many_rows_with_integer_scales_go_by_warpgroups() -> None:
    arguments = {"n": 8192, "k": 8192, "weight": "int4", "activation": "int8", "scale_dtype": "uint4"}
    arguments |= {"super_scale_dtype": "f16"}
    assert "wgmma" not in lowlp.compile_linear(**arguments, m=(1, 16)).ptx
    narrow = {"n": 8192, "k": 8192, "weight": "int1", "activation": "int8"}
    for many in (arguments, narrow):
        kernel = lowlp.compile_linear(**many, m=(256, 256))
        assert re.search(r"wgmma.mma_async.sync.aligned.m64n\d+k32.s32.s8.s8", kernel.ptx)
        assert kernel.spilled_bytes == 0


@pytest.mark.parametrize(
    ("weight", "activation", "group_size", "rows", "family"),
    [
        ("int2", "int2", -1, (1, 4096), "b1"),
        ("int4", "int4", -1, (1, 4096), "s8"),
        ("int1", "bipolar1", -1, (1, 16), "b1"),
        ("int3", "int3", -1, 4096, "s8"),
        ("int1", "int2", 64, 4096, "s8"),
        ("f4e2m1", "f8e4m3", -1, 1, "e4m3"),
    ],
)
def test_rows_choose_the_family_of_weights(
    weight: str, activation: str, group_size: int, rows: int | tuple[int, int], family: str
) -> None:
    w = np.random.default_rng(3).standard_normal((1024, 1024)).astype(np.float32)
    qw = lowlp.quantize(w, weight, group_size, activation=activation, rows=rows)
    plain = lowlp.quantize(w, weight, group_size)
    assert qw.family == family and qw.pack_for("f16").family == "f16"
    np.testing.assert_array_equal(qw.dequantize(), plain.dequantize())
    assert plain.pack_for(activation, rows).family == family


@pytest.mark.parametrize(
    ("activation", "rows", "message"),
    [
        ("s8", 4, "rows: choose among .* such as activation='int4', got activation='s8'"),
        ("f16", 4, "rows: choose among"),
        ("int4", 0, "rows: must be 1 or more, the fewest before the most, got 0"),
        ("int4", (9, 2), r"rows: must be 1 or more, the fewest before the most, got \(9, 2\)"),
        ("int4", 2.0, r"rows: expected an int or a tuple of two, .*, got 2.0"),
        (None, 2, r"activation: expected the name of a family"),
    ],
)
def test_rows_that_choose_nothing_are_refused(activation: Any, rows: Any, message: str) -> None:
    qw = weights("int4", 16, 64)
    with pytest.raises(LowlpError, match=message):
        qw.pack_for(activation, rows)
