"""Where a command writes: a file, or stdout for '-'; and tables of facts."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from lowlp_runtime.errors import LowlpValueError

STDOUT = "-"


def write(destination: str, data: str | bytes) -> None:
    """Writes text or bytes. Raises `OSError`, and `LowlpValueError` for bytes on a terminal."""
    if destination != STDOUT:
        raw = data.encode() if isinstance(data, str) else data
        Path(destination).write_bytes(raw)
    elif isinstance(data, str):
        sys.stdout.write(data if data.endswith("\n") else data + "\n")
    elif sys.stdout.isatty():
        raise LowlpValueError("-o: not writing machine code to a terminal; name a file with -o FILE")
    else:
        sys.stdout.buffer.write(data)


def table(facts: Iterable[tuple[str, str]], indent: str = "") -> str:
    """The facts as two columns. Each line of a value of several lines has its own row."""
    rows = [(name if first else "", line) for name, value in facts for first, line in _lines(value)]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{indent}{name:<{width}}  {line}".rstrip() for name, line in rows)


def _lines(value: str) -> list[tuple[bool, str]]:
    return [(number == 0, line) for number, line in enumerate(value.split("\n"))]


def count(number: int) -> str:
    """A count with its thousands apart: 1,536."""
    return f"{number:,}"
