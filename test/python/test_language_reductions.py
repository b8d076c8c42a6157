"""Reductions, broadcasts, transpositions and indices, run on the CPU target and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import lowlp
from lowlp import language as ll

MMA = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
LAYOUTS = [
    MMA,
    lowlp.spatial(4, 8),
    lowlp.local(3, 1).spatial(1, 32).local(1, 5),
    lowlp.column_spatial(8, 4).column_local(3, 4),
    lowlp.spatial(2, 1).local(1, 3).spatial(2, 2).local(2, 1).spatial(2, 2),
    lowlp.local(4, 2).spatial(32, 1),
    lowlp.spatial(2, 4, 4).local(3, 1, 2),
]
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def run(
    body: Callable[[ll.Tile], ll.Tile], x: npt.NDArray, layout: lowlp.Layout, shape: tuple[int, ...], dtype: str = "f32"
) -> npt.NDArray:
    """What the body makes of the tile `x`."""

    def kernel_body(x, y):
        tile = ll.load_global(ll.view_global(x, shape=layout.shape), offsets=[0] * layout.rank, layout=layout)
        result = body(tile)
        assert result.shape == shape
        ll.store_global(result, ll.view_global(y, shape=shape), offsets=[0] * len(shape))

    parameters = {"x": ll.pointer(dtype), "y": ll.pointer(dtype)}
    kernel = ll.make_kernel(
        kernel_body, name="kernel", parameters=parameters, grid=(1,), num_threads=layout.num_threads
    )
    result = np.empty(shape, DTYPES[dtype])
    kernel(np.ascontiguousarray(x, DTYPES[dtype]), result)
    return result


def numbers(shape: tuple[int, ...], dtype: str = "f32") -> npt.NDArray:
    """Small whole numbers, whose sums are exact."""
    return np.random.default_rng(1).integers(-20, 20, shape).astype(DTYPES[dtype])


@pytest.mark.sampled(30)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reduction_is_that_of_numpy(layout: lowlp.Layout, dim: int, keep_dims: bool, name: str) -> None:
    x = numbers(layout.shape)
    wanted = getattr(np, name)(x, axis=dim, keepdims=keep_dims)
    actual = run(lambda tile: getattr(ll, name)(tile, dim, keep_dims=keep_dims), x, layout, wanted.shape)
    assert np.array_equal(actual, wanted)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sum_of_16_bits_is_rounded_once(dtype: str) -> None:
    x = np.random.default_rng(2).uniform(0, 1, (16, 8)).astype(DTYPES[dtype])
    wide = run(lambda tile: ll.sum(tile, 1), x, MMA, (16,))
    assert np.array_equal(run(lambda tile: ll.sum(tile, 1), x, MMA, (16,), dtype), wide.astype(DTYPES[dtype]))


def test_sum_is_taken_in_the_order_of_the_layout() -> None:
    """Locals in order first, then lanes that differ by 1, then by 2."""
    x = np.random.default_rng(3).standard_normal((16, 8), np.float32)
    pairs = x[:, 0::2] + x[:, 1::2]
    wanted = (pairs[:, 0] + pairs[:, 1]) + (pairs[:, 2] + pairs[:, 3])
    assert np.array_equal(run(lambda tile: ll.sum(tile, 1), x, MMA, (16,)), wanted)


def test_all_threads_hold_the_same_sum() -> None:
    x = np.random.default_rng(4).standard_normal((16, 8), np.float32)
    sums = run(lambda tile: ll.broadcast_to(ll.sum(tile, 1, keep_dims=True), MMA), x, MMA, (16, 8))
    assert np.array_equal(sums, np.repeat(sums[:, :1], 8, axis=1))


def test_maximum_of_a_row_with_nan_is_nan() -> None:
    x = numbers((16, 8))
    x[3, 5] = np.nan
    assert np.flatnonzero(np.isnan(run(lambda tile: ll.max(tile, 1), x, MMA, (16,)))).tolist() == [3]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_arithmetic_repeats_what_a_reduction_kept(layout: lowlp.Layout, dim: int) -> None:
    x = numbers(layout.shape)
    actual = run(lambda tile: tile - ll.max(tile, dim, keep_dims=True), x, layout, x.shape)
    assert np.array_equal(actual, x - x.max(axis=dim, keepdims=True))
    actual = run(lambda tile: ll.min(tile, dim, keep_dims=True) * tile, x, layout, x.shape)
    assert np.array_equal(actual, x.min(axis=dim, keepdims=True) * x)
    mask = run(lambda tile: ll.cast(tile < ll.sum(tile, dim, keep_dims=True), "f32"), x, layout, x.shape)
    assert np.array_equal(mask, x < x.sum(axis=dim, keepdims=True))


def test_dropped_leading_dimension_is_repeated() -> None:
    x = numbers((16, 8))
    assert np.array_equal(run(lambda tile: tile + ll.sum(tile, 0), x, MMA, x.shape), x + x.sum(axis=0))


def test_broadcast_of_codes() -> None:
    x = numbers((32, 1))
    layout, wide = lowlp.spatial(32, 1), lowlp.spatial(32, 1).local(1, 7)
    codes = run(lambda tile: ll.cast(ll.broadcast_to(ll.cast(tile, "int6"), wide), "f32"), x, layout, (32, 7))
    assert np.array_equal(codes, np.repeat(x, 7, axis=1))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_transpose_moves_nothing_and_is_right(layout: lowlp.Layout) -> None:
    x = numbers(layout.shape)
    assert np.array_equal(run(ll.transpose, x, layout, x.shape[::-1]), x.T)


def test_transpose_of_three_dimensions() -> None:
    layout = lowlp.spatial(2, 4, 4).local(3, 1, 2)
    x = numbers(layout.shape)
    assert np.array_equal(run(lambda tile: ll.transpose(tile, [2, 0, -2]), x, layout, (8, 6, 4)), x.transpose(2, 0, 1))


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_part_is_that_of_numpy(dtype: str) -> None:
    layout = lowlp.local(2, 3, 1).spatial(1, 1, 32).local(1, 2, 2)
    x = numbers(layout.shape, dtype)
    assert np.array_equal(run(lambda tile: ll.part(tile, [1, 4]), x, layout, (64,), dtype), x[1, 4])


def test_columns_are_parts_of_a_view() -> None:
    apart = lowlp.local(1, 2, 1).spatial(1, 8, 4).local(2, 1, 1)
    x = numbers(MMA.shape)

    def right(tile: ll.Tile) -> ll.Tile:
        return ll.part(ll.view(tile, dtype="f32", layout=apart), [1])

    # Of two neighbours the second.
    assert np.array_equal(run(right, x, MMA, (16, 4)), x[:, 1::2])


@pytest.mark.parametrize(
    ("indices", "error", "message"),
    [
        ([2], ll.KernelValueError, "must be at least 0 and less than \\[2\\], found \\[2\\]"),
        ([-1], ll.KernelValueError, "must be at least 0"),
        ([], ll.KernelValueError, "must name at least one and fewer than all of the 3 dimensions"),
        ([0, 0, 0], ll.KernelValueError, "fewer than all of the 3 dimensions of the tile"),
        ("0", ll.KernelTypeError, "must be a list of ints"),
        ([0, 0, 0.5], ll.KernelTypeError, "must be a list of ints"),
    ],
)
def test_indices_of_parts(indices: object, error: type[Exception], message: str) -> None:
    layout = lowlp.local(2, 3, 1).spatial(1, 1, 32)
    with pytest.raises(error, match=message):
        run(lambda tile: ll.part(tile, indices), numbers(layout.shape), layout, (32,))  # type: ignore[arg-type]


def test_threads_do_not_share_a_part() -> None:
    layout = lowlp.spatial(2, 16)
    with pytest.raises(ll.VerificationError, match="each thread must hold all of the first 1 dimensions of the source"):
        run(lambda tile: ll.part(tile, [1]), numbers(layout.shape), layout, (16,))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_iota_is_the_index(layout: lowlp.Layout, dim: int) -> None:
    x = numbers(layout.shape)
    actual = run(lambda tile: ll.iota(dim, layout=layout), x, layout, x.shape)
    assert np.array_equal(actual, np.indices(x.shape)[dim])


# The dimension is spread over warps: all of it, a part of it, beside digits of others, by threes, and twice over.
ACROSS_WARPS = [
    (lowlp.spatial(64), 0),
    (lowlp.local(2, 1).spatial(1, 128).local(1, 3), 1),
    (lowlp.spatial(8, 16), 0),
    (lowlp.spatial(32, 3), 1),
    (lowlp.spatial(3, 32).local(2, 1), 0),
    (lowlp.column_spatial(2, 64).local(1, 2), 1),
    (lowlp.spatial(2, 1).local(1, 3).spatial(2, 16).local(2, 1).spatial(2, 2), 0),
    (lowlp.spatial(2, 4, 8).reduce([2]).local(3, 1), 0),
]


@pytest.mark.parametrize(("layout", "dim"), ACROSS_WARPS, ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_reduction_across_warps_is_that_of_numpy(layout: lowlp.Layout, dim: int, name: str) -> None:
    x = numbers(layout.shape)
    for keep_dims in (True, False):
        wanted = getattr(np, name)(x, axis=dim, keepdims=keep_dims).reshape(
            layout.reduce([dim], keep_dims=keep_dims).shape
        )
        actual = run(lambda tile, keep=keep_dims: getattr(ll, name)(tile, dim, keep_dims=keep), x, layout, wanted.shape)
        assert np.array_equal(actual, wanted)


@pytest.mark.parametrize(("layout", "dim"), ACROSS_WARPS, ids=str)
def test_arithmetic_repeats_what_warps_share(layout: lowlp.Layout, dim: int) -> None:
    x = numbers(layout.shape)
    actual = run(lambda tile: tile - ll.max(tile, dim, keep_dims=True), x, layout, x.shape)
    assert np.array_equal(actual, x - x.max(axis=dim, keepdims=True))


def test_sum_across_warps_has_a_fixed_order() -> None:
    """Within warps by the bits of the lane, then warp by warp; so it is the same for every order of threads."""
    x = np.random.default_rng(5).standard_normal(128).astype(np.float32)
    warps = x.reshape(4, 32)
    while warps.shape[1] > 1:
        warps = warps[:, 0::2] + warps[:, 1::2]
    wanted = ((warps[0] + warps[1]) + warps[2]) + warps[3]
    layout = lowlp.spatial(128)
    assert np.array_equal(run(lambda tile: ll.sum(tile, 0), x, layout, (1,)), wanted)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_sum_of_16_bits_across_warps_is_rounded_once(dtype: str) -> None:
    x = np.random.default_rng(6).uniform(0, 1, 256).astype(DTYPES[dtype])
    layout = lowlp.spatial(128).local(2)
    wide = run(lambda tile: ll.sum(tile, 0), x, layout, (1,))
    assert np.array_equal(run(lambda tile: ll.sum(tile, 0), x, layout, (1,), dtype), wide.astype(DTYPES[dtype]))


def test_integer_sum_across_warps_wraps_around() -> None:
    layout = lowlp.spatial(128)

    @lowlp.kernel(grid=(1,), num_threads=128)
    def total(x: ll.pointer("int32"), y: ll.pointer("int32")) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[128]), offsets=[0], layout=layout)
        ll.store_global(ll.sum(tile, 0), ll.view_global(y, shape=[1]), offsets=[0])

    x = np.random.default_rng(7).integers(-(2**31), 2**31, 128).astype(np.int32)
    y = np.zeros(1, np.int32)
    total(x, y)
    assert y[0] == x.sum(dtype=np.int32)


def test_sums_across_warps_in_a_loop() -> None:
    """Every iteration uses the scratch of the one before."""
    layout = lowlp.spatial(64)

    @lowlp.kernel(grid=(1,), num_threads=64)
    def total(x: ll.pointer("f32"), y: ll.pointer("f32")) -> None:
        view = ll.view_global(x, shape=[9, 64])
        for row in ll.range(9):
            tile = ll.load_global(view, offsets=[row, 0], layout=layout)
            ll.store_global(ll.sum(tile, 0), ll.view_global(y, shape=[9]), offsets=[row])

    x = numbers((9, 64))
    for seed in range(4):
        y = np.zeros(9, np.float32)
        lowlp.compile_cpu(total)(x, y, seed=seed)
        assert np.array_equal(y, x.sum(axis=1))


def test_rows_of_several_warps_are_reduced() -> None:
    layout = lowlp.spatial(12, 8).local(1, 2)
    x = numbers(layout.shape)
    assert np.array_equal(run(lambda tile: ll.sum(tile, 1), x, layout, (12,)), x.sum(axis=1))
