"""CUDA devices and their primary contexts.

The runtime always works in a device's primary context: PyTorch, CuPy, JAX and the CUDA runtime API share it.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lowlp_runtime.driver import call, driver
from lowlp_runtime.errors import DeviceError, LowlpValueError

_UNAVAILABLE: list[str] = []


def cuda_device_count() -> int:
    """How many CUDA devices this process sees; 0, and no error, where there is no driver or no device."""
    try:
        driver()
    except DeviceError as error:
        _UNAVAILABLE[:] = [str(error)]
        return 0
    return int(call("cuDeviceGetCount"))


def why_no_device() -> str:
    """Why `cuda_device_count()` is 0, in a sentence; '' where it is not."""
    return "" if cuda_device_count() else (_UNAVAILABLE[0] if _UNAVAILABLE else "the driver sees no CUDA device")


def unless_device() -> str:
    """What an error about an array that is on no GPU adds where there is none to put it on; else ''."""
    why = why_no_device()
    return f"; this machine has no CUDA device to run it on: {why}" if why else ""


@functools.cache
def _count() -> int:
    count = cuda_device_count()
    if not count:
        raise DeviceError(f"no CUDA device: {why_no_device()}")
    return count


def has_several_devices() -> bool:
    """Whether a pointer's device is in doubt. Raises `DeviceError` where there is no device."""
    return _count() > 1


@functools.cache
def _device(ordinal: int) -> Any:
    if not 0 <= ordinal < _count():
        raise LowlpValueError(f"device: must be in 0..{_count() - 1}, got {ordinal}")
    return call("cuDeviceGet", ordinal)


@functools.cache
def attribute(name: str, ordinal: int) -> int:
    """Device attribute CU_DEVICE_ATTRIBUTE_<name>. Raises `DeviceError` or, for a device not there,
    `LowlpValueError`.
    """
    return int(
        call(
            "cuDeviceGetAttribute",
            getattr(driver().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"),
            _device(ordinal),
        )
    )


def compute_capability(ordinal: int = 0) -> tuple[int, int]:
    """Compute capability of a device, (9, 0) for an H200. Raises `DeviceError`, or `LowlpValueError` for its number."""
    return attribute("COMPUTE_CAPABILITY_MAJOR", ordinal), attribute("COMPUTE_CAPABILITY_MINOR", ordinal)


def max_shared_bytes(ordinal: int = 0) -> int:
    """Shared memory that one block may use when the kernel opts in, in bytes."""
    return attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", ordinal)


def multiprocessors(ordinal: int = 0) -> int:
    """How many multiprocessors the device has."""
    return attribute("MULTIPROCESSOR_COUNT", ordinal)


def device_name(ordinal: int = 0) -> str:
    """The device's name, 'NVIDIA H200'."""
    name: bytes = call("cuDeviceGetName", 256, _device(ordinal))
    return name.split(b"\0")[0].decode(errors="replace")


@functools.cache
def _primary_context(ordinal: int) -> Any:
    # Retained once and kept: the context lives as long as the process, as it does for the CUDA runtime API.
    return call("cuDevicePrimaryCtxRetain", _device(ordinal))


def current_device() -> int:
    """The device of this thread's current context, 0 where it has none. Raises `DeviceError` where there is no
    device.
    """
    _count()
    context = call("cuCtxGetCurrent")
    return int(call("cuCtxGetDevice")) if int(context) else 0


def device_of_pointer(pointer: int) -> int:
    """The device that owns an address. Raises `DeviceError` for an address that CUDA does not know."""
    if not has_several_devices():
        return 0
    kind = driver().CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(call("cuPointerGetAttribute", kind, pointer))


@contextmanager
def on_device(ordinal: int) -> Iterator[None]:
    """Makes the device's primary context current within the block, and leaves the thread as it was.

    A thread whose current context is already one of that device keeps it.
    """
    context = call("cuCtxGetCurrent")
    if int(context) and int(call("cuCtxGetDevice")) == ordinal:
        yield
        return
    call("cuCtxPushCurrent", _primary_context(ordinal))
    try:
        yield
    finally:
        call("cuCtxPopCurrent")
