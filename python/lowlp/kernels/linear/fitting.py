"""What of a schedule fits an SM: shared memory, stages, registers."""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from lowlp.language.control_flow import MAX_STAGES
from lowlp.numeric.group_codes import PACKED_CODE_TYPES, code_bits
from lowlp.schedules.device import H200, Device
from lowlp_runtime.stored_weights import STORED_TYPES

from .experts import bytes_of_offsets
from .integer_sums import begins_anew, is_one_sum
from .operands import NUMPY_TYPES
from .ordering import kept_bytes, rows_kept
from .scaled_weights import can_scale_weights
from .schedule import Schedule
from .segments import has_small_groups
from .spec import LinearSpec
from .streaming_layouts import row_parts, shares_scales
from .two_levels import fills_stages, has_packed_codes, stored_groups, stored_taken, supers_taken
from .warpgroup_layouts import bytes_of_cluster, ends_with_scales, segment_k, tiles_of_warp

_MOST_PAIRED_BITS: Final = 6
_PLAIN_BITS: Final = (5, 6)
"""Of codes that are looked up in the plain table, whose entries fill the banks once at most."""
_MOST_COLUMNS_OF_PARTS: Final = 16
"""The assembler spills x of more columns where a step takes rows in parts."""
_STREAMED_STAGES: Final = 3
"""Without warpgroups: memory answers no sooner where more is asked for at once (docs/adr/0021)."""
_NARROW_MARGIN: Final = 12
"""Registers to spare of three and four warpgroups, whose need `_registers` puts too low by less than a step."""
_MARGIN_OF_LONG_STAGES: Final = 16
"""More of four whose stages have four steps: the assembler begins later ones early."""
_MARGIN_OF_SUMS: Final = 20
"""Of warpgroups that scale accumulators of tiles that blocks share."""
_MARGIN_OF_PAIRS: Final = 4
"""Of several warpgroups, two blocks of which have an SM and share tiles."""
_MARGIN_OF_PAIRS_OF_BYTES: Final = 5
"""The same of three warpgroups and more that multiply bytes."""
_REGISTERS_OF_F32: Final = 32
"""What weights take that are scaled in f32."""
_FEW_ACCUMULATORS: Final = 104
"""Of a thread times warpgroups: of more, `ptxas` spills where two groups of a stage are scaled after their products."""
_REGISTERS_OF_GATHERS: Final = 24
"""Addresses and entries of tables of rows and groups in flight."""
_MOST_OF_PARTS: Final = 144
"""Accumulators of a thread, by warpgroups with several tiles of rows: with more, `ptxas` makes each product wait."""
_REGISTERS_OF_SMALL_GROUPS: Final = 12
"""Scales of several groups that the assembler loads early, by warpgroups."""
_COPY_BYTES: Final = 128
"""Of which places of copies in shared memory are multiples."""
_REGISTERS_OF_SUPERS: Final = 36
"""Parts of scales of two levels of several groups, by warpgroups."""
_REGISTERS_OF_WORDS: Final = 24
"""Words of units of 32 rows that two tiles of a warp have in flight, by warpgroups that scale accumulators; with a gate
the count of accumulators has room for them."""
_REGISTERS_OF_LARGE_UNITS: Final = 8
"""Scales of small groups of units of 64 rows that the assembler loads early, with 16 columns."""
_REGISTERS_OF_FLOAT_ZEROS: Final = 8
"""Zero points that are floats, of more than 16 columns."""
_LARGE_RING_BYTES: Final = 160 * 1024
_LONG_STREAM_BYTES: Final = 100e6


def weight_bytes(spec: LinearSpec) -> float:
    """Of the codes, and of scales and zero points as numbers of 16 bits; of scales in two levels as they are."""
    codes = spec.n * spec.k * spec.bits / 8
    if not spec.super_scale:
        return codes + spec.n * spec.groups * 2 * (2 if spec.corrector else 1)
    return codes + scale_bytes(spec)


def scale_bytes(spec: LinearSpec) -> int:
    """Of scales, zero points and offsets of all rows, in both levels."""
    found = sum(stored_groups(spec, kind) * bytes_of(kind) for kind in (spec.scale, spec.corrector) if kind)
    if spec.super_scale:
        found += spec.supers * bytes_of(spec.super_scale) * (1 + spec.has_super_offsets)
    return spec.n * found


