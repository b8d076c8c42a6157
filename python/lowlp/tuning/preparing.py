"""Compiles the candidates of problems, in several processes, into a folder. Needs the compiler and no GPU."""

from __future__ import annotations

import hashlib
import os
import signal
import warnings
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from lowlp.compiler.kernel_cache import compiler_version
from lowlp.errors import SpillWarning
from lowlp.kernels.linear.candidates import CLASSES, candidates, fills, for_rows
from lowlp.kernels.linear.choosing import kind_of, measured_for_shape
from lowlp.kernels.linear.estimates import estimated_us
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.ops.linear_kernels import compile_for_gpu
from lowlp.schedules.device import H200, Device, device_ahead
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.errors import LowlpError, LowlpValueError

from .prepared import SPILLS, Candidate, Kernel, PreparedCandidates, PreparedProblem
from .prepared_folder import INDEX

# What follows the room for stages, and so is no part of a division of the work.
_NOT_OF_DIVISION: Final = ("stages", "table_form", "table_copies")


@dataclass(frozen=True)
class Problem:
    """One entry of a file of measured schedules: weights, and the largest M of a class (`candidates.CLASSES`)."""

    spec: LinearSpec
    m: int

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What tells entries apart."""
        return kind_of(self.spec), self.spec.n, self.spec.k, self.m

    @property
    def rows(self) -> tuple[int, ...]:
        """The numbers of rows that are measured."""
        return (1, self.m) if self.m == CLASSES[0] else (self.m,)


def shortlist(problem: Problem, count: int, device: Device = H200) -> list[Schedule]:
    """The divisions of the work that are worth a measurement, the best by estimate first: the `count` best by estimate,
    and what was measured for the shape."""
    spec = problem.spec

    def cost(schedule: Schedule) -> float:
        return sum(estimated_us(spec, schedule, m, device) for m in problem.rows)

    def is_given_back(schedule: Schedule) -> bool:
        """As entries name it."""
        return fills(spec, schedule, problem.m, device.multiprocessors)

    best = sorted(filter(is_given_back, candidates(spec, problem.m, device)), key=cost)[:count]
    measured = filter(is_given_back, measured_for_shape(spec, problem.m, device))
    return sorted(dict.fromkeys([*best, *measured]), key=cost)


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
    prepared: PreparedCandidates, problems: Sequence[Problem], count: int = 16, jobs: int = 0
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
    pool: ProcessPoolExecutor, prepared: PreparedCandidates, problem: Problem, count: int
) -> tuple[PreparedProblem, dict[str, Future[str]]]:
    """What the folder has of the problem; or its candidates, and what is being compiled of them, by file."""
    draft, schedules = _draft(problem, count, device_ahead(prepared.arch, prepared.multiprocessors))
    found = _compiled(prepared, draft)
    if found:
        return found, {}
    return draft, {
        file: pool.submit(_compile, problem.spec, schedule, prepared.arch, prepared.folder / file)
        for file, schedule in schedules.items()
    }


def _draft(problem: Problem, count: int, device: Device) -> tuple[PreparedProblem, dict[str, Schedule]]:
    """A problem of which nothing is compiled, and its kernels by file."""
    spec, (kind, n, k, m) = problem.spec, problem.key
    schedules: dict[str, Schedule] = {}
    found = []
    for division in shortlist(problem, count, device):
        kernels = []
        for rows in problem.rows:
            schedule = for_rows(spec, division, rows, device)
            digest = hashlib.sha256(repr((spec, schedule)).encode()).hexdigest()[:16]
            file = f"{kind.replace(' ', '-')}-{n}x{k}-{digest}.lowlp"
            schedules[file] = schedule
            kernels.append(Kernel(rows, file))
        fields = {name: value for name, value in asdict(division).items() if name not in _NOT_OF_DIVISION}
        found.append(Candidate({"stages": 2, **fields}, tuple(kernels)))
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


def _compile(spec: LinearSpec, schedule: Schedule, arch: str, path: Path) -> str:
    """Saves the kernel's machine code; says why it is of no use."""
    if path.exists():
        return ""
    # The candidate says it.
    warnings.simplefilter("ignore", SpillWarning)
    try:
        kernel = compile_for_gpu(spec, schedule, arch)
        binary = KernelBinary(kernel.description, cubins={arch: kernel.cubin})
    except LowlpError as error:
        return str(error).splitlines()[0]
    if kernel.spilled_bytes:
        return SPILLS
    binary.save(path)
    return ""
