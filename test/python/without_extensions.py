"""Programs that import lowlp from its sources, where there are no extension modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_SHOW = (
    "import sys\n"
    "print([name for name in sys.modules if name in ('lowlp._layout', 'lowlp._mlir', 'torch', 'lowlp.compiler')])"
)


def output_of(imports: str, folder: Path) -> tuple[str, str]:
    """What a program prints, and its errors, that runs these imports in the folder and says which modules of the
    compiler and of PyTorch came with them."""
    # Without `site`, which makes the build tree's packages importable.
    paths = [_ROOT / "python", _ROOT / "runtime", *(path for path in sys.path if path.endswith("site-packages"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-S", "-c", f"{imports}\n{_SHOW}"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    return done.stdout, done.stderr
