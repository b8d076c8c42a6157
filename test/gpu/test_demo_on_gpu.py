"""`lowlp demo` on a real device: the kernel that it saves is the one that it runs and compares."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lowlp.cli import main

pytest.importorskip("torch", reason="the demo's arrays on a GPU are PyTorch's")


@pytest.mark.parametrize("dtype", ["int6", "uint4", "f8e6m1"])
def test_demo_runs_on_the_gpu(dtype: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["demo", "--device", "cuda", "--outputs", "64", "--rows", "5", "--dtype", dtype]
    assert main([*arguments, "--out-dir", str(tmp_path)]) == 0
    assert re.search(r"^time +[0-9.]+ us median", capsys.readouterr().out, re.MULTILINE)
