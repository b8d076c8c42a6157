"""GGUF files, mapped: metadata, and where tensors are.

    'GGUF', u32 version, u64 tensors, u64 metadata; then metadata (text, u32 type, value), then for each tensor (text,
    u32 dimensions, u64 each, u32 type, u64 offset); then, aligned, the data

Dimensions are written innermost first: [K, N] in the file is [N, K] here. Source: ggml-org/ggml (docs/gguf.md).
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.errors import os_error

MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT: Final = 8
_ARRAY: Final = 9
_MOST_DIMENSIONS: Final = 4
# Tensors and metadata have names of one byte at least, and more around them.
_LEAST_BYTES: Final = 12


class StoredTensor(NamedTuple):
    """A tensor of a file: its shape, outermost first, its type's number, and its first byte in the file."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int


class GgufFile:
    """A GGUF file.

    metadata  by key: numbers, texts, booleans and lists of them
    tensors   by name
    """

    def __init__(self, path: Path) -> None:
        """Raises `CheckpointError` and `LowlpOSError`."""
        self.path = path
        try:
            with open(path, "rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise os_error(error, path) from None
        except ValueError:
            raise CheckpointError(f"{path}: is empty") from None
        self._at = 0
        self.metadata: dict[str, Any] = {}
        self.tensors: dict[str, StoredTensor] = {}
        self._read_header()

    def octets(self, tensor: StoredTensor, count: int) -> AnyArray:
        """So many bytes of a tensor, read-only. Raises `CheckpointError` where the file has fewer."""
        if tensor.start + count > len(self._map):
            raise CheckpointError(
                f"{self.path}: {tensor.name} has {count} bytes from {tensor.start} on, beyond the end of the file at "
                f"{len(self._map)}"
            )
        return np.frombuffer(self._map, np.uint8, count, tensor.start)

    def release(self, tensor: StoredTensor, count: int) -> None:
        """Lets the operating system take back the memory of a tensor."""
        first = tensor.start // mmap.PAGESIZE * mmap.PAGESIZE
        self._map.madvise(mmap.MADV_DONTNEED, first, tensor.start + count - first)

    def _read_header(self) -> None:
        if self._map[:4] != MAGIC:
            raise CheckpointError(f"{self.path}: no GGUF file: it begins with {bytes(self._map[:4])!r}")
        self._at = 4
        version = self._number("I")
        if version not in _VERSIONS:
            raise CheckpointError(f"{self.path}: GGUF version {version} is not read; allowed: 2, 3 (little-endian)")
        tensors, entries = self._number("Q"), self._number("Q")
        for what, count in (("tensors", tensors), ("metadata", entries)):
            self._check_count(count, _LEAST_BYTES, what)
        for _ in range(entries):
            key = self._text("metadata")
            self.metadata[key] = self._value(self._number("I"), key)
        found = [self._tensor() for _ in range(tensors)]
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise CheckpointError(f"{self.path}: general.alignment must be a power of two, got {alignment!r:.40}")
        data = -(-self._at // alignment) * alignment
        for tensor in found:
            if tensor.start % alignment:
                raise CheckpointError(
                    f"{self.path}: {tensor.name} begins at {tensor.start}, no multiple of {alignment}"
                )
            if tensor.name in self.tensors:
                raise CheckpointError(f"{self.path}: has two tensors {tensor.name!r:.80}")
            self.tensors[tensor.name] = tensor._replace(start=data + tensor.start)

    def _tensor(self) -> StoredTensor:
        name = self._text("a tensor's name")
        dimensions = self._number("I")
        if dimensions > _MOST_DIMENSIONS:
            raise CheckpointError(f"{self.path}: {name!r:.80} has {dimensions} dimensions; allowed: at most 4")
        shape = tuple(self._number("Q") for _ in range(dimensions))[::-1]
        if math.prod(shape) > 8 * 256 * len(self._map):
            raise CheckpointError(f"{self.path}: {name!r:.80} of shape {list(shape)} is larger than the file")
        return StoredTensor(name, shape, self._number("I"), self._number("Q"))

    def _take(self, count: int, what: str) -> bytes:
        if count > len(self._map) - self._at:
            raise CheckpointError(
                f"{self.path}: ends at byte {len(self._map)} within its header: {what} of {count} bytes from "
                f"{self._at} on"
            )
        self._at += count
        return self._map[self._at - count : self._at]

    def _check_count(self, count: int, least: int, what: str) -> None:
        if count * least > len(self._map) - self._at:
            raise CheckpointError(f"{self.path}: claims {count} {what}, more than the file has room for")

    def _number(self, kind: str) -> Any:
        return struct.unpack(f"<{kind}", self._take(struct.calcsize(f"<{kind}"), "a number"))[0]

    def _text(self, what: str) -> str:
        raw = self._take(self._number("Q"), what)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            # Tokens of vocabularies may be no whole characters.
            return raw.decode("utf-8", "surrogateescape")

    def _value(self, kind: int, key: str, depth: int = 0) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _TEXT:
            return self._text(key)
        if kind != _ARRAY or depth > 2:
            raise CheckpointError(f"{self.path}: metadata {key!r:.80} has the unknown type {kind}")
        element, count = self._number("I"), self._number("Q")
        if element in _NUMBERS:
            width = struct.calcsize(f"<{_NUMBERS[element]}")
            self._check_count(count, width, f"elements of {key}")
            raw = self._take(count * width, key)
            return list(struct.unpack(f"<{count}{_NUMBERS[element]}", raw))
        self._check_count(count, 8, f"elements of {key}")
        return [self._value(element, key, depth + 1) for _ in range(count)]
