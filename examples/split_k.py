"""A product of f16 activations and int6 weights that is split along K: C[M, N] = A[M, K] * B[K, N].

With few rows there are few tiles of C, too few blocks to keep a GPU busy. So several blocks work on one tile, each
along a part of K, and add up their sums in memory that the launch provides (Tilus's AllocateGlobal, LockSemaphore and
ReleaseSemaphore). A semaphore for each tile gives them their turns, in the order of K: the same inputs give the same
bits, whatever order the blocks run in. The last one stores the tile and leaves the semaphore at zero for the next
launch.

    python examples/split_k.py [-m M] [-n N] [-k K] [--splits S] [--seed SEED]    run on the CPU target, compare
    python examples/split_k.py --mlir                                            print the program in the block dialect
"""

import argparse

import numpy as np
from transform_b import bytes_layout, random_codes, transform

import lowlp
from lowlp import language as ll

BM, BN, BK = 16, 8, 16
DTYPE = lowlp.int6
LAYOUT_C = lowlp.local(2, 1).spatial(8, 4).local(1, 2)
LIMIT = 2e-3


def make_matmul(n: int, k: int, splits: int) -> ll.Kernel:
    """The kernel for any M, and for N and K that blocks of 8 columns and parts of 16 steps cover exactly."""
    steps = k // BK // splits  # of each block

    @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, BM), n // BN, splits), num_threads=32)
    def split_matmul(
        a: ll.pointer("f16", align=16),
        transformed_b: ll.pointer("uint8", align=16),
        c: ll.pointer("f16", align=16),
        m: ll.i32,
    ) -> None:
        bi, bj, part = ll.block_indices()
        offset_m, offset_n = bi * BM, bj * BN
        a_view = ll.view_global(a, shape=[m, k])
        b_view = ll.view_global(transformed_b, shape=[k // BK, n // BN, BK * BN * DTYPE.bits // 8])
        c_view = ll.view_global(c, shape=[m, n])
        sums = ll.alloc_global("f32", lambda m: (m, n))
        turns = ll.alloc_global("int32", lambda m: (ll.ceildiv(m, BM), n // BN), zeroed=True)

        acc = ll.full(0.0, "f32", layout=LAYOUT_C)
        for step in ll.range(part * steps, (part + 1) * steps):
            a_tile = ll.load_global(
                a_view, offsets=[offset_m, step * BK], layout=lowlp.column_local(2, 2).spatial(8, 4).local(1, 2)
            )
            b_bytes = ll.load_global(b_view, offsets=[step, bj, 0], layout=bytes_layout(DTYPE.bits))
            b_codes = ll.view(b_bytes, dtype=DTYPE, layout=lowlp.local(2, 1).column_spatial(4, 8).local(2, 1))
            acc = ll.dot(a_tile, ll.cast(b_codes, "f16"), acc)

        ll.semaphore_acquire(turns, offsets=[bi, bj], value=part)
        if part > 0:
            acc = acc + ll.load_global(sums, offsets=[offset_m, offset_n], layout=LAYOUT_C)
        if part < splits - 1:
            ll.store_global(acc, sums, offsets=[offset_m, offset_n])
            ll.semaphore_release(turns, offsets=[bi, bj], value=part + 1)
        else:
            ll.store_global(ll.cast(acc, "f16"), c_view, offsets=[offset_m, offset_n])
            ll.semaphore_release(turns, offsets=[bi, bj], value=0)

    return split_matmul


def run(m: int, n: int, k: int, splits: int, seed: int) -> float:
    """Runs the kernel on the CPU target; returns the relative Frobenius error against float64."""
    a = np.random.default_rng(1).standard_normal((m, k), np.float32).astype(np.float16)
    codes = random_codes(k, n, DTYPE.name)
    c = np.full((m, n), np.nan, np.float16)
    packed, _ = transform(codes, DTYPE.name)
    kernel = lowlp.compile_cpu(make_matmul(n, k, splits))
    counters = kernel(a, packed, c, m, seed=seed)
    again = np.empty_like(c)
    kernel(a, packed, again, m, seed=seed + 1)
    if not np.array_equal(c, again):
        raise SystemExit("another order of blocks gave other bits")
    wanted = a.astype(np.float64) @ DTYPE.decode(codes).astype(np.float64)
    error = float(np.linalg.norm(c.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    print(f"C[{m}, {n}] = A[{m}, {k}] f16 * B[{k}, {n}] int6 in {splits} parts: error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply f16 activations with int6 weights, split along K.")
    parser.add_argument("-m", type=int, default=20, help="rows of A and C (default: 20)")
    parser.add_argument("-n", type=int, default=32, help="columns of B and C, a multiple of 8 (default: 32)")
    parser.add_argument("-k", type=int, default=512, help="columns of A, rows of B (default: 512)")
    parser.add_argument("--splits", type=int, default=4, help="blocks for each tile of C (default: 4)")
    parser.add_argument("--seed", type=int, default=0, help="orders the blocks (default: 0)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    if options.m < 1 or options.splits < 1:
        parser.error(f"-m and --splits must be at least 1, got {options.m} and {options.splits}")
    if options.n < BN or options.n % BN:
        parser.error(f"-n must be a multiple of {BN}, got {options.n}")
    if options.k < 1 or options.k % (BK * options.splits):
        parser.error(f"-k must be a multiple of {BK} for each of {options.splits} parts, got {options.k}")
    if options.mlir:
        print(make_matmul(options.n, options.k, options.splits).mlir)
    elif not run(options.m, options.n, options.k, options.splits, options.seed) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
