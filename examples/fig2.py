"""The product of f16 activations and weights of few bits, C[M, N] = A[M, K] * B[K, N]: figure 2 of the Tilus paper.

The paper's weights are int6; any type of 2, 4, 6 or 8 bits does. They are packed ahead, by transform_b.py.

    python examples/fig2.py [--dtype TYPE] [-m M] [-n N] [-k K]    pack, compile, run on the CPU target, compare with
                                                                   float64
    python examples/fig2.py --mlir                                 print the program in the block dialect; fig2.mlir is
                                                                   the same, written by hand, for M = N = K = 1024
"""

import argparse

import numpy as np
from transform_b import DTYPES, bytes_layout, random_codes, transform

import lowlp
from lowlp import language as ll

BM, BN, BK = 16, 8, 16
LIMIT = 2e-3


def make_matmul(m: int, n: int, k: int, dtype: str) -> ll.Kernel:
    """The kernel for sizes that the blocks of 16 x 8 x 16 cover exactly."""
    bits = lowlp.dtype(dtype).bits

    @lowlp.kernel(grid=(m // BM, n // BN), num_threads=32)
    def matmul(
        a: ll.pointer("f16", align=16),
        transformed_b: ll.pointer("uint8", align=16),
        c: ll.pointer("f16", align=16),
    ) -> None:
        bi, bj = ll.block_indices()
        offset_m, offset_n = bi * BM, bj * BN
        a_view = ll.view_global(a, shape=[m, k])
        b_view = ll.view_global(transformed_b, shape=[k // BK, n // BN, BK * BN * bits // 8])
        c_view = ll.view_global(c, shape=[m, n])
        acc = ll.full(0.0, "f32", layout=lowlp.local(2, 1).spatial(8, 4).local(1, 2))
        for step in ll.range(k // BK):
            a_tile = ll.load_global(
                a_view, offsets=[offset_m, step * BK], layout=lowlp.column_local(2, 2).spatial(8, 4).local(1, 2)
            )
            b_bytes = ll.load_global(b_view, offsets=[step, bj, 0], layout=bytes_layout(bits))
            # Of 6 bits, a thread's 3 bytes are 4 numbers, just those that the matrix instruction wants it to hold.
            b_codes = ll.view(b_bytes, dtype=dtype, layout=lowlp.local(2, 1).column_spatial(4, 8).local(2, 1))
            b_tile = ll.cast(b_codes, "f16")
            acc = ll.dot(a_tile, b_tile, acc)
        ll.store_global(ll.cast(acc, "f16"), c_view, offsets=[offset_m, offset_n])

    return matmul


def run(m: int, n: int, k: int, dtype: str) -> float:
    """Runs the kernel on the CPU target; returns the relative Frobenius error against float64."""
    a = np.random.default_rng(1).standard_normal((m, k), np.float32).astype(np.float16)
    codes = random_codes(k, n, dtype)
    c = np.full((m, n), np.nan, np.float16)
    packed, _ = transform(codes, dtype)
    counters = make_matmul(m, n, k, dtype)(a, packed, c)
    wanted = a.astype(np.float64) @ lowlp.dtype(dtype).decode(codes).astype(np.float64)
    error = float(np.linalg.norm(c.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    print(f"C[{m}, {n}] = A[{m}, {k}] f16 * B[{k}, {n}] {dtype}: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply f16 activations with weights of few bits on the CPU target.")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="int6", metavar="TYPE", help="of the weights (default: int6)"
    )
    parser.add_argument("-m", type=int, default=64, help="rows of A and C, a multiple of 16 (default: 64)")
    parser.add_argument("-n", type=int, default=64, help="columns of B and C, a multiple of 8 (default: 64)")
    parser.add_argument("-k", type=int, default=128, help="columns of A, rows of B, a multiple of 16 (default: 128)")
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
