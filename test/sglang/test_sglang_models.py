"""Whole models of SGLang, from the config that it reads to logits, beside the same checkpoint in transformers."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from encoded import GPTQ, OWN, gptq, own
from safetensors.torch import load_file, save_file
from sglang.srt.configs.device_config import DeviceConfig
from sglang.srt.configs.load_config import LoadConfig
from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.layers.quantization.gptq.gptq import GPTQMarlinConfig
from sglang.srt.layers.radix_attention import RadixAttention
from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode
from sglang.srt.model_loader import get_model
from sglang.srt.runtime_context import get_context
from sglang.srt.server_args import prepare_server_args
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)
from whole_models import CASES, IDS, SIZES, attended, write

from lowlp.errors import CheckpointError
from lowlp.sglang.engine import ENGINE


def attend(self: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: Any, **more: Any) -> torch.Tensor:
    return attended(q, k, v, self.head_dim)


def served(folder: Path) -> Any:
    config = ModelConfig(str(folder), dtype="float16")
    assert config.quantization == "lowlp"
    return get_model(model_config=config, load_config=LoadConfig(), device_config=DeviceConfig("cpu"))


def logits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    model = served(folder)
    monkeypatch.setattr(RadixAttention, "forward", attend)
    count = torch.tensor([len(IDS)])
    batch = ForwardBatch(ForwardMode.EXTEND, 1, IDS, torch.zeros(1, dtype=torch.int64), count, None, len(IDS))
    hidden = model.model(IDS, torch.arange(len(IDS)), batch)
    return model.logits_processor._compute_lm_head(hidden, model.lm_head)[:, : SIZES["vocab_size"]].float()


@pytest.fixture(autouse=True)
def _one_rank(as_rank: Any) -> None:
    as_rank(0, 1)


@pytest.mark.parametrize("kind", CASES)
def test_claimed(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    exact = write(tmp_path, LlamaForCausalLM(LlamaConfig(**SIZES)).half(), *CASES[kind])
    wanted = exact(IDS[None]).logits[0].float()
    found = logits(tmp_path, monkeypatch)
    assert torch.allclose(found, wanted, atol=2e-2 * float(wanted.abs().max()))


@pytest.mark.parametrize("tied", [False, True])
def test_own_checkpoint_with_embedding_and_head(tied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=tied)).half()
    others = ["model.embed_tokens"] if tied else ["model.embed_tokens", "lm_head"]
    exact = write(tmp_path, model, OWN, own, *others)
    wanted = exact(IDS[None]).logits[0].float()
    assert torch.allclose(logits(tmp_path, monkeypatch), wanted, atol=2e-2 * float(wanted.abs().max()))


def test_biases_and_another_loader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Qwen2 has biases in q, k and v, and a tied head in a module that checks names by itself."""
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=True)).half()
    for layer in model.model.layers:
        for projection in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj):
            projection.bias.data.normal_()
    exact = write(tmp_path, model, OWN, own, "model.embed_tokens")
    wanted = exact(IDS[None]).logits[0].float()
    assert torch.allclose(logits(tmp_path, monkeypatch), wanted, atol=2e-2 * float(wanted.abs().max()))


def test_asked_for_and_left_to_sglang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang's claim on GPTQ of 4 bits asks for a GPU, and comes after lowlp's."""
    torch.manual_seed(0)
    said = {**GPTQ, "bits": 4, "sym": True}
    write(tmp_path, LlamaForCausalLM(LlamaConfig(**SIZES)).half(), said, lambda *shape: gptq(*shape, bits=4))
    assert ModelConfig(str(tmp_path), dtype="float16", quantization="lowlp").quantization == "lowlp"
    monkeypatch.setattr(GPTQMarlinConfig, "is_gptq_marlin_compatible", lambda config: config["quant_method"] == "gptq")
    assert ModelConfig(str(tmp_path), dtype="float16").quantization == "gptq_marlin"
    assert ModelConfig(str(tmp_path), dtype="float16", quantization="lowlp").quantization == "lowlp"
    # SGLang claims this one whatever is asked for, after lowlp.
    config = json.loads((tmp_path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "modelopt_fp4", "quant_algo": "NVFP4"}
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(json.dumps(config))
    assert ModelConfig(str(other), dtype="float16", quantization="lowlp").quantization == "lowlp"
    assert ModelConfig(str(other), dtype="float16").quantization == "modelopt_fp4"


def test_command_line() -> None:
    parsed = prepare_server_args(["--model-path", "/a/model", "--quantization", "lowlp", "--device", "cpu"])
    assert parsed.quantization == "lowlp"
    with pytest.raises(SystemExit):
        prepare_server_args(["--model-path", "/a/model", "--quantization", "lowlq", "--device", "cpu"])


def test_tensors_that_are_missing(tmp_path: Path) -> None:
    write(tmp_path, LlamaForCausalLM(LlamaConfig(**SIZES)).half(), GPTQ, gptq)
    state = load_file(tmp_path / "model.safetensors")
    rest = {name: tensor for name, tensor in state.items() if not name.startswith("model.layers.1.mlp.up_proj")}
    save_file(rest, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"layers\.1\.mlp\.gate_up_proj: 256 of its 512 rows were not loaded"):
        served(tmp_path)


def test_sizes_of_graphs() -> None:
    """Kernels are made for the sizes of SGLang's graphs, and for powers of two up to a chunk of a prompt."""
    graphs = SimpleNamespace(decode=SimpleNamespace(bs=[1, 3, 24]), prefill=SimpleNamespace(bs=None))
    given = {"cuda_graph_config": graphs, "chunked_prefill_size": 40}
    with get_context().override_server_args(**given):
        assert ENGINE.rows_of_calls() == (1, 2, 3, 4, 8, 16, 24, 32, 40)
    with get_context().override_server_args(**given | {"chunked_prefill_size": -1, "max_prefill_tokens": 64}):
        assert ENGINE.rows_of_calls()[-1] == 64


def test_experts_are_refused_by_name(tmp_path: Path) -> None:
    sizes = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 32}
    model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**SIZES, **sizes)).half()
    write(tmp_path, model, GPTQ, gptq)
    state = load_file(tmp_path / "model.safetensors")
    name = "model.layers.0.mlp.experts.0.gate_proj"
    save_file(state | {f"{name}.qweight": torch.zeros(1, dtype=torch.int32)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=rf"layers\.0\.mlp\.experts: {name} is quantised, and quantised experts"):
        served(tmp_path)
