"""`lowlp doctor`: what it finds on machines of all kinds, and its exit status."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

from lowlp.cli import findings, main
from lowlp_runtime import device

ROOT = Path(__file__).resolve().parents[2]


def found(name: str, needs_gpu: bool = True) -> findings.Finding:
    return next(one for one in findings.findings(needs_gpu) if one.name == name)


def with_gpu(monkeypatch: pytest.MonkeyPatch, cuda: int, capability: tuple[int, int] = (9, 0)) -> None:
    monkeypatch.setattr("lowlp_runtime.why_no_device", lambda: "")
    monkeypatch.setattr("lowlp_runtime.cuda_device_count", lambda: 1)
    monkeypatch.setattr("lowlp_runtime.compute_capability", lambda ordinal: capability)
    monkeypatch.setattr("lowlp_runtime.device_name", lambda ordinal: "A GPU")
    monkeypatch.setattr(findings, "multiprocessors", lambda ordinal: 132)
    monkeypatch.setattr(findings, "call", lambda name: cuda)


@pytest.mark.skipif(device.cuda_device_count() > 0, reason="this machine has a GPU")
def test_a_machine_without_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--cpu"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^   compiler        sm_80 to sm_121a, and the CPU target$", said, re.MULTILINE)
    assert re.search(r"^ - driver          the NVIDIA driver cannot be loaded", said, re.MULTILINE)
    assert said.endswith("\nnothing is missing\n")
    assert main(["doctor"]) == 1
    assert capsys.readouterr().out.endswith("\n1 thing is missing\n")


@pytest.mark.parametrize(
    ("cuda", "capability", "state", "says"),
    [
        (13000, (9, 0), "has", "machine code for sm_90a"),
        (12080, (9, 0), "has", r"the driver compiles PTX 8\.6 for sm_90a itself"),
        (12040, (9, 0), "lacks", r"its kernels are PTX 8\.6, newer than the driver takes"),
        (12040, (8, 0), "has", r"the driver compiles PTX 7\.1 for sm_80 itself"),
        (13000, (7, 5), "lacks", r"compute capability 7\.5, 132"),
    ],
)
def test_what_a_driver_takes(
    cuda: int, capability: tuple[int, int], state: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpu(monkeypatch, cuda, capability)
    gpu = found("GPU 0")
    assert (gpu.state, bool(gpu.advice)) == (state, state == "lacks")
    assert re.search(says, gpu.text)


def test_the_driver_is_named_with_its_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu(monkeypatch, 12060)
    assert found("driver").text.endswith("CUDA 12.6, which compiles PTX up to 8.5")


def test_no_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOWLP_ASSEMBLER", "none such")
    assembler = found("assembler")
    assert assembler.state == "lacks" and "none such" in assembler.text and "nvidia-cuda-nvcc" in assembler.advice


def test_the_folder_of_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    monkeypatch.setenv("LOWLP_CACHE_DIR", str(folder))
    assert found("kernel cache").text == f"{folder}, made when the first kernel is kept"
    folder.mkdir()
    assert found("kernel cache").text == f"{folder}, 0 kernels, 0 bytes of at most 1,073,741,824"
    folder.chmod(0o777)
    assert found("kernel cache").state == "lacks" and "chmod 700" in found("kernel cache").advice
    folder.rmdir()
    folder.write_text("a file")
    assert (found("kernel cache").state, found("kernel cache").text) == ("lacks", f"{folder} is no folder")
    monkeypatch.setenv("LOWLP_CACHE_DIR", "")
    assert found("kernel cache").state == "note"
    monkeypatch.setenv("LOWLP_CACHE_DIR", str(folder))
    monkeypatch.setenv("LOWLP_CACHE_MAX_BYTES", "much")
    assert "LOWLP_CACHE_MAX_BYTES" in found("kernel cache").text


def test_no_temporary_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(**_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert found("temporary").text == "temporary files cannot be written: Read-only file system"


def test_versions_of_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "gguf":
            raise importlib.metadata.PackageNotFoundError(name)
        return {"torch": "2.13.0+cpu", "transformers": "4.57.1"}.get(name, "0.5.0rc1")

    monkeypatch.setattr(importlib.metadata, "version", version)
    states = {name: found(name).state for name in ("torch", "transformers", "safetensors", "gguf")}
    assert states == {"torch": "has", "transformers": "lacks", "safetensors": "has", "gguf": "note"}


def test_packages_are_those_of_the_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name, (least, _, extra) in findings._PACKAGES.items():
        wanted = extras[extra.removeprefix("lowlp[").removesuffix("]")]
        assert any(one.startswith(f"{name}>={least[0]}.{least[1]}") for one in wanted), name
