"""`lowlp bench --activations`: products with quantised activations by every path, held to targets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lowlp_runtime.errors import DeviceError, LowlpValueError

from .bench_progress import progress_bar

if TYPE_CHECKING:
    from lowlp.benchmarks.activations.cases import ActivationKind
    from lowlp.benchmarks.cases import Shape

_RESULTS = "benchmarks/results"
_KERNELS = "out/bench/activations"
_ARCH = "sm_90a"
_OTHERS = ("codebooks", "ablation", "attention")

EPILOG = """
quantised activations (--activations):
  w1a1 w1a2 w2a2 w2a4 w3a3 w3a4 w4a4; w1a8 w2a8 ternary, groups of 128; w4a8 w4a8-levels w4a8-fp8 w4a8-fp8-int w8a8
  w8a8-fp8: from codes to f16, by planes, bytes, 8-bit floats and halves of the same weights; four shapes, M of
  1,16,64,256,1024,4096. Beside torch's products of f16, int8 and f8e4m3, and humming's with int8 and f8e4m3.
  lowlp bench --activations --prepare out/bench/activations   # no GPU
  lowlp bench --activations --kernels out/bench/activations --peers --out r.activations-1.json
The page of --report NAME.json shows what is beside it as NAME.activations-*.json.
"""


def refuse_others(options: argparse.Namespace) -> None:
    """Raises `LowlpValueError` for arguments that say what else is measured."""
    for name in _OTHERS:
        if getattr(options, name):
            raise LowlpValueError(f"--{name.replace('_', '-')}: is not with --activations")
    if options.set != "grid":
        raise LowlpValueError("--set: is not with --activations")
    if options.peers_only and not options.peers:
        raise LowlpValueError("--peers-only: needs --peers")


def run(options: argparse.Namespace) -> int:
    """Prepares or measures; 1 where something of ours has no time, or is prepared as slow code."""
    from lowlp.benchmarks import cases as of_linear
    from lowlp.benchmarks import session as of_all
    from lowlp.benchmarks.activations import cases

    refuse_others(options)
    kinds = cases.parse_kinds(options.types) if options.types else tuple(cases.KINDS.values())
    shapes: tuple[of_linear.Shape, ...] = cases.QUICK_SHAPES if options.quick else cases.SHAPES
    shapes = of_linear.parse_shapes(options.shapes) if options.shapes else shapes
    rows: tuple[int, ...] = cases.QUICK_ROWS if options.quick else cases.ROWS
    rows = of_linear.parse_rows(options.m) if options.m else rows
    if options.prepare:
        return _prepare(options, Path(options.prepare), kinds, shapes, rows, options.multiprocessors, options.gpu)
    if missing := of_all.why_not():
        raise DeviceError(f"lowlp bench needs a GPU: {missing}")
    folder = None if options.peers_only else Path(options.kernels or _KERNELS)
    if folder is not None and not options.kernels:
        from lowlp.compiler.architectures import current_arch
        from lowlp_runtime.device import device_name, multiprocessors

        options.arch = options.arch or current_arch()
        _prepare(options, folder, kinds, shapes, rows, multiprocessors(), device_name())
    return _measure(options, folder, kinds, shapes, rows)


def _prepare(
    options: argparse.Namespace,
    folder: Path,
    kinds: tuple[ActivationKind, ...],
    shapes: tuple[Shape, ...],
    rows: tuple[int, ...],
    size: int | None,
    gpu: str,
) -> int:
    from lowlp.benchmarks.activations import cases
    from lowlp.benchmarks.activations.preparing import prepare
    from lowlp.benchmarks.prepared import PreparedKernels
    from lowlp.benchmarks.preparing import MULTIPROCESSORS

    arch = options.arch or _ARCH
    with progress_bar("compile") as show:
        for step in prepare(folder, arch, kinds, shapes, rows, cases.PATHS, options.jobs, size or MULTIPROCESSORS, gpu):
            show(*step)
    entries = PreparedKernels.load_index(folder).kernels
    failed = [entry for entry in entries if entry.problem]
    slow = [entry for entry in entries if entry.slow_code]
    for entry in (*failed, *slow):
        what = entry.problem or entry.slow_code
        print(f"lowlp: {entry.kind} {entry.n}x{entry.k}, M = {entry.rows}: {what}", file=sys.stderr)
    print(f"{len(entries) - len(failed)} kernels for {arch} in {folder}, {len(failed)} failed, {len(slow)} slow")
    return 1 if failed or slow else 0


def _measure(
    options: argparse.Namespace,
    folder: Path | None,
    kinds: tuple[ActivationKind, ...],
    shapes: tuple[Shape, ...],
    rows: tuple[int, ...],
) -> int:
    from lowlp.benchmarks import session as of_all
    from lowlp.benchmarks.activations import cases, report, session
    from lowlp.benchmarks.timing import QUICK, Effort
    from lowlp.benchmarks.worker import Settings

    plan = session.Plan(
        kinds=kinds,
        shapes=shapes,
        rows=rows,
        paths=() if folder is None else cases.PATHS,
        peers=cases.parse_peers(options.peers),
        settings=Settings(folder, QUICK if options.quick else Effort(), options.measure_read, host_cost=False),
        limit_s=options.limit or of_all.LIMIT_S,
        deadline_s=options.deadline,
    )
    out = Path(options.out or f"{_RESULTS}/activations.json")
    with progress_bar("bench") as show:
        results = session.run(plan, out, show)
    print(report.text_of(results))
    print(f"\nresults in {out}")
    return 1 if report.our_problems(results) else 0
