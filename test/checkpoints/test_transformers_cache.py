"""`QuantizedCache` in models of transformers: the same as a cache of the model's type, but for the codes' roundings."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import DynamicCache, Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

from lowlp.errors import LowlpValueError
from lowlp.transformers import QuantizedCache
from lowlp.transformers.cache import FallbackWarning, _say_once, attend

IDS = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(0))


def model_of(kind: str) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 96, "head_dim": 64}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    if kind == "llama":
        return LlamaForCausalLM(LlamaConfig(**sizes)).eval()
    return Gemma2ForCausalLM(Gemma2Config(**sizes, sliding_window=6, query_pre_attn_scalar=64)).eval()


@torch.no_grad()
def steps(model: Any, cache: Any, mask: torch.Tensor | None = None) -> torch.Tensor:
    """Logits of a prompt and of three tokens after it, one at a time."""
    found = []
    for start, stop in ((0, 6), (6, 7), (7, 8), (8, 9)):
        seen = None if mask is None else mask[:, :stop]
        found.append(model(IDS[:, start:stop], past_key_values=cache, attention_mask=seen).logits)
    return torch.cat(found, 1)


@pytest.mark.parametrize(
    ("kind", "implementation", "padded"),
    [("llama", "lowlp", False), ("gemma2", "lowlp", True), ("gemma2", "eager", False)],
)
def test_same_but_for_roundings(kind: str, implementation: str, padded: bool) -> None:
    model = model_of(kind)
    mask = torch.ones_like(IDS)
    if padded:
        mask[0, :2] = 0
    model.set_attn_implementation("eager")
    wanted = steps(model, DynamicCache(config=model.config), mask)
    model.set_attn_implementation(implementation)
    cache = QuantizedCache(model.config, "int8", max_tokens=9, page=16)
    found = steps(model, cache, mask)
    rows = mask.bool()
    assert (found - wanted)[rows].norm() <= 1e-2 * wanted[rows].norm()
    assert not torch.equal(found, wanted) and cache.get_seq_length() == 9
    cache.reset()
    assert cache.get_seq_length() == 0 and int(cache.layers[0].lengths.sum()) == 0


def test_the_kernel_computes_what_the_fallback_does() -> None:
    """Queries that say they are on a GPU run the kernel on the CPU target."""
    model = model_of("gemma2").half()
    model.set_attn_implementation("lowlp")
    cache = QuantizedCache(model.config, "int4", max_tokens=9, page=16)
    steps(model, cache)
    layer = cache.layers[0]
    key = torch.zeros(2, 1, 1, 64).half()
    key._lowlp_layer = layer
    query = torch.randn(2, 2, 1, 64).half()
    options = {"scaling": 0.1, "softcap": 20.0}
    _say_once.cache_clear()
    with pytest.warns(FallbackWarning, match="the model is on a CPU"):
        wanted, _ = attend(model, query, key, key, None, **options)

    class OnGpu(torch.Tensor):
        is_cuda = True

        def transpose(self, *axes: int) -> torch.Tensor:
            return self.as_subclass(torch.Tensor).transpose(*axes)

    found, _ = attend(model, query.as_subclass(OnGpu), key, key, None, **options)
    assert type(found) is torch.Tensor and found.shape == wanted.shape
    assert (found - wanted).norm() <= 3e-3 * wanted.norm()


def test_mistakes() -> None:
    model = model_of("llama")
    model.set_attn_implementation("lowlp")
    with pytest.raises(LowlpValueError, match="max_tokens: the cache has room for 16 tokens, and 18 are needed"):
        cache = QuantizedCache(model.config, max_tokens=9, page=16)
        model(torch.cat([IDS, IDS], 1), past_key_values=cache)
    with pytest.raises(LowlpValueError, match="codebooks: expected one for each of 1 layers, got 2"):
        QuantizedCache(model.config, "cq-4", max_tokens=9, codebooks=[None, None])
    with pytest.raises(LowlpValueError, match="dtype"):
        model(IDS, past_key_values=QuantizedCache(model.config, "int7", max_tokens=9, page=16))
