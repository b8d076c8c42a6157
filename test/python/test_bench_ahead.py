"""What peers compile before anything is timed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lowlp.benchmarks.models.ahead import in_process


def compile_for_long(connection: Any, folder: str) -> None:
    """Has a compiler of its own, which would outlive it."""
    compiler = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    Path(folder, "pid").write_text(str(compiler.pid))
    connection.send((1, 2))
    compiler.wait()


def compile_at_once(connection: Any) -> None:
    connection.send((1, 1))
    connection.send(None)


def fail(connection: Any) -> None:
    connection.send("no compiler")


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_compilers_end_with_the_time_that_they_have(tmp_path: Path) -> None:
    shown: list[tuple[int, int, str]] = []
    (note,) = in_process("peer", compile_for_long, (str(tmp_path),), 5.0, lambda *step: shown.append(step))
    assert note.startswith("peer compiled ahead for ") and note.endswith("s: not done within 5 s")
    assert shown == [(1, 2, "peer compiles")]
    pid = int((tmp_path / "pid").read_text())
    try:
        end = time.monotonic() + 5
        while is_there(pid) and time.monotonic() < end:
            time.sleep(0.01)
        assert not is_there(pid)
    finally:
        if is_there(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("work", "ending"), [(compile_at_once, " s"), (fail, ": no compiler")])
def test_what_became_of_it_is_noted(work: Any, ending: str) -> None:
    (note,) = in_process("peer", work, (), 60.0, lambda *_: None)
    assert note.startswith("peer compiled ahead for ") and note.endswith(ending)
