"""A product of matrices of 1, 8 or 16 bits an element, C[M, N] = A[M, K] * B[N, K]^T, by way of shared memory.

Rows of both operands are copied as they are, and lie swizzled, so that `ldmatrix` reads them; B is transposed in
registers, which costs nothing.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import lowlp
from lowlp import language as ll

BM, BN = 32, 32
LAYOUT_C = lowlp.spatial(2, 2).local(1, 2).local(2, 1).spatial(8, 4).local(1, 2)
NUMPY = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "int8": np.int8, "uint8": np.uint8,
    "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "uint1": np.uint8,
}  # fmt: skip


def make_product(m: int, n: int, k: int, a_type: str, b_type: str) -> ll.Kernel:
    """The kernel; k elements must fill 16 bytes where they have fewer than 8 bits."""
    per_register = 32 // lowlp.dtype(a_type).bits
    chunk = 4 * per_register  # 16 bytes
    bk = 4 * chunk
    sums = "f32" if lowlp.dtype(a_type).is_float else "int32"
    layout_a = lowlp.reduce(lowlp.spatial(2, 1, 2), dims=[2]).column_local(2, 2).spatial(8, 4).local(1, per_register)
    # The fragment of B with its dimensions exchanged.
    layout_bt = lowlp.reduce(lowlp.spatial(2, 2, 1), dims=[0]).local(2, 2).spatial(8, 4).local(1, per_register)
    shared = lowlp.local(2, 1, 1).swizzle(lowlp.local(BM, 4), dim=1, log_step=1).local(1, chunk)

    @lowlp.kernel(grid=(-(-m // BM), -(-n // BN)), num_threads=128)
    def product(a: ll.pointer(a_type, align=16), b: ll.pointer(b_type, align=16), c: ll.pointer(sums)) -> None:
        bi, bj = ll.block_indices()
        a_view = ll.view_global(a, shape=[m, k])
        b_view = ll.view_global(b, shape=[n, k])
        c_view = ll.view_global(c, shape=[m, n])
        a_shared = ll.alloc_shared(a_type, [2, BM, bk], shared)
        b_shared = ll.alloc_shared(b_type, [2, BN, bk], shared)

        @ll.inline
        def preload(stage: int | ll.Scalar, step: int | ll.Scalar) -> None:
            ll.copy_async(a_view, a_shared, view_offsets=[bi * BM, step * bk], offsets=[stage, 0, 0], shape=[BM, bk])
            ll.copy_async(b_view, b_shared, view_offsets=[bj * BN, step * bk], offsets=[stage, 0, 0], shape=[BN, bk])
            ll.copy_async_commit()

        acc = ll.full(0, sums, layout=LAYOUT_C)
        preload(0, 0)
        stage = 0
        for step in ll.range(ll.ceildiv(k, bk)):
            ll.copy_async_wait(0)
            ll.synchronize()
            preload((stage + 1) % 2, step + 1)
            for part in range(bk // (2 * chunk)):
                offsets = [stage, 0, part * 2 * chunk]
                a_tile = ll.load_shared(a_shared, offsets=offsets, layout=layout_a)
                b_tile = ll.load_shared(b_shared, offsets=offsets, layout=layout_bt)
                acc = ll.dot(a_tile, ll.transpose(b_tile), acc)
            stage = (stage + 1) % 2
        ll.copy_async_wait(0)
        ll.store_global(acc, c_view, offsets=[bi * BM, bj * BN])

    return product


def random_matrix(shape: tuple[int, int], dtype: str, seed: int) -> np.ndarray:
    """Numbers of the type; of uint1, 0 and 1."""
    random = np.random.default_rng(seed)
    if not lowlp.dtype(dtype).is_float:
        element = lowlp.dtype(dtype)
        return random.integers(int(element.min), int(element.max) + 1, shape).astype(NUMPY[dtype])
    return random.standard_normal(shape, np.float32).astype(NUMPY[dtype])


def as_buffer(matrix: np.ndarray, dtype: str) -> np.ndarray:
    """The matrix as the kernel takes it: bits packed, 8-bit floats as bytes."""
    if dtype == "uint1":
        return np.packbits(matrix.reshape(-1), bitorder="little")
    return matrix.view(np.uint8) if dtype.startswith("f8") else matrix


def exact_product(a: np.ndarray, b: np.ndarray, a_type: str) -> np.ndarray:
    """A * B^T in float64, or in int32."""
    if lowlp.dtype(a_type).is_float:
        return a.astype(np.float64) @ b.astype(np.float64).T
    return (a.astype(np.int64) @ b.astype(np.int64).T).astype(np.int32)
