"""A product of packed weights and x, as a block program: what the tests of plans and of the pipeline run."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from lowlp._layout import Placement

import lowlp
from lowlp import language as ll
from lowlp.packing import pack, placement_name

ACTIVATIONS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
NAN_CODES = {"f8e4m3": [0x7F, 0xFF], "f8e5m2": [*range(0x7C, 0x80), *range(0xFC, 0x100)], "f8e3m4": []}
NAN_CODES["f8e3m4"] = [*range(0x70, 0x80), *range(0xF0, 0x100)]


def valid_codes(weight: str) -> np.ndarray[Any, Any]:
    """The codes of a type that are numbers."""
    codes = np.arange(1 << lowlp.dtype(weight).bits)
    return np.setdiff1d(codes, NAN_CODES.get(weight, []))


def parameters_of(activation: str) -> dict[str, Any]:
    """Of every product here: x, the packed weights, y."""
    return {
        "x": ll.pointer(activation, align=16),
        "weights": ll.pointer("uint32", align=16),
        "y": ll.pointer("f32"),
    }


def packed_product(n: int, k: int, m: int, weight: str, activation: str, *, warps: int = 1) -> ll.Kernel:
    """y [m, n] = x [m, k] * w [n, k]^T in f32, times the codec's prescale; a block makes the rows of `warps` units.

    Parameters: x, the packed weights, y. With `warps=4` and units of 64 rows the warps share a unit, 16 rows each.
    """
    placement = Placement.find(placement_name(lowlp.dtype(weight), activation))
    tiles = placement.row_tiles
    shared = tiles == warps > 1
    rows = "local" if shared or warps == 1 else "spatial"
    a = f"{'spatial' if shared else 'local'}({tiles}, 1).local(1, 4)"
    c = f"{'spatial' if shared else 'local'}({tiles}, 1)"
    outer = "" if shared or warps == 1 else f"{rows}({warps}, 1)."
    copies = "" if warps == 1 else f"reduce(spatial(1, 1, {warps}), dims=[2])."
    factor = lowlp.Codec(lowlp.dtype(weight), "channel").prescale(activation)
    block_rows = 16 * tiles * (1 if shared else warps)
    a_layout = lowlp.layout(f"{outer}{a}.column_local(2, 2).spatial(8, 4).local(1, 2)")
    c_layout = lowlp.layout(f"{outer}{c}.local(1, {m // 8}).local(2, 1).spatial(8, 4).local(1, 2)")
    x_layout = lowlp.layout(f"{copies}local({m // 8}, 8).spatial(8, 4).local(1, 2)")

    def body(x, weights, y):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        row = block * block_rows
        w_view = ll.view_packed(weights, shape=[n, k], dtype=weight, placement=placement.name)
        x_view = ll.view_global(x, shape=[m, k])
        y_view = ll.view_global(y, shape=[n, m], strides=[1, n])
        acc = ll.full(0.0, "f32", layout=c_layout)
        for step in ll.range(k // 64):
            codes = ll.load_packed(w_view, offsets=[row, step * 64], layout=a_layout)
            x_tile = ll.transpose(ll.load_global(x_view, offsets=[0, step * 64], layout=x_layout), [1, 0])
            if factor == 1.0:
                w_tile = ll.cast(codes, activation)
            else:
                w_tile = ll.cast(ll.cast(codes, "f32") * factor, activation)
            acc = ll.dot(w_tile, x_tile, acc)
        ll.store_global(acc, y_view, offsets=[row, 0])

    return ll.make_kernel(
        body,
        name="packed_product",
        parameters=parameters_of(activation),
        grid=lambda: (-(-n // block_rows),),
        num_threads=32 * warps,
    )


def packed_weights(codes: np.ndarray[Any, Any], weight: str, activation: str) -> np.ndarray[Any, Any]:
    """Codes [N, K] as packed words, one group a row."""
    return pack(codes.astype(np.uint8), codes.shape[1], lowlp.dtype(weight), activation)


def values_of(codes: np.ndarray[Any, Any], weight: str) -> np.ndarray[Any, Any]:
    return lowlp.dtype(weight).decode(codes.astype(np.uint8)).astype(np.float64)


def scaled_product(n: int, m: int, weight: str, activation: str, *, zeros: str = "") -> ll.Kernel:
    """y [m, n] = x [m, 64] * (s * w)^T, or (s * (w - z))^T with zeros of a type, rounded to the activation type twice.

    Parameters: x, the packed weights, s [n], y; and z [n]. A warp makes the rows of a unit.
    """
    placement = Placement.find(placement_name(lowlp.dtype(weight), activation))
    tiles = placement.row_tiles
    rows = 16 * tiles
    a_layout = lowlp.layout(f"local({tiles}, 4).column_local(2, 2).spatial(8, 4).local(1, 2)")
    c_layout = lowlp.layout(f"local({tiles}, {m // 8}).local(2, 1).spatial(8, 4).local(1, 2)")
    x_layout = lowlp.layout(f"local({m // 8}, 8).spatial(8, 4).local(1, 2)")
    column = a_layout.reduce([1], keep_dims=True)

    def body(x, weights, scales, y, zero_points):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        row = block * rows
        w_view = ll.view_packed(weights, shape=[n, 64], dtype=weight, placement=placement.name)
        s_tile = ll.load_global(ll.view_global(scales, shape=[n, 1]), offsets=[row, 0], layout=column)
        w_tile = ll.cast(ll.load_packed(w_view, offsets=[row, 0], layout=a_layout), activation)
        if zeros:
            z_tile = ll.load_global(ll.view_global(zero_points, shape=[n, 1]), offsets=[row, 0], layout=column)
            w_tile = w_tile - ll.cast(z_tile, activation)
        x_tile = ll.load_global(ll.view_global(x, shape=[m, 64]), offsets=[0, 0], layout=x_layout)
        zero = ll.full(0.0, "f32", layout=c_layout)
        y_tile = ll.dot(w_tile * s_tile, ll.transpose(x_tile, [1, 0]), zero)
        ll.store_global(y_tile, ll.view_global(y, shape=[n, m], strides=[1, n]), offsets=[row, 0])

    parameters = parameters_of(activation)
    y = parameters.pop("y")
    extra = {"zero_points": ll.pointer(zeros)} if zeros else {}
    return ll.make_kernel(
        body,
        name="scaled_product",
        parameters={**parameters, "scales": ll.pointer(activation), "y": y, **extra},
        grid=lambda: (-(-n // rows),),
        num_threads=32,
    )


def unrolled_product(units: int, weight: str, activation: str) -> ll.Kernel:
    """One unit's rows times 8 rows of x, over `units` units along K in a straight line, as `packed_product`."""
    placement = Placement.find(placement_name(lowlp.dtype(weight), activation))
    tiles, k = placement.row_tiles, 64 * units
    a_layout = lowlp.layout(f"local({tiles}, 4).column_local(2, 2).spatial(8, 4).local(1, 2)")
    x_layout = lowlp.layout("local(1, 8).spatial(8, 4).local(1, 2)")
    c_layout = lowlp.layout(f"local({tiles}, 1).local(2, 1).spatial(8, 4).local(1, 2)")

    def body(x, weights, y):  # type: ignore[no-untyped-def]
        w_view = ll.view_packed(weights, shape=[16 * tiles, k], dtype=weight, placement=placement.name)
        x_view = ll.view_global(x, shape=[8, k])
        y_view = ll.view_global(y, shape=[16 * tiles, 8], strides=[1, 16 * tiles])
        acc = ll.full(0.0, "f32", layout=c_layout)
        for unit in range(units):
            codes = ll.load_packed(w_view, offsets=[0, 64 * unit], layout=a_layout)
            x_rows = ll.load_global(x_view, offsets=[0, 64 * unit], layout=x_layout, in_bounds=True)
            acc = ll.dot(ll.cast(codes, activation), ll.transpose(x_rows, [1, 0]), acc)
        ll.store_global(acc, y_view, offsets=[0, 0], in_bounds=True)

    return ll.make_kernel(
        body,
        name="unrolled_product",
        parameters=parameters_of(activation),
        grid=lambda: (1,),
        num_threads=32,
    )


