"""Packs int6 weights for fig2.py, once and ahead of time: figure 8 of the Tilus paper.

A thread takes the 24 bits of its 4 numbers out of the row-major weights and stores them as 3 bytes.

    python examples/transform_b.py [-k K] [-n N]    pack random weights on the CPU target, and check every number
    python examples/transform_b.py --mlir           print the program in the block dialect; transform_b.mlir is the
                                                    same program, written by hand
"""

import argparse

import numpy as np

import lowlp
from lowlp import language as ll

BK, BN, BITS = 16, 8, 6


def make_transform_b(k: int, n: int) -> ll.Kernel:
    """The kernel for weights [K, N], which the blocks of 16 x 8 must cover exactly."""

    @lowlp.kernel(grid=(k // BK, n // BN), num_threads=32)
    def transform_b(b: ll.pointer("int6"), transformed_b: ll.pointer("uint8", align=16)) -> None:
        bk, bj = ll.block_indices()
        offset_k, offset_n = bk * BK, bj * BN
        b_in = ll.view_global(b, shape=[k, n])
        b_out = ll.view_global(transformed_b, shape=[k // BK, n // BN, BK * BN * BITS // 8])
        layout = lowlp.local(2, 1).column_spatial(4, 8).local(2, 1)
        codes = ll.load_global(b_in, offsets=[offset_k, offset_n], layout=layout)
        packed = ll.view(codes, dtype="uint8", layout=lowlp.local(3).spatial(32))
        ll.store_global(packed, b_out, offsets=[bk, bj, 0])

    return transform_b


def random_weights(k: int, n: int, seed: int = 0) -> np.ndarray:
    """Numbers of 6 bits, -32 to 31, as int8 [K, N]."""
    return np.random.default_rng(seed).integers(-32, 32, (k, n), dtype=np.int8)


def pack_rows(weights: np.ndarray) -> np.ndarray:
    """The weights one after the other in row-major order, 6 bits each, low bits first: what the kernel reads."""
    bits = np.unpackbits(weights.view(np.uint8)[..., None], axis=-1, bitorder="little")[..., :BITS]
    return np.packbits(bits.reshape(-1), bitorder="little")


def transform(weights: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """The packed weights [K / 16, N / 8, 96], made by the kernel on the CPU target, and what it counted."""
    k, n = weights.shape
    packed = np.zeros((k // BK, n // BN, BK * BN * BITS // 8), np.uint8)
    counters = make_transform_b(k, n)(pack_rows(weights), packed)
    return packed, counters


def expected(weights: np.ndarray) -> np.ndarray:
    """The same, by the layouts alone: each thread's 4 codes in 24 bits, its byte j at 32 * j + thread."""
    k, n = weights.shape
    held = lowlp.local(2, 1).column_spatial(4, 8).local(2, 1).table()  # [thread, place, (k, n)]
    tiles = weights.view(np.uint8).reshape(k // BK, BK, n // BN, BN).swapaxes(1, 2) & 63
    codes = tiles[:, :, held[..., 0], held[..., 1]].astype(np.uint32)  # [.., .., thread, place]
    words = (codes << (BITS * np.arange(4, dtype=np.uint32))).sum(axis=-1, dtype=np.uint32)
    in_thread = np.stack([words >> shift & 255 for shift in (0, 8, 16)], axis=-2)
    return in_thread.astype(np.uint8).reshape(k // BK, n // BN, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack int6 weights on the CPU target.")
    parser.add_argument("-k", type=int, default=256, help="rows of the weights, a multiple of 16 (default: 256)")
    parser.add_argument("-n", type=int, default=256, help="columns, a multiple of 8 (default: 256)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    if options.k < BK or options.n < BN or options.k % BK or options.n % BN:
        parser.error(f"-k must be a multiple of {BK} and -n of {BN}")
    if options.mlir:
        print(make_transform_b(options.k, options.n).mlir)
        return
    weights = random_weights(options.k, options.n)
    packed, counters = transform(weights)
    wrong = int((packed != expected(weights)).sum())
    print(f"packed {options.k} x {options.n} int6 weights into {packed.size} bytes; {wrong} bytes differ")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
