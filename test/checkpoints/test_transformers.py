"""Models of transformers through `lowlp.transformers`: quantised on load, saved, and read from other formats."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

import lowlp.transformers
from lowlp.cli import main
from lowlp.errors import CheckpointError
from lowlp.transformers import LowlpConfig, from_pretrained

IDS = torch.arange(20).reshape(2, 10)
GROUP = 64
Encoder = Callable[[torch.nn.Linear], dict[str, torch.Tensor]]


def small(tied: bool = False) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "vocab_size": 512}
    config = LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=tied)
    return LlamaForCausalLM(config).eval()


@torch.no_grad()
def logits(model: torch.nn.Module) -> torch.Tensor:
    return model(IDS).logits.float()


@pytest.mark.parametrize("tied", [False, True])
def test_quantised_on_load_saved_and_loaded(tied: bool, tmp_path: Path) -> None:
    small(tied).save_pretrained(tmp_path / "plain")
    rules = {"lm_head": "int8", "model.embed_tokens": "int8", r".*\.o_proj": "nf4", r".*1\.mlp\.up_proj": None}
    given = LowlpConfig("int5", group_size=GROUP, rules=rules)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", quantization_config=given)
    if tied:
        assert model.lm_head.packed.data_ptr() == model.model.embed_tokens.packed.data_ptr()
    same = lowlp.torch.quantize_(small(tied), "int5", group_size=GROUP, rules=rules, progress=False)
    wanted = logits(same)
    assert torch.equal(logits(model), wanted)
    model.save_pretrained(tmp_path / "own")
    assert len(lowlp.checkpoints.open(tmp_path / "own").layers) == (14 if tied else 15)
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "own")
    assert torch.equal(logits(again), wanted)
    again.save_pretrained(tmp_path / "again", max_shard_size="100KB")
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path / "again")), wanted)
    pairs = lowlp.checkpoints.read(tmp_path / "own")
    lowlp.checkpoints.save(tmp_path / "copy", pairs, config=json.loads((tmp_path / "own/config.json").read_text()))
    assert torch.equal(logits(from_pretrained(tmp_path / "copy")), wanted)


def test_default_modules_and_dequantize(tmp_path: Path) -> None:
    small().save_pretrained(tmp_path)
    given = LowlpConfig("int4", group_size=GROUP, modules_to_not_convert=["down_proj"])
    model = AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=given, dtype=torch.bfloat16)
    kinds = {name for name, module in model.named_modules() if isinstance(module, lowlp.torch.Linear)}
    assert len(kinds) == 12 and not any("down_proj" in name or name == "lm_head" for name in kinds)
    wanted = logits(model)
    assert torch.allclose(logits(model.dequantize()), wanted, atol=2e-2)
    assert type(model.model.layers[0].mlp.up_proj) is torch.nn.Linear


def gptq(linear: torch.nn.Linear) -> dict[str, torch.Tensor]:
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.quantization.config import FORMAT

    n, k = linear.weight.shape
    layer = TorchLinear(
        bits=4, group_size=GROUP, sym=False, desc_act=True, in_features=k, out_features=n, bias=False,
        register_buffers=True, format=FORMAT.GPTQ_V2,
    )  # fmt: skip
    scales, zeros = torch.rand(n, k // GROUP).half() / 100 + 0.005, torch.randint(0, 16, (n, k // GROUP))
    layer.pack(linear.half(), scales, zeros, (torch.arange(k) // GROUP)[torch.randperm(k)].int())
    return {**layer.state_dict(), "bias": torch.zeros(n).half()}


def awq(linear: torch.nn.Linear) -> dict[str, torch.Tensor]:
    from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear

    n, k = linear.weight.shape
    layer = AwqTorchLinear(
        bits=4, group_size=GROUP, sym=False, desc_act=False, in_features=k, out_features=n, bias=False,
        register_buffers=True,
    )  # fmt: skip
    layer.pack(linear, torch.rand(n, k // GROUP).half() / 100 + 0.005, torch.randint(0, 16, (n, k // GROUP)))
    return layer.state_dict()


def hqq(linear: torch.nn.Linear) -> dict[str, torch.Tensor]:
    from hqq.core.quantize import BaseQuantizeConfig, HQQLinear

    config = BaseQuantizeConfig(nbits=3, group_size=GROUP, axis=1)
    return HQQLinear(linear, config, compute_dtype=torch.float32, device="cpu", del_orig=False).state_dict()


def fp8(linear: torch.nn.Linear) -> dict[str, torch.Tensor]:
    n, k = linear.weight.shape
    scales = torch.rand(-(-n // 128), -(-k // 128)) / 1000 + 1e-3
    spread = scales.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    return {"weight": (linear.weight.detach() / spread).to(torch.float8_e4m3fn), "weight_scale_inv": scales}


def compressed(kind: str, weights: dict[str, Any], **others: Any) -> tuple[Encoder, dict[str, Any]]:
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**weights))

    def encode(linear: torch.nn.Linear) -> dict[str, torch.Tensor]:
        groups = linear.weight.shape[1] // weights.get("group_size", linear.weight.shape[1])
        scale = linear.weight.detach().unflatten(1, (groups, -1)).abs().amax(-1) / 2 ** (weights["num_bits"] - 1)
        tensors = {"weight": linear.weight.detach(), "weight_scale": scale}
        return dict(BaseCompressor.get_value_from_registry(kind).compress(tensors, scheme))

    group = {"targets": ["Linear"], "weights": weights, **others}
    return encode, {"quant_method": "compressed-tensors", "format": kind, "config_groups": {"group_0": group}}


def claimed(folder: Path, encode: Encoder, said: dict[str, Any]) -> LlamaForCausalLM:
    """Writes a model whose layers' weights a tool has encoded, and returns one with what they mean."""
    model = small()
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": said}))
    state = load_file(folder / "model.safetensors")
    for name, module in model.model.layers.named_modules():
        if isinstance(module, torch.nn.Linear):
            state.pop(f"model.layers.{name}.weight")
            encoded = encode(module)
            state |= {f"model.layers.{name}.{end}": tensor.clone().contiguous() for end, tensor in encoded.items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    opened = lowlp.checkpoints.open(folder)
    for name in opened.layers:
        module = model.float().get_submodule(name.removesuffix(".weight"))
        module.weight.data = torch.from_numpy(opened[name].dequantize())
    return model


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": True, "sym": False}
INT4 = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP}
CASES: dict[str, tuple[Encoder, dict[str, Any]]] = {
    "gptq": (gptq, GPTQ | {"checkpoint_format": "gptq_v2"}),
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}),
    "hqq": (hqq, {"quant_method": "hqq"}),
    "compressed-tensors": compressed("pack-quantized", INT4),
}


