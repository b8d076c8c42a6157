"""quantize with tables, small scales, float zero points, offsets, one scale for all, and a search of the scale."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from codec_samples import SCALES
from hypothesis import given, settings
from hypothesis import strategies as st

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.array_ops import NumpyOps
from lowlp.weights.quantize.quantization import quantize, quantize_with


def gaussian(seed: int, n: int, k: int, spread: float = 0.02, shift: float = 0.0) -> Any:
    return np.random.default_rng(seed).normal(shift, spread, (n, k)).astype(np.float32)


def steps(q: lowlp.QuantizedTensor) -> Any:
    """The scales as one number each, float64 [N, K]."""
    n, k = q.shape
    scales = np.broadcast_to(q.scales.astype(np.float64), (n, k // q.group_size))
    return np.repeat(scales, q.group_size, axis=1) * (1.0 if q.scale2 is None else float(q.scale2))


def relative_error(q: lowlp.QuantizedTensor, w: Any) -> float:
    return float(np.linalg.norm(q.dequantize() - w) / np.linalg.norm(w))


@pytest.mark.parametrize("scope", ["tensor", "channel", "group"])
@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("group_size", [16, "tensor"])
def test_tables_give_the_nearest_entry(scope: str, bits: int, group_size: Any) -> None:
    rng = np.random.default_rng(bits)
    n, k = 3, 48
    groups = 1 if group_size == "tensor" else k // group_size
    shape = {"tensor": (), "channel": (n,), "group": (n, groups)}[scope]
    table = rng.normal(size=(*shape, 1 << bits)).astype(np.float16)
    w = gaussian(bits, n, k)
    q = quantize(w, lut=table, group_size=group_size, scale_dtype="bf16")
    assert q.lut is not None
    np.testing.assert_array_equal(q.lut, table)
    quotients = (w / steps(q).astype(np.float32)).astype(np.float64)
    entries = np.broadcast_to(table if scope == "group" else table.reshape(-1, 1, 1 << bits), (n, groups, 1 << bits))
    entries = np.repeat(entries, k // groups, axis=1).astype(np.float64)
    distances = np.abs(entries - quotients[:, :, None])
    chosen = np.take_along_axis(distances, q.codes[:, :, None].astype(int), 2)[:, :, 0]
    np.testing.assert_array_equal(chosen, distances.min(axis=2))


def test_normal_float() -> None:
    w = gaussian(1, 16, 512)
    errors = [relative_error(quantize(w, lut=lowlp.nf(bits), group_size=64), w) for bits in range(2, 9)]
    assert errors == sorted(errors, reverse=True)
    assert errors[2] < 0.1 < relative_error(quantize(w, "int4", 64), w)
    q = quantize(w, lut=lowlp.nf(4), group_size=64, scale_dtype="f32")
    np.testing.assert_array_equal(q.scales, np.abs(w).reshape(16, 8, 64).max(axis=2))


@pytest.mark.parametrize("scale", list(SCALES))
def test_values_of_a_table_come_back(scale: str) -> None:
    table = np.array([-7, 0.5, 0, 3, 28, -2, 1, 14], np.float32)
    rng = np.random.default_rng(2)
    w = rng.choice(table, (4, 64))
    w[:, ::16] = 28
    w = (w * np.repeat(2.0 ** rng.integers(-3, 3, (4, 4)), 16, axis=1)).astype(np.float32)
    result = quantize(w, lut=table, group_size=16, scale_dtype=scale).dequantize()
    # 448 times the second scale is the largest one only to float32's precision.
    np.testing.assert_allclose(result, w, rtol=2.0**-22 if scale == "e4m3" else 0)


def test_tables_without_a_sign() -> None:
    q = quantize(np.array([[-3.0, 0.2, 4.0, 2.1]], np.float32), lut=[0, 1, 2, 4], group_size=None)
    np.testing.assert_array_equal(q.dequantize(), [[0, 0, 4, 2]])
    q = quantize(np.array([[-3.0, -0.2]], np.float32), lut=[1, 2], group_size=None)
    np.testing.assert_array_equal(q.dequantize(), [[1, 1]])
    assert (quantize(gaussian(1, 2, 8), lut=[0, 0], group_size=None).dequantize() == 0).all()


def mx_values(w: Any, name: str) -> Any:
    """An MX format by its specification, a group of 32 at a time, with ml_dtypes' own rounding."""
    kind: Any = {
        "f4e2m1": ml_dtypes.float4_e2m1fn,
        "f6e2m3": ml_dtypes.float6_e2m3fn,
        "f6e3m2": ml_dtypes.float6_e3m2fn,
        "f8e4m3": ml_dtypes.float8_e4m3fn,
        "f8e5m2": ml_dtypes.float8_e5m2,
    }[name]
    largest = float(ml_dtypes.finfo(kind).max)
    groups = w.reshape(-1, 32).astype(np.float64)
    exponents = np.floor(np.log2(np.abs(groups).max(axis=1))) - np.floor(np.log2(largest))
    scales = 2.0 ** exponents[:, None]
    elements = np.clip(groups / scales, -largest, largest).astype(np.float32).astype(kind)
    return (elements.astype(np.float64) * scales).reshape(w.shape)


