"""Products of matrices in which no layout is named: C = A * B in f16, and Y = X * W^T with packed weights of 4 bits.

A tile that is made from a shape alone has no layout of its own. The pass `lowlp-infer-layouts` gives it the one that
the instructions around it need: fragments for tensor cores, which `ldmatrix` loads from swizzled stages, and rows of
16 bytes for copies. `matmul.py` is the same product with all of that written by hand.

With packed weights the kernel allows the pass `lowlp-fold-scales` to scale accumulators in place of weights, and
`lowlp.autotune` chooses how blocks divide the work: on a GPU by measurement, elsewhere by `estimated`. In six products
on an H200 it takes 1.00 to 1.11 times as long as `lowlp.linear`, which is written with all layouts
(docs/measurements/weights.md).

    python examples/plain_matmul.py [--packed] [-m M] [-n N] [-k K]    compile, run on the CPU target, compare with
                                                                       float64
    python examples/plain_matmul.py [--packed] --mlir                  print the program in the block dialect
"""

import argparse
from typing import NamedTuple

import numpy as np

import lowlp
from lowlp import language as ll
from lowlp.packing import pack

BM, BN, BK = 64, 64, 64
GROUP, STEP = 128, 64
LIMIT = 2e-3


@lowlp.kernel(grid=lambda m, n, k: (ll.ceildiv(m, BM), ll.ceildiv(n, BN)), num_threads=128)
def matmul(
    a: ll.pointer("f16", align=16),
    b: ll.pointer("f16", align=16),
    c: ll.pointer("f16", align=16),
    m: ll.i32,
    n: ll.integer(32, divisible_by=8),
    k: ll.integer(32, divisible_by=8),
) -> None:
    """C[M, N] = A[M, K] * B[K, N]. That rows are multiples of 16 bytes allows tensor copies."""
    bi, bj = ll.block_indices()
    a_view = ll.view_global(a, shape=[m, k])
    b_view = ll.view_global(b, shape=[k, n])
    c_view = ll.view_global(c, shape=[m, n])
    acc = ll.full(0.0, "f32", shape=[BM, BN])
    for step in ll.range(ll.ceildiv(k, BK), stages=3):
        a_tile = ll.load_global(a_view, offsets=[bi * BM, step * BK], shape=[BM, BK])
        b_tile = ll.load_global(b_view, offsets=[step * BK, bj * BN], shape=[BK, BN])
        acc = ll.dot(a_tile, b_tile, acc)
    ll.store_global(ll.cast(acc, "f16"), c_view, offsets=[bi * BM, bj * BN])


class Tiles(NamedTuple):
    """How blocks divide the work: rows of W, rows of X, K of a stage, stages, warps, and what passes are told."""

    n: int
    m: int
    k: int
    stages: int
    warps: int
    schedule: ll.KernelSchedule = ll.KernelSchedule(reassociate=True, blocks_per_sm=1)


