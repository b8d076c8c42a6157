"""Lookups in tables: entries and pairs, in copies, of codes packed as slices; and what the compiler makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import lowlp
from cases.case import BF16, Case
from lowlp import language as ll
from lowlp import packing

TYPES = {"f16": np.dtype(np.float16), "bf16": BF16}


def entries(dtype: str, bits: int, size: int, threads: int, t: ll.Pointer) -> ll.SharedTile:
    """The table in shared memory, visible to all threads."""
    table = ll.alloc_shared(dtype, [size])
    layout = lowlp.local(-(-size // threads)).spatial(threads)
    ll.store_shared(
        ll.load_global(ll.view_global(t, shape=[1 << bits]), offsets=[0], layout=layout), table, offsets=[0]
    )
    ll.synchronize()
    return table


def expanded_case(arch: str, bits: int, dtype: str, copies: int) -> Case:
    """y = t[x], in pairs up to 6 bits and by entries beyond, in a table with copies."""
    tile = lowlp.layout("spatial(4, 1).local(2, 2).column_local(2, 2).spatial(8, 4).local(1, 2)")
    rows, columns = tile.shape
    paired = bits <= 6

    def body(x: ll.Pointer, t: ll.Pointer, y: ll.Pointer) -> None:
        table = entries(dtype, bits, 1 << bits, 128, t)
        shape = [4**bits, copies, 2] if paired else [1 << bits, copies]
        expanded = ll.alloc_shared(dtype, shape, None if paired else lowlp.local(1 << (bits - 1), copies).local(2, 1))
        ll.expand_table(table, expanded)
        ll.synchronize()
        codes = ll.load_global(ll.view_global(x, shape=[rows, columns]), offsets=[0, 0], layout=tile)
        values = ll.lookup_pairs(expanded, codes) if paired else ll.lookup(expanded, codes)
        ll.store_global(values, ll.view_global(y, shape=[rows, columns]), offsets=[0, 0])

    random = np.random.default_rng(20 + bits)
    codes = random.integers(0, 1 << bits, (rows, columns))
    table = random.normal(size=1 << bits).astype(TYPES[dtype])
    arguments = {
        "x": np.packbits(codes.reshape(-1, 1) >> np.arange(bits) & 1, bitorder="little"),
        "t": table,
        "y": np.zeros(codes.shape, TYPES[dtype]),
    }
    parameters = {"x": ll.pointer(f"uint{bits}", align=4), "t": ll.pointer(dtype), "y": ll.pointer(dtype, align=4)}
    name = f"table_{bits}_{dtype}_{copies}_copies"
    kernel = ll.make_kernel(body, name=name, parameters=parameters, grid=(1,), num_threads=128)
    return Case(name, lowlp.compile(kernel, arch), arguments, "y", table[codes], 0.0)


def packed_case(arch: str, bits: int, dtype: str) -> Case:
    """y = t[w] for packed codes w, which the compiler looks up as it finds best, a block for each unit of rows."""
    placement = packing.find_placement(f"lut{bits}", dtype)
    tiles = placement.row_tiles
    tile = lowlp.layout(f"local({tiles}, 4).column_local(2, 2).spatial(8, 4).local(1, 2)")
    n, k = 32 * tiles, 2048

    def body(w: ll.Pointer, t: ll.Pointer, y: ll.Pointer) -> None:
        (block,) = ll.block_indices()
        table = entries(dtype, bits, 1 << bits, 32, t)
        weights = ll.view_packed(w, shape=[n, k], dtype=f"uint{bits}", placement=placement.name)
        for column in ll.range(0, k, 64):
            codes = ll.load_packed(weights, offsets=[block * (16 * tiles), column], layout=tile)
            view = ll.view_global(y, shape=[n, k])
            ll.store_global(ll.lookup(table, codes), view, offsets=[block * (16 * tiles), column])

    random = np.random.default_rng(40 + bits)
    codes = random.integers(0, 1 << bits, (n, k)).astype(np.uint8)
    table = random.normal(size=1 << bits).astype(TYPES[dtype])
    arguments = {
        "w": packing.pack(codes, k, f"lut{bits}", dtype),
        "t": table,
        "y": np.zeros((n, k), TYPES[dtype]),
    }
    parameters = {"w": ll.pointer("uint32", align=16), "t": ll.pointer(dtype), "y": ll.pointer(dtype, align=4)}
    name = f"table_packed_{bits}_{dtype}"
    kernel = ll.make_kernel(body, name=name, parameters=parameters, grid=(2,), num_threads=32)
    return Case(name, lowlp.compile(kernel, arch), arguments, "y", table[codes], 0.0)


def cases(arch: str) -> Iterator[Case]:
    for bits, copies in ((1, 1), (2, 8), (3, 32), (4, 1), (4, 32), (5, 8), (6, 2), (7, 32), (8, 32), (8, 1)):
        for dtype in TYPES:
            yield expanded_case(arch, bits, dtype, copies)
    for bits in range(1, 9):
        for dtype in TYPES:
            yield packed_case(arch, bits, dtype)
