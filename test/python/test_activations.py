"""Quantised activations: semantics of `quantize_activations`, the class, planes, and the Hadamard transform."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import lowlp
from lowlp.activations.hadamard import odd_signs
from lowlp.cli import demo_weights
from lowlp.numeric.bit_planes import BIT_OF_CODE, codes_of_planes
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

INTEGERS = ["int2", "int4", "int8", "uint3", "uint8", "ternary", "bipolar1", "bipolar3", "bipolar8"]
FLOAT_TYPES = {"f8e4m3": (ml_dtypes.float8_e4m3fn, 448), "f8e5m2": (ml_dtypes.float8_e5m2, 57344)}


def rows(m: int, k: int, dtype: object = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((m, k), np.float32).astype(dtype)


def stored(xq: lowlp.QuantizedActivations) -> np.ndarray:
    """Codes that count up from 0."""
    low = int(xq.dtype.min) if xq.codes.dtype == np.int8 else 0
    return (xq.codes.astype(np.int16) - low).astype(np.uint8)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_int8_follows_the_definition(dtype: object) -> None:
    x = rows(7, 33, dtype)
    x[3] = 0
    xq = lowlp.quantize_activations(x, clip=0.9)
    wide = x.astype(np.float32)
    scales = np.abs(wide).max(1, keepdims=True) * np.float32(0.9) / np.float32(127)
    scales[3] = 1
    codes = np.clip(np.rint(wide * (np.float32(1) / scales)), -127, 127).astype(np.int8)
    assert xq.scales.dtype == np.float32 and np.array_equal(xq.scales, scales)
    assert xq.codes.dtype == np.int8 and np.array_equal(xq.codes, codes)
    assert xq.sums.dtype == np.int32 and np.array_equal(xq.sums, codes.sum(1, dtype=np.int32))
    assert np.array_equal(xq.dequantize(), codes.astype(np.float32) * scales)


@pytest.mark.parametrize("name", INTEGERS)
def test_numbers_within_the_range_are_off_by_half_a_step(name: str) -> None:
    x = rows(5, 100, np.float32)
    xq = lowlp.quantize_activations(x, name)
    step = xq.scales * (2 if name.startswith("bipolar") else 1)
    assert (np.abs(xq.dequantize() - x) <= step * np.float32(0.50001)).all()
    assert np.array_equal(codes_of_planes(xq.planes, 100), stored(xq))
    assert xq.planes.shape == (5, xq.dtype.bits, 4)


@pytest.mark.parametrize("name", ["int8", "uint4", "uint1", "int3"])
def test_zero_points_map_the_range_of_a_row(name: str) -> None:
    x = rows(6, 64, np.float32) + 0.7
    x[0] = np.abs(x[0]) + 1
    xq = lowlp.quantize_activations(x, name, symmetric=False)
    low = int(xq.dtype.min)
    assert xq.zeros.dtype == np.int32 and xq.zeros[0] == low
    assert xq.codes.min() == low and xq.codes.max() == int(xq.dtype.max)
    assert (np.abs(xq.dequantize() - x) <= xq.scales * np.float32(1.001)).all()


@pytest.mark.parametrize("name", FLOAT_TYPES)
def test_floats_are_cast_after_the_scale(name: str) -> None:
    kind, largest = FLOAT_TYPES[name]
    x = rows(4, 40)
    xq = lowlp.quantize_activations(x, name)
    scales = np.abs(x.astype(np.float32)).max(1, keepdims=True) / np.float32(largest)
    exact = x.astype(np.float32) * (np.float32(1) / scales)
    expected = np.clip(exact, -np.float32(largest), np.float32(largest)).astype(kind)
    assert xq.codes.dtype == kind and np.array_equal(xq.codes.view(np.uint8), expected.view(np.uint8))
    assert xq.sums is None
    with pytest.raises(LowlpTypeError, match="planes: integers and bipolar types have planes, f8e"):
        _ = xq.planes


@pytest.mark.parametrize("scale", ["token", "tensor", 0.01])
def test_rows_that_are_not_finite_leave_the_others_alone(scale: object) -> None:
    x = rows(6, 48)
    whole = lowlp.quantize_activations(x, "int4", scale=scale)
    x[1, 5], x[4, 0] = np.nan, -np.inf
    xq = lowlp.quantize_activations(x, "int4", scale=scale)
    good = [0, 2, 3, 5]
    assert np.isnan(xq.scales[[1, 4]]).all() and np.isnan(xq.dequantize()[[1, 4]]).all() and not xq.codes[[1, 4]].any()
    if scale == "tensor":
        whole = lowlp.quantize_activations(x[good], "int4", scale=scale)
        assert np.array_equal(xq.codes[good], whole.codes) and np.array_equal(xq.scales[good], whole.scales)
    else:
        assert np.array_equal(xq.codes[good], whole.codes[good])


def test_given_scales_use_all_codes() -> None:
    x = np.array([[-1000.0, 2.5, 3.5, 1000.0]], np.float32)
    assert lowlp.quantize_activations(x, scale=1.0).codes.tolist() == [[-128, 2, 4, 127]]
    assert lowlp.quantize_activations(x, "ternary", scale=np.ones((1, 1), np.float32)).codes.tolist() == [[-1, 1, 1, 1]]


def test_groups_are_rows_of_their_own() -> None:
    x = rows(3, 96)
    xq = lowlp.quantize_activations(x, "int5", group_size=32)
    apart = lowlp.quantize_activations(x.reshape(9, 32), "int5")
    assert np.array_equal(xq.codes.reshape(9, 32), apart.codes) and xq.sums.shape == (3, 3)
    assert np.array_equal(xq.scales.reshape(9, 1), apart.scales) and np.array_equal(xq.sums.reshape(9), apart.sums)
    assert np.array_equal(xq.dequantize().reshape(9, 32), apart.dequantize())


def test_smallest_numbers_have_a_scale_whose_inverse_is_finite() -> None:
    x = np.array([[1e-44, -3e-45], [1e-38, 0]], np.float32)
    xq = lowlp.quantize_activations(x)
    assert (xq.scales == np.float32(2.0**-126)).all() and xq.codes.tolist() == [[0, 0], [1, 0]]


def test_smooth_and_hadamard_come_first() -> None:
    x, smooth = rows(3, 64), np.linspace(0.5, 2, 64, dtype=np.float32)
    by_hand = x.astype(np.float32) * (np.float32(1) / smooth)
    assert np.array_equal(lowlp.quantize_activations(x, smooth=smooth).codes, lowlp.quantize_activations(by_hand).codes)
    fused = lowlp.quantize_activations(x, "int4", hadamard=32)
    apart = lowlp.quantize_activations(lowlp.hadamard(x, 32), "int4")
    assert np.array_equal(fused.codes, apart.codes) and np.array_equal(fused.scales, apart.scales)


@pytest.mark.parametrize("block", [32, 256, 12 * 4, 20 * 2, 28 * 4])
def test_hadamard_is_orthogonal_and_its_own_inverse(block: int) -> None:
    matrix = lowlp.hadamard(np.eye(block, dtype=np.float32))
    assert np.array_equal(matrix, matrix.T) and len(np.unique(np.abs(matrix))) == 1
    assert np.allclose(matrix @ matrix, np.eye(block), atol=1e-5)
    x = rows(2, 3 * block, np.float32)
    expected = (x.reshape(2, 3, block).astype(np.float64) @ matrix).reshape(2, -1)
    assert np.allclose(lowlp.hadamard(x, block), expected, atol=1e-5)


def test_odd_parts_are_hadamard_matrices() -> None:
    for order in (12, 20, 28):
        signs = odd_signs(order).astype(np.int64)
        assert np.array_equal(signs @ signs.T, order * np.eye(order)) and np.array_equal(signs, signs.T)


@pytest.mark.parametrize("arguments", [{"scale": "tensor"}, {"group_size": 32}, {"hadamard": 32}, {"symmetric": False}])
def test_no_rows_are_no_mistake(arguments: dict[str, object]) -> None:
    xq = lowlp.quantize_activations(np.zeros((2, 0, 64), np.float16), **arguments)
    groups = 2 if "group_size" in arguments else 1
    assert xq.dequantize().shape == (2, 0, 64) and xq.scales.shape == (2, 0, groups)
    assert xq.planes.shape == (2, 0, 8, 2) and xq.sums.shape == ((2, 0, 2) if groups == 2 else (2, 0))


def test_torch_tensors_give_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(rows(2 * 3, 40, np.float32)).reshape(2, 3, 40).to(torch.bfloat16)
    for name in ("int8", "uint4", "f8e5m2"):
        xq = lowlp.quantize_activations(x, name)
        host = lowlp.quantize_activations(x.float().numpy().astype(ml_dtypes.bfloat16), name)
        assert xq.shape == (2, 3, 40) and np.array_equal(xq.dequantize().numpy(), host.dequantize())
        if name != "f8e5m2":
            assert xq.codes.dtype == (torch.int8 if name == "int8" else torch.uint8) and xq.sums.dtype == torch.int32
            assert np.array_equal(xq.planes.numpy(), host.planes) and np.array_equal(xq.sums.numpy(), host.sums)


@pytest.mark.parametrize("k", [1, 2, 31, 65])
def test_planes_of_rows_of_any_length(k: int) -> None:
    codes = np.random.default_rng(k).integers(0, 2, (5, k), np.uint8)
    planes = lowlp.QuantizedActivations(codes, dtype="bipolar1", scales=1.0).planes
    assert planes.shape == (5, 1, -(-k // 32)) and np.array_equal(codes_of_planes(planes, k), codes)


def test_codes_of_ones_own() -> None:
    codes = np.array([[0, 15], [7, 8]], np.uint8)
    xq = lowlp.QuantizedActivations(codes, dtype="uint4", scales=0.5, zeros=8)
    assert xq.dequantize().tolist() == [[-4.0, 3.5], [-0.5, 0.0]] and xq.sums.tolist() == [15, 15]
    ones = lowlp.QuantizedActivations(
        np.full((1, 33), 3, np.uint8), dtype="bipolar2", scales=np.ones((1, 1), np.float32)
    )
    assert ones.planes.tolist() == [[[2**32 - 1, 1]] * 2] and (ones.dequantize() == 3).all()
    one = np.zeros((1, 32), np.uint8)
    one[0, 6] = 1
    plane = lowlp.QuantizedActivations(one, dtype="uint1", scales=1.0).planes
    assert plane.tolist() == [[[1 << BIT_OF_CODE[6]]]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dtype": "int1"}, "dtype: activations are int2 to int8.*got int1; uint1 and bipolar1 have one bit"),
        ({"dtype": "f6e3m2"}, "dtype: activations are .*got f6e3m2"),
        ({"scale": "row"}, "scale: must be 'token', 'tensor' or scales, got 'row'"),
        ({"scale": np.ones((2, 1), np.float32)}, r"scale: must be one number or of shape \(3, 1\), got shape \(2, 1\)"),
        ({"scale": 0.0}, "scale: must be finite and at least 2\\^-126, got 0.0"),
        ({"scale": -(10**400)}, "scale: must be finite and at least 2\\^-126"),
        ({"dtype": np.zeros(2)}, "dtype: expected a name such as 'int6' or a DType"),
        ({"scale": True}, "scale: expected 'token', 'tensor', a number or an array, got True"),
        ({"scale": 1.0, "clip": 0.5}, "clip: must be 1 with given scales, got 0.5"),
        ({"scale": 1.0, "symmetric": False}, "symmetric: must be True with given scales"),
        ({"scale": "tensor", "group_size": 32}, "group_size: must be None with scale='tensor', got 32"),
        ({"dtype": "bipolar2", "symmetric": False}, "symmetric: must be True for bipolar2"),
        ({"dtype": "uint1"}, "symmetric: must be False for uint1"),
        ({"symmetric": 1}, "symmetric: expected a bool, got 1"),
        ({"clip": 1.5}, "clip: must be above 0 and at most 1, got 1.5"),
        ({"clip": "a"}, "clip: expected a number, got 'a'"),
        ({"smooth": np.ones(3, np.float32)}, r"smooth: must have shape \(64,\), got \(3,\)"),
        ({"smooth": np.zeros(64, np.float32)}, "smooth: must be finite and at least 2\\^-126, got 0.0"),
        ({"hadamard": 48}, "hadamard: must divide K = 64, got 48"),
        ({"hadamard": 36}, "hadamard: blocks are a power of two, or 12, 20 or 28 times one.*got 36"),
        ({"hadamard": 2.0}, "hadamard: expected None or an int, got 2.0"),
        ({"group_size": 7}, "group_size: must divide K = 64, got 7"),
        ({"x": np.zeros((3, 64))}, "x: expected float16, bfloat16 or float32, got float64"),
        ({"x": np.zeros((3, 0), np.float16)}, r"x: must have a last dimension K of at least 1, got shape \(3, 0\)"),
    ],
)  # fmt: skip
def test_mistakes_are_named(arguments: dict[str, object], message: str) -> None:
    x = arguments.pop("x", rows(3, 64))
    with pytest.raises((LowlpTypeError, LowlpValueError), match=message):
        lowlp.quantize_activations(x, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"codes": np.zeros((2, 4), np.uint8)}, "codes: of int4 are int8, got uint8"),
        ({"codes": np.full((2, 4), 8, np.int8)}, "codes: of int4 are -8 to 7, got 8"),
        ({"codes": [[1]]}, "codes: expected a numpy array or a tensor of PyTorch, got list"),
        ({"scales": np.ones(2, np.float32)}, r"scales: must have shape \(2, 1\), got \(2,\)"),
        ({"scales": np.ones((2, 1))}, "scales: expected float32, got float64"),
        ({"zeros": 1.5}, "zeros: must be a whole number, got 1.5"),
        ({"zeros": float("nan")}, r"zeros: must be below 2\^31 in magnitude, got nan"),
        ({"zeros": 2**40}, r"zeros: must be below 2\^31 in magnitude, got 1099511627776"),
        ({"scales": 1e39}, r"scales: must be finite in float32, or NaN, got 1e\+39"),
        ({"scales": 10**400}, r"scales: must be below 2\^128 in magnitude, got 1000"),
        ({"codes": np.ma.array(np.zeros((2, 4), np.int8))}, "codes: masked arrays are not supported"),
        ({"sums": [1, 2]}, "sums: expected a numpy array, as codes are one, got list"),
    ],
)
def test_mistakes_of_codes_are_named(arguments: dict[str, object], message: str) -> None:
    given = {"codes": np.zeros((2, 4), np.int8), "dtype": "int4", "scales": 1.0, **arguments}
    with pytest.raises((LowlpTypeError, LowlpValueError), match=message):
        lowlp.QuantizedActivations(given.pop("codes"), **given)


def test_the_page_has_what_its_script_prints() -> None:
    root = Path(__file__).resolve().parents[2]
    spec = importlib.util.spec_from_file_location(
        "activation_accuracy", root / "tools" / "dev" / "activation_accuracy.py"
    )
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (root / "docs" / "activations.md").read_text(encoding="utf-8")
    shown = page.split("<!-- table:")[1].split("\n\n")[1].splitlines()
    assert [line.split(" |")[0][2:] for line in shown[2:]] == list(script.KINDS)
    if demo_weights.model_file() is not None:
        # One of them, since each takes seven products.
        assert script.table(["int4"]) == [*shown[:2], next(line for line in shown if line.startswith("| int4 |"))]
