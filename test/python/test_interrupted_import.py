"""Ctrl-C while MLIR is being loaded: it takes effect, and leaves nothing half done."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A signal where a module is looked for; in a process of its own, as this one has loaded them.
PROGRAM = """
import signal, sys
from importlib.machinery import PathFinder
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what runs in the background
find_spec, waiting = PathFinder.find_spec, [sys.argv[1]]
def interrupting(name, *rest):
    if name in waiting:
        waiting.remove(name)
        signal.raise_signal(signal.SIGINT)
    return find_spec(name, *rest)
PathFinder.find_spec = interrupting
def load():
    from lowlp._mlir import ir
    return ir.Module.parse("module { gpu.module @m {} }", ir.Context()).body.operations[0].name
try:
    load()
except KeyboardInterrupt:
    print("interrupted", load(), "lowlp._mlir.dialects.gpu" in sys.modules)
"""


@pytest.mark.parametrize(
    "module",
    ["_mlir_libs._site_initialize_0", "_mlir_libs._compiler", "dialects._gpu_ops_gen", "dialects.arith"],
)
def test_an_interrupted_import_can_be_repeated(module: str) -> None:
    command = [sys.executable, "-c", PROGRAM, f"lowlp._mlir.{module}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted gpu.module True\n", "")


def test_dialects_are_loaded_when_they_are_used() -> None:
    program = "import lowlp, sys; lowlp.linear; print([name for name in sys.modules if '_mlir.dialects.' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
