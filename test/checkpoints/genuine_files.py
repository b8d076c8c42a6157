"""Checkpoints written as their tools write them, read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

import lowlp


def write(
    folder: Path,
    tensors: Mapping[str, torch.Tensor],
    quantization: Mapping[str, Any] | None = None,
    metadata: dict[str, str] | None = None,
) -> Path:
    """A folder with these tensors and this quantization_config."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    save_file(copies, folder / "model.safetensors", metadata)
    if quantization is not None:
        (folder / "config.json").write_text(json.dumps({"quantization_config": quantization}))
    return folder


def dequantized(folder: Path, name: str = "layer.weight", **options: Any) -> np.ndarray:
    """What one of its weights means."""
    found = lowlp.checkpoints.open(folder, **options)[name]
    assert isinstance(found, lowlp.QuantizedTensor)
    return found.dequantize()


def same_bits(found: np.ndarray, wanted: torch.Tensor | np.ndarray) -> bool:
    """Whether float32 numbers agree to the bit, after a rounding to the type that is wanted; 0 equals -0."""
    if isinstance(wanted, torch.Tensor):
        rounded = torch.from_numpy(found).to(wanted.dtype)
        return bool(torch.equal(rounded, wanted.detach().cpu()))
    return bool(np.array_equal(found.astype(wanted.dtype), wanted))
