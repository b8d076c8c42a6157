"""Checkpoints of lowlp are state dicts of modules, and state dicts are checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file, save_file  # noqa: E402

import lowlp  # noqa: E402
import lowlp.torch  # noqa: E402


def model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    made = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 48, bias=False))
    return lowlp.torch.quantize_(made, "int4", group_size=32, scale_dtype="bf16")


def test_both_ways(tmp_path: Path) -> None:
    made, other = model(0), model(1)
    save_file(made.state_dict(), tmp_path / "model.safetensors")
    read = dict(lowlp.checkpoints.read(tmp_path / "model.safetensors"))
    assert sorted(read) == ["0.bias", "0.weight", "1.weight"]
    assert read["0.weight"] == made[0].quantized and read["1.weight"] == made[1].quantized
    lowlp.checkpoints.save(tmp_path / "m", read)
    assert other[0].quantized != made[0].quantized
    other.load_state_dict(load_file(tmp_path / "m" / "model.safetensors"))
    assert other[0].quantized == made[0].quantized and other[1].quantized == made[1].quantized
