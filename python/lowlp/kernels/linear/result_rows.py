"""How warpgroups store what they have multiplied: as rows of y, through shared memory. Each does it by itself, so that
one may multiply while another stores (docs/adr/0105)."""

from __future__ import annotations

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout
from lowlp.numeric.dtypes import DType

_APART_BYTES = 16
"""Between rows in shared memory, so that the eight of a matrix lie in different banks (`stmatrix`)."""


class ResultRows:
    """Where a tile of y^T lies until its rows are stored.

    kind    of the elements of y
    stored  how threads hold the tile as they store it, a warpgroup the same rows of y^T as when it has multiplied them
    """

    def __init__(self, kind: DType, stored: Layout) -> None:
        self.stored = stored
        rows, columns = stored.shape
        self.place = ll.alloc_shared(kind, [columns, rows + 8 * _APART_BYTES // kind.bits])

    def store(self, result: ll.Tile, y: ll.GlobalView, row: ll.Scalar, column: ll.Scalar) -> None:
        """Stores a tile of y^T from `row` and `column` on to the view of y; what lies beyond is left out."""
        # The warpgroup has loaded what was there before.
        ll.synchronize_warpgroups()
        ll.store_shared(ll.transpose(result), self.place, offsets=[0, 0], in_bounds=True)
        ll.synchronize_warpgroups()
        rows = ll.load_shared(self.place, offsets=[0, 0], layout=self.stored.permute([1, 0]), in_bounds=True)
        ll.store_global(rows, y, offsets=[column, row])
