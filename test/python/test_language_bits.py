"""Bits and quotients of tiles of integers on the CPU target, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from integer_kernels import LAYOUT, SIZE, WIDE, numbers, random, run
from refused_kernels import refused

import lowlp
from lowlp import language as ll
from lowlp.errors import CpuTargetError

NARROW = ("int1", "uint1", "int3", "uint3", "int4", "uint6", "int8", "uint8")


def width_of(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


def to_numbers(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Codes of a type as int64."""
    width = width_of(dtype)
    unsigned = codes.astype(np.int64) & ((1 << width) - 1)
    return unsigned if dtype.startswith("u") else unsigned - ((unsigned >> (width - 1)) << width)


def run_narrow(body: Callable[..., ll.Tile], dtype: str, *codes: np.ndarray) -> np.ndarray:
    """The results, cast to int32, of the body on tiles of a type of any width, made of these codes."""

    def widened(*tiles: ll.Tile) -> ll.Tile:
        return ll.cast(body(*(ll.cast(tile, dtype) for tile in tiles)), "int32")

    inputs = [to_numbers(code, dtype).astype(np.int32) for code in codes]
    return run(widened, *inputs, dtypes=("int32", "int32"), out="int32").astype(np.int64)


def codes_of(dtype: str) -> np.ndarray:
    return random.integers(0, 1 << width_of(dtype), SIZE)


def wrap(values: np.ndarray, dtype: str) -> np.ndarray:
    return to_numbers(values, dtype)


