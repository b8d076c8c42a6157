"""The errors of lowlp: one class tree, which begins in `lowlp_runtime.errors`."""

from __future__ import annotations

import os
import re
import secrets
import tempfile
from typing import TYPE_CHECKING

from lowlp_runtime.errors import AssembleError as AssembleError
from lowlp_runtime.errors import DeviceError as DeviceError
from lowlp_runtime.errors import KernelFileError as KernelFileError
from lowlp_runtime.errors import LowlpError as LowlpError
from lowlp_runtime.errors import LowlpRuntimeError as LowlpRuntimeError
from lowlp_runtime.errors import LowlpTypeError as LowlpTypeError
from lowlp_runtime.errors import LowlpValueError as LowlpValueError

if TYPE_CHECKING:
    from ._mlir import ir


class CompileError(LowlpValueError):
    """A program that the compiler refuses.

    diagnostics  the compiler's messages with their locations, most important first
    command      a `lowlp-opt` command line that shows the same error, or '' where no pass ran
    """

    def __init__(self, text: str, diagnostics: tuple[str, ...] = (), command: str = "") -> None:
        super().__init__(text)
        self.diagnostics = diagnostics
        self.command = command


class CpuTargetError(LowlpRuntimeError):
    """What the CPU target reports of a running kernel: an access out of bounds, a race, a divergent barrier."""


_FILE_LINE = re.compile(r'"(?P<file>[^"]+)":(?P<line>\d+)(:(?P<column>\d+))?')


def _one_diagnostic(info: ir.DiagnosticInfo) -> list[str]:
    """The diagnostic and its notes, each as 'file:line: message'."""
    match = _FILE_LINE.search(str(info.location))
    if match and match["line"] == "0":  # what the compiler makes itself has no line
        match = None
    place = f"{match['file']}:{match['line']}: " if match else ""
    lines = [f"{place}{info.message}"]
    if match and os.path.exists(match["file"]):
        with open(match["file"], encoding="utf-8", errors="replace") as file:
            source = file.read().splitlines()
        number = int(match["line"])
        if number <= len(source):
            lines[0] += f"\n    {source[number - 1].strip()}"
    for note in info.notes:
        # The op itself, printed in full, says less than its location.
        if not note.message.startswith("see current operation"):
            lines += [f"note: {line}" for line in _one_diagnostic(note)]
    return lines


def from_mlir_error(error: ir.MLIRError, doing: str, pipeline: str = "", source: str = "") -> CompileError:
    """The compiler's diagnostics as an error of ours.

    With `pipeline` and `source` the program is kept in a temporary file, so that the command in the error works.
    """
    diagnostics = tuple(line for info in error.error_diagnostics for line in _one_diagnostic(info)) or (error.message,)
    command = ""
    if pipeline:
        path = os.path.join(tempfile.gettempdir(), f"lowlp-{secrets.token_hex(4)}.mlir")
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
            name, _, options = pipeline.partition("{")
            options = options.removesuffix("}")
            command = f"lowlp-opt {path} --{name}" + (f'="{options}"' if options else "")
        except OSError:
            command = ""
    text = f"{doing}: " + "\n".join(diagnostics)
    if command:
        text += f"\nreproduce: {command}"
    return CompileError(text, diagnostics, command)
