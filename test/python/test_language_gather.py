"""Scalars and rows at places that the device reads, on the CPU target."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from refused_kernels import refused

import lowlp
from lowlp import language as ll
from lowlp.errors import CpuTargetError

random = np.random.default_rng(5)
TILE = lowlp.spatial(8, 4).local(2, 2)  # 16 x 8
ROWS = TILE.reduce([1], keep_dims=True)
COLUMNS = TILE.reduce([0], keep_dims=True)


def launch(body: Any, parameters: dict[str, Any], *arguments: Any, grid: Any = (1,), **options: Any) -> None:
    ll.make_kernel(body, name="kernel", parameters=parameters, grid=grid, num_threads=32)(*arguments, **options)


# --- scalars ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "f16", "f32"])
def test_a_scalar_is_read(dtype: str) -> None:
    def body(a, y):
        value = ll.load_scalar(ll.view_global(a, shape=[4]), offsets=[2])
        outside = ll.load_scalar(ll.view_global(a, shape=[4]), offsets=[7])
        tile = ll.full(value, out, layout=lowlp.spatial(32))
        ll.store_global(tile + outside, ll.view_global(y, shape=[32]), offsets=[0])

    is_float = dtype.startswith("f")
    out = "f32" if is_float else "int32"
    numpy_dtype = {"f16": np.float16, "f32": np.float32}.get(dtype, dtype)
    value = 2.5 if is_float else np.iinfo(numpy_dtype).max
    a = np.array([1, 2, value, 4], numpy_dtype)
    y = np.zeros(32, np.float32 if is_float else np.int32)
    launch(body, {"a": ll.pointer(dtype), "y": ll.pointer(out)}, a, y)
    np.testing.assert_array_equal(y, np.full(32, value, np.int64 if not is_float else None).astype(y.dtype))


def ragged_sums(x, starts, y, n):
    """Sums of rows of different lengths: the bounds of the loop are read on the device."""
    (row,) = ll.block_indices()
    view = ll.view_global(starts, shape=[n + 1])
    begin = ll.load_scalar(view, offsets=[row])
    end = ll.load_scalar(view, offsets=[row + 1], in_bounds=True)
    layout = lowlp.spatial(32)
    total = ll.full(0.0, "f32", layout=layout)
    index = ll.iota(0, layout=layout, dtype="int32")
    for first in ll.range(begin, end, 32):
        values = ll.load_global(ll.view_global(x, shape=[end]), offsets=[first], layout=layout)
        total = total + values
    if end > begin:
        ll.store_global(ll.sum(total, 0, keep_dims=True), ll.view_global(y, shape=[n]), offsets=[row])
    else:
        ll.store_global(ll.cast(ll.min(index, 0, keep_dims=True), "f32"), ll.view_global(y, shape=[n]), offsets=[row])


def test_loop_bounds_and_conditions_are_read_on_the_device() -> None:
    lengths = np.array([5, 0, 32, 100, 1, 64])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    x = random.integers(-8, 8, starts[-1]).astype(np.float32)
    y = np.full(len(lengths), np.nan, np.float32)
    parameters = {"x": ll.pointer("f32"), "starts": ll.pointer("int32"), "y": ll.pointer("f32"), "n": ll.i32}
    launch(ragged_sums, parameters, x, starts, y, len(lengths), grid=lambda n: (n,))
    wanted = [x[a:b].sum() for a, b in itertools.pairwise(starts)]
    np.testing.assert_array_equal(y, np.array(wanted, np.float32))


def test_a_broken_promise_about_a_scalar_is_reported() -> None:
    def body(a, y, i):
        value = ll.load_scalar(ll.view_global(a, shape=[4]), offsets=[i], in_bounds=True)
        ll.store_global(ll.full(value, "int32", layout=lowlp.spatial(32)), ll.view_global(y, shape=[32]), offsets=[0])

    parameters = {"a": ll.pointer("int32"), "y": ll.pointer("int32"), "i": ll.i32}
    a, y = np.arange(8, dtype=np.int32), np.zeros(32, np.int32)
    launch(body, parameters, a, y, 3)
    assert y[0] == 3
    with pytest.raises(CpuTargetError, match=r"lowlp\.load_scalar at .*: the access promises in_bounds"):
        launch(body, parameters, a, y, 4)


def shared_scalar_body(waits: bool):
    def body(a, y):
        values = ll.load_global(ll.view_global(a, shape=[32]), offsets=[0], layout=lowlp.spatial(32))
        shared = ll.alloc_shared("int32", [32])
        ll.store_shared(values, shared, offsets=[0])
        if waits:
            ll.synchronize()
        number = ll.load_scalar(shared, offsets=[31])
        ll.store_global(values * number, ll.view_global(y, shape=[32]), offsets=[0])

    return body


def test_a_scalar_from_shared_memory_waits_for_its_writer() -> None:
    parameters = {"a": ll.pointer("int32"), "y": ll.pointer("int32")}
    a, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    launch(shared_scalar_body(True), parameters, a, y)
    np.testing.assert_array_equal(y, a * 31)
    with pytest.raises(CpuTargetError, match=r"race.*lowlp\.load_scalar|lowlp\.load_scalar.*(race|initialised)"):
        launch(shared_scalar_body(False), parameters, a, y)


# --- gather and scatter -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f16", "f32", "uint4", "int32"])
@pytest.mark.parametrize("index", ["int32", "uint16", "int8"])
def test_rows_are_gathered_and_scattered(dtype: str, index: str) -> None:
    def body(x, i, y, o):
        def rows(pointer):
            view = ll.view_global(pointer, shape=[16, 1])
            return ll.load_global(view, offsets=[0, 0], layout=ROWS)

        source = ll.view_global(x, shape=[40, 24])
        tile = ll.gather_global(source, rows(i), dim=0, offsets=[1, 8], layout=TILE)
        ll.scatter_global(tile, ll.view_global(y, shape=[20, 8]), rows(o), dim=-2, offsets=[0, 0])

    packed = dtype == "uint4"
    numpy_dtype = {"f16": np.float16, "f32": np.float32, "uint4": np.uint8}.get(dtype, dtype)
    x = random.integers(0, 256 if packed else 100, (40, 12 if packed else 24)).astype(numpy_dtype)
    i = random.integers(0, 39, 16).astype(index)
    o = random.permutation(20)[:16].astype(index)
    if index != "uint16":
        i[3], o[5] = -2, -1  # outside, where 0 is read and nothing written
    i[4] = 39  # beyond, with the offset of 1
    y = np.full((20, 4 if packed else 8), 7, numpy_dtype)
    parameters = {"x": ll.pointer(dtype), "i": ll.pointer(index), "y": ll.pointer(dtype), "o": ll.pointer(index)}
    wanted = y.copy()
    part = x[:, 4:8] if packed else x[:, 8:16]
    for row in range(16):
        place = int(i[row]) + 1
        if o[row] >= 0:
            wanted[o[row]] = part[place] if 0 <= place < 40 else 0
    launch(body, parameters, x, i, y, o)
    np.testing.assert_array_equal(y, wanted)


def test_columns_and_single_elements_are_gathered() -> None:
    def body(x, c, e, y, z):
        source = ll.view_global(x, shape=[16, 30])
        columns = ll.load_global(ll.view_global(c, shape=[1, 8]), offsets=[0, 0], layout=COLUMNS)
        tile = ll.gather_global(source, columns, dim=1, offsets=[0, 0], layout=TILE, in_bounds=True)
        ll.store_global(tile, ll.view_global(y, shape=[16, 8]), offsets=[0, 0])
        each = ll.load_global(ll.view_global(e, shape=[16, 8]), offsets=[0, 0], layout=TILE)
        tile = ll.gather_global(source, each, dim=1, offsets=[0, 0], layout=TILE)
        ll.store_global(tile, ll.view_global(z, shape=[16, 8]), offsets=[0, 0])

    x = random.normal(size=(16, 30)).astype(np.float32)
    c, e = random.integers(0, 30, 8).astype(np.int32), random.integers(0, 30, (16, 8)).astype(np.int32)
    y, z = np.zeros((2, 16, 8), np.float32)
    parameters = {name: ll.pointer("int32" if name in "ce" else "f32") for name in "xceyz"}
    launch(body, parameters, x, c, e, y, z)
    np.testing.assert_array_equal(y, x[:, c])
    np.testing.assert_array_equal(z, np.take_along_axis(x, e, axis=1))


def gather_in_bounds(x, i, y):
    rows = ll.load_global(ll.view_global(i, shape=[16, 1]), offsets=[0, 0], layout=ROWS)
    source = ll.view_global(x, shape=[40, 8])
    tile = ll.gather_global(source, rows, dim=0, offsets=[0, 0], layout=TILE, in_bounds=True)
    ll.store_global(tile, ll.view_global(y, shape=[16, 8]), offsets=[0, 0])


def test_a_broken_promise_about_a_row_is_reported() -> None:
    parameters = {"x": ll.pointer("f32"), "i": ll.pointer("int32"), "y": ll.pointer("f32")}
    x, y = random.normal(size=(40, 8)).astype(np.float32), np.zeros((16, 8), np.float32)
    rows = np.arange(16, dtype=np.int32)
    launch(gather_in_bounds, parameters, x, rows, y)
    np.testing.assert_array_equal(y, x[:16])
    rows[9] = 40  # rows 8 and 9 lie in threads 16 to 19
    with pytest.raises(CpuTargetError, match=r"lowlp\.gather_global at .*promises in_bounds.*thread \(1[6-9], 0, 0\)"):
        launch(gather_in_bounds, parameters, x, rows, y)


def scatter_rows(x, i, y):
    rows = ll.load_global(ll.view_global(i, shape=[16, 1]), offsets=[0, 0], layout=ROWS)
    tile = ll.load_global(ll.view_global(x, shape=[16, 8]), offsets=[0, 0], layout=TILE)
    ll.scatter_global(tile, ll.view_global(y, shape=[40, 8]), rows, dim=0, offsets=[0, 0])


def test_two_rows_in_one_place_are_a_race() -> None:
    parameters = {"x": ll.pointer("f32"), "i": ll.pointer("int32"), "y": ll.pointer("f32")}
    x, y = random.normal(size=(16, 8)).astype(np.float32), np.zeros((40, 8), np.float32)
    rows = random.permutation(40)[:16].astype(np.int32)
    launch(scatter_rows, parameters, x, rows, y)
    np.testing.assert_array_equal(y[rows], x)
    rows[2] = rows[8]
    with pytest.raises(CpuTargetError, match=r"lowlp\.scatter_global at .*race"):
        launch(scatter_rows, parameters, x, rows, y)


def test_rows_are_read_as_wide_as_without_indices() -> None:
    layout = lowlp.spatial(4, 8).local(1, 8)
    rows = layout.reduce([1], keep_dims=True)

    def body(x, i, y):
        index = ll.load_global(ll.view_global(i, shape=[4, 1]), offsets=[0, 0], layout=rows)
        tile = ll.gather_global(ll.view_global(x, shape=[40, 64]), index, dim=0, offsets=[0, 0], layout=layout)
        ll.store_global(tile, ll.view_global(y, shape=[4, 64]), offsets=[0, 0])

    parameters = {"x": ll.pointer("f16", align=16), "i": ll.pointer("int32"), "y": ll.pointer("f16", align=16)}
    kernel = ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=32)
    thread = lowlp.compile(kernel, "sm_90a").ir("thread")
    assert "vector<8xf16>" in thread and "-> f16" not in thread


# --- errors -----------------------------------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    flat = lowlp.local(2, 1).spatial(8, 4).local(1, 2)

    def scalar_source(x, b, m, f):
        ll.load_scalar(x, offsets=[0])  # here

    def scalar_type(x, b, m, f):
        ll.load_scalar(ll.alloc_shared("uint4", [8]), offsets=[0])  # here

    def scalar_offsets(x, b, m, f):
        ll.load_scalar(ll.view_global(x, shape=[8, 8]), offsets=[0])  # here

    def indices(x, b, m, f):
        rows = ll.full(0.0, "f32", layout=flat)
        ll.gather_global(ll.view_global(x, shape=[8, 8]), rows, dim=0, offsets=[0, 0], layout=flat)  # here

    def dim(x, b, m, f):
        rows = ll.full(0, "int32", layout=flat)
        ll.gather_global(ll.view_global(x, shape=[8, 8]), rows, dim=2, offsets=[0, 0], layout=flat)  # here

    def reach(x, b, m, f):
        rows = ll.full(0, "int32", layout=lowlp.spatial(16, 2).reduce([1], keep_dims=True))
        ll.gather_global(ll.view_global(x, shape=[8, 8]), rows, dim=0, offsets=[0, 0], layout=flat)  # here

    def scatter(x, b, m, f):
        rows = ll.full(0, "int32", layout=flat)
        view = ll.view_global(x, shape=[8, 8])
        ll.scatter_global(ll.full(0.0, "f32", layout=flat), view, rows, dim=0, offsets=[0, 0])  # here

    refused(scalar_source, ll.KernelTypeError, "source: must be a view or a shared tile, found the pointer `x`")
    refused(scalar_type, ll.KernelTypeError, "bf16 or f32, found a shared tile of uint4")
    refused(scalar_offsets, ll.KernelValueError, "offsets: expected one for each of the 2 dimensions, found 1")
    refused(indices, ll.KernelTypeError, "indices: works on integers, but the tile holds f32")
    refused(dim, ll.KernelValueError, "dim: must be from -2 to 1, found 2")
    refused(reach, ll.VerificationError, "the indices do not reach the tile: ")
    refused(scatter, ll.KernelTypeError, "tile: element types must match: the tile holds f32, the view f16")
