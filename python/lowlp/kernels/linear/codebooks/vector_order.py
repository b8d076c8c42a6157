"""The rows of x in the order of vectors (`lowlp_runtime.vector_order`), made before a product by warpgroups.

Pairs of elements are words, and a block of 4 vectors of v elements is a matrix of words [4 vectors, v / 2 of each],
which comes out transposed. Threads take 16 bytes each, load and store neighbours, and exchange words within a block.

    part   of a row, `PART` elements: what the threads of a block of the grid take at a time
    block  of the grid: a row, and every `blocks_of_row`-th part of it
"""

from __future__ import annotations

from typing import Any, Final

from lowlp import language as ll
from lowlp.layouts.register_layout import local, spatial
from lowlp_runtime.ordered_rows import PART, row_stride
from lowlp_runtime.vector_order import LANES, padded_columns

from ..permuting import THREADS, make_ordering

_PLACES: Final = spatial(THREADS) * local(PART // THREADS)
_WORDS: Final = spatial(THREADS) * local(PART // THREADS // 2)


def vector_order_kernel(k: int, vector: int, aligned: bool, dependent_launch: bool) -> ll.Kernel:
    """The block program for rows of `k` elements of 16 bits; its parameters are those of
    `lowlp_runtime.ordered_rows`, but for the permutation.

    vector            elements of a vector: 2, 4, 8 or 16
    aligned           x is 16-byte aligned and its row stride a multiple of 8 elements: wide loads
    dependent_launch  as for `LinearSpec`
    """
    columns, pairs = padded_columns(k), vector // 2
    blocks = PART // (LANES * vector)
    # Both as [blocks, vectors, pairs].
    loaded = _WORDS.reshape(blocks, LANES, pairs)
    stored = _WORDS.reshape(blocks, pairs, LANES).permute(0, 2, 1)

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

    return make_ordering("order_vectors", body, aligned)
