"""`lowlp bench --set models`: random problems of ten models, and the choice of schedules held against random ones."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowlp_runtime.errors import LowlpValueError

from .bench_progress import progress_bar
from .output import number_from

if TYPE_CHECKING:
    from lowlp.benchmarks.models.model_results import ModelResults
    from lowlp.benchmarks.models.preparing import Choice

_CELLS = 250
_KERNELS = "out/bench/models"
_ARCH = "sm_90a"
_OF_DRAW = ("seed", "cells", "candidates", "by_estimate")
_OF_GRID = ("codebooks", "ablation", "types", "shapes", "m", "quick", "peers_only")

EPILOG = """random problems (--set models):
  Weights of the products in the layers of ten models, whole and cut for 2, 4 and 8 GPUs; M from 1 to 8192; type,
  groups, scales and zero points at random. The seed is printed, and another one in each run unless --seed repeats one.
  lowlp bench --set models --prepare out/models             # draws, and compiles; no GPU
  lowlp bench --set models --kernels out/models --peers torch,humming --out r.json
  lowlp bench --set models --prepare out/some --cells 150 --candidates 40
  lowlp bench --set models --kernels out/some --out ranks.json
With a GPU and a compiler candidates are compiled and timed at the same time; a second run goes on where one ended:
  lowlp bench --set models --cells 150 --candidates 40 --seed 7 --deadline 300 --out ranks.json
