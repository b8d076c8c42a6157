"""What a kernel for `linear` takes on a GPU, in us, by coefficients that fit what an H200 took."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from lowlp.kernels.stream_k import waves_of
from lowlp.numeric.dtypes import dtype
from lowlp.schedules.device import H200, Device
from lowlp.weights.packing import UNIT_K

from .fitting import exchanges_registers, stage_bytes, weight_bytes
from .integer_sums import is_one_sum
from .parts import needs_sum_of_x
from .scaled_weights import can_scale_weights
from .schedule import Schedule
from .segments import has_small_groups
from .spec import LinearSpec
from .streaming_layouts import shares_scales
from .tiles import blocks_for, tiles_of
from .warpgroup_layouts import tiles_of_warp
from .warpgroups import BAND

# Instructions of the ALU for two weights (docs/decode-plans.md), by bits; tables take a lookup.
_DECODE: Final = {1: 1.1, 2: 1.15, 3: 1.35, 4: 1.3, 5: 1.9, 6: 1.9, 7: 2.2, 8: 1.1}

# The same for four weights in bytes, of integers and of floats.
_DECODE_BYTES: Final = {1: 1.0, 2: 1.0, 3: 1.62, 4: 1.0, 5: 2.0, 6: 2.0, 7: 2.5, 8: 0.1}
_DECODE_FLOAT_BYTES: Final = {1: 1.2, 2: 1.3, 3: 1.9, 4: 2.5, 5: 2.6, 6: 2.5, 7: 2.7, 8: 1.0}
# More where these are signed integers, which warpgroups decode to sign and magnitude.
_DECODE_SIGNS: Final = 4.5
# Cycles of a product of 8-bit floats by `mma.sync` over that of halves, where instructions turn them into halves.
_EMULATED_FLOATS: Final = 2.6
# Cycles for an accumulator of integers that becomes a float and is scaled.
_SCALE_INTEGER: Final = 1.9

# The same for two entries of tables of rows and groups, which are loaded one by one.
_GATHER: Final = 14.0

# Instructions more for two weights of lookup tables, by bits: without warpgroups, and by them for few and many rows.
_STREAMED_LOOK_UP: Final = {1: 2.0, 2: 2.0, 3: 2.0, 4: 2.0, 5: 6.0, 6: 6.0, 7: 6.5, 8: 6.0}
_FEW_LOOK_UP: Final = {1: 0.7, 2: 0.7, 3: 0.7, 4: 0.7, 5: 2.4, 6: 2.4, 7: 3.0, 8: 2.2}
_MANY_LOOK_UP: Final = {1: 0.7, 2: 0.7, 3: 2.5, 4: 3.5, 5: 11.0, 6: 11.0, 7: 11.0, 8: 10.0}

# Instructions more for two weights that are scaled in f32, for few rows and for many; and where scales of f16 take the
# powers of two of a decode plan.
_SCALE_IN_F32: Final = (5.0, 12.8)
_SCALE_BY_F16: Final = (3.0, 10.0)
# Halves of bf16 take a shift or a permutation each to become f32.
_WIDEN_BF16: Final = 2.0

# Of few columns and of many: cycles for an accumulator that is scaled, and to load the scales of 16 rows, where groups
# are no whole units; and to do so where threads of a warp share what they make of them (docs/adr/0050).
_SCALE_SUM: Final = (1.84, 0.42)
_LOAD_SCALES: Final = (17.6, 0.8)
_SHARE_SCALES: Final = 18.0
# To scale 16 x 16 weights, and to load for it the scales of 16 rows.
_SCALE_WEIGHTS: Final = (13.9, 10.8)
_LOAD_FACTORS: Final = 5.8
# For each stage with more than 16 columns.
_SHARE_STAGE: Final = 21.0
# Of few columns with such groups: of these cycles, more for each stage of a warp, and for each cycle where warps are
# too few to keep an SM busy, by where scales go. Fitted to 413 kernels of 27 problems on an H200, 8 % apart
# (docs/adr/0097).
_SMALL_GROUPS: Final = 0.75
_SMALL_GROUPS_STAGE: Final = 44.0
_SMALL_GROUPS_WARP: Final = {"accumulators": 0.87, "weights": 1.13}
# Instructions more for two weights of groups of 16 that kernels by warpgroups scale, for few rows and for many.
_SCALE_SMALL_GROUPS: Final = (0.5, 5.4)

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

    product      cycles for a fragment of 16 x 16 weights by 8 columns
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


# Of up to 16 columns all from `block_us` on are fitted to 831 kernels of 39 problems drawn at random (docs/adr/0073);
# of more, to 295 kernels of 27 problems for 17 to 160 rows on an H200, 11 % apart (docs/adr/0097), and of bytes to
# others (docs/adr/0047).
_FEW_COLUMNS: Final = _Streamed(7.7, 200, 1.6, 0.0, 0.0, 2.7, 0.0, 0.15, -1.5, 0.085, 0.08, 1.1, 0.0)
_MANY_COLUMNS: Final = _Streamed(8.15, 143, 0.85, 0.52, 0.94, 1.56, 0.32, 0.0, 0.28, 0.075, 0.038, 0.72, 0.0005)
_MANY_COLUMNS_OF_BYTES: Final = _Streamed(10.8, 180, 0.74, 1.5, 3.5, 2.3, 0.24, 0.0, 0.0, 0.0, 0.0, 0.0, 0.00125)

# What the blocks of a cluster take to exchange their accumulators, for few rows of x; and what they take longer than
# `_CLUSTER` has it for many.
_EXCHANGE_US: Final = {2: 2.0, 4: 1.1, 8: 1.4}
_LONGER_EXCHANGE_US: Final = {2: 0.5, 4: 1.2, 8: 1.6}

_SHARED_FLOATS: Final = 1.28
"""Over what is estimated else of tiles of 8-bit floats that blocks share: 163 us of 57344 x 8192 e4m3 with 16 rows, and
247 with one (docs/adr/0065)."""


def estimated_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device = H200) -> float:
    """What the kernel would take, in microseconds, from cold caches."""
    if schedule.multicast > 1:
        alone = estimated_us(spec, dataclasses.replace(schedule, multicast=1), m, device)
        return alone * (_OWN_MULTICAST if schedule.has_tile_each else _SHARED_MULTICAST)
    if schedule.warpgroups:
        return (_estimated_wide_us if m <= 64 else _estimated_us_of_many)(spec, schedule, m, device)
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
    warps_of_quarter = math.ceil(schedule.warps * schedule.slices * at_once / 4)
    cycles_of_stage = max(warps_of_quarter * cycles, form.stage + for_each_cycle * cycles)
    cycles_of_stage += _SHARE_STAGE if is_shared and has_many_columns else 0
    compute = stages * cycles_of_stage / device.cycles_per_us

    are_shared = schedule.share_tiles and (tiles * stages_of_tile % blocks != 0 or tiles % blocks != 0)
    # They overlap the better, the more one of them outweighs the other.
    both = float((memory**4.6 + compute**4.6) ** (1 / 4.6))
    if spec.super_scale and spec.corrector and has_many_columns:
        both *= _CORRECTED_COLUMNS
    if are_shared and spec.is_of_bytes and not spec.is_of_integers:
        both *= _SHARED_FLOATS
    beginning = device.launch_us + (_GIVING_US if exchanges_registers(schedule, device) else 0.0)
    beginning += form.begin_us + form.wave_us * (waves - 1)
    beginning += form.stage_us * stages + form.warp_us * schedule.warps * schedule.slices * at_once
    beginning += form.double_us if schedule.stages == 2 else 0.0
    tiles_of_block = max(1, tiles / blocks) if are_shared else 1
    ending = form.tile_us * (tiles_of_block - 1)
    if has_many_columns:
        ending += form.slice_us * schedule.slices * schedule.row_tiles * schedule.columns * tiles_of_block
    if are_shared:
        ending += form.sharing_us
        ending += max(0, blocks / tiles - 1) * (form.block_us + form.part_us * schedule.warps * sums / 256)
    return beginning + both + ending + (keeping_us(spec, schedule) if schedule.kept_rows else 0.0)


def _streamed_form(spec: LinearSpec, schedule: Schedule) -> _Streamed:
    if schedule.columns <= 16:
        return _FEW_COLUMNS
    return _MANY_COLUMNS_OF_BYTES if spec.is_of_bytes else _MANY_COLUMNS


def cycles_of_warp(spec: LinearSpec, schedule: Schedule) -> float:
    """Cycles that a warp without warpgroups keeps its quarter of an SM busy in a stage: with fragments of 16 x 16
    weights, with sums."""
    is_shared, has_many_columns = shares_scales(spec, schedule), schedule.columns > 16
    sums_of_x = (1.0 if is_shared else 0.5) / schedule.row_tiles if _has_offset(spec) else 0
    if is_shared and has_many_columns and not spec.corrector:
        # Offsets of codes are taken off weights.
        sums_of_x = 0
    decode = 4 * (_decode(spec) + _lookup(spec, _STREAMED_LOOK_UP))
    form = _streamed_form(spec, schedule)
    fragment = form.product * _of_product(spec) * schedule.columns / 8 * (1 + sums_of_x) + 1.5 * decode
    weights_of_slice = UNIT_K * schedule.units * schedule.steps
    sums = schedule.row_tiles * schedule.columns / 2
    scaled = _scale_of_sums(spec) * sums * max(1, weights_of_slice // 128)
    if schedule.scales_on == "weights":
        fragment = form.product * schedule.columns / 8 + 1.5 * decode + _SCALE_WEIGHTS[has_many_columns]
        scaled = weights_of_slice / spec.group_size * schedule.row_tiles * _LOAD_FACTORS * (1 + bool(spec.corrector))
    elif has_small_groups(spec):
        # Each group has scales of its own to load and to convert, and zero points to take off.
        groups = weights_of_slice / spec.group_size
        load = _SHARE_SCALES if is_shared else _LOAD_SCALES[has_many_columns]
        scaled = groups * (sums * _SCALE_SUM[has_many_columns] * (1 + bool(spec.corrector)) + schedule.row_tiles * load)
    return schedule.row_tiles * 4 * schedule.units * schedule.steps * fragment + scaled


def _decode(spec: LinearSpec) -> float:
    """Instructions of the ALU for two weights."""
    if not spec.is_of_bytes:
        return _DECODE[spec.bits]
    return (_DECODE_BYTES if spec.is_of_integers else _DECODE_FLOAT_BYTES)[spec.bits] / 2


def _decode_by_warpgroups(spec: LinearSpec) -> float:
    """The same of kernels by warpgroups."""
    is_signed = spec.is_of_bytes and not spec.is_of_integers and spec.bits > 1 and _is_signed(spec)
    return _decode(spec) + (_DECODE_SIGNS / 2 if is_signed else 0.0)


def _is_signed(spec: LinearSpec) -> bool:
    return not spec.table and dtype(spec.weight).is_integer and not spec.weight.startswith("uint")


def _of_product(spec: LinearSpec) -> float:
    """Cycles of a product of 16 along K by `mma.sync`, over that of halves."""
    if not spec.is_of_bytes:
        return 1.0
    return 0.5 if spec.is_of_integers else _EMULATED_FLOATS


def _scale_of_sums(spec: LinearSpec) -> float:
    """Cycles for an accumulator of the products of a step or a group; none where a row is one sum."""
    if not spec.is_of_integers:
        return 0.7
    return 0.25 if is_one_sum(spec) else _SCALE_INTEGER


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


def scales_in_f32(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether a kernel by warpgroups scales weights in f32, as the activation type does not hold what it takes."""
    return schedule.scales_on == "weights" and not can_scale_weights(spec)


