"""Which tiles a block by warpgroups has, and which of their stages: one of its own, alone or with the blocks of its
cluster; or whole ones in waves, and a share of those that are left (`stream_k`)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from lowlp import language as ll
from lowlp.kernels.stream_k import Grid, TilePart, Waves, share_in_waves, small

from .parts import Arguments
from .warpgroup_layouts import Plan

# Rows of x whose tiles are taken together, so that the L2 cache holds what they share.
BAND = 2048


class BlockWork:
    """The work of a block of this number.

    team, member  what takes tiles, and the place of this block among those of its team; None: it is alone
    tiles         how many there are
    """

    def __init__(self, plan: Plan, operands: Arguments, block: ll.Scalar) -> None:
        self._plan, self._blocks, self._block = plan, operands.blocks, block
        schedule = plan.schedule
        self.team, self.member = block, None
        if schedule.multicast > 1:
            self.team, self.member = small(block) // schedule.multicast, small(block) % schedule.multicast
        self._tiles_of_columns = ll.ceildiv(operands.m, schedule.columns_of_block)
        self._grid = Grid(plan.tiles_of_rows, self._tiles_of_columns, max(1, BAND // schedule.columns_of_block))

    @cached_property
    def tiles(self) -> Any:
        return self._tiles_of_columns * self._plan.tiles_of_rows

    @cached_property
    def waves(self) -> Waves:
        """The parts of tiles that are this block's, where blocks share tiles."""
        schedule, stages = self._plan.schedule, self._plan.stages_of_tile
        return share_in_waves(self.team, self._blocks, self.tiles, stages, schedule.aligned_shares)

    def place_of(self, tile: ll.Scalar) -> tuple[ll.Scalar, ll.Scalar]:
        """The row and the column of y^T at which a tile begins."""
        row, column = self._grid.place_of(tile)
        if self.member is not None:
            row = row * self._plan.schedule.multicast + self.member
        return row * self._plan.rows, column * self._plan.schedule.columns_of_block

    def place_of_part(self, part: TilePart) -> tuple[ll.Scalar, ll.Scalar, ll.Scalar]:
        """The row and the column of the tile of a part, and the stage from which it goes down."""
        row, column = self.place_of(part.tile)
        return row, column, small(part.end - 1 - part.tile * self._plan.stages_of_tile)

    def own_place(self) -> tuple[ll.Scalar, ll.Scalar]:
        """The row and the column of this block's tile, where each has one."""
        return self.place_of(small(self.team) // self._plan.schedule.cluster)

    def own_stages(self) -> tuple[ll.Scalar, ll.Scalar]:
        """The first of its stages that this block multiplies, and the one after the last."""
        schedule, stages = self._plan.schedule, self._plan.stages_of_tile
        # The blocks of a team have whole tiles.
        number: Any = self._block % schedule.cluster if schedule.multicast == 1 else 0
        return small(number * stages) // schedule.cluster, small((number + 1) * stages) // schedule.cluster

    def first_part(self) -> tuple[ll.Scalar, ll.Scalar]:
        """The row and the stage at which this block begins; of one that has no work, a row and a stage that there
        are."""
        if self._plan.schedule.has_tile_each:
            (row, _), (begin, _) = self.own_place(), self.own_stages()
            return row, begin
        part, stages = self.waves.part(0), self._plan.stages_of_tile
        tile = ll.minimum(part.tile, self.tiles - 1)
        row, _ = self.place_of(tile)
        return row, ll.minimum(ll.maximum(part.end - 1 - tile * stages, 0), stages - 1)
