"""How kernels by warpgroups lay a tile out (`warpgroups`), the numbers that spec and schedule fix, and which schedules
they have a program for."""

from __future__ import annotations

import functools
import itertools
import math

from lowlp import language as ll
from lowlp.kernels.stream_k import LEAST_ALIGNED_STAGES
from lowlp.layouts.register_layout import column_local, column_spatial, local, reduce, spatial

from .codebooks.entries import has_large_books
from .integer_sums import BEGINS_ANEW_K, adds_in_parts, begins_anew, has_offset, is_one_sum
from .parts import ACCUMULATOR_FRAGMENT, UNIT_K, a_fragment, can_leave_parts, x_fragment
from .scaled_weights import can_scale_rows, can_scale_weights, fit_of
from .schedule import Schedule
from .segments import granule_k, has_small_groups, segments, takes_narrow_units
from .spec import LinearSpec
from .two_levels import divides_supers, fills_stages, has_packed_codes

_TILE_ROWS = 16
_COLUMNS_AT_ONCE = 16
# After which the swizzle of x in shared memory begins anew.
_SWIZZLED_ROWS = 8
# Of a product that is long.
LONG_COLUMNS = 128
# Columns of a tile that are stored at a time beside codebooks.
_STORED_BESIDE_BOOKS = 32
# Beside large books tiles of more than 32 columns, up to 64, are stored by parts.
_FEW_COLUMNS, _STORED_COLUMNS = 32, 64
# Fewest columns with which warpgroups of halves take turns: where sums of groups are added, and of three that scale
# weights.
_COLUMNS_OF_ADDED = 96
_COLUMNS_OF_THREE = 176


class Layouts:
    """How the threads of a block hold what a product takes, and the result.

    weights       [rows of a part, K of a piece]
    x             [columns, K of a piece]: all warps the same; only warps that multiply by themselves hold it
    accumulators  [rows of a part, columns]
    rows          [rows of a part], and
    column        the same registers as [rows of a part, 1]: one number for each row of weights and accumulators
    given         the same registers as `accumulators`: [blocks of the cluster, registers of its part, threads], and
    taken         of one block: [registers, threads]
    columns       [1, columns] that a block finishes, as they are loaded: few in a thread
    ended         of the columns that a block finishes, all of `accumulators` without clusters, and
    stored        the same with neighbours along N side by side; with `stores_rows` of each warpgroup its own rows, and
                  of `columns_stored` columns
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        warps = 4 * schedule.warpgroups
        tiles, columns = tiles_of_warp(spec, schedule), schedule.columns // 8
        steps = piece_k(spec, schedule) // spec.step_k
        self.weights = spatial(warps, 1) * local(tiles, steps) * a_fragment(spec)
        self.x = reduce(spatial(1, 1, warps), dims=[2]) * column_local(columns, steps) * x_fragment(spec)
        self.accumulators = spatial(warps, 1) * local(tiles, columns) * ACCUMULATOR_FRAGMENT
        self.rows = self.accumulators.reduce([1])
        self.column = self.accumulators.reduce([1], keep_dims=True)
        ended = schedule.columns // schedule.cluster
        self.ended = spatial(warps, 1) * local(tiles, ended // 8) * ACCUMULATOR_FRAGMENT
        threads = math.gcd(ended, schedule.threads)
        alike = reduce(column_spatial(1, threads, schedule.threads // threads), dims=[2])
        self.columns = alike * local(1, ended // threads)
        self.taken = local(self.ended.num_local, 1) * spatial(1, schedule.threads)
        self.given = local(schedule.cluster, 1, 1) * self.taken.unsqueeze(0)
        at_once = math.gcd(ended, _COLUMNS_AT_ONCE)
        rows_of_thread = at_once // 2
        alone = schedule.warpgroups if stores_rows(spec, schedule) else 1
        threads_of_rows = 64 * schedule.warpgroups // alone // rows_of_thread
        stored = column_spatial(threads_of_rows, at_once) * local(rows_of_thread, 1)
        self.stored = spatial(alone, 1) * local(tiles, columns_stored(spec, schedule) // at_once) * stored


def tiles_of_warp(spec: LinearSpec, schedule: Schedule) -> int:
    """Tiles of 16 rows that a warp has of a part: those of a unit of the packed format where its rows are whole units;
    else 1, and the warps of a warpgroup share units: each rotates words to where its own rows are decoded, or branches
    to what decodes them, in units narrower than 64, whose tiles do not lie alike (docs/adr/0099, 0111)."""
    tiles = spec.rows_of_unit // _TILE_ROWS
    return 1 if schedule.row_tiles % tiles else tiles


def piece_k(spec: LinearSpec, schedule: Schedule) -> int:
    """Weights along K of a piece."""
    # Registers of bytes hold twice as many.
    of_registers = UNIT_K * 2 // (spec.x_bytes * tiles_of_warp(spec, schedule))
    return min(of_registers, granule_k(spec), spec.unit_k)


def ends_with_scales(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether what a tile comes to is multiplied by a scale for each row, in one level, and sums of stages by none."""
    return schedule.scales_on == "rows" or (begins_anew(spec) and spec.groups == 1 and not spec.super_scale)


