"""Ctrl-C while MLIR is being loaded: it takes effect, and leaves nothing half done."""

from __future__ import annotations

import subprocess
import sys

# A signal where extension modules are loaded, and in a dialect; in a process of its own, as this one has loaded them.
PROGRAM = """
import signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name in ("lowlp._mlir._mlir_libs._site_initialize_1", "lowlp._mlir.dialects._gpu_ops_gen"):
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
try:
    import lowlp._mlir.ir
except KeyboardInterrupt:
    sys.meta_path.pop(0)
from lowlp._mlir import ir
print(ir.Module.parse("module { gpu.module @m {} }", ir.Context()).body.operations[0].name)
"""


def test_an_interrupted_import_can_be_repeated() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "gpu.module\n", "")
