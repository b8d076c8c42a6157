"""Scalar types, against ml_dtypes where it has the type and against the definition elsewhere."""

import pickle

import ml_dtypes
import numpy as np
import pytest

from lowlp.numeric import dtypes
from lowlp.numeric.dtypes import all_dtypes, dtype
from lowlp_runtime.errors import LowlpError, LowlpValueError

ORACLES = {
    "int2": ml_dtypes.int2,
    "int4": ml_dtypes.int4,
    "uint2": ml_dtypes.uint2,
    "uint4": ml_dtypes.uint4,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e3m4": ml_dtypes.float8_e3m4,
    "f6e3m2": ml_dtypes.float6_e3m2fn,
    "f6e2m3": ml_dtypes.float6_e2m3fn,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}
WITH_CODES = [t for t in all_dtypes() if t.bits <= 8]


def all_codes(t):
    return np.arange(2**t.bits, dtype=np.uint8)


def finite_values(t):
    """The finite values, ascending, with one zero."""
    values = t.decode(all_codes(t)).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def ties(t):
    """The numbers half way between neighbouring values; float64 holds them exactly."""
    values = finite_values(t)
    return (values[1:] + values[:-1]) / 2


def oracle_codes(t, values):
    """The codes that ml_dtypes gives to values within the range."""
    if t.is_integer:
        return np.rint(values).astype(np.int64).astype(np.uint8) & (2**t.bits - 1)
    return values.astype(ORACLES[t.name]).view(np.uint8) & (2**t.bits - 1)


@pytest.mark.parametrize("name", ORACLES)
def test_decode_equals_the_oracle(name):
    t = dtype(name)
    codes = all_codes(t)
    # ml_dtypes reads integers of few bits from bytes of two's complement.
    raw = codes
    if t.is_integer and t.is_signed:
        raw = (codes ^ 2 ** (t.bits - 1)).astype(np.int8) - np.int8(2 ** (t.bits - 1))
    expected = raw.view(ORACLES[name]).astype(np.float32)
    found = t.decode(codes)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_encode_equals_the_oracle_within_range(name, precision):
    t = dtype(name)
    random = np.random.default_rng(1)
    values = np.concatenate(
        [
            random.uniform(t.min, t.max, 20000),
            random.normal(0, 1, 20000).clip(t.min, t.max),
            random.normal(0, 2.0**-6, 20000).clip(t.min, t.max),
            ties(t),
            finite_values(t),
        ]
    ).astype(precision)
    np.testing.assert_array_equal(t.encode(values), oracle_codes(t, values))


@pytest.mark.parametrize("t", WITH_CODES, ids=str)
def test_encode_undoes_decode(t):
    codes = all_codes(t)
    values = t.decode(codes)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(t.encode(values[finite]), codes[finite])


@pytest.mark.parametrize("t", WITH_CODES, ids=str)
def test_encode_takes_the_nearest_and_ties_the_even_code(t):
    values = finite_values(t)
    middle = ties(t)
    codes = t.encode(middle)
    assert not (codes & 1).any()
    found = t.decode(codes).astype(np.float64)
    assert ((found == values[1:]) | (found == values[:-1])).all()
    np.testing.assert_array_equal(t.decode(t.encode(np.nextafter(middle, np.inf))), values[1:])
    np.testing.assert_array_equal(t.decode(t.encode(np.nextafter(middle, -np.inf))), values[:-1])


@pytest.mark.parametrize("t", WITH_CODES, ids=str)
def test_range_and_saturation(t):
    values = finite_values(t)
    assert (t.min, t.max) == (values[0], values[-1])
    beyond = np.array([np.inf, -np.inf, 1e300, -1e300])
    np.testing.assert_array_equal(t.decode(t.encode(beyond)), [t.max, t.min, t.max, t.min])


def test_every_type_has_its_name_and_its_constant():
    names = [t.name for t in all_dtypes()]
    assert len(names) == len(set(names)) == 3 * 8 + 27 + 7
    for name in names:
        t = dtype(name)
        assert getattr(dtypes, name) == t
        assert dtype(t) is t
        assert (str(t), repr(t)) == (name, f"lowlp.{name}")
        assert pickle.loads(pickle.dumps(t)) == t
        assert len({t, dtype(name)}) == 1


def test_other_names():
    assert dtype("float6_e3m2") == dtypes.f6e3m2 == dtypes.float6_e3m2
    assert dtype("bfloat16") == dtypes.bf16
    with pytest.raises(AttributeError):
        dtypes.float6_e3m3  # noqa: B018


