"""How products of planes are divided: the relation of tile shapes (APT-LLM, section V-B), and which schedule is taken.

A block multiplies B_w rows of planes of weights, p for each of its rows of W, by B_x columns of planes of x. Its W_B
warps, or warpgroups, each have T_R x T_C instructions of W_M x W_N side by side:

    B_w B_x / (W_M W_N) = W_B T_R T_C

As in the paper, shared memory is fixed first, stages x (B_w + B_x) x B_K / 8 bytes, and extents follow from it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from .program import STEP_K, PlanesSpec
from .streams import INSTRUCTION_COLUMNS, ROWS, StreamSchedule, planes_held
from .warpgroups import COLUMNS, WarpgroupSchedule, can_hold, products_at_once

PlaneSchedule = StreamSchedule | WarpgroupSchedule
FORMS: Final[dict[str, type[StreamSchedule] | type[WarpgroupSchedule]]] = {
    "streams": StreamSchedule,
    "warpgroups": WarpgroupSchedule,
}
"""How files of measured schedules name the forms."""

MOST_STREAMED_COLUMNS: Final = 128
"""Planes of rows of x up to which weights come from memory more slowly than `mma.sync` multiplies them."""
_MOST_STREAM_ACCUMULATORS: Final = 96
_STREAM_WARPS: Final = 8
_PADDING: Final = 8
"""Elements of a row at most that keep exchanges free of bank conflicts."""
_BARRIER_BYTES: Final = 1024
_COLUMNS_WITH_RESIDUAL: Final = 64
_MOST_WITH_RESIDUAL: Final = 120
"""Residuals and their addresses take registers at the end, beside accumulators and results."""
_BLOCKS_EACH: Final = 4
"""Of a multiprocessor at least, so that none waits for the last."""
_STAGE_BITS: Final = 4
"""Planes times steps of a stage of a slice, so that a lane loads so many times 16 bytes ahead in each."""


class TileShapes(NamedTuple):
    """The extents of the relation.

    weight_rows, x_columns             B_w, B_x: of planes, of a block
    instruction_rows, instruction_columns  W_M, W_N
    warps                              W_B: that divide the tile, warps or warpgroups; those that divide K count once
    row_tiles, column_tiles            T_R, T_C: instructions of each
    """

    weight_rows: int
    x_columns: int
    instruction_rows: int
    instruction_columns: int
    warps: int
    row_tiles: int
    column_tiles: int

    @property
    def agree(self) -> bool:
        """Whether every product of the block is one warp's, once."""
        of_block = self.weight_rows * self.x_columns
        of_instruction = self.instruction_rows * self.instruction_columns
        return of_block == of_instruction * self.warps * self.row_tiles * self.column_tiles


def tile_shapes(spec: PlanesSpec, schedule: PlaneSchedule) -> TileShapes:
    """The extents of a schedule."""
    p, q = spec.w_code.bits, spec.x_code.bits
    if isinstance(schedule, WarpgroupSchedule):
        columns, tiles = schedule.columns, q * schedule.column_tiles
        return TileShapes(p * schedule.rows_of_w, columns * tiles, 64, columns, schedule.warpgroups, p, tiles)
    columns = schedule.rows * planes_held(q, schedule.rows)
    tiles = columns // INSTRUCTION_COLUMNS
    return TileShapes(
        p * schedule.rows_of_w, columns, 16, INSTRUCTION_COLUMNS, schedule.warps, p * schedule.row_tiles, tiles
    )


def form_of(schedule: PlaneSchedule) -> str:
    """Its name."""
    return next(name for name, form in FORMS.items() if isinstance(schedule, form))


def shared_bytes(spec: PlanesSpec, schedule: PlaneSchedule) -> int:
    """Of shared memory that a block takes: its stages, what passes between threads at the end, and barriers."""
    shapes = tile_shapes(spec, schedule)
    stages = schedule.stages * (shapes.weight_rows + shapes.x_columns) * schedule.steps * STEP_K // 8
    if isinstance(schedule, StreamSchedule):
        exchanged = 4 * schedule.slices * schedule.rows_of_w * (shapes.x_columns + _PADDING)
        return schedule.slices * stages + exchanged + _BARRIER_BYTES
    exchanged = spec.exchanged_bytes * (schedule.rows_of_w + _PADDING) * schedule.columns
    return stages + exchanged + _BARRIER_BYTES


