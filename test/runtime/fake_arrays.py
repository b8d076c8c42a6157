"""Arrays that claim to be on a GPU: one speaks the CUDA array interface, one DLPack. Nothing reads their memory."""

import ctypes
from dataclasses import dataclass, field
from typing import Any

from lowlp_runtime import dlpack


@dataclass
class InterfaceArray:
    pointer: int = 0x7F0000000000
    shape: tuple[int, ...] = (1000,)
    typestr: str = "<i4"
    strides: tuple[int, ...] | None = None
    read_only: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = (self.pointer, self.read_only)
        known = {"shape": self.shape, "typestr": self.typestr, "strides": self.strides, "data": data, "version": 3}
        return {**known, **self.more}


def make_capsule(name: bytes, address: int) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.argtypes, new.restype = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p], ctypes.py_object
    return new(address, name, None)


class DLPackArray:
    """`code` and `bits` as in DLDataType; `versioned`: the producer knows DLPack 1."""

    def __init__(
        self,
        code: int = 0,
        bits: int = 32,
        shape: tuple[int, ...] = (1000,),
        strides: tuple[int, ...] | None = None,
        device: tuple[int, int] = (2, 1),
        versioned: bool = True,
        read_only: bool = False,
        byte_offset: int = 0,
        major: int = 1,
    ) -> None:
        self.device, self.versioned, self.streams = device, versioned, list[int]()
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        tensor = dlpack._Tensor(
            data=0x7F0000000000,
            device=dlpack._Device(*device),
            ndim=len(shape),
            dtype=dlpack._DataType(code, bits, 1),
            shape=ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)),
            byte_offset=byte_offset,
        )
        if self.strides is not None:
            tensor.strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64))
        self.managed = (
            dlpack._VersionedTensor(major=major, flags=int(read_only), tensor=tensor) if versioned else tensor
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, *, stream: int, **more: Any) -> object:
        if more and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.streams.append(stream)
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return make_capsule(name, ctypes.addressof(self.managed))
