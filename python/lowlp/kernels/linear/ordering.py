"""Few rows of x, put in the order in which weights are packed by the very kernel that streams these weights.

A block brings all rows to shared memory as they are, gathers their places, two rows at a time as words, and keeps the
result as long as it runs: units of 64 columns, of which a unit has all rows, so that a step of the product finds its x
as it would in a stage. It does so while the weights of the first stages are in flight.

    words    [K], a row's elements, or those of two rows side by side
    ordered  [units, rows, 64]
"""

from __future__ import annotations

from typing import Any

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp.layouts.shared_layout import SharedLayout

from .parts import Arguments
from .schedule import Schedule
from .segments import UNIT_K
from .spec import LinearSpec

_AT_ONCE = 8
"""Neighbours along K that a thread gathers."""
_MOST_REGISTERS = 120
"""With which a thread holds places and elements of all rows, before it has accumulators."""


def can_order(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether the kernel that streams weights has a program that puts so many rows in order."""
    parts = -(-spec.k // (_AT_ONCE * schedule.threads))
    registers = parts * (_AT_ONCE + spec.ordered_rows * _AT_ONCE // 2)
    return 0 < spec.ordered_rows <= schedule.columns == 8 and spec.k % UNIT_K == 0 and registers <= _MOST_REGISTERS


def ordered_bytes(spec: LinearSpec, schedule: Schedule) -> tuple[int, int]:
    """Bytes of shared memory that x takes beside the stages: in order, and before that as its rows come."""
    step = _AT_ONCE * schedule.threads
    return 2 * spec.ordered_rows * spec.k, 2 * spec.ordered_rows * -(-spec.k // step) * step


class OrderedX:
    """The rows of x in order. Made before the kernel waits for what is in front of it; `bring` comes after.

    Requires `can_order(spec, schedule)`.
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule, operands: Arguments) -> None:
        self.spec, self.operands = spec, operands
        self.step = _AT_ONCE * schedule.threads
        self.starts = range(0, spec.k, self.step)
        self.flat = spatial(schedule.threads) * local(_AT_ONCE)
        chunks = UNIT_K // _AT_ONCE
        self.by_unit = spatial(schedule.threads // chunks, 1, chunks) * local(1, 1, _AT_ONCE)
        order = ll.view_global(operands.permutation, shape=[spec.k])
        self.places = [ll.load_global(order, offsets=[start], layout=self.flat) for start in self.starts]

    def bring(self) -> None:
        """Loads the rows and gathers them; all threads of the block do it together."""
        spec, rows = self.spec, self.spec.ordered_rows
        view = ll.view_global(self.operands.x, shape=[self.operands.m, spec.k], strides=[self.operands.x_stride, 1])
        kind = "uint32" if rows > 1 else spec.activation
        # Rows beyond m read as zeros.
        loaded = [[self._row(view, row, start) for start in self.starts] for row in range(rows)]
        held = []
        for first in range(0, rows, 2):
            words = ll.alloc_shared(kind, [len(self.starts) * self.step])
            for number, start in enumerate(self.starts):
                tile = loaded[first][number]
                if rows > 1:
                    tile = self._bits(tile) | (self._bits(loaded[first + 1][number]) << 16)
                ll.store_shared(tile, words, offsets=[start])
            held.append(words)
        self.shared = ll.alloc_shared(spec.activation, [spec.k // UNIT_K, rows, UNIT_K], _layout_of(spec))
        ll.synchronize()
        for number, start in enumerate(self.starts):
            for pair, words in enumerate(held):
                gathered = ll.lookup(words, self.places[number])
                halves = [gathered] if rows == 1 else [self._half(gathered & 0xFFFF), self._half(gathered >> 16)]
                for row, half in enumerate(halves, 2 * pair):
                    ll.store_shared(
                        ll.view(half, dtype=spec.activation, layout=self.by_unit),
                        self.shared,
                        offsets=[start // UNIT_K, row, 0],
                    )
        ll.synchronize()

    def tile(self, unit: ll.Scalar, first: int, layout: Layout) -> ll.Tile:
        """Columns from `first` of units from `unit` on, of all rows, held as `layout` [units, 8 rows, columns]."""
        offsets: list[Any] = [unit, 0, first]
        if self.spec.ordered_rows == 1:
            # All columns of y^T get the one row; those beyond it are not stored.
            one = ll.load_shared(self.shared, offsets=offsets, layout=layout.reduce([1], keep_dims=True))
            return ll.broadcast_to(one, layout)
        return ll.load_shared(self.shared, offsets=offsets, layout=layout)

    def _row(self, view: Any, row: int, start: int) -> ll.Tile:
        return ll.load_global(view, offsets=[row, start], layout=self.flat)

    def _bits(self, tile: ll.Tile) -> ll.Tile:
        return ll.cast(ll.view(tile, dtype="uint16", layout=self.flat), "uint32")

    def _half(self, word: ll.Tile) -> ll.Tile:
        return ll.view(ll.cast(word, "uint16"), dtype=self.spec.activation, layout=self.flat)


def _layout_of(spec: LinearSpec) -> SharedLayout | Layout:
    """Of rows of 128 bytes, whose chunks of 16 are swizzled so that those of several rows lie in different banks."""
    units, rows = spec.k // UNIT_K, spec.ordered_rows
    if rows == 1:
        return local(units, 1, UNIT_K)
    return local(units, 1, 1).swizzle(local(rows, UNIT_K // _AT_ONCE), dim=1).local(1, _AT_ONCE)
