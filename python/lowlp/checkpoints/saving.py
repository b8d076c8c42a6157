"""Writing checkpoints of lowlp (`own` says what is in them), a file of a few GiB at a time."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from lowlp.checkpoints.own import HEADER, KEY, METHOD, VERSION, base_of
from lowlp.checkpoints.tensor_files import TYPES
from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp.weights.packing import PACKED_FORMAT_VERSION
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp_runtime.errors import LowlpRuntimeError, LowlpTypeError, LowlpValueError, check_path, os_error

_SHARD_BYTES: Final = 4 << 30
"""Of a file, unless one tensor has more."""

Tensors = Mapping[str, object] | Iterable[tuple[str, object]]


def save(
    path: str | os.PathLike[str],
    tensors: Tensors,
    *,
    config: Mapping[str, Any] | None = None,
    shard_bytes: int = _SHARD_BYTES,
) -> list[Path]:
    """Writes a checkpoint of lowlp, a folder with safetensors files and config.json, and returns the files.

    path         the folder; made where there is none. One that has a checkpoint is refused
    tensors      a mapping or pairs of name and `QuantizedTensor`, or array of numpy or PyTorch on the CPU
    config       the model's config.json; its quantization_config becomes lowlp's
    shard_bytes  how large a file may be; what is written is let go before the next is taken from `tensors`

    Raises `LowlpTypeError`, `LowlpValueError` and `LowlpOSError`.
    """
    check_path(path)
    folder = Path(path)
    config_text = _config_text(config)
    if not isinstance(shard_bytes, int) or isinstance(shard_bytes, bool) or shard_bytes < 1:
        raise LowlpValueError(f"shard_bytes: must be a positive int, got {shard_bytes!r:.40}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = [*folder.glob("*.safetensors"), *folder.glob("config.json")]
    except OSError as error:
        raise os_error(error, folder) from None
    if taken:
        raise LowlpValueError(f"path: {folder} has a checkpoint already: {taken[0].name}")
    pairs = tensors.items() if isinstance(tensors, Mapping) else tensors
    files = _Files(folder, shard_bytes)
    try:
        for name, value in pairs:
            files.add(name, value)
        written = files.finish()
        (folder / "config.json").write_text(config_text, encoding="utf-8")
    except OSError as error:
        raise os_error(error, error.filename or folder) from None
    finally:
        files.discard()
    return [*written, folder / "config.json"]


def _config_text(config: object) -> str:
    """What config.json will say. Raises `LowlpTypeError` and `LowlpValueError`, before anything is written."""
    if config is not None and not isinstance(config, Mapping):
        raise LowlpTypeError(f"config: expected a mapping or None, got {type(config).__name__}")
    try:
        return _json_text({**(config or {}), "quantization_config": quantization_config()})
    except TypeError as error:
        raise LowlpTypeError(f"config: must be what JSON can say: {error}") from None
    except (ValueError, RecursionError) as error:
        raise LowlpValueError(f"config: must be what JSON can say: {error}") from None


def quantization_config() -> dict[str, Any]:
    """What config.json says of a checkpoint of lowlp."""
    return {"quant_method": METHOD, "version": VERSION, "packed_format": PACKED_FORMAT_VERSION}


def copy_beside(source: Path, target: Path) -> list[str]:
    """Copies what a model needs besides its tensors, such as its tokenizer, and returns the names."""
    copied = []
    for path in sorted(source.iterdir()):
        is_small = path.suffix in (".json", ".txt", ".model", ".jinja", ".tiktoken", ".vocab", ".merges", ".py")
        is_own = path.name in ("config.json", "quantize_config.json", "quant_config.json", "hf_quant_config.json")
        if path.is_file() and is_small and not is_own and not path.name.endswith(".safetensors.index.json"):
            shutil.copyfile(path, target / path.name)
            copied.append(path.name)
    return copied


class _Files:
    """The files of a checkpoint while it is written: those that are finished, and what the next one will hold."""

    def __init__(self, folder: Path, shard_bytes: int) -> None:
        self._folder = folder
        self._shard_bytes = shard_bytes
        self._arrays: dict[str, AnyArray] = {}
        self._others: list[str] = []
        self._held_bytes = 0
        self._temporary: list[Path] = []
        self._names: list[list[str]] = []
        self._known: set[str] = set()
        self._bytes = 0

    def add(self, name: object, value: object) -> None:
        """Takes a tensor. Raises `LowlpTypeError` and `LowlpValueError`, which name it."""
        if not isinstance(name, str):
            raise LowlpTypeError(f"tensors: expected pairs of a name and a tensor, got {name!r:.40} for a name")
        base = ""
        if isinstance(value, QuantizedTensor):
            arrays, header = value.to_arrays()
            base = base_of(name)
            arrays = {f"{base}.{part}": array for part, array in arrays.items()}
            arrays[f"{base}.{HEADER}"] = np.frombuffer(header.encode(), np.uint8)
        else:
            array = as_host_array(value, name)
            if array.dtype not in TYPES.values():
                raise LowlpTypeError(f"{name}: elements of {array.dtype} cannot be saved in safetensors")
            arrays = {name: np.asarray(array, order="C")}
        twice = self._known & arrays.keys()
        if twice or not arrays:
            raise LowlpValueError(f"tensors: {min(twice)!r} is there twice")
        self._known |= arrays.keys()
        size = sum(array.nbytes for array in arrays.values())
        if self._arrays and self._held_bytes + size > self._shard_bytes:
            self._write()
        self._arrays |= arrays
        if base == name:
            self._others.append(name)
        self._held_bytes += size

    def finish(self) -> list[Path]:
        """Writes the rest, and gives all files their names."""
        if self._arrays or not self._temporary:
            self._write()
        count = len(self._temporary)
        written: list[Path] = []
        weight_map: dict[str, str] = {}
        for number, (temporary, names) in enumerate(zip(self._temporary, self._names, strict=True), 1):
            final = f"model-{number:05d}-of-{count:05d}.safetensors" if count > 1 else "model.safetensors"
            os.replace(temporary, self._folder / final)
            written.append(self._folder / final)
            weight_map |= dict.fromkeys(names, final)
        self._temporary = []
        if count > 1:
            index = self._folder / "model.safetensors.index.json"
            fields = {"metadata": {"total_size": self._bytes}, "weight_map": weight_map}
            index.write_text(_json_text(fields), encoding="utf-8")
            written.append(index)
        return written

    def discard(self) -> None:
        """Removes files that have no name yet."""
        for temporary in self._temporary:
            temporary.unlink(missing_ok=True)

    def _write(self) -> None:
        try:
            from safetensors import TensorSpec, serialize_file
        except ImportError:
            raise LowlpRuntimeError("safetensors files need the package safetensors: pip install safetensors") from None
        temporary = self._folder / f"part-{len(self._temporary):05d}.tmp"
        self._temporary.append(temporary)
        specs = {
            name: TensorSpec(
                dtype=array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
            )
            for name, array in self._arrays.items()
        }
        metadata = {KEY: str(VERSION), **{f"{KEY}:{name}": name for name in self._others}}
        # The library makes files that nobody else may read, whatever the process allows.
        temporary.touch()
        mode = temporary.stat().st_mode
        serialize_file(specs, temporary, metadata=metadata)
        temporary.chmod(mode)
        self._names.append(list(self._arrays))
        self._bytes += self._held_bytes
        self._arrays, self._others, self._held_bytes = {}, [], 0


def _json_text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, indent=2) + "\n"
