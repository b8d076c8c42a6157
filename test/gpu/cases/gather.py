"""Places that the device reads: rows of a view, entries of a table, bounds of a loop; and blocks that end early."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import Case
from lowlp import language as ll

ROWS, COLUMNS, THREADS = 64, 128, 64
TILE = lowlp.spatial(8, 8).local(8, 16)
INDICES = TILE.reduce([1], keep_dims=True)


def case(name: str, body: Any, arguments: dict[str, Any], wanted: np.ndarray, grid: Any, arch: str) -> Case:
    """A case whose parameters have the types of its arguments, and whose output is y."""
    names = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32", np.dtype(np.int32): "int32"}
    parameters = {
        key: ll.pointer("uint4" if value.dtype == np.uint8 else names[value.dtype], align=16)
        for key, value in arguments.items()
    }
    kernel = ll.make_kernel(body, name=name, parameters=parameters, grid=grid, num_threads=THREADS)
    return Case(name, lowlp.compile(kernel, arch), arguments, "y", wanted, 0.0)


def rows_case(arch: str) -> Case:
    """y[out[i]] = x[rows[i]]; a row of -1 reads zeros, and every place of y is written."""

    def body(x: ll.Pointer, rows: ll.Pointer, out: ll.Pointer, y: ll.Pointer) -> None:
        places = [
            ll.load_global(ll.view_global(p, shape=[ROWS, 1]), offsets=[0, 0], layout=INDICES) for p in (rows, out)
        ]
        source = ll.view_global(x, shape=[200, COLUMNS])
        tile = ll.gather_global(source, places[0], dim=0, offsets=[0, 0], layout=TILE)
        ll.scatter_global(tile, ll.view_global(y, shape=[ROWS, COLUMNS]), places[1], dim=0, offsets=[0, 0])

    random = np.random.default_rng(3)
    x = random.normal(size=(200, COLUMNS)).astype(np.float16)
    rows = random.integers(0, 200, ROWS).astype(np.int32)
    rows[7] = -1
    out = random.permutation(ROWS).astype(np.int32)
    y = np.zeros((ROWS, COLUMNS), np.float16)
    wanted = y.copy()
    wanted[out] = np.where(rows[:, None] >= 0, x[rows], 0)
    return case("gather_scatter_rows", body, {"x": x, "rows": rows, "out": out, "y": y}, wanted, (1,), arch)


def elements_case(arch: str) -> Case:
    """y[i, j] = x[i, columns[i, j]]."""

    def body(x: ll.Pointer, columns: ll.Pointer, y: ll.Pointer) -> None:
        places = ll.load_global(ll.view_global(columns, shape=[ROWS, COLUMNS]), offsets=[0, 0], layout=TILE)
        source = ll.view_global(x, shape=[ROWS, 300])
        tile = ll.gather_global(source, places, dim=1, offsets=[0, 0], layout=TILE, in_bounds=True)
        ll.store_global(tile, ll.view_global(y, shape=[ROWS, COLUMNS]), offsets=[0, 0])

    random = np.random.default_rng(4)
    x = random.normal(size=(ROWS, 300)).astype(np.float32)
    columns = random.integers(0, 300, (ROWS, COLUMNS)).astype(np.int32)
    y = np.zeros((ROWS, COLUMNS), np.float32)
    wanted = np.take_along_axis(x, columns, axis=1)
    return case("gather_elements", body, {"x": x, "columns": columns, "y": y}, wanted, (1,), arch)


def table_case(arch: str) -> Case:
    """y = table[codes], with codes of 4 bits."""

    def body(codes: ll.Pointer, table: ll.Pointer, y: ll.Pointer) -> None:
        shared = ll.alloc_shared("f16", [16])
        entries = ll.load_global(ll.view_global(table, shape=[16]), offsets=[0], layout=lowlp.spatial(THREADS))
        ll.store_shared(entries, shared, offsets=[0])
        ll.synchronize()
        tile = ll.load_global(ll.view_global(codes, shape=[ROWS, COLUMNS]), offsets=[0, 0], layout=TILE)
        ll.store_global(ll.lookup(shared, tile), ll.view_global(y, shape=[ROWS, COLUMNS]), offsets=[0, 0])

    random = np.random.default_rng(5)
    codes = random.integers(0, 16, (ROWS, COLUMNS), dtype=np.uint8)
    table = random.normal(size=16).astype(np.float16)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    y = np.zeros((ROWS, COLUMNS), np.float16)
    return case("lookup", body, {"codes": packed, "table": table, "y": y}, table[codes], (1,), arch)


def ragged_case(arch: str) -> Case:
    """y[b] = sum of x[starts[b] : starts[b + 1]] over block b; blocks without numbers end early."""
    lengths = np.array([5, 0, 64, 1000, 1, 0, 333, 128], np.int32)
    count = len(lengths)

    def body(x: ll.Pointer, starts: ll.Pointer, y: ll.Pointer) -> None:
        (bi,) = ll.block_indices()
        bounds = ll.view_global(starts, shape=[count + 1])
        begin, end = (ll.load_scalar(bounds, offsets=[bi + i]) for i in (0, 1))
        result = ll.view_global(y, shape=[count])
        # The second warp holds what the first does, and its row is not stored.
        lanes = lowlp.spatial(2, 32)
        total = ll.full(0, "int32", layout=lanes)
        if begin >= end:
            nothing = ll.full(0, "int32", layout=lowlp.spatial(THREADS).reduce([0], keep_dims=True))
            ll.store_global(nothing, result, offsets=[bi])
            ll.exit()
        for first in ll.range(begin, end, 32):
            view = ll.view_global(x, shape=[2, end], strides=[0, 1])
            total = total + ll.load_global(view, offsets=[0, first], layout=lanes)
        ll.store_global(ll.sum(total, 1, keep_dims=True), ll.view_global(y, shape=[1, count]), offsets=[0, bi])

    random = np.random.default_rng(6)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    x = random.integers(-100, 100, starts[-1]).astype(np.int32)
    wanted = np.array([x[a:b].sum() for a, b in itertools.pairwise(starts)], np.int32)
    arguments = {"x": x, "starts": starts, "y": np.zeros(count, np.int32)}
    return case("ragged_sums_and_exit", body, arguments, wanted, (count,), arch)


def warp_case(arch: str) -> Case:
    """Rows of y: shuffles of x by several lanes in every mode, and the ballots of x > 0, spread over the lanes."""
    lanes = (0, 1, 5, 16, 31)
    layout = lowlp.spatial(THREADS)

    def body(x: ll.Pointer, y: ll.Pointer) -> None:
        tile = ll.load_global(ll.view_global(x, shape=[THREADS]), offsets=[0], layout=layout)
        view = ll.view_global(y, shape=[4 * len(lanes) + 1, THREADS])
        for row, (mode, lane) in enumerate((mode, lane) for mode in ("xor", "up", "down", "idx") for lane in lanes):
            ll.store_global(ll.warp_shuffle(tile, mode, lane), view, offsets=[row, 0])
        votes = ll.ballot(tile > 0)
        lane_number = ll.iota(1, layout=lowlp.spatial(2, 32), dtype="uint32")
        bit = ll.cast(votes >> lane_number & 1, "int32")
        ll.store_global(bit, ll.view_global(y, shape=[8 * len(lanes) + 2, 32]), offsets=[8 * len(lanes), 0])

    x = np.random.default_rng(7).integers(-100, 100, THREADS).astype(np.int32)
    thread = np.arange(32)
    rows = []
    for mode in ("xor", "up", "down", "idx"):
        for lane in lanes:
            source = {"xor": thread ^ lane, "up": thread - lane, "down": thread + lane, "idx": 0 * thread + lane}[mode]
            source = np.where((source < 0) | (source > 31), thread, source)
            rows.append(x.reshape(2, 32)[:, source].reshape(-1))
    wanted = np.array([*rows, x > 0], np.int32)
    return case("warp_exchange", body, {"x": x, "y": np.zeros_like(wanted)}, wanted, (1,), arch)


def cases(arch: str) -> Iterator[Case]:
    for make in (rows_case, elements_case, table_case, ragged_case, warp_case):
        yield make(arch)