def stage_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Bytes of shared memory that a stage takes: weights, x, scales, zero points."""
    groups, steps = -(-schedule.stage_k // spec.group_size), 1
    if not schedule.warpgroups:
        groups, steps = max(1, schedule.step_k // spec.group_size), schedule.steps
    weights = schedule.rows * schedule.stage_k * spec.bits // 8
    x = (schedule.staged_rows or schedule.columns_of_block) * schedule.stage_k * spec.x_bytes
    if rows_kept(spec, schedule):
        x = 0
    # Scales of whole rows come at the end of a tile.
    scale = "" if schedule.warpgroups and ends_with_scales(spec, schedule) else spec.scale
    kinds = [kind for kind in (scale, spec.corrector) if kind]
    taken = stored_taken
    if schedule.warpgroups and not fills_stages(spec, schedule.stage_k):
        taken = _bytes_of_each
    scales = sum(steps * taken(kind, groups) * bytes_of(kind) for kind in kinds)
    # Second scales of rows go on weights that are scaled in f32, and come with each stage.
    second = spec.row_scale2 and schedule.scales_on == "weights" and not can_scale_weights(spec)
    return weights + x + schedule.rows * (scales + (4 if second else 0) + _super_bytes(spec, schedule))


def padding_of_slices(schedule: Schedule, rows: int) -> float:
    """Padding over elements where slices exchange accumulators of so many rows, at most: of the layouts that the
    compiler tries (`dialect/lib/Layout/Scratch.cpp`) the one that it takes, which a test asks it for."""
    warps, columns = schedule.warps, schedule.columns
    wide = max(1, schedule.slices * columns // 128) if schedule.threads > 256 else 1
    found = max(wide / (warps * schedule.slices), 4 / rows)
    if columns == 8 and warps == 1 and rows % 32 and schedule.slices > 4:
        return max(found, 1 / 4)
    return max(found, 1 / 8) if columns == 32 and warps & (warps - 1) else found


def _bytes_of_each(kind: str, groups: int) -> int:
    """Elements along K that are loaded for so many groups one by one: of fields that cross bytes, two."""
    return groups * (2 if kind in PACKED_CODE_TYPES and 8 % code_bits(kind) else 1)


def bytes_of(kind: str) -> int:
    """Of an element of scales and the like as a kernel reads them."""
    return NUMPY_TYPES[STORED_TYPES[kind] if kind in PACKED_CODE_TYPES else kind].itemsize


def _super_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Bytes of the super-scales and super-offsets of a row that a stage takes."""
    if not spec.super_scale:
        return 0
    supers = supers_taken(spec, schedule.stage_k)
    if not schedule.warpgroups:
        supers = supers_taken(spec, schedule.step_k) * schedule.steps
    return supers * bytes_of(spec.super_scale) * (1 + spec.has_super_offsets)


