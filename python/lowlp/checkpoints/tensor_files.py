"""Tensors in safetensors files: checked by the library `safetensors`, and then mapped, since numpy lacks its bfloat16
and floats of 8 bits.

A tensor is read when it is used, and `release` gives its pages back to the operating system, so that a process holds
what it made of a file and not the file too.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp_runtime.errors import LowlpRuntimeError, os_error

TYPES: Final[dict[str, np.dtype[Any]]] = {
    "F64": np.dtype(np.float64),
    "F32": np.dtype(np.float32),
    "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "I64": np.dtype(np.int64),
    "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16),
    "I8": np.dtype(np.int8),
    "U64": np.dtype(np.uint64),
    "U32": np.dtype(np.uint32),
    "U16": np.dtype(np.uint16),
    "U8": np.dtype(np.uint8),
    "BOOL": np.dtype(np.bool_),
    "C64": np.dtype(np.complex64),
}
"""Types of safetensors -> numpy's."""

FLOATS: Final = ("float16", "bfloat16", "float32")


class Place(NamedTuple):
    """Where a tensor is: in which file, from which byte on, its type by safetensors' name, and its shape."""

    file: int
    start: int
    kind: str
    shape: tuple[int, ...]


class TensorFiles:
    """The tensors of one or more safetensors files, by name.

    metadata  the texts of the files' headers
    """

    def __init__(self, paths: Sequence[Path], allowed: Mapping[str, str] | None = None) -> None:
        """Raises `CheckpointError` and `LowlpOSError`.

        paths    the files
        allowed  the file name of each tensor, of an index; None: all tensors of all files
        """
        self.paths = tuple(paths)
        self.metadata: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self._maps: list[mmap.mmap | None] = []
        for number, path in enumerate(self.paths):
            places, mapped, metadata = _opened(path, number)
            self._maps.append(mapped)
            self.metadata |= metadata
            wanted = {
                name: place for name, place in places.items() if allowed is None or allowed.get(name) == path.name
            }
            twice = self._places.keys() & wanted.keys()
            if twice:
                raise CheckpointError(f"{path}: has the tensor {min(twice)!r}, which another file has too")
            self._places |= wanted
        for name in (allowed or {}).keys() - self._places.keys():
            raise CheckpointError(f"{(allowed or {})[name]}: lacks the tensor {name!r}, which the index says is there")

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of the files."""
        return tuple(self._places)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bare(name) in self._places

    def ending(self, suffix: str) -> list[str]:
        """What comes before `suffix` in the names that end with it; '' where the tensors of one layer have no name
        before theirs, 'qweight' for '.qweight'."""
        found = [name[: -len(suffix)] for name in self._places if name.endswith(suffix)]
        return [*found, ""] if suffix.startswith(".") and bare(suffix) in self._places else found

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor."""
        return self._place(name).shape

    def kind(self, name: str) -> str:
        """The type of a tensor, as safetensors calls it."""
        return self._place(name).kind

    def type_name(self, name: str) -> str:
        """The numpy name of a tensor's type, 'bfloat16' for example, or what the file calls one that numpy lacks."""
        kind = self._place(name).kind
        return TYPES[kind].name if kind in TYPES else kind

    def nbytes(self, name: str) -> int:
        """Bytes of a tensor in its file."""
        place = self._place(name)
        return math.prod(place.shape) * TYPES[place.kind].itemsize if place.kind in TYPES else 0

    def array(self, name: str, shape: Sequence[int | None] | None = None, kinds: Iterable[str] = ()) -> AnyArray:
        """A tensor, read-only, where the file is mapped.

        shape  what it must have; None as an extent: any
        kinds  allowed types, by numpy's names; none: all

        Raises `CheckpointError`, which names the tensor.
        """
        place = self._place(name)
        if place.kind not in TYPES:
            raise CheckpointError(f"{name}: elements of the type {place.kind} are not read")
        allowed = tuple(kinds)
        if allowed and TYPES[place.kind].name not in allowed:
            raise CheckpointError(f"{name}: expected elements of {' or '.join(allowed)}, got {TYPES[place.kind].name}")
        if shape is not None and not _fits(place.shape, shape):
            wanted = ", ".join("any" if extent is None else str(extent) for extent in shape)
            raise CheckpointError(f"{name}: expected shape [{wanted}], got {list(place.shape)}")
        return self._memory(bare(name), place)

    def number(self, name: str, kinds: Iterable[str] = FLOATS) -> float:
        """The one number of a tensor. Raises `CheckpointError` for more or none."""
        array = self.array(name, kinds=kinds)
        if array.size != 1:
            raise CheckpointError(f"{name}: expected one number, got shape {list(array.shape)}")
        return float(array.reshape(-1)[0])

    def release(self, names: Iterable[str]) -> None:
        """Lets the operating system take back the memory of these tensors; they are read anew where they are used
        again."""
        for name in names:
            place = self._places.get(bare(name))
            mapped = None if place is None else self._maps[place.file]
            if place is not None and mapped is not None:
                first = place.start // mmap.PAGESIZE * mmap.PAGESIZE
                mapped.madvise(mmap.MADV_DONTNEED, first, place.start + self.nbytes(name) - first)

    def _memory(self, name: str, place: Place) -> AnyArray:
        mapped, dtype = self._maps[place.file], TYPES[place.kind]
        count = math.prod(place.shape)
        if mapped is None or not count:
            return np.empty(place.shape, dtype)
        if place.start % dtype.itemsize:
            # Headers of other writers need not end at a multiple of the elements' size.
            raw = np.frombuffer(mapped, np.uint8, count * dtype.itemsize, place.start)
            return raw.copy().view(dtype).reshape(place.shape)
        return np.frombuffer(mapped, dtype, count, place.start).reshape(place.shape)

    def _place(self, name: str) -> Place:
        if name not in self:
            raise CheckpointError(f"{bare(name)}: is missing")
        return self._places[bare(name)]


def bare(name: str) -> str:
    """The name of a tensor or layer whose module may have none."""
    return name.removeprefix(".")


def _fits(shape: tuple[int, ...], wanted: Sequence[int | None]) -> bool:
    return len(shape) == len(wanted) and all(w is None or w == s for w, s in zip(wanted, shape, strict=True))


def _opened(path: Path, number: int) -> tuple[dict[str, Place], mmap.mmap | None, dict[str, str]]:
    """The places of a file's tensors, the file mapped, and its metadata."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise LowlpRuntimeError("safetensors files need the package safetensors: pip install safetensors") from None
    try:
        with safe_open(path, framework="np"):
            pass  # checks that the header fits the file, and that offsets neither overlap nor leave gaps
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
            # A file without tensors may end with its header.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except SafetensorError as error:
        raise CheckpointError(f"{path}: no readable safetensors file: {error}") from None
    except OSError as error:
        raise os_error(error, path) from None
    except (ValueError, struct.error, RecursionError) as error:
        raise CheckpointError(f"{path}: no readable safetensors file: {error}") from None
    metadata = header.pop("__metadata__", None) or {}
    places = {
        name: Place(number, 8 + length + entry["data_offsets"][0], entry["dtype"], tuple(entry["shape"]))
        for name, entry in header.items()
    }
    return places, mapped, metadata
