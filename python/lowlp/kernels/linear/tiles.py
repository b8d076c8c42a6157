"""How many tiles y has, and how many blocks share the work on them."""

from __future__ import annotations

from typing import Final

from lowlp.errors import LowlpValueError
from lowlp.kernels.stream_k import FEW_IDLE

from .schedule import Schedule
from .spec import LinearSpec

_MOST_STAGES: Final = (1 << 31) - 1


def tiles_of(spec: LinearSpec, schedule: Schedule, m: int) -> int:
    """How many tiles y has for m rows of x."""
    return -(-m // schedule.columns_of_block) * -(-spec.n // schedule.rows)


def blocks_for(spec: LinearSpec, schedule: Schedule, m: int, multiprocessors: int) -> int:
    """How many blocks share the work: as many as are resident; or one for each tile, where these come close, so that
    none is shared; or a few less, by which tiles are cut into equal parts, so that no block has parts of two. Where
    tiles are not shared, or there are clusters: exactly one block, or cluster, for each tile. Raises `LowlpValueError`
    where kernels, which count stages in 31 bits, cannot count them all."""
    tiles = tiles_of(spec, schedule, m)
    stages = tiles * -(-spec.k // schedule.stage_k)
    if max(stages, tiles * schedule.cluster) > _MOST_STAGES:
        raise LowlpValueError(
            f"x: {m} rows are too many for weights of {spec.n} x {spec.k}, {stages} stages of at most {_MOST_STAGES}; "
            "multiply them in parts"
        )
    if schedule.has_tile_each:
        return tiles
    resident = multiprocessors * schedule.blocks_per_sm
    # Where shares begin is a product of both.
    most = max(1, _MOST_STAGES // max(1, stages))
    if 3 * resident <= 4 * tiles <= 4 * min(resident, most):
        return tiles
    even = resident // max(1, tiles) * tiles
    if FEW_IDLE * (resident - even) <= resident:
        resident = even
    return min(stages, resident, most)
