"""Products of weights that a program scales by groups, whose kernel allows that accumulators are scaled instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from packed_products import ACTIVATIONS, packed_weights, values_of

import lowlp
from lowlp import language as ll
from lowlp.packing import placement_name

N, K, GROUP = 64, 256, 128
CASES = [
    ("int4", "f16", "plain"),
    ("int4", "bf16", "plain"),
    ("f6e3m2", "f16", "plain"),
    ("int3", "bf16", "f32"),
    ("uint4", "f16", "zeros"),
    ("int5", "bf16", "zeros"),
    ("int4", "f16", "offsets"),
]
"""Types of weights and activations, and forms of `product`."""


def product(weight: str, activation: str, form: str, reassociate: bool = True) -> ll.Kernel:
    """y [m, N] = x [m, K] * v [N, K]^T in f32, with v = (w - z) * s, w * s + z, or (w * s) * 2 in f32, by groups."""
    with_zeros = form in ("zeros", "offsets")

    def body(x, weights, scales, zeros, y, m):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        kind = lowlp.dtype(weight)
        w_view = ll.view_packed(weights, shape=[N, K], dtype=kind, placement=placement_name(kind, activation))
        s_view = ll.view_global(scales, shape=[N, K // GROUP])
        x_view = ll.view_global(x, shape=[m, K])
        acc = ll.full(0.0, "f32", shape=[N, 8])
        for group in ll.range(K // GROUP):
            for step in range(2):
                at = group * GROUP + step * 64
                w = ll.load_packed(w_view, offsets=[0, at], shape=[N, 64])
                s = ll.load_global(s_view, offsets=[0, group], shape=[N, 1])
                if form == "f32":
                    values = ll.cast(ll.cast(w, "f32") * s * 2.0, activation)
                elif form == "zeros":
                    z = ll.load_global(ll.view_global(zeros, shape=[N, K // GROUP]), offsets=[0, group], shape=[N, 1])
                    values = (ll.cast(w, activation) - ll.cast(z, activation)) * s
                elif form == "offsets":
                    z = ll.load_global(ll.view_global(zeros, shape=[N, K // GROUP]), offsets=[0, group], shape=[N, 1])
                    values = ll.cast(w, activation) * s + z
                else:
                    values = ll.cast(w, activation) * s
                x_tile = ll.load_global(x_view, offsets=[block * 8, at], shape=[8, 64])
                acc = ll.dot(values, ll.transpose(x_tile), acc)
        ll.store_global(acc, ll.view_global(y, shape=[N, m], strides=[1, N]), offsets=[0, block * 8])

    return ll.make_kernel(
        body,
        name="product",
        parameters={
            "x": ll.pointer(activation, align=16),
            "weights": ll.pointer("uint32", align=16),
            "scales": ll.pointer("f32" if form == "f32" else activation),
            **({"zeros": ll.pointer("uint8" if form == "zeros" else activation)} if with_zeros else {}),
            "y": ll.pointer("f32"),
            "m": ll.i32,
        },
        grid=lambda m: (ll.ceildiv(m, 8),),
        num_threads=64,
        schedule=ll.KernelSchedule(reassociate=reassociate),
    )


def operands(weight: str, activation: str, form: str) -> tuple[list[Any], Any]:
    """What the kernel takes between x and y, and v in float64."""
    random = np.random.default_rng(4)
    codes = random.integers(0, 1 << lowlp.dtype(weight).bits, (N, K))
    scales = random.uniform(0.1, 2, (N, K // GROUP)).astype(np.float32 if form == "f32" else ACTIVATIONS[activation])
    zeros = random.integers(0, 16, (N, K // GROUP)).astype(np.uint8 if form == "zeros" else ACTIVATIONS[activation])
    wide = [np.repeat(array.astype(np.float64), GROUP, axis=1) for array in (scales, zeros)]
    values = values_of(codes, weight)
    wanted = {
        "plain": values * wide[0],
        "f32": values * wide[0] * 2,
        "zeros": (values - wide[1]) * wide[0],
        "offsets": values * wide[0] + wide[1],
    }[form]
    given = [packed_weights(codes, weight, activation), scales]
    return [*given, zeros] if form in ("zeros", "offsets") else given, wanted
