"""Work on experts: each has a matrix, and the rows of x from `row_offsets[e]` up to `row_offsets[e + 1]`.

How many tiles each expert has is known on the device alone. Every block reads all offsets, adds up tiles, and keeps in
shared memory what tells the expert of a tile: after how many tiles of columns each expert ends. It takes every so many
tiles, whole ones: so a row's products are added in one order, wherever its tile lies and whatever other rows there are.

    tiles of columns  of an expert's rows of x; those of one expert follow those of the one before
    tiles             for each tile of columns all tiles of rows of y^T, one after the other

A tile may have columns beyond its expert's last row: products with rows of the next expert, which are not stored. The
matrices lie one above the other: scales and the like at row e N, packed weights where whole units begin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lowlp import language as ll
from lowlp.kernels.stream_k import small
from lowlp.layouts.register_layout import spatial

from .schedule import Schedule
from .spec import LinearSpec

_LANES = 32
_WAYS = {32: (4, 8), 64: (8, 8), 128: (4, 4, 8), 256: (4, 8, 8), 512: (8, 8, 8)}
"""Into how many parts experts are cut, again and again, until one is left: by the size of tables."""


class ExpertTile(NamedTuple):
    """Where a tile of y^T of an expert lies.

    row      of the expert's matrix and of y^T at which it begins
    column   row of x at which it begins, and
    stop     at which the expert's rows end
    weights  row of scales and the like at which those of the expert begin, and
    packed   of the packed weights
    """

    row: ll.Scalar
    column: ll.Scalar
    stop: ll.Scalar
    weights: ll.Scalar
    packed: ll.Scalar


class ExpertWork:
    """The tiles of all experts, as a block knows them. Made by all threads of the block together, after the kernel has
    waited for what is in front of it.

    rows, columns  of a tile
    threads        of the block
    """

    def __init__(self, spec: LinearSpec, operands: Any, rows: int, columns: int, threads: int) -> None:
        self.spec, self.operands, self.rows, self.columns = spec, operands, rows, columns
        self.warps = threads // _LANES
        self.tiles_of_rows = -(-spec.columns_of_y // rows)
        self.size = _size(spec.experts)
        # Of each expert: tiles of columns up to its end; its first row less the columns of tiles before; its end.
        self.ends, self.firsts, self.stops = (ll.alloc_shared("int32", [1, self.size]) for _ in range(3))
        self._add_up()

    def _add_up(self) -> None:
        """Each warp adds up all tiles; what the first one has is stored.

        All offsets are loaded before the first is used, and sums of 32 experts are made side by side: otherwise each 32
        experts would wait for memory once more, and shuffles for each other.
        """
        spec, held = self.spec, spatial(self.warps, _LANES)
        view = ll.view_global(self.operands.row_offsets, shape=[self.warps, spec.experts + 1], strides=[0, 1])
        lane = ll.iota(1, layout=held, dtype="int32")
        rows = ll.full(self.operands.m, "int32", layout=held)
        firsts = range(0, self.size, _LANES)
        begins = [ll.load_global(view, offsets=[0, first], layout=held) for first in firsts]
        ends = [ll.load_global(view, offsets=[0, first + 1], layout=held) for first in firsts]
        begins = [ll.maximum(begin, 0) for begin in begins]
        ends = [ll.minimum(end, rows) for end in ends]
        # Beyond the last expert offsets are 0.
        counts = [ll.maximum(end - begin, 0) for begin, end in zip(begins, ends, strict=True)]
        owns = [(count + (self.columns - 1)) // self.columns for count in counts]
        totals = owns
        for distance in (1, 2, 4, 8, 16):
            nearer = [ll.warp_shuffle(total, "up", distance) for total in totals]
            totals = [
                ll.where(lane >= distance, total + near, total) for total, near in zip(totals, nearer, strict=True)
            ]
        before = ll.full(0, "int32", layout=held)
        lasts = [ll.warp_shuffle(total, "idx", _LANES - 1) for total in totals[:-1]]
        for place, first in enumerate(firsts):
            total = totals[place] + before
            ll.store_shared(total, self.ends, offsets=[0, first])
            ll.store_shared(begins[place] - (total - owns[place]) * self.columns, self.firsts, offsets=[0, first])
            ll.store_shared(ends[place], self.stops, offsets=[0, first])
            if place < len(lasts):
                before = before + lasts[place]
        ll.synchronize()

    @property
    def tiles(self) -> ll.Scalar:
        """How many there are."""
        return small(self._of(self.ends, self.size - 1)) * self.tiles_of_rows

    def place_of(self, number: ll.Scalar) -> ExpertTile:
        """Where a tile lies."""
        number, spec = small(number), self.spec
        columns_before = number // self.tiles_of_rows
        # So that it is known how far apart are what two copies bring, which may then be one.
        expert = small(self._expert_of(columns_before))
        return ExpertTile(
            row=number % self.tiles_of_rows * self.rows,
            column=self._of(self.firsts, expert) + columns_before * self.columns,
            stop=self._of(self.stops, expert),
            weights=expert * spec.n,
            packed=expert * spec.packed_rows,
        )

    def _expert_of(self, columns_before: ll.Scalar) -> Any:
        """The first expert that does not end within so many tiles of columns: by loads of several ends at a time, of
        which each hides the others' latency."""
        expert: Any = 0
        step = self.size
        for ways in _WAYS[self.size]:
            step //= ways
            passed: Any = 0
            for way in range(1, ways):
                end = self._of(self.ends, expert + (way * step - 1))
                passed = passed + ll.minimum(ll.maximum(columns_before + 1 - end, 0), 1)
            expert = expert + passed * step
        return expert

    def _of(self, kept: ll.SharedTile, expert: Any) -> ll.Scalar:
        return ll.load_scalar(kept, offsets=[0, expert], in_bounds=True)


def _size(experts: int) -> int:
    """Of tables of experts: a power of two, of whole warps."""
    return max(_LANES, 1 << (experts - 1).bit_length())


def bytes_of_offsets(experts: int) -> int:
    """Of shared memory that a block takes to find tiles of experts."""
    return 3 * 4 * _size(experts)


def most_tiles_of_columns(experts: int, m: int, columns: int) -> int:
    """The most tiles of columns that m rows of x may come to, however they are divided among the experts."""
    alone = min(experts, m)
    return alone + (m - alone) // columns


def blocks_of_experts(spec: LinearSpec, schedule: Schedule, rows_of_tile: int, m: int, multiprocessors: int) -> int:
    """How many blocks take the tiles of m rows of x: those that are resident, or fewer where tiles are."""
    tiles = most_tiles_of_columns(spec.experts, m, schedule.columns_of_block) * -(-spec.columns_of_y // rows_of_tile)
    return max(1, min(tiles, multiprocessors * schedule.blocks_per_sm))
