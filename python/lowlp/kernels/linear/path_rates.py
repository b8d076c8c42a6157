"""Rates by which products of bits or of bytes are chosen; no compiler is needed to read them."""

from __future__ import annotations

from typing import Final, NamedTuple


class PartsOfBytes(NamedTuple):
    """The time of products of planes over that of bytes: a part whatever the widths are, for results and the exchange
    of sums, and a part for each product of two planes."""

    fixed: float
    product: float


MANY_ROWS: Final = PartsOfBytes(0.25, 0.11)
"""By `wgmma`: W1A1, W1A2, W2A2, W3A3 and W4A4, 4096 x 4096 with 4096 rows on one H200 (docs/adr/0065)."""
FEW_ROWS: Final = PartsOfBytes(0.74, 0.008)
"""Of rows whose planes are at most `MOST_PLANES`: the same with 16 rows, where weights are what has to be read."""
MOST_PLANES: Final = 256
BY_WARPS: Final = PartsOfBytes(0.0, 0.125)
"""By `mma.sync`: rates of the instructions alone, 7600 and 950 x 10^12 operations a second."""
LEAST_GAIN: Final = 1.1
"""So much faster than bytes planes must be: about equal, bytes take scales of groups and any number of bits."""


def gain_of_planes(p: int, q: int, has_warpgroups: bool = True, rows: int | None = None) -> float:
    """How many times as fast as products of bytes are those of planes of p bits by q.

    rows  of x; None: many
    """
    parts = BY_WARPS if not has_warpgroups else MANY_ROWS
    if has_warpgroups and rows is not None and rows * q <= MOST_PLANES:
        parts = FEW_ROWS
    return 1 / (parts.fixed + parts.product * p * q)