def _lookup(spec: LinearSpec, instructions: Mapping[int, float]) -> float:
    """Instructions more for two weights that are indices of a table."""
    if not spec.table:
        return 0.0
    return _GATHER if has_gathers(spec) else instructions[spec.bits]


def _beside_plan(spec: LinearSpec, schedule: Schedule, many: bool) -> float:
    """Instructions for two weights beside those of a decode plan: to scale them in f32, and for the scales of groups
    that are no whole units."""
    is_f16 = (spec.super_scale or spec.scale) == "f16" and not spec.table and not spec.zeros
    more = 0.0
    if scales_in_f32(spec, schedule):
        more = (_SCALE_BY_F16 if is_f16 else _SCALE_IN_F32)[many]
        more += _WIDEN_BF16 if many and spec.activation == "bf16" else 0.0
    if has_small_groups(spec):
        conversions = spec.scale in ("e8m0", "e4m3") or bool(spec.super_scale)
        more += _SCALE_SMALL_GROUPS[many] * 16 / spec.group_size * (1 + 1.5 * bool(spec.corrector) + conversions)
    return more


def has_gathers(spec: LinearSpec) -> bool:
    """Whether codes are indices of tables of rows or groups, whose entries are loaded from global memory."""
    return spec.table in ("channel", "group")


