"""compressed-tensors against its own compressors; files before version 0.18 by an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from genuine_files import dequantized, same_bits, write

import lowlp

N, K = 48, 320


def compressed(kind: str, weights: dict[str, Any], tensors: dict[str, torch.Tensor], folder: Path) -> torch.Tensor:
    """Writes a layer, and returns what the tool makes of it."""
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights))
    tool = BaseCompressor.get_value_from_registry(kind)
    stored = tool.compress(dict(tensors), scheme)
    group = {"targets": ["Linear"], "weights": weights}
    config = {"quant_method": "compressed-tensors", "format": kind, "config_groups": {"group_0": group}}
    write(folder, {f"layer.{name}": tensor for name, tensor in stored.items()}, config)
    return tool.decompress(dict(stored), scheme)["weight"]


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("group", [32, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pack_quantized(bits: int, symmetric: bool, group: int | None, dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(bits)
    weights = {"num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group" if group else "channel"}
    weights |= {"group_size": group} if group else {}
    groups = K // group if group else 1
    tensors = {"weight": torch.randn(N, K).to(dtype), "weight_scale": (torch.rand(N, groups) / 2 + 0.1).to(dtype)}
    if not symmetric:
        limit = 1 << (bits - 1)
        tensors["weight_zero_point"] = torch.randint(-limit, limit, (N, groups), dtype=torch.int8)
        tensors["weight_zero_point"][0, 0], tensors["weight_zero_point"][1, 0] = -limit, limit - 1
    wanted = compressed("pack-quantized", weights, tensors, tmp_path)
    assert same_bits(dequantized(tmp_path), wanted)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 7])
def test_packing_before_0_18(bits: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(bits)
    per, limit = 32 // bits, 1 << (bits - 1)
    codes = rng.integers(0, 1 << bits, (N, K), dtype=np.uint32)
    padded = np.zeros((N, -(-K // per) * per), np.uint32)
    padded[:, :K] = codes
    words = (padded.reshape(N, -1, per) << (np.arange(per, dtype=np.uint32) * bits)).sum(-1, dtype=np.uint32)
    scales = rng.uniform(0.1, 1, (N, 1)).astype(np.float32)
    order = rng.permutation(np.repeat(np.arange(10), 32)).astype(np.int32)
    group = {"targets": ["Linear"], "weights": {"num_bits": bits, "type": "int", "strategy": "group"}}
    tensors = {
        "layer.weight_packed": torch.from_numpy(words.view(np.int32)),
        "layer.weight_scale": torch.from_numpy(np.repeat(scales, 10, 1) * np.arange(1, 11, dtype=np.float32)),
        "layer.weight_shape": torch.tensor([N, K]),
        "layer.weight_g_idx": torch.from_numpy(order),
    }
    write(tmp_path, tensors, {"quant_method": "compressed-tensors", "config_groups": {"a": group}})
    wanted = (codes.astype(np.float32) - limit) * (scales * (order + 1).astype(np.float32))
    assert np.array_equal(dequantized(tmp_path), wanted)
    if bits in (2, 4):  # both packings are the same
        assert torch.equal(
            tensors["layer.weight_packed"],
            pack_to_int32(torch.from_numpy(codes.astype(np.int64) - limit).to(torch.int8), bits),
        )


@pytest.mark.parametrize(
    ("weights", "kind", "shape"),
    [
        ({"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}, "int-quantized", (N, 1)),
        ({"num_bits": 8, "type": "int", "symmetric": False, "strategy": "channel"}, "int-quantized", (N, 1)),
        ({"num_bits": 8, "type": "int", "symmetric": True, "strategy": "tensor"}, "int-quantized", (1,)),
        ({"num_bits": 4, "type": "int", "symmetric": True, "strategy": "channel"}, "naive-quantized", (N, 1)),
        ({"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"}, "float-quantized", (N, 1)),
        ({"num_bits": 8, "type": "float", "symmetric": True, "strategy": "tensor"}, "float-quantized", (1,)),
    ],
)
def test_bytes(weights: dict[str, Any], kind: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    torch.manual_seed(1)
    tensors = {"weight": torch.randn(N, K), "weight_scale": torch.rand(shape) / 20 + 0.01}
    if not weights["symmetric"]:
        tensors["weight_zero_point"] = torch.randint(-128, 128, shape, dtype=torch.int8)
    wanted = compressed(kind, weights, tensors, tmp_path)
    assert same_bits(dequantized(tmp_path), wanted)


def test_float_blocks_with_short_ends(tmp_path: Path) -> None:
    torch.manual_seed(2)
    weights = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]}
    tensors = {"weight": torch.randn(576, 320), "weight_scale": torch.rand(5, 3) / 20 + 0.01}
    wanted = compressed("float-quantized", weights, tensors, tmp_path)
    assert same_bits(dequantized(tmp_path), wanted)


@pytest.mark.parametrize("number", [1 / 3, 2688.0, 1024.0])
def test_nvfp4(number: float, tmp_path: Path) -> None:
    torch.manual_seed(3)
    weights = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    scale = (torch.rand(N, K // 16) * 300 + 0.1).to(torch.float8_e4m3fn).float()
    tensors = {
        "weight": torch.randn(N, K) * (300 / number),
        "weight_scale": scale,
        "weight_global_scale": torch.tensor([number]),
    }
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights))
    tool = BaseCompressor.get_value_from_registry("nvfp4-pack-quantized")
    stored = tool.compress(dict(tensors), scheme)
    group = {"targets": ["Linear"], "weights": weights, "format": "nvfp4-pack-quantized"}
    config = {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "config_groups": {"group_0": group},
    }
    write(tmp_path, {f"layer.{name}": tensor for name, tensor in stored.items()}, config)
    # The tool's own arithmetic, in float32 in place of bfloat16.
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8

    values = unpack_fp4_from_uint8(stored["weight_packed"], N, K, torch.float32).reshape(N, -1, 16)
    wanted = values * (stored["weight_scale"].float() / stored["weight_global_scale"])[..., None]
    found = dequantized(tmp_path)
    assert same_bits(found, wanted.reshape(N, K))
    near = lowlp.checkpoints.open(tmp_path, exact=False)["layer.weight"]
    assert str(near.codec) == "f4e2m1 g16 e4m3 scale2"
    assert np.allclose(near.dequantize(), found, rtol=3e-7, atol=0)


@pytest.mark.parametrize(
    ("kind", "bits"), [("mxfp4-pack-quantized", 4), ("mxfp6-pack-quantized", 6), ("mxfp8-quantized", 8)]
)
def test_mxfp(kind: str, bits: int, tmp_path: Path) -> None:
    torch.manual_seed(4)
    weights = {"num_bits": bits, "type": "float", "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8"}
    tensors = {
        "weight": torch.randn(N, K).bfloat16(),
        "weight_scale": 2.0 ** torch.randint(-6, 3, (N, K // 32)).bfloat16(),
    }
    wanted = compressed(kind, weights, tensors, tmp_path)
    assert same_bits(dequantized(tmp_path), wanted.float())