@pytest.mark.parametrize("kind", CASES)
def test_claimed(kind: str, tmp_path: Path) -> None:
    wanted = logits(claimed(tmp_path / "theirs", *CASES[kind]))
    model = from_pretrained(tmp_path / "theirs", dtype=torch.float32)
    assert sum(isinstance(module, lowlp.torch.Linear) for module in model.modules()) == 14
    assert torch.allclose(logits(model), wanted, atol=1e-5, rtol=1e-5)
    model.save_pretrained(tmp_path / "own")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "own", dtype=torch.float32)
    assert torch.equal(logits(again), logits(model))


def test_bitsandbytes_claimed(tmp_path: Path) -> None:
    small().save_pretrained(tmp_path / "plain")
    given = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", quantization_config=given, device_map="cpu")
    theirs.save_pretrained(tmp_path / "theirs")
    model = from_pretrained(tmp_path / "theirs", dtype=torch.float32)
    assert torch.allclose(logits(model), logits(theirs), atol=2e-2)


@pytest.mark.parametrize("activations", ["checkpoint", None])
def test_rounding_of_activations(activations: str | None, tmp_path: Path) -> None:
    """Of each token at run time, by products of quantised activations; and by one scale that the checkpoint has."""
    eight = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}
    tokens = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True}
    exact = claimed(tmp_path / "int8", *compressed("int-quantized", eight, input_activations=tokens))
    model = from_pretrained(tmp_path / "int8", dtype=torch.float32, activations=activations)
    layer, x = model.model.layers[0].mlp.up_proj, torch.randn(3, 128)
    seen = lowlp.quantize_activations(x, "int8").dequantize() if activations else x
    dense = exact.model.layers[0].mlp.up_proj
    assert torch.allclose(layer(x), dense(seen), atol=1e-5)
    assert layer.activation == ("int8" if activations else None)

    static = {"quant_method": "fp8", "weight_block_size": None, "activation_scheme": "static"}

    def encode(linear: torch.nn.Linear) -> dict[str, torch.Tensor]:
        codes = (linear.weight.detach() / 0.001).to(torch.float8_e4m3fn)
        return {"weight": codes, "weight_scale": torch.tensor(0.001), "input_scale": torch.tensor(0.01)}

    exact = claimed(tmp_path / "fp8", encode, static)
    model = from_pretrained(tmp_path / "fp8", dtype=torch.float32, activations=activations)
    seen = (x / 0.01).clamp(-448, 448).to(torch.float8_e4m3fn).float() * 0.01 if activations else x
    assert torch.allclose(model.model.layers[0].mlp.up_proj(x), exact.model.layers[0].mlp.up_proj(seen), atol=1e-5)
    model.save_pretrained(tmp_path / "own")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "own", dtype=torch.float32)
    assert torch.equal(logits(again), logits(model))


