"""bitsandbytes, HQQ, AQLM, torchao, AutoRound and what transformers has, each against its own tool on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from genuine_files import dequantized, same_bits, write

import lowlp


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize(("shape", "block"), [((48, 320), 64), ((64, 512), 128)])
def test_bitsandbytes_four_bits(kind: str, double: bool, shape: tuple[int, int], block: int, tmp_path: Path) -> None:
    from bitsandbytes import functional

    torch.manual_seed(0)
    w = torch.randn(shape) * 0.02
    packed, state = functional.quantize_4bit(w, blocksize=block, quant_type=kind, compress_statistics=double)
    tensors = {"layer.weight": packed} | {f"layer.weight.{k}": v for k, v in state.as_dict(packed=True).items()}
    write(tmp_path, tensors, {"quant_method": "bitsandbytes", "load_in_4bit": True})
    assert same_bits(dequantized(tmp_path), functional.dequantize_4bit(packed, state))


def test_bitsandbytes_blocks_that_go_on_in_the_next_row(tmp_path: Path) -> None:
    """Its kernel for the CPU takes rows for whole blocks; the formula that its other backends share does not."""
    from bitsandbytes import functional

    torch.manual_seed(0)
    packed, state = functional.quantize_4bit(torch.randn(33, 96) * 0.02, blocksize=64, quant_type="nf4")
    tensors = {"layer.weight": packed} | {f"layer.weight.{k}": v for k, v in state.as_dict(packed=True).items()}
    write(tmp_path, tensors, {"quant_method": "bitsandbytes", "load_in_4bit": True})
    codes = torch.stack([packed >> 4, packed & 15], -1).flatten().long()
    wanted = state.code[codes] * state.absmax.repeat_interleave(64)[: 33 * 96]
    assert same_bits(dequantized(tmp_path), wanted.reshape(33, 96))


def test_bitsandbytes_int8(tmp_path: Path) -> None:
    from bitsandbytes import functional

    torch.manual_seed(0)
    codes, scales, _ = functional.int8_vectorwise_quant(torch.randn(48, 320).half())
    tensors = {"layer.weight": codes, "layer.SCB": scales, "layer.weight_format": torch.tensor(0, dtype=torch.uint8)}
    write(tmp_path, tensors, {"quant_method": "bitsandbytes", "load_in_8bit": True})
    assert same_bits(dequantized(tmp_path), functional.int8_vectorwise_dequant(codes, scales))


@pytest.mark.parametrize("bits", [8, 6, 5, 4, 3, 2, 1.58, 1])
@pytest.mark.parametrize("group", [64, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_hqq(bits: float, group: int | None, dtype: torch.dtype, tmp_path: Path) -> None:
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

    torch.manual_seed(0)
    linear = torch.nn.Linear(192, 41 if bits == 3 else 40, bias=True)
    config = BaseQuantizeConfig(nbits=bits, group_size=group, axis=1)
    layer = HQQLinear(linear, config, compute_dtype=dtype, device="cpu", del_orig=False)
    write(tmp_path, {f"layer.{k}": v for k, v in layer.state_dict().items()}, {"quant_method": "hqq"})
    found = dequantized(tmp_path)
    if dtype == torch.float32:
        assert same_bits(found, layer.dequantize())
    else:  # the tool rounds the difference and the product to float16
        assert torch.allclose(torch.from_numpy(found), layer.dequantize().float(), rtol=2e-3, atol=2e-4)


def test_hqq_along_the_other_axis_is_refused(tmp_path: Path) -> None:
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

    config = BaseQuantizeConfig(nbits=4, group_size=64, axis=0)
    layer = HQQLinear(torch.nn.Linear(192, 64), config, compute_dtype=torch.float32, device="cpu", del_orig=False)
    write(tmp_path, {f"layer.{k}": v for k, v in layer.state_dict().items()}, {"quant_method": "hqq"})
    with pytest.raises(lowlp.errors.CheckpointError, match="axis 0"):
        dequantized(tmp_path)


@pytest.mark.parametrize(("books", "bits", "width"), [(1, 16, 8), (2, 8, 8), (1, 8, 8), (1, 12, 16), (4, 8, 8)])
def test_aqlm(books: int, bits: int, width: int, tmp_path: Path) -> None:
    from aqlm.utils import _dequantize_weight, unpack_int_data

    torch.manual_seed(0)
    kind = torch.int8 if bits <= 8 else torch.int16
    numbers = torch.randint(0, 1 << bits, (48, 320 // width, books))
    codes = torch.where(numbers >= 1 << (8 * kind.itemsize - 1), numbers - (1 << (8 * kind.itemsize)), numbers).to(kind)
    codebooks = torch.randn(books, 1 << bits, 1, width).half()
    scales = torch.rand(48, 1, 1, 1).half()
    tensors = {"layer.codes": codes, "layer.codebooks": codebooks, "layer.scales": scales}
    write(tmp_path, tensors, {"quant_method": "aqlm", "nbits_per_codebook": bits, "num_codebooks": books})
    wanted = _dequantize_weight(unpack_int_data(codes, bits), codebooks.float(), scales.float())
    found = dequantized(tmp_path)
    if books <= 2:  # more are added in another order
        assert same_bits(found, wanted)
    assert torch.allclose(torch.from_numpy(found), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [576, 512])
def test_fp8_in_blocks(rows: int, tmp_path: Path) -> None:
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    torch.manual_seed(0)
    w = (torch.randn(rows, 384) * 20).to(torch.float8_e4m3fn)
    scales = torch.rand(-(-rows // 128), 3) / 10
    write(
        tmp_path,
        {"layer.weight": w, "layer.weight_scale_inv": scales},
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
    )
    found = dequantized(tmp_path)
    factors = scales.repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)
    assert same_bits(found, w.float() * factors)
    if rows % 128 == 0:
        tool = Fp8Dequantize.__new__(Fp8Dequantize)
        assert same_bits(found, tool._dequantize_one(w, scales))


def test_experts_of_four_bits_among_fp8(tmp_path: Path) -> None:
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    torch.manual_seed(0)
    w = torch.randint(-128, 128, (48, 64), dtype=torch.int8)
    scales = torch.randint(110, 140, (48, 4), dtype=torch.uint8).view(torch.float8_e8m0fnu)
    write(tmp_path, {"e.weight": w, "e.scale": scales}, {"quant_method": "fp8", "expert_dtype": "fp4"})
    tool = Fp8Dequantize.__new__(Fp8Dequantize)
    assert same_bits(dequantized(tmp_path, "e.weight"), tool._dequantize_one(w, scales, torch.float32))


def test_mxfp4_of_gpt_oss(tmp_path: Path) -> None:
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    torch.manual_seed(0)
    blocks = torch.randint(0, 256, (3, 48, 5, 16), dtype=torch.uint8)
    scales = torch.randint(110, 140, (3, 48, 5), dtype=torch.uint8)
    name = "model.layers.0.mlp.experts.gate_up_proj"
    tensors = {f"{name}_blocks": blocks, f"{name}_scales": scales, f"{name}_bias": torch.zeros(3, 48)}
    write(tmp_path, tensors, {"quant_method": "mxfp4"})
    wanted = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32).transpose(1, 2)
    assert same_bits(dequantized(tmp_path, name), wanted.contiguous())


@pytest.mark.parametrize("rows", [8, 64])
def test_bitnet(rows: int, tmp_path: Path) -> None:
    from transformers.integrations.bitnet import pack_weights, unpack_weights

    torch.manual_seed(0)
    packed = pack_weights(torch.randint(-1, 2, (rows, 96)).float())
    scale = torch.tensor([37.3])
    write(
        tmp_path,
        {"layer.weight": packed, "layer.weight_scale": scale},
        {"quant_method": "bitnet", "linear_class": "bitlinear"},
    )
    assert same_bits(dequantized(tmp_path), unpack_weights(packed, torch.float32) / scale)


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("symmetric", [True, False])
def test_torchao(bits: int, symmetric: bool, tmp_path: Path) -> None:
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import IntxWeightOnlyConfig, PerGroup, quantize_
    from torchao.quantization.quant_primitives import MappingType

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(192, 48, bias=False))
    mapping = MappingType.SYMMETRIC if symmetric or bits == 1 else MappingType.ASYMMETRIC
    quantize_(model, IntxWeightOnlyConfig(getattr(torch, f"int{bits}"), PerGroup(64), mapping))
    tensors, metadata = flatten_tensor_state_dict(model.state_dict())
    write(tmp_path, tensors, {"quant_method": "torchao"}, metadata)
    assert same_bits(dequantized(tmp_path, "0.weight"), model[0].weight.dequantize())


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_mlx(bits: int, tmp_path: Path) -> None:
    from transformers.integrations.metal_quantization import _affine_dequantize_tensor, _affine_quantize_tensor

    torch.manual_seed(0)
    packed, scales, biases = _affine_quantize_tensor(torch.randn(48, 256), 64, bits)
    tensors = {"layer.weight": packed, "layer.scales": scales, "layer.qbiases": biases}
    write(tmp_path, tensors, {"quant_method": "metal", "bits": bits, "group_size": 64})
    assert same_bits(dequantized(tmp_path), _affine_dequantize_tensor(packed, scales, biases, 64, bits))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gemma(bits: int, tmp_path: Path) -> None:
    from transformers.integrations.gemma_quant import QuantizedEmbedding, QuantizedLinear

    torch.manual_seed(0)
    linear = QuantizedLinear(96, 40, num_bits=bits)
    table = QuantizedEmbedding(50, 64, torch.float32, num_bits=bits)
    for stored, scale in ((linear.weight, linear.weight_scale), (table.embedding_quantized, table.embedding_scale)):
        low = 0 if stored.dtype == torch.uint8 else -128
        stored.data = torch.randint(low, low + 256, stored.shape, dtype=stored.dtype)
        scale.data = torch.rand(scale.shape)
    linear.input_activation_scale.data = torch.tensor(0.25)
    tensors = {f"layer.{k}": v for k, v in linear.state_dict().items()}
    tensors |= {f"table.{k}": v for k, v in table.state_dict().items()}
    write(tmp_path, tensors, {"quant_method": "gemma", "num_bits": bits, "quantize_embeddings": True})
    assert same_bits(dequantized(tmp_path), linear._dequantize_weights())
    assert same_bits(dequantized(tmp_path, "table.weight"), table.weight)
    inputs = lowlp.checkpoints.open(tmp_path).layers["layer.weight"].inputs
    assert inputs == lowlp.checkpoints.InputQuantization("int8", "tensor", dynamic=False, scale=0.25)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_autoround(bits: int, symmetric: bool, tmp_path: Path) -> None:
    from auto_round_extension.torch import qlinear_torch, qlinear_torch_zp

    torch.manual_seed(bits)
    limit = 1 << bits
    module = qlinear_torch_zp if bits != 3 else qlinear_torch
    layer = module.QuantLinear(bits, 64, 256, 96, bias=False)
    scales = torch.rand(96, 4) / 50 + 0.001
    zeros = torch.full((96, 4), limit // 2) if symmetric else torch.randint(1, limit, (96, 4))
    linear = torch.nn.Linear(256, 96, bias=False)
    codes = torch.randint(0, limit, (96, 256))
    linear.weight.data = (codes - zeros.repeat_interleave(64, 1)) * scales.repeat_interleave(64, 1)
    layer.pack(linear, scales, zeros, None)
    packing = "auto_round:auto_gptq" if bits != 3 else "auto_round"
    config = {"quant_method": "auto-round", "packing_format": packing, "bits": bits, "group_size": 64, "sym": symmetric}
    write(tmp_path, {f"layer.{k}": v for k, v in layer.state_dict().items()}, config)
    wanted = (codes - zeros.repeat_interleave(64, 1)) * scales.half().float().repeat_interleave(64, 1)
    found = dequantized(tmp_path)
    assert same_bits(found, wanted)
    x = torch.randn(5, 256)
    assert torch.allclose(layer(x.half()).float(), x @ torch.from_numpy(found).T, atol=0.2)
