"""Bit planes: bit i of many codes, side by side in words of 32 codes.

Bit 8 (c % 4) + c / 4 of a word of plane i is bit i of code c of the word's 32 codes. Four codes of a 32-bit register,
one in each byte, and eight such registers are then an 8 x 8 transposition of bits in each byte (Warren, Hacker's
Delight, section 7-3): three steps, which a kernel takes in registers. Products do not depend on the order as long as
both operands have the same.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray

WORD_CODES: Final = 32
"""Codes of a word."""
BIT_OF_CODE: Final = tuple(8 * (code % 4) + code // 4 for code in range(WORD_CODES))
"""The bit of a word that each of its codes has, in every plane."""
_CODE_OF_BIT: Final = np.argsort(BIT_OF_CODE)


def planes_of(codes: AnyArray, bits: int) -> NDArray[np.uint32]:
    """uint32 [..., bits, ceil(K / 32)]: the planes, bit 0 first, of codes [..., K] that count up from 0; the codes that
    the last word lacks are 0."""
    *rows, k = codes.shape
    words = -(-k // WORD_CODES)
    padded = np.zeros((*rows, words * WORD_CODES), np.uint8)
    padded[..., :k] = codes
    in_order = padded.reshape(*rows, 1, words, WORD_CODES)[..., _CODE_OF_BIT]
    shifts = np.arange(bits, dtype=np.uint8)[:, None, None]
    # What indexing makes may have its dimensions in another order in memory, and what is made of it too.
    packed: AnyArray = np.ascontiguousarray(np.packbits((in_order >> shifts) & 1, axis=-1, bitorder="little"))
    return packed.view("<u4").astype(np.uint32, copy=False)[..., 0]


def codes_of_planes(planes: AnyArray, k: int) -> NDArray[np.uint8]:
    """The inverse: uint8 [..., k]."""
    *rows, bits, words = planes.shape
    in_bytes = np.ascontiguousarray(planes, "<u4")[..., None].view(np.uint8)
    in_order = np.unpackbits(in_bytes, axis=-1, bitorder="little")[..., list(BIT_OF_CODE)]
    weights = (1 << np.arange(bits, dtype=np.uint8))[:, None, None]
    codes: NDArray[np.uint8] = (in_order * weights).sum(axis=-3, dtype=np.uint8)
    return codes.reshape(*rows, words * WORD_CODES)[..., :k]
