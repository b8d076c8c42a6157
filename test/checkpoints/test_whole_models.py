"""Small models that transformers and compressed-tensors quantise and save whole, read back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from genuine_files import same_bits
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM, TorchAoConfig

import lowlp

NAME = "model.layers.1.mlp.down_proj"


def small() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 512}
    return LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2))


def of_four_bits(module: torch.nn.Module) -> torch.Tensor:
    from bitsandbytes import functional

    return functional.dequantize_4bit(module.weight.data, module.weight.quant_state)


def of_int8(module: torch.nn.Module) -> torch.Tensor:
    from bitsandbytes import functional

    return functional.int8_vectorwise_dequant(module.weight.data, module.weight.SCB)


def integers_of_torchao() -> TorchAoConfig:
    from torchao.quantization import IntxWeightOnlyConfig, PerGroup

    return TorchAoConfig(IntxWeightOnlyConfig(torch.int4, PerGroup(64)))


@pytest.mark.parametrize(
    ("config", "method", "meaning"),
    [
        (lambda: BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True), "bitsandbytes", of_four_bits),
        (lambda: BitsAndBytesConfig(load_in_8bit=True), "bitsandbytes", of_int8),
        (integers_of_torchao, "torchao", lambda module: module.weight.dequantize()),
    ],
)
def test_transformers(
    config: Callable[[], object], method: str, meaning: Callable[[torch.nn.Module], torch.Tensor], tmp_path: Path
) -> None:
    small().save_pretrained(tmp_path / "plain")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", quantization_config=config(), device_map="cpu")
    model.save_pretrained(tmp_path / "quantised")
    opened = lowlp.checkpoints.open(tmp_path / "quantised")
    assert opened.format == method
    assert (len(opened.layers), len(opened.arrays)) == (14, 7)  # without the embedding, the head and five norms
    assert same_bits(opened[f"{NAME}.weight"].dequantize(), meaning(model.get_submodule(NAME)))


def test_compressed_tensors(tmp_path: Path) -> None:
    from compressed_tensors.compressors import ModelCompressor
    from compressed_tensors.quantization import QuantizationConfig, apply_quantization_config
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize

    model = small()
    weights = {"num_bits": 3, "type": "int", "strategy": "group", "group_size": 64}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    apply_quantization_config(model, QuantizationConfig(config_groups=groups, ignore=["lm_head"]))
    for module in model.modules():
        if hasattr(module, "weight_scale"):
            module.weight_scale.data = torch.rand_like(module.weight_scale) / 50 + 0.01
    layer = model.get_submodule(NAME)
    wanted = fake_quantize(layer.weight, layer.weight_scale, layer.weight_zero_point, layer.quantization_scheme.weights)
    compressor = ModelCompressor.from_pretrained_model(model, quantization_format="pack-quantized")
    compressor.compress_model(model)
    model.save_pretrained(tmp_path)
    compressor.update_config(tmp_path)
    opened = lowlp.checkpoints.open(tmp_path)
    assert (opened.format, len(opened.layers), len(opened.arrays)) == ("compressed-tensors", 14, 7)
    assert opened.layers[f"{NAME}.weight"].format == "3 bits, pack-quantized"
    assert same_bits(opened[f"{NAME}.weight"].dequantize(), wanted.detach())