def x_units(spec: LinearSpec, schedule: Schedule) -> int:
    """Units that lie side by side in x as kernels see it, so that tensor copies bring rows of 128 bytes of it; 0: all,
    where K is no whole such rows, and a stage takes several copies (docs/adr/0108)."""
    units = 2 // spec.x_bytes
    row_k = units * UNIT_K
    if units == 1 or schedule.stage_k % row_k:
        return 1
    return 0 if spec.k % row_k else units


def segment_k(spec: LinearSpec, schedule: Schedule) -> int:
    """Weights along K of a segment: those of a stage that share a scale; of 8-bit floats no more than tensor cores may
    sum, since they cut sums off (on Hopper after 14 bits)."""
    found = min(schedule.stage_k, spec.group_size)
    return min(found, BEGINS_ANEW_K) if begins_anew(spec) and not spec.is_of_integers else found


class Plan:
    """The numbers that spec and schedule fix.

    rows           of y^T that a tile has, rows of each product
    rows_of_part   of W
    parts          of a block, of all its products
    accumulators   in order: part of y, tile of columns, and gate or up
    stages_of_tile, tiles_of_rows    of a team's tiles as one
    segments       of a stage
    x_units        that lie side by side in x; 0: all
    on_weights     scales go on weights, and
    in_f32         in f32
    on_rows        scales go on what a tile comes to
    ends_with_scales  what a tile comes to is multiplied by a scale for each row
    has_powers     they are powers of two of e8m0 times that, in f16
    is_fitted      they come times the operand `fit`, so that f16 holds them
    ended_spec     what is left to do with accumulators
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        self.spec, self.schedule = spec, schedule
        self.rows = schedule.rows // spec.products
        self.rows_of_part = 64 * schedule.warpgroups_of_slice * tiles_of_warp(spec, schedule)
        self.parts = schedule.rows // self.rows_of_part
        tiles, products = range(schedule.column_tiles), range(spec.products)
        self.accumulators = list(itertools.product(range(self.parts // spec.products), tiles, products))
        self.stages_of_tile = -(-spec.k // schedule.stage_k)
        self.tiles_of_rows = -(-spec.columns_of_y // (self.rows * schedule.multicast))
        self.x_units = x_units(spec, schedule)
        longest_k = segment_k(spec, schedule)
        self.segments = segments(schedule.stage_k, spec.group_size, piece_k(spec, schedule), spec.step_k, longest_k)
        self.on_weights = schedule.scales_on == "weights"
        self.in_f32 = self.on_weights and not can_scale_weights(spec)
        self.on_rows = schedule.scales_on == "rows"
        self.ends_with_scales = ends_with_scales(spec, schedule)
        self.ended_spec = spec.without_second_scale() if self.in_f32 else spec
        self.is_fitted = fit_of(spec, schedule) is not None
        self.has_powers = self.is_fitted and not self.in_f32 and spec.scale == "e8m0"

    @functools.cached_property
    def layouts(self) -> Layouts:
        """How threads hold what the product takes. Whoever weighs schedules needs none."""
        return self._layouts()

    def _layouts(self) -> Layouts:
        return Layouts(self.spec, self.schedule)

    def index_of(self, part: int, tile: int) -> int:
        """Of the accumulators of a part and a tile of columns."""
        return self.accumulators.index((part // self.spec.products, tile, part % self.spec.products))

    def row_of(self, part: int, row: ll.Scalar) -> ll.Scalar:
        """Where the rows of a part begin, in scales and the like, of a tile that begins at `row` of y."""
        return row + (part // self.spec.products * self.rows_of_part + self.spec.first_rows[part % self.spec.products])

    def packed_row(self, part: int, row: ll.Scalar) -> ll.Scalar:
        """The same in the packed weights."""
        first = part % self.spec.products * self.spec.packed_rows_of_product
        return row + (part // self.spec.products * self.rows_of_part + first)


def _has_long_products(schedule: Schedule) -> bool:
    """Whether there are two warpgroups, each product of which takes as long as much of what stands beside it."""
    return schedule.warpgroups == 2 and schedule.columns >= LONG_COLUMNS


def stores_rows(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether results go to memory by `ResultRows`: of two warpgroups whose products are long, and no residual
    comes the other way. Some kernels of three, or of fewer columns and more rows, would spill (docs/adr/0105). And of
    some columns beside large codebooks, which leave no room for all of them."""
    if spec.residual:
        return False
    return _has_long_products(schedule) or _stores_beside_large_books(spec, schedule)


