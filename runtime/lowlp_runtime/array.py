"""Device arrays of any library, read as a pointer with a shape and an element type."""

import re
import sys
from dataclasses import dataclass, field
from typing import Any

from lowlp_runtime.device import unless_device
from lowlp_runtime.dlpack import DEVICE_NAMES, KDL_CUDA, KDL_CUDA_MANAGED, contiguous_strides, read_capsule
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_TORCH_NAMES = {
    "torch.float16": "f16",
    "torch.bfloat16": "bf16",
    "torch.float32": "f32",
    "torch.float64": "f64",
    "torch.uint8": "u8",
    "torch.int8": "i8",
    "torch.uint16": "u16",
    "torch.int16": "i16",
    "torch.uint32": "u32",
    "torch.int32": "i32",
    "torch.uint64": "u64",
    "torch.int64": "i64",
    "torch.bool": "bool",
    "torch.float8_e4m3fn": "f8e4m3",
    "torch.float8_e5m2": "f8e5m2",
}
_TYPESTR = re.compile(r"[<|=]([iuf])([1248])")


@dataclass(frozen=True)
class DeviceArray:
    """An array in the memory of a CUDA device.

    pointer           address of element (0, ..., 0)
    shape             sizes
    strides_elements  steps, in elements, not bytes
    dtype_name        'f16', 'bf16', 'f32', 'u8', 'i32', 'f8e4m3', ...
    device            ordinal of the device; None where its owner does not say (a launch then asks the driver)
    read_only         writing to it is forbidden
    producer_stream   handle of the stream on which its contents become ready, where its owner names one
    """

    pointer: int
    shape: tuple[int, ...]
    strides_elements: tuple[int, ...]
    dtype_name: str
    device: int | None
    read_only: bool = False
    producer_stream: int | None = None
    owner: object = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Number of elements."""
        product = 1
        for extent in self.shape:
            product *= extent
        return product


def is_torch_tensor(value: object) -> bool:
    """Whether `value` is a `torch.Tensor`. PyTorch is never imported for it: who holds a tensor has imported it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def as_device_array(value: object, name: str = "array", stream: int = 0) -> DeviceArray:
    """Reads an array of any library without copying it.

    value   a `DeviceArray`; a CUDA `torch.Tensor`; or an object with `__cuda_array_interface__` (version 2 or 3) or
            `__dlpack__` on a CUDA device
    name    what errors call it
    stream  handle of the stream that will use it: a DLPack producer orders its own work before that stream's

    Raises `LowlpTypeError` for another object or an element type without a name here, `LowlpValueError` for an array in
    host memory.
    """
    if isinstance(value, DeviceArray):
        return value
    if is_torch_tensor(value):
        return _from_torch(value, name)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(interface, value, name)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value, name, stream)
    raise LowlpTypeError(
        f"{name}: expected a CUDA array (torch.Tensor, __cuda_array_interface__ or __dlpack__), "
        f"got {type(value).__name__}"
    )


def torch_element(tensor: Any, name: str) -> str:
    """The element type of a `torch.Tensor` as this package names it. Raises `LowlpTypeError` where it has no name."""
    dtype = str(tensor.dtype)
    if dtype not in _TORCH_NAMES:
        raise LowlpTypeError(f"{name}: dtype {dtype} is not supported; allowed: {', '.join(_TORCH_NAMES)}")
    return _TORCH_NAMES[dtype]


def _from_torch(tensor: Any, name: str) -> DeviceArray:
    if not tensor.is_cuda:
        found = str(tensor.device)
        raise LowlpValueError(f"{name}: expected a tensor on a CUDA device, got one on {found!r}{unless_device()}")
    return DeviceArray(
        tensor.data_ptr(),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        torch_element(tensor, name),
        tensor.get_device(),
        owner=tensor,
    )


def _from_interface(interface: object, owner: object, name: str) -> DeviceArray:
    """Numba's documentation, "CUDA Array Interface (Version 3)"."""
    if not isinstance(interface, dict):
        raise LowlpTypeError(f"{name}: __cuda_array_interface__ must be a dict, got {type(interface).__name__}")
    try:
        shape = tuple(int(extent) for extent in interface["shape"])
        pointer, read_only = interface["data"]
        typestr, strides_bytes = str(interface["typestr"]), interface.get("strides")
    except (KeyError, TypeError, ValueError) as error:
        raise LowlpTypeError(f"{name}: malformed __cuda_array_interface__: {error!r}") from error
    if interface.get("mask") is not None:
        raise LowlpTypeError(f"{name}: masked arrays are not supported")
    match = _TYPESTR.fullmatch(typestr)
    if typestr != "|b1" and (match is None or match[0][1:] == "f1"):
        raise LowlpTypeError(
            f"{name}: typestr {typestr!r} is not supported; types without one, such as bf16, need __dlpack__"
        )
    bytes_each = int(match[2]) if match else 1
    dtype = f"{match[1]}{8 * bytes_each}" if match else "bool"
    strides = contiguous_strides(shape)
    if strides_bytes is not None:
        if len(strides_bytes) != len(shape) or any(step % bytes_each for step in strides_bytes):
            raise LowlpValueError(
                f"{name}: strides {tuple(strides_bytes)} bytes do not fit elements of {bytes_each} bytes"
            )
        strides = tuple(int(step) // bytes_each for step in strides_bytes)
    address = int(pointer or 0)
    return DeviceArray(address, shape, strides, dtype, None, bool(read_only), interface.get("stream"), owner)


def _from_dlpack(value: object, name: str, stream: int) -> DeviceArray:
    """Array API standard, `__dlpack__` and `__dlpack_device__`."""
    get = value.__getattribute__
    kind, ordinal = (int(part) for part in get("__dlpack_device__")())
    if kind not in (KDL_CUDA, KDL_CUDA_MANAGED):
        where = DEVICE_NAMES.get(kind, kind)
        raise LowlpValueError(f"{name}: expected an array on a CUDA device, got one on {where}{unless_device()}")
    handle = stream or 1  # the standard calls the legacy default stream 1; 0 is ambiguous there
    try:
        capsule = get("__dlpack__")(stream=handle, max_version=(1, 1))
    except TypeError:  # a producer from before DLPack 1.0 does not know max_version
        capsule = get("__dlpack__")(stream=handle)
    found = read_capsule(capsule)
    return DeviceArray(
        found.pointer, found.shape, found.strides_elements, found.dtype_name, ordinal, found.read_only, owner=capsule
    )
