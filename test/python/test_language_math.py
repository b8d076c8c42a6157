"""Functions, comparisons and choices on tiles, run on the CPU target and compared with NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import lowlp
from lowlp import language as ll

SIZE = 96
LAYOUT = lowlp.local(3).spatial(32)
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
Array = npt.NDArray[np.float32]


def run(body: Callable[..., ll.Tile], *inputs: npt.NDArray, dtype: str = "f32") -> npt.NDArray:
    """What the body makes of tiles of the inputs, all of them 96 elements at a time."""

    def kernel_body(a, b, y, n):
        (bi,) = ll.block_indices()
        tiles = [
            ll.load_global(ll.view_global(pointer, shape=[n]), offsets=[bi * SIZE], layout=LAYOUT)
            for pointer in (a, b)[: len(inputs)]
        ]
        ll.store_global(ll.cast(body(*tiles), dtype), ll.view_global(y, shape=[n]), offsets=[bi * SIZE])

    parameters = {name: ll.pointer(dtype) for name in "aby"} | {"n": ll.i32}
    kernel = ll.make_kernel(
        kernel_body, name="kernel", parameters=parameters, grid=lambda n: (ll.ceildiv(n, SIZE),), num_threads=32
    )
    result = np.empty(inputs[0].size, DTYPES[dtype])
    arrays = [np.ascontiguousarray(data, DTYPES[dtype]) for data in inputs]
    kernel(arrays[0], arrays[-1], result, result.size)
    return result


def relative_error(actual: npt.NDArray, wanted: npt.NDArray) -> float:
    return float(np.max(np.abs(actual.astype(np.float64) - wanted) / np.abs(wanted)))


def spread(low: float, high: float, size: int = 9600) -> Array:
    """Numbers of both even and uneven last bits between the bounds."""
    return np.random.default_rng(1).uniform(low, high, size).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "x", "wanted", "bound"),
    [
        ("exp", spread(-87, 88.7), np.exp, 2.0**-21),
        ("exp2", spread(-126, 127.9), np.exp2, 2.0**-21),
        ("sqrt", np.exp2(spread(-126, 127)), np.sqrt, 2.0**-24),
        ("rsqrt", np.exp2(spread(-126, 127)), lambda x: 1 / np.sqrt(x), 2.0**-22),
        ("tanh", spread(-10, 10), np.tanh, 2.0**-20),
        ("tanh", np.exp2(spread(-40, 0)), np.tanh, 2.0**-20),
        ("log2", np.exp2(spread(1, 127)), np.log2, 2.0**-21),
        ("log2", np.exp2(spread(-126, -1)), np.log2, 2.0**-21),
    ],
)
def test_function_is_as_accurate_as_its_description_says(name, x, wanted, bound) -> None:
    assert relative_error(run(getattr(ll, name), x), wanted(x.astype(np.float64))) <= bound


def test_log2_near_one_has_a_small_absolute_error() -> None:
    x = spread(0.5, 2)
    assert np.max(np.abs(run(ll.log2, x) - np.log2(x.astype(np.float64)))) <= 2.0**-21


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["exp", "exp2", "sqrt", "rsqrt", "tanh", "log2"])
def test_function_of_16_bits_is_rounded_once(name: str, dtype: str) -> None:
    x = spread(0.01, 9).astype(DTYPES[dtype])
    wide = run(getattr(ll, name), x.astype(np.float32))
    assert np.array_equal(run(getattr(ll, name), x, dtype=dtype), wide.astype(DTYPES[dtype]))


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, -3e38, 3e38, 88.73, -104.0], np.float32)


@pytest.mark.parametrize("name", ["exp", "exp2", "sqrt", "tanh", "log2", "abs"])
def test_function_of_special_values(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(SPECIAL)
        actual = run(getattr(ll, name), SPECIAL)
    np.testing.assert_allclose(actual, wanted, rtol=2.0**-20, atol=2.0**-148)
    assert np.array_equal(np.signbit(actual[:2]), np.signbit(wanted[:2]))


def test_rsqrt_of_special_values() -> None:
    actual = run(ll.rsqrt, SPECIAL)[:6]
    assert np.array_equal(actual, np.array([np.inf, -np.inf, 0, np.nan, np.nan, 1], np.float32), equal_nan=True)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_extremes_and_absolute_values_are_exact(dtype: str) -> None:
    a = np.array([1, -2, np.nan, 3, -0.0, np.inf], DTYPES[dtype])
    b = np.array([2, -3, 1, np.nan, 0.0, -np.inf], DTYPES[dtype])
    with np.errstate(invalid="ignore"):
        low, high = np.minimum(a, b), np.maximum(a, b)
    assert np.array_equal(run(ll.minimum, a, b, dtype=dtype), low, equal_nan=True)
    assert np.array_equal(run(ll.maximum, a, b, dtype=dtype), high, equal_nan=True)
    assert np.signbit(run(ll.minimum, a, b, dtype=dtype)[4])
    assert not np.signbit(run(ll.maximum, a, b, dtype=dtype)[4])
    assert np.array_equal(run(lambda x: ll.maximum(-1.0, x), a, dtype=dtype), np.maximum(a, -1), equal_nan=True)
    assert np.array_equal(run(ll.abs, a, dtype=dtype), np.abs(a), equal_nan=True)


COMPARISONS: list[tuple[Callable[..., ll.Tile], Callable[..., npt.NDArray]]] = [
    (lambda a, b: a < b, np.less),
    (lambda a, b: a <= b, np.less_equal),
    (lambda a, b: a > b, np.greater),
    (lambda a, b: a >= b, np.greater_equal),
    (ll.equal, np.equal),
    (ll.not_equal, np.not_equal),
]


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("compare", "wanted"), COMPARISONS)
def test_comparison_gives_ones_and_zeros(compare, wanted, dtype: str) -> None:
    a, b = (side.ravel() for side in np.meshgrid([-1, -0.0, 0, 2, np.inf, np.nan], [-1, 0, 2, np.inf, np.nan]))
    assert np.array_equal(run(compare, a, b, dtype=dtype), wanted(a, b))


def test_comparison_with_a_number_on_either_side() -> None:
    x = np.array([-1, 0.5, 1], np.float32)
    assert run(lambda a: a > 0.5, x).tolist() == [0, 0, 1]
    half = 0.5
    assert run(lambda a: half <= a, x).tolist() == [0, 1, 1]
    assert run(lambda a: ll.equal(a, 0.5), x).tolist() == [0, 1, 0]


def test_where_chooses_tiles_and_numbers() -> None:
    a, b = spread(-1, 1, 300), spread(-1, 1, 300)[::-1]
    assert np.array_equal(run(lambda x, y: ll.where(x < y, x, y), a, b), np.minimum(a, b))
    assert np.array_equal(run(lambda x: ll.where(x < 0, 0.0, x), a), np.maximum(a, 0))
    assert np.array_equal(run(lambda x: ll.where(x < 0, x, 7.0), a), np.where(a < 0, a, np.float32(7)))


def test_where_chooses_codes() -> None:
    def body(x):
        low, high = ll.cast(x * 0.0 - 3.0, "int6"), ll.cast(x * 0.0 + 9.0, "int6")
        return ll.where(x < 0, low, high)

    a = spread(-1, 1, 300)
    assert np.array_equal(run(body, a), np.where(a < 0, np.float32(-3), np.float32(9)))


def test_power_of_codes() -> None:
    """LLVM makes a call of ldexpf of it."""
    x = np.arange(-32, 32, dtype=np.float32)
    assert np.array_equal(run(lambda tile: ll.exp2(ll.cast(ll.cast(tile, "int6"), "f32")), x), np.exp2(x))


def test_rescale_is_a_product() -> None:
    """In one block of three no factor is other than 1, so that its warp goes around the products."""
    x, factors = spread(-9, 9, 288), np.ones(288, np.float32)
    factors[[3, 200, 201, 280]] = 0.5, np.nan, -0.0, np.inf
    np.testing.assert_array_equal(run(ll.rescale, x, factors), x * factors)
