"""The product of f16 activations and int6 weights, C[M, N] = A[M, K] * B[K, N]: figure 2 of the Tilus paper.

The weights were packed ahead, by transform_b.py. Prints the program in the block dialect; fig2.mlir is the same
program, written by hand.
"""

import lowlp
from lowlp import language as ll

M, N, K = 1024, 1024, 1024
BM, BN, BK = 16, 8, 16


@lowlp.kernel(grid=(M // BM, N // BN), num_threads=32)
def matmul(
    a: ll.pointer("f16", align=16),
    transformed_b: ll.pointer("uint8", align=16),
    c: ll.pointer("f16", align=16),
) -> None:
    bi, bj = ll.block_indices()
    offset_m, offset_n = bi * BM, bj * BN
    a_view = ll.view_global(a, shape=[M, K])
    b_view = ll.view_global(transformed_b, shape=[K // BK, N // BN, BK * BN * 6 // 8])
    c_view = ll.view_global(c, shape=[M, N])
    acc = ll.full(0.0, "f32", layout=lowlp.local(2, 1).spatial(8, 4).local(1, 2))
    for k in ll.range(K // BK):
        a_tile = ll.load_global(
            a_view, offsets=[offset_m, k * BK], layout=lowlp.column_local(2, 2).spatial(8, 4).local(1, 2)
        )
        b_bytes = ll.load_global(b_view, offsets=[k, bj, 0], layout=lowlp.local(3).spatial(32))
        # The 24 bits that each thread holds are 3 bytes, and 4 numbers of 6 bits where the matrix instruction wants them.
        b_codes = ll.view(b_bytes, dtype="int6", layout=lowlp.local(2, 1).column_spatial(4, 8).local(2, 1))
        b_tile = ll.cast(b_codes, "f16")
        acc = ll.dot(a_tile, b_tile, acc)
    ll.store_global(ll.cast(acc, "f16"), c_view, offsets=[offset_m, offset_n])


def main() -> None:
    print(matmul.mlir)


if __name__ == "__main__":
    main()
