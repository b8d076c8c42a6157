"""Blocks of a cluster that exchange tiles, alone and at the end of products, or copy x for each other; and products
whose blocks have a tile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lowlp
from cases.case import Case
from cases.linears import linear_case
from lowlp import language as ll
from lowlp.kernels.linear.schedule import Schedule

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from linear_matrix import ERROR_LIMITS

CLUSTERS, THREADS = 66, 128
PRODUCTS = (
    Schedule(32, stages=3, warpgroups=1, row_tiles=1, steps=4, cluster=2),
    Schedule(64, stages=2, warpgroups=2, row_tiles=1, steps=4, cluster=2),
    Schedule(64, stages=2, warpgroups=2, row_tiles=2, steps=2, cluster=4, scales_on="weights"),
    Schedule(64, stages=3, warpgroups=1, row_tiles=1, steps=1, cluster=8, producer=False),
    Schedule(128, stages=3, warpgroups=2, row_tiles=1, steps=1, column_tiles=2, cluster=2, scales_on="weights"),
    Schedule(64, stages=3, warpgroups=2, row_tiles=2, steps=2, share_tiles=False),
    Schedule(128, stages=2, warpgroups=2, row_tiles=1, steps=2, column_tiles=2, share_tiles=False, scales_on="weights"),
    Schedule(96, stages=3, warpgroups=1, row_tiles=1, steps=4, scales_on="weights"),
    Schedule(64, stages=3, warpgroups=2, row_tiles=1, steps=2, multicast=2),
    Schedule(16, stages=8, warpgroups=1, row_tiles=1, steps=2, aligned_shares=True, multicast=2, scales_on="weights"),
    Schedule(128, stages=2, warpgroups=2, row_tiles=1, steps=2, column_tiles=2, share_tiles=False, multicast=2),
)

ON_ROWS = (
    Schedule(64, stages=3, warpgroups=2, row_tiles=1, steps=2, scales_on="rows"),
    Schedule(96, stages=3, warpgroups=2, row_tiles=1, steps=2, column_tiles=2, share_tiles=False, scales_on="rows"),
    Schedule(64, stages=3, warpgroups=2, row_tiles=1, steps=2, cluster=2, scales_on="rows"),
)
"""Of weights whose rows have a scale each."""


def exchange_case(cluster: int, dtype: str, words: int, arch: str) -> Case:
    """Two exchanges, with 1 added after each, so that every block has its own parts back."""
    layout = lowlp.local(cluster, words, 1) * lowlp.spatial(1, 1, THREADS)

    def body(x, y, clusters):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        shape = [clusters * cluster, *layout.shape]
        tile = ll.load_global(ll.view_global(x, shape=shape), offsets=[block, 0, 0, 0], layout=layout)
        one = ll.full(1.0, dtype, layout=layout)
        tile = ll.exchange_in_cluster(tile) + one
        ll.store_global(ll.exchange_in_cluster(tile) + one, ll.view_global(y, shape=shape), offsets=[block, 0, 0, 0])

    kernel = ll.make_kernel(
        body,
        name=f"exchange_{cluster}_{dtype}",
        parameters={"x": ll.pointer(dtype), "y": ll.pointer(dtype), "clusters": ll.i32},
        grid=lambda clusters: (clusters * cluster,),
        num_threads=THREADS,
        schedule=ll.KernelSchedule(cluster=cluster),
    )
    element = {"f32": np.float32, "f16": np.float16}[dtype]
    shape = (CLUSTERS * cluster, cluster, words, THREADS)
    x = np.random.default_rng(cluster).integers(-99, 100, shape).astype(element)
    arguments = {"x": x, "y": np.zeros_like(x), "clusters": CLUSTERS}
    return Case(kernel.name, lowlp.compile(kernel, arch), arguments, "y", x + element(2), 0.0)


def cases(arch: str) -> Iterator[Case]:
    """None where the architecture has no clusters."""
    if not lowlp.targets.target(arch).instructions["barrier.cluster"]:
        return
    for cluster, dtype, words in ((2, "f32", 1), (2, "f16", 8), (3, "f32", 2), (4, "f32", 16), (8, "f16", 6)):
        yield exchange_case(cluster, dtype, words, arch)
    if not lowlp.targets.target(arch).instructions["wgmma.mma_async"]:
        return
    rng = np.random.default_rng(7)
    for weight in ("int4", "int1", "int7"):
        qw = lowlp.quantize(rng.normal(size=(1000, 1280)).astype(np.float32), weight, group_size=128)
        for index, schedule in enumerate(PRODUCTS):
            if weight == "int1" and schedule.row_tiles % 4 == 0:
                continue
            x = rng.standard_normal((schedule.columns_of_block + 5, 1280)).astype(np.float16)
            yield linear_case(f"cluster_{weight}_{index}", qw, x, arch, ERROR_LIMITS["f16"], "f16", schedule=schedule)
    for weight in ("int5", "f4e2m1"):
        qw = lowlp.quantize(rng.normal(size=(1000, 1280)).astype(np.float32), weight, group_size=None)
        for index, schedule in enumerate(ON_ROWS):
            x = rng.standard_normal((schedule.columns_of_block + 5, 1280)).astype(np.float16)
            yield linear_case(f"rows_{weight}_{index}", qw, x, arch, ERROR_LIMITS["f16"], "f16", schedule=schedule)
