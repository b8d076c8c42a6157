"""Tables: NormalFloat by its definition, the nearest entry with exact ties, and every refusal."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.array_ops import NumpyOps
from lowlp.numeric.lookup_tables import table_of
from lowlp.weights.quantize.nearest_codes import TableEncoder

# The constants of bitsandbytes' NF4 (functional.py, get_4bit_type).
BITSANDBYTES_NF4 = [
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
]  # fmt: skip


def quantile(p: float) -> float:
    """The x with probability p below it, by halving: the normal distribution from math.erfc."""
    low, high = -9.0, 9.0
    for _ in range(80):
        middle = (low + high) / 2
        if math.erfc(-middle / math.sqrt(2)) / 2 < p:
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize("bits", range(2, 9))
def test_normal_float_is_its_definition(bits: int) -> None:
    delta = 0.5 * (1 / 30 + 1 / 32)
    lower, upper = np.linspace(delta, 0.5, 2 ** (bits - 1)), np.linspace(0.5, 1 - delta, 2 ** (bits - 1) + 1)
    probabilities = [*lower, *upper[1:]]
    assert len(probabilities) == 2**bits
    quantiles = np.array([quantile(p) for p in probabilities])
    table = lowlp.nf(bits)
    assert (table.dtype, table.shape) == (np.float32, (2**bits,))
    np.testing.assert_allclose(table, quantiles / quantiles[-1], rtol=2.0**-23, atol=1e-15)
    assert (table[0], table[2 ** (bits - 1) - 1], table[-1]) == (-1, 0, 1)
    assert np.all(np.diff(table) > 0)


def test_four_bits_differ_from_bitsandbytes_by_noise() -> None:
    difference = np.abs(lowlp.nf(4) - np.array(BITSANDBYTES_NF4, np.float32))
    assert np.count_nonzero(difference) == 12
    assert 0 < difference.max() < 2e-7


@pytest.mark.parametrize(
    ("b", "error", "message"),
    [
        (1, LowlpValueError, r"b: must be in 2\.\.8, got 1"),
        (9, LowlpValueError, r"b: must be in 2\.\.8, got 9"),
        (4.0, LowlpTypeError, "b: expected an int, got 4.0"),
        (True, LowlpTypeError, "b: expected an int, got True"),
    ],
)
def test_normal_float_refuses(b: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lowlp.nf(b)


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.data(), st.integers(1, 4), st.sampled_from(["tensor", "channel", "group"]))
def test_nearest_entry(data: st.DataObject, bits: int, scope: str) -> None:
    """In exact arithmetic, for arbitrary tables and numbers, with numbers placed on the midpoints and beside them."""
    rows, groups, size = 2, 2, 4
    shape = {"tensor": (), "channel": (rows,), "group": (rows, groups)}[scope]
    count = int(np.prod(shape))
    entries = data.draw(st.lists(finite, min_size=count << bits, max_size=count << bits))
    table = np.array(entries, np.float32).reshape(*shape, 1 << bits)
    numbers = np.array(data.draw(st.lists(finite, min_size=16, max_size=16)), np.float32)
    # Midpoints of two entries of the first table, and their neighbours.
    first = table.reshape(-1, 1 << bits)[0].astype(np.float64)
    middle = np.float32((first[0] + first[-1]) / 2)
    numbers[:3] = middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))
    numbers = np.where(np.isfinite(numbers), numbers, np.float32(0)).reshape(rows, groups, size)
    codes = TableEncoder(NumpyOps(), table).encode(numbers.copy(), slice(0, rows), None)
    for index in np.ndindex(numbers.shape):
        place = index[: len(shape)]
        values = [Fraction(float(v)) for v in table[place]]
        x = Fraction(float(numbers[index]))
        least = min(abs(v - x) for v in values)
        # Of the nearest entries the lowest value, and of its codes the lowest.
        wanted = min((v, code) for code, v in enumerate(values) if abs(v - x) == least)[1]
        assert codes[index] == wanted


@pytest.mark.parametrize("bits", range(1, 9))
def test_every_entry_has_its_own_code(bits: int) -> None:
    table = np.random.default_rng(bits).permutation(np.linspace(-3, 5, 1 << bits)).astype(np.float32)
    codes = TableEncoder(NumpyOps(), table).encode(table[None, None], slice(0, 1), None)
    np.testing.assert_array_equal(codes[0, 0], np.arange(1 << bits))


@pytest.mark.parametrize(
    ("lut", "error", "message"),
    [
        (np.zeros(17, np.float32), LowlpValueError, r"lut: expected shape \[2\*\*b\], .* with b in 1\.\.8, got \[17\]"),
        (np.zeros(512, np.float32), LowlpValueError, r"lut: expected shape .* got \[512\]"),
        (np.zeros((2, 0), np.float32), LowlpValueError, r"lut: expected shape .* got \[2, 0\]"),
        (np.float32(1), LowlpValueError, r"lut: expected shape .* got \[\]"),
        (np.zeros((1, 1, 1, 4), np.float32), LowlpValueError, r"lut: expected shape .* got \[1, 1, 1, 4\]"),
        (np.zeros(4), LowlpTypeError, "lut: expected elements of float16 or float32, got float64"),
        (np.zeros(4, int), LowlpTypeError, "lut: expected elements of float16 or float32, got int64"),
        (["a", "b"], LowlpTypeError, "lut: expected an array or a list of numbers, got "),
        ("nf4", LowlpTypeError, "lut: expected a numpy array or a torch tensor on the CPU, got str"),
        ([0.0, math.nan], LowlpValueError, r"lut: must be finite, got nan at \[1\]"),
        (np.array([[0, 1], [np.inf, 0]], np.float16), LowlpValueError, r"lut: must be finite, got inf at \[1, 0\]"),
        ([0.0, 1e300], LowlpValueError, r"lut: must be finite, got inf at \[1\]"),
    ],
)
def test_refuses_tables(lut: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        table_of(lut)
