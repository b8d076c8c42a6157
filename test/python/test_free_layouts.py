"""Kernels that name no layout at all, or only some: what they compute, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from free_kernels import attention, packed_product, plain_product, softmax_of_rows
from refused_kernels import ROWS, refused

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import compile_cpu
from lowlp.language.free_layouts import coalesced, fragments, packed_units
from lowlp.packing import pack

LIMIT = 2e-3


def error_of(found: Any, wanted: Any) -> float:
    return float(np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted))


# --- the layouts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [32, 96, 128])
@pytest.mark.parametrize("shape", [(64,), (128, 64), (7, 24), (3,), (16, 1), (2, 3, 40)])
@pytest.mark.parametrize("bits", [4, 16, 32])
def test_coalesced_holds_every_element(shape: tuple[int, ...], bits: int, num_threads: int) -> None:
    for dim in range(-len(shape), 0):
        layout = coalesced(shape, bits, num_threads, dim)
        assert (layout.shape, layout.num_threads) == (shape, num_threads)
        held = {tuple(index) for index in layout.table().reshape(-1, len(shape)).tolist()}
        assert len(held) == np.prod(shape)


def test_coalesced_takes_vectors_of_16_bytes_where_all_threads_get_one() -> None:
    assert coalesced((128, 64), 16, 128) == lowlp.layout("local(8, 1).spatial(16, 8).local(1, 8)")
    assert coalesced((128, 64), 16, 128, 0) == lowlp.layout("local(1, 8).column_spatial(16, 8).local(8, 1)")
    assert coalesced((16, 8), 16, 32) == lowlp.layout("spatial(16, 2).local(1, 4)")
    assert coalesced((4,), 32, 128) == lowlp.layout("reduce(spatial(1, 32), dims=[1]).spatial(4)")


def test_fragments_come_from_the_best_grid_first() -> None:
    ways = list(fragments(128, 64, 32, 16, 128))
    assert ways[0].c == lowlp.layout("spatial(4, 1).local(2, 8).local(2, 1).spatial(8, 4).local(1, 2)")
    assert [(way.a.shape, way.b.shape, way.c.shape) for way in ways] == [((128, 32), (32, 64), (128, 64))] * len(ways)
    assert not list(fragments(16, 8, 16, 16, 64))


def test_packed_units_are_shared_by_warps() -> None:
    fragment = lowlp.layout("column_local(2, 2).spatial(8, 4).local(1, 2)")
    assert packed_units(64, 64, 1, 4, 128) == lowlp.spatial(4, 1).local(1, 4) * fragment
    assert packed_units(32, 64, 2, 4, 64) == lowlp.spatial(1, 1, 2).reduce([2]).local(2, 4) * fragment
    assert packed_units(64, 64, 2, 2, 64) == lowlp.spatial(2, 1).local(1, 2).local(2, 2) * fragment
    assert packed_units(48, 64, 2, 4, 64) is None
    assert packed_units(32, 32, 2, 4, 64) is None


@pytest.mark.parametrize(("rows", "barriers"), [(16, 0), (2, 4)])
def test_rows_are_reduced_within_warps_where_there_are_enough(rows: int, barriers: int) -> None:
    """As a user would name it: each of four warps holds rows of its own. Two rows are shared by them."""

    def body(x: Any, y: Any, m: Any) -> None:
        x_view, y_view = (ll.view_global(array, shape=[m, 1024]) for array in (x, y))
        for row in ll.range(0, m, rows):
            tile = ll.load_global(x_view, offsets=[row, 0], shape=[rows, 1024])
            ll.store_global(tile - ll.max(tile, 1, keep_dims=True), y_view, offsets=[row, 0])

    parameters = {"x": ll.pointer("f16", align=16), "y": ll.pointer("f16", align=16), "m": ll.i32}
    kernel = compile_cpu(ll.make_kernel(body, name="t", parameters=parameters, grid=(1,), num_threads=128))
    x = np.random.default_rng(0).normal(size=(2 * rows, 1024)).astype(np.float16)
    y = np.full_like(x, np.nan)
    assert kernel(x, y, len(x))["barriers"] == barriers
    np.testing.assert_array_equal(y, x - x.max(axis=1, keepdims=True))


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize(("stages", "kind", "transposed"), [(0, "f16", False), (3, "f16", True), (2, "bf16", False)])
def test_a_product_without_layouts(stages: int, kind: str, transposed: bool, opt_level: int) -> None:
    """With edges in all three dimensions; races and accesses out of bounds would be reported."""
    m, n, k = 70, 72, 136
    rng = np.random.default_rng(1)
    element = np.float16 if kind == "f16" else ml_dtypes.bfloat16
    a, b = (rng.standard_normal(shape).astype(element) for shape in ((m, k), (k, n)))
    bias = rng.standard_normal(n).astype(np.float32)
    c = np.full((m, n), np.nan, element)
    kernel = compile_cpu(plain_product(stages, kind, transposed=transposed), opt_level=opt_level)
    kernel(a, np.ascontiguousarray(b.T) if transposed else b, bias, c, m, n, k)
    wanted = a.astype(np.float64) @ b.astype(np.float64) / 2 + bias
    assert error_of(c, wanted) < (LIMIT if kind == "f16" else 8 * LIMIT)


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("stages", [0, 3])
def test_packed_weights_without_layouts(stages: int, opt_level: int) -> None:
    m, n, k, group = 19, 128, 256, 128
    rng = np.random.default_rng(2)
    codes = rng.integers(-8, 8, (n, k)).astype(np.int8)
    scales = rng.uniform(0.5, 2, (k // group, n)).astype(np.float16)
    x = rng.standard_normal((m, k)).astype(np.float16)
    y = np.full((m, n), np.nan, np.float16)
    kernel = compile_cpu(packed_product(n, k, group, stages), opt_level=opt_level)
    kernel(pack((codes & 15).astype(np.uint8), group, "int4", "f16"), scales, x, y, m)
    weights = codes.astype(np.float64) * np.repeat(scales.T.astype(np.float64), group, axis=1)
    assert error_of(y, x.astype(np.float64) @ weights.T) < LIMIT


# --- what is left of conversions --------------------------------------------------------------------------------------

MEMORY = re.compile(r"^\s+(?:@%p\d+ )?((?:ld|st|cp|ldmatrix|stmatrix|shfl)\.[\w.:]+)", re.MULTILINE)


def memory_instructions(ptx: str) -> set[str]:
    """Those on tiles, and not on parameters, by name."""
    return {name for name in MEMORY.findall(ptx) if not name.startswith("ld.param") and "commit" not in name}


COPIES = {
    "sm_80": {"cp.async.cg.shared.global", "cp.async.wait_group", "st.shared.v4.b32"},
    "sm_90a": {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"},
}
"""Of 16 bytes; what lies outside of a view is written as zeros."""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("transposed", "trans"), [(False, True), (True, False)])
def test_stages_leave_no_conversion_of_a_product(transposed: bool, trans: bool, target: str) -> None:
    """Copies of 16 bytes, `ldmatrix`, and in the epilogue the loads of a row and the stores of fragments."""
    kernel = lowlp.compile(plain_product(3, transposed=transposed), target)
    assert kernel.description.notes["layouts"] == {"1": "conversions removed: 6, left: 0"}
    assert "exchanges" not in kernel.description.notes
    matrices = {"ldmatrix.sync.aligned.m8n8.x4.shared.b16"}
    if trans:
        matrices.add("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16")
    assert memory_instructions(kernel.ptx) == COPIES[target] | matrices | {"ld.global.v2.b32", "st.global.b32"}


def test_stages_leave_no_conversion_of_packed_weights() -> None:
    kernel = lowlp.compile(packed_product(128, 256, 128, 3), "sm_90a")
    assert kernel.description.notes["layouts"] == {"1": "conversions removed: 5, left: 0"}
    assert kernel.description.notes["pipelines"] == {"1": "3 stages of 4224 bytes by tensor copies"}
    assert memory_instructions(kernel.ptx) - COPIES["sm_90a"] - {
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    } == {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ld.shared.v4.b32", "ld.shared.b16", "st.global.b16"}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("transposed", "bn", "bk"), [(False, 64, 64), (True, 64, 64), (False, 128, 32), (True, 64, 128)]
)
def test_no_banks_meet_twice_in_a_product(transposed: bool, bn: int, bk: int, target: str) -> None:
    """Rows of stages of 64, 128 and 256 bytes, the last in panels."""
    k = 2 * bk
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((64, k), (k, bn)))
    c, bias = np.empty((64, bn), np.float16), np.zeros(bn, np.float32)
    kernel = compile_cpu(plain_product(3, transposed=transposed, bn=bn, bk=bk), target)
    sites = kernel(a, np.ascontiguousarray(b.T) if transposed else b, bias, c, 64, bn, k, sites=True)["sites"]
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32) / 2).astype(np.float16))
    shared = [site for site in sites if "shared" in site["site"]]
    assert len(shared) >= 2
    assert [site for site in shared if site["extra_passes"]] == []


def test_warpgroups_find_their_fragments() -> None:
    kernel = lowlp.compile(plain_product(3, transposed=True, matrix_unit="warpgroup"), "sm_90a")
    assert "exchanges" not in kernel.description.notes
    assert "wgmma.mma_async.sync.aligned.m64n64k16" in kernel.ptx
    assert "mma.sync" not in kernel.ptx


def test_unoptimised_programs_keep_all_conversions() -> None:
    notes = compile_cpu(plain_product(0), opt_level=0).description.notes
    assert "layouts" not in notes
    assert len(notes["exchanges"]) == 6


def test_outside_of_stages_a_conversion_may_be_cheaper() -> None:
    notes = compile_cpu(plain_product(0)).description.notes["layouts"]
    assert notes["1"] == "conversions removed: 6, left: 1"
    assert "as a load as needed costs 512, one along memory 128 and the conversion" in notes["2"]


# --- other instructions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opt_level", [0, 3])
def test_reductions_and_branches_without_layouts(opt_level: int) -> None:
    words = ll.pointer("f32", align=16)
    kernel = compile_cpu(
        ll.make_kernel(softmax_of_rows, name="softmax", parameters={"x": words, "y": words}, grid=(1,), num_threads=64),
        opt_level=opt_level,
    )
    x, y = np.random.default_rng(3).standard_normal((16, 64)).astype(np.float32), np.empty((16, 64), np.float32)
    for first in (1.0, -1.0):
        x[0, 0] = first
        kernel(x, y)
        powers = np.exp2(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        wanted = powers / powers.sum(axis=1, keepdims=True) * (first > 0)
        wanted[:, 60:] = -1
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_a_named_layout_is_kept_where_it_meets_others(opt_level: int) -> None:
    """The named tile stays as it is, in the loop too; the others follow."""
    rows = lowlp.layout("spatial(8, 4).local(2, 2)")

    def body(x: Any, y: Any) -> None:
        view = ll.view_global(x, shape=[16, 8])
        acc = ll.full(0.0, "f32", layout=rows)
        for _ in ll.range(3):
            acc = ll.load_global(view, offsets=[0, 0], shape=[16, 8]) + acc
        ll.store_global(acc, ll.view_global(y, shape=[16, 8]), offsets=[0, 0])

    words = ll.pointer("f32", align=16)
    kernel = ll.make_kernel(body, name="named", parameters={"x": words, "y": words}, grid=(1,), num_threads=32)
    assert f"!tile_16x8xf32 = !lowlp.tile<16x8xf32, {rows}>" in kernel.mlir
    assert "-> (!tile_16x8xf32)" in kernel.mlir
    x, y = np.random.default_rng(4).standard_normal((16, 8)).astype(np.float32), np.empty((16, 8), np.float32)
    compile_cpu(kernel, opt_level=opt_level)(x, y)
    np.testing.assert_array_equal(y, x + x + x)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_attention_without_layouts(opt_level: int) -> None:
    n = 75
    q, k, v = (np.random.default_rng(5).standard_normal((rows, 64)).astype(np.float16) for rows in (64, n, n))
    o = np.full((64, 64), np.nan, np.float16)
    kernel = compile_cpu(attention(3), opt_level=opt_level)
    kernel(q, k, v, o, n)
    scores = q.astype(np.float64) @ k.astype(np.float64).T / 8
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert error_of(o, powers @ v.astype(np.float64) / powers.sum(axis=1, keepdims=True)) < LIMIT
    if opt_level:
        notes = kernel.description.notes
        assert str(notes["layouts"]).endswith("left: 0'}")
        assert "exchanges" not in notes


@pytest.mark.parametrize("opt_level", [0, 3])
def test_rows_by_index_without_layouts(opt_level: int) -> None:
    """Gathers and scatters bring the indices to where they are needed; -1 reads zeros and writes nothing."""

    def body(x: Any, numbers: Any, y: Any) -> None:
        rows = ll.load_global(ll.view_global(numbers, shape=[32, 1]), offsets=[0, 0], shape=[32, 1])
        view = ll.view_global(x, shape=[40, 64])
        tile = ll.gather_global(view, rows, dim=0, offsets=[0, 0], shape=[32, 64])
        ll.scatter_global(tile + 1.0, ll.view_global(y, shape=[40, 64]), rows, dim=0, offsets=[0, 0])

    words = ll.pointer("f32", align=16)
    parameters = {"x": words, "numbers": ll.pointer("int32", align=16), "y": words}
    kernel = ll.make_kernel(body, name="rows", parameters=parameters, grid=(1,), num_threads=64)
    x = np.random.default_rng(6).standard_normal((40, 64)).astype(np.float32)
    numbers = np.random.default_rng(7).permutation(40)[:32].astype(np.int32)
    numbers[5] = -1
    y = np.zeros((40, 64), np.float32)
    compile_cpu(kernel, opt_level=opt_level)(x, numbers, y)
    wanted = np.zeros((40, 64), np.float32)
    kept = numbers[numbers >= 0]
    wanted[kept] = x[kept] + 1
    np.testing.assert_array_equal(y, wanted)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_layout_and_shape_are_one_or_the_other() -> None:
    def both(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.full(0.0, "f32", layout=ROWS, shape=[16, 8])  # here

    def neither(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.load_global(ll.view_global(x, shape=[64]), offsets=[0])  # here

    def empty(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.full(0.0, "f32", shape=[])  # here

    text = "layout: give a layout, or a shape alone to leave the layout to the compiler"
    refused(both, ll.KernelValueError, text)
    refused(neither, ll.KernelValueError, text)
    refused(empty, ll.KernelValueError, "shape: must have extents of at least 1, found []")


def test_registers_seen_as_they_are_need_a_name() -> None:
    def view(x, b, m, f):  # type: ignore[no-untyped-def]
        tile = ll.full(0.0, "f32", shape=[16, 8])
        ll.view(tile, dtype="int32", layout=ROWS)  # here

    def shuffle(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.warp_shuffle(ll.full(0.0, "f32", shape=[16, 8]), "xor", 1)  # here

    def exchange(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.exchange_in_cluster(ll.full(0.0, "f32", shape=[2, 32]))  # here

    text = "what the result is depends on the layout, which is left to the compiler here: name it with layout="
    refused(view, ll.KernelValueError, f"tile: {text}")
    refused(shuffle, ll.KernelValueError, f"tile: {text}")
    refused(exchange, ll.KernelValueError, f"parts: {text}")


def test_products_that_no_fragments_fit() -> None:
    def rows(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.dot(zeros("f16", 8, 16), zeros("f16", 16, 8), zeros("f32", 8, 8))  # here

    def columns(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.dot(zeros("f16", 16, 16), zeros("f16", 16, 4), zeros("f32", 16, 4))  # here

    def steps(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.dot(zeros("f16", 16, 8), zeros("f16", 8, 8), zeros("f32", 16, 8))  # here

    def slices(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.dot(zeros("f16", 16, 32), zeros("f16", 32, 8), zeros("f32", 32, 8))  # here

    def named(x, b, m, f):  # type: ignore[no-untyped-def]
        a = ll.full(0.0, "f16", layout="spatial(8, 4).local(2, 4)")
        ll.dot(a, zeros("f16", 16, 8), zeros("f32", 16, 8))  # here

    def zeros(dtype: str, *shape: int) -> ll.Tile:
        return ll.full(0.0, dtype, shape=shape)

    hint = "name the layouts of a, b and c to have it otherwise"
    refused(rows, ll.KernelValueError, f"M must be a multiple of 16 for f16, found 8; {hint}")
    refused(columns, ll.KernelValueError, f"N must be a multiple of 8 for f16, found 4; {hint}")
    refused(steps, ll.KernelValueError, f"K must be a multiple of 16 for f16, found 8; {hint}")
    refused(slices, ll.KernelValueError, "c has rows for 2 slices of K: name the layouts of a, b and c")
    refused(
        named,
        ll.KernelValueError,
        "the layout of a, spatial(8, 4).local(2, 4), is none that the other operands can follow; one that they can is "
        "column_local(2, 2).spatial(8, 4).local(1, 2); or name the layouts of a, b and c",
    )


def test_more_warps_than_a_product_has_parts_for() -> None:
    def body() -> None:
        a, b = ll.full(0.0, "f16", shape=[16, 16]), ll.full(0.0, "f16", shape=[16, 8])
        ll.dot(a, b, ll.full(0.0, "f32", shape=[16, 8]))

    kernel = ll.make_kernel(body, name="kernel", parameters={}, grid=(1,), num_threads=64)
    text = "2 warps cannot share 16 x 8 accumulators in equal parts of 16 x 8 and their multiples: change"
    with pytest.raises(ll.KernelValueError, match=text):
        kernel.module()


def test_shapes_that_are_no_whole_units() -> None:
    def body(w: Any) -> None:
        view = ll.view_packed(w, shape=[64, 64], dtype="int1", placement="int1.f16")
        ll.load_packed(view, offsets=[0, 0], shape=[16, 64])

    kernel = ll.make_kernel(body, name="k", parameters={"w": ll.pointer("uint32")}, grid=(1,), num_threads=32)
    text = "shape: the placement int1.f16 has units of 64 rows by 64 along K, which do not divide 16 x 64"
    with pytest.raises(ll.KernelValueError, match=text):
        kernel.module()


def test_two_named_layouts_still_must_match() -> None:
    def body(x, b, m, f):  # type: ignore[no-untyped-def]
        ll.full(0.0, "f32", layout=ROWS) + ll.full(0.0, "f32", layout="spatial(8, 4).local(2, 2)")  # here

    refused(body, ll.KernelTypeError, "+: layouts must match: ")
