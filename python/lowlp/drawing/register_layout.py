"""A layout of registers: a table of the tile, each cell with thread:place of who holds it (Tilus, figure 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

import numpy as np

from lowlp.layouts.register_layout import Layout
from lowlp_runtime.errors import LowlpValueError

from .picture import FAINT, MARGIN, Box, Label, Picture, shade

MAX_CELLS = 8192
_WARP = 32
_CELL_HEIGHT = 20.0
_LINE_OF_ONE_DIMENSION = 32
_TITLE = 20.0

Index = tuple[int, ...]


def draw_layout(layout: Layout, color: Literal["thread", "warp", "auto"] = "auto") -> Picture:
    """The layout as a table; above two dimensions a table for each index of the first ones.

    color  what shares a colour: a thread's elements, or a warp's; auto: threads, and warps where there are several

    A cell that several threads hold names the first and says how many more. Raises `LowlpValueError` for more than
    8,192 cells.
    """
    cells = int(np.prod(layout.shape))
    copies = layout.num_threads * layout.num_local
    if max(cells, copies) > MAX_CELLS:
        raise LowlpValueError(f"a picture holds at most {MAX_CELLS} elements; {layout} has {max(cells, copies)}")
    by_warp = color == "warp" or (color == "auto" and layout.num_threads > _WARP)
    holders: defaultdict[Index, list[tuple[int, int]]] = defaultdict(list)
    for thread, rows in enumerate(layout.table().tolist()):
        for place, index in enumerate(rows):
            holders[tuple(index)].append((thread, place))

    text_length = max(len(_words(held)) for held in holders.values())
    width = max(26.0, 7.0 * text_length + 8)
    picture = Picture(f"layout {layout}")
    facts = f"{layout.num_threads} threads, {layout.num_local} each; a cell is thread:place"
    picture.add(Label(MARGIN, MARGIN + 6, str(layout), 12, "left", bold=True))
    picture.add(Label(MARGIN, MARGIN + 24, facts, 11, "left", FAINT))
    top = MARGIN + 18 + _TITLE
    for title, rows, columns, index_of in _tables(layout.shape):
        if title:
            picture.add(Label(MARGIN, top + 8, title, 11, "left", FAINT))
            top += _TITLE
        left = MARGIN + 34
        for column in range(columns):
            picture.add(Label(left + (column + 0.5) * width, top + 8, str(column), 10, color=FAINT))
        top += 18
        for row in range(rows):
            name = row if len(layout.shape) > 1 else row * columns
            y = top + row * _CELL_HEIGHT
            picture.add(Label(left - 6, y + _CELL_HEIGHT / 2, str(name), 10, "right", FAINT))
            for column in range(columns):
                held = holders.get(index_of(row, column))
                if held is None:
                    continue
                thread = held[0][0]
                fill = shade(thread // _WARP, _warps(layout)) if by_warp else shade(thread % _WARP, _threads(layout))
                x = left + column * width
                picture.add(Box(x, y, width, _CELL_HEIGHT, fill))
                picture.add(Label(x + width / 2, y + _CELL_HEIGHT / 2, _words(held)))
        top += rows * _CELL_HEIGHT + 10
    return picture


def _threads(layout: Layout) -> int:
    return min(layout.num_threads, _WARP)


def _warps(layout: Layout) -> int:
    return -(-layout.num_threads // _WARP)


def _words(held: list[tuple[int, int]]) -> str:
    thread, place = held[0]
    more = f" +{len(held) - 1}" if len(held) > 1 else ""
    return f"{thread}:{place}{more}"


class _At:
    """From row and column of a table to the index of an element."""

    def __init__(self, leading: Index, rank: int, columns: int) -> None:
        self.leading, self.rank, self.columns = leading, rank, columns

    def __call__(self, row: int, column: int) -> Index:
        return (row * self.columns + column,) if self.rank == 1 else (*self.leading, row, column)


def _tables(shape: Index) -> Iterator[tuple[str, int, int, _At]]:
    """Title, rows, columns and indices of each table; one dimension is broken into lines."""
    if len(shape) == 1:
        columns = min(shape[0], _LINE_OF_ONE_DIMENSION)
        yield "", -(-shape[0] // columns), columns, _At((), 1, columns)
        return
    for leading in np.ndindex(*shape[:-2]):
        title = f"[{', '.join(map(str, leading))}, :, :]" if leading else ""
        yield title, shape[-2], shape[-1], _At(leading, len(shape), shape[-1])
