"""Packs int6 weights for fig2.py, once and ahead of time: figure 8 of the Tilus paper.

A thread takes the 24 bits of its 4 numbers out of the row-major weights and stores them as 3 bytes. Prints the program
in the block dialect; transform_b.mlir is the same program, written by hand.
"""

import lowlp
from lowlp import language as ll

N, K = 1024, 1024
BN, BK = 8, 16


@lowlp.kernel(grid=(K // BK, N // BN), num_threads=32)
def transform_b(b: ll.pointer("int6"), transformed_b: ll.pointer("uint8", align=16)) -> None:
    bk, bj = ll.block_indices()
    offset_k, offset_n = bk * BK, bj * BN
    b_in = ll.view_global(b, shape=[K, N])
    b_out = ll.view_global(transformed_b, shape=[K // BK, N // BN, BK * BN * 6 // 8])
    codes = ll.load_global(
        b_in, offsets=[offset_k, offset_n], layout=lowlp.local(2, 1).column_spatial(4, 8).local(2, 1)
    )
    packed = ll.view(codes, dtype="uint8", layout=lowlp.local(3).spatial(32))
    ll.store_global(packed, b_out, offsets=[bk, bj, 0])


def main() -> None:
    print(transform_b.mlir)


if __name__ == "__main__":
    main()
