"""Functions of the driver that launches call every time, by ctypes. cuda-bindings, which makes objects of arguments
and results, takes several microseconds for them."""

import ctypes
import functools
import sys
from typing import Any, NamedTuple

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
    """CUlaunchConfig of cuda.h.

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


# From hStream on to the end of the configuration, for `struct`: the stream, `EARLY` and the number of attributes.
STREAM_OFFSET = LaunchConfig.hStream.offset
STREAM_FORMAT = "<QQI4x"
_early = _LaunchAttribute(id=_PROGRAMMATIC_STREAM_SERIALIZATION, value=1)
EARLY = ctypes.addressof(_early)


class LaunchLibrary(NamedTuple):
    """Functions of the driver's library. They take None and objects of ctypes, which are not converted anew."""

    cuLaunchKernelEx: Any
    cuCtxGetId: Any
    cuStreamIsCapturing: Any
    cuStreamGetId: Any


@functools.cache
def library() -> LaunchLibrary:
    """The driver's library, initialised. Raises `DeviceError` where there is none."""
    driver()
    found = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    return LaunchLibrary(*[getattr(found, name) for name in LaunchLibrary._fields])
