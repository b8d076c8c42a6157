"""Dependent launches on a GPU: they start early, see what the kernel in front wrote, and are captured in graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from lowlp_runtime import (
    KernelBinary,
    KernelDescription,
    Parameter,
    compute_capability,
    cuda_device_count,
    launch,
    load_kernel,
    no_dependent_launch,
)

if not cuda_device_count() or compute_capability() < (9, 0):
    pytest.skip("no CUDA device of compute capability 9.0 or newer", allow_module_level=True)

# out = 3 * out + index, 20 us after it may; times: when thread 0 came, before it waits, and when it had stored.
PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry step(.param .u64 out, .param .u64 times, .param .u32 index)
{
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<8>;
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 0;
  ld.param.u64 %d0, [out];
  ld.param.u64 %d1, [times];
  ld.param.u32 %r1, [index];
  mov.u64 %d2, %globaltimer;
  griddepcontrol.launch_dependents;
  griddepcontrol.wait;
  @%p bra done;
  mul.wide.u32 %d3, %r1, 16;
  add.u64 %d1, %d1, %d3;
  st.global.u64 [%d1], %d2;
  ld.volatile.global.u32 %r2, [%d0];
  mov.u64 %d4, %globaltimer;
again:
  mov.u64 %d5, %globaltimer;
  sub.u64 %d6, %d5, %d4;
  setp.lt.u64 %p, %d6, 20000;
  @%p bra again;
  mad.lo.u32 %r2, %r2, 3, %r1;
  st.global.u32 [%d0], %r2;
  mov.u64 %d7, %globaltimer;
  st.global.u64 [%d1+8], %d7;
done:
  ret;
}
"""
STEPS = 30


@pytest.fixture(scope="module")
def kernel() -> KernelBinary:
    description = KernelDescription(
        name="step",
        parameters=(
            Parameter("out", "pointer", "i32", writable=True),
            Parameter("times", "pointer", "i64", writable=True),
            Parameter("index", "i32"),
        ),
        grid=(1, 1, 1),
        block=(32, 1, 1),
        dependent_launch=True,
    )
    return KernelBinary(description, ptx={"sm_90": PTX})


@pytest.fixture
def torch(kernel: KernelBinary) -> Iterator[Any]:
    module = pytest.importorskip("torch")
    load_kernel(kernel)
    yield module
    module.cuda.synchronize()


def expected(value: int) -> int:
    for index in range(STEPS):
        value = (3 * value + index) % 2**32
    return value


def as_unsigned(out: Any) -> int:
    return int(out.item()) % 2**32


def starts_before_the_end(times: Any) -> int:
    """How many kernels began while the one in front of them was not done."""
    found = times.cpu().tolist()
    return sum(start < end for (start, _), (_, end) in zip(found[1:], found, strict=False))


SWITCHES = [pytest.param(nullcontext, id="dependent"), pytest.param(no_dependent_launch, id="plain")]


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_chain(torch: Any, kernel: KernelBinary, switch: type[AbstractContextManager[None]]) -> None:
    out = torch.ones(1, dtype=torch.int32, device="cuda")
    times = torch.zeros(STEPS, 2, dtype=torch.int64, device="cuda")
    torch.cuda.synchronize()
    with switch():
        for index in range(STEPS):
            launch(kernel, [out, times, index])
    torch.cuda.synchronize()
    assert as_unsigned(out) == expected(1)
    early = starts_before_the_end(times)
    if switch is no_dependent_launch:
        assert early == 0
    else:
        assert early > STEPS // 2


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_graph(torch: Any, kernel: KernelBinary, switch: type[AbstractContextManager[None]]) -> None:
    out = torch.ones(1, dtype=torch.int32, device="cuda")
    times = torch.zeros(STEPS, 2, dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), switch():
        for index in range(STEPS):
            launch(kernel, [out, times, index])
    assert as_unsigned(out) == 1
    value = 1
    for _ in range(20):
        graph.replay()
        value = expected(value)
    torch.cuda.synchronize()
    assert as_unsigned(out) == value
    assert (starts_before_the_end(times) > 0) == (switch is not no_dependent_launch)


def test_two_streams_at_once(torch: Any, kernel: KernelBinary) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    outs = [torch.full((1,), number, dtype=torch.int32, device="cuda") for number in (1, 2)]
    times = [torch.zeros(STEPS, 2, dtype=torch.int64, device="cuda") for _ in streams]
    torch.cuda.synchronize()
    for index in range(STEPS):
        for stream, out, time in zip(streams, outs, times, strict=True):
            launch(kernel, [out, time, index], stream=stream)
    torch.cuda.synchronize()
    assert [as_unsigned(out) for out in outs] == [expected(1), expected(2)]


def test_kernels_of_other_libraries_around_it(torch: Any, kernel: KernelBinary) -> None:
    out = torch.ones(1, dtype=torch.int32, device="cuda")
    times = torch.zeros(STEPS, 2, dtype=torch.int64, device="cuda")
    value = 1
    for index in range(STEPS):
        launch(kernel, [out, times, index])
        out.add_(7)
        value = (3 * value + index + 7) % 2**32
    assert as_unsigned(out) == value
