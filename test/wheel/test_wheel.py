"""The wheel in dist/, installed in an empty environment: what is in it, what it needs, and that it works.

Not part of `make test`, since the wheel takes minutes to build: `make test-wheel`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 40 << 20
# What manylinux_2_36 promises, and what the wheel brings itself.
SYSTEM_LIBRARIES = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux-x86-64)\.so\.\d+")
OWN_LIBRARIES = re.compile(r"lib(LowlpPythonCAPI|MLIRPythonSupport-lowlp|nanobind-lowlp)\.so")


@pytest.fixture(scope="module")
def wheel() -> Path:
    (found,) = (ROOT / "dist").glob("lowlp-*.whl")
    return found


@pytest.fixture(scope="module")
def libraries(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The shared objects of the wheel."""
    folder = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel).extractall(folder)
    return sorted(folder.rglob("*.so"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
    subprocess.run(install, check=True, env=clean())
    return folder


def clean(path: str = os.defpath) -> dict[str, str]:
    """Variables without those that lead to a build tree or to LLVM."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("HOME", "PIP_", "SSL_", "XDG_"))}
    return {**kept, "PATH": path}


def run(environment: Path, *command: str | Path, given: str | None = None) -> str:
    done = subprocess.run(
        [environment / "bin" / command[0], *command[1:]],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        cwd=environment,
        env=clean(path=str(environment / "bin")),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- what is in it ----------------------------------------------------------------------------------------------------


def test_it_is_small_and_says_what_it_runs_on(wheel: Path) -> None:
    assert wheel.stat().st_size < MAX_BYTES
    # Debian 12 has glibc 2.36: nothing older is promised.
    assert re.fullmatch(r"lowlp-[\d.]+-cp3\d+-cp3\d+-manylinux_2_\d\d_x86_64\.whl", wheel.name)
    assert int(wheel.name.split("manylinux_2_")[1][:2]) <= 36


def test_it_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"lowlp", "lowlp_runtime"}
    assert not [name for name in names if name.endswith((".a", ".h", ".td", ".cpp", ".pyc"))]


def test_it_has_extras(wheel: Path) -> None:
    files = zipfile.ZipFile(wheel)
    (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
    text = files.read(name).decode()
    assert {"torch", "transformers", "checkpoints"} <= set(re.findall(r"^Provides-Extra: (\S+)$", text, re.MULTILINE))
    assert re.search(r"^Requires-Dist: torch>=\S+ ?; extra == ['\"]torch['\"]$", text, re.MULTILINE)
    # Without extras neither comes along.
    assert not re.search(r"^Requires-Dist: (torch|transformers)[^;]*$", text, re.MULTILINE)


def test_it_needs_no_library_but_those_of_the_system(libraries: list[Path]) -> None:
    assert libraries
    for library in libraries:
        dynamic = subprocess.run(["readelf", "-dW", library], check=True, capture_output=True, text=True).stdout
        for needed in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
            assert SYSTEM_LIBRARIES.fullmatch(needed) or OWN_LIBRARIES.fullmatch(needed), f"{library.name}: {needed}"
        for paths in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.+)\]", dynamic):
            assert all(path.startswith("$ORIGIN") for path in paths.split(":") if path), f"{library.name}: {paths}"


def test_it_is_stripped(libraries: list[Path]) -> None:
    for library in libraries:
        sections = subprocess.run(["readelf", "-SW", library], check=True, capture_output=True, text=True).stdout
        assert ".symtab" not in sections, library.name
        assert ".debug_info" not in sections, library.name


# --- that it works ----------------------------------------------------------------------------------------------------

PROGRAM = """
import json
import numpy as np
import lowlp

weight = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
packed = lowlp.quantize(weight, "int6", group_size=64)
x = np.random.default_rng(1).normal(size=(4, 128)).astype(np.float16)
y = lowlp.linear(x, packed)
kernel = lowlp.compile_linear(n=64, k=128, m=(1, 16), weight="int6", group_size=64, activation="f16", target="sm_90a")
maps = open("/proc/self/maps").read()
print(json.dumps({
    "error": float(np.abs(y - x.astype(np.float64) @ packed.dequantize().T).max()),
    "ptx": kernel.ptx, "cubin": len(kernel.cubin), "file": lowlp.__file__,
    "foreign": sorted({line.split()[-1] for line in maps.splitlines() if "LLVM" in line or "libMLIR." in line}),
}))
"""


def test_it_quantises_compiles_and_runs(environment: Path) -> None:
    facts = json.loads(run(environment, "python", "-c", PROGRAM))
    assert facts["file"].startswith(str(environment))
    assert facts["error"] < 0.05
    assert ".target sm_90a" in facts["ptx"]
    assert "mma.sync" in facts["ptx"]
    assert facts["cubin"] > 0
    assert facts["foreign"] == []


def test_its_commands_work(environment: Path) -> None:
    program = (ROOT / "examples" / "fig2.mlir").read_text(encoding="utf-8")
    assert "sm_90a" in run(environment, "lowlp", "targets")
    assert run(environment, "lowlp", "doctor", "--cpu").endswith("nothing is missing\n")
    assert "simt.mma" in run(environment, "lowlp-opt", "-", "--lowlp-to-thread", given=program)
    assert "gpu.binary" in run(environment, "lowlp-opt", "-", "--lowlp-to-ptx=arch=sm_80", given=program)


def test_its_language_server_answers(environment: Path) -> None:
    messages = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"id": 2, "method": "shutdown", "params": {}},
        {"method": "exit", "params": {}},
    ]
    bodies = [json.dumps({"jsonrpc": "2.0", **message}) for message in messages]
    given = "".join(f"Content-Length: {len(body)}\r\n\r\n{body}" for body in bodies)
    assert "hoverProvider" in run(environment, "lowlp-lsp-server", given=given)
