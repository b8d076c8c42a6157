"""Whole models of vLLM, from the config that it reads to logits, beside the same checkpoint in transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoded import GPTQ, OWN, gptq, own
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM
from vllm.config import CompilationConfig, DeviceConfig, ModelConfig, VllmConfig, set_current_vllm_config
from vllm.forward_context import set_forward_context
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.model_loader import get_model
from whole_models import CASES, IDS, SIZES, attended, write

from lowlp.errors import CheckpointError


def attend(self: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *others: Any, **more: Any) -> torch.Tensor:
    return attended(q, k, v, self.head_size)


def served(folder: Path, compiled: bool = False) -> tuple[Any, VllmConfig]:
    given = {"tokenizer": str(folder), "skip_tokenizer_init": True, "dtype": "float16"}
    model = ModelConfig(str(folder), **given, enforce_eager=not compiled)
    assert model.quantization == "lowlp"
    # Norms and the like by PyTorch: vLLM's own are compiled code.
    config = VllmConfig(
        model_config=model,
        device_config=DeviceConfig(device="cpu"),
        compilation_config=CompilationConfig(custom_ops=["none"]),
    )
    with set_current_vllm_config(config):
        return get_model(vllm_config=config), config


def logits(folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: bool = False) -> torch.Tensor:
    model, config = served(folder, compiled)
    monkeypatch.setattr(Attention, "forward", attend)
    with set_current_vllm_config(config), set_forward_context(None, config):
        return model.compute_logits(model(IDS, torch.arange(len(IDS)))).float()


@pytest.mark.parametrize("kind", CASES)
def test_claimed(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    exact = write(tmp_path, LlamaForCausalLM(LlamaConfig(**SIZES)).half(), *CASES[kind])
    wanted = exact(IDS[None]).logits[0].float()
    # By PyTorch's compiler, as one graph, where vLLM does so by default.
    found = logits(tmp_path, monkeypatch, compiled=kind == "hqq")
    assert torch.allclose(found, wanted, atol=2e-2 * float(wanted.abs().max()))


@pytest.mark.parametrize("tied", [False, True])
def test_own_checkpoint_with_embedding_and_head(tied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=tied)).half()
    others = ["model.embed_tokens"] if tied else ["model.embed_tokens", "lm_head"]
    exact = write(tmp_path, model, OWN, own, *others)
    wanted = exact(IDS[None]).logits[0].float()
    assert torch.allclose(logits(tmp_path, monkeypatch), wanted, atol=2e-2 * float(wanted.abs().max()))


def test_experts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of single experts, as checkpoints have them; transformers keeps them stacked."""
    torch.manual_seed(0)
    sizes = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "head_dim": 32}
    model = Qwen3MoeForCausalLM(Qwen3MoeConfig(**SIZES, **sizes)).half()
    write(tmp_path, model, GPTQ, gptq)
    from safetensors.torch import load_file

    state = load_file(tmp_path / "model.safetensors")
    for number, layer in enumerate(model.model.layers):
        base = f"model.layers.{number}.mlp.experts"
        for name in ("gate_up_proj", "down_proj"):
            state.pop(f"{base}.{name}")
        for expert in range(4):
            matrices = {"gate_proj": (64, 128), "up_proj": (64, 128), "down_proj": (128, 64)}
            meant = {}
            for seed, (name, shape) in enumerate(matrices.items()):
                tensors, meant[name] = gptq(*shape, 10 * expert + seed)
                state |= {f"{base}.{expert}.{name}.{part}": tensor for part, tensor in tensors.items()}
            both = np.concatenate([meant["gate_proj"], meant["up_proj"]])
            layer.mlp.experts.gate_up_proj.data[expert] = torch.from_numpy(both).half()
            layer.mlp.experts.down_proj.data[expert] = torch.from_numpy(meant["down_proj"]).half()
    save_file(state, tmp_path / "model.safetensors")
    wanted = model(IDS[None]).logits[0].float()
    assert torch.allclose(logits(tmp_path, monkeypatch), wanted, atol=2e-2 * float(wanted.abs().max()))


def test_asked_for_and_left_to_vllm(tmp_path: Path) -> None:
    torch.manual_seed(0)
    said = {**GPTQ, "bits": 4, "sym": True}
    write(tmp_path, LlamaForCausalLM(LlamaConfig(**SIZES)).half(), said, lambda *shape: gptq(*shape, bits=4))
    given = {"tokenizer": str(tmp_path), "skip_tokenizer_init": True, "dtype": "float16"}
    assert ModelConfig(str(tmp_path), **given).quantization == "auto_gptq"
    assert ModelConfig(str(tmp_path), **given, quantization="lowlp").quantization == "lowlp"


def test_tensors_that_are_missing(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    write(tmp_path, LlamaForCausalLM(LlamaConfig(**SIZES)).half(), GPTQ, gptq)
    state = load_file(tmp_path / "model.safetensors")
    rest = {name: tensor for name, tensor in state.items() if not name.startswith("model.layers.1.mlp.up_proj")}
    save_file(rest, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"layers\.1\.mlp\.gate_up_proj: 256 of its 512 rows were not loaded"):
        served(tmp_path)
