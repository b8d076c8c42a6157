"""The numbers and layouts of kernels for few rows of x and weights of codebooks (`program`)."""

from __future__ import annotations

import math
from typing import Any

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, column_local, local, reduce, spatial
from lowlp_runtime.vector_order import LANES

from ..parts import A_FRAGMENT, ACCUMULATOR_FRAGMENT, STEP_K, X_FRAGMENT
from ..schedule import THROUGH_SHARED, Schedule
from ..spec import LinearSpec


class ProgramPlan:
    """The numbers and layouts that spec and schedule fix.

    rows           of y^T that a block makes
    unit_k         weights of a row that are loaded at a time: of a stage of x, where there are some; else of a unit
    chunks         of a unit, `chunk_k` weights of a row each
    segment        weights of a row that share scale and books
    block_rows, block_k  that share books
    granule        weights of a row that are one block's, where K is divided
    exchanges      whether vectors go through shared memory
    sums           accumulators beside the result
    stages         of x in shared memory; 0: none
    staged_rows    of x in a stage, and of results that a block has
    """

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        vectors = spec.vectors
        assert vectors is not None
        self.spec, self.schedule, self.vectors = spec, schedule, vectors
        self.stages = schedule.stages
        self.row_tiles = schedule.row_tiles if schedule.stages else spec.rows_of_unit // 16
        self.unit_k = spec.unit_k * (schedule.steps if schedule.stages else 1)
        self.column_tiles = schedule.columns // 8
        self.staged_rows = schedule.staged_rows or schedule.columns
        self.rows = 16 * schedule.warps * self.row_tiles
        step_k = LANES * vectors.vector
        self.chunk_k = max(STEP_K, step_k)
        self.chunks, self.steps = self.unit_k // self.chunk_k, self.chunk_k // step_k
        self.block_rows, self.block_k = spec.book_rows or spec.n, spec.book_columns or spec.k
        self.segment = segment_of(spec)
        self.granule = self._granule()
        self.exchanges = schedule.codebooks in THROUGH_SHARED
        self.sums = vectors.books if vectors.has_book_scales else 1
        self.accumulators = spatial(schedule.warps, 1) * local(self.row_tiles, self.column_tiles) * ACCUMULATOR_FRAGMENT
        self.row = self.accumulators.reduce([1], keep_dims=True)

    @property
    def has_whole_segments(self) -> bool:
        """Whether segments are whole units, or whole chunks of which a unit has whole segments."""
        unit_k = self.unit_k
        ends_units = self.block_k >= self.spec.k or self.block_k % unit_k == 0
        has_several = self.segment % self.chunk_k == 0 and unit_k % self.segment == 0 and ends_units
        return self.segment % unit_k == 0 or has_several

    @property
    def granules(self) -> int:
        """Of a row."""
        return -(-self.spec.k // self.granule)

    def _granule(self) -> int:
        if self.block_k < self.spec.k:
            return self.block_k
        return self.unit_k if self.has_whole_segments else self.segment

    def tiles(self, m: Any) -> tuple[Any]:
        """Of y^T, for m rows of x."""
        return (ll.ceildiv(m, self.staged_rows) * -(-self.spec.columns_of_y // self.rows),)

    def codes(self, books: int) -> Layout:
        """How threads hold the codes of so many books for a unit of each warp, [rows, codes]."""
        of_unit = local(self.row_tiles, self.chunks * self.steps) * local(2, 1) * spatial(8, LANES) * local(1, books)
        return spatial(self.schedule.warps, 1) * of_unit

    def chunks_of_codes(self, books: int) -> Layout:
        """The same registers as [chunk, book, rows, codes]."""
        warps = spatial(1, 1, self.schedule.warps, 1) * local(1, 1, self.row_tiles, 1)
        rows = local(self.chunks, 1, 1, self.steps) * local(1, 1, 2, 1) * spatial(1, 1, 8, LANES)
        return warps * rows * local(1, books, 1, 1)

    @property
    def w(self) -> Layout:
        """How threads hold a chunk of weights that were exchanged."""
        return spatial(self.schedule.warps, 1) * local(self.row_tiles, self.chunk_k // STEP_K) * A_FRAGMENT

    @property
    def x(self) -> Layout:
        """How threads hold x of a chunk, [rows of x, weights], of which all warps hold the same."""
        if self.exchanges:
            return self._replicas * column_local(self.column_tiles, self.chunk_k // STEP_K) * X_FRAGMENT
        fragments = local(self.column_tiles, self.steps) * spatial(8, LANES) * local(1, self.vectors.vector)
        return self._replicas * fragments

    @property
    def x_of_stage(self) -> Layout:
        """The same of a stage that has fewer rows than there are columns, which get them in turn."""
        if self.staged_rows >= 8:
            return self.x
        rows = reduce(spatial(8 // self.staged_rows, self.staged_rows, LANES), dims=[0])
        return self._replicas * local(1, self.steps) * rows * local(1, self.vectors.vector)

    @property
    def _replicas(self) -> Layout:
        return reduce(spatial(1, 1, self.schedule.warps), dims=[2])


def segment_of(spec: LinearSpec) -> int:
    """Weights of a row that share scale and books."""
    return math.gcd(spec.group_size, spec.book_columns or spec.k)
