"""Products of planes for many rows of x, by `wgmma` m64nNk256: as fast as the tensor cores multiply bits.

Weights are operand A in registers, y^T = W X^T; plane j of x is operand B in shared memory, N rows of bits. A plane of
weights is multiplied by each plane of x, and products of equal i + j are added in the same accumulators:

    L_s [rows of W, rows of x] = sum over i + j = s of popcount(w_i & x_j)        p + q - 1 tiles of accumulators
    D = sum over s of 2^s L_s

in a thread's own registers, by a shift and an addition for each level. Neighbouring blocks share x or weights by way of
the L2 cache (`stream_k.Grid`). A block has one tile of y^T; or as many blocks as the GPU holds take whole tiles in
waves and share those that are left (`stream_k.share_in_waves`), so that the loads of a tile begin while the one before
is stored, and few tiles keep all multiprocessors busy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from lowlp import language as ll
from lowlp.kernels.stream_k import Grid, TileEnding, by_parts, share_in_waves, small
from lowlp.language.control_flow import MAX_STAGES
from lowlp.layouts.register_layout import column_local, column_spatial, local, reduce, spatial
from lowlp_runtime.errors import LowlpValueError

from ..block_work import BAND
from .program import (
    A_BITS,
    ACCUMULATORS,
    STEP_WORDS,
    X_BITS,
    X_WORDS,
    Operands,
    PlanesSpec,
    as_bits,
    combined,
    finished,
    make_planes,
    view_of_weights,
    view_of_y,
)

COLUMNS: Final = (8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192)
WARPGROUPS: Final = (1, 2, 3, 4)
STEPS: Final = (1, 2, 4)
COLUMN_TILES: Final = (1, 2)
MOST_ACCUMULATORS: Final = 144
"""Registers of a thread with accumulators: beside them it holds planes of operand A, and addresses."""
_MOST_HELD: Final = 200
"""With those planes: more, and the assembler makes products wait for each other."""
_COLUMNS_AT_ONCE: Final = 16


@dataclass(frozen=True)
class WarpgroupSchedule:
    """How blocks divide the work.

    columns             rows of x that a product takes, N of the instruction
    warpgroups          of 64 rows of W each, one above the other
    steps               of 256 along K, of a stage: with 4, rows in shared memory are 128 bytes
    stages              of the loop, which loads so many less one ahead
    producer            a warp of its own begins the loads
    products_in_flight  at once, of a warpgroup
    column_tiles        of so many columns each, side by side, that a block takes: weights are loaded once for both
    blocks              that share all tiles, of every launch; 0: as many as tiles, one each
    """

    columns: int = 64
    warpgroups: int = 2
    steps: int = 4
    stages: int = 3
    producer: bool = True
    products_in_flight: int = 8
    column_tiles: int = 1
    blocks: int = 0

    def __post_init__(self) -> None:
        choices: tuple[tuple[str, tuple[int, ...]], ...] = (
            ("columns", COLUMNS),
            ("warpgroups", WARPGROUPS),
            ("steps", STEPS),
            ("stages", tuple(range(2, MAX_STAGES + 1))),
            ("producer", (False, True)),
            ("products_in_flight", tuple(range(1, 9))),
            ("column_tiles", COLUMN_TILES),
        )
        for name, allowed in choices:
            if getattr(self, name) not in allowed:
                raise LowlpValueError(
                    f"{name}: must be one of {', '.join(map(str, allowed))}, got {getattr(self, name)!r}"
                )
        if self.blocks < 0:
            raise LowlpValueError(f"blocks: must be at least 1, or 0 for one of each tile, got {self.blocks}")

    @property
    def threads(self) -> int:
        """Of a block that hold accumulators."""
        return 128 * self.warpgroups

    @property
    def rows_of_w(self) -> int:
        """Rows of W of a block."""
        return 64 * self.warpgroups

    @property
    def columns_of_block(self) -> int:
        """Rows of x of a block."""
        return self.columns * self.column_tiles


def accumulators_of(spec: PlanesSpec, columns: int) -> int:
    """Registers of a thread with those of all levels, of so many columns of a block."""
    return spec.levels * columns // 2


def can_hold(spec: PlanesSpec, schedule: WarpgroupSchedule) -> bool:
    """Whether a thread has registers for the accumulators of all levels."""
    return accumulators_of(spec, schedule.columns_of_block) <= MOST_ACCUMULATORS


def products_at_once(spec: PlanesSpec, columns: int, steps: int) -> int:
    """How many products a warpgroup has registers for at once: each holds its plane of weights, 4 registers a step, and
    the next plane is loaded meanwhile."""
    planes = (_MOST_HELD - accumulators_of(spec, columns)) // (4 * steps)
    return max(2, min(8, (planes - 1) * spec.x_code.bits))


class _Layouts:
    """How the threads of a block hold what a stage takes, and the result.

    words, weights  a plane of weights, as words [units of rows, units of K, 1, 128] and as bits [rows, K]
    x_words, x      a plane of x, [rows of x, words] and as bits [rows of x, K]; only warps that multiply by themselves
                    hold it
    accumulators    [rows of W, rows of x], and
    stored          the same with neighbours along N side by side
    """

    def __init__(self, schedule: WarpgroupSchedule) -> None:
        warps, steps, columns = 4 * schedule.warpgroups, schedule.steps, schedule.columns
        in_lanes = spatial(1, 1, 1, 32) * local(1, 1, 1, 4)
        self.words = spatial(warps, 1, 1, 1) * local(1, steps, 1, 1) * in_lanes
        self.weights = spatial(warps, 1) * local(1, steps) * A_BITS
        alike = reduce(spatial(1, 1, warps), dims=[2])
        self.x_words = alike * column_local(columns // 8, steps) * X_WORDS
        self.x = alike * column_local(columns // 8, steps) * X_BITS
        self.accumulators = spatial(warps, 1) * local(1, columns // 8) * ACCUMULATORS
        at_once = math.gcd(columns, _COLUMNS_AT_ONCE)
        rows_of_thread = at_once // 2
        in_threads = column_spatial(64 * schedule.warpgroups // rows_of_thread, at_once) * local(rows_of_thread, 1)
        self.stored = local(1, columns // at_once) * in_threads


class _Block:
    """What a block does, as it is traced."""

    def __init__(self, spec: PlanesSpec, schedule: WarpgroupSchedule, operands: Operands) -> None:
        self.spec, self.schedule, self.operands = spec, schedule, operands
        self.layouts = _Layouts(schedule)
        self.weights = view_of_weights(spec, operands.weights)
        bits = spec.x_code.bits
        self.x = ll.view_global(
            operands.planes, shape=[bits, operands.m, spec.words], strides=[spec.words, bits * spec.words, 1]
        )
        self.y = view_of_y(spec, operands)
        self.tiles_of_rows = -(-spec.n // schedule.rows_of_w)

    @property
    def num_stages(self) -> int:
        """Of a tile."""
        return -(-self.spec.units_k // self.schedule.steps)

    def zeros(self) -> tuple[ll.Tile, ...]:
        """Accumulators of a tile that has none yet: all levels of a tile of columns, one tile after the other."""
        count = self.spec.levels * self.schedule.column_tiles
        return tuple(ll.full(0, "int32", layout=self.layouts.accumulators) for _ in range(count))

    @ll.inline
    def with_stage(self, accumulators, stage, row_tile, column):  # type: ignore[no-untyped-def]
        """The accumulators with the products of a stage."""
        spec, schedule, layouts, results = self.spec, self.schedule, self.layouts, list(accumulators)
        unit, unit_row = stage * schedule.steps, row_tile * (schedule.rows_of_w // 16)
        x_tiles = [
            [
                as_bits(
                    ll.load_global(
                        self.x,
                        offsets=[plane, column + tile * schedule.columns, unit * STEP_WORDS],
                        layout=layouts.x_words,
                    ),
                    layouts.x,
                )
                for plane in range(spec.x_code.bits)
            ]
            for tile in range(schedule.column_tiles)
        ]
        for plane in range(spec.w_code.bits):
            words = ll.load_global(self.weights, offsets=[unit_row, unit, plane, 0], layout=layouts.words)
            bits = as_bits(words, layouts.weights)
            for tile, planes in enumerate(x_tiles):
                for other, x_tile in enumerate(planes):
                    index = tile * spec.levels + plane + other
                    results[index] = ll.dot(bits, ll.transpose(x_tile), results[index])
        return tuple(results)

    def sums(self, accumulators: tuple[ll.Tile, ...]) -> tuple[ll.Tile, ...]:
        """D of each tile of columns."""
        return tuple(combined(list(levels)) for _, levels in by_parts(accumulators, self.spec.levels))

    @ll.inline
    def finish(self, part, sums, row, column):  # type: ignore[no-untyped-def]
        """Stores what D of a tile of columns makes, of the tile that begins at `row` and `column`."""
        column = column + part * self.schedule.columns
        result = finished(self.spec, sums[0], self.operands, row, column, self.layouts.stored)
        # As rows of y, along which accesses are wide.
        ll.store_global(ll.transpose(result), self.y, offsets=[column, row])

    def place_of(self, tile: ll.Scalar) -> tuple[ll.Scalar, ll.Scalar]:
        """The tile of rows, and the column, at which a tile begins."""
        columns = self.schedule.columns_of_block
        grid = Grid(self.tiles_of_rows, ll.ceildiv(self.operands.m, columns), max(1, BAND // columns))
        row_tile, column_tile = grid.place_of(tile)
        return row_tile, column_tile * columns

    @ll.inline
    def make_tile(self):  # type: ignore[no-untyped-def]
        """All of the block's tile of y."""
        schedule = self.schedule
        (block,) = ll.block_indices()
        row_tile, column = self.place_of(block)
        accumulators = self.zeros()
        for stage in ll.range(self.num_stages, stages=schedule.stages, producer=schedule.producer):
            accumulators = self.with_stage(accumulators, small(stage), row_tile, column)
        for part, sums in by_parts(self.sums(accumulators), 1):
            self.finish(part, sums, row_tile * schedule.rows_of_w, column)

    @ll.inline
    def make_share(self):  # type: ignore[no-untyped-def]
        """Whole tiles in waves, and a share of those that are left."""
        schedule, columns, tiles_of_rows = self.schedule, self.schedule.columns_of_block, self.tiles_of_rows
        (block,) = ll.block_indices()
        ending = TileEnding(
            self.num_stages,
            lambda m: (ll.ceildiv(m, columns) * tiles_of_rows,),
            schedule.threads,
            self.finish,
            parts_type="int32",
            blocks=schedule.blocks,
        )
        tiles = ll.ceildiv(self.operands.m, columns) * tiles_of_rows
        work = share_in_waves(block, block * 0 + schedule.blocks, tiles, self.num_stages)
        for taken in ll.range(work.count):
            part = work.part(taken)
            row_tile, column = self.place_of(part.tile)
            last_stage = small(part.end - 1 - part.tile * self.num_stages)
            accumulators = self.zeros()
            for done in ll.range(small(part.end - part.begin), stages=schedule.stages, producer=schedule.producer):
                accumulators = self.with_stage(accumulators, small(last_stage - done), row_tile, column)
            ending.end_tile(work.share, part.begin, self.sums(accumulators), row_tile * schedule.rows_of_w, column)


def warpgroup_kernel(spec: PlanesSpec, schedule: WarpgroupSchedule) -> ll.Kernel:
    """The block program for `spec`; parameters as for `streams.stream_kernel`. Requires `can_hold`."""

    def trace(operands: Operands) -> None:
        block = _Block(spec, schedule, operands)
        if schedule.blocks:
            block.make_share()
        else:
            block.make_tile()

    tiles_of_rows = -(-spec.n // schedule.rows_of_w)

    def grid(m: Any) -> tuple[Any]:
        return (schedule.blocks or ll.ceildiv(m, schedule.columns_of_block) * tiles_of_rows,)

    return make_planes(
        spec,
        trace,
        grid,
        schedule.threads,
        matrix_unit="warpgroup",
        products_in_flight=schedule.products_in_flight,
        exchange_registers=schedule.producer,
        blocks_per_sm=1,
    )
