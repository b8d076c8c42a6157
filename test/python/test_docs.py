"""The Python blocks of the README and of docs run as they are printed: those of one page in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md")
    if path.is_file() and "```python" in path.read_text(encoding="utf-8")
)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def read_page(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = read_page(page)
    namespace: dict[str, Any] = {"__name__": "docs"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        # Padded, so that a traceback shows the page's own line numbers.
        exec(compile("\n" * line + block[1], page, "exec"), namespace)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/README.md"])
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for target in LINK.findall(read_page(page)):
        if "://" not in target:
            assert (folder / target).exists(), f"{page}: {target}"


def test_every_page_is_listed() -> None:
    listed = read_page("docs/README.md")
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in listed, path.name
