"""One run on drawn problems: each problem's kernels one after the other, the file after each; then the worst again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from lowlp.benchmarks import peers as peer_adapters
from lowlp.benchmarks.measuring import run_worker
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.results import Results, Row
from lowlp.benchmarks.session import calibrated_run, check_machine
from lowlp.benchmarks.timing import Effort
from lowlp.benchmarks.worker import Settings, Unit, Worker, deadline_after
from lowlp_runtime.device import multiprocessors

from .ahead import Ahead, compile_ahead
from .folder import PreparedProblems, Problem
from .judging import judged, worst
from .model_results import ModelResults, Turns

PEERS: Final = ("torch", "humming")
"""That a run may measure beside ours."""
EFFORT: Final = Effort(budget_ms=25.0, least=7, most=60)
CHECKED_COLUMNS: Final = 512
"""Of a result are compared with float64; all of it must be finite."""
AGAIN: Final = 12
"""So many of the worst are timed again, in turns with their rival."""
_ROUNDS: Final = 3
LIMIT_S: Final = 60.0
"""For one time."""

Show = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Plan:
    """What a run measures.

    folder       of prepared problems
    peers        among `PEERS`; those that are not installed are noted as absent
    limit_s      for one time
    ahead_s      for what peers compile ahead
    deadline_s   after so many seconds no further problem is begun; None: all are
    measure_read floors are by the read bandwidth that is measured
    """

    folder: Path
    peers: tuple[str, ...]
    limit_s: float = LIMIT_S
    ahead_s: float = 240.0
    deadline_s: float | None = None
    measure_read: bool = False


def run(plan: Plan, out: Path, show: Show) -> ModelResults:
    """Measures all and writes `out` as it goes.

    show  called with (problems done, of how many, what is measured)

    Raises `DeviceError` where there is no GPU or no PyTorch, `LowlpValueError` for a folder of another GPU.
    """
    check_machine()
    index, prepared = PreparedKernels.load_index(plan.folder), PreparedProblems.load(plan.folder)
    index.check_device(multiprocessors())
    is_late = deadline_after(plan.deadline_s)
    present = [name for name in plan.peers if peer_adapters.version(name)]
    notes = []
    if "humming" in present:
        notes += compile_ahead("humming", _problems_of(index, prepared, "humming"), plan.ahead_s, show)
    settings = Settings(plan.folder, EFFORT, plan.measure_read, host_cost=False, checked_columns=CHECKED_COLUMNS)
    worker = Worker(settings, plan.limit_s, run_worker)
    try:
        current = calibrated_run(worker, plan.peers)
        current.notes.extend(notes)
        found = ModelResults(prepared.seed, prepared.with_measured, prepared.problems, index.kinds, Results([current]))
        for number, problem in enumerate(prepared.problems):
            if is_late():
                current.notes.append(f"the deadline came after {number} of {len(prepared.problems)} problems")
                break
            for unit in units_of(problem, index, present):
                for row in worker.measure(unit):
                    found.results.add(replace(row, run=0))
            show(number + 1, len(prepared.problems), str(problem))
            if number % 10 == 0:
                found.save(out)
        found.turns += _in_turns(worker, found, show)
    finally:
        worker.close()
    found.save(out)
    return found


def units_of(problem: Problem, index: PreparedKernels, peers: Sequence[str]) -> list[Unit]:
    """What is measured for a problem: ours, the peers', and ours in groups of 128."""
    kind, rows = index.kinds[problem.kind], (problem.m,)
    found = [Unit("lowlp", kind.name, problem.shape, rows)]
    for name in peers:
        if name == "torch":
            found.append(Unit(name, kind.activation, problem.shape, rows))
        elif peer_adapters.peer(name).supports(kind):
            found.append(Unit(name, kind.name, problem.shape, rows))
    if problem.twin:
        found.append(Unit("lowlp", problem.twin, problem.shape, rows))
    return found


def _problems_of(index: PreparedKernels, prepared: PreparedProblems, name: str) -> list[Ahead]:
    """Those whose kind a peer has."""
    supports = peer_adapters.peer(name).supports
    known = [(index.kinds[problem.kind], problem.shape, problem.m) for problem in prepared.problems]
    return [problem for problem in known if supports(problem[0])]


def _in_turns(worker: Worker, found: ModelResults, show: Show) -> Iterator[Turns]:
    """The worst again: ours and the fastest peer's, in turns."""
    again = worst(judged(found), AGAIN)
    for number, cell in enumerate(again, 1):
        assert cell.rival is not None, "rated problems have a rival"
        rival, problem = cell.rival[0], cell.problem
        kind = cell.kind.activation if rival == "torch" else problem.kind
        units = [
            Unit("lowlp", problem.kind, problem.shape, (problem.m,)),
            Unit(rival, kind, problem.shape, (problem.m,)),
        ]
        times: list[list[float]] = [[], []]
        for _ in range(_ROUNDS):
            for unit, of_unit in zip(units, times, strict=True):
                of_unit += _times(worker.measure(unit))
        show(number, len(again), f"again {problem}")
        if all(times):
            yield Turns(cell.number, rival, tuple(times[0]), tuple(times[1]))


def _times(rows: Iterable[Row]) -> list[float]:
    return [row.us for row in rows if row.us is not None]
