"""What a kernel for `linear` by warpgroups takes on a GPU, in us, by coefficients that fit what an H200 and an H100
took: for few rows of x, and for more."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from lowlp.kernels.stream_k import waves_of
from lowlp.schedules.device import Device

from .block_work import BAND
from .decode_estimates import beside_plan, decode_by_warpgroups, lookup_instructions
from .fitting import stage_bytes, weight_bytes
from .integer_sums import BEGINS_ANEW_K, begins_anew, is_one_sum
from .schedule import Schedule
from .spec import LinearSpec
from .tiles import blocks_for, tiles_of
from .warpgroup_layouts import segment_k, tiles_of_warp

# Instructions more for two weights of lookup tables, by bits: for few and for many rows; for many those of 5 bits and
# more by what 7 problems took (docs/adr/0106).
_FEW_LOOK_UP: Final = {1: 0.7, 2: 0.7, 3: 0.7, 4: 0.7, 5: 2.4, 6: 2.4, 7: 3.0, 8: 2.2}
_MANY_LOOK_UP: Final = {1: 0.7, 2: 0.7, 3: 2.5, 4: 3.5, 5: 20.0, 6: 20.0, 7: 20.0, 8: 20.0}

# What the blocks of a cluster take longer to exchange their accumulators than the form of clusters has it, for many
# rows of x.
_LONGER_EXCHANGE_US: Final = {2: 0.5, 4: 1.2, 8: 1.6}


class _Wide(NamedTuple):
    """What kernels by warpgroups for few rows of x take.

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
    apart               of cycles, what blocks of one warpgroup that share an SM leave (docs/adr/0112)
    floats, groups      cycles of 64 x 16 weights for each column, to add what begins anew every 128 along K, or for
                        shorter groups more often: sums of 8-bit floats, and of groups of integers
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
    apart: float
    floats: float = 0.0
    groups: float = 0.0


# Fitted to 561 kernels of 40 problems with 17 to 64 rows on an H200, 8 % apart (docs/adr/0097); of bytes to 418 of 32
# with 17 to 112 rows on an H200, 5 % apart where they are fast, from what 918 others took on (docs/adr/0107, 0108).
_WIDE_HALVES: Final = _Wide(
    0.50, 5.97, 4.78, 3.87, 2.87, 106, 96, 0.185, 0.06, 2.59, 0.348, {2: 0.49, 4: 0.8, 8: 1.37}, 0.00915, 0.44, 0.9
)
_WIDE_BYTES: Final = _Wide(
    column=0.389,
    product=10.5,
    decode=3.68,
    scaled=4.0,
    no_producer=1.59,
    own_stage=133,
    stage=95,
    overlap=0.096,
    begin_us=-0.35,
    sharing_us=3.67,
    part_us=0.317,
    exchange_us={2: 0.61, 4: 0.91, 8: 1.6},
    fill_us=0.0025,
    pair_us=0.618,
    apart=0.9,
    floats=0.156,
    groups=0.2,
)
_MOST_OF_FEW: Final = {False: 64, True: 112}
"""Rows of x up to which kernels are estimated as those of few, of halves and of bytes."""


