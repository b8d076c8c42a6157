"""What a kernel for experts takes on a GPU, in us, for rows that choose experts by themselves.

Blocks take whole tiles, one after the other, so that what counts is how many an SM has at the most. The numbers are
fitted to what an H200 took for three models with MXFP4 and int4 (docs/adr/0079): 1393 times of kernels that stream
weights, 5 % apart, and 800 by warpgroups, 5 % apart.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final, NamedTuple

from lowlp.schedules.device import Device

from .estimates import cycles_of_warp
from .fitting import scale_bytes, stage_bytes
from .schedule import Schedule
from .spec import LinearSpec
from .wide_estimates import Ring, cycles_of_wide_stage

ROUTINGS: Final = ("uniform", "zipf")
"""How rows choose: each expert is as likely, or the r-th by 1 / r."""
_MANY_MEAN: Final = 512
"""Of so many rows of an expert on average the number of tiles has no more to do with chance."""

# Of the bandwidth of the device's estimates, that of bytes that nothing but reads.
_BANDWIDTH: Final = 1.069
_RING: Final = Ring(1330, 80)
"""Of stages by warpgroups."""


class _Few(NamedTuple):
    """What kernels take that stream weights.

    begin_us  beside what all kernels take to begin: offsets are read and added up before the first weight
    tile_us   for each tile of a block
    overlap   the power by which memory and computing overlap
    again     what weights from the L2 cache take, of the time of those from memory, and
    even      of the time that an SM with more tiles than others takes at its share of the bandwidth
    cycles    for each cycle that is estimated of a warp
    x, stage, warp  cycles to load x of a step for 8 columns, for each stage, and for each of a warp's, where warps are
              too few to keep an SM busy
    """

    begin_us: float
    tile_us: float
    overlap: float
    again: float
    even: float
    cycles: float
    x: float
    stage: float
    warp: float


class _Wide(NamedTuple):
    """What kernels by warpgroups take: as `_Few`, and cycles for each of the tensor cores, of scaling, for each
    instruction beside products, and for each tile."""

    begin_us: float
    again: float
    product: float
    scaled: float
    stage: float
    decode: float
    tile: float


_FEW: Final = _Few(0.91, 0.48, 5.58, 0.825, 0.956, 1.02, 11.2, 107, 1.87)
_WIDE: Final = _Wide(5.3, 1.26, 0.986, 0.445, 90, 0.306, 716)


def us_of(spec: LinearSpec, schedule: Schedule, m: int, device: Device) -> float:
    """Microseconds for m rows, the geometric mean of both ways to choose (`ROUTINGS`)."""
    found = 1.0
    for routing in ROUTINGS:
        tiles = tiles_of_columns(spec.experts, m, schedule.columns_of_block, routing)
        hit = tiles_of_columns(spec.experts, m, 1 << 30, routing)
        found *= us_of_tiles(spec, schedule, tiles, hit, m, device)
    return math.sqrt(found)


def us_of_tiles(
    spec: LinearSpec, schedule: Schedule, tiles_of_columns: float, hit: float, m: int, device: Device
) -> float:
    """Microseconds for m rows of so many experts, which come to so many tiles of columns."""
    rows = schedule.rows // spec.products
    tiles_of_rows = -(-spec.columns_of_y // rows)
    tiles = max(1.0, tiles_of_columns) * tiles_of_rows
    of_block = _most(tiles, device.multiprocessors * schedule.blocks_per_sm)
    bandwidth = device.bytes_per_us * _BANDWIDTH
    matrix = (spec.n * spec.k * spec.bits / 8 + scale_bytes(spec)) / bandwidth
    memory, again = matrix * hit, matrix * (tiles_of_columns - hit)
    stages = of_block * -(-spec.k // schedule.stage_k)
    if schedule.warpgroups:
        cost, form = cycles_of_wide_stage(spec, schedule), _WIDE
        busy = form.product * cost.products + form.scaled * cost.scaled + form.stage + form.decode * cost.beside
        copies = _RING.copies(stage_bytes(spec, schedule), schedule.stages)
        compute = (stages * max(busy, copies) + of_block * form.tile) / device.cycles_per_us
        x = m * (spec.k * spec.x_bytes + 2 * spec.columns_of_y) / bandwidth
        memory += form.again * again + x
        return device.launch_us + form.begin_us + max(compute, memory) + 0.06 * min(compute, memory)
    few = _FEW
    at_once = min(schedule.blocks_per_sm, math.ceil(tiles / device.multiprocessors))
    warps_of_quarter = math.ceil(schedule.warps * schedule.slices * at_once / 4)
    cycles = cycles_of_warp(spec, schedule) + few.x * schedule.steps * schedule.units * schedule.columns / 8
    of_stage = few.cycles * max(warps_of_quarter * cycles, few.stage + few.warp * cycles)
    compute = stages * of_stage / device.cycles_per_us + few.tile_us * of_block
    of_sm = matrix / tiles_of_rows * device.multiprocessors * _most(tiles, device.multiprocessors)
    memory = max(memory + few.again * again, few.even * of_sm)
    both = float((memory**few.overlap + compute**few.overlap) ** (1 / few.overlap))
    return device.launch_us + few.begin_us + both


def _most(tiles: float, places: int) -> float:
    """How many tiles one of the places has at the most; of a number that is an average, half a tile more."""
    each = tiles / places
    return float(math.ceil(each)) if each <= 4 else each + 0.5


@functools.lru_cache(maxsize=4096)
def tiles_of_columns(experts: int, m: int, columns: int, routing: str = "uniform") -> float:
    """How many tiles of columns m rows come to on average; of endless columns, how many experts have rows."""
    if routing == "uniform":
        return experts * _tiles_of(m / experts, columns)
    weights = [1 / rank for rank in range(1, experts + 1)]
    total = math.fsum(weights)
    tiles: Callable[[float], float] = functools.partial(_tiles_of, columns=columns)
    return math.fsum(tiles(m * weight / total) for weight in weights)


def _tiles_of(mean: float, columns: int) -> float:
    """The tiles of an expert with so many rows on average, as Poisson has their number."""
    if mean > _MANY_MEAN:
        return max(1.0, mean / columns + (0.5 if columns < mean else 0.0))
    # The probability of more rows than j tiles hold, added up over j.
    total, probability, below, rows = 0.0, math.exp(-mean), 0.0, 0
    while below < 1 - 1e-9 and rows < 4 * mean + 64:
        below += probability
        if rows % columns == 0:
            total += max(0.0, 1 - below)
        rows += 1
        probability *= mean / rows
    return total
