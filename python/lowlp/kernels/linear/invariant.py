"""In which order a kernel adds the products of a row of x, and which order all M take (`batch_invariant=True`).

Kernels by warpgroups in which a tile is one block's or one cluster's add the products of a row one after the other
along K, by `wgmma`, which adds alike for every number of columns. So tiles, stages and waves may follow M. What changes
bits is where scales go, and how K is divided: among the blocks of a cluster, and where accumulators are scaled, into
segments. `mma.sync` is not held to add as `wgmma` does: few rows take warpgroups too.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from lowlp.schedules.device import Device

from .estimates import estimated_us
from .schedule import Schedule
from .spec import LinearSpec
from .tiles import tiles_of
from .warpgroup_layouts import segment_k

_LIMITS: Final = {1: 1.5, 16: 1.5, 64: 1.25, 256: 1.5, 1024: 1.5}
"""By numbers of rows of x, how many times as long as a schedule of any order one of the chosen order may take."""
JUDGED_ROWS: Final = tuple(_LIMITS)
"""Numbers of rows of x by which an order is chosen."""
CLUSTERS: Final = (1, 2, 4)
"""Of four, since of few rows a narrow shape has few tiles."""
FOUND_BY_LARGE: Final = 0.75
"""The part of all SMs that clusters of more than two blocks find at once: each lies in one GPC (docs/adr/0024)."""
_FEW: Final = 64
_WAVE_US: Final = 2.7
"""Of a wave but the first, with up to `_FEW` rows (an H200: int4, 57344 x 8192, 16 and 64 rows in seven waves)."""


class Order(NamedTuple):
    """In which order a kernel by warpgroups adds the products of a row of x and a row of weights.

    scales_on  'weights', 'accumulators' or 'rows'
    segment_k  weights along K whose products tensor cores add before they are scaled, or added to others, in f32; 0
               where weights or whole rows are scaled
    cuts       where each block of a cluster but the first begins, along K; what the blocks have is added in their order
    """

    scales_on: str
    segment_k: int
    cuts: tuple[int, ...]


def order_of(spec: LinearSpec, schedule: Schedule) -> Order | None:
    """The order of a schedule; None where it is none of warpgroups, or follows from M, as it does in shared tiles."""
    if not schedule.warpgroups or not schedule.has_tile_each:
        return None
    stages = -(-spec.k // schedule.stage_k)
    cuts = tuple(block * stages // schedule.cluster * schedule.stage_k for block in range(1, schedule.cluster))
    is_scaled_later = schedule.scales_on == "accumulators"
    return Order(schedule.scales_on, segment_k(spec, schedule) if is_scaled_later else 0, cuts)


def us_alone(spec: LinearSpec, schedule: Schedule, rows: int, device: Device) -> float:
    """What a kernel would take in which a tile is one block's or one cluster's, in microseconds: beside `estimated_us`,
    what larger clusters wait for SMs, and for few rows what it takes to fill the pipeline in each wave of blocks."""
    found = int(device.multiprocessors * (FOUND_BY_LARGE if schedule.cluster > 2 else 1.0))
    us = estimated_us(spec, schedule, rows, dataclasses.replace(device, multiprocessors=found))
    if rows > _FEW:
        return us
    waves = math.ceil(
        tiles_of(spec, schedule, rows) * schedule.cluster * schedule.multicast / (found * schedule.blocks_per_sm)
    )
    return us + _WAVE_US * (waves - 1)


def best_order(costs: Sequence[Mapping[Order, float]], plain: Sequence[float]) -> Order | None:
    """The order that costs least, which all have; None where there is none.

    costs  for each of some numbers of rows, what the best schedule of each order takes
    plain  what the schedule takes that is best whatever its order

    Least what exceeds the limits, then least by squares of logarithms: what is much dearer counts more.
    """

    def cost(order: Order) -> tuple[float, float]:
        ratios = [of_rows[order] / best for of_rows, best in zip(costs, plain, strict=True)]
        beyond = sum(math.log(max(1.0, ratio / limit)) for ratio, limit in zip(ratios, _LIMITS.values(), strict=True))
        return beyond, sum(math.log(max(1.0, ratio)) ** 2 for ratio in ratios)

    common = set(costs[0]).intersection(*costs)
    return min(sorted(common), key=cost, default=None)
