"""Measures in a process of its own, which may die: after an error of CUDA, which stays, the next one goes on.

The process gets units of work and answers row by row, so that what is lost is the one row it was at.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .cases import Shape
from .results import Row
from .timing import Effort

_ROW, _DONE, _FACTS, _DEAD = "row", "done", "facts", "dead"


@dataclass(frozen=True)
class Settings:
    """What all units share.

    kernels          folder of our kernels, or None where only peers are measured
    checked_columns  of a result, at most, are compared with float64; None: all
    """

    kernels: Path | None
    effort: Effort
    measure_read: bool = False
    host_cost: bool = True
    checked_columns: int | None = None


@dataclass(frozen=True)
class Unit:
    """The products of one library with weights of one kind and shape."""

    who: str
    kind: str
    shape: Shape
    rows: tuple[int, ...]

    def failed(self, m: int, problem: str) -> Row:
        """The row that says why there is no time."""
        return Row(self.who, self.kind, self.shape.n, self.shape.k, m, None, problem=problem)


@dataclass
class Facts:
    """What is measured once."""

    empty_us: float | None = None
    read_bytes_per_s: float | None = None
    host_us: float | None = None
    module_us: float | None = None
    notes: tuple[str, ...] = ()


class Worker:
    """A process that measures units.

    target   what runs in it: called with (connection, settings)
    limit_s  how long one answer may take; the process is ended after that
    """

    def __init__(self, settings: Settings, limit_s: float, target: Callable[..., None]) -> None:
        self._settings, self._limit_s, self._target = settings, limit_s, target
        self._process: Any = None
        self._connection: Any = None

    def facts(self) -> Facts:
        """Calibrates; where the process dies, the facts say so."""
        answer = self._ask("facts")
        return answer[1] if answer[0] == _FACTS else Facts(notes=(f"calibration failed: {answer[1]}",))

    def measure(self, unit: Unit) -> Iterator[Row]:
        """One row for each M of the unit, in order."""
        left = list(unit.rows)
        answer = self._ask(replace(unit, rows=tuple(left)))
        while left:
            if answer[0] == _ROW:
                left.pop(0)
                yield answer[1]
                if left:
                    answer = self._wait()
            elif answer[0] == _DONE:
                raise AssertionError(f"the process was done with {unit} and left out {left}")
            else:
                yield unit.failed(left.pop(0), answer[1])
                if left:
                    answer = self._ask(replace(unit, rows=tuple(left)))
        if answer[0] == _ROW:
            self._wait()

    def close(self) -> None:
        """Ends the process."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            self._connection.send(None)
        self._process.join(5)
        self._end()

    def _ask(self, what: object) -> tuple[str, Any]:
        if self._process is None:
            # CUDA does not survive a fork.
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=self._target, args=(theirs, self._settings), daemon=True)
            self._process.start()
            theirs.close()
        self._connection.send(what)
        return self._wait()

    def _wait(self) -> tuple[str, Any]:
        """The next answer; where there is none, `_DEAD` with the reason, and the process is ended."""
        deadline = time.monotonic() + self._limit_s
        while not self._connection.poll(0.5):
            if time.monotonic() > deadline:
                self._end()
                return _DEAD, f"no answer within {self._limit_s:.0f} s; the process was ended"
            if not self._process.is_alive() and not self._connection.poll(0):
                code = self._process.exitcode
                self._end()
                return _DEAD, f"the process ended with status {code}"
        try:
            answer: tuple[str, Any] = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(5)
            code = self._process.exitcode
            self._end()
            return _DEAD, f"the process ended with status {code}"
        if answer[0] == _DEAD:
            self._end()
        return answer

    def _end(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()
        self._process = self._connection = None


def serve(
    connection: Any,
    calibrate: Callable[[], Facts],
    open_unit: Callable[[Unit], Callable[[int], Row]],
    why_dead: Callable[[], str],
) -> None:
    """The process's side: answers until it is told to stop.

    calibrate  finds the facts
    open_unit  makes a unit's weights, and returns what measures one M
    why_dead   after an error: why no further work can be done here, or ''
    """
    while (what := connection.recv()) is not None:
        if what == "facts":
            connection.send(_attempt(lambda: (_FACTS, calibrate()), why_dead))
            continue
        if not _serve_unit(connection, what, open_unit, why_dead):
            return


def _serve_unit(
    connection: Any, unit: Unit, open_unit: Callable[[Unit], Callable[[int], Row]], why_dead: Callable[[], str]
) -> bool:
    """Answers with the rows of a unit; False where the process must end."""
    opened = _attempt(lambda: ("opened", open_unit(unit)), why_dead)
    for m in unit.rows:
        if opened[0] != "opened":
            answer: tuple[str, Any] = opened
        else:
            measure = opened[1]
            answer = _attempt(lambda m=m, measure=measure: (_ROW, measure(m)), why_dead)  # type: ignore[misc]
        if answer[0] == "error":
            answer = (_ROW, unit.failed(m, answer[1]))
        connection.send(answer)
        if answer[0] == _DEAD:
            return False
    connection.send((_DONE, None))
    return True


def _attempt(work: Callable[[], tuple[str, Any]], why_dead: Callable[[], str]) -> tuple[str, Any]:
    """The answer, or ('error', what happened), or `_DEAD` where the process is of no further use."""
    try:
        return work()
    except Exception as error:  # whatever it is, the others are to be measured
        text = f"{type(error).__name__}: {first_line(str(error))}"
        dead = why_dead()
        return (_DEAD, f"{text}; {dead}") if dead else ("error", text)


def first_line(text: str, most: int = 300) -> str:
    """The first line that says something, shortened."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else f"{line[: most - 3]}..."


def deadline_after(seconds: float | None) -> Callable[[], bool]:
    """Tells whether so many seconds have passed; None: never."""
    end = None if seconds is None else time.monotonic() + seconds
    return lambda: end is not None and time.monotonic() > end


def units_of(
    peers: Sequence[str], with_ours: bool, kinds: Sequence[str], shapes: Sequence[Shape], rows: Sequence[int],
    supports: Callable[[str, str], bool],
) -> list[Unit]:  # fmt: skip
    """All units: shape after shape, torch, and then of each kind ours beside the peers'."""
    found: list[Unit] = []
    for shape in shapes:
        if "torch" in peers:
            found.append(Unit("torch", "f16", shape, tuple(rows)))
        for kind in kinds:
            if with_ours:
                found.append(Unit("lowlp", kind, shape, tuple(rows)))
            found += [Unit(who, kind, shape, tuple(rows)) for who in peers if who != "torch" and supports(who, kind)]
    return found
