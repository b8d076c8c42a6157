"""Every diagnostic of the dialects and of the block-to-thread lowering has a lit test that expects its words."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["dialect/lib/IR", "compiler/lib/Conversion/LowlpToThread"]

# Adjacent C++ string literals are one text.
_LITERALS = re.compile(r'((?:"(?:[^"\\]|\\.)*"\s*)+)')
_EXPECTED = re.compile(r"expected-error[^{]*\{\{(.*?)\}\}")


def _text(literals: str) -> str:
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"').strip()


def _statements(source: str) -> Iterator[str]:
    """Each statement that makes a diagnostic, up to its semicolon, without the words it chooses between."""
    for match in re.finditer(r"\bemit(?:Op)?Error\(", source):
        end = source.find(";", match.start())
        yield re.sub(r"\([^()]*\?[^()]*\)", "", source[match.start() : end])


def _diagnostics() -> list[tuple[str, tuple[str, ...]]]:
    """File name and literal parts of every diagnostic that has a literal."""
    found = []
    for folder in SOURCES:
        for path in sorted((ROOT / folder).glob("*.cpp")):
            for statement in _statements(path.read_text()):
                parts = tuple(text for part in _LITERALS.findall(statement) if (text := _text(part)))
                if parts:
                    found.append((path.name, parts))
    return found


def _expected_errors() -> list[str]:
    return [text for path in (ROOT / "test").rglob("*.mlir") for text in _EXPECTED.findall(path.read_text())]


DIAGNOSTICS = _diagnostics()


def test_the_sources_have_diagnostics() -> None:
    """Guards the pattern above: a change of style in the sources must not make the check empty."""
    assert len(DIAGNOSTICS) >= 45


@pytest.mark.parametrize(
    ("file", "parts"), DIAGNOSTICS, ids=lambda value: value if isinstance(value, str) else value[0]
)
def test_a_lit_test_expects_the_diagnostic(file: str, parts: tuple[str, ...]) -> None:
    words = re.compile(".*".join(re.escape(part) for part in parts))
    assert any(words.search(text) for text in _expected_errors()), f"{file}: no expected-error has {parts}"
