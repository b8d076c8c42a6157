"""The sums of a tile whose stages are cut into slices of K, each multiplied by warpgroups of its own.

Few rows of weights leave few warps for a multiprocessor, which wait for lookups; with slices more warps have the same
rows. At the end of a tile all leave what they have in shared memory, and each thread adds some numbers of all slices,
in their order.
"""

from __future__ import annotations

from typing import Final

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial

from ..schedule import Schedule

_APART: Final = 4
"""Numbers between columns in shared memory, so that those of a fragment lie in different banks."""


def can_add_slices(schedule: Schedule, rows: int) -> bool:
    """Whether the threads have the same share of a tile of so many rows, and each block of a cluster its columns."""
    return schedule.columns % (schedule.cluster * _columns_at_once(schedule, rows)) == 0


def bytes_of_slices(schedule: Schedule, rows: int) -> int:
    """Of shared memory that the slices of a tile of so many rows take."""
    return 4 * schedule.slices * schedule.columns * (rows + _APART) if schedule.slices > 1 else 0


def ended_layout(schedule: Schedule, rows: int) -> Layout:
    """How threads hold the sums of the columns that a block finishes, [rows, columns]: neighbours have neighbouring
    rows, which are neighbours in rows of y."""
    at_once = _columns_at_once(schedule, rows)
    return local(1, schedule.columns // schedule.cluster // at_once) * spatial(1, at_once) * spatial(rows, 1)


class SliceSums:
    """Adds the slices of tiles of so many rows."""

    def __init__(self, schedule: Schedule, rows: int) -> None:
        self.slices, self.rows = schedule.slices, rows
        # Of each block of a cluster the columns that it finishes.
        self.summed = (local(1, schedule.cluster) * ended_layout(schedule, rows)).permute([1, 0])
        self.place = ll.alloc_shared("f32", [schedule.slices, schedule.columns, rows + _APART])

    def add(self, accumulators: ll.Tile) -> ll.Tile:
        """The sum, [rows, columns], of accumulators [slices x rows, columns]; all threads of the block do it
        together."""
        apart = accumulators.layout.reshape(self.slices, self.rows, accumulators.shape[1])
        of_slices = ll.view(accumulators, dtype="f32", layout=apart)
        # All have loaded what was there before.
        ll.synchronize()
        ll.store_shared(ll.transpose(of_slices, (0, 2, 1)), self.place, offsets=[0, 0, 0], in_bounds=True)
        ll.synchronize()
        loaded = [
            ll.load_shared(self.place, offsets=[number, 0, 0], layout=self.summed, in_bounds=True)
            for number in range(self.slices)
        ]
        total = loaded[0]
        for part in loaded[1:]:
            total = total + part
        return ll.transpose(total)


def _columns_at_once(schedule: Schedule, rows: int) -> int:
    """Of which each thread has one number."""
    return max(1, schedule.threads // rows)
