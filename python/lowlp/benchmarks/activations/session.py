"""One run of `lowlp bench --activations`: its units, and the file that has rows as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.models.ahead import in_process
from lowlp.benchmarks.peers import version
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.results import Results
from lowlp.benchmarks.session import calibrated_run, check_machine, measured
from lowlp.benchmarks.worker import Settings, Unit, Worker, deadline_after
from lowlp_runtime.device import multiprocessors

from .cases import HUMMING, LIBRARIES, ActivationKind, who
from .rivals import compile_humming
from .targets import rivals_of

AHEAD_S: Final = 120.0
"""How long humming may compile before anything is timed."""


@dataclass(frozen=True)
class Plan:
    """What a run measures.

    paths       of ours
    peers       who of `cases.PEERS`
    limit_s     for one row
    deadline_s  after so many seconds no further unit is begun; None: all are
    """

    kinds: tuple[ActivationKind, ...]
    shapes: tuple[Shape, ...]
    rows: tuple[int, ...]
    paths: tuple[str, ...]
    peers: tuple[str, ...]
    settings: Settings
    limit_s: float
    deadline_s: float | None = None


def units_of(plan: Plan) -> list[Unit]:
    """Shape after shape: each kind with what it is held against, just before it where that was not measured yet."""
    found: list[Unit] = []
    for shape in plan.shapes:
        done: set[tuple[str, str]] = set()
        for kind in plan.kinds:
            for rival in rivals_of([kind.name], plan.peers):
                if rival not in done:
                    done.add(rival)
                    found.append(Unit(*rival, shape, plan.rows))
            paths = [path for path in kind.paths if path in plan.paths]
            found += [Unit(who(path), kind.name, shape, plan.rows) for path in paths]
    return found


def run(plan: Plan, out: Path, show: Callable[[int, int, str], None]) -> Results:
    """Measures all and writes `out` after each unit.

    show  called with (rows done, of how many, what is measured)

    Raises `DeviceError` where there is no GPU or no PyTorch.
    """
    check_machine()
    if plan.settings.kernels is not None:
        PreparedKernels.load_index(plan.settings.kernels).check_device(multiprocessors())
    is_late = deadline_after(plan.deadline_s)
    libraries = [library for library in LIBRARIES if any(peer.split()[0] == library for peer in plan.peers)]
    present = tuple(peer for peer in plan.peers if version(peer.split()[0]))
    units = units_of(Plan(**{**vars(plan), "peers": present}))
    notes = _compiled_ahead(units, plan, show)
    from .measuring import run_worker

    worker = Worker(plan.settings, plan.limit_s, run_worker)
    try:
        show(0, sum(len(unit.rows) for unit in units), "calibration")
        current = calibrated_run(worker, libraries)
        current.notes.extend(notes)
        results = Results([current])
        for unit in measured(worker, units, is_late, results, show):
            results.save(out)
            if unit is None:
                current.notes.append("the deadline came before all was measured")
    finally:
        worker.close()
    results.save(out)
    return results


def _compiled_ahead(units: Sequence[Unit], plan: Plan, show: Callable[[int, int, str], None]) -> list[str]:
    problems = [(unit.who.split()[1], unit.kind, unit.shape) for unit in units if unit.who in HUMMING]
    if not problems:
        return []
    limit = AHEAD_S if plan.deadline_s is None else min(AHEAD_S, plan.deadline_s / 2)
    return in_process("humming", compile_humming, (problems, plan.rows), limit, show)
