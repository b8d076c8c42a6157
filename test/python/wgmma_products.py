"""Products by warpgroups, C[M, N] = A[M, K] * B[N, K]^T: A in registers, B staged in shared memory.

Two ways to add up: `chained` leaves the accumulators in flight from one stage of K to the next, as plain products do;
`scaled` takes the accumulators of each stage and adds them to a tile, as a product with a scale for each group does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import small_type_products as products

import lowlp
from lowlp import language as ll

STAGES = 3


@dataclass(frozen=True)
class Product:
    """A product, and how it is made; `mistake` leaves out what it names. K is an odd number of times bk if chained."""

    m: int = 64
    n: int = 16
    k: int = 192
    a_type: str = "f16"
    b_type: str = "f16"
    swizzle: int = 128  # bytes, or 0
    bk: int = 64
    warpgroups: int = 1
    way: str = "chained"
    staging: str = "copy_async"  # or store_shared, or copy_tensor
    order: str = "fragments"  # of registers, or other
    mistake: str = ""

    @property
    def name(self) -> str:
        """Names the product among all."""
        return (
            f"{self.a_type}_{self.b_type}_{self.m}x{self.n}x{self.k}_swizzle{self.swizzle}_bk{self.bk}"
            f"_{self.way}_{self.staging}_{self.order}_w{self.warpgroups}"
        )


def shared_layout(product: Product) -> object:
    """One of the hardware's layouts, with stages."""
    element_bytes = lowlp.dtype(product.b_type).bits // 8
    row_bytes, per_chunk = product.bk * element_bytes, 16 // element_bytes
    if not product.swizzle:
        return lowlp.local(STAGES, product.n // 8, row_bytes // 16).local(8, per_chunk)
    rows = lowlp.local(product.n, product.swizzle // 16)
    log_step = {128: 0, 64: 1, 32: 2}[product.swizzle]
    outer = lowlp.local(STAGES, 1, row_bytes // product.swizzle)
    return outer.swizzle(rows, dim=1, log_step=log_step).local(1, per_chunk)


def register_layouts(product: Product) -> tuple[lowlp.Layout, lowlp.Layout]:
    """Of A and C: in the order of the instruction, or in another one."""
    warps = lowlp.spatial(4 * product.warpgroups, 1)
    per_register = 32 // lowlp.dtype(product.a_type).bits
    steps, columns = product.bk // (8 * per_register), product.n // 8
    if product.order == "fragments":
        a = warps.local(1, steps).column_local(2, 2)
        c = warps.local(1, columns).local(2, 1)
    else:
        a, c = warps.local(1, steps).local(2, 2), warps.column_local(2, columns).local(1, 1)
        c = warps.local(2, columns) if columns > 1 else c
    return a.spatial(8, 4).local(1, per_register), c.spatial(8, 4).local(1, 2)


def make_product(product: Product) -> ll.Kernel:
    """The kernel, of arguments a, b and c."""
    m, n, k, bk, mistake = product.m, product.n, product.k, product.bk, product.mistake
    layout_a, layout_c = register_layouts(product)
    bm = 64 * product.warpgroups
    threads = 128 * product.warpgroups
    accumulators_type = "f32" if lowlp.dtype(product.a_type).is_float else "int32"
    rows = lowlp.spatial(threads // 16, 16).local(-(-n // (threads // 16)), bk // 16)
    steps = k // bk

    @lowlp.kernel(grid=(m // bm,), num_threads=threads)
    def wgmma_product(
        a: ll.pointer(product.a_type, align=16),
        b: ll.pointer(product.b_type, align=16),
        c: ll.pointer(accumulators_type),
    ) -> None:
        (block,) = ll.block_indices()
        a_view = ll.view_global(a, shape=[m, k])
        b_view = ll.view_global(b, shape=[n, k])
        c_view = ll.view_global(c, shape=[m, n])
        b_shared = ll.alloc_shared(product.b_type, [STAGES, n, bk], shared_layout(product))
        full = ll.alloc_mbarriers(STAGES, arrivals=1) if product.staging == "copy_tensor" else None
        if full is not None:
            ll.synchronize()

        @ll.inline
        def fill(step: int | ll.Scalar) -> None:
            """Begins to fill the stage of a step."""
            stage = step % STAGES
            if full is not None:
                ll.mbarrier_expect_bytes(full, stage, num_bytes=n * bk * lowlp.dtype(product.b_type).bits // 8)
                ll.copy_tensor(
                    b_view, b_shared, view_offsets=[0, step * bk], offsets=[stage, 0, 0], shape=[n, bk],
                    barriers=full, index=stage,
                )  # fmt: skip
            elif product.staging == "copy_async":
                ll.copy_async(b_view, b_shared, view_offsets=[0, step * bk], offsets=[stage, 0, 0], shape=[n, bk])
                ll.copy_async_commit()
            else:
                ll.store_shared(
                    ll.load_global(b_view, offsets=[0, step * bk], layout=rows), b_shared, offsets=[stage, 0, 0]
                )

        @ll.inline
        def filled(step: int | ll.Scalar) -> None:
            """Waits until the stage of a step is filled, and may be multiplied by."""
            if full is not None:
                ll.mbarrier_wait(full, step % STAGES, parity=step // STAGES % 2)
            if product.staging == "copy_async":
                ll.copy_async_wait(0)
            if product.staging != "copy_tensor" and mistake != "fence_async":
                ll.fence_async()
            if mistake != "synchronize":
                ll.synchronize()

        @ll.inline
        def load_a(step: int | ll.Scalar) -> ll.Tile:
            return ll.load_global(a_view, offsets=[block * bm, step * bk], layout=layout_a)

        fill(0)
        if product.way == "scaled":
            total = ll.full(0, accumulators_type, layout=layout_c)
            for step in ll.range(steps):
                filled(step)
                fill(step + 1)
                accumulators = ll.wgmma(load_a(step), b_shared, offsets=[step % STAGES, 0, 0], layout=layout_c)
                if mistake != "commit":
                    ll.wgmma_commit()
                (tile,) = ll.wgmma_wait(1 if mistake == "wait 0" else 0, accumulators)
                total = total + tile
        else:
            filled(0)
            fill(1)
            start = ll.full(0, accumulators_type, layout=layout_c)
            pending = ll.wgmma(load_a(0), b_shared, start, offsets=[0, 0, 0])
            ll.wgmma_commit()
            # Two products to an iteration: the registers of A take turns, as two groups may be in flight.
            unroll = 1 if mistake == "unroll" else 2
            for turn in ll.range((steps - 1) // unroll):
                for part in range(unroll):
                    step = unroll * turn + 1 + part
                    filled(step)
                    fill(step + 1)
                    pending = ll.wgmma(load_a(step), b_shared, pending, offsets=[step % STAGES, 0, 0])
                    ll.wgmma_commit()
                    # The stage that is filled next was read by the product before this one.
                    if mistake != "wait":
                        ll.wgmma_wait(1)
            (total,) = ll.wgmma_wait(0, pending)
        if product.staging == "copy_async":
            ll.copy_async_wait(0)
        if full is not None:
            ll.mbarrier_wait(full, steps % STAGES, parity=steps // STAGES % 2)
        ll.store_global(total, c_view, offsets=[block * bm, 0])

    return wgmma_product


def make_arguments(product: Product) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The arguments of a product, and what it should give."""
    a = products.random_matrix((product.m, product.k), product.a_type, 1)
    b = products.random_matrix((product.n, product.k), product.b_type, 2)
    wanted = products.exact_product(a, b, product.a_type)
    kind = np.int32 if wanted.dtype == np.int32 else np.float32
    return {
        "a": products.as_buffer(a, product.a_type),
        "b": products.as_buffer(b, product.b_type),
        "c": np.zeros((product.m, product.n), kind),
    }, wanted
