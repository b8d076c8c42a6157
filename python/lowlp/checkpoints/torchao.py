"""torchao's integers of 1 to 8 bits in bytes, as its safetensors hold them.

    <name>_qdata       int8 [N, K]; <name> is '<module>._weight' or '<module>.weight'
    <name>_scale       float [N, K / g]
    <name>_zero_point  integers of the same shape; may be missing

    W = (q - z) * scale

What a tensor is, the file's metadata says: {"_type": "IntxUnpackedToInt8Tensor", "_data": {"target_dtype": ...}}.
Source: pytorch/ao (torchao/prototype/safetensors/safetensors_support.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from lowlp.checkpoints.layers import Layer, Parts
from lowlp.checkpoints.scale_shapes import spread_scales
from lowlp.checkpoints.settings import Settings
from lowlp.checkpoints.tensor_files import FLOATS, TensorFiles
from lowlp.errors import CheckpointError
from lowlp.numeric.host_array import AnyArray

_TYPES: Final = ("IntxUnpackedToInt8Tensor", "Int8Tensor")


def layers(files: TensorFiles, settings: Settings) -> Iterator[Layer]:
    """The quantised layers of a checkpoint of method 'torchao'."""
    del settings
    for base in files.ending("_qdata"):
        module, _, parameter = base.rpartition(".")
        name = f"{module}.{parameter.removeprefix('_')}" if module else parameter.removeprefix("_")
        said = _said(files, name)
        kind = said.get("_type", _TYPES[0])
        if kind not in _TYPES:
            raise CheckpointError(f"{base}_qdata: {kind!r:.40} of torchao is not read; allowed: {', '.join(_TYPES)}")
        data = said.get("_data")
        found = re.search(r"u?int([1-8])\b", str(data.get("target_dtype", ""))) if isinstance(data, dict) else None
        bits = int(found[1]) if found else 8
        shape = files.array(f"{base}_qdata", (None, None), ("int8",)).shape
        tensors = tuple(f"{base}_{part}" for part in ("qdata", "scale", "zero_point") if f"{base}_{part}" in files)
        yield Layer(name, shape, f"torchao, {bits} bits", tensors, partial(_parts, files, base, bits))


def _said(files: TensorFiles, name: str) -> dict[str, Any]:
    """What the metadata says of a parameter; {} where it says nothing."""
    text = files.metadata.get(name)
    if text is None:
        return {}
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{name}: its metadata is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise CheckpointError(f"{name}: its metadata must be an object, got {said!r:.40}")
    return said


def _parts(files: TensorFiles, base: str, bits: int) -> Parts:
    weights = files.array(f"{base}_qdata")
    shape = (weights.shape[0], weights.shape[1])
    arguments = spread_scales(files.array(f"{base}_scale", kinds=FLOATS), shape, f"{base}_scale")
    if f"{base}_zero_point" in files:
        zeros = files.array(f"{base}_zero_point")
        if zeros.size != arguments["scales"].size:
            raise CheckpointError(f"{base}_zero_point: expected as many numbers as scales, got {zeros.size}")
        if zeros.any():
            arguments["zeros"] = np.array(zeros).reshape(arguments["scales"].shape)
    limit = 1 << (bits - 1)

    def read(rows: slice) -> AnyArray:
        numbers = weights[rows]
        if int(numbers.min()) < -limit or int(numbers.max()) >= limit:
            raise CheckpointError(f"{base}_qdata: numbers of {bits} bits must be in {-limit}..{limit - 1}")
        return numbers.view(np.uint8) & np.uint8((1 << bits) - 1)

    return Parts(shape, read, {"dtype": f"int{bits}", **arguments})
