"""The rows of x in the order of vectors (`lowlp_runtime.vector_order`), made before a product by warpgroups.

Pairs of elements are words, and a block of 4 vectors of v elements is a matrix of words [4 vectors, v / 2 of each],
which comes out transposed. Threads take 16 bytes each, load and store neighbours, and exchange words within a block.

    part   of a row, `PART` elements: what the threads of a block of the grid take at a time
    block  of the grid: a row, and every `blocks_of_row`-th part of it

Of four blocks of books that come side by side a thread takes the same places of each, and chooses for each turn which
of the four it is for a vector's lane. A part is then `PART` elements of each, so that of few rows three of four blocks
of the grid have none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lowlp import language as ll
from lowlp.layouts.register_layout import Layout, local, spatial
from lowlp_runtime.ordered_rows import PART, row_stride
from lowlp_runtime.vector_order import LANES, VectorOrder, padded_columns

from ..permuting import THREADS, make_ordering
from .blocks_at_once import exchanged

_PLACES: Final = spatial(THREADS) * local(PART // THREADS)
_WORDS: Final = spatial(THREADS) * local(PART // THREADS // 2)


def vector_order_kernel(k: int, order: VectorOrder, aligned: bool, dependent_launch: bool) -> ll.Kernel:
    """The block program for rows of `k` elements of 16 bits; its parameters are those of
    `lowlp_runtime.ordered_rows`, but for the permutation.

    aligned           x is 16-byte aligned and its row stride a multiple of 8 elements: wide loads
    dependent_launch  as for `LinearSpec`

    Requires that `order.block`, if any, divides `PART`.
    """
    body = _side_by_side(k, order, dependent_launch) if order.block else _in_turn(k, order.vector, dependent_launch)
    return make_ordering("order_vectors", body, aligned)


def _words(vector: int) -> tuple[Layout, Layout]:
    """How threads hold the words of a part, as they are loaded and as they are stored, both as [steps, vectors,
    pairs]."""
    steps, pairs = PART // (LANES * vector), vector // 2
    return _WORDS.reshape(steps, LANES, pairs), _WORDS.reshape(steps, pairs, LANES).permute(0, 2, 1)


def _in_turn(k: int, vector: int, dependent_launch: bool) -> Callable[..., None]:
    columns, (loaded, stored) = padded_columns(k), _words(vector)

    def body(x: Any, y: Any, m: Any, x_stride: Any, blocks_of_row: Any) -> None:
        if dependent_launch:
            ll.launch_dependents()
        row, first = ll.block_indices()
        x_view = ll.view_global(x, shape=[m, k], strides=[x_stride, 1])
        y_view = ll.view_global(y, shape=[m, columns], strides=[row_stride(columns), 1])
        if dependent_launch:
            # What was in front of it on the stream may have written x, and may read y.
            ll.wait_for_dependencies()
        part = ll.load_global(x_view, offsets=[row, first * PART], layout=_PLACES)
        for number in ll.range(first, -(-columns // PART), blocks_of_row):
            words = ll.view(part, dtype="uint32", layout=loaded)
            # On its way while this part is stored.
            part = ll.load_global(x_view, offsets=[row, (number + blocks_of_row) * PART], layout=_PLACES)
            places = ll.view(ll.convert_layout(words, stored), dtype="uint16", layout=_PLACES)
            ll.store_global(places, y_view, offsets=[row, number * PART])

    return body


def _side_by_side(k: int, order: VectorOrder, dependent_launch: bool) -> Callable[..., None]:
    vector, block, span = order
    groups, of_part, spans = k // (LANES * block), PART // block, block // span
    loaded, stored = _words(vector)
    held = _PLACES.reshape(of_part, 1, block)
    made = _PLACES.reshape(of_part, spans, 1, span)
    lanes = loaded.reduce([0, 2], keep_dims=True)

    def body(x: Any, y: Any, m: Any, x_stride: Any, blocks_of_row: Any) -> None:
        if dependent_launch:
            ll.launch_dependents()
        row, first = ll.block_indices()
        of_group = LANES * block
        x_view = ll.view_global(x, shape=[m, groups, LANES, block], strides=[x_stride, of_group, block, 1])
        strides = [row_stride(k), of_group, LANES * span, span, 1]
        y_view = ll.view_global(y, shape=[m, groups, spans, LANES, span], strides=strides)
        lane = ll.iota(1, layout=lanes, dtype="uint32")
        if dependent_launch:
            ll.wait_for_dependencies()
        for number in ll.range(first, -(-groups // of_part), blocks_of_row):
            blocks = [
                ll.load_global(x_view, offsets=[row, number * of_part, place, 0], layout=held) for place in range(LANES)
            ]
            turns = exchanged([ll.view(part, dtype="uint32", layout=loaded) for part in blocks], lane)
            for turn, words in enumerate(turns):
                places = ll.view(ll.convert_layout(words, stored), dtype="uint16", layout=made)
                ll.store_global(places, y_view, offsets=[row, number * of_part, 0, turn, 0])

    return body
