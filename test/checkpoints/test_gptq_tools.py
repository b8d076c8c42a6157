"""GPTQ and AWQ against gptqmodel, which packs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from genuine_files import dequantized, same_bits, write
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear
from gptqmodel.quantization.config import FORMAT, QuantizeConfig
from gptqmodel.utils.model import convert_gptq_v2_to_v1_format_module

N, K, GROUP = 96, 256, 64
CASES = [
    *(("gptq", bits) for bits in (2, 3, 4, 8)),
    *(("gptq_v2", bits) for bits in (2, 3, 4, 8)),
    *(("gptq_p", bits) for bits in range(2, 9)),
]


def packed(bits: int, version: str, act_order: bool, symmetric: bool) -> TorchLinear:
    torch.manual_seed(bits)
    linear = torch.nn.Linear(K, N, bias=True).half()
    scales = torch.rand(N, K // GROUP).half() / 100 + 0.001
    zeros = torch.full((N, K // GROUP), 1 << (bits - 1))
    if not symmetric:
        zeros = torch.randint(0, 1 << bits, zeros.shape)
        zeros[0, 0], zeros[1, 0] = 0, (1 << bits) - 1
    g_idx = torch.arange(K) // GROUP
    form = {"gptq_p": FORMAT.GPTQ_P}.get(version, FORMAT.GPTQ_V2)
    layer = TorchLinear(
        bits=bits, group_size=GROUP, sym=symmetric, desc_act=act_order, in_features=K, out_features=N, bias=True,
        register_buffers=True, format=form,
    )  # fmt: skip
    layer.pack(linear, scales, zeros, (g_idx[torch.randperm(K)] if act_order else g_idx).int())
    return layer


@pytest.mark.parametrize(("version", "bits"), CASES)
@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_gptq(version: str, bits: int, act_order: bool, symmetric: bool, tmp_path: Path) -> None:
    layer = packed(bits, version, act_order, symmetric)
    wanted = layer.dequantize_weight().T.contiguous()
    if version == "gptq":
        convert_gptq_v2_to_v1_format_module(layer, QuantizeConfig(bits=bits))
    config = {"quant_method": "gptq", "bits": bits, "group_size": GROUP, "desc_act": act_order, "sym": symmetric}
    config["meta"] = {"quantizer": ["gptqmodel:7.7.0"]}
    write(tmp_path, {f"layer.{k}": v for k, v in layer.state_dict().items()}, config | {"checkpoint_format": version})
    assert same_bits(dequantized(tmp_path), wanted)


@pytest.mark.parametrize("symmetric", [False, True])
def test_awq(symmetric: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    scales = torch.rand(N, K // GROUP).half() / 50 + 0.01
    zeros = torch.full((N, K // GROUP), 8) if symmetric else torch.randint(0, 16, (N, K // GROUP))
    codes = torch.randint(0, 16, (N, K))
    wanted = (codes - zeros.repeat_interleave(GROUP, 1)) * scales.float().repeat_interleave(GROUP, 1)
    linear = torch.nn.Linear(K, N, bias=False)
    linear.weight.data = wanted.clone()
    layer = AwqTorchLinear(
        bits=4, group_size=GROUP, sym=symmetric, desc_act=False, in_features=K, out_features=N, bias=False,
        register_buffers=True,
    )  # fmt: skip
    layer.pack(linear, scales, zeros)
    config = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}
    write(tmp_path, {f"layer.{k}": v for k, v in layer.state_dict().items()}, config)
    found = dequantized(tmp_path)
    assert same_bits(found, wanted)
    x = torch.eye(K).half()
    assert np.array_equal(layer(x).float().numpy().T, found.astype(np.float16).astype(np.float32))
