"""Workspaces on devices: one for each stream, kept from launch to launch.

Work on one stream runs in order, so its kernels share a workspace; two streams never do. It grows when a kernel needs
more, in the order of the stream, and lives as long as the process. While a stream is captured into a CUDA graph, the
launches get a workspace that belongs to this capture alone: the graph may run again and again, beside anything else, as
long as no two instances of it run at once. It is kept for good, since graphs do not say when they end.
"""

import ctypes
import threading
from typing import NamedTuple

from lowlp_runtime.driver import call, check_status, driver
from lowlp_runtime.launch_call import library
from lowlp_runtime.workspace import WorkspaceLayout

# The legacy default stream has two handles, is never destroyed, and cannot be captured.
_LEGACY = (0, 1)
_LEGACY_ID = -1


class _Key(NamedTuple):
    context: int
    stream: int
    capture: int  # 0: none


class _Buffer(NamedTuple):
    begin: int
    zeroed_bytes: int
    scratch_bytes: int


_EMPTY = _Buffer(0, 0, 0)
# Held from asking for a pointer until the launch is on the stream, so that nobody frees the buffer before.
lock = threading.Lock()
_buffers: dict[_Key, _Buffer] = {}
_captured: list[_Buffer] = []  # those that a graph may still use


def workspace_pointer(layout: WorkspaceLayout, stream: int, context: int) -> int:
    """The pointer to a workspace that holds `layout`, for a launch on `stream`. The caller holds `lock`.

    context  the number of the current context, which is the stream's

    Raises `DeviceError` where there is no memory for it.
    """
    key = _Key(context, _LEGACY_ID, 0) if stream in _LEGACY else _key_of(stream, context)
    buffer = _buffers.get(key, _EMPTY)
    if layout.zeroed_bytes > buffer.zeroed_bytes or layout.scratch_bytes > buffer.scratch_bytes or not buffer.begin:
        buffer = _buffers[key] = _replace(buffer, layout, key, stream)
    return buffer.begin + buffer.zeroed_bytes


def _key_of(stream: int, context: int) -> _Key:
    # A stream that is captured tells no id; its handle says which one it is for as long as the capture lasts.
    capture = _capture_of(stream)
    return _Key(context, stream if capture else _number_of("cuStreamGetId", stream, ctypes.c_uint64()), capture)


def is_captured(stream: int) -> bool:
    """Whether the stream takes part in the capture of a CUDA graph."""
    return stream not in _LEGACY and _capture_of(stream) != 0


def _capture_of(stream: int) -> int:
    """A number of the capture that the stream takes part in; 0 for none."""
    # Asked first because it is cheap, and almost always says no.
    active = driver().CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
    if _number_of("cuStreamIsCapturing", stream, ctypes.c_int()) != int(active):
        return 0
    status, number, *_ = call("cuStreamGetCaptureInfo", stream)
    return int(number) if status == active else 0


def _number_of(name: str, stream: int, place: ctypes.c_int | ctypes.c_uint64) -> int:
    """What a function of the driver writes to `place` for a stream."""
    status = getattr(library(), name)(ctypes.c_void_p(stream), ctypes.byref(place))
    if status:
        check_status(name, status)
    return place.value


def _replace(old: _Buffer, layout: WorkspaceLayout, key: _Key, stream: int) -> _Buffer:
    """A buffer that holds the layout and whatever the old one could hold."""
    zeroed = max(old.zeroed_bytes, layout.zeroed_bytes)
    scratch = max(old.scratch_bytes, layout.scratch_bytes)
    size = max(zeroed + scratch, 1)
    if key.capture:
        if old.begin:
            _captured.append(old)
        return _Buffer(_allocate_beside_capture(size, zeroed), zeroed, scratch)
    if old.begin:
        call("cuMemFreeAsync", old.begin, stream)
        del _buffers[key]
    begin = int(call("cuMemAllocAsync", size, stream))
    if zeroed:
        call("cuMemsetD8Async", begin, 0, zeroed, stream)
    return _Buffer(begin, zeroed, scratch)


def _allocate_beside_capture(size: int, zeroed: int) -> int:
    """Memory that is there, and zero, when this returns; neither becomes a part of the graph."""
    driver_module = driver()
    mode = call("cuThreadExchangeStreamCaptureMode", driver_module.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        begin = int(call("cuMemAlloc", size))
        if zeroed:
            side = call("cuStreamCreate", driver_module.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
            try:
                call("cuMemsetD8Async", begin, 0, zeroed, side)
                call("cuStreamSynchronize", side)
            finally:
                call("cuStreamDestroy", side)
    finally:
        call("cuThreadExchangeStreamCaptureMode", mode)
    return begin
