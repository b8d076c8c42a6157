"""The root-mean-square norm of rows: y[i, j] = x[i, j] * w[j] / sqrt(mean over j of x[i, j]^2 + epsilon).

A warp takes some rows, and walks along them twice: once for the sum of the squares, once for the result. Rows may have
any length: elements past their end are loaded as 0, which adds nothing to the sum, and are not stored.

    python examples/rmsnorm.py [-m M] [-n N] [--rows R]    compile, run on the CPU target, compare with float64
    python examples/rmsnorm.py --mlir                      print the program in the block dialect
"""

import argparse

import numpy as np

import lowlp
from lowlp import language as ll

EPSILON = 1e-5
VALUES = 4
LIMIT = 2e-3
ROWS = (1, 2, 4, 8, 16, 32)


def make_rmsnorm(n: int, rows: int = 1) -> ll.Kernel:
    """The kernel for rows of length n, of which a warp takes `rows`, a power of two up to 32."""
    lanes = 32 // rows
    columns = lanes * VALUES
    layout = lowlp.spatial(rows, lanes).local(1, VALUES)

    @lowlp.kernel(grid=lambda m: (ll.ceildiv(m, rows),), num_threads=32)
    def rmsnorm(
        x: ll.pointer("f16", align=16), w: ll.pointer("f16", align=16), y: ll.pointer("f16", align=16), m: ll.i32
    ) -> None:
        (bi,) = ll.block_indices()
        x_view = ll.view_global(x, shape=[m, n])
        y_view = ll.view_global(y, shape=[m, n])
        w_view = ll.view_global(w, shape=[1, n])

        def load(step):
            return ll.cast(ll.load_global(x_view, offsets=[bi * rows, step * columns], layout=layout), "f32")

        squares = ll.full(0.0, "f32", layout=layout)
        for step in ll.range(ll.ceildiv(n, columns)):
            tile = load(step)
            squares = squares + tile * tile
        scale = ll.rsqrt(ll.sum(squares, 1, keep_dims=True) / float(n) + EPSILON)

        for step in ll.range(ll.ceildiv(n, columns)):
            # Every row has the same weights: the lanes of each hold them all.
            weights = ll.load_global(w_view, offsets=[0, step * columns], layout=layout.reduce([0], keep_dims=True))
            result = load(step) * scale * ll.cast(weights, "f32")
            ll.store_global(ll.cast(result, "f16"), y_view, offsets=[bi * rows, step * columns])

    return rmsnorm


def run(m: int, n: int, rows: int) -> float:
    """Runs the kernel on the CPU target; returns the relative error against float64, the largest of all rows."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((m, n)).astype(np.float16)
    w = rng.uniform(0.5, 1.5, n).astype(np.float16)
    y = np.full((m, n), np.nan, np.float16)
    counters = make_rmsnorm(n, rows)(x, w, y, m)
    wide = x.astype(np.float64)
    wanted = wide * w / np.sqrt(np.mean(wide**2, axis=1, keepdims=True) + EPSILON)
    error = float(np.max(np.linalg.norm(y - wanted, axis=1) / np.linalg.norm(wanted, axis=1)))
    print(f"norm of x[{m}, {n}] f16, {rows} rows a warp: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the root-mean-square norm of rows on the CPU target.")
    parser.add_argument("-m", type=int, default=16, help="rows (default: 16)")
    parser.add_argument("-n", type=int, default=1000, help="their length (default: 1000)")
    parser.add_argument("--rows", type=int, choices=ROWS, default=1, help="rows that a warp takes (default: 1)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    for name, extent in (("-m", options.m), ("-n", options.n)):
        if extent < 1:
            parser.error(f"{name} must be at least 1, got {extent}")
    if options.mlir:
        print(make_rmsnorm(options.n, options.rows).mlir)
    elif not run(options.m, options.n, options.rows) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