@pytest.mark.parametrize("name", ["f4e2m1", "f6e2m3", "f6e3m2", "f8e4m3", "f8e5m2"])
def test_mx_formats(name: str) -> None:
    w = gaussian(3, 8, 128, 1.0) * 2.0 ** np.random.default_rng(4).integers(-30, 30, (8, 1))
    q = quantize(w, name, 32, scale_dtype="e8m0")
    assert str(q.codec) == f"{name} g32 e8m0"
    np.testing.assert_array_equal(q.dequantize(), mx_values(w.astype(np.float32), name))


def test_mxint8() -> None:
    w = gaussian(3, 8, 128)
    q = quantize(w, "int8", 32, scale_dtype="e8m0")
    largest = np.abs(w).reshape(8, 4, 32).max(axis=2)
    np.testing.assert_array_equal(q.scales.astype(np.float64), 2.0 ** np.floor(np.log2(largest)) / 64)
    outside = 2.0 ** np.floor(np.log2(np.repeat(largest, 32, axis=1))) * 127 / 64
    assert np.all(np.abs(q.dequantize() - np.clip(w, -outside, outside)) <= steps(q) / 2)


def test_nvfp4_is_what_was_published() -> None:
    w = gaussian(5, 16, 256) * np.random.default_rng(6).lognormal(0, 1, (16, 256)).astype(np.float32)
    q = quantize(w, "f4e2m1", 16, scale_dtype="e4m3")
    assert str(q.codec) == "f4e2m1 g16 e4m3 scale2"
    assert q.scale2 is not None
    scale2 = np.float32(np.float64(np.abs(w).max()) / (6 * 448))
    assert abs(q.scale2.view(np.int32) - scale2.view(np.int32)) <= 1
    blocks = np.abs(w).reshape(16, 16, 16).max(axis=2)
    scales = (blocks / np.float32(6) / q.scale2).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(q.scales.astype(np.float32), scales.astype(np.float32))
    assert scales.astype(np.float32).max() == 448
    elements = np.clip(w / steps(q).astype(np.float32), -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    spread = np.repeat(scales.astype(np.float32), 16, axis=1)
    np.testing.assert_array_equal(q.dequantize(), q.scale2 * (spread * elements))
    assert relative_error(q, w) < 0.12


def test_mxfp4_and_nvfp4_of_zeros() -> None:
    w = gaussian(7, 2, 64)
    w[:, :32] = 0
    for scale, group in (("e8m0", 32), ("e4m3", 16)):
        for values in (w, np.zeros_like(w)):
            q = quantize(values, "f4e2m1", group, scale_dtype=scale)
            np.testing.assert_array_equal(q.dequantize()[:, :32], 0)


@given(
    st.integers(1, 8),
    st.booleans(),
    st.sampled_from(["float", "offset", True]),
    st.sampled_from(list(SCALES)),
    st.integers(0, 2**32),
    st.sampled_from([1e-4, 0.02, 100.0]),
    st.sampled_from([-30.0, -1.0, 0.0, 3.0]),
)
@settings(max_examples=150, deadline=None)
def test_zero_points_and_offsets_err_by_half_a_step(
    bits: int, signed: bool, kind: Any, scale: str, seed: int, spread: float, shift: float
) -> None:
    signed = signed and kind != "offset"
    w = gaussian(seed, 3, 96, spread, shift * spread)
    q = quantize(
        w, f"{'' if signed else 'u'}int{bits}", 32, kind, "f32" if scale == "e4m3" and kind == "offset" else scale
    )
    assert (q.zeros is None) == (kind == "offset")
    assert (q.offsets is None) == (kind != "offset")
    # A float zero point below 2^8 is rounded by up to 2^-4; all else is float32's noise.
    slack = 0.0626 if kind == "float" and scale == "f16" else 0.001
    error = np.abs(q.dequantize().astype(np.float64) - w)
    assert np.all(error <= steps(q) * (0.5 + slack) + np.abs(w) * 2.0**-22)


@pytest.mark.parametrize("scale", ["e8m0", "e4m3"])
@pytest.mark.parametrize("name", ["int2", "uint3", "int6", "uint8", "int8", "f5e2m2", "bipolar3"])
def test_small_scales_lose_no_weight(name: str, scale: str) -> None:
    """Beside the published formats, every weight is within the range of the codes."""
    w = gaussian(8, 4, 128)
    q = quantize(w, name, 32, scale_dtype=scale)
    if (name, scale) != ("int8", "e8m0"):
        # int2 reaches the largest weight by its lowest code, but for e8m0, which has no sign.
        largest = 2 if (name, scale) == ("int2", "e4m3") else max(abs(q.dtype.max), 1)
        assert np.all(np.abs(w) <= np.abs(steps(q)) * largest * (1 + 2.0**-20))
    assert relative_error(q, w) < {"int2": 0.95, "uint3": 0.45, "bipolar3": 0.35, "f5e2m2": 0.2}.get(name, 0.05)


def test_bipolar_groups_of_zeros_in_powers_of_two() -> None:
    w = gaussian(8, 2, 64)
    w[:, :32] = 0
    assert np.abs(quantize(w, "bipolar2", 32, scale_dtype="e8m0").dequantize()[:, :32]).max() < 1e-37


def test_one_scale_for_all_weights() -> None:
    w = gaussian(9, 6, 64)
    cases: list[dict[str, Any]] = [
        {"dtype": "int4"},
        {"dtype": "uint4", "zero_point": True},
        {"dtype": "uint4", "zero_point": "offset"},
        {"dtype": "f6e3m2", "scale_dtype": "e8m0"},
        {"dtype": "bipolar1", "scale_dtype": "f32"},
        {"lut": lowlp.nf(3), "search": True},
    ]
    for case in cases:
        q = quantize(w, group_size="tensor", **case)
        row = quantize(w.reshape(1, -1), group_size=None, **case)
        assert q.codec.group == "tensor"
        assert q.scales.shape == (1, 1)
        np.testing.assert_allclose(q.scales.astype(float), row.scales.astype(float), rtol=1e-6)
        np.testing.assert_array_equal(q.codes.reshape(1, -1), row.codes)


CASES: list[dict[str, Any]] = [
    {"dtype": "int3"},
    {"dtype": "uint2", "zero_point": True},
    {"dtype": "uint2", "zero_point": "float"},
    {"dtype": "uint2", "zero_point": "offset"},
    {"dtype": "f4e2m1", "group_size": 16, "scale_dtype": "e4m3"},
    {"dtype": "f4e2m1", "scale_dtype": "e8m0"},
    {"dtype": "int2", "group_size": "tensor"},
    {"dtype": "bipolar2"},
    {"lut": lowlp.nf(3)},
    {"lut": np.random.default_rng(0).normal(size=(8, 8)).astype(np.float16)},
    {"lut": np.random.default_rng(0).normal(size=(8, 8)).astype(np.float16), "group_size": "tensor"},
]


@pytest.mark.parametrize("case", CASES)
def test_search_lowers_the_error_of_every_group(case: dict[str, Any]) -> None:
    w = gaussian(10, 8, 128)
    arguments = {"group_size": 32, **case}
    plain, searched = quantize(w, **arguments), quantize(w, **arguments, search=True)
    assert searched.codec == plain.codec

    def errors(q: lowlp.QuantizedTensor) -> Any:
        squares = np.square(q.dequantize().astype(np.float64) - w)
        return squares.sum() if q.codec.group == "tensor" else squares.reshape(8, -1, q.group_size).sum(axis=2)

    assert np.all(errors(searched) <= errors(plain) * (1 + 1e-5))
    assert errors(searched).sum() < errors(plain).sum()


def test_search_takes_the_best_of_its_factors() -> None:
    w, factors = gaussian(11, 4, 64), (0.6, 0.7, 0.8, 0.9)
    q = quantize(w, "int3", 32, scale_dtype="f32", search=factors)
    plain = quantize(w, "int3", 32, scale_dtype="f32")
    tried = []
    for factor in (1.0, *factors):
        scales = (plain.scales.astype(np.float64) * factor).astype(np.float32)
        spread = np.repeat(scales, 32, axis=1)
        values = np.clip(np.rint(w / spread), -4, 3) * spread
        tried.append(np.square(values - w).reshape(4, 2, 32).sum(axis=2))
    found = np.square(q.dequantize() - w).reshape(4, 2, 32).sum(axis=2)
    np.testing.assert_allclose(found, np.min(tried, axis=0), rtol=1e-4)
    np.testing.assert_array_equal(quantize(w, "int3", 32, search=False).codes, quantize(w, "int3", 32, search=()).codes)


def test_blocks_and_workers_do_not_show() -> None:
    class SmallBlocks(NumpyOps):
        block_elements = 256

    w = gaussian(12, 9, 128)
    tables = np.random.default_rng(1).normal(size=(9, 4, 16)).astype(np.float32)
    for case in (*CASES[:9], {"lut": tables}, {"dtype": "int2", "search": True}):
        arguments = {"dtype": None, "group_size": 32, "zero_point": False, "scale_dtype": "f16", "lut": None, **case}
        search = arguments.pop("search", False)
        results = [
            quantize_with(ops, w, progress=False, search=search, **arguments) for ops in (NumpyOps(), SmallBlocks(3))
        ]
        np.testing.assert_array_equal(results[0].codes, results[1].codes)
        np.testing.assert_array_equal(results[0].dequantize(), results[1].dequantize())


def test_progress_shows_each_pass(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    quantize(gaussian(1, 4, 64), "int6", 32, progress=True, search=(0.5,))
    shown = capsys.readouterr().err
    for name in ("scales", "scale x 1", "scale x 0.5", "codes"):
        assert f"quantize: {name}:" in shown


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"lut": lowlp.nf(4), "dtype": "int4"},
            LowlpValueError,
            "dtype: must be None or uint4 with a lut of 16 values",
        ),
        ({"lut": np.zeros(5, np.float32)}, LowlpValueError, r"lut: expected shape \[2\*\*b\], .*, got \[5\]"),
        ({"lut": np.zeros((3, 4), np.float32)}, LowlpValueError, r"lut: expected shape .*, got \[3, 4\]"),
        (
            {"lut": lowlp.nf(4), "zero_point": True},
            LowlpValueError,
            "zero_point: allowed for .*, got a lut of 16 values",
        ),
        ({"dtype": "f6e3m2", "zero_point": "float"}, LowlpValueError, "zero_point: allowed for .*, got dtype f6e3m2"),
        (
            {"dtype": "int4", "zero_point": "offset"},
            LowlpValueError,
            "zero_point: 'offset' is allowed for unsigned types",
        ),
        (
            {"zero_point": "asymmetric"},
            LowlpTypeError,
            "zero_point: expected a bool, got 'asymmetric'; or 'float' or 'off",
        ),
        (
            {"scale_dtype": "e8m0", "dtype": "int1"},
            LowlpValueError,
            "scale_dtype: int1 without zero points needs negative",
        ),
        ({"group_size": "row"}, LowlpTypeError, "group_size: expected an int, .* got 'row'"),
        ({"search": 0.5}, LowlpTypeError, "search: expected a bool or a sequence of numbers, got 0.5"),
        ({"search": [0.5, -1]}, LowlpValueError, "search: factors must be positive and finite, got -1.0"),
        (
            {"dtype": "uint4", "zero_point": "offset", "scale_dtype": "e4m3"},
            LowlpValueError,
            "scale2, offsets: at most one of them may be given, got both",
        ),
    ],
)
def test_refusals(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        quantize(**{"w": gaussian(0, 2, 8), "group_size": 4, **changes})


def test_scales_out_of_range() -> None:
    huge = np.array([[3e38, -3e38]], np.float32)
    with pytest.raises(
        LowlpValueError, match=r"scale_dtype: a scale of 3e\+38 is out of range of e8m0; make the weights"
    ):
        quantize(huge, lut=[-1, 1], group_size=None, scale_dtype="e8m0")
    with pytest.raises(LowlpValueError, match="scale_dtype: the span of the weights is out of range of float32"):
        quantize(huge, "uint4", None, True, "e4m3")
    with pytest.raises(LowlpValueError, match=r"scale_dtype: an offset of -100000 is out of range of f16; use 'f32'"):
        quantize(np.array([[-1e5, 1]], np.float32), "uint4", None, "offset")


@pytest.mark.parametrize(
    ("name", "code", "group", "scale"),
    [
        ("mxfp4", "f4e2m1", 32, "e8m0"),
        ("mxfp6e2m3", "f6e2m3", 32, "e8m0"),
        ("mxint8", "int8", 32, "e8m0"),
        ("nvfp4", "f4e2m1", 16, "e4m3"),
    ],
)
def test_names_of_codecs(name: str, code: str, group: int, scale: str) -> None:
    w = np.random.default_rng(0).normal(size=(8, 128)).astype(np.float32)
    by_name, by_parts = lowlp.quantize(w, name), lowlp.quantize(w, code, group, scale_dtype=scale)
    assert by_name.codec == by_parts.codec and by_name.packed.tobytes() == by_parts.packed.tobytes()
    with pytest.raises(LowlpValueError, match=rf"group_size: {name} has {group}, got 64; {name} is dtype='{code}'"):
        lowlp.quantize(w, name, 64)
    with pytest.raises(LowlpValueError, match=rf"scale_dtype: {name} has {scale}, got 'f32'"):
        lowlp.quantize(w, name, scale_dtype="f32")


def test_normal_floats_by_name() -> None:
    w = np.random.default_rng(0).normal(size=(8, 128)).astype(np.float32)
    by_name, by_table = lowlp.quantize(w, "nf4", 64), lowlp.quantize(w, lut=lowlp.nf(4), group_size=64)
    assert by_name.codec == by_table.codec and by_name.packed.tobytes() == by_table.packed.tobytes()
    with pytest.raises(LowlpValueError, match="lut: nf4 says what codes mean"):
        lowlp.quantize(w, "nf4", lut=lowlp.nf(3))
    with pytest.raises(LowlpValueError, match=r"weight: nf4 names a codec.*quantize\(w, 'nf4'\).* lut=nf\(4\)"):
        lowlp.compile_linear(n=64, k=64, weight="nf4")
