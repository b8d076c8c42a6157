"""Compiles the candidates of problems, in several processes, into a folder. Needs the compiler and no GPU."""

from __future__ import annotations

import hashlib
import os
import signal
import warnings
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp.compiler.kernel_cache import compiler_version
from lowlp.errors import ProductWarning, SpillWarning
from lowlp.schedules.device import Device, device_ahead
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.errors import LowlpError, LowlpValueError

from .prepared import SPILLS, Candidate, Kernel, PreparedCandidates, PreparedProblem
from .prepared_folder import INDEX
from .problems import AnyProblem


def open_folder(folder: Path, arch: str, multiprocessors: int) -> PreparedCandidates:
    """A folder for kernels of this compiler, made if it is not there.

    multiprocessors  of the GPU that will run them

    Raises `LowlpValueError` for a folder of another architecture, GPU or compiler.
    """
    wanted = PreparedCandidates(folder, arch, compiler_version(), multiprocessors)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / INDEX).exists():
        wanted.save()
    found = PreparedCandidates.load(folder)
    if found != wanted:
        raise LowlpValueError(
            f"--prepare: {folder} has kernels for {found}, and these are for {wanted}; name another folder"
        )
    return wanted


def prepare(
    prepared: PreparedCandidates, problems: Sequence[AnyProblem], count: int = 16, jobs: int = 0
) -> Generator[PreparedProblem, None, None]:
    """Compiles what the folder lacks; what another call put there for other problems stays.

    count  candidates of a problem by estimate; those that were measured come on top
    jobs   processes; 0: one for each processor

    Yields the problems in order, each when its kernels are there. What is wrong with a kernel goes to its candidate.
    Call it in the main thread, which alone is interrupted.
    """
    # The compiler's threads and locks do not survive a fork. An interrupt is for this process, which ends the others.
    ignore_interrupts = (signal.SIGINT, signal.SIG_IGN)
    pool = ProcessPoolExecutor(jobs or os.cpu_count() or 1, get_context("spawn"), signal.signal, ignore_interrupts)
    try:
        begun = [_begin(pool, prepared, problem, count) for problem in problems]
        for draft, futures in begun:
            if futures:
                problem_of = {file: future.result() for file, future in futures.items()}
                found = replace(draft, candidates=tuple(_with_problem(one, problem_of) for one in draft.candidates))
                prepared.save_problem(found)
                yield found
            else:
                yield draft
    finally:
        # A second interrupt, while it waits for kernels that are begun, would leave processes that never end.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            pool.shutdown(cancel_futures=True)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)


def _begin(
    pool: ProcessPoolExecutor, prepared: PreparedCandidates, problem: AnyProblem, count: int
) -> tuple[PreparedProblem, dict[str, Future[str]]]:
    """What the folder has of the problem; or its candidates, and what is being compiled of them, by file."""
    draft, schedules = _draft(problem, count, device_ahead(prepared.arch, prepared.multiprocessors))
    found = _compiled(prepared, draft)
    if found:
        return found, {}
    return draft, {
        file: pool.submit(_compile, problem, schedule, prepared.arch, prepared.folder / file)
        for file, schedule in schedules.items()
    }


def _draft(problem: Any, count: int, device: Device) -> tuple[PreparedProblem, dict[str, Any]]:
    """A problem of which nothing is compiled, and its kernels' schedules by file.

    problem  one of `AnyProblem`, whose divisions are of its own form
    """
    kind, n, k, m = problem.key
    schedules: dict[str, Any] = {}
    found = []
    for division in problem.shortlist(count, device):
        kernels = []
        for rows in problem.rows:
            schedule = problem.for_rows(division, rows, device)
            digest = hashlib.sha256(repr((problem.spec, schedule)).encode()).hexdigest()[:16]
            file = f"{kind.replace(' ', '-')}-{n}x{k}-{digest}.lowlp"
            schedules[file] = schedule
            kernels.append(Kernel(rows, file))
        found.append(Candidate(problem.fields(division), tuple(kernels)))
    return PreparedProblem(kind, n, k, m, tuple(found)), schedules


def _compiled(prepared: PreparedCandidates, draft: PreparedProblem) -> PreparedProblem | None:
    """What the folder has of the problem, if these are its candidates; what failed but for spills is tried again."""
    path = prepared.folder / draft.file
    found = PreparedProblem.load(path) if path.exists() else None
    if found and draft == replace(found, candidates=tuple(map(_without_spills, found.candidates))):
        return found
    return None


def _without_spills(candidate: Candidate) -> Candidate:
    return replace(candidate, problem="") if candidate.problem == SPILLS else candidate


def _with_problem(candidate: Candidate, problem_of: dict[str, str]) -> Candidate:
    problems = (problem_of[kernel.file] for kernel in candidate.kernels)
    return replace(candidate, problem=next(filter(None, problems), ""))


def _compile(problem: Any, schedule: Any, arch: str, path: Path) -> str:
    """Saves the kernel's machine code; says why it is of no use."""
    if path.exists():
        return ""
    # The candidate says it.
    warnings.simplefilter("ignore", SpillWarning)
    # And its time says what this comes to.
    warnings.simplefilter("ignore", ProductWarning)
    try:
        kernel: CompiledKernel = problem.compile(schedule, arch)
        binary = KernelBinary(kernel.description, cubins={arch: kernel.cubin})
    except LowlpError as error:
        return str(error).splitlines()[0]
    if kernel.spilled_bytes:
        return SPILLS
    binary.save(path)
    return ""
