"""Runs a program of examples/ in this process, which has loaded what it imports."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
from pathlib import Path
from unittest import mock

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def output_of_example(file: str, *arguments: str) -> str:
    """What it prints."""
    path = str(EXAMPLES / file)
    with (
        mock.patch.object(sys, "argv", [path, *arguments]),
        mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]),
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        runpy.run_path(path, run_name="__main__")
    return printed.getvalue()
