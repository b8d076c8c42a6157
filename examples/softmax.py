"""Softmax over the rows of a matrix: y[i, j] = exp(x[i, j] - m[i]) / sum over j of exp(x[i, j] - m[i]).

m[i] is the largest element of row i, which keeps the powers within range. A warp takes some rows, and walks along them
twice: once for the largest element and the sum together, mending the sum whenever the largest element grows, and once
for the result. Rows may have any length: what lies past their end counts as -infinity, whose power is 0.

    python examples/softmax.py [-m M] [-n N] [--rows R]    compile, run on the CPU target, compare with float64
    python examples/softmax.py --mlir                      print the program in the block dialect
"""

import argparse
import math

import numpy as np

import lowlp
from lowlp import language as ll

LOG2_E = math.log2(math.e)
LOWEST = -1e30  # below every element of f16, and finite: a row may begin with -infinity
VALUES = 4
LIMIT = 1e-3
ROWS = (1, 2, 4, 8, 16, 32)


def make_softmax(n: int, rows: int = 1) -> ll.Kernel:
    """The kernel for rows of length n, of which a warp takes `rows`, a power of two up to 32."""
    lanes = 32 // rows
    columns = lanes * VALUES
    layout = lowlp.spatial(rows, lanes).local(1, VALUES)

    @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, rows),), num_threads=32)
    def softmax(x: ll.pointer("f16", align=16), y: ll.pointer("f16", align=16), m: ll.i32) -> None:
        (bi,) = ll.block_indices()
        x_view = ll.view_global(x, shape=[m, n])
        y_view = ll.view_global(y, shape=[m, n])
        index = ll.iota(1, layout=layout)

        def load(step):
            """A part of the rows, times log2 e, so that powers of 2 do for those of e."""
            tile = ll.cast(ll.load_global(x_view, offsets=[bi * rows, step * columns], layout=layout), "f32")
            return ll.where(index < rest, tile * LOG2_E, -math.inf)

        largest = ll.full(LOWEST, "f32", layout=layout.reduce([1], keep_dims=True))
        total = ll.full(0.0, "f32", layout=layout.reduce([1], keep_dims=True))
        rest = ll.full(float(n), "f32", layout=layout)
        for step in ll.range(ll.ceildiv(n, columns)):
            tile = load(step)
            grown = ll.maximum(largest, ll.max(tile, 1, keep_dims=True))
            total = total * ll.exp2(largest - grown) + ll.sum(ll.exp2(tile - grown), 1, keep_dims=True)
            largest = grown
            rest = rest - float(columns)

        rest = ll.full(float(n), "f32", layout=layout)
        for step in ll.range(ll.ceildiv(n, columns)):
            powers = ll.exp2(load(step) - largest)
            ll.store_global(ll.cast(powers / total, "f16"), y_view, offsets=[bi * rows, step * columns])
            rest = rest - float(columns)

    return softmax


def run(m: int, n: int, rows: int) -> float:
    """Runs the kernel on the CPU target; returns the largest error, in parts of the largest element of its row."""
    x = (4 * np.random.default_rng(1).standard_normal((m, n))).astype(np.float16)
    y = np.full((m, n), np.nan, np.float16)
    counters = make_softmax(n, rows)(x, y, m)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    wanted = powers / powers.sum(axis=1, keepdims=True)
    error = float(np.max(np.abs(y - wanted) / wanted.max(axis=1, keepdims=True)))
    print(f"softmax of x[{m}, {n}] f16, {rows} rows a warp: largest error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the softmax of rows on the CPU target.")
    parser.add_argument("-m", type=int, default=16, help="rows (default: 16)")
    parser.add_argument("-n", type=int, default=1000, help="their length (default: 1000)")
    parser.add_argument("--rows", type=int, choices=ROWS, default=1, help="rows that a warp takes (default: 1)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    for name, extent in (("-m", options.m), ("-n", options.n)):
        if extent < 1:
            parser.error(f"{name} must be at least 1, got {extent}")
    if options.mlir:
        print(make_softmax(options.n, options.rows).mlir)
    elif not run(options.m, options.n, options.rows) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
