"""Launching a kernel: arguments checked against its description, then one cuLaunchKernel.

A launch synchronises nothing and allocates nothing on the device, so it can be captured in a CUDA graph. (The first
launch in a context loads the kernel; `load_kernel` does that ahead. A kernel with a workspace may allocate one for its
stream or capture, see `lowlp_runtime.device_workspace`.) Arrays are ordered by the stream alone, as with
any other asynchronous library: keep them alive until the work is done, or let their library's allocator know the
stream.
"""

from collections.abc import Mapping, Sequence

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.launcher import launcher_of


def launch(
    kernel: KernelBinary,
    arguments: Sequence[object] | Mapping[str, object],
    stream: object = None,
) -> None:
    """Puts one run of the kernel on a stream, and returns at once.

    kernel     what to run; code for the arrays' device is chosen and loaded when first needed
    arguments  one for each parameter, in order or by name. Pointers: a CUDA array of the element type (signed and
               unsigned integers of one width are interchangeable), or an address as an int. Integers and floats:
               Python's or numpy's.
    stream     an int handle, a stream of cuda-python or PyTorch, an object with `__cuda_stream__`; None: PyTorch's
               current stream where an argument is a CUDA tensor, else the legacy default stream

    Where the grid has no blocks (an M of 0, say) nothing is launched. Raises `LowlpTypeError` and `LowlpValueError`,
    which name the parameter, for arguments that do not fit the description, `DeviceError` for what the driver refuses.
    """
    launcher_of(kernel)(arguments, stream)
