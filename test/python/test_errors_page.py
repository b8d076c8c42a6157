"""docs/errors.md is right: every row of its tables is a mistake that is made here."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path

import pytest
from memory_mistakes import MISTAKES
from running_mistakes import save

import lowlp
from lowlp import errors, language
from lowlp.errors import CompileError, KernelFileError, LowlpError

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<what>.+?) \| `(?P<kind>\w+)` \| (?P<message>.+) \|$", re.MULTILINE)
ROWS = {row["what"]: (row["kind"], row["message"]) for row in ROW.finditer(PAGE.partition("## Mistakes")[2])}
CLASS = re.compile(r"^\| (?P<names>`.+?`) (?:and its kinds )?\| (?P<also>`.+?`) \|", re.MULTILINE)
COMPILE_ERRORS = [what for what, (kind, _) in ROWS.items() if kind == "CompileError"]


def class_named(name: str) -> type[BaseException]:
    for module in (errors, language, __builtins__):
        found = module.get(name) if isinstance(module, dict) else getattr(module, name, None)
        if found is not None:
            assert isinstance(found, type)
            return found
    raise AssertionError(name)


def made(what: str, folder: Path) -> LowlpError:
    """The error that the mistake gets."""
    with pytest.raises(LowlpError) as caught:
        MISTAKES[what](folder)
    return caught.value


def test_page_and_test_list_the_same_mistakes() -> None:
    assert sorted(ROWS) == sorted(MISTAKES)
    assert len(ROWS) > 50


@pytest.mark.parametrize("what", ROWS)
def test_row(what: str, tmp_path: Path) -> None:
    kind, message = ROWS[what]
    error = made(what, tmp_path)
    assert type(error).__name__ == kind
    first = str(error).splitlines()[0]
    assert re.fullmatch(".*".join(map(re.escape, message.split("…"))), first), f"{first}\nis not\n{message}"


def test_the_tree_is_what_the_page_says() -> None:
    rows = CLASS.findall(PAGE.partition("## What a compile error")[0])
    assert len(rows) == 11
    for names, also in rows:
        for name, base in zip(re.findall(r"\w+", names), re.findall(r"\w+", also), strict=True):
            assert issubclass(class_named(name), class_named(base)), name
            assert issubclass(class_named(name), LowlpError), name


@pytest.mark.parametrize("what", COMPILE_ERRORS)
def test_compile_errors_say_all(what: str, tmp_path: Path) -> None:
    error = made(what, tmp_path)
    assert isinstance(error, CompileError)
    text = str(error)
    assert error.line > 0
    assert f"{error.filename}:{error.line}: " in text
    assert error.failing_pass == "parser" or re.fullmatch(r"lowlp-[a-z-]+", error.failing_pass)
    assert not error.failing_pass.startswith("lowlp-to-")
    assert f"\nrefused by: {error.failing_pass}\n" in text
    assert "\nreproduce: lowlp-opt PROGRAM.mlir" in text
    assert all(note in text for note in error.notes)
    command = error.save_reproducer(tmp_path / "program.mlir")
    assert (tmp_path / "program.mlir").read_text() == error.source
    assert command.startswith("lowlp-opt ")


class Trap:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def test_loading_executes_nothing(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    pickled = pickle.dumps(Trap(sprung))
    pickle.loads(pickled)
    sprung.unlink()  # the trap works
    path = save(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("data.pkl", pickled)
        archive.writestr("__init__.py", f"open({str(sprung)!r}, 'w')")
    with pytest.raises(KernelFileError, match="is not in the manifest"):
        lowlp.load(path)
    path.write_bytes(pickled)
    with pytest.raises(KernelFileError, match="not a saved lowlp kernel"):
        lowlp.load(path)
    assert not sprung.exists()