def test_properties():
    t = dtypes.f6e3m2
    assert (t.bits, t.exponent_bits, t.mantissa_bits) == (6, 3, 2)
    assert (t.is_float, t.is_integer, t.is_signed) == (True, False, True)
    assert (dtypes.uint3.is_signed, dtypes.int3.is_signed) == (False, True)
    assert (dtypes.int1.min, dtypes.int1.max) == (-1, 0)
    assert isinstance(dtypes.int8.max, int)
    assert (dtypes.int16.min, dtypes.int16.max, dtypes.uint16.max) == (-(2**15), 2**15 - 1, 2**16 - 1)
    assert (dtypes.int32.min, dtypes.int32.max, dtypes.uint32.max) == (-(2**31), 2**31 - 1, 2**32 - 1)
    assert (dtypes.uint32.bits, dtypes.uint32.is_integer, dtypes.uint32.is_signed) == (32, True, False)
    assert (dtypes.f16.bits, dtypes.f16.max, dtypes.bf16.bits, dtypes.f32.bits) == (16, 65504.0, 16, 32)
    assert dtypes.bf16.max == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    assert dtypes.f32.max == float(np.finfo(np.float32).max)
    assert (dtypes.bipolar3.is_integer, dtypes.bipolar3.is_float, dtypes.bipolar3.is_signed) == (False, False, True)
    with pytest.raises(AttributeError, match="immutable"):
        t.name = "f4e2m1"


def test_mlir_types():
    assert [dtype(name).mlir for name in ("int16", "uint16", "int32", "uint32")] == ["si16", "ui16", "si32", "ui32"]
    assert [dtype(name).mlir for name in ("int6", "uint4", "f8e4m3", "f8e5m2", "f8e3m4")] == [
        "si6",
        "ui4",
        "f8E4M3FN",
        "f8E5M2",
        "f8E3M4",
    ]
    assert [dtype(name).mlir for name in ("f6e3m2", "f6e2m3", "f4e2m1", "f5e2m2", "f16", "bf16", "f32")] == [
        "f6E3M2FN",
        "f6E2M3FN",
        "f4E2M1FN",
        "!lowlp.float<e2m2>",
        "f16",
        "bf16",
        "f32",
    ]
    with pytest.raises(TypeError, match="tiles hold its codes as ui2"):
        _ = dtypes.bipolar2.mlir


def test_bipolar_bits_are_signs():
    for t in (dtype(f"bipolar{bits}") for bits in range(1, 9)):
        codes = all_codes(t).astype(np.int64)
        expected = sum((2 * (codes >> i & 1) - 1) * 2**i for i in range(t.bits))
        np.testing.assert_array_equal(t.decode(all_codes(t)), expected)


def test_shapes_are_kept():
    codes = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert dtypes.uint4.decode(codes).shape == (3, 4)
    np.testing.assert_array_equal(dtypes.uint4.encode(codes.T.astype(np.float32)), codes.T)
    assert dtypes.uint4.encode(3.0).shape == ()
    assert dtypes.uint4.encode([]).shape == (0,)
    assert dtypes.uint4.decode(np.zeros((0, 2), np.uint8)).shape == (0, 2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: dtype("int9"), ValueError, "there is no type 'int9'; allowed are int1 to int8"),
        (lambda: dtype(np.float32), TypeError, "name: expected a name such as 'int6' or a DType, got type"),
        (
            lambda: dtypes.int4.decode(np.array([3, 16], np.uint8)),
            ValueError,
            "codes of int4 must be 0 to 15; found 16",
        ),
        (lambda: dtypes.int4.decode([-1]), ValueError, "codes of int4 must be 0 to 15; found -1"),
        (lambda: dtypes.int4.decode([1.0]), TypeError, "codes must be an array of uint8; found float64"),
        (lambda: dtypes.f16.decode([1]), TypeError, "f16 has no codes"),
        (lambda: dtypes.int4.encode([[0.0, np.nan]]), ValueError, r"values must not be NaN.*found NaN at \(0, 1\)"),
        (lambda: dtypes.int4.encode([True]), TypeError, "values must be an array of float16.*found bool"),
        (lambda: dtypes.int4.encode([1j]), TypeError, "values must be an array of float16.*found complex128"),
        (lambda: dtypes.int4.encode(["1"]), TypeError, "values must be an array of float16"),
        (lambda: dtypes.bf16.encode([1.0]), TypeError, "bf16 has no codes"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, LowlpError)


def test_encode_takes_bfloat16():
    values = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    np.testing.assert_array_equal(dtypes.f4e2m1.encode(values), [3, 12])


def test_ragged_lists_are_refused() -> None:
    for name, method in (("values", dtype("int6").encode), ("codes", dtype("int6").decode)):
        with pytest.raises(LowlpValueError, match=f"{name} must be an array: "):
            method([[1], [1, 2]])


def test_one_code_gives_an_array() -> None:
    assert isinstance(dtype("int6").decode(5), np.ndarray)
    assert isinstance(dtype("int6").encode(5.0), np.ndarray)


def test_errors_name_the_argument_and_stay_short() -> None:
    with pytest.raises(LowlpValueError, match=r"^name: there is no type 'f{37}\.\.\.';") as caught:
        dtype("f" * 10**6)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("e3m2", "; did you mean 'f6e3m2'?"),
        ("INT4", "; did you mean 'int4'?"),
        ("uitn3", "; did you mean 'uint3' or 'int3'?"),
        ("mxpf4", "; did you mean 'mxfp4'?"),
        ("int9", "f16, bf16 and f32"),
    ],
)
def test_a_misspelt_name_gets_the_near_ones_of_its_digits(name: str, meant: str) -> None:
    with pytest.raises(LowlpValueError) as caught:
        dtype(name)
    assert str(caught.value).endswith(meant)
