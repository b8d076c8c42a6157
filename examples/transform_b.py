"""Packs weights of 2, 4, 6 or 8 bits for fig2.py, once and ahead of time: figure 8 of the Tilus paper.

A thread takes the bits of its 4 numbers, 24 where they have 6, out of the row-major weights and stores them as bytes.

    python examples/transform_b.py [--dtype TYPE] [-k K] [-n N]    pack random weights on the CPU target, and check
                                                                   every number
    python examples/transform_b.py --mlir                          print the program in the block dialect;
                                                                   transform_b.mlir is the same, written by hand
"""

import argparse

import numpy as np

import lowlp
from lowlp import language as ll
from lowlp.numeric.dtypes import all_dtypes

BK, BN = 16, 8
# All types of which 4 numbers fill bytes, and that f16 holds with room for sums.
DTYPES = [
    dtype.name
    for dtype in all_dtypes()
    if dtype.bits in (2, 4, 6, 8) and not dtype.name.startswith("bipolar")
    if not dtype.is_float or dtype.exponent_bits <= 4
]


def bytes_layout(bits: int) -> lowlp.Layout:
    """How threads hold the packed bytes: byte j of thread t is byte 32 j + t."""
    return lowlp.local(bits // 2).spatial(32)


def make_transform_b(k: int, n: int, dtype: str) -> ll.Kernel:
    """The kernel for weights [K, N], which the blocks of 16 x 8 must cover exactly."""
    bits = lowlp.dtype(dtype).bits

    @lowlp.kernel(grid=(k // BK, n // BN), num_threads=32)
    def transform_b(b: ll.pointer(dtype), transformed_b: ll.pointer("uint8", align=16)) -> None:
        bk, bj = ll.block_indices()
        offset_k, offset_n = bk * BK, bj * BN
        b_in = ll.view_global(b, shape=[k, n])
        b_out = ll.view_global(transformed_b, shape=[k // BK, n // BN, BK * BN * bits // 8])
        layout = lowlp.local(2, 1).column_spatial(4, 8).local(2, 1)
        codes = ll.load_global(b_in, offsets=[offset_k, offset_n], layout=layout)
        packed = ll.view(codes, dtype="uint8", layout=bytes_layout(bits))
        ll.store_global(packed, b_out, offsets=[bk, bj, 0])

    return transform_b


def random_codes(k: int, n: int, dtype: str, seed: int = 0) -> np.ndarray:
    """The codes of finite numbers, as uint8 [K, N]."""
    element = lowlp.dtype(dtype)
    codes = np.arange(1 << element.bits, dtype=np.uint8)
    return np.random.default_rng(seed).choice(codes[np.isfinite(element.decode(codes))], (k, n))


def pack_rows(codes: np.ndarray, dtype: str) -> np.ndarray:
    """The codes one after the other in row-major order, without gaps, low bits first: what the kernel reads."""
    element = lowlp.dtype(dtype)
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., : element.bits]
    packed = np.packbits(bits.reshape(-1), bitorder="little")
    return packed.view(np.int8) if dtype == "int8" else packed


def transform(codes: np.ndarray, dtype: str) -> tuple[np.ndarray, dict[str, int]]:
    """The packed weights [K / 16, N / 8, 16 bits], made by the kernel on the CPU target, and what it counted."""
    k, n = codes.shape
    packed = np.zeros((k // BK, n // BN, BK * BN * lowlp.dtype(dtype).bits // 8), np.uint8)
    counters = make_transform_b(k, n, dtype)(pack_rows(codes, dtype), packed)
    return packed, counters


def expected(codes: np.ndarray, dtype: str) -> np.ndarray:
    """The same, by the layouts alone: each thread's 4 codes one after the other, its byte j at 32 * j + thread."""
    k, n = codes.shape
    bits = lowlp.dtype(dtype).bits
    held = lowlp.local(2, 1).column_spatial(4, 8).local(2, 1).table()  # [thread, place, (k, n)]
    tiles = codes.reshape(k // BK, BK, n // BN, BN).swapaxes(1, 2)
    own = tiles[:, :, held[..., 0], held[..., 1]].astype(np.uint32)  # [.., .., thread, place]
    words = (own << (bits * np.arange(4, dtype=np.uint32))).sum(axis=-1, dtype=np.uint32)
    in_thread = np.stack([words >> (8 * j) & 255 for j in range(bits // 2)], axis=-2)
    return in_thread.astype(np.uint8).reshape(k // BK, n // BN, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pack weights on the CPU target.")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="int6", metavar="TYPE", help="of the weights (default: int6)"
    )
    parser.add_argument("-k", type=int, default=256, help="rows of the weights, a multiple of 16 (default: 256)")
    parser.add_argument("-n", type=int, default=256, help="columns, a multiple of 8 (default: 256)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    if options.k < BK or options.n < BN or options.k % BK or options.n % BN:
        parser.error(f"-k must be a multiple of {BK} and -n of {BN}")
    if options.mlir:
        print(make_transform_b(options.k, options.n, options.dtype).mlir)
        return
    codes = random_codes(options.k, options.n, options.dtype)
    packed, counters = transform(codes, options.dtype)
    wrong = int((packed != expected(codes, options.dtype)).sum())
    print(f"packed {options.k} x {options.n} {options.dtype} weights into {packed.size} bytes; {wrong} bytes differ")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
