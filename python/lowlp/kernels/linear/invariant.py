"""In which order a kernel adds the products of a row of x, and which order all M take (`batch_invariant=True`).

Kernels by warpgroups in which a tile is one block's or one cluster's add the products of a row one after the other
along K, by `wgmma`, which adds alike for every number of columns. So tiles, stages and waves may follow M. What changes
bits is where scales go, and how K is divided: among the blocks of a cluster, and where accumulators are scaled, into
segments. `mma.sync` is not held to add as `wgmma` does: few rows take warpgroups too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .schedule import Schedule
from .spec import LinearSpec

JUDGED_ROWS: Final = (1, 16, 64, 256, 1024)
"""Numbers of rows of x by which an order is chosen."""
CLUSTERS: Final = (1, 2, 4)
"""Of four, since of few rows a narrow shape has few tiles."""
_FOUND_BY_LARGE: Final = 0.8
"""The part of all SMs that clusters of more than two blocks find at once: each lies in one GPC (docs/adr/0024)."""


class Order(NamedTuple):
    """In which order a kernel by warpgroups adds the products of a row of x and a row of weights.

    scales_on  'weights' or 'accumulators'
    segment_k  weights along K whose products are added before they are scaled; 0 where weights are scaled
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
    return Order(schedule.scales_on, min(schedule.stage_k, spec.group_size) if is_scaled_later else 0, cuts)


def found_by_clusters(schedule: Schedule, multiprocessors: int) -> int:
    """SMs of so many that the clusters of a schedule find at once."""
    return int(multiprocessors * (_FOUND_BY_LARGE if schedule.cluster > 2 else 1.0))


def best_order(costs: Sequence[Mapping[Order, float]], plain: Sequence[float]) -> Order | None:
    """The order that costs least, which all have; None where there is none.

    costs  for each of some numbers of rows, what the best schedule of each order takes
    plain  what the schedule takes that is best whatever its order

    What is much dearer counts more: squares of logarithms are added.
    """

    def cost(order: Order) -> float:
        ratios = (of_rows[order] / best for of_rows, best in zip(costs, plain, strict=True))
        return sum(math.log(max(1.0, ratio)) ** 2 for ratio in ratios)

    common = set(costs[0]).intersection(*costs)
    return min(sorted(common), key=cost, default=None)
