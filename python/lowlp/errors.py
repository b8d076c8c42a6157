"""The errors of lowlp: one class tree, which begins in `lowlp_runtime.errors`."""

from __future__ import annotations

import linecache
import os
import re
import shlex
import sys
from typing import TYPE_CHECKING

from lowlp_runtime.errors import AssembleError as AssembleError
from lowlp_runtime.errors import DeviceError as DeviceError
from lowlp_runtime.errors import KernelFileError as KernelFileError
from lowlp_runtime.errors import LowlpError as LowlpError
from lowlp_runtime.errors import LowlpFileNotFoundError as LowlpFileNotFoundError
from lowlp_runtime.errors import LowlpIsADirectoryError as LowlpIsADirectoryError
from lowlp_runtime.errors import LowlpOSError as LowlpOSError
from lowlp_runtime.errors import LowlpPermissionError as LowlpPermissionError
from lowlp_runtime.errors import LowlpRuntimeError as LowlpRuntimeError
from lowlp_runtime.errors import LowlpTypeError as LowlpTypeError
from lowlp_runtime.errors import LowlpValueError as LowlpValueError

if TYPE_CHECKING:
    from lowlp._mlir import ir


# How a message calls the file that the user has yet to write.
_PROGRAM_FILE = "PROGRAM.mlir"
_PACKAGES = ("lowlp", "lowlp_runtime")


class PaddingWarning(UserWarning):
    """Packed weights take notably more bytes than their codes, because the last unit of each row is padded."""


class RepackWarning(UserWarning):
    """Weights are packed for another type of activations than they are used with: repacked, and kept twice."""


class CpuProductWarning(UserWarning):
    """A module of `lowlp.torch` computes on a CPU, by slabs of dequantised weights."""


class ProductWarning(UserWarning):
    """Products of warpgroups run one after the other, or wait where the program does not: slow code, but right."""


class SpillWarning(UserWarning):
    """Threads keep what does not fit their registers in memory: slow code, but right."""


class CheckpointError(LowlpValueError):
    """A checkpoint is damaged, contradicts itself, or is of a format that is not read; the message names the file or
    tensor, and what is allowed."""


class CompileError(LowlpValueError):
    """A program that the compiler refuses.

    diagnostics   the compiler's messages with their places, most important first
    notes         what the compiler adds to them, with places
    source        the program as MLIR text, or '' where it was not read so far
    pipeline      what ran on it, as in `lowlp-to-nvvm{arch=sm_90a}`, or '' where only parser and verifier did
    failing_pass  the pass that refused it, as in `lowlp-convert-to-thread`; 'parser' or 'verifier' where none ran
    """

    notes: tuple[str, ...] = ()
    source: str = ""
    pipeline: str = ""
    failing_pass: str = ""

    def __init__(self, text: str, diagnostics: tuple[str, ...] = (), source: str = "", pipeline: str = "") -> None:
        super().__init__(text)
        self.diagnostics = diagnostics
        self.source = source
        self.pipeline = pipeline
        self._place = ("", 0)

    @property
    def filename(self) -> str:
        """The file of the first diagnostic, or ''."""
        return self._place[0]

    @property
    def line(self) -> int:
        """Its line there, or 0."""
        return self._place[1]

    @property
    def how_to_reproduce(self) -> str:
        """Two lines that end the error's text: the pass that refused the program, and the command that shows it."""
        return (
            f"refused by: {self.failing_pass}\n"
            f"reproduce: {self.command_for(_PROGRAM_FILE)} (save_reproducer({_PROGRAM_FILE!r}) of this error writes it)"
        )

    def command_for(self, path: str | os.PathLike[str]) -> str:
        """The `lowlp-opt` command line that shows the error for the program in the file at `path`."""
        name, _, options = self.pipeline.partition("{")
        words = ["lowlp-opt", os.fspath(path)]
        if name:
            options = options.removesuffix("}")
            words.append(f"--{name}={options}" if options else f"--{name}")
        return shlex.join(words)

    def save_reproducer(self, path: str | os.PathLike[str]) -> str:
        """Writes the program to `path`, and returns the command that shows the error again.

        Raises `LowlpValueError` where the error carries no program, `OSError` where the file cannot be written.
        """
        if not self.source:
            raise LowlpValueError("save_reproducer: this error carries no program")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.source)
        return self.command_for(path)


class CpuTargetError(LowlpRuntimeError):
    """What the CPU target reports of a running kernel: an access out of bounds, a race, a divergent barrier."""


def frames_to_user() -> int:
    """The `stacklevel` by which a warning of the caller points at the line outside of lowlp that led to it."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PACKAGES:
        frame, level = frame.f_back, level + 1
    return level


_FILE_LINE = re.compile(r'"(?P<file>[^"]+)":(?P<line>\d+)(:(?P<column>\d+))?')


def _one_diagnostic(info: ir.DiagnosticInfo) -> list[str]:
    """The diagnostic and its notes, each as 'file:line: message'."""
    match = _FILE_LINE.search(str(info.location))
    if match and match["line"] == "0":  # what the compiler makes itself has no line
        match = None
    place = f"{match['file']}:{match['line']}: " if match else ""
    lines = [f"{place}{info.message}"]
    if match:
        linecache.checkcache(match["file"])
        text = linecache.getline(match["file"], int(match["line"])).strip()
        if text:
            lines[0] += f"\n    {text}"
    for note in info.notes:
        # The op itself, printed in full, says less than its location.
        if not note.message.startswith("see current operation"):
            lines += [f"note: {line}" for line in _one_diagnostic(note)]
    return lines


def from_mlir_error(
    error: ir.MLIRError, doing: str, source: str = "", pipeline: str = "", failing_pass: str = "parser"
) -> CompileError:
    """The compiler's diagnostics as an error of ours, which carries the program and what ran on it."""
    diagnostics = tuple(line for info in error.error_diagnostics for line in _one_diagnostic(info)) or (error.message,)
    found = CompileError("", diagnostics, source, pipeline)
    found.notes = tuple(line.removeprefix("note: ") for line in diagnostics if line.startswith("note: "))
    found.failing_pass = failing_pass
    for info in error.error_diagnostics[:1]:
        match = _FILE_LINE.search(str(info.location))
        if match and match["line"] != "0":
            found._place = (match["file"], int(match["line"]))
    text = f"{doing}: " + "\n".join(diagnostics)
    found.args = (f"{text}\n{found.how_to_reproduce}" if source else text,)
    return found
