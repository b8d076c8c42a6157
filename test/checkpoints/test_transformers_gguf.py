"""GGUF files as models of transformers, against transformers' own loading, which dequantises them."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from gguf.constants import GGMLQuantizationType as Kind
from transformers import AutoModelForCausalLM

import lowlp.transformers
from lowlp.errors import CheckpointError

IDS = torch.arange(24).reshape(2, 12)
WIDTH, FEED, HEADS, KV_HEADS, HEAD, WORDS, LAYERS = 128, 256, 4, 2, 32, 96, 2


def write(
    path: Path, architecture: str, tied: bool = True, extra: str | None = None, without: str | None = None
) -> None:
    """A small model in blocks of several types, with random weights."""
    rng = np.random.default_rng(0)
    file = gguf.GGUFWriter(path, architecture)
    file.add_block_count(LAYERS)
    file.add_context_length(64)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(FEED)
    file.add_head_count(HEADS)
    file.add_head_count_kv(KV_HEADS)
    file.add_layer_norm_rms_eps(1e-6)
    file.add_rope_freq_base(10000.0)
    file.add_vocab_size(WORDS)
    if architecture == "gemma3":
        file.add_key_length(HEAD)
        file.add_value_length(HEAD)
        file.add_sliding_window(16)

    def add(name: str, n: int, k: int, kind: Kind) -> None:
        if name != without:
            codes = gguf.quants.quantize(rng.normal(0, 0.1, (n, k)).astype(np.float32), kind)
            file.add_tensor(name, codes, raw_dtype=kind)

    def norm(name: str, n: int) -> None:
        file.add_tensor(name, rng.normal(1, 0.1, n).astype(np.float32))

    add("token_embd.weight", WORDS, WIDTH, Kind.Q8_0)
    if not tied:
        add("output.weight", WORDS, WIDTH, Kind.Q5_0)
    norm("output_norm.weight", WIDTH)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        add(f"{block}.attn_q.weight", HEADS * HEAD, WIDTH, Kind.Q4_0)
        add(f"{block}.attn_k.weight", KV_HEADS * HEAD, WIDTH, Kind.Q4_1)
        add(f"{block}.attn_v.weight", KV_HEADS * HEAD, WIDTH, Kind.Q5_1)
        add(f"{block}.attn_output.weight", WIDTH, HEADS * HEAD, Kind.Q5_0)
        add(f"{block}.ffn_gate.weight", FEED, WIDTH, Kind.Q8_0)
        add(f"{block}.ffn_up.weight", FEED, WIDTH, Kind.Q4_0)
        add(f"{block}.ffn_down.weight", WIDTH, FEED, Kind.Q4_0)
        norms = {"attn_norm": WIDTH, "ffn_norm": WIDTH}
        if architecture == "gemma3":
            norms |= {"attn_q_norm": HEAD, "attn_k_norm": HEAD, "post_attention_norm": WIDTH, "post_ffw_norm": WIDTH}
        for name, size in norms.items():
            norm(f"{block}.{name}.weight", size)
    if extra:
        norm(extra, HEAD // 2)
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


@torch.no_grad()
def logits(model: torch.nn.Module) -> torch.Tensor:
    return model(IDS).logits


@pytest.mark.parametrize(("architecture", "tied"), [("llama", True), ("llama", False), ("gemma3", True)])
def test_same_as_dequantised(architecture: str, tied: bool, tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", architecture, tied)
    wanted = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file="model.gguf", dtype=torch.float32)
    model = lowlp.transformers.from_gguf(tmp_path / "model.gguf", dtype=torch.float32)
    found = logits(model)
    assert torch.allclose(found, logits(wanted), atol=2e-4, rtol=1e-4)
    assert sum(isinstance(module, lowlp.torch.QuantizedModule) for module in model.modules()) == 7 * LAYERS + 2
    codecs = {str(module.codec).split()[0] for module in model.modules() if isinstance(module, lowlp.torch.Linear)}
    assert codecs >= {"int4", "uint4", "uint5", "int5", "int8"}
    assert (model.lm_head.packed.data_ptr() == model.model.embed_tokens.packed.data_ptr()) == tied
    model.save_pretrained(tmp_path / "own")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "own", dtype=torch.float32)
    assert torch.equal(logits(again), found)


def test_frequencies_are_divided_by_the_files_factors(tmp_path: Path) -> None:
    write(tmp_path / "plain.gguf", "llama")
    write(tmp_path / "with.gguf", "llama", extra="rope_freqs.weight")
    plain, model = (lowlp.transformers.from_gguf(tmp_path / f"{name}.gguf") for name in ("plain", "with"))
    factors = torch.from_numpy(np.array(lowlp.checkpoints.open(tmp_path / "with.gguf")["rope_freqs.weight"]))
    assert torch.equal(model.model.rotary_emb.inv_freq, plain.model.rotary_emb.inv_freq / factors)


def test_mistakes(tmp_path: Path) -> None:
    write(tmp_path / "extra.gguf", "llama", extra="blk.0.strange.weight")
    with pytest.raises(CheckpointError, match=r"has, beyond the model, tensors: blk\.0\.strange\.weight"):
        lowlp.transformers.from_gguf(tmp_path / "extra.gguf")
    write(tmp_path / "less.gguf", "llama", without="blk.1.ffn_up.weight")
    with pytest.raises(CheckpointError, match=r"lacks tensors: model\.layers\.1\.mlp\.up_proj\.weight"):
        lowlp.transformers.from_gguf(tmp_path / "less.gguf")
    write(tmp_path / "new.gguf", "clip")
    with pytest.raises(lowlp.errors.LowlpValueError, match="path: transformers cannot read the architecture 'clip'"):
        lowlp.transformers.from_gguf(tmp_path / "new.gguf")
