"""A layout of shared memory: the bank in which each element lies, and what rows and columns cost.

Shared memory has 32 banks of 4 bytes side by side (CUDA programming guide, "Shared Memory"). A request of a warp takes
as many passes as there are different words in the bank that holds most of them.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lowlp.layouts.shared_layout import SharedLayout
from lowlp.numeric.dtypes import DType
from lowlp_runtime.errors import LowlpValueError

from .picture import FAINT, MARGIN, Box, Label, Picture, shade

BANKS = 32
KINDS = {"row": "along a row", "column": "down a column", "matrix": "8 rows of 16 bytes"}
MAX_CELLS = 8192
_WORD_BITS = 32
_CELL_WIDTH, _CELL_HEIGHT = 13.0, 20.0
_MATRIX_ROWS, _MATRIX_ROW_BITS = 8, 128


def word_table(layout: SharedLayout, dtype: DType) -> NDArray[np.int64]:
    """The number of the 4-byte word that holds each element's first bit, in the shape of the tile.

    Raises `LowlpValueError` for more than 8,192 elements.
    """
    count = int(np.prod(layout.shape))
    if count > MAX_CELLS:
        raise LowlpValueError(f"a picture holds at most {MAX_CELLS} elements; {layout} has {count}")
    words = np.empty(layout.shape, np.int64)
    for address in range(count):
        words[layout(address)] = address * dtype.bits // _WORD_BITS
    return words


def bank_table(layout: SharedLayout, dtype: DType) -> NDArray[np.int64]:
    """The bank of each element, 0 to 31, in the shape of the tile."""
    return word_table(layout, dtype) % BANKS


def passes(words: Iterable[int]) -> int:
    """How many passes a request for these words takes."""
    by_bank: defaultdict[int, set[int]] = defaultdict(set)
    for word in words:
        by_bank[int(word) % BANKS].add(int(word))
    return max(map(len, by_bank.values()), default=0)


def access_passes(layout: SharedLayout, dtype: DType) -> dict[str, int]:
    """The passes that the worst request of each kind takes, in the last two dimensions.

    row     32 threads that each read the next element of a row, or as many as it has
    column  the same down a column
    matrix  8 rows of 16 bytes, one of the matrices of `ldmatrix` (PTX ISA, "ldmatrix"); left out where the tile is
            smaller than that
    """
    table = word_table(layout, dtype)
    words = table.reshape(1, -1) if table.ndim == 1 else table.reshape(-1, *table.shape[-2:])[0]
    rows, columns = words.shape
    result = {
        "row": max(passes(row[at : at + BANKS]) for row in words for at in range(0, columns, BANKS)),
        "column": max(passes(column[at : at + BANKS]) for column in words.T for at in range(0, rows, BANKS)),
    }
    across = _MATRIX_ROW_BITS // dtype.bits
    if rows >= _MATRIX_ROWS and columns >= across:
        result["matrix"] = max(
            passes(words[row : row + _MATRIX_ROWS, column : column + across].reshape(-1))
            for row in range(0, rows - _MATRIX_ROWS + 1, _MATRIX_ROWS)
            for column in range(0, columns - across + 1, across)
        )
    return result


def draw_banks(layout: SharedLayout, dtype: DType) -> Picture:
    """A table of the tile with the bank of each word, coloured by bank; of more dimensions the first table.

    Elements side by side in one word share a cell. Raises `LowlpValueError` for more than 8,192 elements.
    """
    table = word_table(layout, dtype)
    words = table.reshape(1, -1) if table.ndim == 1 else table.reshape(-1, *table.shape[-2:])[0]
    picture = Picture(f"banks of {layout} of {dtype.name}")
    of = "" if table.ndim <= 2 else f", index {', '.join('0' for _ in table.shape[:-2])} of the first dimensions"
    title = f"{layout} of {dtype.name}{of}: the bank of each word"
    picture.add(Label(MARGIN, MARGIN + 6, title, 12, "left", bold=True))
    said = ", ".join(f"{KINDS[kind]} {count}" for kind, count in access_passes(layout, dtype).items())
    picture.add(Label(MARGIN, MARGIN + 24, f"passes of a read: {said}", 11, "left", FAINT))
    left, top = MARGIN + 34, MARGIN + 54
    width = max(_CELL_WIDTH, 26.0 * dtype.bits / _WORD_BITS)
    step = 1 << max(0, round(math.log2(40 / width)))
    for column in range(0, words.shape[1], step):
        picture.add(Label(left + (column + 0.5) * width, top - 8, str(column), 9, color=FAINT))
    for row, line in enumerate(words):
        y = top + row * _CELL_HEIGHT
        picture.add(Label(left - 6, y + _CELL_HEIGHT / 2, str(row), 10, "right", FAINT))
        begin = 0
        for column in range(1, len(line) + 1):
            if column < len(line) and line[column] == line[begin]:
                continue
            bank = int(line[begin]) % BANKS
            box = Box(left + begin * width, y, (column - begin) * width, _CELL_HEIGHT, shade(bank, BANKS))
            picture.add(box)
            if box.width >= 14:
                picture.add(Label(box.x + box.width / 2, y + _CELL_HEIGHT / 2, str(bank), 9.5))
            begin = column
    return picture
