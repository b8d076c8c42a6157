"""Kernels that name no layout, for the tests on the CPU target and the cases for a GPU."""

from __future__ import annotations

from typing import Any

from lowlp import language as ll


def plain_product(
    stages: int,
    kind: str = "f16",
    *,
    transposed: bool = False,
    matrix_unit: str = "warp",
    bn: int = 64,
    bk: int = 64,
) -> ll.Kernel:
    """c = (a * b) / 2 + the row `bias`; with `transposed`, b is [N, K]."""
    bm = 64

    def body(a: Any, b: Any, bias: Any, c: Any, m: Any, n: Any, k: Any) -> None:
        bi, bj = ll.block_indices()
        a_view, c_view = ll.view_global(a, shape=[m, k]), ll.view_global(c, shape=[m, n])
        b_view = ll.view_global(b, shape=[n, k] if transposed else [k, n])
        acc = ll.full(0.0, "f32", shape=[bm, bn])
        for step in ll.range(ll.ceildiv(k, bk), stages=stages):
            a_tile = ll.load_global(a_view, offsets=[bi * bm, step * bk], shape=[bm, bk])
            if transposed:
                b_tile = ll.transpose(ll.load_global(b_view, offsets=[bj * bn, step * bk], shape=[bn, bk]))
            else:
                b_tile = ll.load_global(b_view, offsets=[step * bk, bj * bn], shape=[bk, bn])
            acc = ll.dot(a_tile, b_tile, acc)
        row = ll.load_global(ll.view_global(bias, shape=[n]), offsets=[bj * bn], shape=[bn])
        ll.store_global(ll.cast(acc * 0.5 + row, kind), c_view, offsets=[bi * bm, bj * bn])

    matrix, size = ll.pointer(kind, align=16), ll.integer(32, divisible_by=8)
    parameters = {"a": matrix, "b": matrix, "bias": ll.pointer("f32", align=16), "c": matrix}
    return ll.make_kernel(
        body,
        name="plain_product",
        parameters=parameters | {"m": ll.i32, "n": size, "k": size},
        grid=lambda m, n, k: (ll.ceildiv(m, bm), ll.ceildiv(n, bn)),
        num_threads=128,
        schedule=ll.KernelSchedule(matrix_unit=matrix_unit),
    )


def packed_product(n: int, k: int, group: int, stages: int) -> ll.Kernel:
    """y = x * w^T with packed weights of int4 and a scale for each group of a row; the scales are [K / group, N]."""
    bn, bm, bk = 64, 16, 64

    def body(w: Any, s: Any, x: Any, y: Any, m: Any) -> None:
        bi, bj = ll.block_indices()
        w_view = ll.view_packed(w, shape=[n, k], dtype="int4", placement="int4.f16")
        s_view = ll.view_global(s, shape=[k // group, n])
        x_view, y_view = ll.view_global(x, shape=[m, k]), ll.view_global(y, shape=[m, n])
        acc = ll.full(0.0, "f32", shape=[bn, bm])
        for step in ll.range(k // bk, stages=stages):
            codes = ll.load_packed(w_view, offsets=[bi * bn, step * bk], shape=[bn, bk])
            scales = ll.transpose(ll.load_global(s_view, offsets=[step * bk // group, bi * bn], shape=[1, bn]))
            x_tile = ll.load_global(x_view, offsets=[bj * bm, step * bk], shape=[bm, bk])
            acc = ll.dot(ll.cast(codes, "f16") * scales, ll.transpose(x_tile), acc)
        ll.store_global(ll.cast(ll.transpose(acc), "f16"), y_view, offsets=[bj * bm, bi * bn])

    halves = ll.pointer("f16", align=16)
    parameters = {"w": ll.pointer("uint32", align=16), "s": halves, "x": halves, "y": halves, "m": ll.i32}
    return ll.make_kernel(
        body,
        name="packed_product",
        parameters=parameters,
        grid=lambda m: (n // bn, ll.ceildiv(m, bm)),
        num_threads=128,
    )


def softmax_of_rows(x: Any, y: Any) -> None:
    """A reduction, a row that the result is repeated along, a branch and an index tile."""
    x_view, y_view = ll.view_global(x, shape=[16, 64]), ll.view_global(y, shape=[16, 64])
    tile = ll.load_global(x_view, offsets=[0, 0], shape=[16, 64])
    powers = ll.exp2(tile - ll.max(tile, 1, keep_dims=True))
    if ll.load_scalar(x_view, offsets=[0, 0]) > 0.0:
        powers = powers / ll.sum(powers, 1, keep_dims=True)
    else:
        powers = ll.full(0.0, "f32", shape=[16, 64])
    ll.store_global(ll.where(ll.iota(1, shape=[16, 64]) < 60.0, powers, -1.0), y_view, offsets=[0, 0])


def attention(stages: int) -> ll.Kernel:
    """softmax(q k^T / 8) v for 64 rows of q and any number of keys: two products, with reductions in between."""
    rows, keys, width = 64, 32, 64

    def body(q: Any, k: Any, v: Any, o: Any, n: Any) -> None:
        k_view, v_view = (ll.view_global(pointer, shape=[n, width]) for pointer in (k, v))
        q_tile = ll.load_global(ll.view_global(q, shape=[rows, width]), offsets=[0, 0], shape=[rows, width])
        top, total = ll.full(-1e30, "f32", shape=[rows, 1]), ll.full(0.0, "f32", shape=[rows, 1])
        acc = ll.full(0.0, "f32", shape=[rows, width])
        for j in ll.range(ll.ceildiv(n, keys), stages=stages):
            k_tile = ll.load_global(k_view, offsets=[j * keys, 0], shape=[keys, width])
            v_tile = ll.load_global(v_view, offsets=[j * keys, 0], shape=[keys, width])
            scores = ll.dot(q_tile, ll.transpose(k_tile), ll.full(0.0, "f32", shape=[rows, keys]))
            place = ll.iota(1, shape=[1, keys], dtype="int32") + j * keys
            scores = ll.where(place < n, scores * (1.4426950408889634 / 8), -1e30)
            new = ll.maximum(top, ll.max(scores, 1, keep_dims=True))
            powers, scale = ll.exp2(scores - new), ll.exp2(top - new)
            total = total * scale + ll.sum(powers, 1, keep_dims=True)
            acc = ll.dot(ll.cast(powers, "f16"), v_tile, acc * scale)
            top = new
        ll.store_global(ll.cast(acc / total, "f16"), ll.view_global(o, shape=[rows, width]), offsets=[0, 0])

    halves = ll.pointer("f16", align=16)
    parameters = {"q": halves, "k": halves, "v": halves, "o": halves, "n": ll.i32}
    return ll.make_kernel(body, name="attention", parameters=parameters, grid=(1,), num_threads=128)
