"""i-quants of GGUF, whose codes stand for vectors of 4 or 8 weights: points of a grid, with signs.

    IQ2_XXS, IQ2_XS   index of 8 or 9 bits and 7 signs, the eighth being their parity: a code of 15 or 16 bits
    IQ3_XXS, IQ3_S    index of 8 or 9 bits and 4 signs: a code of 12 or 13 bits for 4 weights
    IQ2_S             index of 10 bits and 8 signs, more than 16: halves of vectors, with codes of 11 bits
    IQ1_S, IQ1_M      index of 11 bits, and whether 1/8 is added or subtracted: a code of 12 bits

The book of a type is its grid with all signs. Scales are float32, of 16 or 32 weights. Grids are data of ggml and come
from its Python package `gguf`, which reading these types needs.
Sources: ggml-org/ggml (src/ggml-common.h, src/ggml-quants.c), ggml-org/llama.cpp (gguf-py/gguf/quants.py).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lowlp.checkpoints.bit_streams import nibbles
from lowlp.checkpoints.gguf_blocks import BlockType
from lowlp.checkpoints.gguf_k_blocks import half
from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.errors import LowlpRuntimeError

_SIGNS_OF_4: Final = 1 - 2 * ((np.arange(16)[:, None] >> np.arange(4)) & 1)
_DELTA: Final = 0.125


def _grid(name: str) -> AnyArray:
    """The points of a type's grid, float32 [points, 4 or 8]."""
    try:
        quants: Any = importlib.import_module("gguf.quants")
    except ImportError:
        raise LowlpRuntimeError(f"{name} of GGUF needs the grids in the package gguf: pip install gguf") from None
    kind = getattr(quants, name)
    kind.init_grid()
    points: AnyArray = np.asarray(kind.grid, np.float32).reshape(kind.grid_shape)
    return points


def _eighth(signs: AnyArray) -> AnyArray:
    """Seven signs with their parity as the eighth, uint16."""
    parity = sum((signs >> bit) & 1 for bit in range(7)) & 1
    return (signs | parity << 7).astype(np.uint16)


@functools.cache
def _book(name: str) -> AnyArray:
    """The book of a type, float16 [1, codes, weights], read-only."""
    points = _grid("IQ1_S" if name == "IQ1_M" else name)
    if name.startswith("IQ1"):
        entries = np.concatenate([points + _DELTA, points - _DELTA])
    elif name == "IQ2_S":
        halves, _ = _halves_of_points()
        entries = (_SIGNS_OF_4[:, None] * halves).reshape(-1, 4)
    elif points.shape[1] == 4:
        entries = (_SIGNS_OF_4[:, None] * points).reshape(-1, 4)
    else:
        signs = 1 - 2 * ((_eighth(np.arange(128))[:, None].astype(int) >> np.arange(8)) & 1)
        entries = (signs[:, None] * points).reshape(-1, 8)
    book: AnyArray = entries.astype(np.float16)[None]
    book.setflags(write=False)
    return book


@functools.cache
def _halves_of_points() -> tuple[AnyArray, AnyArray]:
    """The halves of IQ2_S's points, 128 with zeros at the end, and which are those of each point, [1024, 2]."""
    points = _grid("IQ2_S").reshape(-1, 4)
    found, places = np.unique(points, axis=0, return_inverse=True)
    halves = np.zeros((128, 4), np.float32)
    halves[: found.shape[0]] = found
    return halves, places.reshape(-1, 2).astype(np.uint16)


def _words(blocks: AnyArray, start: int, stop: int, kind: str) -> AnyArray:
    return np.ascontiguousarray(blocks[..., start:stop]).view(kind)


def _sevens(words: AnyArray) -> AnyArray:
    """The four fields of seven bits of words [..., W]: [..., 4 W]."""
    fields = (words[..., None] >> np.array([0, 7, 14, 21], np.uint32)) & np.uint32(127)
    return fields.reshape(*words.shape[:-1], -1)


def _signs_of_pairs(signs: AnyArray) -> AnyArray:
    """The two nibbles of eight signs, low ones first: [..., 2 W]."""
    return np.stack([signs & 15, signs >> 4], axis=-1).reshape(*signs.shape[:-1], -1)


def _iq2_xxs(blocks: AnyArray) -> AnyArray:
    words = _words(blocks, 2, 66, "<u4").reshape(*blocks.shape[:-1], 8, 2)
    index = np.ascontiguousarray(words[..., 0]).view(np.uint8).astype(np.uint16)
    return index | (_sevens(words[..., 1]) << 8).astype(np.uint16)


def _iq2_s(blocks: AnyArray) -> AnyArray:
    high = (blocks[..., 66:74, None] >> np.array([0, 2, 4, 6], np.uint8)) & np.uint8(3)
    index = blocks[..., 2:34].astype(np.uint16) | high.reshape(*blocks.shape[:-1], 32).astype(np.uint16) << 8
    halves = _halves_of_points()[1][index].reshape(*blocks.shape[:-1], 64)
    codes: AnyArray = halves | _signs_of_pairs(blocks[..., 34:66]).astype(np.uint16) << 7
    return codes


