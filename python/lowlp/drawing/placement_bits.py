"""The bits of packed words: of which weight of a lane each bit is, and which bit of its code."""

from __future__ import annotations

from itertools import groupby

from lowlp._layout import Placement

from .picture import FAINT, MARGIN, Box, Label, Picture, shade

_WORD = 32
_BYTE = 8
_BIT_WIDTH = 24.0
_ROW_HEIGHT = 30.0
_LEFT = MARGIN + 28


def bit_owners(placement: Placement) -> list[list[tuple[int, int, int]]]:
    """By word and bit of a lane: the slot, the part, and the bit of the stored code."""
    owners = [[(0, 0, 0)] * _WORD for _ in range(placement.num_words)]
    for slot, parts in enumerate(placement.places().tolist()):
        for part, bits in enumerate(parts):
            for bit, (word, place) in enumerate(bits):
                owners[word][place] = (slot, part, bit)
    return owners


def draw_placement(placement: Placement) -> Picture:
    """The words of a lane for a unit, a row for each, bit 0 at the left.

    Boxes are weights, named slot.part and coloured by slot; the small numbers are the bits of stored codes.
    """
    picture = Picture(f"placement {placement.name}")
    picture.add(Label(MARGIN, MARGIN + 6, f"{placement.name} in a lane's words", 12, "left", bold=True))
    unit = (
        f"a unit of {placement.unit_rows} x {placement.unit_k} weights; a box is slot.part, the small numbers are the "
        "bits of its stored code"
    )
    picture.add(Label(MARGIN, MARGIN + 24, unit, 11, "left", FAINT))
    top = MARGIN + 42
    for byte in range(_WORD // _BYTE):
        middle = _LEFT + (byte + 0.5) * _BYTE * _BIT_WIDTH
        picture.add(Label(middle, top + 6, f"byte {byte}", 10, color=FAINT))
    for bit in range(_WORD):
        picture.add(Label(_LEFT + (bit + 0.5) * _BIT_WIDTH, top + 20, str(bit), 8, color=FAINT))
    top += 30
    for word, owners in enumerate(bit_owners(placement)):
        picture.add(Label(_LEFT - 6, top + _ROW_HEIGHT / 2, f"w{word}", 10, "right", FAINT))
        _draw_word(picture, owners, placement.slots, top)
        top += _ROW_HEIGHT + 4
    return picture


def _draw_word(picture: Picture, owners: list[tuple[int, int, int]], slots: int, top: float) -> None:
    x = _LEFT
    for (slot, part), run in groupby(owners, key=lambda owner: owner[:2]):
        bits = [bit for _, _, bit in run]
        width = len(bits) * _BIT_WIDTH
        picture.add(Box(x, top, width, _ROW_HEIGHT, shade(slot, slots)))
        picture.add(Label(x + width / 2, top + 10, f"{slot}.{part}", 9))
        for place, bit in enumerate(bits):
            picture.add(Label(x + (place + 0.5) * _BIT_WIDTH, top + 22, str(bit), 8, color=FAINT))
        x += width
