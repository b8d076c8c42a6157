"""The order of K in which kernels by warpgroups take x where weights are vectors of codebooks.

A lane has the vector of v weights that it looked up, 4 lanes the vectors of 4 v weights of a row. Its pairs are
registers of an operand, and a matrix instruction multiplies one of lane t by places 2t, 2t + 1 of 8 places of x. So in
each block of 4 v weights

    place  8 p + 2 t + i   has weight   v t + 2 p + i        i = 0, 1;  t = 0 to 3;  p = 0 to v / 2 - 1

which for v = 2 is no change, and for v = 8 a transposition of 4 x 4 words. Rows are padded to multiples of `UNIT_K`, by
places of zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNIT_K: Final = 64
"""Of which padded rows are multiples: a row of x of a unit is what tensor copies swizzle."""
LANES: Final = 4
"""Of a row, which hold vectors side by side."""


def padded_columns(k: int) -> int:
    """Columns of x in the order of vectors."""
    return -(-k // UNIT_K) * UNIT_K


def order_of_vectors(k: int, vector: int) -> NDArray[Any]:
    """int32 [padded_columns(k)]: which column of x has each place; k for places of zeros. Kernels compute it; this is
    what it is.

    k       columns of x
    vector  weights of a vector: 2, 4, 8 or 16
    """
    import numpy as np

    block = np.arange(LANES * vector).reshape(LANES, vector // 2, 2).transpose(1, 0, 2).reshape(-1)
    starts = np.arange(0, padded_columns(k), block.size)
    order: NDArray[Any] = np.minimum((starts[:, None] + block).reshape(-1), k).astype(np.int32)
    return order
