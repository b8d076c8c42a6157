"""Measuring schedules of `linear`: what `lowlp tune` does.

For every kind of weights, shape and class of M, the candidates that are best by estimate are compiled in parallel, and
each is timed on the GPU as the bench times it. The fastest goes into a table that `kernels.linear_schedules` reads. The
table is written after each problem, and problems that it has are not measured again.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import lowlp_runtime
from lowlp_runtime.errors import LowlpError

from .kernels.linear_schedules import CLASSES, candidates, estimated_us, for_rows, kind_of
from .kernels.linear_spec import LinearSpec, Schedule
from .linear_kernels import gpu_kernel, last_arguments

FORMAT: Final = 1

# What follows the room for stages, and so is no part of a division of the work. Columns are the most of a product.
_NOT_OF_DIVISION: Final = ("stages", "table_form", "table_copies")


@dataclass(frozen=True)
class Problem:
    """One entry of a table: weights, and the largest M of a class (`linear_schedules.CLASSES`)."""

    spec: LinearSpec
    m: int

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What tells entries apart."""
        return kind_of(self.spec), self.spec.n, self.spec.k, self.m

    @property
    def rows(self) -> tuple[int, ...]:
        """The numbers of rows that are measured."""
        return (1, 8, self.m) if self.m == CLASSES[0] else (self.m,)


def shortlist(problem: Problem, count: int, arch: str) -> list[Schedule]:
    """The `count` divisions of the work that are best by estimate."""
    spec = problem.spec

    def cost(schedule: Schedule) -> float:
        return sum(estimated_us(spec, schedule, m) for m in problem.rows)

    return sorted(candidates(spec, problem.m, arch), key=cost)[:count]


def tune(
    problems: Sequence[Problem],
    table: Path,
    arch: str,
    count: int = 16,
    jobs: int = 0,
    show: Callable[[int, int, str], None] = lambda done, total, text: None,
) -> None:
    """Measures problems that the table lacks, and writes it.

    problems  what to measure
    table     a JSON file, made if it is not there
    arch      of the GPU, 'sm_90a'
    count     candidates for each problem
    jobs      processes that compile; 0: one for each processor
    show      is called with how many problems are done, of how many, and what is next

    Raises `LowlpError` for a table of another GPU, and what compiling and launching raise.
    """
    import torch

    gpu = lowlp_runtime.device_name(torch.cuda.current_device())
    entries = _read(table, gpu)
    known = {(entry["kind"], entry["n"], entry["k"], entry["m"]) for entry in entries}
    missing = [problem for problem in problems if problem.key not in known]
    workers = jobs or os.cpu_count() or 1
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        compiled = [_begin(pool, problem, count, arch) for problem in missing]
        for done, (problem, futures) in enumerate(zip(missing, compiled, strict=True)):
            kind, n, k, m = problem.key
            show(done, len(missing), f"{kind} {n}x{k} M<={m}")
            found = _measure(problem, futures, arch)
            if found is not None:
                entries.append(found)
                _write(table, gpu, entries)
        show(len(missing), len(missing), "done")


_Compiled = list[tuple[Schedule, dict[int, Schedule], list["Future[str]"]]]


def _begin(pool: ProcessPoolExecutor, problem: Problem, count: int, arch: str) -> tuple[Problem, _Compiled]:
    work: _Compiled = []
    for division in shortlist(problem, count, arch):
        of_rows = {m: for_rows(problem.spec, division, m, arch) for m in problem.rows}
        distinct = dict.fromkeys(of_rows.values())
        work.append((division, of_rows, [pool.submit(_compile, problem.spec, each, arch) for each in distinct]))
    return problem, work


def _compile(spec: LinearSpec, schedule: Schedule, arch: str) -> str:
    """Puts the kernel into the cache on disk; says why it is of no use."""
    try:
        kernel = gpu_kernel(spec, schedule, arch)
        _ = kernel.cubin
    except LowlpError as error:
        return str(error).splitlines()[0]
    facts = [note for note in kernel.description.notes.values() if isinstance(note, dict)]
    return "it spills" if any(note.get("spilled bytes per thread") for note in facts) else ""


