"""A product of few rows of f16 and weights of two codebooks: AQLM 2x8, 256 entries of 8 values each.

Y[M, N] = X[M, K] * W[N, K]^T for M <= 16, W[n, 8 i + j] = C_0[q[n, i, 0], j] + C_1[q[n, i, 1], j], of plain codes q,
uint8 [N, K / 8, 2].

A codeword is the operand of two matrix instructions as it is. Lane (g, t) of a warp looks up the codes of row g, which
give it 8 values of K side by side; where x is held the same way, in `column_spatial(4, 8).local(8, 1)`, the
instructions take these registers in another order of K, which is the same for both operands, so that no lane gives
another a value. Each book has products of its own: both are added in f32, and no weight is rounded.

Each lane loads 8 codes of each book and row at once, 16 bytes, two blocks of 256 values of K before these are
multiplied. So step j of such a block has, in lane t, K = 64 t + 8 j and on; x is staged in shared memory in that order.

    python examples/vq_gemv.py [-m M] [-n N] [-k K]     run on the CPU target, compare with float64
    python examples/vq_gemv.py --mlir                       print the program in the block dialect
"""

import argparse
from dataclasses import dataclass

import numpy as np

import lowlp
from lowlp import language as ll

BOOKS, ENTRIES, VECTOR = 2, 256, 8
BK = 256  # of K, in one iteration
STEPS = BK // (4 * VECTOR)
STAGES = 3  # of x in shared memory
LIMIT = 2e-3


@dataclass(frozen=True)
class Layouts:
    """How `warps` warps, each with `tiles` x 16 rows of W, hold their part of 8 `columns` rows of x."""

    warps: int
    tiles: int
    columns: int

    @property
    def loaded(self) -> lowlp.Layout:
        """Codes as loaded, [rows, bytes]. Locals of a lane: tile of rows, upper or lower half of 16 rows, byte."""
        rows = lowlp.local(self.tiles, 1).spatial(self.warps, 1).local(2, 1)
        return rows.spatial(8, 4).local(1, BOOKS * STEPS)

    @property
    def parts(self) -> lowlp.Layout:
        """The same registers as [byte, row, t], so that the codes of a step are a part of them."""
        rows = lowlp.local(1, self.tiles, 1).spatial(1, self.warps, 1).local(1, 2, 1)
        return rows.local(BOOKS * STEPS, 1, 1).spatial(1, 8, 4)

    @property
    def x_rows(self) -> lowlp.Layout:
        """x of a step as loaded, [row, t, value]; all warps have the same."""
        same = lowlp.reduce(lowlp.spatial(1, 1, 1, self.warps), dims=[3])
        return same * lowlp.local(self.columns, 1, 1).spatial(8, 4, 1).local(1, 1, VECTOR)

    @property
    def x_operand(self) -> lowlp.Layout:
        """The same registers as an operand b, [K, row]."""
        same = lowlp.reduce(lowlp.spatial(1, 1, self.warps), dims=[2])
        return same * lowlp.local(1, self.columns).column_spatial(4, 8).local(VECTOR, 1)

    @property
    def accumulators(self) -> lowlp.Layout:
        """[row of W, row of x]"""
        rows = lowlp.local(self.tiles, 1).spatial(self.warps, 1)
        return rows.local(1, self.columns).local(2, 1).spatial(8, 4).local(1, 2)


