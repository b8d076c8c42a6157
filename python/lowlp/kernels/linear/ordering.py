"""Few rows of x that a kernel that streams weights keeps, perhaps put in the order in which weights are packed.

A block brings all rows to shared memory and keeps them as long as it runs, in place of stages of 8 columns: units of 64
columns, of which a unit has all rows, so that a step of the product finds its x as it would in a stage. It does so
while the weights of the first stages are in flight. To put them in order it stores them as they are, and gathers their
places, two rows at a time as words.

    words  [K], a row's elements, or those of two rows side by side
    kept   [units, rows, 64]
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


def rows_kept(spec: LinearSpec, schedule: Schedule) -> int:
    """How many rows of x the kernel keeps, in the order of the weights; 0: x comes in stages."""
    return spec.ordered_rows or schedule.kept_rows


def can_keep(spec: LinearSpec, schedule: Schedule) -> bool:
    """Whether the kernel that streams weights has a program that keeps so many rows."""
    parts, rows = -(-spec.k // (_AT_ONCE * schedule.threads)), rows_kept(spec, schedule)
    registers = parts * ((_AT_ONCE if spec.ordered_rows else 0) + rows * _AT_ONCE // 2)
    return (
        not spec.is_of_bytes
        and 0 < rows <= schedule.columns == 8
        and spec.k % UNIT_K == 0
        and registers <= _MOST_REGISTERS
    )


def kept_bytes(spec: LinearSpec, schedule: Schedule) -> tuple[int, int]:
    """Bytes of shared memory that x takes beside the stages: as it is kept, and before that to put it in order."""
    step = _AT_ONCE * schedule.threads
    return 2 * rows_kept(spec, schedule) * spec.k, 2 * spec.ordered_rows * -(-spec.k // step) * step


def kept_x(spec: LinearSpec, schedule: Schedule, operands: Arguments) -> KeptX:
    """The rows of x that the kernel keeps. Requires `can_keep(spec, schedule)`."""
    return (OrderedX if spec.ordered_rows else KeptX)(spec, schedule, operands)


class KeptX:
    """Rows of x. Made before the kernel waits for what is in front of it; `bring` comes after."""

    def __init__(self, spec: LinearSpec, schedule: Schedule, operands: Arguments) -> None:
        self.spec, self.operands, self.rows = spec, operands, rows_kept(spec, schedule)
        self.step = _AT_ONCE * schedule.threads
        self.starts = range(0, spec.k, self.step)
        self.flat = spatial(schedule.threads) * local(_AT_ONCE)
        chunks = UNIT_K // _AT_ONCE
        self.by_unit = spatial(schedule.threads // chunks, 1, chunks) * local(1, 1, _AT_ONCE)

    def bring(self) -> None:
        """Loads the rows; all threads of the block do it together."""
        loaded = self._load_rows()
        self._allocate()
        for row, tiles in enumerate(loaded):
            for start, tile in zip(self.starts, tiles, strict=True):
                self._keep(tile, row, start)
        ll.synchronize()

    def tile(self, unit: ll.Scalar, first: int, layout: Layout) -> ll.Tile:
        """Columns from `first` of units from `unit` on, of all rows, held as `layout` [units, 8 rows, columns]."""
        offsets: list[Any] = [unit, 0, first]
        if self.rows == 1:
            # All columns of y^T get the one row; those beyond it are not stored.
            one = ll.load_shared(self.shared, offsets=offsets, layout=layout.reduce([1], keep_dims=True))
            return ll.broadcast_to(one, layout)
        return ll.load_shared(self.shared, offsets=offsets, layout=layout)

    def _load_rows(self) -> list[list[ll.Tile]]:
        """Of each row the parts that begin at `starts`; of rows beyond m zeros."""
        shape, strides = [self.operands.m, self.spec.k], [self.operands.x_stride, 1]
        view = ll.view_global(self.operands.x, shape=shape, strides=strides)
        return [
            [ll.load_global(view, offsets=[row, start], layout=self.flat) for start in self.starts]
            for row in range(self.rows)
        ]

    def _allocate(self) -> None:
        extents = [self.spec.k // UNIT_K, self.rows, UNIT_K]
        self.shared = ll.alloc_shared(self.spec.activation, extents, _layout_of(extents[0], self.rows))

    def _keep(self, part: ll.Tile, row: int, start: int) -> None:
        held = ll.view(part, dtype=self.spec.activation, layout=self.by_unit)
        ll.store_shared(held, self.shared, offsets=[start // UNIT_K, row, 0])


class OrderedX(KeptX):
    """Rows of x in the order of the weights."""

    def __init__(self, spec: LinearSpec, schedule: Schedule, operands: Arguments) -> None:
        super().__init__(spec, schedule, operands)
        order = ll.view_global(operands.permutation, shape=[spec.k])
        self.places = [ll.load_global(order, offsets=[start], layout=self.flat) for start in self.starts]

    def bring(self) -> None:
        """Loads the rows and gathers them; all threads of the block do it together."""
        rows = self.rows
        kind = "uint32" if rows > 1 else self.spec.activation
        loaded, held = self._load_rows(), []
        for first in range(0, rows, 2):
            words = ll.alloc_shared(kind, [len(self.starts) * self.step])
            for number, start in enumerate(self.starts):
                tile = loaded[first][number]
                if rows > 1:
                    tile = self._bits(tile) | (self._bits(loaded[first + 1][number]) << 16)
                ll.store_shared(tile, words, offsets=[start])
            held.append(words)
        self._allocate()
        ll.synchronize()
        for number, start in enumerate(self.starts):
            for pair, words in enumerate(held):
                gathered = ll.lookup(words, self.places[number])
                halves = [gathered] if rows == 1 else [self._half(gathered & 0xFFFF), self._half(gathered >> 16)]
                for row, half in enumerate(halves, 2 * pair):
                    self._keep(half, row, start)
        ll.synchronize()

    def _bits(self, tile: ll.Tile) -> ll.Tile:
        return ll.cast(ll.view(tile, dtype="uint16", layout=self.flat), "uint32")

    def _half(self, word: ll.Tile) -> ll.Tile:
        return ll.view(ll.cast(word, "uint16"), dtype=self.spec.activation, layout=self.flat)


def _layout_of(units: int, rows: int) -> SharedLayout | Layout:
    """Of rows of 128 bytes, whose chunks of 16 are swizzled so that those of several rows lie in different banks."""
    if rows == 1:
        return local(units, 1, UNIT_K)
    return local(units, 1, 1).swizzle(local(rows, UNIT_K // _AT_ONCE), dim=1).local(1, _AT_ONCE)
