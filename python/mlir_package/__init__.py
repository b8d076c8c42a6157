"""MLIR's Python bindings, with the dialects of lowlp: the package `lowlp._mlir`.

What every compilation needs is loaded with the package; the classes of a dialect's operations are loaded when the first
of them is used. Ctrl-C leaves no module half loaded: see `loading`.
"""

import importlib

from . import loading

with loading.interrupted_later():
    for _name in ("ir", "passmanager", "_mlir_libs._compiler"):
        importlib.import_module(f".{_name}", __name__)
