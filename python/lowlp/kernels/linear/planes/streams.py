"""Products of planes for few rows of x, by `mma.sync` m16n8k256: as fast as the weights come from memory.

As in `streaming`, weights are operand A and y^T = W X^T. A column of operand B is one plane of one row of x: with few
rows their planes fill the 8 columns of an instruction, so a plane of weights is multiplied once by all planes of x:

    columns   row 0: plane 0 .. q' - 1, row 1: plane 0 .. q' - 1, ...       q' >= q, the others are zero
    L_i       [16 rows of W, columns], accumulators for plane i of W
    D[n, m] = sum over j of 2^j (sum over i of 2^i L_i[n, (m, j)])

so p accumulators a column in place of the p + q - 1 a row of x that `warpgroups.py` has; the planes of x are added
at the end, through shared memory. Loads of weights and of x are begun some stages ahead. In a block, warps lie along N
and, as slices, along K.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from lowlp import language as ll
from lowlp.language.control_flow import MAX_STAGES
from lowlp.layouts.register_layout import column_spatial, local, reduce, spatial
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

INSTRUCTION_COLUMNS: Final = 8
ROWS: Final = (1, 2, 4, 8, 16, 24, 32, 64)
WARPS: Final = (1, 2, 4, 8)
ROW_TILES: Final = (1, 2, 4)
SLICES: Final = (1, 2, 4, 8)
STEPS: Final = (1, 2, 3, 4)


@dataclass(frozen=True)
class StreamSchedule:
    """How blocks divide the work.

    rows       of x that a block takes: with the planes of each, multiples of 8 columns
    warps      along N, of `row_tiles` x 16 rows of W each
    slices     of K among warps
    steps      of 256 along K, of a slice in a stage
    stages     of the loop, which loads so many less one ahead; 0: what a step takes is loaded when it is needed
    """

    rows: int = 8
    warps: int = 2
    row_tiles: int = 1
    slices: int = 2
    steps: int = 1
    stages: int = 4

    def __post_init__(self) -> None:
        choices: tuple[tuple[str, tuple[int, ...]], ...] = (
            ("rows", ROWS),
            ("warps", WARPS),
            ("row_tiles", ROW_TILES),
            ("slices", SLICES),
            ("steps", STEPS),
            ("stages", (0, *range(2, MAX_STAGES + 1))),
        )
        for name, allowed in choices:
            if getattr(self, name) not in allowed:
                raise LowlpValueError(
                    f"{name}: must be one of {', '.join(map(str, allowed))}, got {getattr(self, name)!r}"
                )
        if self.warps * self.slices > 16:
            raise LowlpValueError(f"warps, slices: a block has at most 16 warps, got {self.warps} x {self.slices}")

    @property
    def threads(self) -> int:
        """Of a block."""
        return 32 * self.warps * self.slices

    @property
    def rows_of_w(self) -> int:
        """Rows of W of a block."""
        return 16 * self.warps * self.row_tiles


def planes_held(bits: int, rows: int) -> int:
    """q': planes of a row of x for which there are columns, so that those of `rows` rows fill instructions; 0 where a
    row's planes are more columns than one."""
    if rows * bits % INSTRUCTION_COLUMNS == 0:
        return bits
    held = 1 << (bits - 1).bit_length()
    return (
        held if rows * held % INSTRUCTION_COLUMNS == 0 else INSTRUCTION_COLUMNS // math.gcd(rows, INSTRUCTION_COLUMNS)
    )