def warpgroup_product(n: int, k: int, weight: str, activation: str, *, scaled: bool = False) -> ll.Kernel:
    """y [128, n] = x [128, k] * w [n, k]^T in f32 by `wgmma` with weights in registers; a block makes 64 rows of w.

    Parameters: x, the packed weights, y; scales [n] of the activation type if `scaled`. Units of 64 or 32 rows are
    shared by the warps of the warpgroup.
    """
    m = 128
    placement = Placement.find(placement_name(lowlp.dtype(weight), activation))
    a_layout = lowlp.layout("spatial(4, 1).local(1, 4).column_local(2, 2).spatial(8, 4).local(1, 2)")
    c_layout = lowlp.layout(f"spatial(4, 1).local(1, {m // 8}).local(2, 1).spatial(8, 4).local(1, 2)")
    x_layout = lowlp.layout("local(8, 1).spatial(16, 8).local(1, 8)")
    column = a_layout.reduce([1], keep_dims=True)

    def body(x, weights, y, scales):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        row = block * 64
        w_view = ll.view_packed(weights, shape=[n, k], dtype=weight, placement=placement.name)
        x_view = ll.view_global(x, shape=[m, k])
        y_view = ll.view_global(y, shape=[n, m], strides=[1, n])
        x_shared = ll.alloc_shared(activation, [m, 64], layout=lowlp.swizzle(lowlp.local(m, 8), dim=1).local(1, 8))
        acc = ll.full(0.0, "f32", layout=c_layout)
        for step in ll.range(k // 64):
            x_tile = ll.load_global(x_view, offsets=[0, step * 64], layout=x_layout)
            ll.store_shared(x_tile, x_shared, offsets=[0, 0])
            codes = ll.load_packed(w_view, offsets=[row, step * 64], layout=a_layout)
            ll.fence_async()
            ll.synchronize()
            w_tile = ll.cast(codes, activation)
            if scaled:
                w_tile = w_tile * ll.load_global(ll.view_global(scales, shape=[n, 1]), offsets=[row, 0], layout=column)
            sums = ll.wgmma(w_tile, x_shared, acc, offsets=[0, 0])
            ll.wgmma_commit()
            (acc,) = ll.wgmma_wait(0, sums)
            ll.synchronize()
        ll.store_global(acc, y_view, offsets=[row, 0])

    return ll.make_kernel(
        body,
        name="warpgroup_product",
        parameters={**parameters_of(activation), **({"scales": ll.pointer(activation)} if scaled else {})},
        grid=lambda: (-(-n // 64),),
        num_threads=128,
    )
