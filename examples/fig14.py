"""A pipelined product of f16 activations and 6-bit weights, C[M, N] = A[M, K] * B[K, N]: figure 14 of the Tilus paper.

A block of 4 warps keeps three stages of A and of packed B in shared memory. While it computes with one, copies into
another are under way. A is swizzled, so that neither copies nor loads wait for banks; the result goes to global memory
by way of shared memory, a row at a time.

    python examples/fig14.py [--dtype int6|uint6] [-m M] [-n N] [-k K]    pack, run on the CPU target, compare
    python examples/fig14.py --mlir                                       print the program in the block dialect
"""

import argparse

import numpy as np

import lowlp
from lowlp import language as ll

BM, BN, BK, BITS = 16, 32, 256, 6
STEP = 64  # what is computed at once of BK
STAGES = 3
STEP_BYTES = STEP * BN * BITS // 8
TILE_BYTES = BK * BN * BITS // 8
LIMIT = 2e-3

# Each of the 4 warps has 8 columns of C; all of them need all of A.
LAYOUT_A = lowlp.reduce(lowlp.spatial(1, 1, 4), dims=[2]).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)
LAYOUT_B = lowlp.spatial(1, 4).local(4, 1).local(2, 1).column_spatial(4, 8).local(2, 1)
LAYOUT_C = lowlp.spatial(1, 4).local(2, 1).spatial(8, 4).local(1, 2)
# A thread's 16 codes are 3 words of 32 bits; the lanes of a warp read neighbouring words.
LAYOUT_B_BYTES = lowlp.spatial(4).local(3).spatial(32).local(4)
SHARED_A = lowlp.local(STAGES, 1, 1).swizzle(lowlp.local(BM, BK // 8), dim=1).local(1, 8)
# The paper's has twice as many columns as C.
SHARED_C = lowlp.swizzle(lowlp.local(BM, BN // 8), dim=1, log_step=1).local(1, 8)


def make_matmul(m: int, n: int, k: int, dtype: str) -> ll.Kernel:
    """The kernel for sizes that the blocks of 16 x 32 x 256 cover exactly."""

    @lowlp.kernel(grid=(m // BM, n // BN), num_threads=128)
    def matmul(
        a: ll.pointer("f16", align=16),
        transformed_b: ll.pointer("uint8", align=16),
        c: ll.pointer("f16", align=16),
    ) -> None:
        bi, bj = ll.block_indices()
        offset_m, offset_n = bi * BM, bj * BN
        a_view = ll.view_global(a, shape=[m, k])
        b_view = ll.view_global(transformed_b, shape=[k // BK, n // BN, TILE_BYTES])
        c_view = ll.view_global(c, shape=[m, n])
        a_shared = ll.alloc_shared("f16", [STAGES, BM, BK], SHARED_A)
        b_shared = ll.alloc_shared("uint8", [STAGES, TILE_BYTES])
        c_shared = ll.alloc_shared("f16", [BM, BN], SHARED_C)

        @ll.inline
        def preload(stage: int | ll.Scalar, bk: int | ll.Scalar) -> None:
            """Begins to fill a stage; behind the end of K it becomes zero."""
            ll.copy_async(a_view, a_shared, view_offsets=[offset_m, bk * BK], offsets=[stage, 0, 0], shape=[BM, BK])
            ll.copy_async(b_view, b_shared, view_offsets=[bk, bj, 0], offsets=[stage, 0], shape=[TILE_BYTES])
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
                b_bytes = ll.load_shared(b_shared, offsets=[current, step * STEP_BYTES], layout=LAYOUT_B_BYTES)
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


def transform(weights: np.ndarray) -> np.ndarray:
    """The packed weights [K / 256, N / 32, 6144]: each thread's 16 codes in its 12 bytes, step by step."""
    k, n = weights.shape
    held = LAYOUT_B.table()  # [thread, place, (k, n)]
    tiles = weights.view(np.uint8).reshape(k // BK, BK // STEP, STEP, n // BN, BN).transpose(0, 3, 1, 2, 4)
    codes = tiles[..., held[..., 0], held[..., 1]]  # [K / 256, N / 32, step, thread, place]
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :BITS]
    own = np.packbits(bits.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")
    packed = np.empty((*codes.shape[:3], STEP_BYTES), np.uint8)
    packed[..., LAYOUT_B_BYTES.table()[..., 0]] = own
    return packed.reshape(k // BK, n // BN, TILE_BYTES)


def random_weights(k: int, n: int, dtype: str) -> np.ndarray:
    """Numbers of 6 bits, as int8 or uint8 [K, N]."""
    low, kind = (-32, np.int8) if dtype == "int6" else (0, np.uint8)
    return np.random.default_rng(0).integers(low, low + 64, (k, n)).astype(kind)


def run(m: int, n: int, k: int, dtype: str) -> float:
    """Runs the kernel on the CPU target; returns the relative Frobenius error against float64."""
    a = np.random.default_rng(1).standard_normal((m, k), np.float32).astype(np.float16)
    b = random_weights(k, n, dtype)
    c = np.full((m, n), np.nan, np.float16)
    counters = make_matmul(m, n, k, dtype)(a, transform(b), c)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    error = float(np.linalg.norm(c.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    print(f"C[{m}, {n}] = A[{m}, {k}] f16 * B[{k}, {n}] {dtype}: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply f16 activations with 6-bit weights on the CPU target.")
    parser.add_argument("--dtype", choices=("int6", "uint6"), default="uint6", help="of B (default: uint6)")
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
