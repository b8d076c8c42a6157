"""What quantisation and packing ask of an array library: the same few operations on blocks in numpy and PyTorch.

All but the sums are exact or rounded once, to nearest even, as IEEE 754 has it: so both libraries give the same bits,
on every device. Blocks are float32 and belong to the caller; names that end in `_` change them in place.
"""

import sys
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray


class ArrayOps(Protocol):
    """Blocks are arrays of the library; what is named `host` is numpy's."""

    block_elements: int
    """Weights that are worked on at a time."""
    workers: int
    """Blocks that are worked on at the same time."""

    def floats(self, weights: Any, rows: slice) -> Any:
        """Rows of the weights as float32, in memory of their own."""

    def put(self, host: AnyArray) -> Any:
        """A host array of float32, uint8 or integers, where the blocks are."""

    def host(self, array: Any) -> AnyArray:
        """An array in host memory."""

    def store(self, array: Any, host: AnyArray) -> None:
        """Copies an array into a contiguous part, with as many elements of the same type, of a host array."""

    def extremes(self, block: Any, axis: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The least and the greatest along an axis; NaN where there is one."""

    def mean_magnitude(self, block: Any, axis: int) -> NDArray[np.float32]:
        """The mean of the absolute values along an axis. The order of its sum is the library's."""

    def squares(self, block: Any, axis: int) -> NDArray[np.float32]:
        """The sum of the squares along an axis. Its order is the library's."""

    def round_(self, block: Any) -> None:
        """To integers, to nearest even."""

    def clip_(self, block: Any, low: float, high: float) -> None:
        """Into low..high."""

    def as_bytes(self, block: Any, signed: bool) -> Any:
        """Whole numbers of -128..127 or 0..255 as uint8, in two's complement."""

    def bits(self, block: Any) -> Any:
        """The bits of a contiguous float32 block as int32, in the same memory."""

    def as_int32(self, array: Any) -> Any:
        """Truth values as 0 and 1, or bytes as numbers."""

    def take(self, table: Any, index: Any) -> Any:
        """Elements of a table of one dimension; every index is within it."""

    def zero_bytes(self, shape: tuple[int, ...]) -> Any:
        """uint8 zeros."""

    def permute(self, array: Any, axes: tuple[int, ...]) -> Any:
        """The array with its dimensions in another order, in the same memory."""

    def as_words(self, in_bytes: Any) -> Any:
        """Contiguous uint8 [..., 4], low bytes first, as uint32 [..., 1] in the same memory."""

    def as_bytes_of_words(self, words: Any) -> Any:
        """uint32 as uint8 [..., 4], low bytes first."""

    def as_bytes_of_codes(self, codes: Any) -> Any:
        """uint8 or uint16 as uint8 [..., 1 or 2], low bytes first."""

    def as_codes(self, in_bytes: Any) -> Any:
        """The inverse, of contiguous bytes."""


class NumpyOps:
    """numpy, in the memory of the host."""

    block_elements = 1 << 18

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def floats(self, weights: AnyArray, rows: slice) -> NDArray[np.float32]:
        with np.errstate(over="ignore"):  # float64 beyond float32 becomes an infinity, and is refused as such
            return weights[rows].astype(np.float32, order="C")

    def put(self, host: AnyArray) -> AnyArray:
        return host

    def host(self, array: AnyArray) -> AnyArray:
        return array

    def store(self, array: AnyArray, host: AnyArray) -> None:
        host[...] = array.reshape(host.shape)

    def extremes(self, block: AnyArray, axis: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return block.min(axis=axis), block.max(axis=axis)

    def mean_magnitude(self, block: AnyArray, axis: int) -> NDArray[np.float32]:
        mean: NDArray[np.float32] = np.abs(block).mean(axis=axis, dtype=np.float32)
        return mean

    def squares(self, block: AnyArray, axis: int) -> NDArray[np.float32]:
        with np.errstate(over="ignore"):
            total: NDArray[np.float32] = np.square(block).sum(axis=axis, dtype=np.float32)
        return total

    def round_(self, block: AnyArray) -> None:
        np.rint(block, out=block)

    def clip_(self, block: AnyArray, low: float, high: float) -> None:
        np.clip(block, np.float32(low), np.float32(high), out=block)

    def as_bytes(self, block: AnyArray, signed: bool) -> AnyArray:
        return block.astype(np.int8).view(np.uint8) if signed else block.astype(np.uint8)

    def bits(self, block: AnyArray) -> AnyArray:
        return block.view(np.int32)

    def as_int32(self, array: AnyArray) -> AnyArray:
        return array.astype(np.int32)

    def take(self, table: AnyArray, index: AnyArray) -> AnyArray:
        # 'clip' spares numpy the check that callers have made.
        return np.take(table, index, mode="clip")

    def zero_bytes(self, shape: tuple[int, ...]) -> AnyArray:
        return np.zeros(shape, np.uint8)

    def permute(self, array: AnyArray, axes: tuple[int, ...]) -> AnyArray:
        return np.transpose(array, axes)

    def as_words(self, in_bytes: AnyArray) -> AnyArray:
        return in_bytes.view("<u4").astype(np.uint32, copy=False)

    def as_bytes_of_words(self, words: AnyArray) -> AnyArray:
        contiguous: AnyArray = np.ascontiguousarray(words, "<u4")
        return contiguous[..., None].view(np.uint8)

    def as_bytes_of_codes(self, codes: AnyArray) -> AnyArray:
        if codes.dtype == np.uint8:
            return codes[..., None]
        contiguous: AnyArray = np.ascontiguousarray(codes, "<u2")
        return contiguous[..., None].view(np.uint8)

    def as_codes(self, in_bytes: AnyArray) -> AnyArray:
        if in_bytes.shape[-1] == 1:
            return in_bytes[..., 0]
        return in_bytes.view("<u2")[..., 0].astype(np.uint16, copy=False)


class TorchOps:
    """PyTorch on one device."""

    block_elements = 1 << 24
    workers = 1

    def __init__(self, device: Any) -> None:
        self.device = device
        self.torch: Any = sys.modules["torch"]

    def floats(self, weights: Any, rows: slice) -> Any:
        return weights[rows].detach().to(self.torch.float32, copy=True).contiguous()

    def put(self, host: AnyArray) -> Any:
        return self.torch.from_numpy(np.array(host)).to(self.device)

    def host(self, array: Any) -> AnyArray:
        found: AnyArray = array.cpu().numpy()
        return found

    def store(self, array: Any, host: AnyArray) -> None:
        self.torch.from_numpy(host).copy_(array.reshape(host.shape))

    def extremes(self, block: Any, axis: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self.host(block.amin(dim=axis)), self.host(block.amax(dim=axis))

    def mean_magnitude(self, block: Any, axis: int) -> NDArray[np.float32]:
        return self.host(block.abs().mean(dim=axis))

    def squares(self, block: Any, axis: int) -> NDArray[np.float32]:
        return self.host(block.square().sum(dim=axis))

    def round_(self, block: Any) -> None:
        block.round_()

    def clip_(self, block: Any, low: float, high: float) -> None:
        block.clamp_(low, high)

    def as_bytes(self, block: Any, signed: bool) -> Any:
        return block.to(self.torch.int8).view(self.torch.uint8) if signed else block.to(self.torch.uint8)

    def bits(self, block: Any) -> Any:
        return block.view(self.torch.int32)

    def as_int32(self, array: Any) -> Any:
        return array.to(self.torch.int32)

    def take(self, table: Any, index: Any) -> Any:
        return table[index.long()]

    def zero_bytes(self, shape: tuple[int, ...]) -> Any:
        return self.torch.zeros(shape, dtype=self.torch.uint8, device=self.device)

    def permute(self, array: Any, axes: tuple[int, ...]) -> Any:
        return array.permute(axes)

    def as_words(self, in_bytes: Any) -> Any:
        return in_bytes.view(self.torch.uint32)

    def as_bytes_of_words(self, words: Any) -> Any:
        return words.contiguous()[..., None].view(self.torch.uint8)

    def as_bytes_of_codes(self, codes: Any) -> Any:
        return codes.contiguous()[..., None].view(self.torch.uint8)

    def as_codes(self, in_bytes: Any) -> Any:
        return in_bytes[..., 0] if in_bytes.shape[-1] == 1 else in_bytes.view(self.torch.uint16)[..., 0]


def row_slices(n: int, k: int, block_elements: int) -> Sequence[slice]:
    """The rows of a matrix [n, k], a block at a time."""
    rows = max(1, block_elements // k)
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]