def make_gemv(m: int, n: int, k: int, warps: int = 8, tiles: int = 4, codebooks: str = "auto") -> ll.Kernel:
    """The kernel for these sizes: a block has `warps` warps, each with `tiles` x 16 rows of W; K is a multiple of 256.

    codebooks  where these are kept: `ll.KernelSchedule`
    """
    columns = (m + 7) // 8  # of 8 rows of x
    rows = 16 * warps * tiles  # of W
    held_as = Layouts(warps, tiles, columns)

    @lowlp.kernel(
        grid=((n + rows - 1) // rows,),
        num_threads=32 * warps,
        schedule=ll.KernelSchedule(codebooks=codebooks, blocks_per_sm=1),
    )
    def vq_gemv(
        x: ll.pointer("f16", align=16),
        codes: ll.pointer("uint8", align=16),
        books: ll.pointer("f16", align=16),
        y: ll.pointer("f32", align=16),
    ) -> None:
        (block,) = ll.block_indices()
        first_row = block * rows
        # Step j of block b has K = 256 b + 64 t + 8 j + i.
        x_view = ll.view_global(x, shape=[k // BK, STEPS, m, 4, VECTOR], strides=[BK, VECTOR, k, BK // 4, 1])
        codes_view = ll.view_global(codes, shape=[n, k // VECTOR * BOOKS])
        y_view = ll.view_global(y, shape=[n, m], strides=[1, n])
        book = ll.load_codebook(ll.view_global(books, shape=[BOOKS, ENTRIES, VECTOR]))
        x_shared = ll.alloc_shared("f16", [STAGES, STEPS, 8 * columns, 4, VECTOR])

        @ll.inline
        def stage_x(stage: int | ll.Scalar, b: int | ll.Scalar) -> None:
            """Begins to copy x of block b; past the end of K, and of the rows, it becomes zero."""
            ll.copy_async(
                x_view,
                x_shared,
                view_offsets=[b, 0, 0, 0, 0],
                offsets=[stage, 0, 0, 0, 0],
                shape=[STEPS, 8 * columns, 4, VECTOR],
            )
            ll.copy_async_commit()

        @ll.inline
        def load_codes(b: int | ll.Scalar) -> ll.Tile:
            return ll.load_global(
                codes_view,
                offsets=[first_row, b * (BK // VECTOR * BOOKS)],
                layout=held_as.loaded,
                in_bounds=n % rows == 0,
            )

        for stage in range(STAGES - 1):
            stage_x(stage, stage)
        held, following = load_codes(0), load_codes(ll.minimum(1, k // BK - 1))
        sums = ll.full(0.0, "f32", layout=held_as.accumulators)
        current, free = 0, STAGES - 1
        for b in ll.range(k // BK):
            ll.copy_async_wait(STAGES - 2)
            ll.synchronize()
            stage_x(free, b + (STAGES - 1))
            now = ll.view(held, dtype="uint8", layout=held_as.parts)
            held, following = following, load_codes(ll.minimum(b + 2, k // BK - 1))
            for j in range(STEPS):
                x_part = ll.load_shared(x_shared, offsets=[current, j, 0, 0, 0], layout=held_as.x_rows, in_bounds=True)
                x_tile = ll.view(x_part, dtype="f16", layout=held_as.x_operand)
                for r in range(BOOKS):
                    w = ll.lookup_vectors(now, book, book=r, part=[BOOKS * j + r])
                    sums = ll.dot(w, x_tile, sums)
            current, free = (current + 1) % STAGES, (free + 1) % STAGES
        ll.store_global(sums, y_view, offsets=[first_row, 0])

    return vq_gemv


def values_of(codes: np.ndarray, books: np.ndarray) -> np.ndarray:
    """W in float64 [N, K]."""
    chosen = [books[r].astype(np.float64)[codes[:, :, r]] for r in range(BOOKS)]
    return sum(chosen).reshape(codes.shape[0], -1)


def run(m: int, n: int, k: int, level: int = 3) -> float:
    """Runs the kernel on the CPU target; returns the relative Frobenius error against float64."""
    random = np.random.default_rng(1)
    x = random.standard_normal((m, k), np.float32).astype(np.float16)
    codes = random.integers(0, ENTRIES, (n, k // VECTOR, BOOKS)).astype(np.uint8)
    books = random.standard_normal((BOOKS, ENTRIES, VECTOR), np.float32).astype(np.float16)
    y = np.full((m, n), np.nan, np.float32)
    kernel = lowlp.compile_cpu(make_gemv(m, n, k, warps=2, tiles=2), opt_level=level)
    counters = kernel(x, codes, books, y)
    wanted = x.astype(np.float64) @ values_of(codes, books).T
    error = float(np.linalg.norm(y - wanted) / np.linalg.norm(wanted))
    print(f"Y[{m}, {n}] = X[{m}, {k}] * W[{n}, {k}]^T, 2 x 8 bits: relative error against float64 {error:.2e}")
    print("counted " + ", ".join(f"{name}: {count}" for name, count in counters.items() if count))
    return error


def main() -> None:
    parser = argparse.ArgumentParser(description="Multiply f16 activations with weights of two codebooks.")
    parser.add_argument("-m", type=int, default=8, help="rows of X and Y, 1 to 16 (default: 8)")
    parser.add_argument("-n", type=int, default=128, help="rows of W, columns of Y (default: 128)")
    parser.add_argument("-k", type=int, default=512, help="columns of X and W, a multiple of 256 (default: 512)")
    parser.add_argument("--mlir", action="store_true", help="print the program instead")
    options = parser.parse_args()
    if not 1 <= options.m <= 16 or options.n < 1 or options.k < BK or options.k % BK:
        parser.error(f"-m must be 1 to 16, -n at least 1, -k a multiple of {BK}")
    if options.mlir:
        print(make_gemv(options.m, options.n, options.k).mlir)
    elif not run(options.m, options.n, options.k) <= LIMIT:
        raise SystemExit(f"the error is above {LIMIT}")


if __name__ == "__main__":
    main()
