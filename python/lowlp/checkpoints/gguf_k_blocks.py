"""K-quants of GGUF: 256 weights, with integer scales of 16 or 32 under a float16 `d`, and minima under `dmin`.

They become scales in two levels, which keep the file's numbers: `docs/codecs.md`. Elements lie in 64 or 128 at a time:
the low bits of all, then the next ones. Sources: ggml-org/ggml (src/ggml-common.h, src/ggml-quants.c).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from lowlp.checkpoints.bit_streams import centred
from lowlp.numeric.host_array import AnyArray

_PAIRS: Final = np.array([0, 2, 4, 6], np.uint8)[:, None]
TABLE_OF_IQ4: Final = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""The values of the codes of IQ4_NL and IQ4_XS."""


class Fields(NamedTuple):
    """As `gguf_blocks.BlockType`, of blocks of 256 weights."""

    name: str
    octets: int
    codes: Callable[[AnyArray], AnyArray]
    arguments: Callable[[AnyArray], dict[str, Any]]


def half(blocks: AnyArray, at: int) -> AnyArray:
    """The float16 from byte `at` on of blocks [..., bytes]: [...]."""
    return np.ascontiguousarray(blocks[..., at : at + 2]).view(np.float16)[..., 0]


def _two_bits(octets: AnyArray) -> AnyArray:
    """Codes of two bits of 128 weights at a time: of 32 bytes the bits 0 and 1 of all, then 2 and 3, and so on."""
    parts = octets.reshape(*octets.shape[:-1], -1, 1, 32)
    return ((parts >> _PAIRS) & np.uint8(3)).reshape(*octets.shape[:-1], -1)


def _four_bits(octets: AnyArray) -> AnyArray:
    """Codes of four bits of 64 weights at a time: of 32 bytes the low nibbles, then the high ones."""
    parts = octets.reshape(*octets.shape[:-1], -1, 1, 32)
    return ((parts >> np.array([0, 4], np.uint8)[:, None]) & np.uint8(15)).reshape(*octets.shape[:-1], -1)


def _single_bits(octets: AnyArray) -> AnyArray:
    """One bit of 32 weights at a time: bit 0 of all 32 bytes, then bit 1, and so on."""
    parts = octets.reshape(*octets.shape[:-1], 1, 32)
    return ((parts >> np.arange(8, dtype=np.uint8)[:, None]) & np.uint8(1)).reshape(*octets.shape[:-1], -1)


def _flat(numbers: AnyArray) -> AnyArray:
    """What groups of blocks [N, blocks, groups] have, as [N, all groups]."""
    return np.ascontiguousarray(numbers).reshape(numbers.shape[0], -1)


def _two_levels(
    dtype: str,
    group: int,
    scales: AnyArray,
    supers: AnyArray,
    minima: AnyArray | None = None,
    least: AnyArray | None = None,
) -> dict[str, Any]:
    found = {
        "dtype": dtype,
        "group_size": group,
        "scales": _flat(scales),
        "super_scales": supers,
        "super_group_size": 256,
    }
    if minima is not None and least is not None:
        found |= {"offsets": _flat(minima), "super_offsets": -least}
    return found


def _q2_k(blocks: AnyArray) -> dict[str, Any]:
    both = blocks[..., :16]
    found = _two_levels("uint2", 16, both & 15, half(blocks, 80), both >> 4, half(blocks, 82))
    return {**found, "scale_dtype": "uint4"}


def _codes_of_q3_k(blocks: AnyArray) -> AnyArray:
    codes = _two_bits(blocks[..., 32:96]) | _single_bits(blocks[..., :32]) << np.uint8(2)
    return centred(codes, 3)


def _q3_k(blocks: AnyArray) -> dict[str, Any]:
    packed = blocks[..., 96:108]
    low = np.concatenate([packed[..., :8] & 15, packed[..., :8] >> 4], axis=-1)
    high = (packed[..., None, 8:] >> _PAIRS) & np.uint8(3)
    scales = (low | high.reshape(low.shape) << np.uint8(4)).astype(np.int8) - np.int8(32)
    return {**_two_levels("int3", 16, scales, half(blocks, 108)), "scale_dtype": "int6"}


def _six_bits(packed: AnyArray) -> tuple[AnyArray, AnyArray]:
    """The eight scales and eight minima of 12 bytes."""
    first, second, third = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, (third & 15) | first >> 6 << 4], axis=-1)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=-1)
    return scales, minima


def _with_minima(dtype: str) -> Callable[[AnyArray], dict[str, Any]]:
    def arguments(blocks: AnyArray) -> dict[str, Any]:
        scales, minima = _six_bits(blocks[..., 4:16])
        return _two_levels(dtype, 32, scales, half(blocks, 0), minima, half(blocks, 2))

    return arguments


def _codes_of_q5_k(blocks: AnyArray) -> AnyArray:
    codes: AnyArray = _four_bits(blocks[..., 48:]) | _single_bits(blocks[..., 16:48]) << np.uint8(4)
    return codes


def _codes_of_q6_k(blocks: AnyArray) -> AnyArray:
    low = blocks[..., :128].reshape(*blocks.shape[:-1], 2, 1, 64)
    nibbles = ((low >> np.array([0, 4], np.uint8)[:, None]) & np.uint8(15)).reshape(*blocks.shape[:-1], 256)
    return centred(nibbles | _two_bits(blocks[..., 128:192]) << np.uint8(4), 6)


def _q6_k(blocks: AnyArray) -> dict[str, Any]:
    scales = np.ascontiguousarray(blocks[..., 192:208]).view(np.int8)
    return _two_levels("int6", 16, scales, half(blocks, 208))


def _codes_of_iq4_xs(blocks: AnyArray) -> AnyArray:
    parts = blocks[..., 8:].reshape(*blocks.shape[:-1], 8, 16)
    return np.concatenate([parts & 15, parts >> 4], axis=-1).reshape(*blocks.shape[:-1], 256)


def _iq4_xs(blocks: AnyArray) -> dict[str, Any]:
    high = np.ascontiguousarray(blocks[..., 2:4]).view(np.uint16) >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = np.stack([blocks[..., 4:8] & 15, blocks[..., 4:8] >> 4], axis=-1).reshape(high.shape)
    scales = (low | high.astype(np.uint8) << np.uint8(4)).astype(np.int8) - np.int8(32)
    found = _two_levels("uint4", 32, scales, half(blocks, 0))
    del found["dtype"]
    return {**found, "lut": TABLE_OF_IQ4}


FIELDS: Final[dict[int, Fields]] = {
    10: Fields("Q2_K", 84, lambda blocks: _two_bits(blocks[..., 16:80]), _q2_k),
    11: Fields("Q3_K", 110, _codes_of_q3_k, _q3_k),
    12: Fields("Q4_K", 144, lambda blocks: _four_bits(blocks[..., 16:]), _with_minima("uint4")),
    13: Fields("Q5_K", 176, _codes_of_q5_k, _with_minima("uint5")),
    14: Fields("Q6_K", 210, _codes_of_q6_k, _q6_k),
    23: Fields("IQ4_XS", 136, _codes_of_iq4_xs, _iq4_xs),
}
"""Number of a type in files -> its blocks."""
