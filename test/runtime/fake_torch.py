"""A stand-in for PyTorch on a machine with GPUs: tensors with an address and no memory, streams, current devices.

It has what `lowlp` and `lowlp_runtime` use of PyTorch and of CUDA tensors, and nothing else.
"""

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest


class FakeType:
    """An element type, printed as PyTorch prints it."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.itemsize = name, size

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class FakeDevice:
    def __init__(self, index: int) -> None:
        self.type, self.index = "cuda", index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FakeDevice) and other.index == self.index

    def __hash__(self) -> int:
        return self.index

    def __str__(self) -> str:
        return f"cuda:{self.index}"


class FakeTensor:
    """Contiguous unless strides are given."""

    is_cuda = True
    lock = threading.Lock()
    next_address = 0x7000_0000_0000

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: FakeType,
        device: FakeDevice,
        strides: tuple[int, ...] | None = None,
        address: int | None = None,
    ) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device
        self._strides = strides or tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
        if address is None:
            with FakeTensor.lock:
                address = FakeTensor.next_address
                FakeTensor.next_address += -(-(self.numel() * dtype.itemsize + 1) // 512) * 512
        self._address = address

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._address

    def get_device(self) -> int:
        return self.device.index

    def numel(self) -> int:
        return math.prod(self.shape)

    def is_contiguous(self) -> bool:
        expected = 1
        for extent, stride in reversed(list(zip(self.shape, self._strides, strict=True))):
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True

    def contiguous(self) -> "FakeTensor":
        return self if self.is_contiguous() else FakeTensor(self.shape, self.dtype, self.device)

    def reshape(self, *shape: int) -> "FakeTensor":
        if shape[0] != -1:
            assert self.is_contiguous() and math.prod(shape) == self.numel()
            return FakeTensor(shape, self.dtype, self.device, address=self._address)
        _, columns = shape
        count = self.numel() // columns
        if self.is_contiguous():
            return FakeTensor((count, columns), self.dtype, self.device, address=self._address)
        *outer, step = self._strides
        if all(left == right * extent for left, right, extent in zip(outer, outer[1:], self.shape[1:-1], strict=False)):
            return FakeTensor((count, columns), self.dtype, self.device, (outer[-1], step), self._address)
        return FakeTensor((count, columns), self.dtype, self.device)

    def flatten(self) -> "FakeTensor":
        return FakeTensor((self.numel(),), self.dtype, self.device, address=self._address)

    def __setitem__(self, index: object, value: "FakeTensor") -> None:
        """Nothing has contents."""

    def to(self, device: FakeDevice) -> "FakeTensor":
        return FakeTensor(self.shape, self.dtype, device)

    def view(self, dtype: FakeType) -> "FakeTensor":
        (count,) = self.shape
        return FakeTensor((count * self.dtype.itemsize // dtype.itemsize,), dtype, self.device, address=self._address)


class FakeStream:
    def __init__(self, handle: int, device: FakeDevice) -> None:
        self.cuda_stream, self.device = handle, device


class FakeTorch(ModuleType):
    """`streams` holds the current stream of each device; `empty_on` the streams on which results were allocated."""

    Tensor = FakeTensor

    def __init__(self) -> None:
        super().__init__("torch")
        sizes = {"float16": 2, "bfloat16": 2, "float32": 4, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8}
        for name, size in sizes.items():
            setattr(self, name, FakeType(name, size))
        self.streams: dict[int, int] = {}
        self.empty_on: list[int] = []
        self._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda index: self.streams.get(index, 0))
        self.cuda = SimpleNamespace(device=self._on_device, stream=self._on_stream, ExternalStream=FakeStream)

    def empty(self, shape: tuple[int, ...], dtype: FakeType, device: FakeDevice) -> FakeTensor:
        self.empty_on.append(self.streams.get(device.index, 0))
        return FakeTensor(tuple(shape), dtype, device)

    zeros = empty

    def from_numpy(self, array: Any) -> FakeTensor:
        return FakeTensor(array.shape, getattr(self, np.dtype(array.dtype).name), FakeDevice(-1))

    @contextmanager
    def _on_device(self, device: FakeDevice) -> Iterator[None]:
        yield

    @contextmanager
    def _on_stream(self, stream: FakeStream) -> Iterator[None]:
        before = self.streams.get(stream.device.index, 0)
        self.streams[stream.device.index] = stream.cuda_stream
        try:
            yield
        finally:
            self.streams[stream.device.index] = before


@pytest.fixture
def fake_torch(monkeypatch: pytest.MonkeyPatch) -> FakeTorch:
    """The package beside this stand-in for PyTorch."""
    module = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module
