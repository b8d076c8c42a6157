"""docs/which-codec.md has what its script prints: errors where the model is installed, bits and speeds always."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from lowlp.cli.demo_weights import model_file

ROOT = Path(__file__).resolve().parents[2]


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


@functools.cache
def script() -> Any:
    spec = importlib.util.spec_from_file_location("which_codec", ROOT / "tools" / "dev" / "which_codec.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def table_on_page(number: int) -> list[list[str]]:
    page = (ROOT / "docs" / "which-codec.md").read_text(encoding="utf-8")
    return cells(page.split("<!-- table:")[number].split("\n\n")[1].splitlines())


def test_the_table_is_what_the_script_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    head, rule, *rows = table_on_page(1)
    shown = {row[0]: row for row in rows}
    assert shown.keys() == script().CODECS.keys()
    # A fifth of the codecs, since each takes 23 quantisations.
    monkeypatch.setattr(script(), "CODECS", dict(list(script().CODECS.items())[2::5]))
    printed = cells(script().table())
    assert [head, rule] == printed[:2]
    for expected in printed[2:]:
        row = shown[expected[0]]
        assert (row[1], row[5:]) == (expected[1], expected[5:])
        for error, found in zip(row[2:5], expected[2:5], strict=True) if model_file() else ():
            assert abs(float(error) - float(found)) <= 0.001, row[0]


def test_the_table_of_codebooks_is_what_the_script_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    head, rule, *rows = table_on_page(2)
    assert [row[0] for row in rows] == list(script().BOOKS)
    # The others take seconds to minutes.
    monkeypatch.setattr(script(), "BOOKS", dict(list(script().BOOKS.items())[:1]))
    printed = cells(script().table_of_books())
    assert [head, rule] == printed[:2] and rows[0][:3] == printed[2][:3]
    for error, found in zip(rows[0][3:], printed[2][3:], strict=True) if model_file() else ():
        assert abs(float(error) - float(found)) <= 0.001
