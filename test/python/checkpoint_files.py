"""Small checkpoints, written by encoders from the descriptions of their formats."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import lowlp

NAMES = {
    "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "uint32": "U32", "int4": "I4",
}  # fmt: skip
E4M3 = ml_dtypes.float8_e4m3fn


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> Path:
    """A safetensors file."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": NAMES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in tensors.values())
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def write_model(folder: Path, tensors: Mapping[str, np.ndarray], quantization: Mapping[str, Any] | None = None) -> Path:
    """A folder as Hugging Face has it."""
    folder.mkdir(exist_ok=True)
    write_tensors(folder / "model.safetensors", tensors)
    if quantization is not None:
        (folder / "config.json").write_text(json.dumps({"quantization_config": quantization}))
    return folder


def weights_of(path: Path, name: str = "layer.weight", **options: Any) -> lowlp.QuantizedTensor:
    found = lowlp.checkpoints.open(path, **options)[name]
    assert isinstance(found, lowlp.QuantizedTensor)
    return found


def stream(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes [..., count] as words of 32 bits, low bits first."""
    singles = (codes[..., None] >> np.arange(bits)) & 1
    octets = np.packbits(singles.reshape(*codes.shape[:-1], -1).astype(np.uint8), axis=-1, bitorder="little")
    missing = -octets.shape[-1] % 4
    octets = np.concatenate([octets, np.zeros((*octets.shape[:-1], missing), np.uint8)], axis=-1)
    return np.ascontiguousarray(octets).view(np.int32)


def gptq_tensors(
    codes: np.ndarray, zeros: np.ndarray, scales: np.ndarray, bits: int, version: int, g_idx: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """GPTQ's tensors of codes [N, K], zero points and scales [N, groups]."""
    stored = zeros if version == 2 else (zeros - 1) & ((1 << bits) - 1)
    tensors = {
        "layer.qweight": np.ascontiguousarray(stream(codes, bits).T),
        "layer.qzeros": stream(stored.T, bits),
        "layer.scales": np.ascontiguousarray(scales.T),
    }
    return tensors if g_idx is None else tensors | {"layer.g_idx": g_idx.astype(np.int32)}