def other_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """Bytes of shared memory beside the stages: of exchanges at the end of a tile, of tables and barriers, and of rows
    of x that are put in order."""
    # Of barriers, and of small exchanges; what seven warps load goes through shared memory more often.
    exchange, beside = 0, 2048 if schedule.warps & (schedule.warps - 1) == 0 else 4096
    if not schedule.warpgroups and not has_small_groups(spec) and has_packed_codes(spec):
        # Bytes of fields of few rows, each of which begins where a copy may.
        kinds = [kind for kind in (spec.scale, spec.corrector) if kind in PACKED_CODE_TYPES]
        tiles = sum(stored_taken(kind, 1) for kind in kinds) * schedule.steps
        beside += tiles * _STREAMED_STAGES * (-schedule.rows // spec.products % _COPY_BYTES)
    if not schedule.warpgroups and not has_small_groups(spec) and not spec.table:
        # A stage's numbers of rows, so many times that places of copies are whole; what is kept free for a table has
        # room for them.
        kinds = [kind for kind in (spec.scale, spec.corrector) if kind and kind not in PACKED_CODE_TYPES]
        sizes = [schedule.rows // spec.products * bytes_of(kind) for kind in kinds]
        repeated = sum(math.lcm(size, _COPY_BYTES) - size for size in sizes)
        beside += _STREAMED_STAGES * max(0, repeated - _COPY_BYTES)
    if schedule.slices > 1:
        # Of a part of one product. Rows are some bytes apart, so that banks differ.
        rows = schedule.rows // (spec.products * row_parts(spec, schedule))
        exchange = int(rows * schedule.columns * schedule.slices * 4 * (1 + padding_of_slices(schedule, rows)))
        beside -= 1024
    if schedule.warpgroups:
        element = max(NUMPY_TYPES[kind].itemsize for kind in (spec.out, spec.residual) if kind)
        rows_of_part = 64 * schedule.warpgroups * tiles_of_warp(spec, schedule)
        exchange = rows_of_part * (schedule.columns // schedule.cluster * element + 8) + bytes_of_cluster(schedule)
    if spec.experts:
        beside += bytes_of_offsets(spec.experts)
    table = table_bytes(spec, schedule)
    if table and not schedule.warpgroups:
        # A stage more took up to 1 us longer with 8 columns, and saved 0.6 us at most with 16 (H200).
        table = max(table, 48 * 1024)
    # Rows of x as they come are gone before the end, and those that a block keeps for its only tile at the end.
    kept, before = kept_bytes(spec, schedule)
    if schedule.has_tile_each and not before:
        return max(exchange, kept) + table + beside
    return max(exchange, before) + table + beside + kept


def table_bytes(spec: LinearSpec, schedule: Schedule) -> int:
    """The most bytes of shared memory that `lowlp-vectorize-lookups` takes for the table of a tensor, in copies: of
    pairs, 4 bytes for each two codes; or of entries; or the plain table."""
    if spec.table != "tensor":
        return 0
    plain, copies = 2 << spec.bits, schedule.table_copies
    pairs = 4 << 2 * spec.bits if spec.bits <= _MOST_PAIRED_BITS and schedule.table_form in ("auto", "pair") else 0
    if copies:
        return plain + max(pairs, plain) * copies
    if schedule.table_form in ("auto", "entry") and spec.bits in _PLAIN_BITS:
        return 2 * plain
    # Where it chooses, it takes no more than a power of two that 48 KiB hold: up to 256 bytes for a pair or an entry.
    return plain + min(max(64 * pairs, 256 << spec.bits), 32 * 1024)


def _stages_that_fit(spec: LinearSpec, schedule: Schedule, device: Device) -> int:
    """How many stages fit beside the other blocks of an SM."""
    room = device.shared_bytes // schedule.blocks_per_sm - 1024 - other_bytes(spec, schedule)
    return min(MAX_STAGES - 1, room // stage_bytes(spec, schedule))


def _useful_stages(spec: LinearSpec, schedule: Schedule) -> int:
    """The most stages that are of use: with few rows of x and many weights, fewer of large ones."""
    if schedule.warpgroups:
        return MAX_STAGES - 1
    ring_bytes = _STREAMED_STAGES * stage_bytes(spec, schedule) * schedule.blocks_per_sm
    is_large = ring_bytes > _LARGE_RING_BYTES and weight_bytes(spec) > _LONG_STREAM_BYTES
    return _STREAMED_STAGES - is_large


def fitted(spec: LinearSpec, schedule: Schedule, device: Device = H200) -> Schedule:
    """The schedule with as many stages as fit and are of use, with fewer blocks on an SM where not even two do."""
    for blocks in range(schedule.blocks_per_sm, 0, -1):
        fewer = dataclasses.replace(schedule, blocks_per_sm=blocks)
        stages = _stages_that_fit(spec, fewer, device)
        if stages >= 2 or blocks == 1:
            return dataclasses.replace(fewer, stages=max(2, min(stages, _useful_stages(spec, fewer))))
    raise AssertionError("unreachable")


def registers(spec: LinearSpec, schedule: Schedule) -> int:
    """An estimate of what a thread needs: accumulators of a tile and of a group, fragments, words."""
    return (_registers_of_warpgroups if schedule.warpgroups else _registers_of_warps)(spec, schedule)


def _registers_of_warpgroups(spec: LinearSpec, schedule: Schedule) -> int:
    on_accumulators = schedule.scales_on == "accumulators"
    accumulators = schedule.row_tiles * schedule.columns_of_block // 2
    if begins_anew(spec):
        return _registers_of_sums(spec, schedule, accumulators)
    if on_accumulators:
        # Of three and more groups of a stage the assembler has the products of all before it scales them, and of
        # two, where they are many.
        groups = max(1, schedule.stage_k // spec.group_size) if not is_one_sum(spec) else 0
        few = groups == 2 and accumulators * schedule.warpgroups <= _FEW_ACCUMULATORS
        accumulators += 3 * accumulators // 2 if few else groups * accumulators
        if spec.is_of_bytes and schedule.row_tiles > 1:
            # The end of a tile has what rows of x come to for both of a warp's tiles of rows.
            accumulators += schedule.columns // 2
    if spec.table:
        # Entries in flight beside products: of large units and short products, or two live tiles of accumulators.
        large = spec.rows_of_unit > 16 and schedule.columns <= 64
        accumulators += 60 if large else 26 if on_accumulators else 0
        accumulators += _REGISTERS_OF_GATHERS if spec.table != "tensor" else 0
    elif on_accumulators and spec.rows_of_unit == 32 and spec.products == 1 and not spec.is_of_bytes:
        accumulators += _REGISTERS_OF_WORDS
    if schedule.scales_on == "weights" and not can_scale_weights(spec):
        accumulators += _REGISTERS_OF_F32
    if has_small_groups(spec):
        accumulators += _REGISTERS_OF_SMALL_GROUPS
    if spec.x_zeros and is_one_sum(spec):
        # What the end of a tile asks for early: zero points of columns, beside their scales.
        accumulators += 3 * schedule.columns_of_block // 8
    accumulators += _registers_of_supers(spec, schedule)
    return 28 + accumulators + 8 * schedule.products_in_flight + spec.bits + schedule.columns // 2 * spec.ending_numbers


def _registers_of_sums(spec: LinearSpec, schedule: Schedule, accumulators: int) -> int:
    """Of bytes whose sums begin anew with a group or some weights: accumulators of the tile, and those of all sums of a
    stage, since the assembler begins the products of later ones early; or what the end of the tile takes; and little
    beside them and the fragments of products in flight (docs/adr/0099, 0108)."""
    tiles = tiles_of_warp(spec, schedule)
    of_sum = tiles * schedule.columns // 2
    sums = accumulators // of_sum * (schedule.stage_k // segment_k(spec, schedule))
    others = sums * of_sum
    if sums > 1:
        # Fragments and words of later products, and where results are while others are scaled.
        others += 8 if sums == 2 else 24
        others += 8 if sums > 2 and schedule.warpgroups > 2 else 0
        others += 8 if schedule.stage_k > 128 else 0
    if tiles > 1:
        is_large = schedule.has_tile_each or schedule.row_tiles > 2
        others += _REGISTERS_OF_WORDS if is_large else _REGISTERS_OF_LARGE_UNITS
    if schedule.blocks_per_sm > 1 and schedule.warpgroups > 2:
        others += _MARGIN_OF_PAIRS_OF_BYTES
    others = max(others, spec.ending_numbers * of_sum)
    others += _registers_of_supers(spec, schedule)
    return accumulators + others + 8 * schedule.products_in_flight + 4


def _registers_of_supers(spec: LinearSpec, schedule: Schedule) -> int:
    """Of scales in two levels, by warpgroups."""
    if not spec.super_scale:
        return 0
    are_early = schedule.scales_on == "accumulators" or spec.group_size == 16
    found = 2 * schedule.row_tiles * (1 + spec.has_super_offsets)
    return found + (_REGISTERS_OF_SUPERS if are_early else 0)


def _registers_of_warps(spec: LinearSpec, schedule: Schedule) -> int:
    accumulators, parts = schedule.row_tiles * schedule.columns // 2, row_parts(spec, schedule)
    tiles_of_part, small_groups = schedule.row_tiles // parts, 0
    is_shared = shares_scales(spec, schedule)
    on_weights = schedule.scales_on == "weights"
    if has_small_groups(spec) and not on_weights:
        # What each group begins with, and the scales of several that the assembler loads early: all of those whose
        # fields cross bytes.
        early = 512 // spec.group_size
        if is_shared and schedule.columns <= _MOST_COLUMNS_OF_PARTS:
            early = 9 * schedule.row_tiles if spec.scale == "int6" else 8 if spec.scale in ("e4m3", "e8m0") else 0
        small_groups = schedule.columns + early + (_REGISTERS_OF_F32 if parts > 1 else 0)
        if schedule.columns == _MOST_COLUMNS_OF_PARTS and spec.rows_of_unit == 64:
            small_groups += _REGISTERS_OF_LARGE_UNITS
    supers = 0
    if spec.super_scale:
        # Of each row of the tile, or of some, for as long as a step takes; and sums of x, which zero points multiply.
        rows = schedule.row_tiles // 2 if is_shared else 2 * schedule.row_tiles
        supers = rows * (1 + spec.has_super_offsets) + (schedule.columns + 8 if spec.zeros else 0)
    return (
        24
        + small_groups
        + supers
        + _registers_of_long_stages(spec, schedule)
        + (_registers_of_bytes_of_warps(spec, schedule) if spec.is_of_bytes else 0)
        + accumulators
        + (0 if on_weights else accumulators // parts)
        + schedule.columns * (1 if parts == 1 else schedule.units)
        + tiles_of_part * (4 + spec.bits // 2)
        + (_REGISTERS_OF_GATHERS if spec.table not in ("", "tensor") else 0)
    )


def _registers_of_bytes_of_warps(spec: LinearSpec, schedule: Schedule) -> int:
    """Of sums of groups of 8-bit floats, and of these where rows are taken in parts; and what the assembler loads early
    of long steps, x of floats, sums of groups of integers: by what it spilled (docs/adr/0107, 0109)."""
    if spec.is_of_integers:
        is_long = schedule.units * schedule.steps > 2 and schedule.slices > 1
        return _NARROW_MARGIN if is_long and spec.rows_of_unit == 64 else 0
    in_parts = 6 * schedule.row_tiles if row_parts(spec, schedule) > 1 else 0
    has_groups = spec.groups > 1
    early = schedule.columns * (3 if has_groups else 2) if schedule.units * schedule.steps > 2 else 0
    return in_parts + early + (5 * schedule.row_tiles if has_groups else 0)


def _registers_of_long_stages(spec: LinearSpec, schedule: Schedule) -> int:
    """What the steps of a stage have at once: x of all steps where a row is one group, whose accumulators no step
    scales; and zero points that are floats with the sums of x that they multiply."""
    found = 0
    if spec.groups == 1 and not spec.is_of_bytes:
        found += schedule.columns // 2 * schedule.units * (schedule.steps - 1)
    if schedule.columns > _MOST_COLUMNS_OF_PARTS and spec.zeros in ("f16", "bf16", "f32"):
        found += schedule.columns + 4 if schedule.steps > 1 else _REGISTERS_OF_FLOAT_ZEROS
    return found


def _copies_rows(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether tensor copies can bring a stage's scales, of both levels, and zero points: 256 at once, or pieces of 128
    bytes."""
    sizes = [bytes_of(kind) for kind in (spec.scale, spec.corrector, spec.super_scale) if kind]
    rows = schedule.rows // spec.products
    return schedule.warpgroups > 0 or rows <= 256 or all(rows * size % 128 == 0 for size in sizes)


def exchanges_registers(schedule: Schedule, device: Device) -> bool:
    """Whether a schedule's producer gives its registers away on a device."""
    return device.gives_registers and schedule.exchanges_registers


def fits(spec: LinearSpec, schedule: Schedule, device: Device) -> bool:
    """Whether an SM has registers and shared memory for the schedule, and tensor copies bring what its stages need."""
    if not _copies_rows(spec, schedule):
        return False
    if (
        schedule.warpgroups
        and schedule.row_tiles > 1
        and schedule.row_tiles * schedule.columns_of_block // 2 > _MOST_OF_PARTS
    ):
        return False
    least = 2 if schedule.stage_k >= (128 if schedule.columns_of_block >= 128 else 256) else 3
    stages = _stages_that_fit(spec, schedule, device)
    if row_parts(spec, schedule) > 1:
        if schedule.columns > _MOST_COLUMNS_OF_PARTS:
            return False
        # Of fewer columns rows are taken in fewer parts, which need more room to exchange the accumulators of slices.
        narrow = dataclasses.replace(schedule, columns=8)
        stages = min(stages, _stages_that_fit(spec, narrow, device))
        if registers(spec, narrow) > _most_registers(spec, narrow, device):
            return False
    return registers(spec, schedule) <= _most_registers(spec, schedule, device) and stages >= least


def _most_registers(spec: LinearSpec, schedule: Schedule, device: Device) -> int:
    """How many registers a thread that multiplies may have."""
    shares = schedule.warpgroups > 1 and not schedule.has_tile_each and not spec.is_of_bytes
    has_long_stages = schedule.warpgroups == 4 and schedule.steps >= 4 and not spec.is_of_bytes
    if exchanges_registers(schedule, device):
        margin = _NARROW_MARGIN if schedule.warpgroups > 2 else 0
        if has_long_stages:
            margin += _MARGIN_OF_LONG_STAGES
        if shares and schedule.scales_on == "accumulators" and spec.groups > 1:
            margin += _MARGIN_OF_SUMS
        return device.worker_registers(schedule.threads) - margin
    # Registers are given to four warps at a time.
    threads = -(-(schedule.threads + (32 if schedule.producer else 0)) // 128) * 128 * schedule.blocks_per_sm
    if shares_scales(spec, schedule):
        # What a quarter of an SM has of the warps of all blocks.
        warps = (schedule.threads // 32 + schedule.producer) * schedule.blocks_per_sm
        threads = -(-warps // 4) * 128
    margin = _MARGIN_OF_PAIRS if shares and schedule.blocks_per_sm > 1 else 0
    if has_long_stages:
        # With 112 columns `ptxas` has too few registers, and makes each product wait for the one before; 104 fit.
        margin += _MARGIN_OF_LONG_STAGES + _NARROW_MARGIN
    return min(232, 64 * 1024 // threads - margin)
