"""Products of planes for many rows of x, by `wgmma` m64nNk256: as fast as the tensor cores multiply bits.

Weights are operand A in registers, y^T = W X^T; plane j of x is operand B in shared memory, N rows of bits. A plane of
weights is multiplied by each plane of x, and products of equal i + j are added in the same accumulators:

    L_s [rows of W, rows of x] = sum over i + j = s of popcount(w_i & x_j)        p + q - 1 tiles of accumulators
    D = sum over s of 2^s L_s

in a thread's own registers, by a shift and an addition for each level. A block has one tile of y^T; neighbouring blocks
share x or weights by way of the L2 cache (`stream_k.Grid`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from lowlp import language as ll
from lowlp.kernels.stream_k import Grid, small
from lowlp.language.control_flow import MAX_STAGES
from lowlp.layouts.register_layout import column_local, column_spatial, local, reduce, spatial
from lowlp_runtime.errors import LowlpValueError

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
MOST_ACCUMULATORS: Final = 144
"""Registers of a thread with accumulators: beside them it holds planes of operand A, and addresses."""
_MOST_HELD: Final = 200
"""With those planes: more, and the assembler makes products wait for each other."""
_BAND: Final = 2048
_COLUMNS_AT_ONCE: Final = 16


@dataclass(frozen=True)
class WarpgroupSchedule:
    """How blocks divide the work.

    columns             rows of x that a block takes, N of the instruction
    warpgroups          of 64 rows of W each, one above the other
    steps               of 256 along K, of a stage: with 4, rows in shared memory are 128 bytes
    stages              of the loop, which loads so many less one ahead
    producer            a warp of its own begins the loads
    products_in_flight  at once, of a warpgroup
    """

    columns: int = 64
    warpgroups: int = 2
    steps: int = 4
    stages: int = 3
    producer: bool = True
    products_in_flight: int = 8

    def __post_init__(self) -> None:
        choices: tuple[tuple[str, tuple[int, ...]], ...] = (
            ("columns", COLUMNS),
            ("warpgroups", WARPGROUPS),
            ("steps", STEPS),
            ("stages", tuple(range(2, MAX_STAGES + 1))),
            ("producer", (False, True)),
            ("products_in_flight", tuple(range(1, 9))),
        )
        for name, allowed in choices:
            if getattr(self, name) not in allowed:
                raise LowlpValueError(
                    f"{name}: must be one of {', '.join(map(str, allowed))}, got {getattr(self, name)!r}"
                )

    @property
    def threads(self) -> int:
        """Of a block that hold accumulators."""
        return 128 * self.warpgroups

    @property
    def rows_of_w(self) -> int:
        """Rows of W of a block."""
        return 64 * self.warpgroups


def can_hold(spec: PlanesSpec, schedule: WarpgroupSchedule) -> bool:
    """Whether a thread has registers for the accumulators of all levels."""
    return spec.levels * schedule.columns // 2 <= MOST_ACCUMULATORS


def products_at_once(spec: PlanesSpec, columns: int, steps: int) -> int:
    """How many products a warpgroup has registers for at once: each holds its plane of weights, 4 registers a step, and
    the next plane is loaded meanwhile."""
    planes = (_MOST_HELD - spec.levels * columns // 2) // (4 * steps)
    return max(2, min(8, (planes - 1) * spec.x_code.bits))


class _Layouts:
    """How the threads of a block hold what a stage takes, and the result.

    words, weights  a plane of weights, as words [units of rows, units of K, 1, 32, 4] and as bits [rows, K]
    x_words, x      a plane of x, [rows of x, words] and as bits [rows of x, K]; only warps that multiply by themselves
                    hold it
    accumulators    [rows of W, rows of x], and
    stored          the same with neighbours along N side by side
    """

    def __init__(self, schedule: WarpgroupSchedule) -> None:
        warps, steps, columns = 4 * schedule.warpgroups, schedule.steps, schedule.columns
        in_lanes = spatial(1, 1, 1, 32, 1) * local(1, 1, 1, 1, 4)
        self.words = spatial(warps, 1, 1, 1, 1) * local(1, steps, 1, 1, 1) * in_lanes
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

    @ll.inline
    def with_stage(self, levels, unit, unit_row, column):  # type: ignore[no-untyped-def]
        """The accumulators of all levels with the products of a stage."""
        layouts, levels = self.layouts, list(levels)
        x_tiles = [
            as_bits(
                ll.load_global(self.x, offsets=[plane, column, unit * STEP_WORDS], layout=layouts.x_words), layouts.x
            )
            for plane in range(self.spec.x_code.bits)
        ]
        for plane in range(self.spec.w_code.bits):
            words = ll.load_global(self.weights, offsets=[unit_row, unit, plane, 0, 0], layout=layouts.words)
            bits = as_bits(words, layouts.weights)
            for other, x_tile in enumerate(x_tiles):
                levels[plane + other] = ll.dot(bits, ll.transpose(x_tile), levels[plane + other])
        return tuple(levels)

    @ll.inline
    def make_tile(self):  # type: ignore[no-untyped-def]
        """All of the block's tile of y."""
        spec, schedule, layouts = self.spec, self.schedule, self.layouts
        (block,) = ll.block_indices()
        grid = Grid(
            self.tiles_of_rows, ll.ceildiv(self.operands.m, schedule.columns), max(1, _BAND // schedule.columns)
        )
        row_tile, column_tile = grid.place_of(block)
        row, column = row_tile * schedule.rows_of_w, column_tile * schedule.columns
        levels = tuple(ll.full(0, "int32", layout=layouts.accumulators) for _ in range(spec.levels))
        num_stages = -(-spec.units_k // schedule.steps)
        for stage in ll.range(num_stages, stages=schedule.stages, producer=schedule.producer):
            stage = small(stage)
            levels = self.with_stage(levels, stage * schedule.steps, row_tile * (schedule.rows_of_w // 16), column)
        # As rows of y, along which accesses are wide.
        result = finished(spec, combined(list(levels)), self.operands, row, column, layouts.stored)
        ll.store_global(ll.transpose(result), self.y, offsets=[column, row])


def warpgroup_kernel(spec: PlanesSpec, schedule: WarpgroupSchedule) -> ll.Kernel:
    """The block program for `spec`; parameters as for `streams.stream_kernel`. Requires `can_hold`."""

    def trace(operands: Operands) -> None:
        _Block(spec, schedule, operands).make_tile()

    tiles_of_rows = -(-spec.n // schedule.rows_of_w)
    return make_planes(
        spec,
        trace,
        lambda m: (ll.ceildiv(m, schedule.columns) * tiles_of_rows,),
        schedule.threads,
        matrix_unit="warpgroup",
        products_in_flight=schedule.products_in_flight,
        exchange_registers=schedule.producer,
        blocks_per_sm=1,
    )