def _us_of_few(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Of a kernel by warpgroups for few rows of x: the tensor cores of an SM make products one after the other, and
    wait while weights are decoded, and between stages. Where tiles are shared, each part of one is stored and read."""
    form = _WIDE_BYTES if spec.is_of_bytes else _WIDE_HALVES
    tiles_of_columns = -(-m // schedule.columns)
    tiles = -(-spec.n // schedule.rows) * tiles_of_columns
    memory = (weight_bytes(spec) * tiles_of_columns + 4 * m * spec.n) / device.bytes_per_us

    decode = decode_by_warpgroups(spec) + lookup_instructions(spec, _FEW_LOOK_UP)
    if 16 * tiles_of_warp(spec, schedule) < spec.rows_of_unit:
        # A word that warps share is rotated, for four registers of one tile.
        decode += 0.25
    extra = (form.scaled if schedule.scales_on == "weights" else 0) + (0 if schedule.producer else form.no_producer)
    decode += beside_plan(spec, schedule, many=False)
    if begins_anew(spec):
        often = max(1.0, BEGINS_ANEW_K / spec.group_size)
        extra += (form.groups if spec.is_of_integers else form.floats) * schedule.columns * often
    cycles = (form.column * schedule.columns + form.product) * spec.x_bytes / 2 + form.decode * decode + extra
    blocks = blocks_for(spec, schedule, m, device.multiprocessors) * schedule.cluster
    stages = tiles * -(-spec.k // schedule.stage_k)
    stages_of_sm = math.ceil(stages / blocks) * math.ceil(blocks / device.multiprocessors)
    products = stages_of_sm * 4 * schedule.steps * schedule.row_tiles * schedule.warpgroups
    # A loop over the stages of one tile is shorter than one that also ends tiles.
    between = form.own_stage if schedule.has_tile_each else form.stage
    compute = (products * cycles + between * stages_of_sm) / device.cycles_per_us
    if schedule.warpgroups == 1 and schedule.blocks_per_sm > 1 and blocks > device.multiprocessors:
        compute *= form.apart
    ending = 0.0
    if schedule.cluster > 1:
        ending = form.exchange_us[schedule.cluster]
    elif stages % blocks or tiles % blocks:
        parts = max(0, blocks / tiles - 1) * schedule.rows * schedule.columns / 8192
        ending = form.sharing_us + form.part_us * parts
    beginning = form.begin_us + form.fill_us * stage_bytes(spec, schedule) / 1000 * schedule.blocks_per_sm
    beginning -= form.pair_us * (schedule.blocks_per_sm - 1)
    return device.launch_us + beginning + max(memory, compute) + form.overlap * min(memory, compute) + ending


class _Taking(NamedTuple):
    """What depends on how blocks take tiles: cycles for each cycle of the tensor cores, and to begin and to end a tile;
    and how much less than other kernels they take to begin."""

    product: float
    tile: float
    begin_us: float


class _Sharing(NamedTuple):
    """What it takes to share tiles, in us: by shares of equal length, by aligned ones, and for each accumulator."""

    equal: float
    aligned: float
    number: float


class Ring(NamedTuple):
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


class _Many(NamedTuple):
    """What kernels by warpgroups for many rows of x take.

    own, cluster, shared  where tiles are each one block's, or one cluster's, or shared
    stage, decode         cycles for each stage, and for each instruction beside products
    number                for each accumulator of a tile, to end it
    scaled                cycles for each that scaling accumulators takes
    line                  for each 64 bytes of a stage, which come from the L2 cache
    third                 by which a third warpgroup multiplies the cycles beside products
    pair                  of those of the tensor cores, where tiles lie side by side
    scattered_stage       how much longer stages take of shares of equal length, which begin anywhere along K
    """

    own: _Taking
    cluster: _Taking
    shared: _Taking
    stage: float
    decode: float
    number: float
    scaled: float
    line: float
    third: float
    pair: float
    sharing: _Sharing
    ring: Ring
    scattered_stage: float


# Fitted to 554 kernels of 24 problems with 65 to 4000 rows on an H200, 4 % apart where they are fast, from what an
# H100 took on (docs/adr/0106, 0108).
_MANY_HALVES: Final = _Many(
    own=_Taking(0.724, 3250, 2.29),
    cluster=_Taking(0.82, 2990, 2.51),
    shared=_Taking(0.765, 1280, 1.01),
    stage=139,
    decode=0.309,
    number=0.118,
    scaled=0.792,
    line=0.0209,
    third=1.05,
    pair=1.07,
    sharing=_Sharing(3.35, 2.24, 3.12e-05),
    ring=Ring(358, 65.3, 3.25),
    scattered_stage=0.0621,
)

# Of bytes, fitted to 836 kernels of 100 problems with more than 112 rows on an H200, those near the best of their
# problem 3 to 6 % apart (docs/adr/0108). Of floats, whose sums begin anew, and whose tiles side by side are by
# docs/adr/0110; of integers that are one sum for a row; and of integers with scales of groups.
_MANY_FLOATS: Final = _Many(
    own=_Taking(0.524, 1820, 3.37),
    cluster=_Taking(0.527, 1950, 0.785),
    shared=_Taking(0.509, 0, 0.458),
    stage=17.6,
    decode=0.804,
    number=0.147,
    scaled=1.78,
    line=0.0,
    third=0.838,
    pair=1.07,
    sharing=_Sharing(6.53, 3.84, 1.03e-05),
    ring=Ring(777, 78.8, 11.3),
    scattered_stage=0.0,
)
_MANY_INTEGERS: Final = _Many(
    own=_Taking(0.72, 2490, 2.21),
    cluster=_Taking(0.765, 2590, 1.73),
    shared=_Taking(0.75, 205, 0.448),
    stage=69.8,
    decode=0.151,
    number=0.177,
    scaled=0.0,
    line=0.22,
    third=0.848,
    pair=1.02,
    sharing=_Sharing(5.17, 3.99, 1.37e-05),
    ring=Ring(700, 96, 4.4),
    scattered_stage=0.0268,
)
_MANY_GROUPS_OF_INTEGERS: Final = _Many(
    own=_Taking(0.533, 2720, 1.52),
    cluster=_Taking(0.647, 2920, 1.92),
    shared=_Taking(0.544, 1030, -0.297),
    stage=192,
    decode=0.598,
    number=0.0758,
    scaled=2.33,
    line=0.0,
    third=0.942,
    pair=1.23,
    sharing=_Sharing(2.77, 2.65, 2.03e-05),
    ring=Ring(784, 62.6, 7.23),
    scattered_stage=0.0309,
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

# Of shares of equal length, which begin anywhere along K: what the L2 cache holds of what they read, and the part of
# the time of what it does not.
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
    """

    products: float
    scaled: float
    beside: float


def cycles_of_wide_stage(spec: LinearSpec, schedule: Schedule) -> WideStage:
    """What a stage by warpgroups is made of."""
    rows, columns, stage_k = schedule.rows, schedule.columns_of_block, schedule.stage_k
    decode = decode_by_warpgroups(spec) + lookup_instructions(spec, _MANY_LOOK_UP)
    decode += _BESIDE_DECODE[schedule.scales_on] * spec.x_bytes / 2
    beside = rows * stage_k / 200 * (decode + beside_plan(spec, schedule, many=True))
    scaled = 0.0
    if schedule.scales_on == "accumulators" and not is_one_sum(spec):
        scaled = rows * columns / 125 * (stage_k / segment_k(spec, schedule))
    return WideStage(rows * columns * stage_k * spec.x_bytes / 4096, scaled, beside)


def _many(spec: LinearSpec) -> _Many:
    if not spec.is_of_bytes:
        return _MANY_HALVES
    if not spec.is_of_integers:
        return _MANY_FLOATS
    return _MANY_INTEGERS if is_one_sum(spec) else _MANY_GROUPS_OF_INTEGERS


def _us_of_many(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Of a kernel by warpgroups for many rows of x: stage by stage, products, and the part of the decoding that they do
    not hide; the beginning and end of each tile; then what shared tiles cost."""
    rows, columns, stage_k = schedule.rows, schedule.columns_of_block, schedule.stage_k
    tiles, stages_of_tile = tiles_of(spec, schedule, m), -(-spec.k // stage_k)
    blocks = blocks_for(spec, schedule, m, device.multiprocessors) * schedule.cluster
    many, shared = _many(spec), 0
    scattered, longer = 0.0, 0.0
    if schedule.has_tile_each:
        taking = many.cluster if schedule.cluster > 1 else many.own
        waves = math.ceil(blocks / device.multiprocessors)
        stages = waves * -(-stages_of_tile // schedule.cluster)
    else:
        taking = many.shared
        shared, share_stages, whole = waves_of(tiles, blocks, stages_of_tile, schedule.aligned_shares)
        waves = whole + bool(shared)
        stages = share_stages + whole * stages_of_tile
        if shared and not schedule.aligned_shares:
            scattered = _scattered_bytes(spec, schedule, m, shared) / device.bytes_per_us
            longer = many.scattered_stage * share_stages

    cost = cycles_of_wide_stage(spec, schedule)
    beside = many.scaled * cost.scaled + many.stage + many.decode * cost.beside
    beside *= many.third if schedule.warpgroups > 2 else 1.0
    products = taking.product * cost.products * (many.pair if schedule.column_tiles > 1 else 1.0)
    busy = products + beside + many.line * stage_bytes(spec, schedule) / 64
    cycles = many.ring.overlapped(busy, many.ring.copies(stage_bytes(spec, schedule), schedule.stages))
    compute = ((stages + longer) * cycles + waves * (taking.tile + many.number * rows * columns)) / device.cycles_per_us

    memory = (weight_bytes(spec) + spec.x_bytes * m * spec.k + 2 * m * spec.n) / device.bytes_per_us
    ending = _LONGER_EXCHANGE_US.get(schedule.cluster, 0.0)
    if shared:
        ending = many.sharing.aligned if schedule.aligned_shares else many.sharing.equal
        ending += many.sharing.number * rows * columns * max(1, blocks / shared)
    ending += _SCATTERED * scattered
    us = device.launch_us - taking.begin_us + max(compute, memory) + 0.06 * min(compute, memory) + ending
    return us * (_PAIR_OF_ONE if schedule.warpgroups == 1 and schedule.cluster == 2 else 1.0)


def wide_us(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """What the kernel would take, in microseconds, from cold caches."""
    if schedule.multicast > 1:
        alone = wide_us(spec, dataclasses.replace(schedule, multicast=1), m, device)
        return alone * (_OWN_MULTICAST if schedule.has_tile_each else _SHARED_MULTICAST)
    # Tiles side by side, and aligned shares, are of many.
    is_few = m <= _MOST_OF_FEW[spec.is_of_bytes] and schedule.column_tiles == 1 and not schedule.aligned_shares
    return (_us_of_few if is_few else _us_of_many)(spec, schedule, m, device)
