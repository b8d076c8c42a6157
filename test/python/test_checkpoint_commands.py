"""`lowlp convert` and `lowlp inspect` on checkpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from checkpoint_files import gptq_tensors, write_model

import lowlp
from lowlp.cli import main


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    scales = rng.uniform(0.1, 0.25, (32, 2)).astype(np.float16)
    tensors = gptq_tensors(rng.integers(0, 16, (32, 128)), np.full((32, 2), 8), scales, 4, 1)
    folder = write_model(tmp_path / "m", tensors | {"layer.bias": np.ones(32, np.float16)})
    config = {"hidden_size": 128, "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 64}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_convert_keeps_the_meaning_and_what_is_beside(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = model.parent / "made"
    assert main(["convert", str(model), str(target), "--activation", "bf16"]) == 0
    printed = capsys.readouterr()
    assert re.search(r"^quantised +1 weights, of 2 tensors$", printed.out, re.MULTILINE)
    assert "convert: " in printed.err
    before, after = (dict(lowlp.checkpoints.read(folder)) for folder in (model, target))
    assert before.keys() == after.keys() and after["layer.weight"].family == "bf16"
    assert np.array_equal(before["layer.weight"].dequantize(), after["layer.weight"].dequantize())
    config = json.loads((target / "config.json").read_text())
    assert config["hidden_size"] == 128 and config["quantization_config"]["quant_method"] == "lowlp"
    assert (target / "tokenizer.json").exists()
    assert main(["convert", str(model), str(target)]) == 1
    assert "has a checkpoint already" in capsys.readouterr().err


def test_inspect_lists_layers(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(model)]) == 0
    out = capsys.readouterr().out
    scales = lowlp.checkpoints.open(model)["layer.weight"].scales
    bound = f"{float(scales.max()) / 2:.3g}"
    assert re.search(rf"^  layer\.weight  32 x 128  GPTQ v1, 4 bits  int4 g64 f16  4\.25  2,176 +{bound}$", out, re.M)
    assert main(["inspect", str(model), "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["format"] == "gptq" and described["arrays"] == ["layer.bias"]
    assert described["layers"][0]["stored_bytes"] == 16 * 32 * 4 + 2 * 4 * 4 + 2 * 32 * 2


def test_options_of_kernels_are_refused_for_checkpoints(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(model), "--ptx"]) == 1
    assert "--ptx: allowed with a saved kernel only" in capsys.readouterr().err