def _has_offset(spec: LinearSpec) -> bool:
    """Whether products with ones correct accumulators: signed integers have a stored offset, but for one bit."""
    if spec.is_of_integers:
        return needs_sum_of_x(spec)
    if spec.corrector or spec.is_bipolar:
        return True
    return _is_signed(spec) and spec.bits > 1


class _Wide(NamedTuple):
    """What kernels by warpgroups for up to 64 rows of x take.

    column, product     cycles of 64 x 16 weights for each column of x, and whatever their number
    decode              for each instruction for two weights
    scaled, no_producer more where weights are scaled, and where warps that multiply copy
    own_stage, stage    cycles for each stage, of a tile of one block's own and else
    overlap             of the shorter of memory and computation, what the longer does not hide
    begin_us            more than other kernels take to begin
    sharing_us, part_us to share tiles, and for each further block of a tile of 8192 accumulators
    exchange_us         what the blocks of a cluster take to exchange accumulators
    fill_us             until the first stages are there, for each KB of one, of all blocks of an SM
    pair_us             less, for each further block of an SM
    """

    column: float
    product: float
    decode: float
    scaled: float
    no_producer: float
    own_stage: float
    stage: float
    overlap: float
    begin_us: float
    sharing_us: float
    part_us: float
    exchange_us: Mapping[int, float]
    fill_us: float
    pair_us: float


