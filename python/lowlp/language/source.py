"""Where in the user's program something happens, and the errors that say so.

A kernel is traced by running it, so the place of an op is the innermost stack frame outside of this package. Rewritten
kernels keep the file name and line numbers of their source (see `rewriting`), which makes frames of them right too.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType

from lowlp.errors import CompileError, LowlpError, LowlpTypeError, LowlpValueError

_Position = tuple[int | None, int | None, int | None, int | None]
_THIS_PACKAGE = __file__.removesuffix("source.py")


@dataclass(frozen=True)
class Place:
    """A line of the user's program; lines and columns count from 1."""

    filename: str
    line: int
    column: int = 1

    @property
    def text(self) -> str:
        """The line without the space around it; '' where the file cannot be read."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"


def here() -> Place:
    """The place in the user's program from which this package was called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_THIS_PACKAGE):
        frame = frame.f_back
    line, _, column, _ = _positions_of(frame.f_code)[frame.f_lasti // 2]
    return Place(frame.f_code.co_filename, line or frame.f_lineno, (column or 0) + 1)


_MOST_KEPT = 256
_kept_positions: dict[int, tuple[CodeType, list[_Position]]] = {}


def _positions_of(code: CodeType) -> list[_Position]:
    """The place of each instruction. Kept by identity, since code objects that are equal may differ in columns, and
    with the code, so that no other gets its identity."""
    known = _kept_positions.get(id(code))
    if known is None:
        if len(_kept_positions) >= _MOST_KEPT:
            _kept_positions.clear()
        known = _kept_positions[id(code)] = (code, list(code.co_positions()))
    return known[1]


class KernelError(LowlpError):
    """Something is wrong in a line of a kernel; the base of the errors of the block DSL.

    message   what is wrong, without the place
    place     the file, line and column; None where the source is unknown
    notes     further facts
    """

    def __init__(self, message: str, place: Place | None = None, notes: Sequence[str] = ()) -> None:
        self.message = message
        self.place = place
        self.notes = tuple(notes)
        lines = [message]
        if place is not None:
            lines.append(f"  {place}")
            if place.text:
                lines.append(f"    {place.text}")
        lines += [f"  note: {note}" for note in notes]
        Exception.__init__(self, "\n".join(lines))

    @property
    def filename(self) -> str:
        """The user's file, or ''."""
        return self.place.filename if self.place else ""

    @property
    def line(self) -> int:
        """The line in the user's file, or 0."""
        return self.place.line if self.place else 0


class KernelValueError(KernelError, LowlpValueError):
    """A kernel uses a value that is not allowed there."""


class KernelTypeError(KernelError, LowlpTypeError):
    """A kernel uses a value of a type, element type or layout that is not allowed there."""


class VerificationError(KernelError, CompileError):
    """The verifier refuses an op of a traced kernel.

    diagnostics  all messages of the verifier, each with its place
    source       the traced program, as `CompileError` has it
    """

    def __init__(
        self,
        message: str,
        place: Place | None,
        notes: Sequence[str] = (),
        diagnostics: Sequence[str] = (),
        source: str = "",
    ) -> None:
        KernelError.__init__(self, message, place, notes)
        self.diagnostics = tuple(diagnostics) or (message,)
        self.source = source
        self.failing_pass = "verifier"
        if source:
            self.args = (f"{self.args[0]}\n{self.how_to_reproduce}",)


def value_error(message: str, place: Place | None = None) -> KernelValueError:
    """The error to raise for a value, at the user's line if no other place is given."""
    return KernelValueError(message, place or here())


def type_error(message: str, place: Place | None = None) -> KernelTypeError:
    """The error to raise for a type, at the user's line if no other place is given."""
    return KernelTypeError(message, place or here())
