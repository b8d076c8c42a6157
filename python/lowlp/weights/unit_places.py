"""Where in a unit of packed words the bits of each code are, as runs of neighbouring bits: for reading single codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray

WORD_BITS = 12
SHIFT_BITS = 5
"""Of the fields of a run."""


def runs_of_codes(placement: Any) -> NDArray[np.int32]:
    """int32 [runs, rows of a unit, codes of a row in a unit]: runs of bits that are neighbours in a word and in the
    code, each packed from the low bits up as

        word of the unit (12 bits) | shift in the word (5) | shift in the code (5) | bits (5)

    A code with fewer runs than others has runs of 0 bits.
    """
    places = bit_places(placement)
    bits, rows, codes = places.shape
    flat = places.reshape(bits, -1)
    starts = np.ones(flat.shape, bool)
    starts[1:] = (np.diff(flat, axis=0) != 1) | (flat[1:] // 32 != flat[:-1] // 32)
    run = starts.cumsum(axis=0) - 1
    found = np.zeros((int(run.max()) + 1, flat.shape[1]), np.int64)
    for number in range(len(found)):
        within = run == number
        width = within.sum(axis=0)
        first = np.where(width > 0, within.argmax(axis=0), 0)
        place = flat[first, np.arange(flat.shape[1])]
        packed = place // 32 | place % 32 << WORD_BITS | first << WORD_BITS + SHIFT_BITS
        found[number] = packed | width << WORD_BITS + 2 * SHIFT_BITS
    return found.astype(np.int32).reshape(len(found), rows, codes)


def bit_places(placement: Any) -> AnyArray:
    """[bits of a code, rows of a unit, codes of a row in a unit]: the number of each bit among those of the unit's
    words, 32 times the word and from the low bit up."""
    half_steps = placement.slots // (2 * placement.row_tiles)
    tiles, parts = placement.row_tiles, placement.parts
    # A lane is a row of 8 and one of 4; a slot a tile, a half step and a half of the tile (`array_packing`).
    word, bit = np.moveaxis(placement.places(), -1, 0).astype(np.int64)
    axes = (tiles, half_steps, 2, parts, -1)
    word, bit = (part.reshape(axes).transpose(4, 0, 2, 1, 3) for part in (word, bit))
    word, bit = (part[:, :, :, None, :, None, :] for part in (word, bit))
    lane = np.arange(32).reshape(8, 4)[None, None, None, :, None, :, None]
    at_once = placement.packed_shape(placement.unit_rows, placement.unit_k)[-1]
    places = ((word // at_once * 32 + lane) * at_once + word % at_once) * 32 + bit
    found: AnyArray = places.reshape(len(places), placement.unit_rows, -1)
    return found
