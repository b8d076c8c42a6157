"""Where a command writes: a file, or stdout for '-'; facts, aligned; help."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

from lowlp_runtime.errors import LowlpValueError

STDOUT = "-"
_VALUE_WIDTH = 92


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps a paragraph, and leaves text that has lines of its own, such as examples, as it is."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        filler = argparse.RawDescriptionHelpFormatter if "\n" in text else argparse.HelpFormatter
        return filler._fill_text(self, text, width, indent)


def number_from(least: int, most: int | None = None) -> Callable[[str], int]:
    """A type for arguments: an int of at least `least`, and at most `most`."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, got {value}")
        if most is not None and value > most:
            raise argparse.ArgumentTypeError(f"must be at most {most}, got {text:.40}")
        return value

    return number


def write(destination: str, data: str | bytes) -> None:
    """Writes text or bytes. Raises `OSError`, and `LowlpValueError` for bytes on a terminal."""
    if destination != STDOUT:
        raw = data.encode() if isinstance(data, str) else data
        Path(destination).write_bytes(raw)
    elif isinstance(data, str):
        text = printable(data, "\n\t") if sys.stdout.isatty() else data
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    elif sys.stdout.isatty():
        raise LowlpValueError("-o: not writing machine code to a terminal; name a file with -o FILE")
    else:
        sys.stdout.buffer.write(data)


def printable(text: str, allowed: str = "") -> str:
    """The text with control characters, but for those allowed, written as escapes such as `\\x1b`: what a file holds
    must not steer the terminal."""
    return "".join(
        character if character.isprintable() or character in allowed else ascii(character)[1:-1] for character in text
    )


def aligned(facts: Iterable[tuple[str, str]], indent: str = "") -> str:
    """The facts as two columns; long values go on in rows of their own."""
    rows = [
        (printable(name) if number == 0 else "", printable(line))
        for name, value in facts
        for number, line in enumerate(_wrapped(value))
    ]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{indent}{name:<{width}}  {line}".rstrip() for name, line in rows)


def _wrapped(value: str) -> list[str]:
    return textwrap.wrap(value, _VALUE_WIDTH, break_long_words=False, break_on_hyphens=False) or [""]


def count(number: int) -> str:
    """A count with its thousands apart: 1,536."""
    return f"{number:,}"
