"""Exchange within each warp of 32 threads."""

from __future__ import annotations

from typing import Final

from lowlp._mlir import ir
from lowlp.layouts.register_layout import local, spatial
from lowlp.numeric.dtypes import dtype

from .scalars import Scalar, as_index, is_int
from .source import type_error, value_error
from .tiles import Tile, as_named_tile, emit_tile
from .tracing import current_trace

_WARP: Final = 32
_MODES: Final = {"xor": 0, "up": 1, "down": 2, "idx": 3}


def warp_shuffle(tile: Tile, mode: str, lane: int | Scalar) -> Tile:
    """What another lane of the warp holds of the tile, register for register (PTX ISA, shfl.sync).

    mode  lane t gets the registers of 'xor': lane t ^ lane; 'up': t - lane; 'down': t + lane; 'idx': lane. Where there
          is no such lane, it keeps its own
    lane  0 to 31; the CPU target reports others

    Raises VerificationError where several threads hold one element, KernelTypeError and KernelValueError for other
    arguments.
    """
    source = as_named_tile("tile", tile)
    if mode not in _MODES:
        raise value_error(f"mode: must be one of {', '.join(map(repr, _MODES))}, found {mode!r}")
    if is_int(lane) and not 0 <= int(lane) < _WARP:
        raise value_error(f"lane: must be from 0 to {_WARP - 1}, found {lane}")
    number = as_index("lane", lane)
    attributes: dict[str, ir.Attribute] = {
        "mode": ir.IntegerAttr.get(current_trace("ll.warp_shuffle").type("i32"), _MODES[mode])
    }
    return emit_tile("lowlp.warp_shuffle", source.dtype, source.layout, [source, number], attributes)


def ballot(condition: Tile) -> Tile:
    """Where a condition holds, as one bit a lane (PTX ISA, vote.sync.ballot).

    condition  a tile of uint1, as comparisons give it; each thread holds n elements of it

    A tile of uint32, of shape [warps, n], that all lanes of a warp hold: bit t of element (w, i) is element i of lane t
    of warp w. Raises KernelTypeError for other arguments.
    """
    source = as_named_tile("condition", condition)
    if source.dtype != dtype("uint1"):
        raise type_error(f"condition: must be a tile of uint1, found {source.describe()}")
    lanes = spatial(1, _WARP).reduce([1], keep_dims=True)
    layout = spatial(source.layout.num_threads // _WARP, 1) * lanes * local(1, source.layout.num_local)
    return emit_tile("lowlp.ballot", dtype("uint32"), layout, [source])
