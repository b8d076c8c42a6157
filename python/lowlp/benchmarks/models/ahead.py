"""Has a peer compile its kernels before anything is timed, in a process of its own, as many at a time as there are
processors. One at a time, when they are first called, would take longer than all that is measured."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

from lowlp.benchmarks.cases import Shape, WeightKind
from lowlp.benchmarks.worker import first_line

Ahead = tuple[WeightKind, Shape, int]
"""Weights and M of a product."""


def compile_ahead(
    name: str, problems: Sequence[Ahead], limit_s: float, show: Callable[[int, int, str], None]
) -> list[str]:
    """Compiles what the peer launches for these problems; it keeps kernels on disk, where the next process finds them.

    limit_s  after which the process is ended
    show     called with (done, of how many, what)

    Returns what is to be noted: how long it took, or what went wrong; what is lacking is compiled when it is called.
    """
    return in_process(name, _compile, (name, list(problems)), limit_s, show)


def in_process(
    name: str,
    work: Callable[..., None],
    arguments: tuple[Any, ...],
    limit_s: float,
    show: Callable[[int, int, str], None],
) -> list[str]:
    """The same for any work of a peer.

    work  called in the process with a connection and the arguments; sends what `_compile` does
    """
    start = time.monotonic()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_in_group, args=(work, theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    problem = ""
    try:
        while not problem:
            left = limit_s - (time.monotonic() - start)
            if left <= 0 or not ours.poll(left):
                problem = f"not done within {limit_s:.0f} s"
                break
            answer = ours.recv()
            if answer is None:
                break
            if isinstance(answer, str):
                problem = answer
            else:
                done, total = answer
                show(done, total, f"{name} compiles")
    except (EOFError, OSError):
        problem = "its process ended early"
    finally:
        _kill_group(process)
        process.join()
        ours.close()
    took = f"{name} compiled ahead for {time.monotonic() - start:.0f} s"
    return [f"{took}: {problem}" if problem else took]


def _in_group(work: Callable[..., None], *arguments: Any) -> None:
    """The process's side: compilers that it starts are of its group."""
    os.setpgid(0, 0)
    work(*arguments)


def _kill_group(process: multiprocessing.process.BaseProcess) -> None:
    """Ends a process and the compilers that it started, which would keep the processors busy while others are timed."""
    assert process.pid is not None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _compile(connection: Any, name: str, problems: list[Ahead]) -> None:
    """The process's side: sends (done, of how many), and None at the end or what went wrong."""
    try:
        from lowlp.benchmarks.peers import peer
        from lowlp.benchmarks.theirs import random_matrix

        adapter: Any = peer(name)
        for step in adapter.compile_ahead(problems, random_matrix, os.cpu_count() or 1):
            connection.send(step)
    except Exception as error:  # the run goes on without
        connection.send(f"{type(error).__name__}: {first_line(str(error))}")
        return
    connection.send(None)