def _iq3_xxs(blocks: AnyArray) -> AnyArray:
    signs = _eighth(_sevens(_words(blocks, 66, 98, "<u4")))
    codes: AnyArray = blocks[..., 2:66].astype(np.uint16) | _signs_of_pairs(signs) << 8
    return codes


def _iq3_s(blocks: AnyArray) -> AnyArray:
    high = np.unpackbits(blocks[..., 66:74], axis=-1, bitorder="little").astype(np.uint16)
    signs = _signs_of_pairs(blocks[..., 74:106]).astype(np.uint16)
    return blocks[..., 2:66].astype(np.uint16) | high << 8 | signs << 9


def _iq1_s(blocks: AnyArray) -> AnyArray:
    words = _words(blocks, 34, 50, "<u2")
    high = (words[..., None] >> np.array([0, 3, 6, 9], np.uint16)) & np.uint16(7)
    delta = (words >> 15).repeat(4, axis=-1)
    return blocks[..., 2:34].astype(np.uint16) | high.reshape(delta.shape) << 8 | delta << 11


def _iq1_m(blocks: AnyArray) -> AnyArray:
    high = nibbles(blocks[..., 32:48]).astype(np.uint16)
    codes: AnyArray = blocks[..., :32].astype(np.uint16) | high << 8
    return codes


def _of_nibbles(start: int, stop: int, factor: float, plus: float) -> Callable[[AnyArray], AnyArray]:
    """Scales d * (plus + s) * factor, s the nibbles of these bytes, low ones first."""

    def scales(blocks: AnyArray) -> AnyArray:
        found = nibbles(blocks[..., start:stop]).astype(np.float32)
        made: AnyArray = half(blocks, 0).astype(np.float32)[..., None] * (np.float32(plus) + found) * np.float32(factor)
        return made

    return scales


def _of_words(start: int, stop: int, step: int, factor: float) -> Callable[[AnyArray], AnyArray]:
    """Scales d * (0.5 + s) * factor, s the top four bits of each `step`-th word."""

    def scales(blocks: AnyArray) -> AnyArray:
        found = (_words(blocks, start, stop, "<u4")[..., step - 1 :: step] >> 28).astype(np.float32)
        made: AnyArray = half(blocks, 0).astype(np.float32)[..., None] * (np.float32(0.5) + found) * np.float32(factor)
        return made

    return scales


def _of_iq1_s(blocks: AnyArray) -> AnyArray:
    found = (_words(blocks, 34, 50, "<u2") >> 12) & 7
    made: AnyArray = half(blocks, 0).astype(np.float32)[..., None] * (2 * found + 1).astype(np.float32)
    return made


def _of_iq1_m(blocks: AnyArray) -> AnyArray:
    words = _words(blocks, 48, 56, "<u2")
    tops = (words >> 12) << np.array([0, 4, 8, 12], np.uint16)
    d = np.bitwise_or.reduce(tops, axis=-1).astype(np.uint16).view(np.float16).astype(np.float32)
    found = ((words[..., None] >> np.array([0, 3, 6, 9], np.uint16)) & 7).reshape(*blocks.shape[:-1], 16)
    made: AnyArray = d[..., None] * (2 * found + 1).astype(np.float32)
    return made


def _type(
    name: str,
    octets: int,
    vector: int,
    codes: Callable[[AnyArray], AnyArray],
    group: int,
    scales: Callable[[AnyArray], AnyArray],
) -> BlockType:
    def arguments(blocks: AnyArray) -> dict[str, Any]:
        numbers = scales(blocks).reshape(blocks.shape[0], -1)
        return {"codebooks": _book(name), "scales": numbers, "group_size": group}

    return BlockType(name, octets, 256, codes, arguments, vector)


TYPES: Final[dict[int, BlockType]] = {
    16: _type("IQ2_XXS", 66, 8, _iq2_xxs, 32, _of_words(2, 66, 2, 0.25)),
    17: _type("IQ2_XS", 74, 8, lambda blocks: _words(blocks, 2, 66, "<u2"), 16, _of_nibbles(66, 74, 0.25, 0.5)),
    22: _type("IQ2_S", 82, 4, _iq2_s, 16, _of_nibbles(74, 82, 0.25, 0.5)),
    18: _type("IQ3_XXS", 98, 4, _iq3_xxs, 32, _of_words(66, 98, 1, 0.5)),
    21: _type("IQ3_S", 110, 4, _iq3_s, 32, _of_nibbles(106, 110, 2.0, 0.5)),
    19: _type("IQ1_S", 50, 8, _iq1_s, 32, _of_iq1_s),
    29: _type("IQ1_M", 56, 8, _iq1_m, 16, _of_iq1_m),
}
"""Number of a type in files -> its blocks."""
