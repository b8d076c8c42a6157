"""A checkpoint of any format that is read, opened: its weights by name, each read when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from lowlp.checkpoints import gguf, own
from lowlp.checkpoints.detection import FORMATS, known_method, method_by_tensors, read_json, settings_of
from lowlp.checkpoints.gguf_file import MAGIC, GgufFile
from lowlp.checkpoints.layers import Layer
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import TensorFiles, bare
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpFileNotFoundError, LowlpValueError, check_path, os_error

_INDEX: Final = ".safetensors.index.json"
_PICKLED: Final = (".bin", ".pt", ".pth", ".ckpt")


class _Arrays(Protocol):
    """Where arrays that are not quantised come from."""

    def array(self, name: str) -> AnyArray: ...
    def release(self, names: tuple[str, ...]) -> None: ...
    def nbytes(self, name: str) -> int: ...


class Checkpoint:
    """The tensors of a checkpoint by name: quantised weights, under the name that the model without quantisation has
    for them, and arrays. Nothing is read before it is asked for.

    path      as it was given
    format    the method: 'gptq', 'awq', 'compressed-tensors', 'gguf', 'lowlp', ...; '' where nothing is quantised
    settings  the quantisation config as the checkpoint has it; of GGUF its metadata
    layers    the quantised weights by name: `lowlp.checkpoints.Layer`
    arrays    the names of the others

    `checkpoint[name]` is a `QuantizedTensor` or a numpy array, which is read-only and in the file; a loop over the
    checkpoint gives pairs of name and value. Iterating releases what it has gone past.
    """

    def __init__(
        self,
        path: Path,
        method: str,
        settings: Mapping[str, Any],
        layers: list[Layer],
        arrays: tuple[str, ...],
        source: _Arrays,
        activation: object = None,
    ) -> None:
        self.path = path
        self.format = method
        self.settings = settings
        self.layers: dict[str, Layer] = {}
        for found in layers:
            tensors = tuple(map(bare, found.tensors))
            layer = replace(found, name=bare(found.name), tensors=tensors)
            if layer.name in self.layers or layer.name in arrays:
                raise CheckpointError(f"{path}: {layer.name} is there twice: {', '.join(layer.tensors)}")
            self.layers[layer.name] = layer
        self.arrays = arrays
        self._source = source
        self._activation = activation

    def __len__(self) -> int:
        return len(self.layers) + len(self.arrays)

    def __contains__(self, name: object) -> bool:
        return name in self.layers or name in self.arrays

    def __repr__(self) -> str:
        kind = self.format or "nothing quantised"
        return f"Checkpoint({str(self.path)!r}, {kind}, {len(self.layers)} weights, {len(self.arrays)} arrays)"

    @property
    def names(self) -> list[str]:
        """All names: of quantised weights, then of arrays."""
        return [*self.layers, *self.arrays]

    def __getitem__(self, name: str) -> QuantizedTensor | AnyArray:
        """Raises `LowlpValueError` for a name that is not there, and `CheckpointError` for weights that cannot be
        read, or whose layer transforms x or y: those `layers[name].load()` gives, with `layers[name].transforms`."""
        if name not in self:
            raise LowlpValueError(f"name: the checkpoint has no tensor {name!r:.120}")
        layer = self.layers.get(name)
        if layer is None:
            return self._source.array(name)
        if layer.transforms:
            raise CheckpointError(
                f"{name} ({layer.format}): its layer transforms x or y besides the product, so weights alone would be "
                "wrong; use layers[name].load() and layers[name].transforms of lowlp.checkpoints.open(path)"
            )
        found = layer.load(self._activation)
        self._source.release(layer.tensors)
        return found

    def __iter__(self) -> Iterator[tuple[str, QuantizedTensor | AnyArray]]:
        for name in self.names:
            yield name, self[name]

    def stored_bytes(self, name: str) -> int:
        """Bytes in the file of what `checkpoint[name]` is made of."""
        tensors = self.layers[name].tensors if name in self.layers else (name,)
        return sum(self._source.nbytes(tensor) for tensor in tensors)

    def tensor_bytes(self, tensor: str) -> int:
        """Bytes of one tensor of the file, by its name there: one of `layers[name].tensors`, or of `arrays`."""
        return self._source.nbytes(tensor)

    def release(self, name: str) -> None:
        """Gives the memory of an array's or layer's file pages back to the operating system."""
        self._source.release(self.layers[name].tensors if name in self.layers else (name,))


def open(  # noqa: A001  `lowlp.checkpoints.open`, named as `safetensors.safe_open` and `zipfile` name theirs
    path: str | os.PathLike[str], *, method: str | None = None, activation: object = None, exact: bool = True
) -> Checkpoint:
    """Opens a checkpoint: a folder as Hugging Face has it, a .safetensors file, its index, or a .gguf file.

    method      the format, where the config names none or a wrong one: 'gptq', 'awq', ...
    activation  for activations of which type weights are packed, as `QuantizedTensor` takes it
    exact       whether `dequantize()` must be the original tool's float32 meaning bit for bit. False keeps a smaller or
                faster form where one is within 2 units of the last place: NVFP4 of compressed-tensors with its scales
                in bytes and a reciprocal, 4.5 bits in place of 6

    Raises `LowlpOSError` for files that cannot be opened, and `CheckpointError` for what is damaged, contradicts itself
    or is of a format that is not read, with the reason.
    """
    check_path(path)
    place = Path(path)
    if not place.exists():
        raise LowlpFileNotFoundError(2, "no such file or folder", os.fspath(path))
    if place.is_dir():
        return _of_folder(place, method, activation, exact)
    if place.name.endswith(_INDEX):
        return _of_folder(place.parent, method, activation, exact, place)
    if place.suffix == ".gguf" or _begins_with_magic(place):
        return _of_gguf(place, activation)
    if place.suffix in _PICKLED:
        raise CheckpointError(f"{place}: pickled tensors are not read, since loading them runs code; use safetensors")
    if place.suffix != ".safetensors":
        raise CheckpointError(f"{place}: expected a folder, a .safetensors file, its index or a .gguf file")
    return _of_files(place, TensorFiles([place]), place.parent, method, activation, exact)


def read(
    path: str | os.PathLike[str], *, method: str | None = None, activation: object = None, exact: bool = True
) -> Iterator[tuple[str, QuantizedTensor | AnyArray]]:
    """The tensors of a checkpoint one after the other: `(name, QuantizedTensor)` for quantised weights and `(name,
    array)` for the others, numpy arrays that are in the file and read-only; bfloat16 is `ml_dtypes.bfloat16`.

    The file is mapped and weights are packed some rows at a time, so that the process holds what the caller keeps and
    one layer. Arguments and errors are those of `lowlp.checkpoints.open`, which also gives single tensors by name.
    """
    return iter(open(path, method=method, activation=activation, exact=exact))


def _begins_with_magic(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == MAGIC
    except OSError as error:
        raise os_error(error, path) from None


def _of_folder(
    folder: Path, method: str | None, activation: object, exact: bool, index: Path | None = None
) -> Checkpoint:
    files = tensor_files(folder, index)
    if files is None:
        ggufs = [found for found in sorted(folder.glob("*.gguf")) if not gguf.is_later_part(found)]
        if len(ggufs) == 1:
            return _of_gguf(ggufs[0], activation)
        pickled = [found.name for suffix in _PICKLED for found in folder.glob(f"*{suffix}")]
        reason = f"; {pickled[0]} is pickled, and loading it would run code" if pickled else ""
        raise CheckpointError(f"{folder}: has no .safetensors file, and not one .gguf file{reason}")
    return _of_files(folder, files, folder, method, activation, exact)


def tensor_files(folder: Path, index: Path | None = None) -> TensorFiles | None:
    """The safetensors files of the model in a folder, which `index`, or the one that is there, names; None without.
    Raises `CheckpointError`."""
    indices = [index] if index else sorted(folder.glob(f"*{_INDEX}"))
    if len(indices) > 1:
        raise CheckpointError(f"{folder}: has several indices: {', '.join(found.name for found in indices)}; name one")
    if indices:
        return _of_index(indices[0])
    # Other files beside this one, adapters for example, are no part of the model for Hugging Face either.
    whole = folder / "model.safetensors"
    paths = [whole] if whole.exists() else sorted(folder.glob("*.safetensors"))
    return TensorFiles(paths) if paths else None


def _of_index(index: Path) -> TensorFiles:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise CheckpointError(f"{index}: expected an object weight_map from names of tensors to names of files")
    for name in sorted(set(weight_map.values())):
        if Path(name).name != name or name in ("", ".", ".."):
            raise CheckpointError(f"{index}: {name!r:.80} must be the name of a file beside the index")
    return TensorFiles([index.parent / name for name in sorted(set(weight_map.values()))], weight_map)


def _of_files(
    path: Path, files: TensorFiles, folder: Path, method: str | None, activation: object, exact: bool
) -> Checkpoint:
    named, settings = settings_of(folder)
    found = known_method(method, "method") if method is not None else named
    if found is None:
        found = own.METHOD if own.is_own(files) else method_by_tensors(files)
    if found == own.METHOD:
        layers = list(own.layers(files, settings))
    elif found is None:
        layers, settings = [], Settings({})
    else:
        layers = list(FORMATS[found](files, settings, exact))
        if not layers:
            raise CheckpointError(f"{path}: no tensor is of the method {found}, which {settings.where} names")
    used = {bare(name) for layer in layers for name in layer.tensors}
    arrays = tuple(name for name in files.names if name not in used)
    return Checkpoint(path, found or "", settings.fields, layers, arrays, files, activation)


class _GgufArrays:
    """The tensors of GGUF files by name."""

    def __init__(self, files: Sequence[GgufFile]) -> None:
        self._files = {name: file for file in files for name in file.tensors}

    def array(self, name: str) -> AnyArray:
        return gguf.array_of(self._files[name], name)

    def release(self, names: tuple[str, ...]) -> None:
        for name in names:
            self._files[name].release(self._files[name].tensors[name], self.nbytes(name))

    def nbytes(self, name: str) -> int:
        return gguf.stored_bytes(self._files[name], self._files[name].tensors[name])


def _of_gguf(path: Path, activation: object) -> Checkpoint:
    files = gguf.parts_of(GgufFile(path))
    layers = [layer for file in files for layer in gguf.layers(file)]
    quantised = {layer.name for layer in layers}
    names = [name for file in files for name in file.tensors]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise CheckpointError(f"{path}: two of its files have the tensor {twice!r:.80}")
    arrays = tuple(name for name in names if name not in quantised)
    return Checkpoint(path, "gguf", files[0].metadata, layers, arrays, _GgufArrays(files), activation)
