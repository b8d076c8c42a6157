"""Scales: rounded up, as OCP MX and as NVFP4 choose them; against searches through all values of a type."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.scale_types import SCALE_DTYPES, mx_scale, round_to_e4m3, round_up, scale_type

positive = st.floats(width=32, min_value=2.0**-140, max_value=2.0**120)
SMALL = {"e8m0": np.arange(0, 255, dtype=np.uint8), "e4m3": np.arange(1, 127, dtype=np.uint8)}


def values_of(kind: str) -> list[Fraction]:
    """All positive values of a small scale type, ascending."""
    return sorted(Fraction(float(v)) for v in SMALL[kind].view(SCALE_DTYPES[kind]).astype(np.float32))


@given(positive, st.sampled_from(list(SMALL)))
def test_round_up_in_small_types(exact: float, kind: str) -> None:
    every = values_of(kind)
    x = Fraction(exact)
    if x > every[-1] * (1 + Fraction(1, 2**23)):
        with pytest.raises(LowlpValueError, match=f"scale_dtype: a scale of .* is out of range of {kind}; make the"):
            round_up(np.array([exact], np.float32), kind)
        return
    found = Fraction(float(round_up(np.array([exact], np.float32), kind).astype(np.float32)[0]))
    # The least value that is not smaller, where float32's noise is forgiven.
    least = min((v for v in every if v >= x), default=every[-1])
    noisy = min((v for v in every if v >= x * (1 - Fraction(1, 2**21))), default=every[-1])
    assert found in (least, noisy)
    assert found >= x * (1 - Fraction(1, 2**21))


@pytest.mark.parametrize("kind", list(SMALL))
def test_scales_of_the_type_stay(kind: str) -> None:
    exact = np.array([float(v) for v in values_of(kind)], np.float32)
    np.testing.assert_array_equal(round_up(exact, kind).astype(np.float32), exact)
    noise = np.nextafter(exact[10:], np.float32(np.inf))
    np.testing.assert_array_equal(round_up(noise, kind).astype(np.float32), exact[10:])


@given(st.floats(width=32, min_value=2.0**-20, max_value=1000))
def test_round_to_e4m3_is_the_nearest(exact: float) -> None:
    found = float(round_to_e4m3(np.array([exact], np.float32)).astype(np.float32)[0])
    every = [float(v) for v in values_of("e4m3")]
    assert abs(found - exact) == min(abs(v - exact) for v in every)


@pytest.mark.parametrize("code", ["f4e2m1", "f6e2m3", "f6e3m2", "f8e4m3", "f8e5m2", "int8"])
@given(largest=positive)
def test_mx_scale_is_the_specification(code: str, largest: float) -> None:
    """Section 6.3: the largest power of two at most max|w|, over the largest power of two of the type; MXINT8 has 1 as
    that, in numbers of 2^-6 a code."""
    numbers = [Fraction(2) ** p for p in range(-160, 140)]
    highest = Fraction(float(dtype(code).max))
    of_type = max(p for p in numbers if p <= highest)
    exact = max(p for p in numbers if p <= Fraction(largest)) / of_type
    clamped = min(max(exact, Fraction(2) ** -127), Fraction(2) ** 127)
    found = mx_scale(np.array([largest], np.float32), code)
    assert found.dtype == ml_dtypes.float8_e8m0fnu
    assert Fraction(float(found.astype(np.float32)[0])) == clamped


def test_mx_scale_of_zeros_is_one() -> None:
    assert mx_scale(np.zeros(1, np.float32), "f4e2m1").astype(np.float32) == 1


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("f16", "f16"),
        ("bfloat16", "bf16"),
        (dtype("f32"), "f32"),
        ("e8m0", "e8m0"),
        ("float8_e8m0fnu", "e8m0"),
        ("e4m3", "e4m3"),
        ("float8_e4m3fn", "e4m3"),
        ("f8e4m3", "e4m3"),
        (dtype("f8e4m3"), "e4m3"),
    ],
)
def test_names(value: Any, name: str) -> None:
    assert scale_type(value) == name


def test_other_names_are_refused() -> None:
    with pytest.raises(LowlpValueError, match="scale_dtype: must be one of f16, bf16, f32, e8m0, e4m3, got 'e5m2'"):
        scale_type("e5m2")
    with pytest.raises(LowlpValueError, match=r"scale_dtype: must be one of .*, got 'f8e5m2'"):
        scale_type(dtype("f8e5m2"))
    with pytest.raises(LowlpTypeError, match="scale_dtype: expected a name such as 'int6' or a DType, got NoneType"):
        scale_type(None)
