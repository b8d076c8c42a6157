"""The two functions of the driver that every launch calls, by ctypes. cuda-bindings, which makes objects of arguments
and results, takes several microseconds for them."""

import ctypes
import functools
import sys
from typing import Any

from lowlp_runtime.driver import driver

# cuda.h, CUlaunchAttributeID.
_PROGRAMMATIC_STREAM_SERIALIZATION = 6


class _LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute of cuda.h: the number, and a value of 64 bytes."""

    _fields_ = (
        ("id", ctypes.c_uint),
        ("pad", ctypes.c_uint),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_byte * 60),
    )


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig of cuda.h, of launches of one size of blocks.

    numAttrs  1 for a launch that may start before the one in front has ended, else 0
    """

    _fields_ = (
        ("gridDimX", ctypes.c_uint),
        ("gridDimY", ctypes.c_uint),
        ("gridDimZ", ctypes.c_uint),
        ("blockDimX", ctypes.c_uint),
        ("blockDimY", ctypes.c_uint),
        ("blockDimZ", ctypes.c_uint),
        ("sharedMemBytes", ctypes.c_uint),
        ("hStream", ctypes.c_void_p),
        ("attrs", ctypes.POINTER(_LaunchAttribute)),
        ("numAttrs", ctypes.c_uint),
    )

    def __init__(self, block: tuple[int, int, int], shared_bytes: int) -> None:
        early = _LaunchAttribute(id=_PROGRAMMATIC_STREAM_SERIALIZATION, value=1)
        x, y, z = block
        super().__init__(
            blockDimX=x, blockDimY=y, blockDimZ=z, sharedMemBytes=shared_bytes, attrs=ctypes.pointer(early)
        )


@functools.cache
def library() -> Any:
    """The driver's library, initialised. Raises `DeviceError` where there is none."""
    driver()
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    found = ctypes.CDLL(name)
    found.cuLaunchKernelEx.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    found.cuCtxGetId.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    return found