def test_fp8_in_blocks(tmp_path: Path) -> None:
    said = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}
    wanted = logits(claimed(tmp_path, fp8, said))
    model = from_pretrained(tmp_path, dtype=torch.float32, activations=None)
    assert torch.allclose(logits(model), wanted, atol=1e-5, rtol=1e-5)


def test_missing_and_left_over_tensors(tmp_path: Path) -> None:
    claimed(tmp_path, *CASES["hqq"])
    state = load_file(tmp_path / "model.safetensors")
    rest = {name: tensor for name, tensor in state.items() if not name.startswith("model.layers.1.mlp.up_proj")}
    save_file({**rest, "model.layers.0.extra.weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"lacks tensors: model\.layers\.1\.mlp\.up_proj\.weight"):
        from_pretrained(tmp_path)
    save_file({**state, "model.layers.0.extra.weight": torch.zeros(2)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"has, beyond the model, tensors: model\.layers\.0\.extra\.weight"):
        from_pretrained(tmp_path)
    assert torch.isfinite(logits(from_pretrained(tmp_path, strict=False, dtype=torch.float32))).all()


def test_mistakes(tmp_path: Path) -> None:
    small().save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="nothing in it is quantised"):
        from_pretrained(tmp_path)
    for given, message in (
        (lambda: LowlpConfig(group_size=64), "group_size: goes with dtype"),
        (lambda: LowlpConfig("int4", activations="int8"), "activations: must be"),
        (lambda: LowlpConfig("int4", version=2), "version: this lowlp reads"),
        (
            lambda: LowlpConfig("int4", packed_format=4),
            "packed_format: this lowlp reads weights of packed format 5, got 4",
        ),
    ):
        with pytest.raises(lowlp.errors.LowlpValueError, match=message):
            given()
    with pytest.raises(lowlp.errors.LowlpValueError, match="matches no torch"):
        AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=LowlpConfig("int4", rules={"head": "int8"}))


def test_fused_projections(tmp_path: Path) -> None:
    small().save_pretrained(tmp_path)
    given = LowlpConfig("int4", group_size=GROUP, fuse=True, rules={r".*1\.self_attn\.v_proj": "int6"})
    model = AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=given)
    plain = LowlpConfig("int4", group_size=GROUP, rules=given.rules)
    wanted = logits(AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=plain))
    assert torch.allclose(logits(model), wanted, atol=1e-5)
    products = [module for module in model.modules() if isinstance(module, lowlp.torch.Linear)]
    assert len(products) == 14 - 2 - 2  # both MLPs, and the attention whose projections have one codec
    with pytest.raises(lowlp.errors.LowlpValueError, match="fuse: a model with fused projections cannot be saved"):
        model.save_pretrained(tmp_path / "fused")


@pytest.mark.parametrize("quantised", [False, True])
def test_demo_of_a_model(quantised: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(WordLevel({f"w{number}": number for number in range(512)}, unk_token="w0"))
    words.pre_tokenizer = Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="w0").save_pretrained(tmp_path)
    if quantised:
        claimed(tmp_path, *CASES["hqq"])
    else:
        small().save_pretrained(tmp_path)
    arguments = [
        "--model",
        str(tmp_path),
        "--device",
        "cpu",
        "--dtype",
        "int4",
        "--prompt",
        "w1 w2 w3",
        "--tokens",
        "3",
    ]
    assert main(["demo", *arguments]) == 0
    printed = capsys.readouterr().out.split()
    assert printed[:3] == ["w1", "w2", "w3"] and sum(word.startswith("w") for word in printed[:6]) == 6
    assert ("uint3" if quantised else "int4") in " ".join(printed) and "second" in printed


