"""Changes of layout in each way, and reductions across warps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import Case
from lowlp import language as ll

CONVERSIONS = {
    "registers": (lowlp.spatial(8, 4).local(2, 2), lowlp.spatial(8, 4).column_local(2, 2)),
    "lanes": (lowlp.spatial(8, 4), lowlp.column_spatial(8, 4)),
    "digits": (lowlp.local(2, 1).spatial(2, 16), lowlp.spatial(2, 1).local(2, 1).spatial(1, 16)),
    "warps": (lowlp.spatial(2, 32), lowlp.column_spatial(2, 32)),
    "square": (lowlp.local(32, 1).spatial(1, 32), lowlp.local(1, 32).spatial(32, 1)),
    "threes": (lowlp.spatial(32, 3).local(1, 2), lowlp.column_spatial(32, 3).local(1, 2)),
    "rows_to_fragments": (
        lowlp.local(4, 1).spatial(8, 16).local(1, 8),
        lowlp.spatial(4, 1).local(1, 16).column_spatial(4, 8).local(2, 1),
    ),
}
BLOCKS = 64


def conversion(name: str, dtype: str, first: lowlp.Layout, second: lowlp.Layout) -> ll.Kernel:
    """y = x, a tile a block, twice in each: the second use of scratch memory follows the first."""
    rows, columns = first.shape

    def body(x: ll.Pointer, y: ll.Pointer) -> None:
        (block,) = ll.block_indices()
        x_view = ll.view_global(x, shape=[BLOCKS * 2 * rows, columns])
        y_view = ll.view_global(y, shape=[BLOCKS * 2 * rows, columns])
        for half in ll.range(2):
            offsets = [(block * 2 + half) * rows, 0]
            tile = ll.load_global(x_view, offsets=offsets, layout=first)
            ll.store_global(ll.convert_layout(tile, second), y_view, offsets=offsets)

    parameters = {"x": ll.pointer(dtype, align=16), "y": ll.pointer(dtype, align=16)}
    return ll.make_kernel(body, name=name, parameters=parameters, grid=(BLOCKS,), num_threads=first.num_threads)


def reduction(name: str, kind: str, layout: lowlp.Layout) -> ll.Kernel:
    """y[b, i] = the sum, or the largest, of x[b, i, :]."""
    rows, columns = layout.shape

    def body(x: ll.Pointer, y: ll.Pointer) -> None:
        (block,) = ll.block_indices()
        x_view = ll.view_global(x, shape=[BLOCKS, rows, columns])
        y_view = ll.view_global(y, shape=[BLOCKS, rows])
        tile = ll.load_global(x_view, offsets=[block, 0, 0], layout=layout)
        ll.store_global(getattr(ll, kind)(tile, 1), y_view, offsets=[block, 0])

    parameters = {"x": ll.pointer("f32", align=16), "y": ll.pointer("f32")}
    return ll.make_kernel(body, name=name, parameters=parameters, grid=(BLOCKS,), num_threads=layout.num_threads)


def cases(arch: str) -> Iterator[Case]:
    """Conversions must give equal numbers; sums of small whole numbers are exact too."""
    rng = np.random.default_rng(3)
    for name, (first, second) in CONVERSIONS.items():
        for dtype, kind in {"f32": np.float32, "f16": np.float16, "uint8": np.uint8}.items():
            x = rng.integers(0, 200, (BLOCKS * 2 * first.shape[0], first.shape[1])).astype(kind)
            arguments: dict[str, Any] = {"x": x, "y": np.zeros_like(x)}
            case = f"convert_{name}_{dtype}"
            yield Case(case, lowlp.compile(conversion(case, dtype, first, second), arch), arguments, "y", x, 0)
        for dtype, bits in {"int4": 4, "uint3": 3}.items():
            x = rng.integers(0, 256, BLOCKS * 2 * first.num_elements * bits // 8).astype(np.uint8)
            arguments = {"x": x, "y": np.zeros_like(x)}
            case = f"convert_{name}_{dtype}"
            yield Case(case, lowlp.compile(conversion(case, dtype, first, second), arch), arguments, "y", x, 0)
    layouts = {
        "warps": lowlp.local(4, 1).spatial(1, 128).local(1, 4),
        "parts": lowlp.spatial(2, 4).spatial(4, 8).local(1, 3),
        "threes": lowlp.spatial(32, 3).local(2, 1),
    }
    for name, layout in layouts.items():
        for kind in ("sum", "max"):
            x = rng.integers(-100, 100, (BLOCKS, *layout.shape)).astype(np.float32)
            arguments = {"x": x, "y": np.zeros(x.shape[:2], np.float32)}
            case = f"reduce_{name}_{kind}"
            wanted = getattr(np, kind)(x, axis=2)
            yield Case(case, lowlp.compile(reduction(case, kind, layout), arch), arguments, "y", wanted, 0)
