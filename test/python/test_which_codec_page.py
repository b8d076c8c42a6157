"""docs/which-codec.md has what its script prints: errors where the model is installed, bits and speeds always."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lowlp.cli.demo_weights import model_file

ROOT = Path(__file__).resolve().parents[2]


def cells(lines: list[str]) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def test_the_table_is_what_the_script_prints() -> None:
    spec = importlib.util.spec_from_file_location("which_codec", ROOT / "tools" / "dev" / "which_codec.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = (ROOT / "docs" / "which-codec.md").read_text(encoding="utf-8").split("<!-- table:")[1].split("\n\n")[1]
    head, rule, *rows = cells(page.splitlines())
    shown = {row[0]: row for row in rows}
    assert shown.keys() == script.CODECS.keys()
    # A fifth of the codecs, since each takes 23 quantisations.
    script.CODECS = dict(list(script.CODECS.items())[2::5])
    printed = cells(script.table())
    assert [head, rule] == printed[:2]
    for expected in printed[2:]:
        row = shown[expected[0]]
        assert (row[1], row[5:]) == (expected[1], expected[5:])
        for error, found in zip(row[2:5], expected[2:5], strict=True) if model_file() else ():
            assert abs(float(error) - float(found)) <= 0.001, row[0]
