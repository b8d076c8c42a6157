"""The rows of x with their columns in the order in which weights are packed: y[i, j] = x[i, permutation[j]].

It goes before a product with weights that have a permutation. Elements are 16 bits of any type. A block brings a row of
x to shared memory, all of it, and gathers some parts of the row there: places in a row of global memory would each take
a sector of 32 bytes. Rows that shared memory does not hold are gathered where they are.

    part   neighbours that the threads of a block gather at a time, `PART` of them
    block  a row, and every `blocks_of_row`-th part of it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lowlp import language as ll
from lowlp.compiler.targets import target
from lowlp.layouts.register_layout import local, spatial
from lowlp_runtime.ordered_rows import PART, row_stride

THREADS: Final = 256
_AT_ONCE = 8
"""Parts of a row whose loads a thread begins before it stores the first."""
_RESERVED_BYTES = 1024
"""Of shared memory, which the architecture keeps for itself."""


def permuting_kernel(k: int, aligned: bool, dependent_launch: bool, arch: str) -> ll.Kernel:
    """The block program for rows of `k` elements; its parameters are those of `lowlp_runtime.ordered_rows`.

    aligned           x is 16-byte aligned and its row stride a multiple of 8 elements: wide loads
    dependent_launch  as for `LinearSpec`, of the permutation
    """
    parts = -(-k // PART)
    held_bytes = 2 * PART * parts
    in_shared = held_bytes <= target(arch).max_shared_bytes_per_block - _RESERVED_BYTES
    layout = spatial(THREADS) * local(PART // THREADS)

    def body(x: Any, permutation: Any, y: Any, m: Any, x_stride: Any, blocks_of_row: Any) -> None:
        if dependent_launch:
            ll.launch_dependents()
        row, first = ll.block_indices()
        x_view = ll.view_global(x, shape=[m, k], strides=[x_stride, 1])
        y_view = ll.view_global(y, shape=[m, k], strides=[row_stride(k), 1])
        order_view = ll.view_global(permutation, shape=[k])
        places = ll.load_global(order_view, offsets=[first * PART], layout=layout)
        if dependent_launch:
            # What was in front of it on the stream may have written x, and may read y.
            ll.wait_for_dependencies()
        if in_shared:
            held = ll.alloc_shared("uint16", [PART * parts])
            for group in ll.range(-(-parts // _AT_ONCE)):
                starts = [(group * _AT_ONCE + number) * PART for number in range(min(_AT_ONCE, parts))]
                tiles = [ll.load_global(x_view, offsets=[row, start], layout=layout) for start in starts]
                for start, tile in zip(starts, tiles, strict=True):
                    ll.store_shared(tile, held, offsets=[start])
            ll.synchronize()
        for part in ll.range(first, parts, blocks_of_row):
            if in_shared:
                gathered = ll.lookup(held, places)
            else:
                gathered = ll.gather_global(x_view, places, dim=0, offsets=[row, 0], layout=layout)
            ll.store_global(gathered, y_view, offsets=[row, part * PART])
            places = ll.load_global(order_view, offsets=[(part + blocks_of_row) * PART], layout=layout)

    order = {"permutation": ll.pointer("int32", align=16, constant=dependent_launch)}
    return make_ordering("permute_columns", body, aligned, order)


def make_ordering(
    name: str, body: Callable[..., None], aligned: bool, order: dict[str, ll.Parameter] | None = None
) -> ll.Kernel:
    """The kernel that puts rows in order as `body` does, by blocks of `THREADS` threads; `order` is the parameter that
    says which, if any."""
    return ll.make_kernel(
        body,
        name=name,
        parameters={
            "x": ll.pointer("uint16", align=16 if aligned else None),
            **(order or {}),
            "y": ll.pointer("uint16", align=16),
            "m": ll.i32,
            "x_stride": ll.integer(64, divisible_by=8 if aligned else 1),
            "blocks_of_row": ll.i32,
        },
        grid=lambda m, blocks_of_row: (m, blocks_of_row),
        num_threads=THREADS,
    )
