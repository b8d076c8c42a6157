"""QuantizedTensor: exact meaning of the codes, and every refusal."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowlp.numeric.dtypes import dtype
from lowlp.weights.packing import packed_shape, placement_name
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime import LowlpTypeError, LowlpValueError

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 9)]
FLOATS = ["f3e1m1", "f4e2m1", "f6e3m2", "f6e2m3", "f7e5m1", "f8e4m3", "f8e5m2"]
SCALE_TYPES: list[Any] = [np.float16, ml_dtypes.bfloat16, np.float32]


def finite_codes(name: str) -> np.ndarray[Any, Any]:
    every = np.arange(1 << dtype(name).bits, dtype=np.uint8)
    return every[np.isfinite(dtype(name).decode(every))]


def make(name: str, seed: int, n: int, groups: int, size: int, scale_type: Any, extra: str | None) -> QuantizedTensor:
    random = np.random.default_rng(seed)
    codes = random.choice(finite_codes(name), (n, groups * size)).astype(np.uint8)
    more: dict[str, Any] = {}
    if extra == "integer zeros":
        more["zeros"] = random.integers(-300, 300, (n, groups))
    elif extra == "float zeros":
        more["zeros"] = random.normal(0, 3, (n, groups)).astype(np.float16)
    elif extra == "offsets":
        more["offsets"] = random.normal(0, 3, (n, groups)).astype(np.float32)
    scales = random.normal(0, 0.1, (n, groups)).astype(scale_type)
    return QuantizedTensor(codes, dtype=name, scales=scales, group_size=size, **more)


def rounded(values: Any) -> Any:
    """float64 to the float32 next to it, kept as float64: one rounding after a step computed exactly."""
    return values.astype(np.float32).astype(np.float64)


def recomputed(q: QuantizedTensor) -> Any:
    """The definition, a step at a time in float64: sums and products of two float32 are then rounded once, and products
    are exact before it."""

    def spread(part: Any) -> Any:
        return np.repeat(part.astype(np.float64), q.group_size, axis=1)

    values = q.dtype.decode(q.codes).astype(np.float64)
    if q.zeros is not None:
        values = rounded(values - spread(q.zeros))
    values = rounded(spread(q.scales) * values)
    return values if q.offsets is None else rounded(values + spread(q.offsets))


@given(
    st.sampled_from(INTEGERS + FLOATS),
    st.integers(0, 2**32),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 33),
    st.sampled_from(SCALE_TYPES),
    st.sampled_from([None, "integer zeros", "float zeros", "offsets"]),
)
@settings(max_examples=150, deadline=None)
def test_dequantize_is_its_definition(
    name: str, seed: int, n: int, groups: int, size: int, scale_type: Any, extra: str | None
) -> None:
    if extra and "zeros" in extra and not dtype(name).is_integer:
        extra = "offsets"
    q = make(name, seed, n, groups, size, scale_type, extra)
    result = q.dequantize()
    assert result.dtype == np.float32
    assert result.shape == q.shape == (n, groups * size)
    np.testing.assert_array_equal(result, recomputed(q))


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("int2", "int2"),
        ("int4", "int4"),
        ("uint4", "uint4"),
        ("f4e2m1", "float4_e2m1fn"),
        ("f6e2m3", "float6_e2m3fn"),
        ("f6e3m2", "float6_e3m2fn"),
        ("f8e4m3", "float8_e4m3fn"),
        ("f8e5m2", "float8_e5m2"),
    ],
)
def test_values_agree_with_ml_dtypes(name: str, oracle: str) -> None:
    codes = finite_codes(name)
    q = QuantizedTensor(codes[None], dtype=name, scales=np.ones((1, 1), np.float16))
    raw = codes.view(np.int8) if name == "int4" or name == "int2" else codes
    if name in ("int2", "int4"):
        shift = 8 - dtype(name).bits
        raw = (raw << shift).astype(np.int8) >> shift
        expected = raw.astype(getattr(ml_dtypes, oracle)).astype(np.float32)
    elif name == "uint4":
        expected = raw.astype(ml_dtypes.uint4).astype(np.float32)
    else:
        expected = raw.view(getattr(ml_dtypes, oracle)).astype(np.float32)
    np.testing.assert_array_equal(q.dequantize()[0], expected)


def test_large_rows_cross_the_block_size() -> None:
    q = make("uint5", 1, 7, 3, 100_000, np.float16, "integer zeros")
    np.testing.assert_array_equal(q.dequantize(), recomputed(q))


def word_bytes(q: QuantizedTensor) -> int:
    return 4 * math.prod(packed_shape(*q.shape, q.group_size, placement_name(q.dtype, "f16")))


@pytest.mark.parametrize("name", ["int1", "uint3", "int6", "f8e4m3"])
def test_nbytes(name: str) -> None:
    plain, offset = make(name, 0, 2, 2, 5, np.float16, None), make(name, 0, 2, 2, 5, np.float32, "offsets")
    assert plain.nbytes == plain.packed.nbytes + 8 == word_bytes(plain) + 8
    assert offset.nbytes == word_bytes(offset) + 16 + 16


def test_properties() -> None:
    q = make("int6", 0, 3, 2, 8, np.float16, "integer zeros")
    assert (q.shape, q.bits, q.group_size, q.dtype.name, q.offsets) == ((3, 16), 6, 8, "int6", None)
    assert (
        repr(q) == "QuantizedTensor(int6, shape=(3, 16), group_size=8, scales=float16, zeros, family=f16, nbytes=792)"
    )
    for part in (q.codes, q.scales, q.zeros):
        assert part is not None
        with pytest.raises(ValueError, match="read-only"):
            part[0, 0] = 0


@pytest.mark.parametrize("group_size", [None, -1, 6])
def test_whole_row_groups(group_size: int | None) -> None:
    q = QuantizedTensor(
        np.zeros((2, 6), np.uint8), dtype="int4", scales=np.ones((2, 1), np.float16), group_size=group_size
    )
    assert q.group_size == 6


CODES, SCALES = np.zeros((2, 8), np.uint8), np.ones((2, 2), np.float16)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codes": CODES.astype(np.int8)}, r"codes: expected uint8 \(the low 6 bits\), got int8"),
        ({"codes": [[0]]}, "codes: expected a numpy array or a torch tensor on the CPU, got list"),
        (
            {"scales": SCALES.astype(np.float64)},
            "scales: expected elements of float16, bfloat16, float32, float8_e8m0fnu or float8_e4m3fn, got float64",
        ),
        ({"scales": 1.0}, "scales: expected a numpy array"),
        ({"zeros": SCALES.astype(bool)}, "zeros: expected elements of .* or an integer type, got bool"),
        ({"offsets": SCALES.astype(int)}, "offsets: expected elements of float16, bfloat16 or float32, got int64"),
        ({"group_size": 4.0}, "group_size: expected an int, or None for a whole row, got 4.0"),
        ({"group_size": True}, "group_size: expected an int"),
        ({"group_size": np.array([4, 4])}, "group_size: expected an int"),
        ({"dtype": 6}, "dtype: expected a name such as 'int6' or a DType, got int"),
    ],
)
def test_refuses_types(changes: dict[str, Any], message: str) -> None:
    arguments = {"codes": CODES, "dtype": "int6", "scales": SCALES, "group_size": 4, **changes}
    with pytest.raises(LowlpTypeError, match=message):
        QuantizedTensor(arguments.pop("codes"), **arguments)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codes": CODES[0]}, r"codes: expected shape \[N, K\] with N, K >= 1, got \[8\]"),
        ({"codes": CODES[:0]}, r"codes: expected shape .* got \[0, 8\]"),
        ({"codes": CODES + 64}, r"codes: must be in 0\.\.63 for int6, got 64; mask with `& 0x3f`"),
        ({"dtype": "f16"}, r"dtype: f16 has 16 bits; a code has 1\.\.8"),
        ({"scales": SCALES[:1]}, r"scales: expected shape \[N, K / group_size\] = \[2, 2\], got \[1, 2\]"),
        ({"scales": SCALES * np.inf}, r"scales: must be finite, got inf at \[0, 0\]"),
        ({"offsets": SCALES * np.nan}, r"offsets: must be finite, got nan at \[0, 0\]"),
        ({"zeros": SCALES[:, :1]}, r"zeros: expected shape .* got \[2, 1\]"),
        ({"zeros": SCALES.astype(int) * 40000}, r"zeros: must be in -32768\.\.32767, got 40000"),
        ({"zeros": SCALES, "offsets": SCALES}, "zeros, offsets: at most one of them may be given, got both"),
        ({"zeros": SCALES, "dtype": "f6e3m2"}, "zeros: allowed for integer types only, got dtype f6e3m2; use offsets"),
        ({"group_size": 3}, r"group_size: must divide K = 8 .* got 3"),
        ({"group_size": 0}, "group_size: must divide K = 8"),
        ({"group_size": 16}, "group_size: must divide K = 8"),
        ({"group_size": None}, r"scales: expected shape \[N, K / group_size\] = \[2, 1\], got \[2, 2\]"),
    ],
)
def test_refuses_values(changes: dict[str, Any], message: str) -> None:
    arguments = {"codes": CODES, "dtype": "int6", "scales": SCALES, "group_size": 4, **changes}
    with pytest.raises(LowlpValueError, match=message):
        QuantizedTensor(arguments.pop("codes"), **arguments)


@pytest.mark.parametrize(("name", "code"), [("f8e4m3", 0x7F), ("f8e4m3", 0xFF), ("f8e5m2", 0x7C), ("f8e5m2", 0xFE)])
def test_codes_that_are_no_number(name: str, code: int) -> None:
    codes = np.zeros((3, 5), np.uint8)
    codes[2, 3] = code
    with pytest.raises(LowlpValueError, match=rf"codes: \[2, 3\] is {code:#x}, NaN or infinity in {name}"):
        QuantizedTensor(codes, dtype=name, scales=np.ones((3, 1), np.float32))


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    scales = torch.tensor([[0.5], [0.25]], dtype=torch.bfloat16)
    codes = torch.tensor([[1, 2, 3], [63, 0, 1]], dtype=torch.uint8)
    q = QuantizedTensor(codes, dtype="int6", scales=scales)
    assert q.scales.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(q.dequantize(), [[0.5, 1, 1.5], [-0.25, 0, 0.25]])
    with pytest.raises(LowlpValueError, match="codes: expected a tensor on the CPU, got one on 'meta'"):
        QuantizedTensor(codes.to("meta"), dtype="int6", scales=scales)
