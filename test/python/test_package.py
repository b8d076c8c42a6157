"""Importing lowlp is quick and loads nothing that is not used; every public name is where the table says."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lowlp

MAX_IMPORT_SECONDS = 0.5


def run(statement: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True, text=True).stdout


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter holds after a statement."""
    return set(run(f"import sys; {statement}; print(*sys.modules)").split())


def test_import_loads_no_other_module_of_ours() -> None:
    loaded = modules_after("import lowlp")
    assert not {name for name in loaded if name.startswith(("lowlp.", "lowlp_runtime", "torch", "cuda"))}


def test_import_is_quick() -> None:
    program = "import time; start = time.perf_counter(); import lowlp; print(time.perf_counter() - start)"
    assert float(run(program)) < MAX_IMPORT_SECONDS


@pytest.mark.parametrize("expression", ["lowlp.dtype('int6')", "lowlp.local(2, 1).spatial(8, 4)"])
def test_types_and_layouts_need_no_mlir(expression: str) -> None:
    assert not {name for name in modules_after(f"import lowlp; {expression}") if name.startswith("lowlp._mlir")}


@pytest.mark.parametrize("name", lowlp.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(lowlp, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'lowlp' has no attribute 'int9'"):
        lowlp.int9  # noqa: B018


def test_dir_lists_the_public_names() -> None:
    assert set(lowlp.__all__) <= set(dir(lowlp))
