"""MLIR's Python bindings as embedded in lowlp: the dialects are there, errors arrive, one library owns all C++."""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path

import lowlp._mlir._mlir_libs
import pytest
from lowlp._mlir import ir
from lowlp._mlir.passmanager import PassManager

LIBRARIES = Path(lowlp._mlir._mlir_libs.__file__).parent
UPSTREAM_DIALECTS = (
    *("arith", "builtin", "cf", "func", "gpu", "index"),
    *("llvm", "math", "memref", "nvvm", "scf", "vector"),
)
OWN_DIALECTS = ("lowlp", "simt")


@pytest.mark.parametrize("name", (*UPSTREAM_DIALECTS, *OWN_DIALECTS))
def test_dialect_module_has_ops(name: str) -> None:
    module = importlib.import_module(f"lowlp._mlir.dialects.{name}")
    assert [symbol for symbol in vars(module) if symbol.endswith("Op")]


@pytest.mark.parametrize("name", ["lowlp", "simt", "arith", "gpu", "llvm", "nvvm", "scf", "vector"])
def test_every_context_knows_the_dialect(name: str) -> None:
    with ir.Context() as context:
        assert context.get_dialect_descriptor(name).namespace == name


def test_passes_run() -> None:
    with ir.Context():
        module = ir.Module.parse("func.func @f(%a: i32) { %b = arith.addi %a, %a : i32 return }")
        PassManager.parse("builtin.module(canonicalize)").run(module.operation)
        assert "addi" not in str(module)


def test_an_unknown_pass_is_named() -> None:
    with ir.Context(), pytest.raises(ValueError, match="no-such-pass"):
        PassManager.parse("builtin.module(no-such-pass)")


def test_a_diagnostic_keeps_its_location() -> None:
    with ir.Context(), pytest.raises(ir.MLIRError) as caught:
        ir.Module.parse("func.func @f() -> i32 {\n  return\n}")
    (diagnostic,) = caught.value.error_diagnostics
    assert re.search(r"has 0 operands, but enclosing function \(@f\) returns 1", diagnostic.message)
    assert '"-":2:3' in str(diagnostic.location)


def test_the_shared_library_exports_c_functions_only() -> None:
    command = ["nm", "--dynamic", "--defined-only", "--format=just-symbols", LIBRARIES / "libLowlpPythonCAPI.so"]
    symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert len(symbols) > 900
    assert [symbol for symbol in symbols if not symbol.startswith(("mlir", "lowlp"))] == []


def test_no_extension_links_mlir_itself() -> None:
    """A second owner of MLIR's type ids and registries would be a second, unconnected MLIR."""
    for library in LIBRARIES.glob("*.so"):
        if library.name != "libLowlpPythonCAPI.so":
            needed = subprocess.run(["readelf", "-d", library], check=True, capture_output=True, text=True).stdout
            assert not re.search(r"NEEDED.*lib(MLIR|LLVM)\.so", needed), library.name
