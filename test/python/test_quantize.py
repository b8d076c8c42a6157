"""quantize: error bounds, exact round trips, edge cases, refusals."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowlp.numeric.dtypes import dtype
from lowlp.weights.quantize.nearest_codes import encode_fast
from lowlp.weights.quantize.quantization import QuantizedTensor, quantize
from lowlp_runtime import LowlpTypeError, LowlpValueError

SCALE_TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
WEIGHT_TYPES: list[Any] = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
FLOATS = ["f3e1m1", "f4e2m1", "f5e2m2", "f6e3m2", "f7e5m1", "f7e6m0", "f8e4m3", "f8e5m2", "f8e3m4", "f8e7m0"]
EVERY = [f"{kind}int{bits}" for kind in ("", "u") for bits in range(1, 9)] + FLOATS


def gaussian(seed: int, n: int, k: int, kind: Any = np.float32, spread: float = 0.02) -> Any:
    return np.random.default_rng(seed).normal(0, spread, (n, k)).astype(kind)


def spread_scales(q: QuantizedTensor) -> Any:
    return np.repeat(q.scales.astype(np.float64), q.group_size, axis=1)


@given(
    st.integers(2, 8),
    st.booleans(),
    st.booleans(),
    st.sampled_from(list(SCALE_TYPES)),
    st.sampled_from(WEIGHT_TYPES),
    st.integers(0, 2**32),
    st.sampled_from([1e-6, 0.02, 100.0]),
    st.sampled_from([-3.0, 0.0, 3.0]),
)
@settings(max_examples=200, deadline=None)
def test_integers_err_by_at_most_half_a_step_within_their_range(
    bits: int, signed: bool, zero_point: bool, scale: str, kind: Any, seed: int, spread: float, shift: float
) -> None:
    w = gaussian(seed, 3, 96, np.float64, spread)
    w = (w + shift * spread).astype(kind)
    q = quantize(w, f"{'' if signed else 'u'}int{bits}", 32, zero_point, scale)
    assert (q.group_size, q.scales.dtype) == (32, SCALE_TYPES[scale])
    error = np.abs(q.dequantize().astype(np.float64) - w.astype(np.float64))
    # The slack is float32's: a quotient is rounded before it is rounded to an integer.
    steps = w.astype(np.float64) / spread_scales(q)
    beyond = np.maximum(steps - q.dtype.max, 0) if signed and not zero_point and bits in (2, 3) else 0.0
    assert np.max(beyond) <= 1
    assert np.all(error <= np.abs(spread_scales(q)) * (0.5 + beyond) * (1 + 2.0**-13))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("scale", list(SCALE_TYPES))
def test_codes_survive(name: str, scale: str) -> None:
    """Values of the type times a scale come back exactly, where the largest value is among them."""
    t = dtype(name)
    values = t.decode(np.arange(1 << t.bits, dtype=np.uint8))
    values = values[np.isfinite(values)]
    if t.is_integer and t.is_signed and t.bits > 3:
        values = values[values > t.min]
    random = np.random.default_rng(7)
    w = random.choice(values, (4, 64)).astype(np.float64)
    w[:, ::32] = values[np.argmax(np.abs(values))]
    w = (w * np.repeat(2.0 ** random.integers(-3, 3, (4, 2)), 32, axis=1)).astype(np.float32)
    q = quantize(w, name, 32, scale_dtype=scale)
    if name in ("f7e6m0", "f8e7m0") and scale == "f16":
        pytest.skip("the weights themselves are out of range of a float16 scale times small values")
    np.testing.assert_array_equal(q.dequantize(), w)


@pytest.mark.parametrize("name", EVERY)
def test_error_shrinks_with_bits(name: str) -> None:
    """Relative Frobenius error on Gaussian weights: near what the number of bits allows, for every type."""
    w = gaussian(3, 16, 256)
    q = quantize(w, name, 64)
    error = np.linalg.norm(q.dequantize() - w) / np.linalg.norm(w)
    t = dtype(name)
    mantissa = int(name.split("m")[1]) if name.startswith("f") else 0
    bound = (
        0.6 / 2.0**mantissa
        if name.startswith("f")
        else {1: 1.0, 2: 0.55 if t.is_signed else 0.9}.get(t.bits, 2.2 / 2 ** (t.bits - 1))
    )
    assert error < bound


def test_unsigned_without_zero_point() -> None:
    w = gaussian(1, 4, 64)
    centred, signed = quantize(w, "uint4", 32), quantize(w, "int4", 32)
    assert centred.zeros is not None
    np.testing.assert_array_equal(centred.zeros, np.full((4, 2), 8))
    np.testing.assert_array_equal(centred.dequantize(), signed.dequantize())
    positive = quantize(np.abs(w), "uint4", 32)
    assert positive.zeros is None
    assert positive.codes.max() == 15
    assert np.all(np.abs(positive.dequantize() - np.abs(w)) <= spread_scales(positive) * 0.501)


@pytest.mark.parametrize("name", ["int1", "uint1"])
def test_one_bit_reaches_the_largest_weight(name: str) -> None:
    w = np.array([[0.1, -0.5, 1.0, 0.75], [0.1, -2.0, 1.0, 0.75]], np.float32)
    np.testing.assert_array_equal(quantize(w, name, None).dequantize(), [[0, 0, 1, 1], [0, -2, 0, 0]])


@pytest.mark.parametrize("scale", ["f16", "bf16", "f32", "e4m3"])
def test_two_and_three_bits_use_their_lowest_code(scale: str) -> None:
    w = np.array([[0.5, -2.0, 1.0, 0.1], [-0.5, 4.0, -3.0, 0.1], [0, 0, 0, 0]], np.float32)
    two, three = quantize(w, "int2", None, scale_dtype=scale), quantize(w, "int3", None, scale_dtype=scale)
    np.testing.assert_allclose(two.dequantize(), [[0, -2, 1, 0], [0, 4, -2, 0], [0, 0, 0, 0]], rtol=1e-6)
    np.testing.assert_allclose(three.dequantize(), [[0.5, -2, 1, 0], [0, 4, -3, 0], [0, 0, 0, 0]], rtol=1e-6)
    assert np.sign(two.scales[:2].astype(float)).tolist() == [[1], [-1]]
    powers = quantize(w, "int2", None, scale_dtype="e8m0")
    np.testing.assert_array_equal(powers.dequantize(), [[0, -2, 0, 0], [0, 4, -4, 0], [0, 0, 0, 0]])
    # Those of 4 and more bits stay as far down as up.
    four = quantize(w, "int4", None, scale_dtype=scale)
    assert (four.codes[0, 1], four.codes[1, 1]) == (0x9, 0x7)


@pytest.mark.parametrize("zero_point", [False, True])
@pytest.mark.parametrize("name", ["int1", "uint1", "int2", "uint3", "int8", "uint8"])
def test_groups_of_zeros(name: str, zero_point: bool) -> None:
    w = gaussian(2, 2, 8)
    w[:, :4] = 0
    q = quantize(w, name, 4, zero_point)
    np.testing.assert_array_equal(np.abs(q.scales[:, 0]), 1)
    np.testing.assert_array_equal(q.dequantize()[:, :4], 0)


@pytest.mark.parametrize("name", [*FLOATS, "f8e1m6", "f8e2m5", "f3e2m0", "bipolar1", "bipolar3", "bipolar8"])
def test_table_of_codes_is_encode(name: str) -> None:
    t = dtype(name)
    values = t.decode(np.arange(1 << t.bits, dtype=np.uint8))
    values = np.unique(values[np.isfinite(values)])
    exact = np.concatenate([values, (values[1:].astype(np.float64) + values[:-1]) / 2]).astype(np.float32)
    beside = [np.nextafter(exact, np.float32(side), dtype=np.float32) for side in (-np.inf, np.inf)]
    random = np.random.default_rng(1).normal(0, t.max / 3, 20_000).astype(np.float32)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, 3e38, -3e38, 1e-45], np.float32)
    tried = np.concatenate([exact, *beside, random, edges])
    np.testing.assert_array_equal(encode_fast(tried, t), t.encode(tried))


@pytest.mark.parametrize("name", ["bipolar1", "bipolar2", "bipolar4"])
def test_bipolar(name: str) -> None:
    w = gaussian(2, 8, 64)
    w[0, :32] = 0
    q = quantize(w, name, 32)
    result = q.dequantize()
    np.testing.assert_array_equal(result[0, :32], 0)
    steps = np.abs(result) / np.where(spread_scales(q) == 0, 1, spread_scales(q))
    assert np.all(steps[1:] % 2 == 1)
    assert np.linalg.norm(result - w) / np.linalg.norm(w) < {"bipolar1": 0.65, "bipolar2": 0.5, "bipolar4": 0.12}[name]


@pytest.mark.parametrize("name", ["int6", "uint4", "f6e3m2"])
@pytest.mark.parametrize("zero_point", [False, True])
def test_tiny_weights_get_the_smallest_scale(name: str, zero_point: bool) -> None:
    if zero_point and name.startswith("f"):
        pytest.skip("floats have no zero points")
    w = np.full((1, 4), 1e-9, np.float32)
    q = quantize(w, name, None, zero_point)
    assert float(q.scales[0, 0]) == 2.0**-24
    assert np.all(np.abs(q.dequantize() - w) <= 2.0**-25)
    smallest = np.full((1, 4), np.finfo(np.float32).smallest_subnormal)
    assert np.isfinite(quantize(smallest, name, None, zero_point, "f32").dequantize()).all()


def test_large_weights() -> None:
    w = np.array([[3e6, -1e6]], np.float32)
    with pytest.raises(LowlpValueError, match=r"a scale of 96774\.2 is out of range of f16; use scale_dtype='bf16' or"):
        quantize(w, "int6", None)
    assert np.abs(quantize(w, "int6", None, scale_dtype="bf16").dequantize() - w).max() < 5e4
    huge = np.array([[3.4e38, -3.4e38]], np.float32)
    with pytest.raises(LowlpValueError, match="a scale of inf is out of range of f32; make the weights smaller"):
        quantize(huge, "uint4", None, zero_point=True, scale_dtype="f32")


def test_result_does_not_depend_on_blocks_of_rows() -> None:
    w = gaussian(5, 9, 1 << 17)
    whole = quantize(w, "int5", 128)
    for row in (0, 1, 8):
        alone = quantize(w[row : row + 1], "int5", 128)
        np.testing.assert_array_equal(alone.codes[0], whole.codes[row])
        np.testing.assert_array_equal(alone.scales[0], whole.scales[row])


def test_the_weights_are_left_alone() -> None:
    w = gaussian(5, 4, 64)
    before = w.copy()
    quantize(w, "uint4", 32, zero_point=True)
    np.testing.assert_array_equal(w, before)
    turned = gaussian(6, 64, 4).T
    np.testing.assert_array_equal(quantize(turned, "int6", 32).codes, quantize(turned.copy(), "int6", 32).codes)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_torch_tensors(kind: str) -> None:
    torch = pytest.importorskip("torch")
    w = torch.nn.Parameter(torch.randn(4, 64).to(getattr(torch, kind)))
    expected = quantize(w.detach().to(torch.float64).numpy(), "int6", 32)
    np.testing.assert_array_equal(quantize(w, "int6", 32).codes, expected.codes)


def test_progress() -> None:
    w = gaussian(5, 4, 64)
    np.testing.assert_array_equal(quantize(w, "int6", 32, progress=True).codes, quantize(w, "int6", 32).codes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"w": np.zeros((2, 8), np.int32)}, "w: expected float16, bfloat16, float32 or float64, got int32"),
        ({"w": [[1.0]]}, "w: expected a numpy array or a torch tensor on the CPU, got list"),
        ({"zero_point": 1}, "zero_point: expected a bool, got 1"),
        ({"group_size": "4"}, "group_size: expected an int, or None for a whole row, got '4'"),
        ({"group_size": np.array([4, 4])}, r"group_size: expected an int, or None for a whole row, got array"),
        ({"zero_point": np.array([1, 0])}, r"zero_point: expected a bool, got array"),
        ({"progress": np.array([1, 0])}, r"progress: expected a bool, got array"),
        ({"search": b"abc"}, "search: expected a bool or a sequence of numbers, got b'abc'"),
        ({"search": {}}, "search: expected a bool or a sequence of numbers, got {}"),
    ],
)
def test_refuses_types(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LowlpTypeError, match=message):
        quantize(**{"w": gaussian(0, 2, 8), "group_size": 4, **changes})


def with_value(value: float, kind: Any = np.float32) -> Any:
    w = gaussian(0, 2, 8).astype(kind)
    w[1, 5] = value
    return w


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"w": with_value(np.nan)}, r"w: must be finite in float32, got nan at \[1, 5\]"),
        ({"w": with_value(-np.inf), "dtype": "uint4"}, r"w: must be finite in float32, got -inf at \[1, 5\]"),
        ({"w": with_value(1e60, np.float64)}, r"w: must be finite in float32, got 1e\+60 at \[1, 5\]"),
        ({"w": np.zeros(8, np.float32)}, r"w: expected shape \[N, K\] with N, K >= 1, got \[8\]"),
        ({"w": np.zeros((2, 0), np.float32)}, r"got \[2, 0\]"),
        ({"group_size": 3}, r"group_size: must divide K = 8 \(or be None or -1 for a whole row\), got 3"),
        ({"book_per": np.array([4, 4])}, "book_per: goes with vq, which is not given"),
        ({"seed": "a"}, "seed: must be an int of at least 0, got 'a'"),
        ({"scale_dtype": "f64"}, "scale_dtype: must be one of f16, bf16, f32, e8m0, e4m3, got 'f64'"),
        ({"dtype": "f6e3m2", "zero_point": True}, "zero_point: allowed for integer types only, got dtype f6e3m2"),
        ({"dtype": "bf16"}, r"dtype: bf16 has 16 bits; a code has 1\.\.8"),
        ({"dtype": "int32"}, r"dtype: int32 has 32 bits; a code has 1\.\.8"),
    ],
)
def test_refuses_values(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        quantize(**{"w": gaussian(0, 2, 8), "group_size": 4, **changes})


def test_scale_types_may_be_objects() -> None:
    w = gaussian(5, 4, 64)
    assert quantize(w, dtype("int6"), 32, scale_dtype=dtype("bf16")).scales.dtype == ml_dtypes.bfloat16
    with pytest.raises(LowlpTypeError, match="scale_dtype: expected a name such as 'int6' or a DType, got list"):
        quantize(w, "int6", 32, scale_dtype=["f16"])  # type: ignore[arg-type]


def test_tensors_that_numpy_does_not_have() -> None:
    torch = pytest.importorskip("torch")
    w = torch.randn(4, 64)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        with pytest.raises(LowlpTypeError, match=rf"w: expected float16, .* got {name}"):
            quantize(w.to(getattr(torch, name)), "int6", 32)
    for other in (w.to_sparse(), w.to(torch.float8_e5m2fnuz)):
        with pytest.raises(LowlpTypeError, match="w: a tensor without a numpy array: "):
            quantize(other, "int6", 32)
    negated = torch._neg_view(w)
    np.testing.assert_array_equal(quantize(negated, "int6", 32).codes, quantize(-w, "int6", 32).codes)
