"""The order of K in which kernels by warpgroups take x where weights are vectors of codebooks.

A lane has the vector of v weights that it looked up, 4 lanes the vectors of 4 v weights of a row. Its pairs are
registers of an operand, and a matrix instruction multiplies one of lane t by places 2t, 2t + 1 of 8 places of x. So in
each block of 4 v weights

    place  8 p + 2 t + i   has weight   v t + 2 p + i        i = 0, 1;  t = 0 to 3;  p = 0 to v / 2 - 1

which for v = 2 is no change, and for v = 8 a transposition of 4 x 4 words. Rows are padded to multiples of `UNIT_K`, by
places of zeros.

Where each block of B weights along K has books of its own, a kernel may take four blocks side by side, S weights of
each at a time, and let lane t begin with block t: at turn r, 0 to 3, it has block r ^ t. So in each 4 B weights, for
v = 2 too,

    place  4 S h + S r + 4 v s + 8 p + 2 t + i   has weight   B (r ^ t) + S h + 4 v s + v t + 2 p + i

for h = 0 to B / S - 1 and s = 0 to S / 4 v - 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNIT_K: Final = 64
"""Of which padded rows are multiples: a row of x of a unit is what tensor copies swizzle."""
LANES: Final = 4
"""Of a row, which hold vectors side by side."""


def padded_columns(k: int) -> int:
    """Columns of x in the order of vectors."""
    return -(-k // UNIT_K) * UNIT_K


class VectorOrder(NamedTuple):
    """The order of vectors of `vector` weights, 2, 4, 8 or 16.

    block, span  B and S, where four blocks come side by side; 0: they come one after the other
    """

    vector: int
    block: int = 0
    span: int = 0


def order_of_vectors(k: int, order: VectorOrder) -> NDArray[Any]:
    """int32 [padded_columns(k)]: which column of x has each place; k for places of zeros. Kernels compute it; this is
    what it is.

    k  columns of x; with `block` a multiple of 4 of these
    """
    import numpy as np

    vector, block, span = order
    places = np.arange(padded_columns(k))
    if block:
        group, at = np.divmod(places, LANES * block)
        part, at = np.divmod(at, LANES * span)
        turn, at = np.divmod(at, span)
        # Where the weight would be if lanes had the same block.
        starts = (group * LANES + turn) * block + part * span
    else:
        starts, at = np.zeros_like(places), places
    step, at = np.divmod(at, LANES * vector)
    pair, at = np.divmod(at, 2 * LANES)
    lane, i = np.divmod(at, 2)
    weights = starts + step * LANES * vector + lane * vector + 2 * pair + i
    if block:
        weights += ((turn ^ lane) - turn) * block
    found: NDArray[Any] = np.minimum(weights, k).astype(np.int32)
    return found
