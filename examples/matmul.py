"""A product of f16 matrices of any size, C[M, N] = A[M, K] * B[K, N], pipelined by way of shared memory.

A block of 4 warps computes 128 x 128 elements of C. It keeps four stages of A and B in shared memory: while it computes
with one, copies into the others are in flight (Tilus, figure 14). Rows lie swizzled, so that `ldmatrix` and `stmatrix`,
into which loads and stores of shared memory turn, meet every bank once. What lies beyond an edge loads as zero and is
not stored, so no size is refused.

    python examples/matmul.py [-m M] [-n N] [-k K]    compile, run on the CPU target, compare with float64
    python examples/matmul.py --mlir                  print the program in the block dialect
"""

import argparse

import numpy as np

import lowlp
from lowlp import language as ll

BM, BN, BK = 128, 128, 32
STEP = 16  # what is computed at once of BK
STAGES = 4
LIMIT = 2e-3

# Of the 2 x 2 warps those in a row need the same rows of A, and those in a column the same columns of B.
LAYOUT_A = lowlp.reduce(lowlp.spatial(2, 1, 2), dims=[2]).local(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)
LAYOUT_B = lowlp.reduce(lowlp.spatial(2, 1, 2), dims=[0]).local(1, 8).local(2, 1).column_spatial(4, 8).local(2, 1)
LAYOUT_C = lowlp.spatial(2, 2).local(4, 8).local(2, 1).spatial(8, 4).local(1, 2)
LAYOUT_ROWS = lowlp.local(16, 1).spatial(8, 16).local(1, 8)
# In chunks of 16 bytes. Two rows of A are 128 bytes, which is all banks once; a row of B is more.
SHARED_A = lowlp.local(STAGES, 1, 1).swizzle(lowlp.local(BM, BK // 8), dim=1, log_step=1).local(1, 8)
SHARED_B = lowlp.local(STAGES, 1, 1).swizzle(lowlp.local(BK, BN // 8), dim=1).local(1, 8)
SHARED_C = lowlp.swizzle(lowlp.local(BM, BN // 8), dim=1).local(1, 8)


def make_matmul(n: int, k: int) -> ll.Kernel:
    """The kernel for matrices of any number of rows M."""

    @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, BM), ll.ceildiv(n, BN)), num_threads=128)
    def matmul(
        a: ll.pointer("f16", align=16), b: ll.pointer("f16", align=16), c: ll.pointer("f16", align=16), m: ll.i32
    ) -> None:
        bi, bj = ll.block_indices()
        offset_m, offset_n = bi * BM, bj * BN
        a_view = ll.view_global(a, shape=[m, k])
        b_view = ll.view_global(b, shape=[k, n])
        c_view = ll.view_global(c, shape=[m, n])
        a_shared = ll.alloc_shared("f16", [STAGES, BM, BK], SHARED_A)
        b_shared = ll.alloc_shared("f16", [STAGES, BK, BN], SHARED_B)
        c_shared = ll.alloc_shared("f16", [BM, BN], SHARED_C)

        @ll.inline
        def preload(stage: int | ll.Scalar, bk: int | ll.Scalar) -> None:
            """Begins to fill a stage; past the end of K it becomes zero."""
            ll.copy_async(a_view, a_shared, view_offsets=[offset_m, bk * BK], offsets=[stage, 0, 0], shape=[BM, BK])
            ll.copy_async(b_view, b_shared, view_offsets=[bk * BK, offset_n], offsets=[stage, 0, 0], shape=[BK, BN])
            ll.copy_async_commit()

        acc = ll.full(0.0, "f32", layout=LAYOUT_C)
        for stage in range(STAGES - 1):
            preload(stage, stage)
        current, free = 0, STAGES - 1
        for bk in ll.range(ll.ceildiv(k, BK)):
            ll.copy_async_wait(STAGES - 2)
            ll.synchronize()
            # All threads are done with the stage before this one.
            preload(free, bk + (STAGES - 1))
            for step in range(BK // STEP):
                a_tile = ll.load_shared(a_shared, offsets=[current, 0, step * STEP], layout=LAYOUT_A)
                b_tile = ll.load_shared(b_shared, offsets=[current, step * STEP, 0], layout=LAYOUT_B)
                acc = ll.dot(a_tile, b_tile, acc)
            current, free = (current + 1) % STAGES, (free + 1) % STAGES
        ll.copy_async_wait(0)
        ll.store_shared(ll.cast(acc, "f16"), c_shared, offsets=[0, 0])
        ll.synchronize()
        rows = ll.load_shared(c_shared, offsets=[0, 0], layout=LAYOUT_ROWS)
        ll.store_global(rows, c_view, offsets=[offset_m, offset_n])

    return matmul


def run(m: int, n: int, k: int) -> float:
    """Runs the kernel on the CPU target; returns the relative Frobenius error against float64."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((m, k), np.float32).astype(np.float16)
    b = rng.standard_normal((k, n), np.float32).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    counters = make_matmul(n, k)(a, b, c, m)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    error = float(np.linalg.norm(c.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    print(f"C[{m}, {n}] = A[{m}, {k}] * B[{k}, {n}] in f16: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply f16 matrices on the CPU target.")
    parser.add_argument("-m", type=int, default=200, help="rows of A and C (default: 200)")
    parser.add_argument("-n", type=int, default=136, help="columns of B and C (default: 136)")
    parser.add_argument("-k", type=int, default=72, help="columns of A, rows of B (default: 72)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    for name, extent in (("-m", options.m), ("-n", options.n), ("-k", options.k)):
        if extent < 1:
            parser.error(f"{name} must be at least 1, got {extent}")
    if options.mlir:
        print(make_matmul(options.n, options.k).mlir)
    elif not run(options.m, options.n, options.k) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
