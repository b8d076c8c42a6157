"""Tiles of integers of 16 and 32 bits on the CPU target, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from integer_kernels import LAYOUT, SIZE, WIDE, numbers, numpy_type, random, run
from refused_kernels import refused

import lowlp
from lowlp import language as ll
from lowlp.errors import LowlpTypeError


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", ["+", "-", "*", "minimum", "maximum", "<", "<=", ">", ">=", "==", "!="])
def test_arithmetic_and_comparisons(name: str, dtype: str) -> None:
    operations: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
        "+": (lambda a, b: a + b, np.add),
        "-": (lambda a, b: a - b, np.subtract),
        "*": (lambda a, b: a * b, np.multiply),
        "minimum": (ll.minimum, np.minimum),
        "maximum": (ll.maximum, np.maximum),
        "<": (lambda a, b: a < b, np.less),
        "<=": (lambda a, b: a <= b, np.less_equal),
        ">": (lambda a, b: a > b, np.greater),
        ">=": (lambda a, b: a >= b, np.greater_equal),
        "==": (ll.equal, np.equal),
        "!=": (ll.not_equal, np.not_equal),
    }
    block, host = operations[name]
    a, b = numbers(dtype), numbers(dtype)
    b[10:20] = a[10:20]
    wanted = host(a, b)
    if wanted.dtype == bool:
        found = run(lambda x, y: ll.cast(block(x, y), dtype), a, b, dtypes=(dtype, dtype), out=dtype)
    else:
        found = run(block, a, b, dtypes=(dtype, dtype), out=dtype)
    np.testing.assert_array_equal(found, wanted.astype(dtype))


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_sign(dtype: str) -> None:
    a = numbers(dtype)
    np.testing.assert_array_equal(run(lambda x: -x, a, dtypes=(dtype,), out=dtype), np.negative(a))
    np.testing.assert_array_equal(run(ll.abs, a, dtypes=(dtype,), out=dtype), np.abs(a))


@pytest.mark.parametrize("source", [*WIDE, "int8", "uint8"])
@pytest.mark.parametrize("target", [*WIDE, "int8", "uint8"])
def test_casts_between_integers_clamp(source: str, target: str) -> None:
    a = numbers(source)
    info = np.iinfo(target)
    wanted = np.clip(a.astype(np.int64), info.min, info.max).astype(target)
    np.testing.assert_array_equal(run(lambda x: ll.cast(x, target), a, dtypes=(source,), out=target), wanted)


@pytest.mark.parametrize("dtype", WIDE)
def test_casts_from_floats_round_to_even_and_clamp(dtype: str) -> None:
    info = np.iinfo(dtype)
    a = (random.normal(size=SIZE) * np.exp2(random.uniform(0, 34, SIZE))).astype(np.float32)
    a[:12] = (0.5, 1.5, 2.5, -0.5, -1.5, np.nan, np.inf, -np.inf, info.max, info.min, 2.0**31, -(2.0**31))
    whole = np.rint(np.where(np.isnan(a), 0, a).astype(np.float64))
    wanted = np.clip(whole, info.min, info.max).astype(dtype)
    np.testing.assert_array_equal(run(lambda x: ll.cast(x, dtype), a, dtypes=("f32",), out=dtype), wanted)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("target", ["f32", "f16"])
def test_casts_to_floats_round_once(dtype: str, target: str) -> None:
    a = numbers(dtype)
    with np.errstate(over="ignore"):
        wanted = a.astype(np.float64).astype(numpy_type(target))
    np.testing.assert_array_equal(run(lambda x: ll.cast(x, target), a, dtypes=(dtype,), out=target), wanted)


def test_an_integer_is_not_rounded_twice() -> None:
    # 2^30 (1 + 2^-8) lies midway between two numbers of bf16, and f32 would round what lies next to it onto it.
    a = np.full(SIZE, 2**30 + 2**22 + 1, np.int32)
    a[1::2] *= -1
    found = run(lambda x: ll.cast(x, "bf16"), a, dtypes=("int32",), out="bf16")
    assert set(np.abs(found.astype(np.float64))) == {2.0**30 * (1 + 2.0**-7)}


def test_numbers_and_index_scalars_meet_tiles_of_integers() -> None:
    def body(x):
        (bi,) = ll.block_indices()
        big = ll.full(2**32 - 1, "uint32", layout=LAYOUT)
        return ll.where(x < 5, x + 3, big) - (bi + 1)

    a = np.arange(SIZE, dtype=np.uint32)
    wanted = np.where(a < 5, a + 3, np.uint32(2**32 - 1)) - np.uint32(1)
    np.testing.assert_array_equal(run(body, a, dtypes=("uint32",), out="uint32"), wanted)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_iota_reductions_and_views(dtype: str) -> None:
    def body(x):
        index = ll.iota(0, layout=LAYOUT, dtype=dtype)
        halves = ll.view(x, dtype="int16", layout=lowlp.local(2).spatial(32).local(4))
        back = ll.view(halves, dtype=dtype, layout=LAYOUT)
        total, most, least = (reduce(back, 0, keep_dims=True) for reduce in (ll.sum, ll.max, ll.min))
        result = ll.where(index < 1, total, index)
        return ll.where(ll.equal(index, 1), most, ll.where(ll.equal(index, 2), least, result))

    a = numbers(dtype)
    wanted = np.arange(SIZE, dtype=dtype)
    wanted[:3] = (np.add.reduce(a, dtype=dtype), a.max(), a.min())
    np.testing.assert_array_equal(run(body, a, dtypes=(dtype,), out=dtype), wanted)


def test_shared_memory_holds_integers() -> None:
    def body(x):
        shared = ll.alloc_shared("int16", [SIZE])
        ll.store_shared(x, shared, offsets=[0])
        ll.synchronize()
        return ll.load_shared(shared, offsets=[0], layout=lowlp.spatial(32).local(4))

    def kernel_body(a, y):
        tile = ll.load_global(ll.view_global(a, shape=[SIZE]), offsets=[0], layout=LAYOUT)
        ll.store_global(body(tile), ll.view_global(y, shape=[SIZE]), offsets=[0])

    pointers = {"a": ll.pointer("int16"), "y": ll.pointer("int16")}
    kernel = ll.make_kernel(kernel_body, name="kernel", parameters=pointers, grid=(1,), num_threads=32)
    a, y = numbers("int16"), np.zeros(SIZE, np.int16)
    kernel(a, y)
    np.testing.assert_array_equal(y, a)


def test_arguments_have_the_width_and_either_sign() -> None:
    a = numbers("int32")
    unsigned = run(lambda x: x + 1, a.view(np.uint32), dtypes=("int32",), out="int32")
    np.testing.assert_array_equal(unsigned, a + np.int32(1))
    for wrong in (a.astype(np.int64), a.astype(np.int16), a.astype(np.float32)):
        with pytest.raises(LowlpTypeError, match="a: expected elements of type int32, got "):
            run(lambda x: x + 1, wrong, dtypes=("int32",), out="int32")


# --- errors -----------------------------------------------------------------------------------------------------------

TILE = lowlp.local(2, 1).spatial(8, 4).local(1, 2)


def whole(dtype: str = "int32") -> ll.Tile:
    return ll.full(0, dtype, layout=TILE)


def test_numbers_fit_the_tile() -> None:
    def large(x, b, m, f):
        whole("int16") + 2**15  # here

    def negative(x, b, m, f):
        whole("uint32") * -1  # here

    def fraction(x, b, m, f):
        whole() + 0.5  # here

    def scalar(x, b, m, f):
        whole() + f  # here

    refused(large, ll.KernelValueError, "+: int16 holds numbers from -32768 to 32767, found 32768")
    refused(negative, ll.KernelValueError, "*: uint32 holds numbers from 0 to 4294967295, found -1")
    refused(fraction, ll.KernelTypeError, "+: must be an int or an index scalar for int32, found float 0.5")
    refused(scalar, ll.KernelTypeError, "+: an index scalar fills tiles of integers, found an f32 scalar for int32")


def test_what_integers_cannot_do() -> None:
    def divide(x, b, m, f):
        whole() / 2  # here

    def negate(x, b, m, f):
        -whole("uint16")  # here

    def reduce(x, b, m, f):
        ll.sum(whole("int16"), 0)  # here

    def iota(x, b, m, f):
        ll.iota(0, layout=TILE, dtype="int16")  # here

    refused(divide, ll.KernelTypeError, "/: computes in f16, bf16 or f32, but the tile holds int32; cast it first")
    refused(negate, ll.KernelTypeError, "-: computes in f16, bf16, f32, int16 or int32, but the tile holds uint16")
    refused(reduce, ll.KernelTypeError, "sum: computes in f16, bf16, f32, int32 or uint32, but the tile holds int16")
    refused(iota, ll.KernelValueError, "dtype: must be one of f32, int32, uint32, found int16")