WARPGROUPS = ll.KernelSchedule(reassociate=True, matrix_unit="warpgroup")
CANDIDATES = [
    *(Tiles(448, columns, 128, 3, 7) for columns in (8, 16)),
    *(Tiles(64, columns, 512, 4, 4) for columns in (8, 16)),
    *(Tiles(128, columns, 256, 4, 8) for columns in (8, 16)),
    *(Tiles(rows, columns, 128, 3, rows // 16, WARPGROUPS) for columns in (128, 64, 32) for rows in (128, 64)),
]
SMS = 132


def estimated(*, n: int, k: int, tiles: Tiles, m: int) -> float:
    """Weights to decode and columns to multiply, of the SM that has most blocks of an H200."""
    blocks = -(-m // tiles.m) * (n // tiles.n)
    return -(-blocks // SMS) * tiles.n * (8 + tiles.m)


@lowlp.autotune({"tiles": CANDIDATES}, key=("m",), estimate=estimated)
def make_packed_matmul(n: int, k: int, *, tiles: Tiles) -> ll.Kernel:
    """Y[M, N] = X[M, K] * W[N, K]^T with weights of int4 and f16 scales [K / 128, N], for any number of rows M."""
    if n % tiles.n:
        raise lowlp.errors.LowlpValueError(f"n: must be a multiple of {tiles.n}, got {n}")
    groups_of_stage = tiles.k // GROUP

    @lowlp.kernel(
        grid=lambda m: (ll.ceildiv(m, tiles.m), n // tiles.n), num_threads=32 * tiles.warps, schedule=tiles.schedule
    )
    def packed_matmul(
        w: ll.pointer("uint32", align=16),
        scales: ll.pointer("f16", align=16),
        x: ll.pointer("f16", align=16),
        y: ll.pointer("f16", align=16),
        m: ll.i32,
    ) -> None:
        bj, bi = ll.block_indices()
        w_view = ll.view_packed(w, shape=[n, k], dtype="int4", placement="int4.f16")
        scale_view = ll.view_global(scales, shape=[k // GROUP, n])
        x_view = ll.view_global(x, shape=[m, k])
        y_view = ll.view_global(y, shape=[m, n])
        # Weights are the first operand, so that a few rows of x waste nothing: the accumulators are those of Y^T.
        acc = ll.full(0.0, "f32", shape=[tiles.n, tiles.m])
        for stage in ll.range(ll.ceildiv(k, tiles.k), stages=tiles.stages, producer=True):
            for step in range(tiles.k // STEP):
                at, group = stage * tiles.k + step * STEP, stage * groups_of_stage + step * STEP // GROUP
                codes = ll.load_packed(w_view, offsets=[bi * tiles.n, at], shape=[tiles.n, STEP])
                scale = ll.load_global(scale_view, offsets=[group, bi * tiles.n], shape=[1, tiles.n])
                x_tile = ll.load_global(x_view, offsets=[bj * tiles.m, at], shape=[tiles.m, STEP])
                acc = ll.dot(ll.cast(codes, "f16") * ll.transpose(scale), ll.transpose(x_tile), acc)
        ll.store_global(ll.cast(ll.transpose(acc), "f16"), y_view, offsets=[bj * tiles.m, bi * tiles.n])

    return packed_matmul


def report(what: str, found: np.ndarray, wanted: np.ndarray, counters: dict[str, int]) -> float:
    """Prints and returns the relative Frobenius error."""
    error = float(np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    print(f"{what}: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def run(m: int, n: int, k: int) -> float:
    """C = A * B in f16 on the CPU target."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal((m, k), np.float32).astype(np.float16)
    b = rng.standard_normal((k, n), np.float32).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    counters = matmul(a, b, c, m, n, k)
    return report(f"C[{m}, {n}] = A[{m}, {k}] * B[{k}, {n}]", c, a.astype(np.float64) @ b.astype(np.float64), counters)


def run_packed(m: int, n: int, k: int) -> float:
    """Y = X * W^T with packed weights on the CPU target."""
    rng = np.random.default_rng(2)
    weights = rng.integers(-8, 8, (n, k))
    scales = rng.uniform(0.5, 2, (k // GROUP, n)).astype(np.float16)
    x = rng.standard_normal((m, k), np.float32).astype(np.float16)
    y = np.full((m, n), np.nan, np.float16)
    packed = pack((weights & 15).astype(np.uint8), GROUP, "int4", "f16")
    counters = make_packed_matmul(n, k)(packed, scales, x, y, m)
    wanted = x.astype(np.float64) @ (weights * np.repeat(scales.T.astype(np.float64), GROUP, axis=1)).T
    return report(f"Y[{m}, {n}] = X[{m}, {k}] * W[{n}, {k}]^T, W of int4", y, wanted, counters)


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply matrices without naming a layout, on the CPU target.")
    parser.add_argument("--packed", action="store_true", help="the second operand is packed weights of 4 bits")
    parser.add_argument("-m", type=int, default=70, help="rows of the result (default: 70)")
    parser.add_argument("-n", type=int, default=128, help="its columns; multiples of 8, of 64 if packed (default: 128)")
    parser.add_argument("-k", type=int, default=256, help="what is summed; of 8, of 128 if packed (default: 256)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    for name, extent, unit in (
        ("-m", options.m, 1),
        ("-n", options.n, STEP if options.packed else 8),
        ("-k", options.k, GROUP if options.packed else 8),
    ):
        if extent < unit or extent % unit:
            parser.error(f"{name} must be a positive multiple of {unit}, got {extent}")
    if options.mlir:
        print((make_packed_matmul(options.n, options.k).kernel_for(m=options.m) if options.packed else matmul).mlir)
    elif not (run_packed if options.packed else run)(options.m, options.n, options.k) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
