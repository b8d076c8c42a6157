"""Several codebooks on the CPU target: one for each column or lane, and those that take the place of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_codebooks import CODES, GROUPS, ROWS, kernel_of, values_of

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.errors import CpuTargetError

random = np.random.default_rng(29)


def by_columns(cache: ll.CodebookCache | None) -> ll.Kernel:
    """Each group of channels has a book, as in caches of keys."""

    def body(x, c, y):
        book = ll.load_codebook(ll.view_global(c, shape=[16, 256, 4]), cache=cache)
        codes = ll.load_global(ll.view_global(x, shape=[ROWS, GROUPS]), offsets=[0, 0], layout=CODES)
        values = ll.lookup_vectors(codes, book, book=5, book_along=1)
        ll.store_global(values, ll.view_global(y, shape=[ROWS, GROUPS * 4]), offsets=[0, 0])

    return kernel_of(body, align=8)


@pytest.mark.parametrize(
    "cache",
    [
        None,
        ll.CodebookCache(),
        ll.CodebookCache(shared=256, copies=1),
        ll.CodebookCache(registers=1, shared=30, copies=4),
    ],
)
def test_a_book_for_each_column(cache: ll.CodebookCache | None) -> None:
    codes = random.integers(0, 256, (ROWS, GROUPS)).astype(np.uint8)
    codes[:8] %= 2
    codebooks = values_of((16, 256, 4), "f16")
    kernel = compilation.compile_cpu(by_columns(cache), opt_level=1)
    y = np.zeros((ROWS, GROUPS * 4), np.float16)
    kernel(codes, codebooks, y)
    wanted = codebooks[5 + np.arange(GROUPS), codes]
    np.testing.assert_array_equal(y, wanted.reshape(ROWS, -1))


@pytest.mark.parametrize(("vector", "line_bytes", "asynchronous"), [(2, 64, True), (4, 256, True), (4, 128, False)])
def test_books_side_by_side(vector: int, line_bytes: int, asynchronous: bool) -> None:
    def body(x, c, y):
        view = ll.view_global(c, shape=[16, 256, vector], strides=[vector, 16 * vector, 1])
        cache = ll.CodebookCache(shared=256, line_bytes=line_bytes, book_bytes=2 * vector)
        book = ll.load_codebook(view, cache=cache, asynchronous=asynchronous)
        codes = ll.load_global(ll.view_global(x, shape=[ROWS, GROUPS]), offsets=[0, 0], layout=CODES)
        if asynchronous:
            ll.copy_async_wait(0)
            ll.synchronize()
        values = ll.lookup_vectors(codes, book, book=5, book_along=1)
        ll.store_global(values, ll.view_global(y, shape=[ROWS, GROUPS * vector]), offsets=[0, 0])

    kernel = kernel_of(body)
    assert ("cp.async" in compilation.compile(kernel, "sm_80").ptx) == asynchronous
    codes = random.integers(0, 256, (ROWS, GROUPS)).astype(np.uint8)
    books = values_of((256, 16, vector), "f16")
    y = np.zeros((ROWS, GROUPS * vector), np.float16)
    compilation.compile_cpu(kernel, opt_level=1)(codes, books, y)
    wanted = books[codes, 5 + np.arange(GROUPS)]
    np.testing.assert_array_equal(y, wanted.reshape(ROWS, -1))


def test_lookups_before_books_arrive_are_reported() -> None:
    def body(x, c, y):
        view = ll.view_global(c, shape=[16, 256, 2], strides=[2, 32, 1])
        book = ll.load_codebook(view, cache=ll.CodebookCache(shared=256, line_bytes=64), asynchronous=True)
        codes = ll.load_global(ll.view_global(x, shape=[ROWS, GROUPS]), offsets=[0, 0], layout=CODES)
        values = ll.lookup_vectors(codes, book, book_along=1)
        ll.store_global(values, ll.view_global(y, shape=[ROWS, GROUPS * 2]), offsets=[0, 0])

    kernel = kernel_of(body)
    given = np.zeros((ROWS, GROUPS), np.uint8), np.zeros((256, 16, 2), np.float16)
    with pytest.raises(CpuTargetError, match="uninitialised read"):
        compilation.compile_cpu(kernel)(*given, np.zeros((ROWS, GROUPS * 2), np.float16))


def switching(cache: ll.CodebookCache | None, num_blocks: int) -> ll.Kernel:
    """Blocks of GROUPS groups have books of their own; every other block keeps the one before."""

    def body(x, c, y):
        view = ll.view_global(c, shape=[num_blocks, 256, 8])
        x_view = ll.view_global(x, shape=[ROWS, num_blocks * GROUPS])
        y_view = ll.view_global(y, shape=[ROWS, num_blocks * GROUPS * 8])
        book = ll.load_codebook(view, offsets=[0], cache=cache)
        for block in ll.range(num_blocks):
            if block % 2 == 0:
                book = ll.switch_codebook(book, view, offsets=[block])
            codes = ll.load_global(x_view, offsets=[0, block * GROUPS], layout=CODES)
            ll.store_global(ll.lookup_vectors(codes, book), y_view, offsets=[0, block * GROUPS * 8])

    return kernel_of(body)


@pytest.mark.parametrize(
    "cache",
    [None, ll.CodebookCache(), ll.CodebookCache(registers=2, shared=50, copies=2), ll.CodebookCache(shared=256)],
)
@pytest.mark.parametrize("level", [0, 1])
def test_switches(cache: ll.CodebookCache | None, level: int) -> None:
    num_blocks = 5
    codes = random.integers(0, 256, (ROWS, num_blocks * GROUPS)).astype(np.uint8)
    codebooks = values_of((num_blocks, 256, 8), "f16")
    y = np.zeros((ROWS, num_blocks * GROUPS * 8), np.float16)
    compilation.compile_cpu(switching(cache, num_blocks), opt_level=level)(codes, codebooks, y)
    books = np.repeat(np.arange(num_blocks) // 2 * 2, GROUPS)
    np.testing.assert_array_equal(y, codebooks[books, codes].reshape(ROWS, -1))


def books_of_lanes(cache: ll.CodebookCache | None) -> ll.Kernel:
    """Lane t reads book 2 ^ t of four, which have taken the place of others; threads have loaded their entries."""
    entries = (lowlp.local(1, 16, 1) * lowlp.column_spatial(4, 16, 1) * lowlp.local(1, 1, 4)).reshape(1024, 4)

    def body(x, c, y):
        view = ll.view_global(c, shape=[2, 4, 256, 4])
        book = ll.load_codebook(view, offsets=[0], cache=cache)
        loaded = ll.load_global(ll.view_global(c, shape=[2, 1024, 4]), offsets=[1, 0, 0], layout=entries)
        book = ll.switch_codebook(book, view, offsets=[1], entries=loaded)
        codes = ll.load_global(ll.view_global(x, shape=[ROWS, GROUPS]), offsets=[0, 0], layout=CODES)
        values = ll.lookup_vectors(codes, book, book=2, staggered=(1, 1, 2))
        ll.store_global(values, ll.view_global(y, shape=[ROWS, GROUPS * 4]), offsets=[0, 0])

    return kernel_of(body)


@pytest.mark.parametrize(
    "cache",
    [
        None,
        ll.CodebookCache(),
        ll.CodebookCache(shared=256, copies=4, line_bytes=128),
        ll.CodebookCache(shared=256, copies=2, line_bytes=72),  # no whole places of 16 bytes
        ll.CodebookCache(shared=200, copies=4, line_bytes=40, book_bytes=8000),
        ll.CodebookCache(registers=1, shared=30, copies=2),
    ],
)
def test_a_book_for_each_lane(cache: ll.CodebookCache | None) -> None:
    """The four books of lanes side by side are in as many copies as leave no conflicts, of lookups and of what fills
    them."""
    codes = random.integers(0, 256, (ROWS, GROUPS)).astype(np.uint8)
    codes[:8] %= 2
    codebooks = values_of((2, 4, 256, 4), "f16")
    kernel = compilation.compile_cpu(books_of_lanes(cache), opt_level=1)
    y = np.zeros((ROWS, GROUPS * 4), np.float16)
    counters: Any = kernel(codes, codebooks, y, sites=True)
    wanted = codebooks[1, 2 ^ (np.arange(GROUPS) % 4), codes]
    np.testing.assert_array_equal(y, wanted.reshape(ROWS, -1))
    if cache is None:
        assert "4 copies, 256 bytes apart" in kernel.description.notes["codebooks"]["1"]  # type: ignore[index]
        sites = {site["site"].split()[0]: site["extra_passes"] for site in counters["sites"]}
        assert not sites["lowlp.lookup_vectors"] and not sites["lowlp.switch_codebook"]
