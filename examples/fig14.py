"""A pipelined product of f16 activations and weights of few bits: figure 14 of the Tilus paper.

C[M, N] = A[M, K] * B[K, N]. The paper's weights have 6 bits; any type of 2, 4, 6 or 8 bits does.

A block of 4 warps keeps three stages of A and of packed B in shared memory. While it computes with one, copies into
another are in flight. A is swizzled, so that neither copies nor loads wait for banks; the result goes to global memory
by way of shared memory, a row at a time.

    python examples/fig14.py [--dtype TYPE] [-m M] [-n N] [-k K]    pack, run on the CPU target, compare
    python examples/fig14.py --mlir                                       print the program in the block dialect
"""

import argparse

import numpy as np
from transform_b import DTYPES, random_codes

import lowlp
from lowlp import language as ll

BM, BN, BK = 16, 32, 256
STEP = 64  # what is computed at once of BK
STAGES = 3
LIMIT = 2e-3

# Each of the 4 warps has 8 columns of C; all of them need all of A.
LAYOUT_A = lowlp.reduce(lowlp.spatial(1, 1, 4), dims=[2]).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)
LAYOUT_B = lowlp.spatial(1, 4).local(4, 1).local(2, 1).column_spatial(4, 8).local(2, 1)
LAYOUT_C = lowlp.spatial(1, 4).local(2, 1).spatial(8, 4).local(1, 2)
SHARED_A = lowlp.local(STAGES, 1, 1).swizzle(lowlp.local(BM, BK // 8), dim=1).local(1, 8)
# The paper's has twice as many columns as C.
SHARED_C = lowlp.swizzle(lowlp.local(BM, BN // 8), dim=1, log_step=1).local(1, 8)


def bytes_layout(bits: int) -> lowlp.Layout:
    """A thread's 16 codes are words of 32 bits, 3 of 6-bit codes; the lanes of a warp read neighbouring words."""
    return lowlp.spatial(4).local(bits // 2).spatial(32).local(4)


def make_matmul(m: int, n: int, k: int, dtype: str) -> ll.Kernel:
    """The kernel for sizes that the blocks of 16 x 32 x 256 cover exactly."""
    bits = lowlp.dtype(dtype).bits
    step_bytes, tile_bytes = STEP * BN * bits // 8, BK * BN * bits // 8

    @lowlp.kernel(grid=(m // BM, n // BN), num_threads=128)
    def matmul(
        a: ll.pointer("f16", align=16),
        transformed_b: ll.pointer("uint8", align=16),
        c: ll.pointer("f16", align=16),
    ) -> None:
        bi, bj = ll.block_indices()
        offset_m, offset_n = bi * BM, bj * BN
        a_view = ll.view_global(a, shape=[m, k])
        b_view = ll.view_global(transformed_b, shape=[k // BK, n // BN, tile_bytes])
        c_view = ll.view_global(c, shape=[m, n])
        a_shared = ll.alloc_shared("f16", [STAGES, BM, BK], SHARED_A)
        b_shared = ll.alloc_shared("uint8", [STAGES, tile_bytes])
        c_shared = ll.alloc_shared("f16", [BM, BN], SHARED_C)

        @ll.inline
        def preload(stage: int | ll.Scalar, bk: int | ll.Scalar) -> None:
            """Begins to fill a stage; past the end of K it becomes zero."""
            ll.copy_async(a_view, a_shared, view_offsets=[offset_m, bk * BK], offsets=[stage, 0, 0], shape=[BM, BK])
            ll.copy_async(b_view, b_shared, view_offsets=[bk, bj, 0], offsets=[stage, 0], shape=[tile_bytes])
            ll.copy_async_commit()

        acc = ll.full(0.0, "f32", layout=LAYOUT_C)
        for stage in range(STAGES - 1):
            preload(stage, stage)
        ll.copy_async_wait(STAGES - 2)
        ll.synchronize()
        current, free = 0, STAGES - 1
        for bk in ll.range(k // BK):
            for step in range(BK // STEP):
                a_tile = ll.load_shared(a_shared, offsets=[current, 0, step * STEP], layout=LAYOUT_A)
                b_bytes = ll.load_shared(b_shared, offsets=[current, step * step_bytes], layout=bytes_layout(bits))
                b_codes = ll.view(b_bytes, dtype=dtype, layout=LAYOUT_B)
                acc = ll.dot(a_tile, ll.cast(b_codes, "f16"), acc)
            preload(free, bk + (STAGES - 1))
            current, free = (current + 1) % STAGES, (free + 1) % STAGES
            ll.copy_async_wait(STAGES - 2)
            ll.synchronize()
        ll.store_shared(ll.cast(acc, "f16"), c_shared, offsets=[0, 0])
        ll.synchronize()
        rows = ll.load_shared(c_shared, offsets=[0, 0], layout=lowlp.spatial(16, 8).local(1, 4))
        ll.store_global(rows, c_view, offsets=[offset_m, offset_n])

    return matmul


def transform(weights: np.ndarray, dtype: str) -> np.ndarray:
    """The packed codes [K / 256, N / 32, 1024 bits]: each thread's 16 codes in its own bytes, step by step."""
    k, n = weights.shape
    width = lowlp.dtype(dtype).bits
    held = LAYOUT_B.table()  # [thread, place, (k, n)]
    tiles = weights.reshape(k // BK, BK // STEP, STEP, n // BN, BN).transpose(0, 3, 1, 2, 4)
    codes = tiles[..., held[..., 0], held[..., 1]]  # [K / 256, N / 32, step, thread, place]
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :width]
    own = np.packbits(bits.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")
    packed = np.empty((*codes.shape[:3], STEP * BN * width // 8), np.uint8)
    packed[..., bytes_layout(width).table()[..., 0]] = own
    return packed.reshape(k // BK, n // BN, -1)


def run(m: int, n: int, k: int, dtype: str) -> float:
    """Runs the kernel on the CPU target; returns the relative Frobenius error against float64."""
    a = np.random.default_rng(1).standard_normal((m, k), np.float32).astype(np.float16)
    codes = random_codes(k, n, dtype)
    c = np.full((m, n), np.nan, np.float16)
    counters = make_matmul(m, n, k, dtype)(a, transform(codes, dtype), c)
    wanted = a.astype(np.float64) @ lowlp.dtype(dtype).decode(codes).astype(np.float64)
    error = float(np.linalg.norm(c.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    print(f"C[{m}, {n}] = A[{m}, {k}] f16 * B[{k}, {n}] {dtype}: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply f16 activations with weights of few bits on the CPU target.")
    parser.add_argument("--dtype", choices=DTYPES, default="uint6", metavar="TYPE", help="of B (default: uint6)")
    parser.add_argument("-m", type=int, default=32, help="rows of A and C, a multiple of 16 (default: 32)")
    parser.add_argument("-n", type=int, default=64, help="columns of B and C, a multiple of 32 (default: 64)")
    parser.add_argument("-k", type=int, default=1024, help="columns of A, rows of B, a multiple of 256 (default: 1024)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    for name, extent, block in (("-m", options.m, BM), ("-n", options.n, BN), ("-k", options.k, BK)):
        if extent < block or extent % block:
            parser.error(f"{name} must be a multiple of {block}, got {extent}")
    if options.mlir:
        print(make_matmul(options.m, options.n, options.k, options.dtype).mlir)
    elif not run(options.m, options.n, options.k, options.dtype) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
