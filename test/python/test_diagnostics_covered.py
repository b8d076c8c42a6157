"""Every diagnostic of dialects and compiler has a lit test that expects its words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["dialect", "compiler"]

_LITERAL = r'"(?:[^"\\]|\\.)*"'
# Adjacent C++ string literals are one text.
_LITERALS = re.compile(rf"((?:{_LITERAL}\s*)+)")
# Up to the semicolon that ends it, which no literal holds.
_STATEMENT = re.compile(rf"\bemit(?:Op)?Error\((?:{_LITERAL}|[^;\"])*")
# What options cause is expected of several commands with FileCheck, each with a prefix of its own.
_EXPECTED = re.compile(r"expected-error[^{]*\{\{(.*?)\}\}|^ *// [A-Z-]+: .*?error: (.*)$", re.MULTILINE)


def _text(literals: str) -> str:
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"').strip()


def _statements(source: str) -> Iterator[str]:
    """Each statement that makes a diagnostic, up to its semicolon, without the words it chooses between."""
    for statement in _STATEMENT.findall(source):
        yield re.sub(r"\([^()]*\?[^()]*\)", "", statement)


def _diagnostics() -> list[tuple[str, tuple[str, ...]]]:
    """File name and literal parts of every diagnostic that has a literal; those of libraries have none here."""
    found = []
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.cpp")):
            for statement in _statements(path.read_text()):
                parts = tuple(text for part in _LITERALS.findall(statement) if (text := _text(part)))
                if parts:
                    found.append((path.name, parts))
    return found


def _expected_errors() -> list[str]:
    texts = [path.read_text() for path in (ROOT / "test").rglob("*.mlir")]
    return [expected or checked for text in texts for expected, checked in _EXPECTED.findall(text)]


DIAGNOSTICS = _diagnostics()
EXPECTED_ERRORS = "\n".join(_expected_errors())


def test_the_sources_have_diagnostics() -> None:
    """Guards the pattern above: a change of style in the sources must not make the check empty."""
    assert len(DIAGNOSTICS) >= 230
    files = {file for file, _ in DIAGNOSTICS}
    assert {"EmitPTX.cpp", "LowlpOrderOps.cpp", "PlanMemory.cpp", "Requirements.cpp"} <= files


@pytest.mark.parametrize(
    ("file", "parts"), DIAGNOSTICS, ids=lambda value: value if isinstance(value, str) else value[0]
)
def test_a_lit_test_expects_the_diagnostic(file: str, parts: tuple[str, ...]) -> None:
    words = re.compile(".*".join(re.escape(part) for part in parts))
    assert words.search(EXPECTED_ERRORS), f"{file}: no expected-error has {parts}"
