"""Workspaces on a GPU: blocks that add up in turn, launched again and again, on two streams, and from a graph."""

from __future__ import annotations

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp_runtime import launch, load_kernel

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

SIZE = 64


@lowlp.kernel(grid=lambda n: (n,), num_threads=32)
def chain(y: ll.pointer("int32"), n: ll.i32) -> None:
    """y = 0 + 1 + ... + n - 1: block i adds i to what block i - 1 has left."""
    (block,) = ll.block_indices()
    sums = ll.alloc_global("int32", lambda n: (n, SIZE))
    turn = ll.alloc_global("int32", [1], zeroed=True)
    layout = lowlp.spatial(32).local(2)
    ll.semaphore_acquire(turn, offsets=[0], value=block)
    total = ll.full(block, "int32", layout=layout)
    if block > 0:
        total = total + ll.load_global(sums, offsets=[block - 1, 0], layout=layout)
    if block < n - 1:
        ll.store_global(total, sums, offsets=[block, 0])
        ll.semaphore_release(turn, offsets=[0], value=block + 1)
    else:
        ll.store_global(total, ll.view_global(y, shape=[SIZE]), offsets=[0])
        ll.semaphore_release(turn, offsets=[0], value=0)


@pytest.fixture(scope="module")
def kernel() -> lowlp.compiler.CompiledKernel:
    return lowlp.compile(chain, lowlp.compiler.current_arch())


def check(y: object, n: int) -> None:
    torch.cuda.synchronize()
    np.testing.assert_array_equal(y.cpu().numpy(), n * (n - 1) // 2)  # type: ignore[attr-defined]


def test_launch_after_launch(kernel: lowlp.compiler.CompiledKernel) -> None:
    y = torch.zeros(SIZE, dtype=torch.int32, device="cuda")
    for n in (1, 3, 5000, 17, 5000):  # it grows, and more blocks than fit at once
        kernel(y, n)
        check(y, n)


def test_streams_do_not_share(kernel: lowlp.compiler.CompiledKernel) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    results = [torch.zeros(SIZE, dtype=torch.int32, device="cuda") for _ in range(20)]
    torch.cuda.synchronize()
    for number, y in enumerate(results):
        kernel(y, 100 + number, stream=streams[number % 2])
    for number, y in enumerate(results):
        check(y, 100 + number)


def test_a_graph_has_its_own(kernel: lowlp.compiler.CompiledKernel) -> None:
    captured, plain = (torch.zeros(SIZE, dtype=torch.int32, device="cuda") for _ in range(2))
    load_kernel(kernel.binary)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(kernel.binary, [captured, 300])
        launch(kernel.binary, [captured, 400])
    check(captured, 0)
    for n in (10, 20, 30):
        captured.zero_()
        graph.replay()
        kernel(plain, n)  # beside the graph, on another stream
        check(captured, 400)
        check(plain, n)