@pytest.mark.parametrize("dtype", [*NARROW, *WIDE])
def test_bits(dtype: str) -> None:
    operations: list[tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = [
        (lambda a, b: a & b, np.bitwise_and),
        (lambda a, b: a | b, np.bitwise_or),
        (lambda a, b: a ^ b, np.bitwise_xor),
        (lambda a, b: ~a, lambda a, b: ~a),
    ]
    a, b = codes_of(dtype), codes_of(dtype)
    if dtype == "uint32":  # which does not pass through int32
        a, b = a >> 1, b >> 1
        operations.pop()
    for block, host in operations:
        wanted = wrap(host(a, b), dtype)
        np.testing.assert_array_equal(run_narrow(block, dtype, a, b), wanted)


@pytest.mark.parametrize("dtype", [*NARROW, *WIDE])
def test_shifts(dtype: str) -> None:
    width = width_of(dtype)
    a = codes_of(dtype)
    if dtype == "uint32":
        a >>= 1
    b = random.integers(0, min(1 << (width - (dtype == "uint32")), 2 * width + 2), SIZE)
    values = to_numbers(a, dtype)
    amounts = np.minimum(b, 40)  # of int64, whose shifts are defined up to 63
    left = wrap(values << amounts, dtype)
    right = values >> amounts
    np.testing.assert_array_equal(run_narrow(lambda x, n: x >> n, dtype, a, b), right)
    fits = (left >= 0) if dtype == "uint32" else np.ones(SIZE, bool)
    fits &= left < 2**31
    np.testing.assert_array_equal(run_narrow(lambda x, n: x << n, dtype, a, b)[fits], left[fits])


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_an_amount_is_read_without_a_sign(dtype: str) -> None:
    a, amount = numbers(dtype), np.full(SIZE, -1, dtype)
    left = run(lambda x, n: x << n, a, amount, dtypes=(dtype, dtype), out=dtype)
    right = run(lambda x, n: x >> n, a, amount, dtypes=(dtype, dtype), out=dtype)
    np.testing.assert_array_equal(left, np.zeros_like(a))
    np.testing.assert_array_equal(right, np.where(a < 0, -1, 0).astype(dtype))


@pytest.mark.parametrize("dtype", [*NARROW, *WIDE])
def test_counts(dtype: str) -> None:
    width = width_of(dtype)
    a = codes_of(dtype)
    a[:2] = 0, 1
    if dtype == "uint32":
        a >>= 1
    ones = np.array([bin(code).count("1") for code in a.tolist()])
    zeros = np.array([width - code.bit_length() for code in a.tolist()])
    np.testing.assert_array_equal(run_narrow(ll.popcount, dtype, a), ones)
    np.testing.assert_array_equal(run_narrow(ll.count_leading_zeros, dtype, a), zeros)


@pytest.mark.parametrize("direction", ["left", "right"])
@pytest.mark.parametrize("clamp", [False, True])
def test_funnel_shift(direction: str, clamp: bool) -> None:
    low, high = numbers("uint32"), numbers("uint32")
    amount = np.arange(SIZE, dtype=np.uint32) % 70
    both = high.astype(np.uint64) << np.uint64(32) | low
    steps = (np.minimum(amount, 32) if clamp else amount % 32).astype(np.uint64)
    if direction == "left":
        wanted = np.array([int(x) << int(n) >> 32 & 0xFFFFFFFF for x, n in zip(both, steps, strict=True)])
    else:
        wanted = np.array([int(x) >> int(n) & 0xFFFFFFFF for x, n in zip(both, steps, strict=True)])

    def body(x, y):
        step = ll.iota(0, layout=LAYOUT, dtype="uint32") % 70
        return ll.funnel_shift(x, y, step, direction=direction, clamp=clamp)

    found = run(body, low, high, dtypes=("uint32", "uint32"), out="uint32")
    np.testing.assert_array_equal(found, wanted.astype(np.uint32))


@pytest.mark.parametrize("dtype", WIDE)
def test_quotients_round_down(dtype: str) -> None:
    a, b = numbers(dtype), numbers(dtype)
    b[b == 0] = 3
    if not dtype.startswith("u"):
        a[-1], b[-1] = np.iinfo(dtype).min, -1
    with np.errstate(over="ignore"):
        quotient, rest = np.floor_divide(a, b), np.mod(a, b)
    quotient[-1:] = a[-1:] if not dtype.startswith("u") else quotient[-1:]  # wraps around
    np.testing.assert_array_equal(run(lambda x, y: x // y, a, b, dtypes=(dtype, dtype), out=dtype), quotient)
    np.testing.assert_array_equal(run(lambda x, y: x % y, a, b, dtypes=(dtype, dtype), out=dtype), rest)
    np.testing.assert_array_equal(run(lambda x: x // 7 + x % 7, a, dtypes=(dtype,), out=dtype), a // 7 + a % 7)


def test_division_by_zero_is_reported() -> None:
    a = numbers("int32")
    b = np.ones(SIZE, np.int32)
    run(lambda x, y: x // y, a, b, dtypes=("int32", "int32"), out="int32")
    b[5] = 0  # element 5 lies in thread 2
    with pytest.raises(CpuTargetError, match=r"lowlp\.floor_div at .*: division by zero.*thread \(2, 0, 0\)"):
        run(lambda x, y: x // y, a, b, dtypes=("int32", "int32"), out="int32")


def test_clamp_and_conditions() -> None:
    def body(x, y):
        inside = (x > -100) & (x < 100)
        outside = ~inside | ll.equal(y, 0)
        return ll.where(outside ^ (y > 5), ll.clamp(x, -1000, y), x & 0xFF)

    a, b = numbers("int32"), numbers("int32")
    inside = (a > -100) & (a < 100)
    condition = (~inside | (b == 0)) ^ (b > 5)
    wanted = np.where(condition, np.minimum(np.maximum(a, -1000), b), a & 0xFF)
    np.testing.assert_array_equal(run(body, a, b, dtypes=("int32", "int32"), out="int32"), wanted)


# --- errors -----------------------------------------------------------------------------------------------------------

TILE = lowlp.local(2, 1).spatial(8, 4).local(1, 2)


def test_what_is_refused() -> None:
    def floats(x, b, m, f):
        ll.full(1.0, "f32", layout=TILE) & 1  # here

    def inverse(x, b, m, f):
        ~ll.full(1.0, "f16", layout=TILE)  # here

    def narrow(x, b, m, f):
        ll.cast(ll.full(1, "int32", layout=TILE), "int8") // 2  # here

    def count(x, b, m, f):
        ll.popcount(ll.full(1.0, "f32", layout=TILE))  # here

    def funnel(x, b, m, f):
        tile = ll.full(1, "int16", layout=TILE)
        ll.funnel_shift(tile, tile, 3, direction="left")  # here

    def direction(x, b, m, f):
        tile = ll.full(1, "int32", layout=TILE)
        ll.funnel_shift(tile, tile, 3, direction="up")  # here

    def beyond(x, b, m, f):
        ll.cast(ll.full(1, "int32", layout=TILE), "uint4") & 16  # here

    def fraction(x, b, m, f):
        ll.cast(ll.full(1, "int32", layout=TILE), "uint4") & 0.5  # here

    def clamp(x, b, m, f):
        tile = ll.full(1, "int32", layout=TILE)
        ll.funnel_shift(tile, tile, 3, direction="left", clamp=1)  # here

    refused(floats, ll.KernelTypeError, "&: works on integers, but the tile holds f32; cast it first")
    refused(inverse, ll.KernelTypeError, "~: works on integers, but the tile holds f16; cast it first")
    refused(narrow, ll.KernelTypeError, "//: computes in int16, int32, uint16 or uint32, but the tile holds int8")
    refused(count, ll.KernelTypeError, "popcount: works on integers, but the tile holds f32")
    refused(funnel, ll.KernelTypeError, "funnel_shift: computes in int32 or uint32, but the tile holds int16")
    refused(direction, ll.KernelValueError, "direction: must be 'left' or 'right', found 'up'")
    refused(beyond, ll.KernelValueError, "&: uint4 holds numbers from 0 to 15, found 16")
    refused(fraction, ll.KernelTypeError, "&: must be an int for uint4, found float 0.5")
    refused(clamp, ll.KernelTypeError, "clamp: must be a bool, found 1")
