"""Blocks of a cluster that exchange tiles, on the CPU target, which does it through global memory."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from lowlp._mlir import ir

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import CpuTargetError, LowlpError, LowlpValueError

CLUSTERS, ROUNDS = 3, 3
Array = npt.NDArray[Any]


def exchanging(cluster: int, dtype: str, words: int) -> ll.Kernel:
    """y = x after `ROUNDS` exchanges, after each of which 1 is added: parts of `words` elements for each thread."""
    layout = lowlp.local(cluster, words, 1) * lowlp.spatial(1, 1, 64)

    def body(x, y, clusters):  # type: ignore[no-untyped-def]
        (block,) = ll.block_indices()
        shape = [clusters * cluster, *layout.shape]
        tile = ll.load_global(ll.view_global(x, shape=shape), offsets=[block, 0, 0, 0], layout=layout)
        for _ in range(ROUNDS):
            tile = ll.exchange_in_cluster(tile) + ll.full(1, dtype, layout=layout)
        ll.store_global(tile, ll.view_global(y, shape=shape), offsets=[block, 0, 0, 0])

    return ll.make_kernel(
        body,
        name="exchange",
        parameters={"x": ll.pointer(dtype), "y": ll.pointer(dtype), "clusters": ll.i32},
        grid=lambda clusters: (clusters * cluster,),
        num_threads=64,
        schedule=ll.KernelSchedule(cluster=cluster),
    )


def wanted_of(x: Array) -> Array:
    """x [clusters, givers, takers, ...] with givers and takers swapped in each round."""
    for _ in range(ROUNDS):
        x = x.swapaxes(1, 2) + x.dtype.type(1)
    return x


def random_of(dtype: str, cluster: int, words: int) -> Array:
    shape = (CLUSTERS, cluster, cluster, words, 64)
    return (
        np.random.default_rng(1).integers(0, 100, shape).astype({"f32": "float32", "f16": "float16"}.get(dtype, dtype))
    )


@pytest.mark.parametrize(("dtype", "words"), [("f32", 1), ("f32", 6), ("f16", 2), ("int32", 3), ("uint16", 4)])
@pytest.mark.parametrize("cluster", [2, 3, 8])
def test_blocks_give_each_other_parts(cluster: int, dtype: str, words: int) -> None:
    x = random_of(dtype, cluster, words)
    y = np.zeros_like(x)
    compile_cpu(exchanging(cluster, dtype, words))(x, y, CLUSTERS)
    np.testing.assert_array_equal(y, wanted_of(x))


def test_levels_agree() -> None:
    x = random_of("f32", 4, 2)
    results = [np.zeros_like(x) for _ in range(2)]
    for level, y in zip((0, 3), results, strict=True):
        compile_cpu(exchanging(4, "f32", 2), opt_level=level)(x, y, CLUSTERS)
    np.testing.assert_array_equal(*results)


def test_a_missing_barrier_is_found() -> None:
    module = compilation.open_program(exchanging(2, "f32", 2))
    compilation.run_pipeline(module, "lowlp.kernel(lowlp-expand-clusters)")
    barriers: list[Any] = []

    def visit(operation: Any) -> Any:
        if operation.name == "scf.if":
            barriers.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert len(barriers) == ROUNDS
    barriers[1].erase()
    kernel = compile_cpu(module.operation.get_asm(enable_debug_info=True))
    x = random_of("f32", 2, 2)
    with pytest.raises(CpuTargetError, match=r"race|uninitialised"):
        kernel(x, np.zeros_like(x), CLUSTERS)


def test_bad_clusters() -> None:
    with pytest.raises(LowlpValueError, match="schedule: cluster must be 1 to 8 blocks, but is 9"):
        exchanging(9, "f32", 1)
    for name in ("sm_80", "sm_89"):
        with pytest.raises(LowlpError, match=r"barrier\.cluster"):
            lowlp.compile(exchanging(2, "f32", 1), name)


def test_an_exchange_needs_a_cluster_and_parts() -> None:
    @lowlp.kernel(grid=(2,), num_threads=32)
    def alone(x: ll.pointer("f32")) -> None:
        layout = lowlp.local(2, 1).spatial(1, 32)
        ll.exchange_in_cluster(ll.full(0.0, "f32", layout=layout))

    with pytest.raises(ll.VerificationError, match="the kernel has no clusters"):
        compile_cpu(alone)

    @lowlp.kernel(grid=(2,), num_threads=32)
    def number(x: ll.pointer("f32")) -> None:
        ll.exchange_in_cluster(1.0)

    with pytest.raises(ll.KernelTypeError, match="parts: "):
        compile_cpu(number)

    def repeated(x):  # type: ignore[no-untyped-def]
        tile = ll.full(0.0, "f32", layout=lowlp.local(2, 1).spatial(1, 32))
        for _ in ll.range(3):
            ll.exchange_in_cluster(tile)

    kernel = ll.make_kernel(
        repeated,
        name="repeated",
        parameters={"x": ll.pointer("f32")},
        grid=(2,),
        num_threads=32,
        schedule=ll.KernelSchedule(cluster=2),
    )
    with pytest.raises(ll.VerificationError, match="must not lie in a loop"):
        compile_cpu(kernel)


def test_a_cluster_needs_an_architecture_with_clusters_without_an_exchange_too() -> None:
    def nothing(x):  # type: ignore[no-untyped-def]
        pass

    kernel = ll.make_kernel(
        nothing,
        name="nothing",
        parameters={"x": ll.pointer("f32")},
        grid=(2,),
        num_threads=32,
        schedule=ll.KernelSchedule(cluster=2),
    )
    with pytest.raises(LowlpError, match=r"barrier\.cluster"):
        lowlp.compile(kernel, "sm_80")


@pytest.mark.parametrize("seed", range(3))
def test_clusters_that_lie_across_windows_of_blocks_end(seed: int) -> None:
    x = np.random.default_rng(2).integers(0, 9, (11, 7, 7, 1, 64)).astype(np.float32)
    y = np.zeros_like(x)
    compile_cpu(exchanging(7, "f32", 1))(x, y, 11, workers=1, seed=seed)
    np.testing.assert_array_equal(y, wanted_of(x))


def test_the_machine_code_stores_to_other_blocks() -> None:
    ptx = next(iter(lowlp.compile(exchanging(2, "f32", 4), "sm_90a").binary.ptx.values()))
    assert ".reqnctapercluster 2, 1, 1" in ptx
    assert (
        len(re.findall(r"st\.async\.weak\.shared::cluster\.mbarrier::complete_tx::bytes\.v4\.b32", ptx)) == 2 * ROUNDS
    )
    assert ptx.count("barrier.cluster.arrive.relaxed") == ROUNDS