def _stores_beside_large_books(spec: LinearSpec, schedule: Schedule) -> bool:
    columns = range(_FEW_COLUMNS + 1, _STORED_COLUMNS + 1)
    is_alone = schedule.cluster == schedule.slices == schedule.column_tiles == 1
    return schedule.columns in columns and is_alone and has_large_books(spec, schedule.second_copies)


def columns_stored(spec: LinearSpec, schedule: Schedule) -> int:
    """How many columns of a tile lie in shared memory at a time, on their way to rows of y: fewer where what they leave
    of it has copies of codebooks, and fewest where an epilogue needs registers for them."""
    ended = schedule.columns // schedule.cluster
    if spec.vectors is None or schedule.slices > 1:
        return ended
    fewest = math.gcd(ended, _COLUMNS_AT_ONCE)
    if spec.needs_registers_to_end and _has_many_accumulators(schedule):
        return fewest
    if not stores_rows(spec, schedule):
        return ended
    return fewest if _stores_beside_large_books(spec, schedule) else math.gcd(ended, _STORED_BESIDE_BOOKS)


def _has_many_accumulators(schedule: Schedule) -> bool:
    """Whether those of a thread leave no registers for an epilogue of all of them."""
    return schedule.row_tiles * schedule.columns_of_block >= LONG_COLUMNS


