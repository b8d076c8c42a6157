"""How many tiles y has, and how many blocks share the work on them."""

from __future__ import annotations

from lowlp_runtime.tiles import Tiles, blocks_that_share

from .schedule import Schedule
from .spec import LinearSpec


def tiling(spec: LinearSpec, schedule: Schedule) -> Tiles:
    """The tiles of y for a schedule with stages, and how blocks take them."""
    return Tiles(
        columns=schedule.columns_of_block,
        rows_of_tiles=_rows_of_tiles(spec, schedule),
        stages=-(-spec.k // schedule.stage_k),
        blocks_per_sm=schedule.blocks_per_sm,
        cluster=schedule.cluster,
        has_tile_each=schedule.has_tile_each,
        multicast=schedule.multicast,
    )


def _rows_of_tiles(spec: LinearSpec, schedule: Schedule) -> int:
    """How many tiles lie one above the other; those of blocks that copy for each other count as one."""
    return -(-spec.n // (schedule.rows * schedule.multicast))


def tiles_of(spec: LinearSpec, schedule: Schedule, m: int) -> int:
    """How many tiles y has for m rows of x, as `tiling(spec, schedule).count` says."""
    return -(-m // schedule.columns_of_block) * _rows_of_tiles(spec, schedule)


def blocks_for(spec: LinearSpec, schedule: Schedule, m: int, multiprocessors: int) -> int:
    """How many blocks share the work, as `tiling(spec, schedule).blocks` says."""
    # The search for a schedule asks this of each that fits.
    tiles, resident = tiles_of(spec, schedule, m), multiprocessors * schedule.blocks_per_sm
    stages = tiles * -(-spec.k // schedule.stage_k)
    resident //= schedule.multicast
    return blocks_that_share(m, tiles, stages, resident, schedule.cluster, schedule.has_tile_each)
