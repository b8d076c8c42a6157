"""Ranks the choice of schedules where there are a compiler and a GPU: a part of the problems is timed while the next
is compiled. Some 6000 kernels take a machine minutes, so a run may end early; another one with the same file goes on.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lowlp.benchmarks.session import check_machine
from lowlp.benchmarks.worker import deadline_after
from lowlp_runtime.errors import LowlpValueError

from . import ranking
from .drawing import Cell
from .folder import PreparedProblems
from .preparing import Choice, prepare
from .ranking import Ranking

PART: Final = 12
"""Problems whose kernels lie on the disk at the same time: 500 kernels, and two such parts."""
_WAIT_S: Final = 0.2

Show = Callable[[int, int, str], None]
Part = tuple[Path, list[Cell]]
"""A folder of kernels, and the problems that they are for."""


@dataclass(frozen=True)
class Plan:
    """What is ranked.

    cells       drawn by `seed`
    folder      for the kernels, each part's in one of its own, which is removed once they are timed
    jobs        processes that compile; 0: one for each processor
    deadline_s  after so many seconds no problem is begun, and what is not compiled yet is left; None: all are
    """

    cells: Sequence[Cell]
    seed: int
    choice: Choice
    folder: Path
    jobs: int = 0
    deadline_s: float | None = None


def rank(plan: Plan, out: Path, show: Show) -> Ranking:
    """Compiles and times all problems that `out` does not have, and writes it after each part.

    show  called with (problems done, of how many, the last of them)

    Raises `DeviceError` where there is no GPU or no PyTorch; `LowlpValueError` for an `out` of another draw or choice,
    and where nothing can be compiled.
    """
    check_machine()
    whole = Ranking.load(out) if out.exists() else None
    if whole is not None:
        _check_is_of(plan, whole, out)
    left = left_of(plan.cells, whole)
    is_late = deadline_after(plan.deadline_s)
    done, total = len(plan.cells) - len(left), len(plan.cells)
    for folder, part in _prepared(plan, left, is_late):
        if any(problem.candidates for problem in PreparedProblems.load(folder).problems):
            found = ranking.measure(folder, folder / "ranks.json", None, lambda *_: None, is_late)
            whole = found if whole is None else replace(whole, problems=[*whole.problems, *found.problems])
            whole.run.notes[:] = _notes(whole, total)
            whole.save(out)
        shutil.rmtree(folder)
        done += len(part)
        show(done, total, str(part[-1]))
    if whole is None:
        raise LowlpValueError("no problem was timed: all came after --deadline, or no other schedule fits any")
    return whole


def _check_is_of(plan: Plan, whole: Ranking, out: Path) -> None:
    """Raises `LowlpValueError` where times of one run do not go together with those of the other."""
    wanted = (plan.seed, plan.choice.with_measured, plan.choice.gpu or whole.run.gpu)
    if (whole.seed, whole.with_measured, whole.run.gpu) != wanted:
        by = "by measurements too" if whole.with_measured else "by estimate alone"
        raise LowlpValueError(
            f"--out: {out} has problems of seed {whole.seed} on {whole.run.gpu}, chosen {by}; name another file, or "
            "go on as it began"
        )


def _notes(whole: Ranking, total: int) -> list[str]:
    lacking = total - len(whole.problems)
    return [f"{lacking} of {total} problems have no times yet, or no other schedule fits"] if lacking else []


def left_of(cells: Sequence[Cell], found: Ranking | None) -> list[Cell]:
    """Those without times."""
    known = {str(one.problem) for one in found.problems} if found else set()
    return [cell for cell in cells if str(cell) not in known]


def parts_of(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Parts of at most `PART` cells, each with cells from all over the draw, whose numbers of rows ascend."""
    count = -(-len(cells) // PART)
    return [list(cells[number::count]) for number in range(count)]


def _prepared(plan: Plan, cells: Sequence[Cell], is_late: Callable[[], bool]) -> Iterator[Part]:
    """The parts with their folders, each as soon as it is compiled; the next one is compiled meanwhile, by a thread."""
    ready: queue.Queue[Part | Exception | None] = queue.Queue(1)
    ended = threading.Event()

    def put(what: Part | Exception | None) -> None:
        while not ended.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(what, timeout=_WAIT_S)
                break

    def compile_all() -> None:
        try:
            for part in _compiled(plan, cells, lambda: ended.is_set() or is_late()):
                put(part)
        except Exception as error:  # raised where the parts are asked for
            put(error)
        put(None)

    thread = threading.Thread(target=compile_all, daemon=True)
    thread.start()
    try:
        while (found := ready.get()) is not None:
            if isinstance(found, Exception):
                raise found
            yield found
    finally:
        ended.set()
        thread.join()


def _compiled(plan: Plan, cells: Sequence[Cell], ends: Callable[[], bool]) -> Iterator[Part]:
    for number, part in enumerate(parts_of(cells)):
        folder = plan.folder / f"part-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.closing(prepare(folder, part, plan.seed, plan.choice, plan.jobs)) as steps:
            for _ in steps:
                if ends():
                    return
        yield folder, part
