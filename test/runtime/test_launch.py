"""Launches, on a fake driver: what reaches cuLaunchKernelEx, and what is refused before."""

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from fake_arrays import DLPackArray, InterfaceArray
from fake_driver import FakeDriver
from fake_torch import FakeDevice, FakeTensor, FakeTorch
from saved_kernel import describe

from lowlp_runtime import DeviceArray, DeviceError, KernelBinary, LowlpTypeError, LowlpValueError, Parameter, launch
from lowlp_runtime.stream import stream_handle

FAR = 0x7F0000000000
DEVICE_1 = 1 << 40


def with_shared(kernel: KernelBinary, shared_bytes: int) -> KernelBinary:
    return KernelBinary(describe(shared_bytes=shared_bytes), cubins=kernel.cubins)


def test_launch(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    launch(kernel, [DeviceArray(FAR, (1000,), (1,), "i32", 1), 1000], stream=5)
    launch(kernel, {"n": -1000 + 2000, "out": DLPackArray()})
    expected = {
        "function": "function add_one",
        "grid": (8, 1, 1),
        "block": (128, 1, 1),
        "shared_bytes": 0,
        "stream": 5,
        "context": 101,
        "out": FAR,
        "n": 1000,
    }
    assert fake_driver.launches == [expected, {**expected, "stream": 0}]
    assert fake_driver.named("cuModuleLoadDataEx") == [("cuModuleLoadDataEx", kernel.cubins["sm_90a"])]
    assert fake_driver.contexts == []


def test_caller_keeps_its_context(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    fake_driver.contexts = [101]
    launch(kernel, [DeviceArray(FAR, (1000,), (1,), "u32", 0), 1000])
    launch(kernel, [DeviceArray(FAR, (1000,), (1,), "u32", 1), 1000])
    assert [entry["context"] for entry in fake_driver.launches] == [100, 101]
    assert fake_driver.contexts == [101]
    assert len(fake_driver.named("cuModuleLoadDataEx")) == 2


def test_device_of_an_address_is_asked_for(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    launch(kernel, [InterfaceArray(pointer=DEVICE_1), 1])
    launch(kernel, [DEVICE_1, 1])
    launch(kernel, [1 << 39, 1])
    assert [entry["context"] for entry in fake_driver.launches] == [101, 101, 100]


def test_empty_grid_launches_nothing_and_needs_no_driver(kernel: KernelBinary) -> None:
    launch(kernel, [InterfaceArray(pointer=0, shape=(0,)), 0])


def test_a_producers_stream_is_waited_for(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    launch(kernel, [InterfaceArray(more={"stream": 9}), 1], stream=5)
    launch(kernel, [InterfaceArray(more={"stream": 5}), 1], stream=5)
    launch(kernel, [InterfaceArray(more={"stream": 1}), 1], stream=0)
    assert fake_driver.named("cuEventRecord") == [("cuEventRecord", "event", 9)]
    assert fake_driver.named("cuStreamWaitEvent") == [("cuStreamWaitEvent", 5, "event")]


@pytest.mark.parametrize(
    ("static", "dynamic", "sets"), [(0, 0, False), (0, 48 << 10, False), (0, 99_000, True), (1024, 48 << 10, True)]
)
def test_large_shared_memory(
    kernel: KernelBinary, fake_driver: FakeDriver, static: int, dynamic: int, sets: bool
) -> None:
    fake_driver.static_shared_bytes = static
    for _ in range(2):
        launch(with_shared(kernel, dynamic), [FAR, 1])
    expected = [("cuFuncSetAttribute", "function add_one", 8, dynamic)] if sets else []
    assert fake_driver.named("cuFuncSetAttribute") == expected
    assert fake_driver.launches[0]["shared_bytes"] == dynamic


def test_too_much_shared_memory(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    with pytest.raises(DeviceError, match="needs 300000 bytes of shared memory a block; Fake GPU has 232448"):
        launch(with_shared(kernel, 300_000), [FAR, 1])


def test_driver_errors_carry_the_compilers_text(kernel: KernelBinary, fake_driver: FakeDriver) -> None:
    fake_driver.jit_error = b"ptxas application ptx input, line 9; error : Unknown symbol"
    ptx_only = KernelBinary(kernel.description, ptx=kernel.ptx)
    with pytest.raises(
        DeviceError, match=r"(?s)add_one.*ptx for sm_90a.*CUDA_ERROR_INVALID_IMAGE: a sen.*line 9; error"
    ):
        launch(ptx_only, [FAR, 1])
    assert fake_driver.calls[0][1].endswith(b"}\n\0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FAR], r"arguments of add_one\(out, n\): expected 2, got 1"),
        ({"out": FAR, "m": 1}, r"arguments of add_one\(out, n\): missing: n; unknown: m"),
        ("ab", "expected a sequence or a mapping, got str"),
        ([FAR, 1.0], r"n: expected an int \(i32\), got float"),
        ([FAR, True], r"n: expected an int \(i32\), got bool"),
        ([InterfaceArray(typestr="<f4"), 1], "out: expected elements of type i32, got f32"),
        ([InterfaceArray(typestr="<i8"), 1], "out: expected elements of type i32, got i64"),
        ([None, 1], "out: expected a CUDA array"),
    ],
)
def test_refuses_types(kernel: KernelBinary, arguments: Any, message: str) -> None:
    with pytest.raises(LowlpTypeError, match=message):
        launch(kernel, arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FAR, 2**31], r"n: must be in -2\*\*31\.\.2\*\*31-1 \(i32\), got 2147483648"),
        ([FAR, -(2**31) - 1], "n: must be in"),
        ([FAR, -128], r"grid: x must be in 0\.\.2147483647, got -1 blocks from n=-128"),
        ([FAR + 8, 1], "out: address 0x7f0000000008 must be a multiple of 16 bytes"),
        ([InterfaceArray(pointer=FAR + 4), 1], "out: address 0x7f0000000004 must be a multiple of 16 bytes"),
        ([InterfaceArray(read_only=True), 1], "out: the kernel writes to it, and the array is read-only"),
        ([InterfaceArray(pointer=0), 1], "out: array of 1000 elements at address 0"),
        ([-1, 1], "out: an address must be in"),
        (
            [InterfaceArray(shape=(4, 8), strides=(64, 4)), 1],
            r"out: .* shape \(4, 8\) with strides \(16, 1\) is not laid out so; pass a copy of it",
        ),
    ],
)
def test_refuses_values(kernel: KernelBinary, arguments: Any, message: str) -> None:
    with pytest.raises(LowlpValueError, match=message):
        launch(kernel, arguments)


def test_tensors_have_no_gaps(kernel: KernelBinary, fake_driver: FakeDriver, fake_torch: FakeTorch) -> None:
    tensor = FakeTensor((8, 4), fake_torch.int32, FakeDevice(0), (1, 8))
    with pytest.raises(LowlpValueError, match=r"out: .* strides \(1, 8\) is not laid out so; pass x.contiguous\(\)"):
        launch(kernel, [tensor, 1])
    launch(kernel, [FakeTensor((1, 4), fake_torch.int32, FakeDevice(0), (99, 1)), 1])


def test_arrays_must_share_a_device(kernel: KernelBinary) -> None:
    parameters = (Parameter("a", "pointer", "u8"), Parameter("b", "pointer", "f16"))
    pair = KernelBinary(describe(parameters=parameters, grid=(1, 1, 1)), cubins=kernel.cubins)
    arrays = [DeviceArray(FAR, (1,), (1,), "u8", 0), DeviceArray(FAR, (1,), (1,), "f16", 1)]
    with pytest.raises(LowlpValueError, match="arrays must be on one CUDA device, got a on 0, b on 1"):
        launch(pair, arrays)


def test_scalars_are_packed_low_bytes_first(
    kernel: KernelBinary, fake_driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(config: Any, function: int, pointers: int) -> None:
        slots = (ctypes.c_void_p * 4).from_address(pointers)
        seen.extend(ctypes.string_at(slot or 0, 8).hex() for slot in slots)

    monkeypatch.setattr(fake_driver, "launch", look)
    kinds = ("i32", "i64", "f32", "f64")
    parameters = tuple(Parameter(f"p{kind}", kind) for kind in kinds)
    scalars = KernelBinary(describe(parameters=parameters, grid=(1, 1, 1)), cubins=kernel.cubins)
    launch(scalars, [-2, 2**40, 1.5, -2])
    assert seen == ["feffffffffffffff", "0000000000010000", "0000c03f00000000", "00000000000000c0"]
    with pytest.raises(LowlpValueError, match=r"pf32: 1e\+39 is out of range of f32"):
        launch(scalars, [0, 0, 1e39, 0])
    with pytest.raises(LowlpTypeError, match=r"pf64: expected a float \(f64\), got str"):
        launch(scalars, [0, 0, 0.0, "1"])


class ProtocolStream:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 88


CudaPythonStream = type("CUstream", (), {"__module__": "cuda.bindings.driver", "__int__": lambda self: 66})


@pytest.mark.parametrize(
    ("stream", "handle"),
    [(0, 0), (2, 2), (ProtocolStream(), 88), (SimpleNamespace(cuda_stream=44), 44), (CudaPythonStream(), 66)],
)
def test_streams(stream: object, handle: int) -> None:
    assert stream_handle(stream) == handle


@pytest.mark.parametrize("stream", ["0", 1.0, True, object()])
def test_refused_streams(stream: object) -> None:
    with pytest.raises(LowlpTypeError, match=f"stream: expected None, an int, .* got {type(stream).__name__}"):
        stream_handle(stream)
    with pytest.raises(LowlpValueError, match="a handle is not negative, got -1"):
        stream_handle(-1)
