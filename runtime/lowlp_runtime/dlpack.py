"""Reading DLPack capsules, by ctypes: what one says of a tensor, with nothing allocated and nothing copied.

Source: DLPack 1.1, dlpack.h. Both capsules are read, 'dltensor' and 'dltensor_versioned'. A capsule that is read and
never renamed stays the owner of its tensor, and frees it when it goes.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

from lowlp_runtime.errors import LowlpTypeError

KDL_CUDA = 2
KDL_CUDA_MANAGED = 13
DEVICE_NAMES = {
    1: "CPU",
    2: "CUDA",
    3: "CUDA host",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    13: "CUDA managed",
}
_READ_ONLY = 1

# DLDataTypeCode -> our name; the codes from 7 on are float types of a fixed width.
_BY_WIDTH = {0: "i", 1: "u", 2: "f"}
_FIXED = {
    (4, 16): "bf16",
    (6, 8): "bool",
    (7, 8): "f8e3m4",
    (10, 8): "f8e4m3",
    (12, 8): "f8e5m2",
}


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("ordinal", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _VersionedTensor(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


@dataclass(frozen=True)
class CapsuleContents:
    """What a capsule says: address, shape, strides in elements, our name of the element type, DLPack device,
    read-only.
    """

    pointer: int
    shape: tuple[int, ...]
    strides_elements: tuple[int, ...]
    dtype_name: str
    device_kind: int
    ordinal: int
    read_only: bool


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a row-major array."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def is_contiguous(shape: tuple[int, ...], strides_elements: tuple[int, ...]) -> bool:
    """Whether elements lie as in a row-major array: strides of dimensions of one element do not count."""
    expected = zip(shape, strides_elements, contiguous_strides(shape), strict=True)
    return 0 in shape or all(stride == wanted for extent, stride, wanted in expected if extent != 1)


def _pointer_in(capsule: object, name: bytes) -> int | None:
    api = ctypes.pythonapi
    is_valid, get = api.PyCapsule_IsValid, api.PyCapsule_GetPointer
    is_valid.argtypes, is_valid.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_int
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    return get(capsule, name) if is_valid(capsule, name) else None


def read_capsule(capsule: Any) -> CapsuleContents:
    """What the capsule says. Raises `LowlpTypeError` for another object, a consumed capsule, a later major version of
    DLPack, or an element type that has no name here."""
    read_only = False
    address = _pointer_in(capsule, b"dltensor_versioned")
    if address is not None:
        versioned = _VersionedTensor.from_address(address)
        if versioned.major != 1:
            raise LowlpTypeError(f"DLPack capsule: version {versioned.major}.{versioned.minor}; expected 1.x")
        tensor, read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    else:
        address = _pointer_in(capsule, b"dltensor")
        if address is None:
            raise LowlpTypeError("DLPack capsule: expected an unconsumed 'dltensor' or 'dltensor_versioned' capsule")
        tensor = _Tensor.from_address(address)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else contiguous_strides(shape)
    return CapsuleContents(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        strides,
        _element_name(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes),
        tensor.device.kind,
        tensor.device.ordinal,
        read_only,
    )


def _element_name(code: int, bits: int, lanes: int) -> str:
    name = _FIXED.get((code, bits))
    if name is None and code in _BY_WIDTH and bits in (8, 16, 32, 64) and (code, bits) != (2, 8):
        name = f"{_BY_WIDTH[code]}{bits}"
    if name is None or lanes != 1:
        raise LowlpTypeError(f"DLPack capsule: element type (code {code}, {bits} bits, {lanes} lanes) is not supported")
    return name
