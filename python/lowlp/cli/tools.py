"""The commands `lowlp-opt` and `lowlp-lsp-server` of an installed package: the compiler's library, run as a program."""

from __future__ import annotations

import sys


def opt() -> int:
    """Runs `lowlp-opt` on the arguments of the process and returns its exit status."""
    from lowlp._mlir._mlir_libs import _compiler

    return int(_compiler.run_opt(["lowlp-opt", *sys.argv[1:]]))


def lsp_server() -> int:
    """Runs `lowlp-lsp-server`, which an editor starts, and returns its exit status."""
    from lowlp._mlir._mlir_libs import _compiler

    return int(_compiler.run_lsp_server(["lowlp-lsp-server", *sys.argv[1:]]))
