"""Operands on a GPU, as tensors of PyTorch. Who calls this has imported PyTorch: it has tensors."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from lowlp_runtime.errors import LowlpTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TORCH_NAMES: Final = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "int32": "int32",
    # Launches know floats of 8 bits as bytes, and take signed integers for unsigned ones, of which PyTorch has few.
    "e8m0": "uint8",
    "e4m3": "uint8",
    "f8e4m3": "uint8",
    # Several in a byte.
    "uint4": "uint8",
    "int6": "uint8",
    "uint32": "int32",
}


def torch_type(element: str) -> Any:
    """PyTorch's type of an operand's elements, as a launch takes them. Raises `LowlpTypeError` for others."""
    if element not in _TORCH_NAMES:
        raise LowlpTypeError(f"element: expected one of {', '.join(_TORCH_NAMES)}, got {element!r:.40}")
    return getattr(sys.modules["torch"], _TORCH_NAMES[element])


def upload(array: NDArray[Any], element: str, device: Any) -> Any:
    """A copy of an operand on `device`, byte for byte, in one dimension. It is there when this returns: PyTorch waits
    for copies from pageable memory.

    In a thread of its own. torch.compile gives what its thread allocates while it warms a CUDA graph up to that graph,
    and refuses what outlives the graph's outputs; operands are kept as long as their weights.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_upload, array, element, device).result()


def _upload(array: NDArray[Any], element: str, device: Any) -> Any:
    import numpy as np

    torch: Any = sys.modules["torch"]
    data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    # PyTorch warns of memory that may not be written, which it only reads here: no reason for a copy on the host.
    memory = SimpleNamespace(__array_interface__={**data.__array_interface__, "data": (data.ctypes.data, False)})
    return torch.from_numpy(np.asarray(memory)).to(device).view(torch_type(element))
