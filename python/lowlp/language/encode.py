"""Bit planes of codes."""

from __future__ import annotations

from typing import Final

from lowlp.errors import LowlpError
from lowlp.layouts.register_layout import local
from lowlp.numeric.dtypes import dtype

from .scalars import describe, is_int
from .source import type_error, value_error
from .tiles import Tile, as_named_tile, emit_tile

_WORD_CODES: Final = 32
_MAX_PLANES: Final = 8


def encode(codes: Tile, *, planes: int) -> Tile:
    """Bit planes of codes, for products of bits: [..., planes, W] of uint32 from [..., W, 32] of uint8 or int8.

    codes   a tile whose last dimension is 32 codes that one thread holds side by side; `ll.convert_layout` brings them
            together, `ll.view` gives [..., 32 W] the last dimension of 32
    planes  1 to 8: plane i has bit i of each code, in the order of `lowlp.numeric.bit_planes.BIT_OF_CODE`

    Raises KernelTypeError and KernelValueError for other arguments.
    """
    source = as_named_tile("codes", codes)
    if source.dtype.name not in ("int8", "uint8"):
        raise type_error(f"codes: must be a tile of int8 or uint8, found {source.describe()}; cast it first")
    if not is_int(planes):
        raise type_error(f"planes: must be an int, found {describe(planes)}")
    if not 1 <= planes <= _MAX_PLANES:
        raise value_error(f"planes: must be from 1 to {_MAX_PLANES}, found {planes}")
    rank = source.layout.rank
    if rank < 2 or source.shape[-1] != _WORD_CODES:
        raise value_error(
            f"codes: must have at least 2 dimensions, of which the last is {_WORD_CODES}, found {list(source.shape)}"
        )
    ones = [1] * (rank - 2)
    try:
        words = source.layout / local(*ones, 1, _WORD_CODES)
    except LowlpError:
        raise value_error(
            f"codes: a thread must hold the {_WORD_CODES} codes of a word side by side, found {source.layout}"
        ) from None
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    layout = words.permute(swapped) * local(*ones, int(planes), 1)
    return emit_tile("lowlp.encode", dtype("uint32"), layout, [source])