def _measure(problem: Problem, compiled: tuple[Problem, _Compiled], arch: str) -> dict[str, Any] | None:
    operands = _Operands(problem.spec)
    times: list[tuple[float, Schedule, dict[int, float]]] = []
    for division, of_rows, futures in compiled[1]:
        if any(future.result() for future in futures):
            continue
        found = {m: operands.time_us(schedule, m, arch) for m, schedule in of_rows.items()}
        times.append((math.prod(found.values()), division, found))
    if not times:
        return None
    _, best, found = min(times, key=lambda entry: entry[0])
    kind, n, k, m = problem.key
    schedule = {name: value for name, value in asdict(best).items() if name not in _NOT_OF_DIVISION}
    first = times[0][2]
    return {
        "kind": kind,
        "n": n,
        "k": k,
        "m": m,
        "arch": arch,
        "schedule": {"stages": 2, **schedule},
        "us": {str(rows): round(us, 2) for rows, us in found.items()},
        "us_of_estimate": {str(rows): round(us, 2) for rows, us in first.items()},
        "candidates": len(times),
    }


class _Operands:
    """Random operands of one problem on the GPU; time does not depend on what they hold."""

    def __init__(self, spec: LinearSpec) -> None:
        import torch

        self.spec = spec
        generator = torch.Generator("cuda").manual_seed(1)
        words = -(-spec.n // spec.rows_of_unit) * spec.rows_of_unit * spec.k * spec.bits // 32
        parts = [
            torch.randint(-(2**31), 2**31 - 1, (words,), dtype=torch.int32, device="cuda", generator=generator),
            (torch.rand(spec.groups, spec.n, device="cuda", generator=generator) / 64).half(),
        ]
        if spec.zeros:
            kinds = {"uint8": torch.uint8, "int8": torch.int8, "f16": torch.float16, "f32": torch.float32}
            parts.append(torch.zeros(spec.groups, spec.n, dtype=kinds[spec.zeros], device="cuda"))
        self.scalars: list[float] = []
        if spec.table:
            parts.append(torch.rand(1 << spec.bits, device="cuda", generator=generator).half())
            self.scalars.append(1.0)
        self.parts = parts

    def time_us(self, schedule: Schedule, m: int, arch: str) -> float:
        """The median time of the kernel for m rows."""
        import torch

        spec = self.spec
        kernel = gpu_kernel(spec, schedule, arch)
        x = torch.randn(m, spec.k, device="cuda").half()
        y = torch.empty(m, spec.n, device="cuda", dtype=torch.float16)
        last = last_arguments(spec, schedule, m, lowlp_runtime.device.multiprocessors(torch.cuda.current_device()))
        arguments = (x, *self.parts, *self.scalars, y, m, spec.k, *last)
        stream = torch.cuda.current_stream()
        with lowlp_runtime.dependent_launch.no_dependent_launch():
            timing = lowlp_runtime.measure(lambda: kernel(*arguments), repeats=15, warmups=2, stream=stream, fills=3)
        return timing.median_us


def _read(table: Path, gpu: str) -> list[dict[str, Any]]:
    if not table.exists():
        return []
    found = json.loads(table.read_text())
    if found["gpu"] != gpu:
        raise LowlpError(f"--out: {table} is a table of {found['gpu']}, and this GPU is {gpu}")
    entries: list[dict[str, Any]] = found["entries"]
    return entries


def _write(table: Path, gpu: str, entries: list[dict[str, Any]]) -> None:
    """All at once, so that an interrupted run leaves a whole table."""
    table.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
    text = f'{{\n  "format": {FORMAT},\n  "gpu": {json.dumps(gpu)},\n  "entries": [\n{lines}\n  ]\n}}\n'
    handle, name = tempfile.mkstemp(dir=table.parent, prefix=table.name)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(name, table)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
