"""Integers: arithmetic, comparisons, reductions, casts and bits; the results are to be those of the CPU target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import lowlp
from cases.case import Case
from lowlp import language as ll

SIZE = 128
LAYOUT = lowlp.local(2).spatial(32).local(2)
Body = Callable[[ll.Tile, ll.Tile], Sequence[ll.Tile]]


def row_kernel(name: str, body: Body, dtype: str, rows: int, out: str) -> ll.Kernel:
    """y[i] = tile i of those that the body makes of a and b; all have 128 elements."""

    def kernel_body(a: ll.Pointer, b: ll.Pointer, y: ll.Pointer) -> None:
        tiles = [ll.load_global(ll.view_global(p, shape=[SIZE]), offsets=[0], layout=LAYOUT) for p in (a, b)]
        view = ll.view_global(y, shape=[rows, SIZE])
        for row, tile in enumerate(body(*tiles)):
            ll.store_global(tile, view, offsets=[row, 0])

    parameters = {"a": ll.pointer(dtype), "b": ll.pointer(dtype), "y": ll.pointer(out)}
    return ll.make_kernel(kernel_body, name=name, parameters=parameters, grid=(1,), num_threads=32)


def numbers(dtype: str, seed: int) -> np.ndarray:
    """Numbers of all sizes, the smallest and the largest among them."""
    random = np.random.default_rng(seed)
    if dtype == "f32":
        values = (random.normal(size=SIZE) * np.exp2(random.uniform(-2, 34, SIZE))).astype(np.float32)
        values[:8] = (0.5, 1.5, 2.5, -0.5, np.nan, np.inf, -np.inf, 2.0**31)
        return values
    info = np.iinfo(dtype)
    wide = random.integers(info.min, info.max, SIZE, dtype=np.int64, endpoint=True)
    shifted = wide >> random.integers(0, info.bits, SIZE)
    shifted[:6] = (info.min, info.max, 0, 1, info.max - 1, info.max // 2 + 1)
    return shifted.astype(dtype)


def signed(array: np.ndarray) -> np.ndarray:
    """The same bits as signed integers, which every PyTorch has."""
    return array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array


def row_case(name: str, body: Body, dtype: str, out: str, rows: int, arch: str) -> Case:
    kernel = row_kernel(name, body, dtype, rows, out)
    arguments: dict[str, Any] = {"a": numbers(dtype, 1), "b": numbers(dtype, 2)}
    arguments["y"] = np.zeros((rows, SIZE), "f4" if out == "f32" else out)
    kernel(*arguments.values())
    wanted = arguments["y"].copy()
    arguments = {key: signed(value) for key, value in arguments.items()}
    return Case(name, lowlp.compile(kernel, arch), arguments, "y", signed(wanted), 0.0)


def arithmetic(a: ll.Tile, b: ll.Tile) -> list[ll.Tile]:
    chosen = [ll.where(mask, a, b) for mask in (a < b, a <= b, a > b, a >= b, ll.equal(a, b), ll.not_equal(a, b))]
    return [a + b, a - b, a * b, ll.minimum(a, b), ll.maximum(a, b), a + 5, *chosen]


def dimensions(a: ll.Tile, b: ll.Tile) -> list[ll.Tile]:
    index = ll.iota(0, layout=LAYOUT, dtype=a.dtype)
    return [index, *(reduce(a, 0, keep_dims=True) + index for reduce in (ll.sum, ll.max, ll.min))]


def casts(target: str) -> Body:
    """a as other types, and as `target` again."""
    types = ("int8", "uint4", "int16", "uint16", "int32", "uint32", "f16", "bf16", "f32", "f6e3m2")
    return lambda a, b: [ll.cast(ll.cast(a, middle), target) for middle in types]


def bits(a: ll.Tile, b: ll.Tile) -> list[ll.Tile]:
    counts = [ll.cast(count(a), a.dtype) for count in (ll.popcount, ll.count_leading_zeros)]
    divisor = b | 1
    return [a & b, a | b, a ^ b, ~a, a << (b & 31), a >> (b & 31), a << b, a >> b, a // divisor, a % 7, *counts]


def narrow_bits(dtype: str) -> Body:
    """As `bits`, of elements that are packed."""

    def body(a: ll.Tile, b: ll.Tile) -> list[ll.Tile]:
        x, y = ll.cast(a & 31, dtype), ll.cast(b & 31, dtype)
        tiles = (x & y, x | y, x ^ y, ~x, x << y, x >> y, ll.popcount(x), ll.count_leading_zeros(y))
        return [ll.cast(tile, "int32") for tile in tiles]

    return body


def funnel_shifts(a: ll.Tile, b: ll.Tile) -> list[ll.Tile]:
    amount = ll.iota(0, layout=LAYOUT, dtype=a.dtype) % 40
    return [
        ll.funnel_shift(a, b, amount, direction=direction, clamp=clamp)
        for direction in ("left", "right")
        for clamp in (False, True)
    ]


def cases(arch: str) -> Iterator[Case]:
    for dtype in ("int16", "uint16", "int32", "uint32"):
        yield row_case(f"arithmetic_{dtype}", arithmetic, dtype, dtype, 12, arch)
        yield row_case(f"bits_{dtype}", bits, dtype, dtype, 12, arch)
        yield row_case(f"casts_{dtype}_int32", casts("int32"), dtype, "int32", 10, arch)
        yield row_case(f"casts_{dtype}_f32", casts("f32"), dtype, "f32", 10, arch)
    for dtype in ("int32", "uint32"):
        yield row_case(f"dimensions_{dtype}", dimensions, dtype, dtype, 4, arch)
        yield row_case(f"funnel_shifts_{dtype}", funnel_shifts, dtype, dtype, 4, arch)
    for dtype in ("int3", "uint5", "int8"):
        yield row_case(f"bits_{dtype}", narrow_bits(dtype), "int32", "int32", 8, arch)
    yield row_case("casts_f32_uint32", casts("uint32"), "f32", "uint32", 10, arch)
