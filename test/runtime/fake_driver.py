"""A stand-in for cuda.bindings.driver: answers as a machine with GPUs would, and notes what was asked of it."""

import ctypes
import enum
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lowlp_runtime import bound_launch, device, device_workspace, launcher, module
from lowlp_runtime import driver as drivers
from lowlp_runtime.launch_call import LaunchConfig


class Result(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900


class Attribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37


OK = Result.CUDA_SUCCESS


class FakeDriver:
    """`calls` lists the functions that change something, with arguments; `launches` the values that kernels got."""

    CUresult = Result
    CUdevice_attribute = Attribute
    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)
    CUfunction_attribute = SimpleNamespace(
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES=1, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8
    )
    CUjit_option = SimpleNamespace(
        CU_JIT_INFO_LOG_BUFFER=3,
        CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES=4,
        CU_JIT_ERROR_LOG_BUFFER=5,
        CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES=6,
        CU_JIT_OPTIMIZATION_LEVEL=7,
        CU_JIT_TARGET=9,
        CU_JIT_LOG_VERBOSE=12,
    )
    CUjit_target = SimpleNamespace(CU_TARGET_COMPUTE_90A="90A")
    CUjitInputType = SimpleNamespace(CU_JIT_INPUT_PTX=1)
    CUstreamCaptureStatus = SimpleNamespace(CU_STREAM_CAPTURE_STATUS_ACTIVE=1)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)
    CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=SimpleNamespace(value=1))
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=SimpleNamespace(value=2))

    def __init__(self, devices: int = 2, static_shared_bytes: int = 0) -> None:
        self.functions: list[str] = []
        self.devices = devices
        self.static_shared_bytes = static_shared_bytes
        self.reads_workspace = False  # whether kernels have a third parameter
        self.slots = 0  # how many parameters a launch is asked for in 'values'
        self.contexts: list[int] = []
        self.calls: list[tuple[Any, ...]] = []
        self.launches: list[dict[str, Any]] = []
        self.jit_error = b""
        self.version = 13000
        self.loads_cubins = True
        self.cubin = ctypes.create_string_buffer(b"\x7fELF fake")
        self.captures: dict[int, int] = {}  # the number of the capture that a stream takes part in
        self.stream_ids: dict[int, int] = {}  # where it is not the stream's handle
        self.next_address = 0x10000

    def note(self, *call: Any) -> None:
        self.calls.append(call)

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == name]

    def cuGetErrorName(self, status: Result) -> tuple[Result, bytes]:
        return OK, status.name.encode()

    def cuGetErrorString(self, status: Result) -> tuple[Result, bytes]:
        return OK, b"a sentence"

    def cuDeviceGetCount(self) -> tuple[Result, int]:
        return OK, self.devices

    def cuDeviceGet(self, ordinal: int) -> tuple[Result, int]:
        return OK, ordinal

    def cuDeviceGetName(self, size: int, device: int) -> tuple[Result, bytes]:
        return OK, b"Fake GPU".ljust(size, b"\0")

    def cuDeviceGetAttribute(self, attribute: Attribute, device: int) -> tuple[Result, int]:
        known = {75: 9, 76: 0, 97: 232448, 81: 233472, 111: 1024, 38: 50 << 20, 16: 132}
        known |= {13: 1980000, 36: 3201000, 37: 6144}
        return OK, known[int(attribute)]

    # A context is its device's number plus 100.
    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[Result, int]:
        return OK, 100 + device

    def cuCtxGetCurrent(self) -> tuple[Result, int]:
        return OK, self.contexts[-1] if self.contexts else 0

    def cuCtxGetDevice(self) -> tuple[Result, int]:
        return OK, self.contexts[-1] - 100

    def cuCtxGetId(self, context: None) -> tuple[Result, int | None]:
        if not self.contexts:
            return Result.CUDA_ERROR_INVALID_CONTEXT, None
        return OK, self.contexts[-1]

    def cuCtxPushCurrent(self, context: int) -> tuple[Result]:
        self.contexts.append(context)
        return (OK,)

    def cuCtxPopCurrent(self) -> tuple[Result, int]:
        return OK, self.contexts.pop()

    # Addresses with bit 40 set live on device 1.
    def cuPointerGetAttribute(self, attribute: int, pointer: int) -> tuple[Result, int]:
        return OK, pointer >> 40 & 1

    def cuModuleLoadDataEx(self, image: bytes, count: int, names: list[int], values: list[Any]) -> tuple[Result, int]:
        self.note("cuModuleLoadDataEx", image)
        if not self.loads_cubins and b".version" not in image:
            return Result.CUDA_ERROR_INVALID_IMAGE, 0
        if self.jit_error:
            values[0][: len(self.jit_error)] = self.jit_error
            return Result.CUDA_ERROR_INVALID_IMAGE, 0
        return OK, 7

    def cuDriverGetVersion(self) -> tuple[Result, int]:
        return OK, self.version

    def cuLinkCreate(self, count: int, names: list[int], values: list[Any]) -> tuple[Result, dict[int, Any]]:
        settings = dict(zip(names, values, strict=True))
        assert count == len(settings)
        self.note("cuLinkCreate", settings[9], settings[7], settings[12])
        return OK, settings

    def cuLinkAddData(self, state: dict[int, Any], kind: int, data: bytes, size: int, *rest: Any) -> tuple[Result]:
        self.note("cuLinkAddData", data)
        assert (kind, size, rest) == (1, len(data), (b"kernel.ptx", 0, [], []))
        if self.jit_error:
            state[5][: len(self.jit_error)] = self.jit_error
            return (Result.CUDA_ERROR_INVALID_IMAGE,)
        return (OK,)

    def cuLinkComplete(self, state: dict[int, Any]) -> tuple[Result, int, int]:
        said = b"ptxas info : Compiling entry function 'add_one' for 'sm_90a'\nptxas info : Used 11 registers\n"
        state[3][: len(said)] = said
        return OK, ctypes.addressof(self.cubin), len(self.cubin.value)

    def cuLinkDestroy(self, state: dict[int, Any]) -> tuple[Result]:
        self.note("cuLinkDestroy")
        return (OK,)

    def cuModuleGetFunction(self, module: int, name: bytes) -> tuple[Result, int]:
        self.functions.append(f"function {name.decode()}")
        return OK, len(self.functions) - 1

    def cuFuncGetAttribute(self, attribute: int, function: str) -> tuple[Result, int]:
        return OK, self.static_shared_bytes

    def cuFuncSetAttribute(self, function: int, *rest: Any) -> tuple[Result]:
        self.note("cuFuncSetAttribute", self.functions[function], *rest)
        return (OK,)

    def cuEventCreate(self, flags: int) -> tuple[Result, str]:
        return OK, "event"

    def cuEventRecord(self, event: str, stream: int) -> tuple[Result]:
        self.note("cuEventRecord", event, stream)
        return (OK,)

    def cuStreamWaitEvent(self, stream: int, event: str, flags: int) -> tuple[Result]:
        self.note("cuStreamWaitEvent", stream, event)
        return (OK,)

    def cuEventDestroy(self, event: str) -> tuple[Result]:
        return (OK,)

    def cuStreamGetId(self, stream: int) -> tuple[Result, int]:
        if stream in self.captures:
            return Result.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 0
        return OK, self.stream_ids.get(stream, stream)

    def cuStreamIsCapturing(self, stream: int) -> tuple[Result, int]:
        return OK, int(stream in self.captures)

    def cuStreamGetCaptureInfo(self, stream: int) -> tuple[Result, int, int, str]:
        return OK, int(stream in self.captures), self.captures.get(stream, 0), "graph"

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> tuple[Result, int]:
        self.note("cuThreadExchangeStreamCaptureMode", mode)
        return OK, 0

    def _allocate(self, size: int) -> int:
        self.next_address += 0x100000
        return self.next_address

    def cuMemAlloc(self, size: int) -> tuple[Result, int]:
        self.note("cuMemAlloc", size)
        return OK, self._allocate(size)

    def cuMemAllocAsync(self, size: int, stream: int) -> tuple[Result, int]:
        self.note("cuMemAllocAsync", size, stream)
        return OK, self._allocate(size)

    def cuMemFreeAsync(self, pointer: int, stream: int) -> tuple[Result]:
        self.note("cuMemFreeAsync", pointer, stream)
        return (OK,)

    def cuMemsetD8Async(self, pointer: int, value: int, count: int, stream: int | str) -> tuple[Result]:
        self.note("cuMemsetD8Async", pointer, value, count, stream)
        return (OK,)

    def cuStreamCreate(self, flags: int) -> tuple[Result, str]:
        return OK, "side stream"

    def cuStreamSynchronize(self, stream: str) -> tuple[Result]:
        self.note("cuStreamSynchronize", stream)
        return (OK,)

    def cuStreamDestroy(self, stream: str) -> tuple[Result]:
        self.note("cuStreamDestroy", stream)
        return (OK,)

    def _values(self, pointers: int) -> tuple[int, ...]:
        addresses = (ctypes.c_uint64 * self.slots).from_address(pointers)
        return tuple(ctypes.c_uint64.from_address(address).value for address in addresses)

    def launch(self, config: LaunchConfig, function: int, pointers: int) -> None:
        """Notes a launch, and whether it may start early."""
        addresses = (ctypes.c_uint64 * 3).from_address(pointers)
        self.launches.append(
            {
                "function": self.functions[function],
                "grid": (config.gridDimX, config.gridDimY, config.gridDimZ),
                "block": (config.blockDimX, config.blockDimY, config.blockDimZ),
                "shared_bytes": config.sharedMemBytes,
                "stream": config.hStream or 0,
                "context": self.contexts[-1],
                "out": ctypes.c_uint64.from_address(addresses[0]).value,
                "n": ctypes.c_int32.from_address(addresses[1]).value,
            }
            | ({"workspace": ctypes.c_uint64.from_address(addresses[2]).value} if self.reads_workspace else {})
            | ({"values": self._values(pointers)} if self.slots else {})
        )
        if config.numAttrs:
            # cuda.h, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            assert (config.numAttrs, config.attrs[0].id, config.attrs[0].value) == (1, 6, 1)
            self.launches[-1]["early"] = True


