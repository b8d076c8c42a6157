"""One run of the bench: which units there are, their rows into a file as they come, and how far it is."""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import lowlp_runtime
from lowlp import __version__
from lowlp_runtime.device import multiprocessors
from lowlp_runtime.driver import call
from lowlp_runtime.errors import DeviceError

from . import peers as peer_adapters
from .cases import ALL_KINDS, Shape
from .floor import READ_BYTES_PER_S
from .prepared import PreparedKernels
from .results import Results, Row, Run
from .worker import Settings, Unit, Worker, deadline_after, units_of

LIMIT_S: Final = 300.0
"""For one row."""


@dataclass(frozen=True)
class Plan:
    """What a run measures.

    peers        names of adapters; those that are not installed are noted as absent
    with_ours    whether our kernels are measured
    limit_s      for one row
    deadline_s   after so many seconds no further unit is begun; None: all are
    """

    kinds: tuple[str, ...]
    shapes: tuple[Shape, ...]
    rows: tuple[int, ...]
    peers: tuple[str, ...]
    with_ours: bool
    settings: Settings
    limit_s: float = LIMIT_S
    deadline_s: float | None = None


def why_not() -> str:
    """Why nothing can be measured here, or ''."""
    missing = lowlp_runtime.why_no_device()
    if missing:
        return missing
    if importlib.util.find_spec("torch") is None:
        return "PyTorch, which holds arrays on the GPU, is not installed: pip install torch"
    return ""


def run(plan: Plan, out: Path, show: Callable[[int, int, str], None]) -> Results:
    """Measures all and writes `out` after each unit.

    show  called with (rows done, of how many, what is measured)

    Raises `DeviceError` where there is no GPU or no PyTorch.
    """
    check_machine()
    present = [name for name in plan.peers if peer_adapters.version(name)]
    units = units_of(
        present,
        plan.with_ours,
        plan.kinds,
        plan.shapes,
        plan.rows,
        lambda who, kind: peer_adapters.supports(who, ALL_KINDS[kind]),
    )
    if plan.settings.kernels is not None:
        # Asked here too, so that a folder for another GPU is an error of the command and not of every row.
        PreparedKernels.load_index(plan.settings.kernels).check_device(multiprocessors())
    from .measuring import run_worker

    worker = Worker(plan.settings, plan.limit_s, run_worker)
    try:
        show(0, sum(len(unit.rows) for unit in units), "calibration")
        current = calibrated_run(worker, plan.peers)
        results = Results([current])
        for unit in measured(worker, units, deadline_after(plan.deadline_s), results, show):
            results.save(out)
            if unit is None:
                current.notes.append("the deadline came before all was measured")
    finally:
        worker.close()
    results.save(out)
    return results


def check_machine() -> None:
    """Raises `DeviceError` where nothing can be measured."""
    missing = why_not()
    if missing:
        raise DeviceError(f"lowlp bench needs a GPU: {missing}")


def calibrated_run(worker: Worker, peers: Sequence[str]) -> Run:
    """A run that begins now, with these peers, and what the worker measures once."""
    facts = worker.facts()
    base = run_of_this_machine()
    versions = base.versions | {name: peer_adapters.version(name) for name in peers}
    return replace(
        base,
        versions=versions,
        empty_us=facts.empty_us,
        read_bytes_per_s=facts.read_bytes_per_s or READ_BYTES_PER_S,
        measured_read=facts.read_bytes_per_s,
        host_us=facts.host_us,
        module_us=facts.module_us,
        notes=[*facts.notes, *(f"{name} is not installed" for name in peers if not versions[name])],
    )


def run_of_this_machine() -> Run:
    """A run that begins now, without peers, of which nothing has been measured."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    versions = {"lowlp": __version__, **_versions(("torch", "triton", "numpy", "cuda-bindings"))}
    return Run(now, lowlp_runtime.device_name(), _driver(), versions, None, READ_BYTES_PER_S)


def with_measured_read(run: Run) -> Run:
    """The run with floors by the read bandwidth that this process measures."""
    import torch

    from .measuring import read_bytes_per_s

    found = read_bytes_per_s(torch.device("cuda"), torch.cuda.current_stream().cuda_stream)
    return replace(run, read_bytes_per_s=found or READ_BYTES_PER_S, measured_read=found)


def measured(
    worker: Worker,
    units: Sequence[Unit],
    is_late: Callable[[], bool],
    results: Results,
    show: Callable[[int, int, str], None],
) -> Iterator[Unit | None]:
    """Adds the rows of each unit, and yields it; None at the end where it is late."""
    done, total = 0, sum(len(unit.rows) for unit in units)
    for unit in units:
        if is_late():
            yield None
            return
        for row in worker.measure(unit):
            results.add(replace(row, run=0))
            done += 1
            show(done, total, f"{unit.who} {unit.kind} {unit.shape} M={row.m}")
        yield unit


def failures(results: Results) -> list[Row]:
    """The rows without a time."""
    return [row for row in results.rows if row.us is None]


def _versions(packages: Sequence[str]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = ""
    return found


def _driver() -> str:
    """What the driver says of itself: the version of CUDA that it has, and its own where Linux tells it."""
    number = int(call("cuDriverGetVersion"))
    cuda = f"CUDA {number // 1000}.{number % 1000 // 10}"
    try:
        first = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return cuda
    version = next((word for word in first.split() if word[0].isdigit() and "." in word), "")
    return f"{version}, {cuda}" if version else cuda
