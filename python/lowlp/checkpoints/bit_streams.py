"""Codes of b bits in the words of files, in the orders that formats have.

stream   code i in the bits from i b on, low bits first; codes may lie in two words
padded   32 // b codes in a word, low bits first, and the rest of its bits unused
planar   32 codes in b words: first the words of their low bits, then those of higher ones (GPTQModel, gptq_p)
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray

Codes = NDArray[np.uint8]

_PLANES: Final = {2: (2,), 3: (2, 1), 4: (4,), 5: (4, 1), 6: (4, 2), 7: (4, 2, 1), 8: (8,)}
"""The widths of the planes of planar words, low bits first."""


def stream_words(bits: int, count: int) -> int:
    """Words of 32 bits that `count` codes take in a stream."""
    return -(-count * bits // 32)


def padded_words(bits: int, count: int) -> int:
    """Words of 32 bits that `count` codes take where none lies in two words."""
    return -(-count // (32 // bits))


def stream(words: AnyArray, bits: int, count: int) -> Codes:
    """Codes [..., count] of words or bytes [..., W], b = 1 to 8."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    if bits == 8:
        return octets[..., :count]
    if 8 % bits == 0:
        return _apart(octets, bits)[..., :count]
    # Eight codes lie in b bytes.
    eights = -(-count // 8)
    missing = eights * bits - octets.shape[-1]
    if missing > 0:
        octets = np.concatenate([octets, np.zeros((*octets.shape[:-1], missing), np.uint8)], axis=-1)
    parts = octets[..., : eights * bits].reshape(*octets.shape[:-1], eights, bits)
    found = np.empty((*octets.shape[:-1], eights, 8), np.uint8)
    for i in range(8):
        first, shift = divmod(i * bits, 8)
        codes = parts[..., first] >> np.uint8(shift)
        if shift + bits > 8:
            codes = codes | (parts[..., first + 1] << np.uint8(8 - shift))
        found[..., i] = codes & np.uint8((1 << bits) - 1)
    return found.reshape(*octets.shape[:-1], -1)[..., :count]


def _apart(octets: AnyArray, bits: int) -> Codes:
    """The codes of 1, 2 or 4 bits of bytes [..., W]. A byte becomes a word of as many bytes as it has codes, whose bits
    are moved apart: numpy does that many bytes at a time."""
    if bits == 1:
        return np.unpackbits(octets, axis=-1, bitorder="little")
    if bits == 4:
        pairs = octets.astype("<u2")
        pairs |= pairs << 4
        pairs &= 0x0F0F
        return pairs.view(np.uint8)
    fours = octets.astype("<u4")
    fours |= fours << 12
    fours &= 0x000F000F
    fours |= fours << 6
    fours &= 0x03030303
    return fours.view(np.uint8)


def padded(words: AnyArray, bits: int, count: int) -> Codes:
    """Codes [..., count] of words [..., ceil(count / (32 // b))], of 32 bits each."""
    shifts = np.arange(32 // bits, dtype=np.uint32) * np.uint32(bits)
    codes = (np.ascontiguousarray(words).view(np.uint32)[..., None] >> shifts) & np.uint32((1 << bits) - 1)
    return codes.astype(np.uint8).reshape(*words.shape[:-1], -1)[..., :count]


def planar(words: AnyArray, bits: int, count: int) -> Codes:
    """Codes [..., count] of words [..., count * b / 32], of 32 bits each; count is a multiple of 32."""
    parts = np.ascontiguousarray(words).view(np.uint32).reshape(*words.shape[:-1], count // 32, bits)
    found = np.zeros((*parts.shape[:-1], 32), np.uint8)
    row = low = 0
    for width in _PLANES[bits]:
        shifts = np.arange(0, 32, width, dtype=np.uint32)
        plane = (parts[..., row : row + width, None] >> shifts) & np.uint32((1 << width) - 1)
        found |= plane.reshape(found.shape).astype(np.uint8) << np.uint8(low)
        row, low = row + width, low + width
    return found.reshape(*words.shape[:-1], count)


def nibbles(octets: AnyArray, high_first: bool = False) -> Codes:
    """Codes [..., 2 W] of bytes [..., W] of two codes each."""
    if high_first:
        octets = octets >> 4 | octets << 4
    return _apart(np.ascontiguousarray(octets), 4)


def centred(codes: Codes, bits: int) -> Codes:
    """Codes that are 2^(b-1) more than their number, as two's complement."""
    return codes ^ np.uint8(1 << (bits - 1))
