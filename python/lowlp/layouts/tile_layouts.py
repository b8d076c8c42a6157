"""Layouts for tiles of which only the use is known, as the compiler's library chooses them."""

from __future__ import annotations

from collections.abc import Sequence

import lowlp._layout as _layout

from .register_layout import Layout, _call


def coalesce(shape: Sequence[int], bits: int, num_threads: int, dim: int = -1) -> Layout:
    """Consecutive threads hold consecutive vectors of up to 16 bytes along `dim`, then along the dimensions before.

    Raises `LowlpValueError` for a tile that is too large for any layout.
    """
    return Layout._wrap(_call(_layout.coalesce, list(shape), bits, num_threads, dim))


def find_fragments(
    m: int, n: int, k: int, bits: int, num_threads: int, by_warpgroups: bool
) -> list[tuple[Layout, Layout, Layout]]:
    """How `lowlp.dot` may hold a, b and c of a product [m, k] x [k, n] of elements of `bits` bits, best first."""
    ways = _call(_layout.find_fragments, m, n, k, bits, num_threads, by_warpgroups)
    return [(Layout._wrap(a), Layout._wrap(b), Layout._wrap(c)) for a, b, c in ways]


def hold_packed_units(rows: int, k: int, tiles_of_unit: int, steps_of_unit: int, num_threads: int) -> Layout | None:
    """How operand a of `lowlp.dot` is taken from packed units of `tiles_of_unit` tiles of 16 rows by `steps_of_unit`
    steps of 16 along K.

    None if rows and k are no whole units.
    """
    found = _call(_layout.hold_packed_units, rows, k, tiles_of_unit, steps_of_unit, num_threads)
    return None if found is None else Layout._wrap(found)
