"""How warpgroups store what they have multiplied: as rows of y, through shared memory. Each does it by itself, so that
one may multiply while another stores (docs/adr/0105)."""

from __future__ import annotations

from typing import Final

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout
from lowlp.numeric.dtypes import DType

APART_BYTES: Final = 16
"""Between rows in shared memory, so that the eight of a matrix lie in different banks (`stmatrix`)."""


class ResultRows:
    """Where columns of a tile of y^T lie until they are stored, as parts of its rows.

    kind    of the elements of y
    stored  how threads hold such columns as they store them, a warpgroup the same rows of y^T as when it made them
    """

    def __init__(self, kind: DType, stored: Layout) -> None:
        rows, columns = stored.shape
        self.stored = stored
        self.place = ll.alloc_shared(kind, [columns, rows + 8 * APART_BYTES // kind.bits])

    def store(self, part: ll.Tile, y: ll.GlobalView, row: ll.Scalar, column: ll.Scalar) -> None:
        """Stores these columns of a tile of y^T from `row` and `column` on to the view of y; what lies beyond is left
        out."""
        # The warpgroup has loaded what was there before.
        ll.synchronize_warpgroups()
        ll.store_shared(ll.transpose(part), self.place, offsets=[0, 0], in_bounds=True)
        ll.synchronize_warpgroups()
        rows = ll.load_shared(self.place, offsets=[0, 0], layout=self.stored.permute([1, 0]), in_bounds=True)
        ll.store_global(rows, y, offsets=[column, row])
