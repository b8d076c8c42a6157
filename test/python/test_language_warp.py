"""Exchange within warps on the CPU target."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from refused_kernels import refused

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.errors import CpuTargetError

random = np.random.default_rng(9)
THREADS, LOCALS = 64, 3
LAYOUT = lowlp.spatial(THREADS).local(LOCALS)


def run(body: Callable[..., ll.Tile], x: np.ndarray, dtype: str, lane: int = 0) -> np.ndarray:
    def kernel_body(a, y, n):
        tile = ll.load_global(ll.view_global(a, shape=[x.size]), offsets=[0], layout=LAYOUT)
        ll.store_global(body(tile, n), ll.view_global(y, shape=[x.size]), offsets=[0])

    parameters = {"a": ll.pointer(dtype), "y": ll.pointer(dtype), "n": ll.i32}
    kernel = ll.make_kernel(kernel_body, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)
    y = np.zeros_like(x)
    kernel(x, y, lane)
    return y


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "int32", "uint8"])
@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
def test_shuffles(mode: str, dtype: str) -> None:
    numpy_dtype = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}.get(dtype, dtype)
    x = random.integers(0, 200, THREADS * LOCALS).astype(numpy_dtype)
    lanes = np.arange(32)
    for lane in (0, 1, 5, 31):
        source = {"xor": lanes ^ lane, "up": lanes - lane, "down": lanes + lane, "idx": lanes * 0 + lane}[mode]
        source = np.where((source < 0) | (source > 31), lanes, source)
        wanted = x.reshape(-1, 32, LOCALS)[:, source].reshape(-1)
        found = run(lambda tile, n: ll.warp_shuffle(tile, mode, n), x, dtype, lane)  # the lane is known when it runs
        np.testing.assert_array_equal(found, wanted)
        found = run(lambda tile, n: ll.warp_shuffle(tile, mode, lane), x, dtype)  # noqa: B023
        np.testing.assert_array_equal(found, wanted)


def test_a_lane_that_does_not_exist_is_reported() -> None:
    x = np.zeros(THREADS * LOCALS, np.float32)
    for lane in (32, -1):
        with pytest.raises(CpuTargetError, match=r"lowlp\.warp_shuffle at .*: a lane must be from 0 to 31"):
            run(lambda tile, n: ll.warp_shuffle(tile, "xor", n), x, "f32", lane)


def ranks(x, y, counts, n):
    """Positive numbers, moved together: their places come from the ballots of their warps."""
    view = ll.view_global(x, shape=[n])
    tile = ll.load_global(view, offsets=[0], layout=lowlp.spatial(THREADS))
    votes = ll.ballot(tile > 0.0)
    ll.store_global(votes, ll.view_global(y, shape=[2, 1]), offsets=[0, 0])
    ll.store_global(ll.popcount(votes), ll.view_global(counts, shape=[2, 1]), offsets=[0, 0])


def test_ballot_says_where_a_condition_holds() -> None:
    x = random.normal(size=THREADS).astype(np.float32)
    y, counts = np.zeros(2, np.uint32), np.zeros(2, np.int32)
    parameters = {"x": ll.pointer("f32"), "y": ll.pointer("uint32"), "counts": ll.pointer("int32"), "n": ll.i32}
    kernel = ll.make_kernel(ranks, name="ranks", parameters=parameters, grid=(1,), num_threads=THREADS)
    kernel(x, y, counts, THREADS)
    wanted = (x.reshape(2, 32) > 0).astype(np.uint64) @ (1 << np.arange(32, dtype=np.uint64))
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(counts, (x.reshape(2, 32) > 0).sum(axis=1))


def test_ballot_takes_each_register_by_itself() -> None:
    x = random.integers(0, 2, THREADS * LOCALS).astype(np.int32)

    def body(a, y):
        tile = ll.load_global(ll.view_global(a, shape=[x.size]), offsets=[0], layout=LAYOUT)
        votes = ll.ballot(ll.equal(tile, 1))
        ll.store_global(votes, ll.view_global(y, shape=[2, LOCALS]), offsets=[0, 0])

    parameters = {"a": ll.pointer("int32"), "y": ll.pointer("uint32")}
    y = np.zeros((2, LOCALS), np.uint32)
    ll.make_kernel(body, name="kernel", parameters=parameters, grid=(1,), num_threads=THREADS)(x, y)
    wanted = x.reshape(2, 32, LOCALS).transpose(0, 2, 1).astype(np.uint64) @ (1 << np.arange(32, dtype=np.uint64))
    np.testing.assert_array_equal(y, wanted)


BALLOT = """
gpu.module @m {
  gpu.func @f(%p: !simt.ptr<global>) kernel attributes {known_block_size = array<i32: 32, 1, 1>,
      lowlp.grid = affine_map<() -> (1)>,
      lowlp.parameters = [{name = "p", type = !lowlp.ptr<ui32>, align = 4 : i64, written}]} {
    %thread = gpu.thread_id x
    %bound = arith.constant BOUND : index
    %zero = arith.constant 0 : i64
    %four = arith.constant 4 : i64
    %low = arith.cmpi ult, %thread, %bound : index
    %index = arith.index_cast %thread : index to i64
    %offset = arith.muli %index, %four : i64
    scf.if %low {
      %votes = simt.ballot %low
      simt.store %votes, %p[%offset] align 4 : i32, !simt.ptr<global>
    }
    gpu.return
  }
}
"""


@pytest.mark.parametrize("bound", [32, 7])
def test_a_ballot_that_not_all_lanes_reach_is_reported(bound: int) -> None:
    # Block programs cannot diverge, thread programs can.
    y = np.zeros(32, np.uint32)
    kernel = compilation.compile_cpu(BALLOT.replace("BOUND", str(bound)))
    if bound == 32:
        kernel(y)
        np.testing.assert_array_equal(y, np.full(32, 2**32 - 1, np.uint32))
    else:
        with pytest.raises(CpuTargetError, match=r"simt\.ballot at -:14:.*: divergent collective: "):
            kernel(y)


def test_what_is_refused() -> None:
    flat = lowlp.spatial(32)

    def mode(x, b, m, f):
        ll.warp_shuffle(ll.full(0.0, "f32", layout=flat), "left", 1)  # here

    def lane(x, b, m, f):
        ll.warp_shuffle(ll.full(0.0, "f32", layout=flat), "xor", 32)  # here

    def kind(x, b, m, f):
        ll.warp_shuffle(ll.full(0.0, "f32", layout=flat), "xor", 1.0)  # here

    def replicas(x, b, m, f):
        ll.warp_shuffle(ll.full(0.0, "f32", layout=flat.reduce([0], keep_dims=True)), "up", 1)  # here

    def condition(x, b, m, f):
        ll.ballot(ll.full(0.0, "f32", layout=flat))  # here

    refused(mode, ll.KernelValueError, "mode: must be one of 'xor', 'up', 'down', 'idx', found 'left'")
    refused(lane, ll.KernelValueError, "lane: must be from 0 to 31, found 32")
    refused(kind, ll.KernelTypeError, "lane: must be an int or an index scalar, found float 1.0")
    refused(replicas, ll.VerificationError, "several threads hold one element of ")
    refused(condition, ll.KernelTypeError, "condition: must be a tile of uint1, found a tile of f32")
