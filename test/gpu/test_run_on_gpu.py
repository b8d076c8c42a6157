"""`lowlp run` on a real device gives what the CPU target gives; every assembler's code runs; kept kernels are found."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import lowlp
from lowlp.cli import main
from lowlp.compiler import kernel_cache
from lowlp.compiler.architectures import current_arch
from lowlp.ops.linear_launch import device_operands
from lowlp_runtime import KernelBinary, assemble_ptx, launch
from lowlp_runtime.assemble import ASSEMBLERS
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.linkers import NvJitLink

pytest.importorskip("torch", reason="arrays on a GPU are PyTorch's")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ARGUMENTS = ("--kernel", "make_rmsnorm(n=300)", "-a", "x=3x300", "w=ones:300", "y=3x300", "m=3", "--seed", "7")


def test_run_gives_what_the_cpu_target_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for device in ("cpu", "cuda"):
        out = tmp_path / f"{device}.npz"
        assert main(["run", str(EXAMPLES / "rmsnorm.py"), *ARGUMENTS, "--device", device, "-o", str(out)]) == 0
        with np.load(out) as saved:
            results.append(saved["y"].astype(np.float64))
    assert re.search(r"^time +[0-9.]+ us median", capsys.readouterr().out, re.MULTILINE)
    assert np.abs(results[0]).max() > 0.5
    assert np.linalg.norm(results[1] - results[0]) <= 2e-3 * np.linalg.norm(results[0])


@pytest.mark.parametrize("assembler", ASSEMBLERS)
def test_code_of_every_assembler_runs(assembler: str) -> None:
    import torch

    if assembler == "nvjitlink" and NvJitLink().why_missing():
        pytest.skip(NvJitLink().why_missing())
    kernel = lowlp.compile_linear(n=32, k=64, weight="int5", group_size=64, m=(1, 4), target=current_arch())
    assembled = assemble_ptx(kernel.ptx, kernel.arch, assembler=assembler)
    assert assembled.assembler == assembler
    assert assembled.registers > 0
    weight = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)
    packed = lowlp.quantize(weight, "int5", group_size=64)
    x = torch.randn(4, 64, dtype=torch.float16, device="cuda")
    wanted = lowlp.linear(x, packed)
    parts = device_operands(packed, "f16", x.device)
    y = torch.empty_like(wanted)
    binary = KernelBinary(kernel.description, cubins={kernel.arch: assembled.cubin})
    product = kernel.description.product
    assert product is not None
    numbers = product.by_name(product.launch_numbers(4, 64, None, multiprocessors()))
    launch(binary, {"x": x, **parts, "y": y, **numbers})
    torch.cuda.synchronize()
    assert torch.equal(y, wanted)


def test_a_kept_kernel_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setenv("LOWLP_CACHE_DIR", str(tmp_path))
    results = []
    for _ in range(2):
        kernel_cache.forget()
        kernel = lowlp.compile_linear(n=16, k=32, weight="int3", group_size=32, target=current_arch())
        packed = lowlp.quantize(np.eye(16, 32, dtype=np.float32), "int3", group_size=32)
        x = torch.ones(2, 32, dtype=torch.float16, device="cuda")
        results.append(kernel(x, packed).cpu())
    assert len(list(tmp_path.iterdir())) == 1
    assert torch.equal(*results)
