"""Checkpoints of small models, by the encoders of test/python, and layers of an engine that are loaded from them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lowlp

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from checkpoint_files import NAMES, gptq_tensors

GROUP = 32
Tensors = dict[str, torch.Tensor]
GPTQ: Mapping[str, Any] = {
    "quant_method": "gptq",
    "bits": 3,
    "group_size": GROUP,
    "desc_act": False,
    "sym": False,
    "checkpoint_format": "gptq_v2",
}
OWN: Mapping[str, Any] = {"quant_method": "lowlp", "version": 1}


def gptq(n: int, k: int, seed: int, bits: int = 3, act_order: bool = False) -> tuple[Tensors, np.ndarray]:
    """The tensors of a layer, and what they mean, float32 [N, K]."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << bits, (n, k))
    zeros = rng.integers(0, 1 << bits, (n, k // GROUP))
    scales = rng.uniform(0.005, 0.01, (n, k // GROUP)).astype(np.float16)
    g_idx = np.arange(k) // GROUP
    if act_order:
        g_idx = rng.permutation(g_idx)
    found = gptq_tensors(codes, zeros, scales, bits, 2, g_idx)
    meant = (codes - zeros[:, g_idx]).astype(np.float32) * scales[:, g_idx].astype(np.float32)
    return {name.removeprefix("layer."): torch.from_numpy(np.array(array)) for name, array in found.items()}, meant


def own(n: int, k: int, seed: int, codec: str = "int5", **options: Any) -> tuple[Tensors, np.ndarray]:
    """The same of a checkpoint of lowlp."""
    w = np.random.default_rng(seed).normal(0, 0.02, (n, k)).astype(np.float32)
    qw = lowlp.quantize(w, codec, **({"group_size": GROUP} | options))
    arrays, header = qw.to_arrays()
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    tensors["header"] = torch.from_numpy(np.frombuffer(header.encode(), np.uint8).copy())
    return tensors, qw.dequantize()


def hqq(n: int, k: int, seed: int) -> tuple[Tensors, np.ndarray]:
    """The same of HQQ in 4 bits, whose bytes hold rows from both halves of the matrix."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 16, (n * k // GROUP, GROUP)).astype(np.uint8)
    scale, zero = rng.uniform(0.005, 0.01, (len(codes), 1)), rng.uniform(6, 9, (len(codes), 1))
    scale, zero = scale.astype(np.float32), zero.astype(np.float32)
    half = len(codes) // 2
    arrays = {
        "W_q": codes[:half] << 4 | codes[half:],
        "scale": scale,
        "zero": zero,
        "nbits": np.int32(4),
        "group_size": np.int32(GROUP),
        "shape": np.array([n, k]),
        "axis": np.int32(1),
        "packing": np.frombuffer(b"4bit_u8", np.uint8).copy(),
    }
    meant = ((codes - zero) * scale).reshape(n, k).astype(np.float32)
    return {name: torch.from_numpy(np.asarray(array)) for name, array in arrays.items()}, meant


def types_of(modules: Mapping[str, Tensors]) -> dict[str, str]:
    """The types of the tensors of a checkpoint with these modules, as safetensors calls them."""
    return {
        f"{name}.{part}": NAMES[str(tensor.dtype).removeprefix("torch.")]
        for name, tensors in modules.items()
        for part, tensor in tensors.items()
    }


def load(layer: torch.nn.Module, tensors: Tensors, *shard: Any) -> None:
    """Gives a layer the tensors of one matrix, as models of engines do."""
    for part, tensor in tensors.items():
        parameter = getattr(layer, part)
        parameter.weight_loader(parameter, tensor, *shard)


def finished(layer: torch.nn.Module) -> torch.nn.Module:
    layer.quant_method.process_weights_after_loading(layer)
    return layer


def held_weights(layer: torch.nn.Module) -> np.ndarray:
    """What a layer's weights mean, float32 [N, K] of its rank."""
    module = layer.lowlp
    shards = module.shards if isinstance(module, lowlp.torch.MergedLinear) else [module]
    return np.concatenate([shard.quantized.dequantize() for shard in shards])
