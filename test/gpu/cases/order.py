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
COMBINE: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def atomic_kernel(kind: str, dtype: str) -> ll.Kernel:
    """y[0] = what all blocks make of their rows of x in global memory, y[1] the same in shared memory.

    The first block stores its row; the others wait for it, and the last one for them, to leave the words at zero.
    """

    @lowlp.kernel(grid=(BLOCKS,), num_threads=32, name=f"atomic_{kind}_{dtype}")
    def kernel(x: ll.pointer(dtype, align=16), y: ll.pointer(dtype, align=16)) -> None:
        (block,) = ll.block_indices()
        x_view = ll.view_global(x, shape=[BLOCKS, SIZE])
        y_view = ll.view_global(y, shape=[2, SIZE])
        words = ll.alloc_global("int32", [2], zeroed=True)
        row = ll.load_global(x_view, offsets=[block, 0], layout=LAYOUT)
        if block == 0:
            ll.store_global(row, y_view, offsets=[0, 0])
            ll.semaphore_release(words, offsets=[0], value=1)
            shared = ll.alloc_shared(dtype, [SIZE])
            ll.store_shared(row, shared, offsets=[0])
            ll.synchronize()
            for other in ll.range(1, BLOCKS):
                tile = ll.load_global(x_view, offsets=[other, 0], layout=LAYOUT)
                ll.atomic_rmw(kind, tile, shared, offsets=[0])
            ll.synchronize()
            ll.store_global(ll.load_shared(shared, offsets=[0], layout=LAYOUT), y_view, offsets=[1, 0])
        else:
            ll.semaphore_acquire(words, offsets=[0], value=1)
            ll.atomic_rmw(kind, row, y_view, offsets=[0, 0])
            if block < BLOCKS - 1:
                ll.semaphore_release(words, offsets=[1], value=1, add=True)
            else:
                ll.semaphore_acquire(words, offsets=[1], value=BLOCKS - 2)
                ll.semaphore_release(words, offsets=[0], value=0)
                ll.semaphore_release(words, offsets=[1], value=0)

    return kernel


def atomic_case(kind: str, dtype: str, arch: str) -> Case:
    """Whole numbers, whose sums are exact in any order."""
    random = np.random.default_rng(5)
    element: Any = {"bf16": BF16, "f16": np.float16, "f32": np.float32}.get(dtype, dtype)
    if dtype in ("int32", "uint32"):
        x = random.integers(0, 2**32, (BLOCKS, SIZE), np.uint32).view(element)
    else:
        x = random.integers(-2, 3, (BLOCKS, SIZE)).astype(element)
    wanted = x[0]
    for row in x[1:]:
        wanted = COMBINE[kind](wanted, row)
    kernel = atomic_kernel(kind, dtype)
    arguments: dict[str, Any] = {"x": x, "y": np.zeros((2, SIZE), element)}
    kernel(*arguments.values())
    both = np.stack([wanted, wanted])
    assert (arguments["y"] == both).all(), kernel.name
    if dtype == "uint32":
        arguments, both = {name: value.view("i4") for name, value in arguments.items()}, both.view("i4")
    return Case(kernel.name, lowlp.compile(kernel, arch), arguments, "y", both, 0.0)


def split_k_case(m: int, n: int, k: int, splits: int, arch: str) -> Case:
    """The result is the CPU target's, bit for bit: tensor cores sum in an order of their own, so small integers."""
    sys.path.insert(0, str(EXAMPLES))
    from split_k import DTYPE, make_matmul
    from transform_b import random_codes, transform

    a = np.random.default_rng(1).integers(-4, 5, (m, k)).astype(np.float16)
    codes = random_codes(k, n, DTYPE.name)
    packed, _ = transform(codes, DTYPE.name)
    program = make_matmul(n, k, splits)
    wanted = (a.astype(np.float64) @ DTYPE.decode(codes).astype(np.float64)).astype(np.float16)
    arguments: dict[str, Any] = {"a": a, "transformed_b": packed, "c": np.zeros((m, n), np.float16), "m": m}
    return Case(f"split_k_{m}_{splits}", lowlp.compile(program, arch), arguments, "c", wanted, 1e-3)


def cases(arch: str) -> Iterator[Case]:
    for dtype in ("int32", "uint32"):
        for kind in COMBINE:
            yield atomic_case(kind, dtype, arch)
    for dtype in ("f32", "f16", "bf16"):
        if dtype != "bf16" or arch not in ("sm_80", "sm_86", "sm_87", "sm_89"):
            yield atomic_case("add", dtype, arch)
    yield split_k_case(20, 64, 2048, 8, arch)
    yield split_k_case(1, 1024, 4096, 32, arch)  # 4096 blocks: more than fit at once
