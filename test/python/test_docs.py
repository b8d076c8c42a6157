"""The Python blocks of the README and of docs run as they are printed: those of one page in order, in one namespace."""

from __future__ import annotations

import linecache
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lowlp.cli import build_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "examples" / "README.md")
    if path.is_file() and "```python" in path.read_text(encoding="utf-8")
)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXCERPT = re.compile(r"^<!-- excerpt: (\w+) -->\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def read_page(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = read_page(page)
    if re.search(r"^import .*\btorch\b", text, re.MULTILINE):
        pytest.importorskip("torch")
    namespace: dict[str, Any] = {"__name__": "docs"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        # Padded, so that a traceback shows the page's own line numbers. Kernels of the DSL are read from the source.
        source = "\n" * line + block[1]
        name = f"{page}, block at line {line}"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), namespace)


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/architecture.md",
        "docs/layouts.md",
        "docs/packed-format.md",
        "docs/tutorial.md",
        "examples/README.md",
    ],
)
def test_commands_are_spelled_right(page: str) -> None:
    commands = re.findall(r"^    lowlp (.*)$", read_page(page), re.MULTILINE)
    assert commands
    for command in commands:
        build_parser().parse_args(shlex.split(command, comments=True))


def lines_without_names(text: str) -> list[str]:
    """The lines, with one space for each blank and without the names of values, which pages choose for reading."""
    return [re.sub(r"%\w+", "%", " ".join(line.split())) for line in text.splitlines()]


def compiled(level: str) -> str:
    source = ROOT / "examples" / "fig2.mlir"
    if level == "source":
        return source.read_text(encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "lowlp", "compile", source, "--emit", level], capture_output=True, text=True, check=True
    )
    return done.stdout


def is_within(excerpt: list[str], lines: list[str]) -> bool:
    """Whether the parts of the excerpt, which "..." divides, are found in this order."""
    start = 0
    for part in "\n".join(excerpt).split("\n...\n"):
        wanted = part.split("\n")
        places = (at for at in range(start, len(lines)) if lines[at : at + len(wanted)] == wanted)
        found = next(places, None)
        if found is None:
            return False
        start = found + len(wanted)
    return True


def test_excerpts_are_what_the_compiler_writes() -> None:
    """Where this fails after a change of the compiler, cut the excerpt anew from `lowlp compile examples/fig2.mlir`."""
    excerpts = EXCERPT.findall(read_page("docs/architecture.md"))
    assert {level for level, _ in excerpts} == {"source", "thread", "nvvm", "ptx", "cpu"}
    for level, excerpt in excerpts:
        assert is_within(lines_without_names(excerpt), lines_without_names(compiled(level))), excerpt


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "examples/README.md",
        *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    ],
)
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    for target in LINK.findall(read_page(page)):
        if "://" not in target:
            assert (folder / target).exists(), f"{page}: {target}"


PICTURES = ROOT / "tools" / "dev" / "draw-pictures.py"


def test_pictures_are_what_the_code_draws(tmp_path: Path) -> None:
    """Where this fails after a change of the drawing, run tools/dev/draw-pictures.py and look at them."""
    subprocess.run([sys.executable, PICTURES, tmp_path], capture_output=True, check=True)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "pictures").iterdir()}
    assert sorted(drawn) == sorted(kept)
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    assert all(any(f"(pictures/{name})" in page for page in pages) for name in drawn)
    assert [name for name in drawn if drawn[name] != kept[name]] == []


def test_every_page_is_listed() -> None:
    listed = read_page("docs/README.md")
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in listed, path.name


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    """Where this fails, run `make demo` and copy its table. Without the model's package its numbers are others, and the
    sizes of files are the assembler's."""
    block = re.search(r"<!-- demo: .*? -->\n```text\n(.*?)^```$", read_page("README.md"), re.DOTALL | re.MULTILINE)
    assert block
    command = [sys.executable, "-m", "lowlp", "demo", "--device", "cpu"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    numbers = r"(?<=[xlnp], )[0-9,]+(?= bytes$)" if "all-MiniLM" in printed else r"[0-9,.]+(e-[0-9]+)?"
    first = 0 if "all-MiniLM" in printed else 2
    shown, found = ([re.sub(numbers, "0", line) for line in text.splitlines()] for text in (block[1], printed))
    assert all(line in found for line in shown[first:])


def test_the_reference_lists_what_there_is(tmp_path: Path) -> None:
    """Where this fails, run tools/dev/list-reference.py."""
    pytest.importorskip("torch")  # it lists lowlp.torch too
    tool = ROOT / "tools" / "dev" / "list-reference.py"
    subprocess.run([sys.executable, tool, tmp_path / "reference.md"], capture_output=True, check=True)
    assert (tmp_path / "reference.md").read_text(encoding="utf-8") == read_page("docs/reference.md")
