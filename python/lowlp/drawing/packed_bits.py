"""The bits of a thread's registers: which of them, in which byte, are which element.

Elements of at most 8 bits are packed low bits first, in the order of their places, into 32-bit words.
"""

from __future__ import annotations

from lowlp.layouts.register_layout import Layout
from lowlp.numeric.dtypes import DType
from lowlp_runtime.errors import LowlpValueError

from .picture import FAINT, MARGIN, Box, Label, Line, Picture, shade

MAX_BITS = 1024
_WORD = 32
_BYTE = 8
_BIT_WIDTH = 18.0
_ROW_HEIGHT = 22.0
_TICK = 4.0
_LEFT = MARGIN + 92


def draw_packed_bits(layout: Layout, dtype: DType, threads: int = 2) -> Picture:
    """The registers of the first threads, a row for each 32-bit word, bit 0 at the left; the index of each element.

    threads  how many threads are drawn

    Raises `LowlpValueError` for elements wider than 8 bits, and for more than 1,024 bits a thread.
    """
    bits = layout.num_local * dtype.bits
    if dtype.bits > _BYTE:
        raise LowlpValueError(f"dtype: elements of 1 to 8 bits are packed, got {dtype.name}")
    if bits > MAX_BITS:
        raise LowlpValueError(f"a picture holds at most {MAX_BITS} bits a thread; {layout} of {dtype.name} has {bits}")
    picture = Picture(f"bits of {dtype.name} in {layout}")
    picture.add(Label(MARGIN, MARGIN + 6, f"{dtype.name} in registers", 12, "left", bold=True))
    whole = f"{bits} bits = {bits / _BYTE:g} bytes a thread; a box is an element of the tile, strong lines are bytes"
    picture.add(Label(MARGIN, MARGIN + 24, whole, 11, "left", FAINT))
    top = MARGIN + 42
    for byte in range(min(bits, _WORD) // _BYTE + (bits < _WORD and bits % _BYTE > 0)):
        middle = _LEFT + (byte + 0.5) * _BYTE * _BIT_WIDTH
        picture.add(Label(middle, top + 6, f"byte {byte}", 10, color=FAINT))
    for bit in range(min(bits, _WORD)):
        picture.add(Label(_LEFT + (bit + 0.5) * _BIT_WIDTH, top + 20, str(bit), 8, color=FAINT))
    top += 30
    for thread in range(min(threads, layout.num_threads)):
        for word in range(-(-bits // _WORD)):
            _draw_word(picture, layout, dtype, thread, word, top)
            top += _ROW_HEIGHT
        top += 6
    return picture


def _draw_word(picture: Picture, layout: Layout, dtype: DType, thread: int, word: int, top: float) -> None:
    bits = layout.num_local * dtype.bits
    begin, end = word * _WORD, min((word + 1) * _WORD, bits)
    name = f"thread {thread}" if word == 0 else ""
    picture.add(Label(MARGIN, top + _ROW_HEIGHT / 2, name, 11, "left"))
    picture.add(Label(_LEFT - 6, top + _ROW_HEIGHT / 2, f"r{word}", 10, "right", FAINT))
    for place in range(begin // dtype.bits, -(-end // dtype.bits)):
        first, last = max(place * dtype.bits, begin), min((place + 1) * dtype.bits, end)
        x, width = _LEFT + (first - begin) * _BIT_WIDTH, (last - first) * _BIT_WIDTH
        picture.add(Box(x, top, width, _ROW_HEIGHT, shade(place, layout.num_local)))
        index = ",".join(str(extent) for extent in layout(thread, place))
        if width >= 7.0 * len(index) + 4:
            picture.add(Label(x + width / 2, top + _ROW_HEIGHT / 2, index))
    for edge in range(begin, end + 1, _BYTE):
        x = _LEFT + (edge - begin) * _BIT_WIDTH
        if edge % dtype.bits and edge not in (begin, end):  # within an element, whose text it leaves free
            picture.add(Line(x, top, x, top + _TICK), Line(x, top + _ROW_HEIGHT - _TICK, x, top + _ROW_HEIGHT))
        else:
            picture.add(Line(x, top, x, top + _ROW_HEIGHT))
