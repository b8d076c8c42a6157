"""How weights lie in memory for the kernels: the packed format, version 0.

A tile is 8 rows of w by 32 weights of one group, as an [32, 8] operand of `dot` that a warp holds in `WEIGHT_LAYOUT`:
8 weights a thread, so b bytes a thread for codes of b bits, whatever b is. Within a thread the codes follow each other
without gaps, low bits first. The bytes of the 32 threads lie in memory as Tilus (section 6.2) has it, so that each
thread loads as many bytes at once as its share allows:

    uint8 [ceil(N / 8), K / group_size, ceil(group_size / 32), 32 * b]

Rows behind N and weights behind a group's end are codes of zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .errors import LowlpValueError
from .layouts import Layout, layout

PACKED_FORMAT_VERSION = 0
BLOCK_K = 32
BLOCK_N = 8
WARP = 32

# Two fragments of operand B of mma.sync m16n8k16 along K (PTX ISA, "Matrix Fragments for mma.m16n8k16").
WEIGHT_LAYOUT = layout("local(4, 1).column_spatial(4, 8).local(2, 1)")


def ceil_div(a: int, b: int) -> int:
    """The least integer that is at least a / b, for positive b."""
    return -(-a // b)


def packed_layout(bits: int) -> Layout:
    """The layout of a tile's bytes, [32 * bits], over the threads of a warp."""
    return WEIGHT_LAYOUT.reinterpret(from_bits=bits, to_bits=8)


def packed_shape(n: int, k: int, group_size: int, bits: int) -> tuple[int, int, int, int]:
    """The shape, in bytes, of packed weights [n, k] of `bits` bits."""
    return ceil_div(n, BLOCK_N), k // group_size, ceil_div(group_size, BLOCK_K), WARP * bits


def pack(codes: NDArray[np.uint8], group_size: int, bits: int) -> NDArray[np.uint8]:
    """Packs codes [N, K], uint8 with the low `bits` bits used; the result has the shape of `packed_shape`."""
    n, k = codes.shape
    if k % group_size:
        raise LowlpValueError(f"group_size: must divide K = {k}, got {group_size}")
    shape = packed_shape(n, k, group_size, bits)
    tiles_n, groups, chunks, tile_bytes = shape
    packed = np.empty(shape, np.uint8)
    rows_k = WEIGHT_LAYOUT.table()  # [thread, local, (k, n)]
    place = packed_layout(bits).table()[..., 0]  # [thread, byte of the thread] -> byte of the tile
    shifts = (np.arange(rows_k.shape[1], dtype=np.uint64) * np.uint64(bits))[:, None]
    # A band of tiles at a time, so that the words of 8 bytes a thread stay small.
    band = max(1, (1 << 22) // max(1, groups * chunks * BLOCK_K * BLOCK_N))
    for start in range(0, tiles_n, band):
        stop = min(start + band, tiles_n)
        rows = codes[start * BLOCK_N : stop * BLOCK_N].reshape(-1, groups, group_size)
        padded = np.zeros(((stop - start) * BLOCK_N, groups, chunks * BLOCK_K), np.uint8)
        padded[: rows.shape[0], :, :group_size] = rows
        tiles = padded.reshape(stop - start, BLOCK_N, groups, chunks, BLOCK_K)
        words = np.zeros((stop - start, groups, chunks, WARP), np.uint64)
        for local in range(rows_k.shape[1]):
            in_k, in_n = rows_k[:, local, 0], rows_k[:, local, 1]
            # Advanced indices first: [thread, tile, group, chunk].
            values = tiles[:, in_n, :, :, in_k].astype(np.uint64)
            words |= np.moveaxis(values, 0, -1) << shifts[local]
        # The words' bytes, low ones first on every host.
        in_thread = words.astype("<u8").view(np.uint8).reshape(*words.shape, 8)[..., :bits]
        flat = packed[start:stop].reshape(-1, tile_bytes)
        flat[:, place.reshape(-1)] = in_thread.reshape(-1, tile_bytes)
    return packed


def unpack(packed: NDArray[np.uint8], n: int, k: int, group_size: int, bits: int) -> NDArray[np.uint8]:
    """The codes [n, k] of packed weights: the inverse of `pack`."""
    shape = packed_shape(n, k, group_size, bits)
    if packed.shape != shape:
        raise LowlpValueError(f"packed: must have shape {shape}, got {packed.shape}")
    tiles_n, groups, chunks, tile_bytes = shape
    rows_k = WEIGHT_LAYOUT.table()
    place = packed_layout(bits).table()[..., 0]
    in_thread = packed.reshape(-1, tile_bytes)[:, place.reshape(-1)].reshape(-1, WARP, bits)
    words = np.zeros((*in_thread.shape[:2], 8), np.uint8)
    words[..., :bits] = in_thread
    values = words.view("<u8")[..., 0].reshape(tiles_n, groups, chunks, WARP)
    tiles = np.empty((tiles_n, BLOCK_N, groups, chunks, BLOCK_K), np.uint8)
    for local in range(rows_k.shape[1]):
        in_k, in_n = rows_k[:, local, 0], rows_k[:, local, 1]
        code = (values >> np.uint64(local * bits)) & np.uint64((1 << bits) - 1)
        tiles[:, in_n, :, :, in_k] = np.moveaxis(code, -1, 0).astype(np.uint8)
    rows = tiles.reshape(tiles_n * BLOCK_N, groups, chunks * BLOCK_K)[:n, :, :group_size]
    return np.ascontiguousarray(rows.reshape(n, k))
