"""Launches on a real device: every way to name a stream and an array, code of each kind, capture, timing."""

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from lowlp_runtime import (
    AssembleError,
    DeviceError,
    KernelBinary,
    KernelDescription,
    LowlpValueError,
    Parameter,
    assemble_ptx,
    compute_capability,
    launch,
    load_kernel,
    measure,
)

PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry add(.param .u64 out, .param .u32 n, .param .u64 big, .param .f32 step)
{
  .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .f32 %f<3>;
  ld.param.u64 %d0, [out];
  ld.param.u32 %r0, [n];
  ld.param.u64 %d2, [big];
  ld.param.f32 %f0, [step];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  setp.ge.u32 %p, %r1, %r0;
  @%p bra done;
  shr.u64 %d2, %d2, 40;
  cvt.rn.f32.u64 %f1, %d2;
  add.f32 %f0, %f0, %f1;
  mul.wide.u32 %d1, %r1, 4;
  add.u64 %d0, %d0, %d1;
  ld.global.f32 %f1, [%d0];
  add.f32 %f1, %f1, %f0;
  st.global.f32 [%d0], %f1;
done:
  ret;
}
"""
BIG = 1 << 40  # adds 1 to every element


def description(**changes: Any) -> KernelDescription:
    fields: dict[str, Any] = {
        "name": "add",
        "parameters": (
            Parameter("out", "pointer", "f32", 16, writable=True),
            Parameter("n", "i32"),
            Parameter("big", "i64"),
            Parameter("step", "f32"),
        ),
        "grid": (("ceildiv", ("param", "n"), 128), 1, 1),
        "block": (128, 1, 1),
    }
    return KernelDescription(**{**fields, **changes})


@pytest.fixture
def kernel() -> KernelBinary:
    return KernelBinary(description(), ptx={"sm_80": PTX})


@pytest.fixture
def torch() -> Iterator[Any]:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    yield module
    module.cuda.synchronize()


class Interface:
    """Hides a tensor behind the CUDA array interface alone."""

    def __init__(self, tensor: Any) -> None:
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


class DLPack:
    """Hides a tensor behind DLPack alone."""

    def __init__(self, tensor: Any) -> None:
        self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__


@pytest.mark.parametrize("wrap", [lambda t: t, Interface, DLPack, lambda t: t.data_ptr()])
def test_every_kind_of_array(torch: Any, kernel: KernelBinary, wrap: Any) -> None:
    out = torch.arange(1000, dtype=torch.float32, device="cuda")
    launch(kernel, [wrap(out), 999, BIG, 0.5])
    torch.cuda.synchronize()
    expected = torch.arange(1000, dtype=torch.float32) + 1.5
    expected[999] = 999
    assert torch.equal(out.cpu(), expected)


def test_current_stream_and_named_streams(torch: Any, kernel: KernelBinary) -> None:
    streams: list[Any] = [torch.cuda.Stream() for _ in range(3)]
    out = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(streams[0]):
        launch(kernel, [out, 64, BIG, 0.0])
    streams[0].synchronize()
    launch(kernel, [out, 64, BIG, 0.0], stream=streams[1])
    streams[1].synchronize()
    launch(kernel, [out, 64, BIG, 0.0], stream=streams[2].cuda_stream)
    streams[2].synchronize()
    driver = pytest.importorskip("cuda.bindings.driver")
    launch(kernel, [out, 64, BIG, 0.0], stream=driver.CUstream(streams[2].cuda_stream))
    streams[2].synchronize()
    assert out.tolist() == [4.0] * 64


def test_stream_of_cuda_core(torch: Any, kernel: KernelBinary) -> None:
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    out = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    launch(kernel, {"step": 1.0, "out": out, "n": 64, "big": 0}, stream=stream)
    stream.sync()
    assert out.tolist() == [1.0] * 64


def test_graph_capture_and_replay(torch: Any, kernel: KernelBinary) -> None:
    load_kernel(kernel)
    out = torch.zeros(64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(kernel, [out, 64, BIG, 0.0])
        launch(kernel, [out, 0, BIG, 0.0])
    assert out.tolist() == [0.0] * 64
    for _ in range(3):
        graph.replay()
    assert out.tolist() == [3.0] * 64


def test_cubin_of_this_device(torch: Any, kernel: KernelBinary) -> None:
    major, minor = compute_capability()
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    try:
        cubin = assemble_ptx(re.sub(r"sm_80", arch, PTX).replace(".version 7.8", ".version 8.0"), arch).cubin
    except AssembleError as error:
        pytest.skip(str(error))
    compiled = KernelBinary(description(), cubins={arch: cubin})
    loaded = load_kernel(compiled)
    assert (loaded.image_kind, loaded.arch) == ("cubin", arch)
    assert load_kernel(kernel).image_kind == "ptx"
    out = torch.zeros(64, device="cuda")
    launch(compiled, [out, 64, BIG, 0.0])
    torch.cuda.synchronize()
    assert out.tolist() == [1.0] * 64


def test_errors_of_the_drivers_compiler(torch: Any) -> None:
    torch.zeros(1, device="cuda")
    with pytest.raises(DeviceError, match=r"(?s)'add': ptx for sm_80.*CUDA_ERROR_INVALID_PTX.*bogus"):
        load_kernel(KernelBinary(description(), ptx={"sm_80": PTX.replace("add.f32", "bogus.f32")}))


def test_large_dynamic_shared_memory(torch: Any) -> None:
    out = torch.zeros(64, device="cuda")
    launch(KernelBinary(description(shared_bytes=99_000), ptx={"sm_80": PTX}), [out, 64, BIG, 0.0])
    torch.cuda.synchronize()
    assert out.tolist() == [1.0] * 64
    with pytest.raises(DeviceError, match="needs 1000000 bytes of shared memory"):
        load_kernel(KernelBinary(description(shared_bytes=1_000_000), ptx={"sm_80": PTX}))


def test_alignment_is_checked(torch: Any, kernel: KernelBinary) -> None:
    with pytest.raises(LowlpValueError, match=r"out: address 0x[0-9a-f]+ must be a multiple of 16 bytes"):
        launch(kernel, [torch.zeros(65, device="cuda")[1:], 64, BIG, 0.0])


def test_threads_without_a_context(torch: Any, kernel: KernelBinary) -> None:
    out = torch.zeros(64, device="cuda")
    torch.cuda.synchronize()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(10):
                launch(kernel, [out.data_ptr(), 64, BIG, 0.0])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert not failures
    assert out.tolist() == [40.0] * 64


def test_second_device(torch: Any, kernel: KernelBinary) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("one device only")
    out = torch.zeros(64, device="cuda:1")
    launch(kernel, [out, 64, BIG, 0.0])
    launch(kernel, [Interface(out), 64, BIG, 0.0])
    torch.cuda.synchronize(1)
    assert out.tolist() == [2.0] * 64
    assert torch.cuda.current_device() == 0


def test_measure(torch: Any, kernel: KernelBinary) -> None:
    out = torch.zeros(1 << 24, device="cuda")
    torch.cuda.synchronize()
    timing = measure(lambda: launch(kernel, [out, 1 << 24, BIG, 0.0], stream=0), repeats=9, warmups=2)
    assert len(timing.samples_us) == 9
    assert 1 < timing.min_us <= timing.median_us <= timing.max_us
    # 128 MiB of traffic take longer than 5 us on any GPU and less than 10 ms on one worth using.
    assert 5 < timing.median_us < 10_000
    assert float(out[0]) == 11.0
