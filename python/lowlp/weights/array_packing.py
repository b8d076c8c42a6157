"""Packing by the operations of an array library, where the codes are: bit for bit what `lowlp._layout` packs.

A band of rows at a time, all lanes of all its units at once. A plane holds one byte of each lane. The bits that go the
same distance from a plane of codes to a plane of packed bytes are shifted and masked together, for many pairs of
planes at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Protocol

import numpy as np

from lowlp.numeric.array_ops import ArrayOps, row_slices
from lowlp_runtime.errors import LowlpValueError

UNIT_K = 64
LANES = 32


class Placing(Protocol):
    """What packing asks of a `Placement`; its data can be kept in a file, and used where there is no extension."""

    @property
    def name(self) -> str: ...

    @property
    def bits(self) -> int: ...

    @property
    def unit_rows(self) -> int: ...

    @property
    def row_tiles(self) -> int: ...

    @property
    def num_words(self) -> int: ...

    @property
    def parts(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def slots(self) -> int: ...

    def packed_shape(self, n: int, k: int, group_size: int) -> tuple[int, int, int, int, int]: ...

    def moves(self) -> list[tuple[int, int, int, int]]: ...


def pack_with(ops: ArrayOps, placement: Placing, codes: Any, group_size: int, padded: int, flip: int) -> Any:
    """As `lowlp.packing.pack`, for checked arguments; a group takes `padded` weights, `flip` turns codes into stored
    ones."""
    n, k = (int(extent) for extent in codes.shape)
    shape = placement.packed_shape(n, k, group_size)
    packed = ops.zero_bytes((*shape, 4))
    steps = _steps(ops, placement, to_bytes=True)
    for rows, units in _bands(ops, placement, n, shape[1]):
        band = codes[rows]
        limit = 1 << placement.bits
        if int(band.max()) >= limit:
            raise LowlpValueError(
                f"codes: must be in 0..{limit - 1} for {placement.name}, got {int(band.max())} in rows "
                f"{rows.start} to {rows.stop - 1}"
            )
        stored = _pad(ops, band, placement, len(range(units.start, units.stop)), group_size, padded) ^ flip
        planes = _move(ops, _rows_to_planes(ops, stored, placement), steps, placement.num_words * 4)
        packed[units] = _planes_to_words(ops, planes, placement, shape)
    return ops.as_words(packed)[..., 0]


def unpack_with(
    ops: ArrayOps, placement: Placing, packed: Any, n: int, k: int, group_size: int, padded: int, flip: int
) -> Any:
    """As `lowlp.packing.unpack`, for checked arguments; `padded` and `flip` as for `pack_with`."""
    shape = placement.packed_shape(n, k, group_size)
    steps = _steps(ops, placement, to_bytes=False)
    in_bytes = ops.as_bytes_of_words(packed)
    codes = ops.zero_bytes((n, k))
    for rows, units in _bands(ops, placement, n, shape[1]):
        planes = _words_to_planes(ops, in_bytes[units], placement)
        planes = _move(ops, planes, steps, placement.slots * placement.parts)
        stored = _planes_to_rows(ops, planes, placement, shape[1])
        groups = k // group_size
        stored = stored[: rows.stop - rows.start, : groups * padded].reshape(-1, groups, padded)[..., :group_size]
        codes[rows] = stored.reshape(-1, k) ^ flip
    return codes


def _bands(ops: ArrayOps, placement: Placing, n: int, units_k: int) -> list[tuple[slice, slice]]:
    """Rows of codes, and the units they make."""
    rows = placement.unit_rows
    units_n = -(-n // rows)
    bands = row_slices(units_n, units_k * UNIT_K * rows, ops.block_elements)
    return [(slice(band.start * rows, min(band.stop * rows, n)), band) for band in bands]


# Steps of one distance: where bits come from, their mask there, and where they go; no plane twice.
_Steps = list[tuple[int, Any, Any, Any]]


def _steps(ops: ArrayOps, placement: Placing, to_bytes: bool) -> _Steps:
    by_distance: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    taken: dict[tuple[int, int], int] = defaultdict(int)
    for weight, byte, shift, mask in placement.moves():
        source, target = (weight, byte) if to_bytes else (byte, weight)
        if not to_bytes:
            mask, shift = mask << shift if shift >= 0 else mask >> -shift, -shift
        turn = taken[shift, target]
        taken[shift, target] += 1
        by_distance[shift, turn].append((source, mask, target))
    return [
        (
            shift,
            ops.put(np.array([source for source, _, _ in moves])),
            ops.put(np.array([mask for _, mask, _ in moves], np.uint8)[:, None]),
            ops.put(np.array([target for _, _, target in moves])),
        )
        for (shift, _), moves in by_distance.items()
    ]


def _move(ops: ArrayOps, planes: Any, steps: _Steps, num_targets: int) -> Any:
    targets = ops.zero_bytes((num_targets, planes.shape[1]))
    for shift, sources, masks, places in steps:
        bits = planes[sources] & masks
        targets[places] |= bits << shift if shift >= 0 else bits >> -shift
    return targets


def _pad(ops: ArrayOps, band: Any, placement: Placing, units: int, group_size: int, padded: int) -> Any:
    """Codes [rows, K] in the rows of whole units, with padded groups."""
    rows, k = band.shape
    groups = k // group_size
    columns = -(-groups * padded // UNIT_K) * UNIT_K
    codes = ops.zero_bytes((units * placement.unit_rows, columns))
    codes[:rows, : groups * padded].reshape(rows, groups, padded)[..., :group_size] = band.reshape(
        rows, groups, group_size
    )
    return codes


# Rows of codes are [unit along N, tile, half of the tile, row of 8, unit along K, step, half of the step, 4, part], a
# lane is a row of 8 and one of the 4, and a slot a tile, a step, a half of the step and a half of the tile.
_ROWS_TO_PLANES = (1, 5, 6, 2, 8, 0, 4, 3, 7)
_PLANES_TO_ROWS = tuple(int(axis) for axis in np.argsort(_ROWS_TO_PLANES))


def _rows_to_planes(ops: ArrayOps, stored: Any, placement: Placing) -> Any:
    tiles, steps, parts = placement.row_tiles, placement.steps, placement.parts
    axes = stored.reshape(-1, tiles, 2, 8, stored.shape[1] // UNIT_K, steps, 2, 4, parts)
    return ops.permute(axes, _ROWS_TO_PLANES).reshape(placement.slots * parts, -1)


def _planes_to_rows(ops: ArrayOps, planes: Any, placement: Placing, units_k: int) -> Any:
    tiles, steps, parts = placement.row_tiles, placement.steps, placement.parts
    axes = planes.reshape(tiles, steps, 2, 2, parts, -1, units_k, 8, 4)
    return ops.permute(axes, _PLANES_TO_ROWS).reshape(-1, units_k * UNIT_K)


def _planes_to_words(ops: ArrayOps, planes: Any, placement: Placing, shape: tuple[int, ...]) -> Any:
    """Planes [byte, lane] as [unit along N, unit along K, access, lane, word of the access, byte of the word]."""
    _, units_k, accesses, lanes, access = shape
    return ops.permute(planes.reshape(accesses, access, 4, -1, units_k, lanes), (3, 4, 0, 5, 1, 2))


def _words_to_planes(ops: ArrayOps, words: Any, placement: Placing) -> Any:
    return ops.permute(words, (2, 4, 5, 0, 1, 3)).reshape(placement.num_words * 4, -1)