def _streamed_rows(spec: PlanesSpec, m: int) -> int:
    """Rows of x of a block that streams: all m, if their accumulators fit."""
    p, q = spec.w_code.bits, spec.x_code.bits

    def fits(rows: int) -> bool:
        return p * rows * planes_held(q, rows) // 2 <= _MOST_STREAM_ACCUMULATORS

    able = [rows for rows in ROWS if fits(rows)]
    return next((rows for rows in able if rows >= m), able[-1])


def _stream(spec: PlanesSpec, m: int, multiprocessors: int, shared_limit: int) -> StreamSchedule:
    rows = _streamed_rows(spec, m)
    tiles = -(-spec.n // 16) * -(-m // rows)
    warps = next((warps for warps in (8, 4, 2) if tiles >= _BLOCKS_EACH * multiprocessors * warps), 1)
    slices = min(_STREAM_WARPS // warps, 1 << (spec.units_k - 1).bit_length())
    most = max(1, min(_STAGE_BITS // spec.w_code.bits, spec.units_k // slices, 4))
    # Two blocks a multiprocessor, so that one loads while the other ends.
    for steps, stages in [(steps, 4) for steps in range(most, 0, -1)] + [(1, 3), (1, 2)]:
        found = StreamSchedule(rows=rows, warps=warps, slices=slices, steps=steps, stages=stages)
        if shared_bytes(spec, found) <= shared_limit // 2:
            break
    return found


def _warpgroups(spec: PlanesSpec, m: int, multiprocessors: int, shared_limit: int) -> WarpgroupSchedule:
    steps = 4 if spec.units_k >= 4 else 2 if spec.units_k >= 2 else 1
    warpgroups = 2 if spec.n > 64 else 1

    def tiles(columns: int) -> int:
        return -(-m // columns) * -(-spec.n // (64 * warpgroups))

    able = [c for c in COLUMNS if can_hold(spec, WarpgroupSchedule(columns=c))]
    if spec.residual:
        able = [c for c in able if c <= _COLUMNS_WITH_RESIDUAL and (spec.levels + 1) * c // 2 <= _MOST_WITH_RESIDUAL]
    columns = next((c for c in able if c >= m), able[-1])
    # Fewer columns where blocks would be fewer than multiprocessors, as long as instructions stay near their full rate.
    while tiles(columns) < multiprocessors and columns > 64 and any(c < columns for c in able):
        columns = max(c for c in able if c < columns)
    for stages in (4, 3, 2):
        found = WarpgroupSchedule(
            columns, warpgroups, steps, stages, products_in_flight=products_at_once(spec, columns, steps)
        )
        if shared_bytes(spec, found) <= shared_limit:
            return found
    return WarpgroupSchedule(columns, 1, 1, 2)


def choose_schedule(
    spec: PlanesSpec, m: int, *, has_warpgroups: bool = True, multiprocessors: int = 132, shared_limit: int = 227 * 1024
) -> PlaneSchedule:
    """The schedule for m rows of x: streams up to `MOST_STREAMED_COLUMNS` planes of them, and on architectures without
    `wgmma`; else warpgroups with as many columns as their accumulators allow. By rates of one H200 for the instructions
    alone (15,300 TOP/s by `wgmma` from 64 columns on, 10,149 by `mma.sync`); whole kernels were not measured.

    shared_limit  bytes of shared memory that a block may have
    """
    m = max(m, 1)
    if not has_warpgroups or m * spec.x_code.bits <= MOST_STREAMED_COLUMNS:
        return _stream(spec, m, multiprocessors, shared_limit)
    return _warpgroups(spec, m, multiprocessors, shared_limit)