class FakeLibrary:
    """The driver's library as ctypes shows it: pointers in, a status out."""

    def __init__(self, fake: FakeDriver) -> None:
        self.fake = fake

    def cuCtxGetId(self, context: None, place: Any) -> int:
        status, number = self.fake.cuCtxGetId(context)
        ctypes.cast(place, ctypes.POINTER(ctypes.c_uint64))[0] = number or 0
        return int(status)

    def cuStreamIsCapturing(self, stream: ctypes.c_void_p, place: Any) -> int:
        status, capturing = self.fake.cuStreamIsCapturing(stream.value or 0)
        ctypes.cast(place, ctypes.POINTER(ctypes.c_int))[0] = capturing
        return int(status)

    def cuStreamGetId(self, stream: ctypes.c_void_p, place: Any) -> int:
        status, number = self.fake.cuStreamGetId(stream.value or 0)
        ctypes.cast(place, ctypes.POINTER(ctypes.c_uint64))[0] = number
        return int(status)

    def cuLaunchKernelEx(
        self, config: ctypes.c_void_p, function: ctypes.c_void_p, pointers: ctypes.c_void_p, extra: None
    ) -> int:
        assert extra is None
        assert config.value and pointers.value
        self.fake.launch(LaunchConfig.from_address(config.value), function.value or 0, pointers.value)
        return int(OK)


def _forget() -> None:
    for cached in (device._count, device._device, device.attribute, device._primary_context):
        cached.cache_clear()
    module._loaded.clear()
    launcher._launchers.clear()
    device_workspace._buffers.clear()
    device_workspace._captured.clear()


@pytest.fixture
def fake_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    """The package on a machine with two fake GPUs of compute capability 9.0."""
    fake = FakeDriver()
    for user in (drivers, device, module, device_workspace):
        monkeypatch.setattr(user, "driver", lambda: fake)
    for user in (bound_launch, device_workspace):
        monkeypatch.setattr(user, "library", lambda: FakeLibrary(fake))
    monkeypatch.setattr("lowlp_runtime.stream.driver", lambda: fake)
    monkeypatch.setattr("lowlp_runtime.linkers.driver", lambda: fake)
    _forget()
    yield fake
    _forget()
