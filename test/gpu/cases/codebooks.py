"""Codebooks: entries at each level, in copies, of a byte, as matrices, and switched; a product with two books."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import lowlp
from cases.case import EXAMPLES, Case
from cases.linears import linear_case
from lowlp import language as ll
from lowlp.kernels.linear.codebooks.vector_order import vector_order_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp_runtime.ordered_rows import launch_numbers
from lowlp_runtime.vector_order import VectorOrder, order_of_vectors, padded_columns

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from test_linear_codebooks import vectors_of, weights

BLOCKS, ROWS, GROUPS = 3, 64, 32
CODES = lowlp.spatial(4, 1).local(1, 8).local(2, 1).spatial(8, 4)
LANES = lowlp.spatial(4, 1).local(1, 16).column_spatial(16, 2)
FRAGMENTS = lowlp.spatial(4, 1).local(1, 16).column_local(2, 2).spatial(8, 4).local(1, 2)
CACHES = {
    "auto": None,
    "global": ll.CodebookCache(),
    "shared": ll.CodebookCache(shared=200),
    "copies": ll.CodebookCache(shared=200, copies=4),
    "levels": ll.CodebookCache(registers=3, shared=90, copies=2),
}


def make(dtype: str, cache: ll.CodebookCache | None, by_matrices: bool) -> ll.Kernel:
    """y[i] = the vectors of book 1 of codebook i that x[i] names."""
    result = dtype if dtype in ("f16", "bf16") else "f16"

    def body(x: Any, c: Any, y: Any) -> None:
        books = ll.view_global(c, shape=[BLOCKS, 2, 200, 8])
        codes_view = ll.view_global(x, shape=[BLOCKS, ROWS, GROUPS])
        y_view = ll.view_global(y, shape=[BLOCKS, ROWS, GROUPS * 8])
        book = ll.load_codebook(books, offsets=[0], cache=cache)
        for i in ll.range(BLOCKS):
            if i > 0:
                book = ll.switch_codebook(book, books, offsets=[i])
            codes = ll.load_global(codes_view, offsets=[i, 0, 0], layout=LANES if by_matrices else CODES)
            values = ll.lookup_vectors(codes, book, book=1, dtype=result)
            if by_matrices:
                values = ll.convert_layout(values, layout=FRAGMENTS)
            ll.store_global(values, y_view, offsets=[i, 0, 0])

    parameters = {"x": ll.pointer("uint8"), "c": ll.pointer(dtype, align=16), "y": ll.pointer(result)}
    return ll.make_kernel(body, name="lookups", parameters=parameters, grid=(1,), num_threads=128)


def lookups(arch: str) -> Iterator[Case]:
    rng = np.random.default_rng(52)
    codes = rng.integers(0, 200, (BLOCKS, ROWS, GROUPS)).astype(np.uint8)
    codes[:, ::2] %= 5
    of = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "int8": np.int8, "f8e4m3": ml_dtypes.float8_e4m3fn}
    for dtype in of:
        books = (rng.standard_normal((BLOCKS, 2, 200, 8)) * (40 if dtype == "int8" else 1)).astype(of[dtype])
        wanted = np.stack([books[i, 1][codes[i]].reshape(ROWS, -1) for i in range(BLOCKS)])
        wanted = wanted if dtype in ("f16", "bf16") else wanted.astype(np.float16)
        given = books.view(np.uint8) if dtype == "f8e4m3" else books
        arguments = {"x": codes, "c": given, "y": np.zeros(wanted.shape, wanted.dtype)}
        for name, cache in CACHES.items() if dtype == "f16" else [("auto", None)]:
            kernel = lowlp.compile(make(dtype, cache, by_matrices=False), arch)
            yield Case(f"codebook_{dtype}_{name}", kernel, arguments, "y", wanted, 0.0)
        if dtype in ("f16", "bf16"):
            kernel = lowlp.compile(make(dtype, None, by_matrices=True), arch)
            yield Case(f"codebook_{dtype}_matrices", kernel, arguments, "y", wanted, 0.0)


def products(arch: str) -> Iterator[Case]:
    sys.path.insert(0, str(EXAMPLES))
    example = importlib.import_module("vq_gemv")
    rng = np.random.default_rng(53)
    for m, n, k in ((8, 896, 2048), (13, 1000, 768)):
        x = rng.standard_normal((m, k)).astype(np.float16)
        codes = rng.integers(0, 256, (n, k // 8, 2)).astype(np.uint8)
        books = rng.standard_normal((2, 256, 8)).astype(np.float16)
        wanted = x.astype(np.float64) @ example.values_of(codes, books).T
        arguments = {"x": x, "codes": codes, "books": books, "y": np.zeros((m, n), np.float32)}
        kernel = lowlp.compile(example.make_gemv(m, n, k, warps=7), arch)
        yield Case(f"vq_gemv_{m}", kernel, arguments, "y", wanted, 2e-3, {"shape": [m, n, k]})


def side_by_side(arch: str) -> Iterator[Case]:
    """A book for each column, of books that lie side by side, copied asynchronously and by threads."""
    held, rng = lowlp.spatial(4, 1).local(16, 8).spatial(1, 4).spatial(8, 1), np.random.default_rng(54)

    def make_columns(vector: int, asynchronous: bool) -> ll.Kernel:
        def body(x: Any, c: Any, y: Any) -> None:
            view = ll.view_global(c, shape=[GROUPS, 256, vector], strides=[vector, GROUPS * vector, 1])
            cache = ll.CodebookCache(shared=256, line_bytes=256)
            book = ll.load_codebook(view, cache=cache, asynchronous=asynchronous)
            codes = ll.load_global(ll.view_global(x, shape=[512, GROUPS]), offsets=[0, 0], layout=held)
            if asynchronous:
                ll.copy_async_wait(0)
                ll.synchronize()
            values = ll.lookup_vectors(codes, book, book_along=1)
            ll.store_global(values, ll.view_global(y, shape=[512, GROUPS * vector]), offsets=[0, 0])

        parameters = {"x": ll.pointer("uint8"), "c": ll.pointer("f16", align=16), "y": ll.pointer("f16")}
        return ll.make_kernel(body, name="columns", parameters=parameters, grid=(1,), num_threads=128)

    codes = rng.integers(0, 256, (512, GROUPS)).astype(np.uint8)
    for vector, asynchronous in ((2, True), (4, True), (2, False)):
        books = rng.standard_normal((256, GROUPS, vector)).astype(np.float16)
        wanted = books[codes, np.arange(GROUPS)].reshape(512, -1)
        arguments = {"x": codes, "c": books, "y": np.zeros(wanted.shape, wanted.dtype)}
        kernel = lowlp.compile(make_columns(vector, asynchronous), arch)
        yield Case(f"codebook_lines_{vector}_{asynchronous}", kernel, arguments, "y", wanted, 0.0)


WIDE: dict[str, Any] = {"stages": 2, "warpgroups": 2, "row_tiles": 1}
LINEARS: tuple[tuple[str, int, int, Schedule], ...] = (
    ("vec8:2x8:f16", 9, 512, Schedule(16, 4, stages=3, row_tiles=2, steps=2, splits=2, blocks_per_sm=2)),
    ("vec8:1x8:f16", 1, 512, Schedule(8, 2, stages=4, row_tiles=2, staged_rows=1)),
    ("vec4:1x8:f16", 6, 512, Schedule(8, 4, stages=3, row_tiles=1, splits=2, staged_rows=4)),
    ("vec4:1x8:f16:256x256", 5, 512, Schedule(8, 8, stages=2, row_tiles=2, steps=2)),
    ("vec8:2x8:f16", 2, 1024, Schedule(8, 4, row_tiles=2, splits=3, partial_sums=True, kept_rows=2)),
    ("vec8:1x8:int8", 1, 1280, Schedule(8, 8, splits=2, row_tiles=1, partial_sums=True, kept_rows=1)),
    ("vec8:4x8:f8e4m3", 5, 256, Schedule(8, 16, row_tiles=1, partial_sums=True, kept_rows=2)),
    ("vec2:1x8:f8e4m3", 20, 512, Schedule(32, 2, stages=3, row_tiles=1)),
    ("vec8:2x12:int8", 3, 512, Schedule(8, 4, stages=3, row_tiles=2)),
    ("vec8:2x12+1:f16", 5, 512, Schedule(8, 4, stages=3, row_tiles=2)),
    ("vec8:2x12+1:int8", 3, 512, Schedule(8, 4, stages=3, row_tiles=2)),
    ("vec8:2x12+1:int8", 4, 512, Schedule(8, 4, stages=3, row_tiles=2, second_copies=True)),
    ("vec8:2x12+1:f16", 100, 520, Schedule(88, column_tiles=2, steps=1, scales_on="weights", **WIDE)),
    ("vec8:1x16:f16", 16, 512, Schedule(16, 4, stages=3, row_tiles=1)),
    ("e8p+e8p", 16, 512, Schedule(16, 7, stages=3, row_tiles=1)),
    ("vec8:2x8:f16", 70, 520, Schedule(64, steps=2, **WIDE)),
    ("vec4:1x8:f16:256x256", 130, 512, Schedule(128, steps=2, share_tiles=False, **WIDE)),
    ("vec2:1x8:f16", 40, 256, Schedule(40, steps=1, **WIDE)),
    ("vec8:1x8:f16", 33, 520, Schedule(48, steps=2, cluster=2, share_tiles=False, **WIDE)),
    ("vec4:1x8:f16:256x256", 9, 512, Schedule(16, steps=4, **WIDE | {"warpgroups": 4})),
    ("vec4:1x8:f16:256x256", 13, 2048, Schedule(16, steps=8, blocks_at_once=4, **WIDE | {"warpgroups": 4})),
    ("vec4:1x8:f16:256x256", 60, 2048, Schedule(64, steps=4, blocks_at_once=4, cluster=2, share_tiles=False, **WIDE)),
    ("vec8:1x8:f16:128x256", 150, 2048, Schedule(80, steps=4, blocks_at_once=4, **WIDE)),
    ("vec2:1x8:f16", 3, 512, Schedule(16, steps=4, cluster=2, share_tiles=False, **WIDE | {"warpgroups": 3})),
    ("vec2:1x8:f16", 12, 512, Schedule(16, steps=4, slices=4, share_tiles=False, **WIDE | {"warpgroups": 4})),
    ("vec8:2x8:f16", 20, 1024, Schedule(32, steps=4, slices=2, cluster=2, scales_on="weights", **WIDE)),
    ("e8p+e8p", 9, 448, Schedule(16, steps=4, slices=2, scales_on="weights", **WIDE | {"warpgroups": 4})),
    ("vec8:2x12+1:int8", 60, 512, Schedule(64, steps=4, second_copies=True, scales_on="weights", **WIDE)),
    ("vec8:2x8:f16", 300, 520, Schedule(128, column_tiles=2, steps=2, scales_on="weights", **WIDE)),
    ("vec8:2x12:f16", 100, 520, Schedule(88, column_tiles=2, steps=1, scales_on="weights", **WIDE)),
)
"""Codec, rows of x, K, schedule."""


def linears(arch: str) -> Iterator[Case]:
    """Products of `linear` by every form of schedules."""
    for codec, m, k, schedule in LINEARS:
        random = np.random.default_rng(m)
        vectors = vectors_of(codec)
        qw = weights(
            random, vectors, 264 if schedule.warpgroups else 272, k, k, np.float32 if vectors.lattices else np.float16
        )
        x = random.standard_normal((m, k)).astype(np.float16)
        name = f"books_{codec}_{m}".replace(":", "_").replace("+", "_")
        yield linear_case(name, qw, x, arch, 2e-3, schedule=schedule)


def orders(arch: str) -> Iterator[Case]:
    """Rows of x in the order of vectors, which end within a part, and within what a thread loads."""
    orders = [(4104, VectorOrder(8), True), (2084, VectorOrder(4), True), (208, VectorOrder(16), False)]
    at_once = [(9216, VectorOrder(4, 256, 128), True), (2048, VectorOrder(8, 256, 64), False)]
    for k, order, aligned in (*orders, (70, VectorOrder(2), False), *at_once):
        m, stride = 5, k + 8 - k % 8 if aligned else k + 3
        x = np.random.default_rng(k).integers(0, 1 << 16, (m, stride), dtype=np.uint16)
        wanted = np.pad(x[:, :k], ((0, 0), (0, 1)))[:, order_of_vectors(k, order)]
        kernel = lowlp.compile(vector_order_kernel(k, order, aligned, False), arch)
        numbers = launch_numbers(padded_columns(k), m, stride, 1, gathers=False)
        arguments = {"x": x, "y": np.zeros_like(wanted), **numbers}
        yield Case(f"vector_order_{order.vector}_{order.span}", kernel, arguments, "y", wanted, 0.0)


def cases(arch: str) -> Iterator[Case]:
    yield from lookups(arch)
    yield from side_by_side(arch)
    yield from products(arch)
    yield from linears(arch)
    yield from orders(arch)