class _Layouts:
    """How the threads of a block hold what a stage takes; warps in the order [slices, warps along N].

    words, weights    a plane of weights, as words [units of rows, units of K, 1, 128] and as bits [rows, K]
    x_words, x        planes of x, as words [rows, planes, words] or [columns, words], and as bits [columns, K]
    accumulators      [slices x rows of W, columns], and
    sliced            the same as [slices, rows, columns]
    gathered          those with all slices and all planes of a sum in one thread
    by_plane          what is left of it, [rows, rows of x, planes]
    y                 [rows of W, rows of x]
    """

    def __init__(self, spec: PlanesSpec, schedule: StreamSchedule) -> None:
        warps, slices, tiles, steps = schedule.warps, schedule.slices, schedule.row_tiles, schedule.steps
        planes = planes_held(spec.x_code.bits, schedule.rows)
        columns = schedule.rows * planes
        in_lanes = spatial(1, 1, 1, 32) * local(1, 1, 1, 4)
        self.words = column_spatial(warps, slices, 1, 1) * local(tiles, steps, 1, 1) * in_lanes
        self.weights = column_spatial(warps, slices) * local(tiles, steps) * A_BITS
        alike = reduce(spatial(1, 1, warps), dims=[2])
        self.x = spatial(1, slices) * alike * local(columns // 8, steps) * X_BITS
        self.is_padded = planes != spec.x_code.bits
        if self.is_padded:
            alike = reduce(spatial(1, 1, 1, warps), dims=[3])
            lanes = local(1, 1, 2) * spatial(INSTRUCTION_COLUMNS // planes, planes, 4)
            tiles_of_columns = columns // INSTRUCTION_COLUMNS
            self.x_words = spatial(1, 1, slices) * alike * local(tiles_of_columns, 1, steps) * lanes
        else:
            self.x_words = spatial(1, slices) * alike * local(columns // 8, steps) * X_WORDS
        accumulators = local(tiles, columns // 8) * ACCUMULATORS
        self.accumulators = spatial(slices * warps, 1) * accumulators
        self.sliced = spatial(slices, warps, 1) * accumulators.unsqueeze(0)
        # Neighbouring threads store neighbours along N; where there are more threads than these, some have the same.
        threads_of_column = math.gcd(schedule.rows_of_w, schedule.threads // math.gcd(schedule.rows, schedule.threads))
        columns_at_once = math.gcd(schedule.rows, schedule.threads)
        replicas = schedule.threads // (threads_of_column * columns_at_once)
        self.y = local(schedule.rows_of_w // threads_of_column, schedule.rows // columns_at_once) * reduce(
            column_spatial(threads_of_column, columns_at_once, replicas), dims=[2]
        )
        in_thread = self.y * local(1, planes)
        self.gathered = local(slices, 1, 1) * in_thread.unsqueeze(0)
        self.by_plane = self.y.unsqueeze(2) * local(1, 1, planes)


class _Block:
    """What a block does, as it is traced."""

    def __init__(self, spec: PlanesSpec, schedule: StreamSchedule, operands: Operands) -> None:
        self.spec, self.schedule, self.operands = spec, schedule, operands
        self.layouts = layouts = _Layouts(spec, schedule)
        self.weights = view_of_weights(spec, operands.weights)
        bits = spec.x_code.bits
        shape = [operands.m, bits, spec.words] if layouts.is_padded else [operands.m * bits, spec.words]
        self.x = ll.view_global(operands.planes, shape=shape)
        self.y = view_of_y(spec, operands)

    def planes_of_x(self, column: ll.Scalar, unit: ll.Scalar) -> ll.Tile:
        """Operand B of a stage: [K, columns]."""
        word = unit * STEP_WORDS
        first: list[int | ll.Scalar] = [column * self.spec.x_code.bits, word]
        if self.layouts.is_padded:
            first = [column, 0, word]
        words = ll.load_global(self.x, offsets=first, layout=self.layouts.x_words)
        return ll.transpose(as_bits(words, self.layouts.x))

    def planes_of_weights(self, plane: int, unit_row: ll.Scalar, unit: ll.Scalar) -> ll.Tile:
        """Operand A: a plane, [rows, K]."""
        words = ll.load_global(self.weights, offsets=[unit_row, unit, plane, 0], layout=self.layouts.words)
        return as_bits(words, self.layouts.weights)

    def with_planes_added(self, acc: tuple[ll.Tile, ...]) -> ll.Tile:
        """D, [rows of W, rows of x]."""
        layouts = self.layouts
        sliced = ll.view(combined(list(acc)), dtype="int32", layout=layouts.sliced)
        total = ll.sum(ll.convert_layout(sliced, layouts.gathered), 0)
        by_plane = ll.view(total, dtype="int32", layout=layouts.by_plane)
        weights = ll.full(1, "int32", layout=layouts.by_plane) << ll.iota(2, layout=layouts.by_plane, dtype="int32")
        return ll.view(ll.sum(by_plane * weights, 2), dtype="int32", layout=layouts.y)

    @ll.inline
    def make_tile(self):  # type: ignore[no-untyped-def]
        """All of the block's tile of y."""
        spec, schedule = self.spec, self.schedule
        (block,) = ll.block_indices()
        # Neighbouring blocks have the same weights, which the L2 cache then serves to all but one.
        columns = ll.ceildiv(self.operands.m, schedule.rows)
        row_tile = block // columns
        row, column = row_tile * schedule.rows_of_w, block % columns * schedule.rows
        stage_units = schedule.steps * schedule.slices
        num_stages = -(-spec.units_k // stage_units)
        acc = tuple(ll.full(0, "int32", layout=self.layouts.accumulators) for _ in range(spec.w_code.bits))
        for stage in ll.range(num_stages, stages=schedule.stages, producer=False):
            unit = stage * stage_units
            x_tile = self.planes_of_x(column, unit)
            acc = tuple(
                ll.dot(self.planes_of_weights(plane, row_tile * (schedule.rows_of_w // 16), unit), x_tile, held)
                for plane, held in enumerate(acc)
            )
        result = finished(spec, self.with_planes_added(acc), self.operands, row, column)
        ll.store_global(ll.transpose(result), self.y, offsets=[column, row])


def stream_kernel(spec: PlanesSpec, schedule: StreamSchedule) -> ll.Kernel:
    """The block program for `spec`. Parameters are planes, weights, those of scales, zeros, w_sums, x_scales, x_zeros,
    x_sums and bias that the spec has, y, and m, the number of rows of x."""

    def trace(operands: Operands) -> None:
        _Block(spec, schedule, operands).make_tile()

    return make_planes(
        spec,
        trace,
        lambda m: (ll.ceildiv(m, schedule.rows) * -(-spec.n // schedule.rows_of_w),),
        schedule.threads,
    )
