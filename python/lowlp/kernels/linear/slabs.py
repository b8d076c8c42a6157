"""Slabs: rows of the weights as they are meant, in the type of x and row by row, for a library to multiply by.

Where x has many rows, a library of products in halves is as fast as the tensor cores are, and to decode the weights
once, to memory, takes less than to decode them in the product for each tile of columns (docs/adr/0098). A slab has the
numbers of `dequantize()`, rounded once.

    step, segment, piece, part   as of products by warpgroups (`warpgroups`)
    share   some rows of one stage; of several stages where blocks of weights have books of their own. A block of the
            grid has every `blocks`-th share
    stored  a piece as threads store it: neighbours along K, 16 bytes of them, so that lines are written whole. Vectors
            of so many bytes are stored as they are looked up

Weights are made as for `scales_on='weights'`, or of codebooks from the entries of their vectors, in f32.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import replace
from typing import Any, Final

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp.schedules.device import Device

from .codebooks.entries import are_global, bytes_of_entries, needs_second_copies
from .codebooks.wide import VectorBlock, can_look_up_wide
from .codebooks.wide_plan import VectorPlan
from .operand_list import parameters_as_meant
from .parts import Arguments, as_f32, views_of_weights
from .scaled_weights import can_scale_weights
from .schedule import STEPS, Schedule
from .segments import Granule
from .spec import LinearSpec
from .warpgroup_layouts import Plan, can_go_wide
from .warpgroups import Block

_ELEMENTS: Final = 8
"""Neighbours that a thread stores, 16 bytes."""
_WARP: Final = 32
_BLOCKS: Final = 16
_BLOCKS_OF_VECTORS: Final = 4
_BLOCKS_OF_LARGE_BOOKS: Final = 1
"""Of a launch, for each multiprocessor: of weights in general; of vectors that are stored as they are looked up, or
looked up in global memory; and of those with large books, which take as long to be loaded as a share to be decoded."""
_LARGE_BOOKS: Final = 1 << 15
"""Bytes of these, at least."""
_STAGES_OF_ROWS: Final = 8
"""Of a share where blocks of rows have books, for all of K."""
_NUMBERS: Final = ("slab", "first", "rows", "blocks")
_PREFERRED_STEPS: Final = (4, 2, 8, 1, 3, 6)
"""Units along K that a block has at a time, as they are tried; others follow."""


def slab_spec(spec: LinearSpec) -> LinearSpec:
    """What slabs of the weights of a product depend on."""
    return LinearSpec(spec.n, spec.k, spec.codec, spec.activation, spec.activation, row_scale2=spec.row_scale2)


@functools.lru_cache(maxsize=1024)
def slab_schedule(spec: LinearSpec) -> Schedule | None:
    """How the kernel for slabs of `slab_spec` divides a block's work; None where there is no such kernel: for tables by
    group, K that is no multiple of 8, and what kernels by warpgroups that scale weights do not take."""
    if spec.is_of_bytes or spec.experts or spec.table == "group" or spec.k % _ELEMENTS:
        return None
    tiles = spec.rows_of_unit // 16
    # Large books leave an SM room for one block: it has many warps, which wait for nothing of each other.
    of_block = (4, 2, 1) if _stores_vectors(spec) else (1,)
    steps_along_k = dict.fromkeys((*_PREFERRED_STEPS, *STEPS))
    for row_tiles, warpgroups, steps in itertools.product(dict.fromkeys((tiles, 1)), of_block, steps_along_k):
        schedule = Schedule(
            stages=2, warpgroups=warpgroups, row_tiles=row_tiles, steps=steps, scales_on="weights", share_tiles=False
        )
        if spec.vectors is not None:
            # Several books are added before scales; of one there is nothing to add.
            schedule = schedule if spec.vectors.books > 1 else replace(schedule, scales_on="accumulators")
            schedule = replace(schedule, second_copies=needs_second_copies(spec))
            if can_look_up_wide(spec, schedule):
                return schedule
        elif can_go_wide(spec, schedule):
            return schedule
    return None


def _stores_vectors(spec: LinearSpec) -> bool:
    """Whether vectors are stored as they are looked up. What waits for the L2 cache does not wait for an exchange too,
    and writes whole lines."""
    return spec.vectors is not None and spec.vectors.vector >= _ELEMENTS and not are_global(spec)


def _stages_of_share(spec: LinearSpec, schedule: Schedule) -> int:
    """Stages along K that a block decodes at a time: of vectors those that share books of a block of weights."""
    if spec.book_columns:
        return max(1, spec.book_columns // schedule.stage_k)
    return _STAGES_OF_ROWS if spec.book_rows else 1


def blocks_for_slab(spec: LinearSpec, schedule: Schedule, rows: int, device: Device) -> int:
    """Among how many blocks of the grid so many rows are divided."""
    shares = -(-rows // schedule.rows) * -(-spec.k // (_stages_of_share(spec, schedule) * schedule.stage_k))
    return min(shares, _blocks_of_multiprocessor(spec, device) * device.multiprocessors)


def _blocks_of_multiprocessor(spec: LinearSpec, device: Device) -> int:
    """As they were measured to take least time, on an H200 (docs/adr/0120)."""
    if spec.vectors is None or spec.book_rows or spec.book_columns:
        return _BLOCKS
    if are_global(spec, device.shared_bytes):
        return _BLOCKS_OF_VECTORS
    if bytes_of_entries(spec) >= _LARGE_BOOKS:
        return _BLOCKS_OF_LARGE_BOOKS
    return _BLOCKS_OF_VECTORS if _stores_vectors(spec) else _BLOCKS


def stored_layout(warps: int, tiles: int, columns: int) -> Layout:
    """How threads store [16 rows for each warp's tiles, columns]: neighbours along K side by side."""
    lanes = columns // _ELEMENTS
    return (
        spatial(warps, 1) * local(16 * tiles * lanes // _WARP, 1) * spatial(_WARP // lanes, lanes) * local(1, _ELEMENTS)
    )


class _SlabPlan(Plan):
    """The numbers that spec and schedule fix; weights are made in f32 where in their type they would lack a factor."""

    def __init__(self, spec: LinearSpec, schedule: Schedule) -> None:
        super().__init__(spec, schedule)
        lacks_factor = bool(spec.table) or spec.scale == "e4m3" or spec.scale2
        self.in_f32 = not can_scale_weights(spec) or lacks_factor
        self.is_fitted = self.has_powers = False


class _SlabBlock(Block):
    """What a block does, as it is traced.

    first  row of the slab's first row
    row    that a share begins at
    """

    row: ll.Scalar

    def __init__(self, plan: Plan, operands: dict[str, Any], slab: Any, first: ll.Scalar, rows: ll.Scalar) -> None:
        self.plan, self.first = plan, first
        self.operands = Arguments(x=None, y=None, m=None, x_stride=None, **operands)
        (self.block,) = ll.block_indices()
        self.tiles = ll.ceildiv(rows, plan.rows)
        self.slab = ll.view_global(slab, shape=[rows, plan.spec.k])
        self.views = views_of_weights(plan.spec, self.operands)
        self.prepare_weights()

    def store(self, values: ll.Tile, part: int, k: ll.Scalar) -> None:
        """Stores a piece of a part of the rows, from weight k on."""
        at = self.row - self.first + part * self.plan.rows_of_part
        warps, (rows, columns) = 4 * self.plan.schedule.warpgroups, values.layout.shape
        stored = ll.convert_layout(values, stored_layout(warps, rows // (16 * warps), columns))
        ll.store_global(stored, self.slab, offsets=[at, k])

    @ll.inline
    def multiplied(self, accumulators, stage, granule: Granule, group, row, column, factors):  # type: ignore[no-untyped-def]
        """Stores a piece of all parts, in place of multiplying by it."""
        k = stage * self.plan.schedule.stage_k + self.k_of_piece(granule)
        for part in range(self.plan.parts):
            values = self.weights_piece(part, stage, granule, group, row)
            self.store(self.weight_factors.scaled(values, *factors[part]), part, k)
        return accumulators

    @property
    def shares_of_tile(self) -> int:
        """Of all of K."""
        return -(-self.plan.stages_of_tile // _stages_of_share(self.plan.spec, self.plan.schedule))

    def begin_share(self, share: ll.Scalar) -> ll.Scalar:
        """The number of a share along K, whose rows are what follows."""
        tile = share // self.shares_of_tile
        self.row = self.first + tile * self.plan.rows
        return share - tile * self.shares_of_tile

    @ll.inline
    def make(self, blocks):  # type: ignore[no-untyped-def]
        """Stores every `blocks`-th share."""
        for share in ll.range(self.block, self.tiles * self.shares_of_tile, blocks):
            self.store_share(self.begin_share(share))

    @ll.inline
    def store_share(self, stage):  # type: ignore[no-untyped-def]
        """Stores a share of these rows by its number along K: of other weights than codebooks a stage."""
        self.with_stage((), (), stage, self.row, 0)


class _VectorSlabBlock(_SlabBlock, VectorBlock):
    """The same of codebooks."""

    plan: VectorPlan

    def scales_of_books(self, stage: ll.Scalar | int) -> list[Any]:
        """What the entries of each book are multiplied by: one number each."""
        plan, books = self.plan, self.plan.vectors.books
        if not plan.vectors.has_book_scales:
            return [self.operands.codebooks_unscale] * books
        if plan.vectors.lattices:
            view = ll.view_global(self.operands.book_scales, shape=[books])
            return [ll.load_scalar(view, offsets=[book]) for book in range(books)]
        at = [self.rows_of_books(self.row)[0], stage // plan.stages_of_block if plan.switches_books else 0]
        return [ll.load_scalar(self.factors_view, offsets=[*at, book]) for book in range(books)]

    def store(self, values: ll.Tile, part: int, k: ll.Scalar) -> None:
        """As of other weights, or without an exchange."""
        if not _stores_vectors(self.plan.spec):
            super().store(values, part, k)
            return
        at = self.row - self.first + part * self.plan.rows_of_part
        ll.store_global(values, self.slab, offsets=[at, k])

    @ll.inline
    def store_stage(self, stage, books):  # type: ignore[no-untyped-def]
        """Stores a stage: the entries of its vectors, added in the order of the books, times scales."""
        plan, spec, stage_k = self.plan, self.plan.spec, self.plan.schedule.stage_k
        factors = self.scales_of_books(stage)
        for part in range(plan.parts):
            for span in range(stage_k // plan.span_k):
                codes = self.codes_of(part, span, stage, self.row)
                for piece in range(plan.span_k // plan.piece_k):
                    total: Any = None
                    for book, factor in enumerate(factors):
                        entries = ll.cast(self.entries(codes, piece, book, books), "f32") * factor
                        total = entries if total is None else total + entries
                    k = stage * stage_k + span * plan.span_k + piece * plan.piece_k
                    rows = total.layout.reduce([1], keep_dims=True)
                    view = ll.view_global(self.operands.scales, shape=[spec.groups, spec.n, 1])
                    at = [k // spec.group_size, plan.row_of(part, self.row), 0]
                    scale = as_f32(ll.load_global(view, offsets=at, layout=rows), spec.scale)
                    self.store(ll.cast(total * scale, spec.activation), part, k)

    @ll.inline
    def store_share(self, number):  # type: ignore[no-untyped-def]
        """All stages of a share. Books of all rows and all of K are in their cache before."""
        plan = self.plan
        stages = _stages_of_share(plan.spec, plan.schedule)
        first = number * stages
        books = self.books_in(self.enter(self.row, first))[0]
        for done in ll.range(ll.minimum(plan.stages_of_tile - first, stages)):
            self.store_stage(first + done, books)


def slab_kernel(spec: LinearSpec, schedule: Schedule) -> ll.Kernel:
    """The block program that writes rows of the weights of `spec`, divided as `slab_schedule` says. Its parameters are
    the operands of the weights, `slab` [rows, K], the row `first` of the weights that is the slab's first one, `rows`,
    and `blocks`, among which it is divided."""
    plan = _SlabPlan(spec, schedule) if spec.vectors is None else VectorPlan(spec, schedule)
    block = _SlabBlock if spec.vectors is None else _VectorSlabBlock

    def body(**operands: Any) -> None:
        slab, first, rows, blocks = (operands.pop(name) for name in _NUMBERS)
        block(plan, operands, slab, first, rows).make(blocks)

    return ll.make_kernel(
        body,
        name="slab_of_" + re.sub(r"[^0-9A-Za-z]", "_", spec.weight),
        parameters={
            **parameters_as_meant(spec, schedule),
            "slab": ll.pointer(spec.activation, align=16),
            "first": ll.i32,
            "rows": ll.i32,
            "blocks": ll.i32,
        },
        grid=lambda blocks: (blocks,),
        num_threads=schedule.threads,
    )
