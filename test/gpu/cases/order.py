"""What blocks share: atomics of all kinds, and a product whose blocks add up their sums in turn."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import BF16, EXAMPLES, Case
from lowlp import language as ll

BLOCKS, SIZE = 64, 64
LAYOUT = lowlp.spatial(32).local(2)


def atomic_kernel(kind: str, dtype: str) -> ll.Kernel:
    """y = what all blocks' rows of x make of it, in global memory; z the same in shared memory, by the first block."""

    @lowlp.kernel(grid=(BLOCKS,), num_threads=32, name=f"atomic_{kind}_{dtype}")
    def kernel(x: ll.pointer(dtype, align=16), y: ll.pointer(dtype, align=16)) -> None:
        (block,) = ll.block_indices()
        x_view = ll.view_global(x, shape=[BLOCKS, SIZE])
        y_view = ll.view_global(y, shape=[2, SIZE])
        row = ll.load_global(x_view, offsets=[block, 0], layout=LAYOUT)
        ll.atomic_rmw(kind, row, y_view, offsets=[0, 0])
        if block == 0:
            shared = ll.alloc_shared(dtype, [SIZE])
            ll.store_shared(row, shared, offsets=[0])
            ll.synchronize()
            for other in ll.range(1, BLOCKS):
                tile = ll.load_global(x_view, offsets=[other, 0], layout=LAYOUT)
                ll.atomic_rmw(kind, tile, shared, offsets=[0])
            ll.synchronize()
            ll.store_global(ll.load_shared(shared, offsets=[0], layout=LAYOUT), y_view, offsets=[1, 0])

    return kernel


def atomic_case(kind: str, dtype: str, arch: str) -> Case:
    """Whole numbers, whose sums are exact in any order."""
    random = np.random.default_rng(5)
    element: Any = {"bf16": BF16, "f16": np.float16, "f32": np.float32}.get(dtype, dtype)
    if dtype in ("int32", "uint32"):
        x = random.integers(-(2**31), 2**31, (BLOCKS, SIZE)).astype(np.int64).astype(np.uint32).view(element)
    else:
        x = random.integers(-2, 3, (BLOCKS, SIZE)).astype(element)
    start = x[0] if kind != "add" else np.zeros(SIZE, element)
    arguments: dict[str, Any] = {"x": x, "y": np.stack([start, start])}
    kernel = atomic_kernel(kind, dtype)
    kernel(*(value.copy() if name == "x" else value for name, value in arguments.items()))
    wanted = arguments["y"].copy()
    arguments["y"] = np.stack([start, start])
    if dtype == "uint32":
        arguments, wanted = {name: value.view("i4") for name, value in arguments.items()}, wanted.view("i4")
    return Case(kernel.name, lowlp.compile(kernel, arch), arguments, "y", wanted, 0.0)


def split_k_case(m: int, n: int, k: int, splits: int, arch: str) -> Case:
    """The result is the CPU target's, bit for bit: tensor cores sum in an order of their own, so small integers."""
    sys.path.insert(0, str(EXAMPLES))
    from split_k import make_matmul
    from transform_b import random_weights, transform

    a = np.random.default_rng(1).integers(-4, 5, (m, k)).astype(np.float16)
    b = random_weights(k, n)
    packed, _ = transform(b)
    program = make_matmul(n, k, splits)
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    arguments: dict[str, Any] = {"a": a, "transformed_b": packed, "c": np.zeros((m, n), np.float16), "m": m}
    return Case(f"split_k_{m}_{splits}", lowlp.compile(program, arch), arguments, "c", wanted, 1e-3)


def cases(arch: str) -> Iterator[Case]:
    for dtype in ("int32", "uint32"):
        for kind in ("add", "min", "max", "and", "or", "xor"):
            yield atomic_case(kind, dtype, arch)
    for dtype in ("f32", "f16", "bf16"):
        if dtype != "bf16" or arch not in ("sm_80", "sm_86", "sm_87", "sm_89"):
            yield atomic_case("add", dtype, arch)
    yield split_k_case(20, 64, 2048, 8, arch)
    yield split_k_case(1, 1024, 4096, 32, arch)  # 4096 blocks: more than fit at once
