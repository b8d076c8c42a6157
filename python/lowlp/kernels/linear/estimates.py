"""What a kernel for `linear` takes on a GPU, in us, by coefficients that fit what an H200 took: of kernels without
warpgroups, and what it takes to put x in order. Those by warpgroups are in `wide_estimates`."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from lowlp.schedules.device import H200, Device
from lowlp.weights.packing import UNIT_K

from .decode_estimates import decode_instructions, is_signed, lookup_instructions
from .fitting import exchanges_registers, weight_bytes
from .integer_sums import is_one_sum
from .parts import needs_sum_of_x
from .schedule import Schedule
from .segments import has_small_groups
from .spec import LinearSpec
from .streaming_layouts import shares_scales
from .tiles import blocks_for, tiles_of
from .wide_estimates import wide_us

# Cycles of a product of 8-bit floats by `mma.sync` over `product` of kernels of bytes: instructions turn them into
# halves, with few columns and with many, which take turned weights again.
_EMULATED_FLOATS: Final = (1.07, 1.16)

# Cycles for an accumulator of integers that becomes a float and is scaled, with few columns and with many.
_SCALE_INTEGER: Final = (2.45, 1.9)

# Instructions more for two weights of lookup tables, by bits.
_STREAMED_LOOK_UP: Final = {1: 2.0, 2: 2.0, 3: 2.0, 4: 2.0, 5: 6.0, 6: 6.0, 7: 6.5, 8: 6.0}

# Of few columns and of many: cycles for an accumulator that is scaled, and to load the scales of 16 rows, where groups
# are no whole units; and to do so where threads of a warp share what they make of them (docs/adr/0050).
_SCALE_SUM: Final = (1.84, 0.42)
_LOAD_SCALES: Final = (17.6, 0.8)
_SHARE_SCALES: Final = 18.0

# Of tables of at least so many bits, with few columns and small groups: the most units of 16 x 64 weights in a stage of
# a warp whose instructions stay in the cache, and the factor on its cycles beyond that (docs/adr/0113).
_LONG_TABLES: Final = 5
_CACHED_UNITS_OF_TABLES: Final = 13
_FETCHED_INSTRUCTIONS: Final = 1.6

# To scale 16 x 16 weights, and to load for it the scales of 16 rows.
_SCALE_WEIGHTS: Final = (13.9, 10.8)
_LOAD_FACTORS: Final = 5.8

# For each stage with more than 16 columns.
_SHARE_STAGE: Final = 21.0

# Of few columns with such groups: of these cycles, more for each stage of a warp, and for each cycle where warps are
# too few to keep an SM busy, by where scales go. Fitted to 413 kernels of 27 problems of halves on an H200, 8 % apart
# (docs/adr/0097); bytes have them as they are.
_SMALL_GROUPS: Final = 0.75
_SMALL_GROUPS_STAGE: Final = 44.0
_SMALL_GROUPS_WARP: Final = {"accumulators": 0.87, "weights": 1.13}

# What it takes longer to begin where the producer is a warpgroup that gives its registers away.
_GIVING_US: Final = 0.4

# Of few rows of x that are put in order, as an H200 took it (docs/adr/0044): for each element of a row, to gather it or
# with that of a second row, within the kernel, which then has no x in its stages; and of a kernel before it.
_KEPT_US: Final = -1.6

# Of one row of x that blocks keep, for each element (docs/adr/0050): where a tile has few rows, of whose bytes x is a
# large part. More rows, and longer ones, took as long either way.
_KEEP_US: Final = -7.0e-5
_MOST_TILE_ROWS: Final = 64
_MOST_KEPT_K: Final = 16384
_GATHER_ROW_US: Final = 1.4e-4
_GATHER_PAIR_US: Final = 2.1e-4
_KERNEL_BEFORE_US: Final = 0.95
_BRING_ROW_US: Final = 3.5e-5

# What scales in two levels take longer with zero points or offsets and more than 16 columns (docs/adr/0043).
_CORRECTED_COLUMNS: Final = 1.22


class _Streamed(NamedTuple):
    """What kernels without warpgroups take.

    product      cycles for a fragment of 16 x 16 weights by 8 columns, of halves; of bytes `_of_product` says how many
                 times as many
    stage, warp  cycles for each stage, and for each cycle of a warp, where warps are too few to keep an SM busy
    wave_us      for each further wave of blocks
    tile_us      for each further tile of a block
    sharing_us   to share tiles with other blocks
    part_us      for each further block of a tile, to add 256 accumulators of 32 threads
    block_us     for each further block of a tile, whatever it adds
    begin_us     more than other kernels take to begin
    stage_us     for each stage of a block, whatever is in it
    warp_us      for each warp of an SM
    double_us    where a block has two places for stages, and not three or more
    slice_us     for slices to exchange a column of a tile of 16 rows
    row_us       for each tile of 16 rows of a warp, to end 8 columns of it
    pair_us      less, for each further block of an SM
    """

    product: float
    stage: float
    warp: float
    wave_us: float
    tile_us: float
    sharing_us: float
    part_us: float
    block_us: float
    begin_us: float
    stage_us: float
    warp_us: float
    double_us: float
    slice_us: float
    row_us: float = 0.0
    pair_us: float = 0.0


# Of up to 16 columns all from `block_us` on are fitted to 831 kernels of 39 problems drawn at random (docs/adr/0073);
# of bytes, to 659 kernels of 28 problems on an H200, 4 % apart where they are fast (docs/adr/0109). Of more, to 295
# kernels of 27 problems for 17 to 160 rows on an H200, 11 % apart (docs/adr/0097), and of bytes to 233 for 17 to 64
# rows on an H200, 7 % apart where they are fast (docs/adr/0107).
_FEW_COLUMNS: Final = _Streamed(7.7, 200, 1.6, 0.0, 0.0, 2.7, 0.0, 0.15, -1.5, 0.085, 0.08, 1.1, 0.0)
_FEW_COLUMNS_OF_BYTES: Final = _Streamed(
    product=12.3,
    stage=323,
    warp=0.334,
    wave_us=0.0,
    tile_us=0.256,
    sharing_us=2.04,
    part_us=0.2,
    block_us=0.0315,
    begin_us=-0.937,
    stage_us=0.0444,
    warp_us=0.0485,
    double_us=0.166,
    slice_us=0.0,
    row_us=0.0871,
    pair_us=0.251,
)
_MANY_COLUMNS: Final = _Streamed(8.15, 143, 0.85, 0.52, 0.94, 1.56, 0.32, 0.0, 0.28, 0.075, 0.038, 0.72, 0.0005)
_MANY_COLUMNS_OF_BYTES: Final = _Streamed(
    11.3, 192, 0.638, 0.0, 0.16, 2.53, 0.26, 0.0, -1.05, 0.083, 0.035, 0.44, 0.0007
)


def estimated_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device = H200) -> float:
    """What the kernel would take, in microseconds, from cold caches."""
    if schedule.warpgroups:
        return wide_us(spec, schedule, m, device)
    tiles, stages_of_tile = tiles_of(spec, schedule, m), -(-spec.k // schedule.stage_k)
    blocks = blocks_for(spec, schedule, m, device.multiprocessors)
    blocks_of_sm = math.ceil(blocks / device.multiprocessors)
    at_once = min(schedule.blocks_per_sm, blocks_of_sm)
    waves = math.ceil(blocks_of_sm / at_once)
    stages = math.ceil(tiles * stages_of_tile / blocks) * waves

    # Further tiles of columns read weights again.
    memory = weight_bytes(spec) / device.bytes_per_us * (1 + 1.74 * (-(-m // schedule.columns) - 1))

    is_shared, has_many_columns = shares_scales(spec, schedule), schedule.columns > 16
    form = _streamed_form(spec, schedule)
    cycles, sums = cycles_of_warp(spec, schedule), schedule.row_tiles * schedule.columns / 2
    for_each_cycle = form.warp
    if has_small_groups(spec) and not has_many_columns:
        cycles, for_each_cycle = _SMALL_GROUPS * cycles + _SMALL_GROUPS_STAGE, _SMALL_GROUPS_WARP[schedule.scales_on]
        units = schedule.row_tiles * schedule.units * schedule.steps
        if spec.table and spec.bits >= _LONG_TABLES and units > _CACHED_UNITS_OF_TABLES:
            cycles *= _FETCHED_INSTRUCTIONS
    warps_of_quarter = math.ceil(schedule.warps * schedule.slices * at_once / 4)
    cycles_of_stage = max(warps_of_quarter * cycles, form.stage + for_each_cycle * cycles)
    cycles_of_stage += _SHARE_STAGE if is_shared and has_many_columns else 0
    compute = stages * cycles_of_stage / device.cycles_per_us

    are_shared = schedule.share_tiles and (tiles * stages_of_tile % blocks != 0 or tiles % blocks != 0)
    # They overlap the better, the more one of them outweighs the other.
    both = float((memory**4.6 + compute**4.6) ** (1 / 4.6))
    if spec.super_scale and spec.corrector and has_many_columns:
        both *= _CORRECTED_COLUMNS
    beginning = device.launch_us + (_GIVING_US if exchanges_registers(schedule, device) else 0.0)
    beginning += form.begin_us + form.wave_us * (waves - 1)
    beginning += form.stage_us * stages + form.warp_us * schedule.warps * schedule.slices * at_once
    beginning += form.double_us if schedule.stages == 2 else 0.0
    beginning -= form.pair_us * (at_once - 1)
    tiles_of_block = max(1, tiles / blocks) if are_shared else 1
    ending = form.tile_us * (tiles_of_block - 1) + form.row_us * schedule.row_tiles * schedule.columns / 8
    if has_many_columns:
        ending += form.slice_us * schedule.slices * schedule.row_tiles * schedule.columns * tiles_of_block
    if are_shared:
        ending += form.sharing_us
        ending += max(0, blocks / tiles - 1) * (form.block_us + form.part_us * schedule.warps * sums / 256)
    return beginning + both + ending + (keeping_us(spec, schedule) if schedule.kept_rows else 0.0)


def _streamed_form(spec: LinearSpec, schedule: Schedule) -> _Streamed:
    if schedule.columns <= 16:
        return _FEW_COLUMNS_OF_BYTES if spec.is_of_bytes else _FEW_COLUMNS
    return _MANY_COLUMNS_OF_BYTES if spec.is_of_bytes else _MANY_COLUMNS


def cycles_of_warp(spec: LinearSpec, schedule: Schedule) -> float:
    """Cycles that a warp without warpgroups keeps its quarter of an SM busy in a stage: with fragments of 16 x 16
    weights, with sums."""
    is_shared, has_many_columns = shares_scales(spec, schedule), schedule.columns > 16
    sums_of_x = (1.0 if is_shared else 0.5) / schedule.row_tiles if _has_offset(spec) else 0
    if is_shared and has_many_columns and not spec.corrector:
        # Offsets of codes are taken off weights.
        sums_of_x = 0
    decode = 4 * (decode_instructions(spec) + lookup_instructions(spec, _STREAMED_LOOK_UP))
    form = _streamed_form(spec, schedule)
    product = form.product * _of_product(spec, has_many_columns)
    fragment = product * schedule.columns / 8 * (1 + sums_of_x) + 1.5 * decode
    weights_of_slice = UNIT_K * schedule.units * schedule.steps
    sums = schedule.row_tiles * schedule.columns / 2
    scaled = _scale_of_sums(spec, has_many_columns) * sums * max(1, weights_of_slice // 128)
    if schedule.scales_on == "weights":
        fragment = form.product * schedule.columns / 8 + 1.5 * decode + _SCALE_WEIGHTS[has_many_columns]
        scaled = weights_of_slice / spec.group_size * schedule.row_tiles * _LOAD_FACTORS * (1 + bool(spec.corrector))
    elif has_small_groups(spec):
        # Each group has scales of its own to load and to convert, and zero points to take off.
        groups = weights_of_slice / spec.group_size
        load = _SHARE_SCALES if is_shared else _LOAD_SCALES[has_many_columns]
        scaled = groups * (sums * _SCALE_SUM[has_many_columns] * (1 + bool(spec.corrector)) + schedule.row_tiles * load)
    return schedule.row_tiles * 4 * schedule.units * schedule.steps * fragment + scaled


def _of_product(spec: LinearSpec, has_many_columns: bool) -> float:
    """Cycles of a product of 16 along K by `mma.sync`, over `product` of the form."""
    if not spec.is_of_bytes:
        return 1.0
    return 0.5 if spec.is_of_integers else _EMULATED_FLOATS[has_many_columns]


def _scale_of_sums(spec: LinearSpec, has_many_columns: bool) -> float:
    """Cycles for an accumulator of the products of a step or a group; none where a row is one sum."""
    if not spec.is_of_integers:
        return 0.7
    return 0.25 if is_one_sum(spec) else _SCALE_INTEGER[has_many_columns]


def keeping_us(spec: LinearSpec, schedule: Schedule) -> float:
    """What it takes longer where blocks keep rows of x, which then do not come with each stage. Codes of
    tables gain nothing from it: nf4 took 1.06 of its time (docs/adr/0073)."""
    gains = schedule.kept_rows == 1 and schedule.rows <= _MOST_TILE_ROWS and spec.k <= _MOST_KEPT_K and not spec.table
    return _KEEP_US * spec.k if gains else 0.0


def ordering_within_us(spec: LinearSpec, rows: int) -> float:
    """What it takes longer where the kernel puts up to 8 rows of x in the order of weights itself. Every block gathers
    all of them, two at a time; but what is kept for all stages does not come with each."""
    return _KEPT_US + spec.k * (_GATHER_ROW_US if rows == 1 else _GATHER_PAIR_US * rows / 2)


def ordering_before_us(spec: LinearSpec) -> float:
    """What it takes longer where a kernel before it does so with few rows: its blocks bring a row each."""
    return _KERNEL_BEFORE_US + spec.k * _BRING_ROW_US


def _has_offset(spec: LinearSpec) -> bool:
    """Whether products with ones correct accumulators: signed integers have a stored offset, but for one bit."""
    if spec.is_of_integers:
        return needs_sum_of_x(spec)
    if spec.corrector or spec.is_bipolar:
        return True
    return is_signed(spec) and spec.bits > 1
