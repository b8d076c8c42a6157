"""`test/gpu/sanitize.py` without a GPU: what it makes of the tools' words, and of a tool that is missing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "gpu" / "sanitize.py"


@pytest.fixture(scope="module")
def sanitize() -> Any:
    spec = importlib.util.spec_from_file_location("sanitize", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sanitize"] = module
    spec.loader.exec_module(module)
    return module


CLEAN = "========= COMPUTE-SANITIZER\n{} passed, {} failed \n========= ERROR SUMMARY: {} error{}\n"
RACES = "9 passed, 0 failed\n========= RACECHECK SUMMARY: {} hazards displayed ({} error{}, {} warnings)\n"


@pytest.mark.parametrize(
    ("text", "status", "counts", "problem"),
    [
        (CLEAN.format(9, 0, 0, "s"), 0, (0, 0, 9), ""),
        (CLEAN.format(9, 0, 1, ""), 0, (1, 0, 9), "1 errors"),
        (CLEAN.format(8, 1, 0, "s"), 1, (0, 0, 9), "1 of 9 results are wrong"),
        (CLEAN.format(0, 0, 0, "s"), 0, (0, 0, 0), "0 of 0 results are wrong"),
        (CLEAN.format(9, 0, 0, "s"), 3, (0, 0, 9), "exit status 3"),
        (RACES.format(12, 0, "s", 12), 0, (0, 12, 9), ""),
        (RACES.format(3, 1, "", 2), 0, (1, 2, 9), "1 errors"),
        ("========= ERROR SUMMARY: 0 errors\n", 0, (0, 0, 0), "the cases did not come to their end"),
        ("========= Error: Target application terminated\n", 255, (0, 0, 0), "no summary"),
    ],
)
def test_what_tools_say(sanitize: Any, text: str, status: int, counts: tuple[int, ...], problem: str) -> None:
    found = sanitize.finding_of(text, status)
    assert (found.errors, found.warnings, found.cases) == counts
    assert found.problem == problem


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_line_for_each_tool(tmp_path: Path) -> None:
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "case.json").write_text("{}")
    fake = tmp_path / "compute-sanitizer"
    # What comes after the tool and its options is the program with its folder.
    fake.write_text(
        "#!/bin/sh\necho '1 passed, 0 failed'\n"
        '[ "$1" = --tool ] || exit 9\n'
        "tool=$2; shift 2\n"
        '[ "$tool" = memcheck ] && { [ "$1 $2" = "--report-api-errors no" ] || exit 8; shift 2; }\n'
        f'[ "$3 $4" = "{tmp_path} --once" ] || exit 7\n'
        '[ $tool = racecheck ] && echo "========= RACECHECK SUMMARY: 4 hazards displayed (0 errors, 4 warnings)" ||\n'
        '  echo "========= ERROR SUMMARY: $([ $tool = memcheck ] && echo 0 || echo 2) errors"\n'
    )
    fake.chmod(0o755)
    done = run(tmp_path, "--sanitizer", fake)
    assert done.returncode == 1, done.stderr
    log = tmp_path / "synccheck.log"
    assert done.stdout.splitlines() == [
        "memcheck   0 errors, 0 warnings in 1 cases  ok",
        f"synccheck  2 errors, 0 warnings in 1 cases  FAILED: 2 errors, see {log}",
        "racecheck  0 errors, 4 warnings in 1 cases  ok",
    ]
    assert "2 errors" in log.read_text()
    assert run(tmp_path, "--sanitizer", fake, "--tools", "memcheck", "racecheck").returncode == 0


def test_a_tool_that_is_missing(tmp_path: Path) -> None:
    done = run(tmp_path, "--sanitizer", tmp_path / "nowhere")
    assert done.returncode == 2
    assert done.stderr.startswith(f"compute-sanitizer is missing: not at {tmp_path}/nowhere; ")
