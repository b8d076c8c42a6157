"""Codec: what it prints, when two are equal, which compute types hold its values, and what goes together."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from codec_samples import CODE_TYPES, TABLES, random_tensor
from hypothesis import given
from hypothesis import strategies as st

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.codec import COMPUTE_TYPES, Codec, Table, prescale_of
from lowlp.numeric.dtypes import dtype


def in_type(values: Any, compute: str) -> bool:
    """Whether the type holds each of these float64 numbers, by numpy's and ml_dtypes' own conversions."""
    if compute == "int8":
        return bool(np.all((values == np.rint(values)) & (values >= -128) & (values <= 127)))
    kind: Any = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn}[compute]
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.all(values.astype(kind).astype(np.float64) == values))


def powers_that_serve(values: Any, compute: str) -> list[int]:
    return [p for p in range(-150, 160) if in_type(np.ldexp(values.astype(np.float64), p), compute)]


def check_prescale(found: float | None, values: Any, compute: str) -> None:
    powers = powers_that_serve(values, compute)
    assert found == (2.0 ** min(powers, key=abs) if powers else None)


@pytest.mark.parametrize("compute", COMPUTE_TYPES)
@pytest.mark.parametrize("t", CODE_TYPES, ids=str)
def test_prescale_of_every_type(t: Any, compute: str) -> None:
    codec = Codec(t, 128)
    values = codec.values()
    check_prescale(codec.prescale(compute), values[np.isfinite(values)], compute)
    assert (compute in codec.exact_in) == (codec.prescale(compute) is not None)


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=4),
    st.sampled_from(COMPUTE_TYPES),
)
def test_prescale_of_any_numbers(numbers: list[float], compute: str) -> None:
    # Up to 2^60, so that all powers that serve are tried; larger numbers in the next test.
    values = np.array([x for x in numbers if x == 0 or 2.0**-60 < abs(x) < 2.0**60] or [0.0])
    if not values.any():
        assert prescale_of(values, compute) == 1.0
    else:
        check_prescale(prescale_of(values, compute), values, compute)


@given(
    st.lists(st.integers(-300, 300), min_size=1, max_size=4),
    st.integers(-100, 100),
    st.sampled_from(COMPUTE_TYPES),
)
def test_prescale_of_whole_numbers_times_a_power(numbers: list[int], power: int, compute: str) -> None:
    values = np.ldexp(np.array(numbers, np.float64), power)
    if values.any():
        check_prescale(prescale_of(values, compute), values, compute)


def test_extremes() -> None:
    largest = {"f6e3m2": 28, "f6e2m3": 7.5, "f4e2m1": 6, "f7e4m2": 448, "f7e5m1": 98304}
    for name, value in largest.items():
        values = Codec(dtype(name), 32).values()
        assert np.isfinite(values).all()
        assert values.max() == value
    # Too large for f16 as it is, and exact as its half.
    assert Codec(dtype("f7e5m1"), 32).prescale("f16") == 0.5


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        ({"dtype": "int6", "scales": np.ones((4, 2), np.float16), "group_size": 4}, "int6 g4 f16"),
        ({"dtype": "f6e3m2", "scales": np.ones((4, 1), ml_dtypes.bfloat16)}, "f6e3m2 channel bf16"),
        (
            {
                "dtype": "int2",
                "scales": np.ones((1, 1), np.float32),
                "group_size": "tensor",
                "zeros": np.ones((1, 1), int),
            },
            "int2 tensor f32 zeros:int16",
        ),
        (
            {"dtype": "uint3", "scales": np.ones((4, 1), np.float16), "offsets": np.ones((4, 1), np.float32)},
            "uint3 channel f16 offsets:f32",
        ),
        (
            {"dtype": "f4e2m1", "scales": np.ones((4, 2), ml_dtypes.float8_e4m3fn), "group_size": 4, "scale2": 0.5},
            "f4e2m1 g4 e4m3 scale2",
        ),
        ({"lut": [0, 1, 2, 4], "scales": np.ones((4, 1), ml_dtypes.float8_e8m0fnu)}, "lut2:f32:553820e7 channel e8m0"),
        ({"lut": np.ones((4, 2), np.float16), "scales": np.ones((4, 1), np.float16)}, "lut1:f16:channel channel f16"),
    ],
)
def test_prints_all_fields(tensor: dict[str, Any], text: str) -> None:
    codec = lowlp.QuantizedTensor(np.zeros((4, 8), np.uint8), **tensor).codec
    assert str(codec) == text


@given(
    st.sampled_from(CODE_TYPES),
    st.sampled_from(["f16", "e8m0", "e4m3"]),
    st.sampled_from(["", "integer zeros", "offsets", "scale2"]),
    st.sampled_from(TABLES),
    st.sampled_from(["", "channel", "tensor"]),
)
def test_equal_where_the_fields_are(t: Any, scale: str, extra: str, table: str, group: str) -> None:
    def codec(rows: int) -> Codec:
        q = random_tensor(
            np.random.default_rng(1), t, rows, 2, 4, scale, extra, "" if table == "tensor" else table, group
        )
        return q.codec

    first, second = codec(2), codec(2)
    assert first == second
    assert hash(first) == hash(second)
    assert first != Codec(first.code, 5, first.scale, first.zeros, first.offsets, first.scale2)


def test_tables_are_equal_by_their_values() -> None:
    def codec(values: Any) -> Codec:
        return lowlp.QuantizedTensor(np.zeros((1, 4), np.uint8), lut=values, scales=np.ones((1, 1), np.float32)).codec

    table = lowlp.nf(3)
    assert codec(table) == codec(table.copy())
    assert codec(table) != codec(table.astype(np.float16))
    other = table.copy()
    other[3] = 0.25
    assert codec(table) != codec(other)
    assert str(codec(table)) != str(codec(other))
    np.testing.assert_array_equal(codec(table).values(), table)


def test_tables_of_groups_are_known_to_the_tensor() -> None:
    tables = np.array([[1, 2, 3, 4], [5, 6, 7, 300]], np.float32)
    q = lowlp.QuantizedTensor(np.zeros((2, 4), np.uint8), lut=tables, scales=np.ones((2, 1), np.float16))
    with pytest.raises(LowlpValueError, match="codec: lut2:f32:channel channel f16 has a table for each channel; the"):
        q.codec.prescale("f16")
    assert q.prescale("f16") == 1.0
    assert q.prescale("int8") is None


def test_is_immutable() -> None:
    with pytest.raises(AttributeError):
        Codec(dtype("int4"), 32).group = 64  # type: ignore[misc]


@pytest.mark.parametrize(
    "codec",
    [
        Codec(dtype("uint4"), 32, "e4m3", zeros="int8", scale2=True),
        Codec(Table(2, "f16", "tensor", (-1, 0, 1 / 3, 2)), "channel"),
        Codec(Table(12, "f32", "group"), 64, "f32", offsets="f16"),
        Codec.codes_alone(dtype("bipolar2")),
    ],
    ids=str,
)
def test_is_pickled_and_copied(codec: Codec) -> None:
    for again in (pickle.loads(pickle.dumps(codec)), copy.deepcopy(codec), Codec.parse(codec.text)):
        assert (again, hash(again), str(again)) == (codec, hash(codec), str(codec))
        assert again.code == codec.code


def test_a_code_is_a_type_or_a_table() -> None:
    with pytest.raises(LowlpTypeError, match="code: expected a DType, a Table or Vectors, got str"):
        Codec("int4", 32)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"code": dtype("f16")}, r"dtype: f16 has 16 bits; a code has 1\.\.8"),
        ({"group": 0}, "group: must be a positive int, 'channel' or 'tensor', got 0"),
        ({"group": "row"}, "group: must be a positive int, 'channel' or 'tensor', got 'row'"),
        ({"scale": "f64"}, "scale: must be one of f16, bf16, f32, e8m0, e4m3, got 'f64'"),
        ({"scale": None}, "scale: must be one of .*, got None"),
        ({"zeros": "int32"}, "zeros: must be one of int8, .* got 'int32'"),
        ({"offsets": "int8"}, "offsets: must be one of f16, bf16, f32, got 'int8'"),
        ({"zeros": "f16", "offsets": "f16"}, "zeros, offsets: at most one of them may be given, got both"),
        ({"scale2": True, "offsets": "f16"}, "scale2, offsets: at most one of them may be given, got both"),
        ({"code": dtype("bipolar2"), "zeros": "int8"}, "zeros: allowed for integer types only, got dtype bipolar2"),
        ({"code": Table(1, "f16", "group"), "zeros": "int8"}, "zeros: allowed for .*, got dtype 1-bit table; use off"),
    ],
)
def test_refuses_what_does_not_go_together(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        Codec(**{"code": dtype("int4"), "group": 32, **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((0, "f16", "group"), r"bits: must be in 1\.\.16, got 0"),
        ((4, "bf16", "group"), "element: must be one of f16, f32, got 'bf16'"),
        ((4, "f16", "row"), "scope: must be one of tensor, channel, group, got 'row'"),
        ((1, "f16", "group", (0.0, 1.0)), "entries: given for the scope 'tensor' only, got the scope 'group'"),
        ((1, "f16", "tensor", (0.0, float("inf"))), "entries: must be finite"),
        ((2, "f16", "tensor", (0.0, 1.0)), "entries: expected 4 of 2 bits, got 2"),
    ],
)
def test_refuses_tables(fields: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        Table(*fields)


def test_compute_type_must_be_one() -> None:
    with pytest.raises(LowlpValueError, match="compute: must be one of f16, bf16, int8, f8e4m3, got 'f32'"):
        Codec(dtype("int4"), 32).prescale("f32")