def is_ping_pong(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether warpgroups begin the products of a stage in turn.

    Of halves two or three with one tile of rows do whose sums are added group by group, from 96 columns on (0.86 to
    0.98 of the time without, on an H200); three that scale weights, with one tile of 176 columns or more; of codebooks
    two with two tiles of columns, as with one tile turns took up to 1.14 times as long (docs/adr/0120); and else two
    whose products are long (docs/adr/0104, 0112). Not where codes become halves whose scales multiply accumulators at
    the end of a tile: with so short a decoding turns made products take up to 1.4 times as long, on an H100. Of bytes,
    see `_bytes_take_turns`.
    """
    if spec.is_of_bytes:
        return _bytes_take_turns(spec, schedule)
    if spec.vectors is not None and schedule.column_tiles == 1:
        return False
    if spec.vectors is None:
        if schedule.scales_on == "accumulators" and spec.groups > 1 and schedule.row_tiles == 1:
            return schedule.warpgroups in (2, 3) and schedule.columns_of_block >= _COLUMNS_OF_ADDED
        if schedule.scales_on == "rows":
            return False
        if schedule.scales_on == "weights" and schedule.warpgroups == 3:
            return schedule.column_tiles == 1 and schedule.columns >= _COLUMNS_OF_THREE
    return _has_long_products(schedule)


def _bytes_take_turns(spec: LinearSpec, schedule: Schedule) -> bool:
    """By what 244 pairs of kernels of bytes took on an H200 with turns and without (docs/adr/0110).

    Turns keep warpgroups apart, so that one adds its sums while others multiply; where a stage of 8-bit floats has
    several sums, too far apart. Where a row is one sum there is nothing to add, and turns cost 1 to 6 %; tiles of two
    times 128 columns and more keep theirs, as these were not timed without. Three warpgroups that share tiles gain with
    codes of 2 bits (0.91 to 0.97), and lose as much with those of 1 bit (docs/adr/0112); others were not timed.
    """
    if schedule.columns_of_block < LONG_COLUMNS or schedule.warpgroups not in (2, 3):
        return False
    is_single = schedule.column_tiles == 1
    if is_one_sum(spec):
        return _has_long_products(schedule) and not is_single
    is_decoded, has_one_sum = spec.bits < 8, schedule.stage_k <= segment_k(spec, schedule)
    if schedule.warpgroups == 3:
        may_share = not spec.is_of_integers or spec.bits == 2
        return is_single and is_decoded and has_one_sum and (schedule.has_tile_each or may_share)
    if spec.is_of_integers:
        return is_single
    return has_one_sum and (is_single or is_decoded)


def has_columns(spec: LinearSpec, columns: int) -> bool:
    """Whether products of so many columns are instructions (PTX ISA, `wgmma.mma_async`): of integers 8, 24, and
    multiples of 16."""
    return not spec.is_of_integers or columns in (8, 24) or columns % 16 == 0


def _takes_bytes(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether products of bytes have a program: one sum of integers for a row, which nothing scales before its end, or
    scales of groups, of codes that need no sums of x."""
    is_sum = is_one_sum(spec) and not adds_in_parts(spec) and spec.groups == 1
    is_of_groups = not spec.adds_integers and not spec.corrector and not has_small_groups(spec) and not has_offset(spec)
    is_of_groups = is_of_groups and min(schedule.stage_k, spec.group_size) % segment_k(spec, schedule) == 0
    return (is_sum or is_of_groups) and schedule.scales_on == "accumulators" and has_columns(spec, schedule.columns)


def _can_multicast(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether x is copied by tensor copies of a producer, half of them each block's."""
    halves = schedule.columns_of_block // schedule.multicast
    is_alone = schedule.cluster == 1 and not spec.experts
    return schedule.producer and is_alone and spec.aligned and halves % _SWIZZLED_ROWS == 0


def whole_columns(columns: int, cluster: int) -> int:
    """So many columns, or a few more: each block of a cluster finishes whole 8 of them."""
    return -(-columns // (8 * cluster)) * 8 * cluster


def bytes_of_cluster(schedule: Schedule) -> int:
    """Of a block's shared memory, what the other blocks of its cluster store there: it lies apart."""
    return schedule.rows * schedule.columns_of_block * 4 * (schedule.cluster - 1) // schedule.cluster


def can_go_wide(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether `wide_kernel` has a program: groups are multiples of 16, and stages whole groups or whole units of one,
    the last one of which may end after a row with one scale does; so are super-groups; packed integers of groups
    fill bytes in a stage; zero points and offsets go on weights, as do scales of groups that are no whole units;
    and scales on rows where there is one for each (`can_scale_rows`); gate and up have as many parts; what
    blocks of a cluster finish is whole 8 columns, of parts that have one tile of a warp, so that they are
    neighbours among its registers; experts have no clusters; aligned shares are parts of tiles that have so many
    stages; and blocks that copy for each other have a producer, and halves of x that are whole periods of the
    swizzle."""
    group, stage_k = spec.group_size, schedule.stage_k
    if schedule.aligned_shares and spec.k <= (LEAST_ALIGNED_STAGES - 1) * stage_k:
        return False
    if max(schedule.slices, schedule.blocks_at_once) > 1:
        return False
    if schedule.staged_rows or (schedule.cluster > 1 and spec.experts):
        return False
    if schedule.cluster > 1 and (schedule.columns % (8 * schedule.cluster) or tiles_of_warp(spec, schedule) > 1):
        return False
    if schedule.multicast > 1 and not _can_multicast(spec, schedule):
        return False
    if schedule.row_tiles // tiles_of_warp(spec, schedule) % spec.products or not can_leave_parts(spec, schedule):
        return False
    if spec.is_of_bytes and not _takes_bytes(spec, schedule):
        return False
    if group % spec.step_k:
        return False
    # The last stage may end after the row does. Narrow units of few bits have more rows than a warpgroup.
    takes_narrow = takes_narrow_units(spec) and stage_k <= spec.k and not has_packed_codes(spec)
    if spec.k % UNIT_K and (not takes_narrow or spec.rows_of_unit > 64):
        return False
    # A row with one scale may end within a stage: there x is 0.
    if (stage_k % group and group % stage_k) and (spec.groups > 1 or stage_k > spec.k):
        return False
    if has_packed_codes(spec) and has_small_groups(spec) and not fills_stages(spec, stage_k):
        return False
    if not divides_supers(spec, stage_k, group):
        return False
    if spec.is_of_bytes:
        return True
    if schedule.scales_on == "rows":
        return can_scale_rows(spec)
    if schedule.scales_on == "accumulators":
        # The few products of a small group leave no time to scale accumulators beside them.
        return not spec.corrector and not spec.is_bipolar and not has_small_groups(spec)
    return True
