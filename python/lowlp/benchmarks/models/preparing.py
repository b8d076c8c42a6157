"""Compiles the kernels of drawn problems, and what they are held against, into a folder. Needs the compiler, no GPU."""

from __future__ import annotations

import functools
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lowlp.benchmarks.cases import Shape, WeightKind
from lowlp.benchmarks.prepared import KernelEntry, PreparedKernels
from lowlp.benchmarks.preparing import MULTIPROCESSORS, Job, add_kind, compiled, job_by, job_of, spec_in
from lowlp.compiler.kernel_cache import compiler_version
from lowlp.kernels.linear.candidates import candidates, for_rows, rows_of
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.estimates import estimated_us
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.slab_estimates import slabs_us
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.schedules.device import Device, device_ahead
from lowlp_runtime.errors import LowlpValueError

from .drawing import Cell
from .folder import PROBLEMS, SLABS, Candidate, PreparedProblems, Problem


@dataclass(frozen=True)
class Choice:
    """How schedules are chosen.

    arch           of the GPU
    gpu            its name, whose measured schedules go before those of others; '': what the architecture has
    with_measured  by what was measured, too
    candidates     random ones of those that fit, for each problem, to be held against the chosen one
    multiprocessors  of the GPU
    """

    arch: str
    gpu: str = ""
    with_measured: bool = True
    candidates: int = 0
    multiprocessors: int = MULTIPROCESSORS

    @functools.cached_property
    def device(self) -> Device:
        """What is known of the GPU."""
        return device_ahead(self.arch, self.multiprocessors, self.gpu)

    def schedule(self, spec: LinearSpec, m: int) -> Schedule:
        """The chosen one."""
        return schedule_for(spec, m, self.device, gpu=self.gpu, among=None if self.with_measured else ())

    def job(self, kind: WeightKind, spec: LinearSpec, m: int) -> Job:
        """What is compiled for m rows: what `linear` takes; or, to be held against others, a kernel by a schedule."""
        chosen = self.schedule(spec, m)
        return job_by(kind, spec, chosen, m) if self.candidates else job_of(kind, spec, chosen, m, self.device)

    def why(self, spec: LinearSpec, m: int, chosen: Schedule) -> str:
        """What chose it, as `Problem.by` says it."""
        if not chosen.stages:
            return "no choice"
        return "estimate" if chosen == self.by_estimate(spec, m) else "measured"

    def by_estimate(self, spec: LinearSpec, m: int) -> Schedule:
        """The one that estimates alone would choose."""
        return schedule_for(spec, m, self.device, gpu=self.gpu, among=())

    def estimated_us(self, spec: LinearSpec, schedule: Schedule, m: int) -> float | None:
        """What it would take; None without stages."""
        return round(estimated_us(spec, schedule, m, self.device), 2) if schedule.stages else None

    def others(self, spec: LinearSpec, m: int, chosen: Schedule, generator: random.Random) -> list[Schedule]:
        """What estimates alone would choose, where that is another one, and random candidates for m rows."""
        if not self.candidates or not chosen.stages:
            return []
        divisions = candidates(spec, rows_of(m), self.device)
        fitting = dict.fromkeys(for_rows(spec, division, m, self.device) for division in divisions)
        first = [self.by_estimate(spec, m)] if self.why(spec, m, chosen) == "measured" else []
        for known in (chosen, *first):
            fitting.pop(known, None)
        return [*first, *sorted(fitting, key=lambda _: generator.random())[: self.candidates]]


def prepare(
    folder: Path,
    cells: Sequence[Cell],
    seed: int,
    choice: Choice,
    jobs: int = 0,
) -> Generator[tuple[int, int, str]]:
    """Compiles the kernels of all cells, and of their twins unless there are candidates, and writes the folder.

    seed             of the draw; candidates are drawn by it too
    jobs             processes; 0: one for each processor

    Yields (done, of how many, what was done last). What is wrong with one kernel goes to the index. Raises
    `LowlpValueError` for a folder that has other problems: their kernels would stay there.
    """
    if (folder / PROBLEMS).exists():
        raise LowlpValueError(f"--prepare: {folder} has problems already; name another folder, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    index = PreparedKernels(folder, choice.arch, compiler_version(), choice.multiprocessors, gpu=choice.gpu)
    specs = _specs(index, cells)
    wanted: dict[tuple[str, Shape, int], Job] = {}
    problems: list[tuple[Problem, list[Job]]] = []
    for cell in cells:
        twin = None if choice.candidates else cell.twin
        for kind in filter(None, (cell.kind, twin)):
            spec = specs[kind.name, cell.shape]
            if (kind.name, cell.shape, cell.m) not in wanted:
                wanted[kind.name, cell.shape, cell.m] = choice.job(kind, spec, cell.m)
        spec = specs[cell.kind.name, cell.shape]
        job = wanted[cell.kind.name, cell.shape, cell.m]
        # Of each problem by itself, so that a part of a draw has the candidates that the whole has.
        others = choice.others(spec, cell.m, job.schedule, random.Random(f"{seed} {cell}"))
        drafts = [job_by(cell.kind, spec, other, cell.m, f"-{number}") for number, other in enumerate(others)]
        problems.append((_problem(cell, job, spec, choice, twin), drafts))
    every = [*wanted.values(), *(job for _, drafts in problems for job in drafts)]
    entries = [job.entry for job in every]
    for done, (number, entry) in enumerate(compiled(index, every, jobs, code_alone=True), 1):
        entries[number] = entry
        yield done, len(every), f"{entry.kind} {entry.n}x{entry.k}"
    index.kernels = entries[: len(wanted)]
    index.save()
    others_left = iter(entries[len(wanted) :])
    found = [
        replace(problem, candidates=tuple(_candidate(job, next(others_left), choice) for job in drafts))
        for problem, drafts in problems
    ]
    PreparedProblems(seed, choice.with_measured, tuple(found)).save(folder)


def _specs(index: PreparedKernels, cells: Sequence[Cell]) -> dict[tuple[str, Shape], LinearSpec]:
    """Puts the kinds of the cells and their twins into the folder; the specs by kind and shape."""
    shapes: dict[WeightKind, dict[Shape, None]] = {}
    for cell in cells:
        for kind in filter(None, (cell.kind, cell.twin)):
            shapes.setdefault(kind, {})[cell.shape] = None
    found: dict[tuple[str, Shape], LinearSpec] = {}
    for kind, of_kind in shapes.items():
        spec = add_kind(index, kind, list(of_kind))
        found |= {(kind.name, shape): spec_in(spec, kind, shape) for shape in of_kind}
    return found


def _problem(cell: Cell, job: Job, spec: LinearSpec, choice: Choice, twin: WeightKind | None) -> Problem:
    if job.entry.slabs:
        by = SLABS
        estimated: float | None = round(slabs_us(spec, cell.m, choice.device), 2)
    else:
        by, estimated = choice.why(spec, cell.m, job.schedule), choice.estimated_us(spec, job.schedule, cell.m)
    return Problem(
        kind=cell.kind.name,
        n=cell.shape.n,
        k=cell.shape.k,
        m=cell.m,
        twin=twin.name if twin else "",
        products=cell.products,
        estimated_us=estimated,
        by=by,
        by_estimate=1 if choice.candidates and by == "measured" else 0,
    )


def _candidate(job: Job, entry: KernelEntry, choice: Choice) -> Candidate:
    estimate = choice.estimated_us(job.spec, job.schedule, entry.rows[0])
    assert estimate is not None, "candidates have stages"
    return Candidate(entry, estimate)