The page of --report NAME.json shows the results on random problems that are beside it as NAME.models-*.json."""


def add_arguments(parser: Any) -> None:
    """Declares what only this set has."""
    group = parser.add_argument_group("random problems, with --set models; listed below")
    group.add_argument("--seed", type=number_from(0), metavar="S", help="of the draw (default: another one each time)")
    group.add_argument("--cells", type=number_from(1), metavar="N", help=f"problems (default: {_CELLS})")
    group.add_argument(
        "--candidates", type=number_from(1), metavar="N", help="hold the chosen schedule of each problem against N "
        "random ones that fit, and measure nothing else",
    )  # fmt: skip
    group.add_argument("--by-estimate", action="store_true", help="choose schedules by estimate alone")


def refuse(options: argparse.Namespace) -> None:
    """Raises `LowlpValueError` for arguments of this set without it."""
    _refuse(options, _OF_DRAW, "is only with --set models")


def run(options: argparse.Namespace) -> int:
    """Prepares or measures; 1 where something has no time, or is prepared as slow code."""
    _refuse(options, _OF_GRID, "is not with --set models, which draws what is measured")
    if options.prepare:
        return _prepare(options, Path(options.prepare), options.arch or _ARCH, options.multiprocessors, options.gpu)
    if options.kernels:
        _refuse(options, _OF_DRAW, "is of --prepare: the folder of --kernels says it")
        return _measure(options, Path(options.kernels))
    from lowlp.benchmarks.session import check_machine
    from lowlp.compiler.architectures import current_arch
    from lowlp_runtime.device import device_name, multiprocessors

    check_machine()
    folder = Path(_KERNELS)
    if options.candidates:
        return _rank(options, folder, multiprocessors(), device_name(), options.arch or current_arch())
    _clear(folder)
    _prepare(options, folder, options.arch or current_arch(), multiprocessors(), device_name())
    return _measure(options, folder)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(options, name):
            raise LowlpValueError(f"--{name.replace('_', '-')}: {why}")


def _clear(folder: Path) -> None:
    """Removes the files of an earlier run, whose problems were others."""
    for path in folder.glob("*"):
        if path.suffix in (".lowlp", ".npz", ".json"):
            path.unlink()


def _prepare(options: argparse.Namespace, folder: Path, arch: str, size: int | None, gpu: str = "") -> int:
    from lowlp.benchmarks.models.drawing import draw, new_seed
    from lowlp.benchmarks.models.folder import PreparedProblems
    from lowlp.benchmarks.models.preparing import Choice, prepare
    from lowlp.benchmarks.prepared import PreparedKernels
    from lowlp.benchmarks.preparing import MULTIPROCESSORS
    from lowlp.compiler.architectures import check_arch

    seed = new_seed() if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    cells = draw(seed, options.cells or _CELLS)
    target = check_arch(arch, "--arch")
    choice: Choice = Choice(target, gpu, not options.by_estimate, options.candidates or 0, size or MULTIPROCESSORS)
    with progress_bar("compile") as show:
        for step in prepare(folder, cells, seed, choice, options.jobs):
            show(*step)
    chosen = PreparedKernels.load_index(folder).kernels
    problems = PreparedProblems.load(folder).problems
    others = [candidate.entry for problem in problems for candidate in problem.candidates]
    for entry in chosen:
        if what := entry.problem or entry.slow_code:
            print(f"lowlp: {entry.kind} {entry.n}x{entry.k}, M = {entry.rows[0]}: {what}", file=sys.stderr)
    failed, slow = sum(bool(entry.problem) for entry in chosen), sum(bool(entry.slow_code) for entry in chosen)
    size_bytes = sum(path.stat().st_size for path in folder.iterdir())
    more = ""
    if others:
        unfit = sum(bool(entry.problem or entry.spilled_bytes) for entry in others)
        more = f", {len(others)} candidates of which {unfit} fail or spill"
    told = f"{failed} failed, {slow} slow code{more}; {size_bytes / 1e6:.1f} MB"
    print(f"{len(problems)} problems, {len(chosen) - failed} kernels for {arch} in {folder}, {told}")
    return 1 if failed or slow else 0


def _rank(options: argparse.Namespace, folder: Path, size: int, gpu: str, arch: str) -> int:
    """Compiles and times candidates at the same time."""
    from lowlp.benchmarks.models import ranking
    from lowlp.benchmarks.models.drawing import draw, new_seed
    from lowlp.benchmarks.models.preparing import Choice
    from lowlp.benchmarks.models.ranking_parts import Plan, rank

    seed = new_seed() if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    out = Path(options.out or f"{folder}/candidates-{seed}.json")
    choice = Choice(arch, gpu, not options.by_estimate, options.candidates, size)
    plan = Plan(draw(seed, options.cells or _CELLS), seed, choice, folder, options.jobs, options.deadline)
    with progress_bar("bench") as show:
        ranked = rank(plan, out, show)
    print("\n".join(ranking.summary(ranked)))
    print(f"results in {out}")
    return 0


def _measure(options: argparse.Namespace, folder: Path) -> int:
    from lowlp.benchmarks.models import ranking, session
    from lowlp.benchmarks.models.folder import PreparedProblems

    prepared = PreparedProblems.load(folder)
    print(f"seed {prepared.seed}", flush=True)
    out = Path(options.out or f"{folder}/results-{prepared.seed}.json")
    if any(problem.candidates for problem in prepared.problems):
        with progress_bar("bench") as show:
            ranked = ranking.measure(folder, out, options.deadline, show)
        print("\n".join(ranking.summary(ranked)))
        print(f"results in {out}")
        return 0
    plan = session.Plan(
        folder,
        _peers(options.peers),
        options.limit or session.LIMIT_S,
        deadline_s=options.deadline,
        measure_read=options.measure_read,
    )
    with progress_bar("bench") as show:
        found = session.run(plan, out, show)
    _print(found, out)
    return 1 if any(row.us is None and row.who == "lowlp" for row in found.results.rows) else 0


def _peers(text: str | None) -> tuple[str, ...]:
    from lowlp.benchmarks.models.session import PEERS
    from lowlp.benchmarks.peers import parse_peers

    if not text:
        return ()
    if text == "all":
        return PEERS
    names = parse_peers(text)
    for name in names:
        if name not in PEERS:
            raise LowlpValueError(f"--peers: with --set models must be 'all' or among {', '.join(PEERS)}, got {name!r}")
    return names


def _print(found: ModelResults, out: Path) -> None:
    from lowlp.benchmarks.models import report

    print("\n\n".join(report.section(found)))
    run = found.run
    print(f"\n{run.gpu}, driver {run.driver}, {run.date}")
    for note in run.notes:
        print(f"note: {note}")
    print(f"seed {found.seed}; results in {out}")
