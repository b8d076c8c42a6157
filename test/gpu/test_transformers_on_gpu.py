"""Models of transformers on a GPU: loaded there, fused, warmed up, and with a quantised cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers", minversion="5.0")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

import lowlp.transformers  # noqa: E402

IDS = torch.randint(0, 96, (2, 12), generator=torch.Generator().manual_seed(0)).cuda()


def saved(folder: Path) -> Path:
    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "vocab_size": 96, "head_dim": 64}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def loaded(folder: Path, **options: Any) -> Any:
    given = lowlp.transformers.LowlpConfig("int6", group_size=64, **options)
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, quantization_config=given, device_map="cuda", dtype=torch.bfloat16
    )


@torch.no_grad()
def steps(model: Any, cache: Any) -> Any:
    """Logits of a prompt of 8 and of four tokens after it, one at a time."""
    parts = [IDS[:, :8], *IDS[:, 8:].split(1, dim=1)]
    return torch.cat([model(part, past_key_values=cache).logits for part in parts], 1).float()


def test_on_load_and_saved(tmp_path: Path) -> None:
    plain = transformers.AutoModelForCausalLM.from_pretrained(saved(tmp_path), dtype=torch.float32).cuda()
    model = loaded(tmp_path)
    for name, module in model.named_modules():
        if isinstance(module, lowlp.torch.Linear):
            plain.get_submodule(name).weight.data = module.dequantize().float()
    assert all(tensor.is_cuda for tensor in model.state_dict().values())
    lowlp.torch.warm_up(model, rows=[2, 24], progress=False)
    with torch.no_grad():
        wanted, found = plain(IDS).logits, model(IDS).logits.float()
        assert (found - wanted).norm() <= 2e-2 * wanted.norm()
        model.save_pretrained(tmp_path / "own")
        again = lowlp.transformers.from_pretrained(tmp_path / "own", dtype=torch.bfloat16, device_map="cuda")
        assert torch.equal(again(IDS).logits.float(), found)
        fused = loaded(tmp_path, fuse=True)
        assert (fused(IDS).logits.float() - found).norm() <= 2e-2 * found.norm()
        assert torch.equal(found, model(IDS).logits.float())


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_quantized_cache(dtype: str, tmp_path: Path) -> None:
    model = loaded(saved(tmp_path))
    wanted = steps(model, transformers.DynamicCache(config=model.config))
    model.set_attn_implementation("lowlp")
    cache = lowlp.transformers.QuantizedCache(model.config, dtype, max_tokens=12, page=16)
    found = steps(model, cache)
    assert (found - wanted).norm() <= 2e-2 * wanted.norm()
    made = model.generate(IDS[:, :4], max_new_tokens=5, do_sample=False, pad_token_id=0,
        past_key_values=lowlp.transformers.QuantizedCache(model.config, dtype, max_tokens=12, page=16))  # fmt: skip
    assert made.shape == (2, 9)
