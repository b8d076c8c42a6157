"""Streams of any library, as the handle that the driver takes."""

import operator
import sys
from collections.abc import Iterable
from typing import Any

from lowlp_runtime.driver import call, driver
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

# cuda.h: both numbers mean the stream that synchronises with all blocking streams.
_LEGACY = (0, 1)


def stream_handle(stream: object) -> int:
    """The handle of a stream that is not None.

    stream  an int (0 and 1: the legacy default stream, 2: the default stream of this thread), a stream of
            cuda-python, an object with `__cuda_stream__` (cuda.core's protocol, version 0), a `torch.cuda.Stream`,
            or a CuPy stream

    Raises `LowlpTypeError` for anything else and `LowlpValueError` for a negative handle.
    """
    if type(stream) is int and stream >= 0:
        return stream
    handle: Any = stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise LowlpValueError(f"stream: __cuda_stream__ has version {version!r}; expected 0")
    elif hasattr(stream, "cuda_stream"):
        handle = stream.cuda_stream
    elif type(stream).__module__.split(".")[0] == "cupy" and hasattr(stream, "ptr"):
        handle = stream.ptr
    elif type(stream).__module__.split(".")[0] == "cuda" and hasattr(stream, "__int__"):
        handle = int(handle)  # a CUstream is its handle
    if isinstance(handle, bool) or not hasattr(handle, "__index__"):
        raise LowlpTypeError(
            "stream: expected None, an int, a stream of cuda-python or torch, or an object with __cuda_stream__, "
            f"got {type(stream).__name__}"
        )
    number = operator.index(handle)
    if number < 0:
        raise LowlpValueError(f"stream: a handle is not negative, got {number}")
    return number


def current_torch_stream(ordinal: int) -> int:
    """The handle of PyTorch's current stream on a device. PyTorch is imported already."""
    torch: Any = sys.modules["torch"]
    try:
        # A tenth of what a stream object costs; PyTorch's own code generator relies on it too.
        handle: int = torch._C._cuda_getCurrentRawStream(ordinal)
    except AttributeError:
        return int(torch.cuda.current_stream(ordinal).cuda_stream)
    return handle


def other_torch_stream(stream: object, device: Any) -> Any:
    """What to enter with `with` so that the caller's stream is PyTorch's current one on a CUDA device: results, and
    copies of arguments if there are any, are then made in its order too. None where `stream` is None or current.

    stream  as for `stream_handle`, or None; device is a `torch.device`
    """
    if stream is None:
        return None
    handle = stream_handle(stream)
    if handle == current_torch_stream(device.index):
        return None
    torch: Any = sys.modules["torch"]
    return torch.cuda.stream(torch.cuda.ExternalStream(handle, device=device))


def current_stream(arguments: Iterable[object]) -> int:
    """The caller's stream: PyTorch's current one on the device of the first CUDA tensor among the arguments; without
    one the legacy default stream."""
    tensor_class: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    for argument in arguments:
        if isinstance(argument, tensor_class) and argument.is_cuda:
            return current_torch_stream(argument.get_device())
    return 0


def order_after(stream: int, producer: int) -> None:
    """Makes what comes next on `stream` wait, on the device, for what is on `producer` now. Does nothing for one and
    the same stream."""
    if stream == producer or (stream in _LEGACY and producer in _LEGACY):
        return
    event = call("cuEventCreate", driver().CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
    try:
        call("cuEventRecord", event, producer)
        call("cuStreamWaitEvent", stream, event, 0)
    finally:
        call("cuEventDestroy", event)