def test_embeddings_that_multiply(tmp_path: Path) -> None:
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    torch.manual_seed(0)
    sizes = {"hidden_size": 128, "intermediate_size": 128, "num_hidden_layers": 1, "vocab_size": 512, "head_dim": 64}
    plain = Gemma3ForCausalLM(Gemma3TextConfig(**sizes, num_attention_heads=2, num_key_value_heads=1)).eval()
    plain.save_pretrained(tmp_path)
    rules = {"lm_head": "int8", "model.embed_tokens": "int8"}
    given = LowlpConfig("int8", group_size=GROUP, rules=rules)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=given)
    assert model.lm_head.packed.data_ptr() == model.model.embed_tokens.packed.data_ptr()
    wanted = logits(plain)
    assert (logits(model) - wanted).norm() <= 3e-2 * wanted.norm()
    given = LowlpConfig("int8", group_size=GROUP, rules={"model.embed_tokens": "int8"})
    model = AutoModelForCausalLM.from_pretrained(tmp_path, quantization_config=given)
    assert type(model.lm_head) is torch.nn.Linear
    assert (logits(model) - wanted).norm() <= 3e-2 * wanted.norm()
    model.save_pretrained(tmp_path / "own")
    assert torch.equal(logits(AutoModelForCausalLM.from_pretrained(tmp_path / "own")), logits(model))


def test_rounding_of_nvfp4_as_compressed_tensors_has_it(tmp_path: Path) -> None:
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import fake_quantize
    from compressed_tensors.quantization.utils.helpers import compute_dynamic_scales_and_zp
    from genuine_files import write

    from lowlp.torch.inputs import rounded

    four = {
        "num_bits": 4,
        "type": "float",
        "strategy": "tensor_group",
        "group_size": 16,
        "scale_dtype": "torch.float8_e4m3fn",
    }
    x, one = torch.randn(8, 64), torch.ones(1)
    whole = 448 * 6 / x.abs().max().reshape(1)
    tensors = {"weight_packed": torch.zeros(16, 32, dtype=torch.uint8), "weight_global_scale": one}
    tensors |= {"weight_scale": torch.ones(16, 4).to(torch.float8_e4m3fn), "input_global_scale": whole}
    group = {"targets": ["Linear"], "weights": four, "input_activations": {**four, "dynamic": "local"}}
    config = {"format": "nvfp4-pack-quantized", "config_groups": {"g": group}}
    write(
        tmp_path,
        {f"l.{name}": tensor for name, tensor in tensors.items()},
        {"quant_method": "compressed-tensors", **config},
    )
    inputs = lowlp.checkpoints.open(tmp_path).layers["l.weight"].inputs
    assert inputs is not None and inputs.per == 16
    args = QuantizationArgs(**four, dynamic="local")
    scale, zero = compute_dynamic_scales_and_zp(x, args, torch.nn.Module(), global_scale=whole)
    wanted = fake_quantize(x, scale, zero, args, global_scale=whole)
    found = rounded(x, inputs)
    short = torch.randn(3, 200)
    padded = rounded(torch.nn.functional.pad(short, (0, 56)), lowlp.checkpoints.InputQuantization("f8e4m3", 128))
    assert torch.equal(rounded(short, lowlp.checkpoints.InputQuantization("f8e4m3", 128)), padded[:, :200])
    # Ties, and scales beside a boundary of e4m3, may go the other way.
    assert (~torch.isclose(found, wanted, rtol=1e-5, atol=1e-6)).float().mean() <= 0.02
    assert (found - x).norm() <= 0.12 * x.norm()


def test_outliers_of_bitsandbytes_stay(tmp_path: Path) -> None:
    small().save_pretrained(tmp_path / "plain")
    given = BitsAndBytesConfig(load_in_8bit=True)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "plain", quantization_config=given, device_map="cpu")
    theirs.save_pretrained(tmp_path / "theirs")
    model = from_pretrained(tmp_path / "theirs", dtype=torch.float32)
    assert all(module.activation is None for module in model.modules() if isinstance(module, lowlp.torch.Linear))
    assert torch.allclose(logits(model), logits(theirs), atol=2e-2)
