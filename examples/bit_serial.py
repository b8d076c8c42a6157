"""An exact product of integer codes of any widths on the tensor cores' 1-bit instructions (APT-LLM, section III).

Codes of p and q bits are p and q planes of single bits. Two planes are multiplied by a bitwise and, whose bits the
instruction counts, 256 of K at a time; products of planes i and j count 2^(i + j), so those with equal i + j are added
in the same accumulators, and these at the end by shifts. Codes count up from 0: signed and bipolar numbers are a linear
function of them, and what that adds is taken off by the sums of codes of a row.

    y[m, n] = sum over k of (a u[m, k] + c) (b v[n, k] + d)
            = a b D[m, n] + a d S_u[m] + c b S_v[n] + K c d         D: of codes alone; S: sums of codes

    python examples/bit_serial.py [--weight int3] [--activation bipolar2] [-m M] [-n N] [-k K]
    python examples/bit_serial.py --mlir                  print the program in the block dialect
"""

import argparse

import numpy as np

import lowlp
from lowlp import language as ll
from lowlp.numeric.dtypes import DType

ROWS, COLUMNS, STEP = 64, 8, 256
# Of 4 warps each has 16 rows of weights, all the same 8 rows of x. A word is 32 bits of K.
WORDS_OF_W = lowlp.spatial(4, 1, 1, 1, 1).local(1, 1, 1, 1, 1).spatial(1, 1, 1, 32, 1).local(1, 1, 1, 1, 4)
BITS_OF_W = lowlp.spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)
WORDS_OF_X = lowlp.reduce(lowlp.spatial(1, 1, 4), dims=[2]).local(1, 2).spatial(8, 4)
BITS_OF_X = WORDS_OF_X.local(1, 32)
SUMS = lowlp.spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)


def make_bit_serial(n: int, k: int, p: int, q: int) -> ll.Kernel:
    """D of weights of p bits [n, k], packed in the family b1, and planes of x of q bits, uint32 [m, q, k / 32]."""
    steps = -(-k // STEP)

    @lowlp.kernel(grid=lambda m: (-(-n // ROWS), ll.ceildiv(m, COLUMNS)), num_threads=128)
    def bit_serial(
        planes: ll.pointer("uint32"), weights: ll.pointer("uint32"), d: ll.pointer("int32"), m: ll.i32
    ) -> None:
        bi, bj = ll.block_indices()
        x_view = ll.view_global(planes, shape=[q, m, -(-k // 32)], strides=[-(-k // 32), q * -(-k // 32), 1])
        w_view = ll.view_global(weights, shape=[-(-n // 16), steps, p, 32, 4])
        d_view = ll.view_global(d, shape=[n, m], strides=[1, n])
        levels = tuple(ll.full(0, "int32", layout=SUMS) for _ in range(p + q - 1))
        for step in ll.range(steps):
            added = list(levels)
            for i in range(p):
                words = ll.load_global(w_view, offsets=[bi * 4, step, i, 0, 0], layout=WORDS_OF_W)
                w_bits = ll.view(words, dtype="uint1", layout=BITS_OF_W)
                for j in range(q):
                    words = ll.load_global(x_view, offsets=[j, bj * COLUMNS, step * 8], layout=WORDS_OF_X)
                    x_bits = ll.transpose(ll.view(words, dtype="uint1", layout=BITS_OF_X))
                    added[i + j] = ll.dot(w_bits, x_bits, added[i + j])
            levels = tuple(added)
        total = levels[0]
        for level in range(1, p + q - 1):
            total = total + (levels[level] << level)
        ll.store_global(total, d_view, offsets=[bi * ROWS, bj * COLUMNS])

    return bit_serial


def random_codes(rng: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> np.ndarray:
    """Codes as activations have them: signed numbers as they are, else counted from 0."""
    low = int(dtype.min) if dtype.is_integer else 0
    return rng.integers(low, low + (1 << dtype.bits), shape).astype(np.int8 if low else np.uint8)


def numbers(codes: np.ndarray, dtype: DType) -> np.ndarray:
    """What codes mean."""
    return codes.astype(np.int64) if dtype.is_integer else 2 * codes.astype(np.int64) - ((1 << dtype.bits) - 1)


def linear_of(dtype: DType) -> tuple[int, int]:
    """Of number = a * code + c, with codes that count up from 0."""
    return (1 if dtype.is_integer else 2), int(dtype.min)


def run(weight: str, activation: str, m: int, n: int, k: int) -> int:
    """Runs the kernel on the CPU target; returns how many of the exact sums differ from numpy's."""
    rng = np.random.default_rng(1)
    w_type, x_type = lowlp.dtype(weight), lowlp.dtype(activation)
    w, x = random_codes(rng, w_type, (n, k)), random_codes(rng, x_type, (m, k))
    mask = (1 << w_type.bits) - 1
    qw = lowlp.QuantizedTensor(
        w.view(np.uint8) & mask, dtype=w_type, scales=np.ones((n, 1), np.float16), activation="b1"
    )
    xq = lowlp.QuantizedActivations(x, dtype=activation, scales=1.0)
    d = np.full((m, n), -1, np.int32)
    counters = make_bit_serial(n, k, w_type.bits, x_type.bits)(xq.planes, qw.packed, d, m)
    (a, c), (b, e) = linear_of(x_type), linear_of(w_type)
    sums_of_x = (numbers(x, x_type).sum(1) - k * c) // a
    y = a * b * d.astype(np.int64) + (a * e * sums_of_x)[:, None] + c * b * qw.code_sums[:, 0] + k * c * e
    wrong = int((y != numbers(x, x_type) @ numbers(w, w_type).T).sum())
    print(f"Y[{m}, {n}] of {activation} x {weight}, K = {k}: {wrong} of {y.size} sums differ from numpy's")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply integer codes by their bits, on the CPU target.")
    parser.add_argument("--weight", default="int3", help="type of the weights (default: int3)")
    parser.add_argument("--activation", default="bipolar2", help="type of x (default: bipolar2)")
    parser.add_argument("-m", type=int, default=11, help="rows of x (default: 11)")
    parser.add_argument("-n", type=int, default=100, help="rows of the weights (default: 100)")
    parser.add_argument("-k", type=int, default=600, help="columns of both (default: 600)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    for name, extent in (("-m", options.m), ("-n", options.n), ("-k", options.k)):
        if extent < 1:
            parser.error(f"{name} must be at least 1, got {extent}")
    bits = [lowlp.dtype(name).bits for name in (options.weight, options.activation)]
    if options.mlir:
        print(make_bit_serial(options.n, options.k, *bits).mlir)
    elif run(options.weight, options.activation, options.m, options.n, options.k):
        raise SystemExit("the sums are not exact")


if __name__ == "__main__":
    main()