# Fitted to 561 kernels of 40 problems with 17 to 64 rows on an H200, 8 % apart (docs/adr/0097); of bytes to others.
_WIDE_HALVES: Final = _Wide(
    0.50, 5.97, 4.78, 3.87, 2.87, 106, 96, 0.185, 0.06, 2.59, 0.348, {2: 0.49, 4: 0.8, 8: 1.37}, 0.00915, 0.44
)
_WIDE_BYTES: Final = _Wide(0.36, 5.7, 8.8, 4.0, 4.0, 170, 205, 0.06, -0.5, 3.8, 0.28, _EXCHANGE_US, 0.0, 0.0)


def _estimated_wide_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Of a kernel by warpgroups for few rows of x: the tensor cores of an SM make products one after the other, and
    wait while weights are decoded, and between stages. Where tiles are shared, each part of one is stored and read."""
    form = _WIDE_BYTES if spec.is_of_bytes else _WIDE_HALVES
    tiles_of_columns = -(-m // schedule.columns)
    tiles = -(-spec.n // schedule.rows) * tiles_of_columns
    memory = (weight_bytes(spec) * tiles_of_columns + 4 * m * spec.n) / device.bytes_per_us

    decode = _decode_by_warpgroups(spec) + _lookup(spec, _FEW_LOOK_UP)
    if 16 * tiles_of_warp(spec, schedule) < spec.rows_of_unit:
        # A word that warps share is rotated, for four registers of one tile.
        decode += 0.25
    extra = (form.scaled if schedule.scales_on == "weights" else 0) + (0 if schedule.producer else form.no_producer)
    decode += _beside_plan(spec, schedule, many=False)
    cycles = (form.column * schedule.columns + form.product) * spec.x_bytes / 2 + form.decode * decode + extra
    blocks = blocks_for(spec, schedule, m, device.multiprocessors) * schedule.cluster
    stages = tiles * -(-spec.k // schedule.stage_k)
    stages_of_sm = math.ceil(stages / blocks) * math.ceil(blocks / device.multiprocessors)
    products = stages_of_sm * 4 * schedule.steps * schedule.row_tiles * schedule.warpgroups
    # A loop over the stages of one tile is shorter than one that also ends tiles.
    between = form.own_stage if schedule.has_tile_each else form.stage
    compute = (products * cycles + between * stages_of_sm) / device.cycles_per_us
    ending = 0.0
    if schedule.cluster > 1:
        ending = form.exchange_us[schedule.cluster]
    elif stages % blocks or tiles % blocks:
        parts = max(0, blocks / tiles - 1) * schedule.rows * schedule.columns / 8192
        ending = form.sharing_us + form.part_us * parts
    beginning = form.begin_us + form.fill_us * stage_bytes(spec, schedule) / 1000 * schedule.blocks_per_sm
    beginning -= form.pair_us * (schedule.blocks_per_sm - 1)
    return device.launch_us + beginning + max(memory, compute) + form.overlap * min(memory, compute) + ending


class _Form(NamedTuple):
    """What kernels by warpgroups for many rows of x take, by how blocks take tiles.

    product, stage, decode  cycles for each cycle of the tensor cores, for each stage, and for each instruction beside
                            products
    tile, number            cycles to begin and to end a tile, and for each of its accumulators
    begin_us                less than what other kernels take to begin
    scaled                  cycles for each that scaling accumulators takes
    line                    for each 64 bytes of a stage, which come from the L2 cache
    third                   of cycles beside products, what a third warpgroup leaves of them
    pair                    of those of the tensor cores, where tiles lie side by side
    """

    product: float
    stage: float
    decode: float
    tile: float
    number: float
    begin_us: float
    scaled: float = 1.0
    line: float = 0.0
    third: float = 1.0
    pair: float = 1.0


class _Sharing(NamedTuple):
    """What it takes to share tiles, in us: by shares of equal length, by aligned ones, and for each accumulator."""

    equal: float
    aligned: float
    number: float


class _Ring(NamedTuple):
    """How places of stages are filled again.

    refill           cycles until a copy into a place that has been read arrives
    bytes_per_cycle  that come to a multiprocessor
    sharpness        of the sum of powers that copies and products, which overlap, come to; infinite: the longer counts
    """

    refill: float
    bytes_per_cycle: float
    sharpness: float = math.inf

    def copies(self, stage: int, stages: int) -> float:
        """Cycles until a place of so many bytes is filled, while the others are read."""
        copied = stage / self.bytes_per_cycle
        return max(copied, (self.refill + copied) / (stages - 1))

    def overlapped(self, busy: float, copies: float) -> float:
        """Cycles of a stage that keeps an SM busy for so many, and whose place is filled in so many."""
        longer, shorter = max(busy, copies), min(busy, copies)
        if math.isinf(self.sharpness):
            return longer
        return float(longer * (1 + (shorter / longer) ** self.sharpness) ** (1 / self.sharpness))


_RING: Final = _Ring(1330, 80)


class _Many(NamedTuple):
    """Kernels by warpgroups for many rows of x: tiles that are each one block's, or one cluster's, or shared."""

    own: _Form
    cluster: _Form
    shared: _Form
    sharing: _Sharing
    ring: _Ring = _RING


# Fitted to 2500 kernels of 128 problems with 65 to 8192 rows on an H100, 6 % apart (docs/adr/0100).
_MANY_HALVES: Final = _Many(
    _Form(0.794, 110, 0.304, 3230, 0.0732, 1.16, 1.09, 0.118, 0.959, 1.054),
    _Form(0.830, 110, 0.304, 3230, 0.0732, 1.18, 1.09, 0.118, 0.959, 1.054),
    _Form(0.827, 110, 0.304, 1195, 0.0732, -0.11, 1.09, 0.118, 0.959, 1.054),
    _Sharing(3.0, 2.0, 3.0e-5),
    _Ring(381, 47.7, 6),
)
# Of bytes, fitted to 3882 kernels of 147 problems with 129 to 5494 rows on an H100; those within a fifth of the best of
# their problem 4 to 7 % apart (docs/adr/0099). Of floats, whose sums begin anew; of integers that are one sum for a
# row; and of integers with scales of groups.
_MANY_FLOATS: Final = _Many(
    _Form(0.882, 198, 0.53, 2120, 0.094, 2.66, 0.0, 0.044, 0.879, 1.26),
    _Form(1.01, 198, 0.53, 2120, 0.094, 0.53, 0.0, 0.044, 0.879, 1.26),
    _Form(0.901, 198, 0.53, 377, 0.094, 1.62, 0.0, 0.044, 0.879, 1.26),
    _Sharing(5.2, 3.4, 2.6e-5),
)
_MANY_INTEGERS: Final = _Many(
    _Form(0.771, 65, 0.0, 3030, 0.057, 1.63, 0.0, 0.585, 0.0, 1.09),
    _Form(0.853, 65, 0.0, 3030, 0.057, -1.03, 0.0, 0.585, 0.0, 1.09),
    _Form(0.819, 65, 0.0, 623, 0.057, -0.68, 0.0, 0.585, 0.0, 1.09),
    _Sharing(6.0, 3.9, 2.1e-5),
)
_MANY_GROUPS_OF_INTEGERS: Final = _Many(
    _Form(0.685, 165, 0.353, 2400, 0.121, 1.80, 2.32, 0.031, 0.951, 1.25),
    _Form(0.749, 165, 0.353, 2400, 0.121, 0.79, 2.32, 0.031, 0.951, 1.25),
    _Form(0.635, 165, 0.353, 1100, 0.121, 0.09, 2.32, 0.031, 0.951, 1.25),
    _Sharing(3.3, 2.2, 5.4e-6),
)
# Of the time, where two blocks copy x for each other: the mean of 31 and of 16 pairs of kernels on an H200
# (docs/adr/0070).
_OWN_MULTICAST: Final = 1.006
_SHARED_MULTICAST: Final = 0.983
# Instructions for two weights beside those that decode, by where scales go: of rows fitted to 35 kernels of 10 problems
# on an H200, 5 % apart (docs/adr/0072).
_BESIDE_DECODE: Final = {"weights": 7.4, "accumulators": 6.4, "rows": 4.0}
# Of two blocks for a tile, of one warpgroup each, over what clusters take else: 12 kernels on an H200 (docs/adr/0072).
_PAIR_OF_ONE: Final = 1.09
# Shares of equal length begin anywhere along K: how much longer their stages take, what the L2 cache holds of what they
# read, and the part of the time of what it does not.
_SCATTERED_STAGE: Final = 0.07
_HELD_BYTES: Final = 32e6
_SCATTERED: Final = 0.45


def _scattered_bytes(spec: LinearSpec, schedule: Schedule, m: int, shared: int) -> float:
    """What comes from memory again where blocks share tiles and each begins elsewhere along K, so that x and the
    weights of these tiles are in use everywhere at a time: of both, what the L2 cache does not hold."""
    columns = min(m, BAND)
    tiles_of_columns = -(-columns // schedule.columns_of_block)
    x = float(spec.x_bytes) * columns * spec.k
    weights = weight_bytes(spec) * min(1.0, shared / tiles_of_columns * schedule.rows / spec.n)
    of_x = max(0.0, 1 - _HELD_BYTES / x) * shared * spec.x_bytes * schedule.columns_of_block * spec.k
    return of_x + max(0.0, 1 - _HELD_BYTES / (x + weights)) * (tiles_of_columns - 1) * weights


class WideStage(NamedTuple):
    """Cycles of a stage by warpgroups, for many rows of x.

    products  of the tensor cores
    scaled    to scale their accumulators
    beside    instructions for a scheduler beside products: those that decode
    copies    until the stage's place in shared memory is filled again
    """

    products: float
    scaled: float
    beside: float
    copies: float


def cycles_of_wide_stage(spec: LinearSpec, schedule: Schedule) -> WideStage:
    """What a stage by warpgroups is made of."""
    rows, columns, stage_k = schedule.rows, schedule.columns_of_block, schedule.stage_k
    decode = _decode_by_warpgroups(spec) + _lookup(spec, _MANY_LOOK_UP)
    decode += _BESIDE_DECODE[schedule.scales_on] * spec.x_bytes / 2
    beside = rows * stage_k / 200 * (decode + _beside_plan(spec, schedule, many=True))
    scaled = 0.0
    if schedule.scales_on == "accumulators" and not is_one_sum(spec):
        scaled = rows * columns / 125 * -(-stage_k // spec.group_size)
    copies = _RING.copies(stage_bytes(spec, schedule), schedule.stages)
    return WideStage(rows * columns * stage_k * spec.x_bytes / 4096, scaled, beside, copies)


def _many(spec: LinearSpec) -> _Many:
    if not spec.is_of_bytes:
        return _MANY_HALVES
    if not spec.is_of_integers:
        return _MANY_FLOATS
    return _MANY_INTEGERS if is_one_sum(spec) else _MANY_GROUPS_OF_INTEGERS


def _estimated_us_of_many(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Of a kernel by warpgroups for many rows of x: stage by stage, products, and the part of the decoding that they do
    not hide; the beginning and end of each tile; then what shared tiles cost."""
    rows, columns, stage_k = schedule.rows, schedule.columns_of_block, schedule.stage_k
    tiles, stages_of_tile = tiles_of(spec, schedule, m), -(-spec.k // stage_k)
    blocks = blocks_for(spec, schedule, m, device.multiprocessors) * schedule.cluster
    many, shared = _many(spec), 0
    scattered, longer = 0.0, 0.0
    if schedule.has_tile_each:
        form = many.cluster if schedule.cluster > 1 else many.own
        waves = math.ceil(blocks / device.multiprocessors)
        stages = waves * -(-stages_of_tile // schedule.cluster)
    else:
        form = many.shared
        shared, share_stages, whole = waves_of(tiles, blocks, stages_of_tile, schedule.aligned_shares)
        waves = whole + bool(shared)
        stages = share_stages + whole * stages_of_tile
        if shared and not schedule.aligned_shares:
            scattered = _scattered_bytes(spec, schedule, m, shared) / device.bytes_per_us
            longer = _SCATTERED_STAGE * share_stages

    cost = cycles_of_wide_stage(spec, schedule)
    beside = form.scaled * cost.scaled + form.stage + form.decode * cost.beside
    beside *= form.third if schedule.warpgroups > 2 else 1.0
    products = form.product * cost.products * (form.pair if schedule.column_tiles > 1 else 1.0)
    busy = products + beside + form.line * stage_bytes(spec, schedule) / 64
    cycles = many.ring.overlapped(busy, many.ring.copies(stage_bytes(spec, schedule), schedule.stages))
    compute = ((stages + longer) * cycles + waves * (form.tile + form.number * rows * columns)) / device.cycles_per_us

    memory = (weight_bytes(spec) + spec.x_bytes * m * spec.k + 2 * m * spec.n) / device.bytes_per_us
    ending = _LONGER_EXCHANGE_US.get(schedule.cluster, 0.0)
    if shared:
        ending = many.sharing.aligned if schedule.aligned_shares else many.sharing.equal
        ending += many.sharing.number * rows * columns * max(1, blocks / shared)
    ending += _SCATTERED * scattered
    us = device.launch_us - form.begin_us + max(compute, memory) + 0.06 * min(compute, memory) + ending
    return us * (_PAIR_OF_ONE if schedule.warpgroups == 1 and schedule.cluster == 2 else 1.0)
