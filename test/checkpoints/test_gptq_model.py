"""A model that gptqmodel quantises and saves whole, and the example that reads it and writes text."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

# Its pool of threads does not start with the one worker that it takes on two processors.
os.environ.setdefault("GPTQMODEL_CPU_WORKERS", "2")

import pytest
import torch
from gptqmodel import BACKEND, GPTQModel, QuantizeConfig
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import lowlp.transformers

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "run_checkpoint.py"
WORDS = ["<end>", *(f"w{number}" for number in range(127))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint: 4 bits, groups of 32, calibrated."""
    torch.manual_seed(0)
    plain, made = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("gptq")
    # It writes logs where it is.
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.chdir(tmp_path_factory.mktemp("logs"))
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "vocab_size": len(WORDS)}
    ends = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
    config = LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2, **ends, initializer_range=0.2)
    LlamaForCausalLM(config).half().save_pretrained(plain)
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<end>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<end>").save_pretrained(plain)
    quantised = GPTQModel.load(str(plain), QuantizeConfig(bits=4, group_size=32), device="cpu", dtype=torch.float32)
    rows = torch.randint(1, len(WORDS), (8, 256), generator=torch.Generator().manual_seed(1))
    quantised.quantize([" ".join(WORDS[number] for number in row) for row in rows.tolist()], batch_size=1)
    quantised.save(str(made))
    monkeypatch.undo()
    return made


def test_logits_are_those_of_gptqmodel(folder: Path) -> None:
    ids = torch.randint(1, len(WORDS), (2, 24), generator=torch.Generator().manual_seed(2))
    # Its modules compute in halves alone: here in float32 with the weights, rounded to halves, that they make.
    theirs = GPTQModel.load(str(folder), device="cpu", dtype=torch.float16, backend=BACKEND.GPTQ_TORCH).model
    for name, module in list(theirs.named_modules()):
        if isinstance(module, TorchLinear):
            linear = torch.nn.Linear(module.in_features, module.out_features, bias=False)
            linear.weight.data = module.dequantize_weight().T.float()
            theirs.set_submodule(name, linear)
    theirs.float()
    model = lowlp.transformers.from_pretrained(folder, dtype=torch.float32)
    assert sum(isinstance(module, lowlp.torch.Linear) for module in model.modules()) == 14
    with torch.no_grad():
        wanted, found = theirs(ids).logits, model(ids).logits
    assert (found - wanted).norm() <= 1e-3 * wanted.norm()


def test_example_writes_text(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(folder), "w1 w2", "w3"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    words = capsys.readouterr().out.split()
    assert words[:3] == ["w1", "w2", "w3"]
    assert len(words) == 43 and set(words) <= set(WORDS)
