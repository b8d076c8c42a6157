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


class Placing(Protocol):
    """What packing asks of a `Placement`; its data can be kept in a file, and used where there is no extension."""

    @property
    def name(self) -> str: ...

    @property
    def bits(self) -> int: ...

    @property
    def code_bytes(self) -> int: ...

    @property
    def unit_rows(self) -> int: ...

    @property
    def unit_k(self) -> int: ...

    @property
    def row_tiles(self) -> int: ...

    @property
    def num_words(self) -> int: ...

    @property
    def parts(self) -> int: ...

    @property
    def slots(self) -> int: ...

    def packed_shape(self, n: int, k: int) -> tuple[int, int, int, int, int]: ...

    def moves(self) -> list[tuple[int, int, int, int]]: ...


def pack_with(ops: ArrayOps, placement: Placing, codes: Any, flip: int) -> Any:
    """As `lowlp.packing.pack`, for one matrix of checked codes; `flip` turns codes into stored ones."""
    n, columns = (int(extent) for extent in codes.shape)
    shape = placement.packed_shape(n, columns * placement.unit_k // _unit_codes(placement))
    packed = ops.zero_bytes((*shape, 4))
    steps = _steps(ops, placement, to_bytes=True)
    for rows, units in _bands(ops, placement, n, shape[1]):
        band = ops.as_bytes_of_codes(codes[rows])
        _check_range(ops, placement, band, rows)
        planes = _no_planes(ops, placement, (units.stop - units.start) * shape[1] * shape[3])
        for byte, part in enumerate(planes):
            stored = _pad(ops, band[..., byte], placement, units.stop - units.start) ^ flip
            part[...] = _rows_to_planes(ops, stored, placement)
        planes = _move(ops, planes.reshape(-1, planes.shape[-1]), steps, placement.num_words * 4)
        packed[units] = _planes_to_words(ops, planes, placement, shape)
    return ops.as_words(packed)[..., 0]


def unpack_with(ops: ArrayOps, placement: Placing, packed: Any, n: int, k: int, flip: int) -> Any:
    """As `lowlp.packing.unpack`, for the words of one matrix; `flip` as for `pack_with`."""
    shape = placement.packed_shape(n, k)
    steps = _steps(ops, placement, to_bytes=False)
    in_bytes = ops.as_bytes_of_words(packed)
    columns = k * _unit_codes(placement) // placement.unit_k
    codes = ops.zero_bytes((n, columns, placement.code_bytes))
    weights = placement.slots * placement.parts
    for rows, units in _bands(ops, placement, n, shape[1]):
        planes = _words_to_planes(ops, in_bytes[units], placement)
        planes = _move(ops, planes, steps, weights * placement.code_bytes)
        for byte in range(placement.code_bytes):
            part = planes[byte * weights : (byte + 1) * weights]
            stored = _planes_to_rows(ops, part, placement, shape[1])
            codes[rows, :, byte] = stored[: rows.stop - rows.start, :columns] ^ flip
    return ops.as_codes(codes)


def _half_steps(placement: Placing) -> int:
    """Fours of slots' places along K in a unit: two to a step, but one to a step of vectors."""
    return placement.slots // (2 * placement.row_tiles)


def _unit_codes(placement: Placing) -> int:
    """Codes of a row in a unit: weights, or those of vectors, all books' side by side."""
    return 4 * _half_steps(placement) * placement.parts


def _check_range(ops: ArrayOps, placement: Placing, band: Any, rows: slice) -> None:
    """Raises `LowlpValueError` for a code of too many bits."""
    number = ops.as_int32(band[..., 0])
    if placement.code_bytes == 2:
        number = number + (ops.as_int32(band[..., 1]) << 8)
    limit, largest = 1 << placement.bits, int(number.max())
    if largest >= limit:
        raise LowlpValueError(
            f"codes: must be in 0..{limit - 1} for {placement.name}, got {largest} in rows "
            f"{rows.start} to {rows.stop - 1}"
        )


def _no_planes(ops: ArrayOps, placement: Placing, lanes: int) -> Any:
    """Planes [byte of a code, weight of a lane, lane of all units], still zero."""
    return ops.zero_bytes((placement.code_bytes, placement.slots * placement.parts, lanes))


def _bands(ops: ArrayOps, placement: Placing, n: int, units_k: int) -> list[tuple[slice, slice]]:
    """Rows of codes, and the units they make."""
    rows = placement.unit_rows
    units_n = -(-n // rows)
    bands = row_slices(units_n, units_k * placement.unit_k * rows, ops.block_elements)
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


def _pad(ops: ArrayOps, band: Any, placement: Placing, units: int) -> Any:
    """Codes [rows, K] in the rows of whole units."""
    rows, k = band.shape
    columns = -(-k // _unit_codes(placement)) * _unit_codes(placement)
    if (rows, k) == (units * placement.unit_rows, columns):
        return band
    codes = ops.zero_bytes((units * placement.unit_rows, columns))
    codes[:rows, :k] = band
    return codes


# Rows of codes are [unit along N, tile, half of the tile, row of 8, unit along K, half step, 4, part], a lane is a row
# of 8 and one of the 4, and a slot a tile, a half step and a half of the tile.
_ROWS_TO_PLANES = (1, 5, 2, 7, 0, 4, 3, 6)
_PLANES_TO_ROWS = tuple(int(axis) for axis in np.argsort(_ROWS_TO_PLANES))


def _rows_to_planes(ops: ArrayOps, stored: Any, placement: Placing) -> Any:
    tiles, halves, parts = placement.row_tiles, _half_steps(placement), placement.parts
    axes = stored.reshape(-1, tiles, 2, 8, stored.shape[1] // _unit_codes(placement), halves, 4, parts)
    return ops.permute(axes, _ROWS_TO_PLANES).reshape(placement.slots * parts, -1)


def _planes_to_rows(ops: ArrayOps, planes: Any, placement: Placing, units_k: int) -> Any:
    tiles, halves, parts = placement.row_tiles, _half_steps(placement), placement.parts
    axes = planes.reshape(tiles, halves, 2, parts, -1, units_k, 8, 4)
    return ops.permute(axes, _PLANES_TO_ROWS).reshape(-1, units_k * _unit_codes(placement))


def _planes_to_words(ops: ArrayOps, planes: Any, placement: Placing, shape: tuple[int, ...]) -> Any:
    """Planes [byte, lane] as [unit along N, unit along K, access, lane, word of the access, byte of the word]."""
    _, units_k, accesses, lanes, access = shape
    return ops.permute(planes.reshape(accesses, access, 4, -1, units_k, lanes), (3, 4, 0, 5, 1, 2))


def _words_to_planes(ops: ArrayOps, words: Any, placement: Placing) -> Any:
    return ops.permute(words, (2, 4, 5, 0, 1, 3)).reshape(placement.num_words * 4, -1)
