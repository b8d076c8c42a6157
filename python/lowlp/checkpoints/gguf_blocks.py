"""Blocks of GGUF whose codes stand for one weight each: where in a block codes and scales are.

`d`, `dmin` and `m` are float16. In blocks of 32 a byte has element j in its low nibble and j + 16 in its high one. Of
the blocks of 256 `gguf_k_blocks` has those with scales of their own. Sources: ggml-org/ggml (src/ggml-common.h,
src/ggml-quants.c) and ggml-org/llama.cpp (gguf-py/gguf/quants.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from lowlp.checkpoints.bit_streams import centred, stream
from lowlp.checkpoints.gguf_k_blocks import FIELDS as K_FIELDS
from lowlp.checkpoints.gguf_k_blocks import TABLE_OF_IQ4, Fields, half
from lowlp.checkpoints.scale_shapes import POWERS
from lowlp.numeric.host_array import AnyArray


class BlockType(NamedTuple):
    """A type of blocks: its name, bytes and weights of a block, the codes of blocks [..., bytes] as [..., codes], the
    arguments of `QuantizedTensor` for all blocks of weights, [N, blocks, bytes], and the weights of a code."""

    name: str
    octets: int
    weights: int
    codes: Callable[[AnyArray], AnyArray]
    arguments: Callable[[AnyArray], dict[str, Any]]
    vector: int = 1


def _halves(octets: AnyArray) -> AnyArray:
    """The low nibbles, then the high ones."""
    return np.concatenate([octets & 15, octets >> 4], axis=-1)


def _fifth(octets: AnyArray, high: AnyArray) -> AnyArray:
    """Codes of five bits, of which the highest are in 32 bits."""
    codes: AnyArray = _halves(octets) | stream(high, 1, 32) << np.uint8(4)
    return codes


def _one_level(dtype: str, at: int = 0, group: int = 32) -> Callable[[AnyArray], dict[str, Any]]:
    """Scales are the float16 from byte `at` on."""
    return lambda blocks: {"dtype": dtype, "scales": half(blocks, at), "group_size": group}


def _with_offsets(dtype: str) -> Callable[[AnyArray], dict[str, Any]]:
    return lambda blocks: {"dtype": dtype, "scales": half(blocks, 0), "offsets": half(blocks, 2), "group_size": 32}


def _ternary(at: int, group: int) -> Callable[[AnyArray], dict[str, Any]]:
    def arguments(blocks: AnyArray) -> dict[str, Any]:
        scales = half(blocks, at)
        return {"dtype": "uint2", "scales": scales, "zeros": np.ones(scales.shape, np.uint8), "group_size": group}

    return arguments


def _mxfp4(blocks: AnyArray) -> dict[str, Any]:
    return {"dtype": "f4e2m1", "scales": np.ascontiguousarray(blocks[..., 0]).view(POWERS), "group_size": 32}


def _nvfp4(blocks: AnyArray) -> dict[str, Any]:
    """Scales have no sign, and the byte 0x7F is 0."""
    stored = np.ascontiguousarray(blocks[..., :4]).reshape(blocks.shape[0], -1)
    if (stored < 0x80).all():
        scales: AnyArray = np.where(stored == 0x7F, 0, stored).astype(np.uint8).view(ml_dtypes.float8_e4m3fn)
    else:
        exponent, mantissa = (stored >> 3) & 15, (stored & 7).astype(np.float32)
        numbers = np.where(exponent == 0, mantissa / 512, (1 + mantissa / 8) * np.exp2(exponent - np.float32(7)))
        scales = np.where(stored == 0x7F, 0, numbers).astype(np.float16)
    return {"dtype": "f4e2m1", "scales": scales, "group_size": 16}


def _codes_of_nvfp4(blocks: AnyArray) -> AnyArray:
    parts = blocks[..., 4:].reshape(*blocks.shape[:-1], 4, 8)
    return _halves(parts).reshape(*blocks.shape[:-1], 64)


def _digits(octets: AnyArray, count: int) -> AnyArray:
    """`count` digits to base 3 of bytes [..., W], [..., count W], the first of all bytes first."""
    powers = np.array([3**n for n in range(count)], np.uint8)
    shifted = octets[..., None, :] * powers[:, None]
    return ((shifted.astype(np.uint16) * 3) >> 8).astype(np.uint8).reshape(*octets.shape[:-1], -1)


def _codes_of_tq1_0(blocks: AnyArray) -> AnyArray:
    return np.concatenate(
        [_digits(blocks[..., :32], 5), _digits(blocks[..., 32:48], 5), _digits(blocks[..., 48:52], 4)], axis=-1
    )


def _codes_of_tq2_0(blocks: AnyArray) -> AnyArray:
    parts = blocks[..., :64].reshape(*blocks.shape[:-1], 2, 1, 32)
    codes = (parts >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & np.uint8(3)
    return codes.reshape(*blocks.shape[:-1], 256)


def _of(fields: Fields) -> BlockType:
    return BlockType(fields.name, fields.octets, 256, fields.codes, fields.arguments)


def _table(blocks: AnyArray) -> dict[str, Any]:
    return {"lut": TABLE_OF_IQ4, "scales": half(blocks, 0), "group_size": 32}


TYPES: Final[dict[int, BlockType]] = {
    2: BlockType("Q4_0", 18, 32, lambda b: centred(_halves(b[..., 2:]), 4), _one_level("int4")),
    3: BlockType("Q4_1", 20, 32, lambda b: _halves(b[..., 4:]), _with_offsets("uint4")),
    6: BlockType("Q5_0", 22, 32, lambda b: centred(_fifth(b[..., 6:], b[..., 2:6]), 5), _one_level("int5")),
    7: BlockType("Q5_1", 24, 32, lambda b: _fifth(b[..., 8:], b[..., 4:8]), _with_offsets("uint5")),
    8: BlockType("Q8_0", 34, 32, lambda b: b[..., 2:], _one_level("int8")),
    20: BlockType("IQ4_NL", 18, 32, lambda b: _halves(b[..., 2:]), _table),
    34: BlockType("TQ1_0", 54, 256, _codes_of_tq1_0, _ternary(52, 256)),
    35: BlockType("TQ2_0", 66, 256, _codes_of_tq2_0, _ternary(64, 256)),
    39: BlockType("MXFP4", 17, 32, lambda b: _halves(b[..., 1:]), _mxfp4),
    40: BlockType("NVFP4", 36, 64, _codes_of_nvfp4, _nvfp4),
    41: BlockType("Q1_0", 18, 128, lambda b: stream(b[..., 2:], 1, 128), _one_level("bipolar1", 0, 128)),
    42: BlockType("Q2_0", 18, 64, lambda b: stream(b[..., 2:], 2, 64), _ternary(0, 64)),
    **{number: _of(fields) for number, fields in K_FIELDS.items()},
}
"""Number of a type in files -> its blocks."""
