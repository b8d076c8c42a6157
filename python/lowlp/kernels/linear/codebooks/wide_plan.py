"""The numbers and layouts of a kernel for weights of codebooks by warpgroups (`wide`)."""

from __future__ import annotations

import math

from lowlp.layouts.register_layout import Layout, column_local, local, reduce, spatial
from lowlp.numeric.vectors import Vectors
from lowlp_runtime.vector_order import LANES

from ..parts import STEP_K, UNIT_K, X_FRAGMENT
from ..schedule import Schedule
from ..spec import LinearSpec
from ..warpgroup_layouts import Layouts, Plan, tiles_of_warp
from .book_sums import Placed
from .lattice_books import PLACED_LATTICE
from .lattice_tables import stored_codes
from .slice_sums import ended_layout
from .spread_books import PLACED_INT8


class VectorPlan(Plan):
    """The numbers and layouts that spec and schedule fix, beside those of any kernel by warpgroups.

    segment     weights of a row that share all that multiplies them; of the whole row `is_one`
    piece_k     weights of a row in a piece
    span_k      in a span, of which a stage has `spans`, and a unit `parts_of_unit`
    block_rows, block_k  that share books, or have books that come at once
    at_once     blocks along K that come at once
    are_added   entries of several books before they are multiplied
    held        the type that entries have then
    placed      how numbers of books that are added are placed in halves; None where entries are added
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        super().__init__(spec, schedule)
        vectors = spec.vectors
        assert vectors is not None
        self.vectors = vectors
        self.at_once = schedule.blocks_at_once
        self.block_rows, self.block_k = spec.book_rows or spec.n, self.at_once * (spec.book_columns or spec.k)
        self.segment = math.gcd(spec.group_size, self.block_k) if vectors.has_book_scales else spec.group_size
        self.is_one = self.ends_with_scales = self.segment >= spec.k
        self.tiles = tiles_of_warp(spec, schedule)
        self.step_k = LANES * vectors.vector
        most = max(UNIT_K // self.tiles, STEP_K, self.step_k)
        self.slices = schedule.slices
        self.span_k = min(schedule.stage_k // (self.slices * self.at_once), spec.unit_k)
        self.piece_k = math.gcd(most, self.span_k, self.span_k if self.is_one else self.segment)
        self.parts_of_unit = spec.unit_k // self.span_k
        self.are_added = self.on_weights and vectors.books > 1
        self.held = "f16" if self.are_added and vectors.has_book_scales else spec.activation
        self.placed = _placed(vectors) if self.are_added else None
        self.warps = 4 * schedule.warpgroups_of_slice
        self.segment_in_stage = schedule.stage_k if self.is_one else min(self.segment, schedule.stage_k)

    def _layouts(self) -> Layouts:
        found = super()._layouts()
        fragments = column_local(self.schedule.columns // 8, self.piece_k // STEP_K) * X_FRAGMENT
        found.x = reduce(spatial(1, 1, self.warps), dims=[2]) * fragments
        if self.slices > 1:
            found.x = spatial(self.slices, 1, 1) * found.x.unsqueeze(0)
            found.ended = found.stored = ended_layout(self.schedule, self.rows_of_part)
            found.taken = local(found.ended.num_local, 1) * spatial(1, self.schedule.threads)
            found.given = local(self.schedule.cluster, 1, 1) * found.taken.unsqueeze(0)
        return found

    @property
    def switches_books(self) -> bool:
        """Whether a tile has several blocks of books along K."""
        return self.block_k < self.spec.k

    @property
    def has_blocks_of_rows(self) -> bool:
        """Whether tiles one above the other have books of their own."""
        return self.block_rows < self.spec.n

    @property
    def has_blocks(self) -> bool:
        """Whether blocks of weights have books of their own."""
        return self.switches_books or self.has_blocks_of_rows

    @property
    def changes_books(self) -> bool:
        """Whether a block of the grid needs several books, one after the other: those of a tile's blocks along K, or of
        tiles of other rows."""
        return self.switches_books or (self.has_blocks_of_rows and not self.schedule.has_tile_each)

    @property
    def stages_of_block(self) -> int:
        """Stages of a block of K that shares books."""
        return self.block_k // self.schedule.stage_k

    @property
    def codes(self) -> Layout:
        """How threads hold the codes of a span of each slice, [rows of a part, codes]."""
        stored = stored_codes(self.vectors)
        of_span = local(self.tiles, self.span_k // self.step_k) * local(2, 1) * spatial(8, LANES) * local(1, stored)
        return spatial(1, self.slices) * spatial(self.warps, 1) * of_span

    def codes_of_pieces(self, books: int) -> Layout:
        """The same registers as [piece, book, rows, codes]."""
        warps = spatial(1, 1, 1, self.slices) * spatial(1, 1, self.warps, 1) * local(1, 1, self.tiles, 1)
        steps = local(self.span_k // self.piece_k, 1, 1, self.piece_k // self.step_k)
        return warps * steps * local(1, 1, 2, 1) * spatial(1, 1, 8, LANES) * local(1, books, 1, 1)

    @property
    def weights_of_piece(self) -> Layout:
        """How threads hold the weights of a piece, in the order of K that x has."""
        steps = local(self.tiles, self.piece_k // self.step_k)
        return (
            spatial(1, self.slices)
            * spatial(self.warps, 1)
            * steps
            * local(2, self.vectors.vector // 2)
            * spatial(8, LANES)
            * local(1, 2)
        )


def _placed(vectors: Vectors) -> Placed | None:
    """How numbers of books with scales are placed in halves; None of entries of f16, bf16 and e4m3."""
    if vectors.lattices:
        return PLACED_LATTICE
    return PLACED_INT8 if vectors.entries == "int8" else None
