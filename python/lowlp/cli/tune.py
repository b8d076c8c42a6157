"""`lowlp tune`: measures schedules of `linear` on the GPU and writes the file by which kernels are chosen."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowlp_runtime.errors import DeviceError, LowlpValueError

from . import output
from .bench_progress import progress_bar
from .output import number_from

if TYPE_CHECKING:
    from lowlp.tuning.measured import MeasuredFile
    from lowlp.tuning.prepared import PreparedProblem
    from lowlp.tuning.problems import AnyProblem

_ARCH = "sm_90a"
_CANDIDATES = 16
_OF_GPU = ("arch", "multiprocessors")
_OF_PREPARING = ("types", "activations", "path", "shapes", "m", "group_size", "candidates", "jobs", *_OF_GPU)
_BYTES_OF_WEIGHTS = ("int1", "int2", "int3", "int4", "int5", "int6", "int7", "int8")
"""Kinds that all integer activations take."""

_EPILOG = """kinds of weights:
  int4 int8 int6 f6e3m2 int3 f3e1m1 int5 f5e2m2 int7 int2 int1; uint4z, uint4 with zero points; nf4, a lookup table

A problem is a kind of weights, a shape and a class of M. Its candidates are the N best by estimate, and what was
measured for the shape and the class, of any kind, in files in use. Problems that FILE has are left out, so an
interrupted run goes on where it ended.

With --activations kinds of weights are integers, int1 to int8, or for f8e4m3 f8e4m3 and int1 to int4, with one scale a
row unless --group-size says more. Each is measured by all paths that take it exactly: planes (bits on tensor cores) for
1, 4, 16, 64, 256, 1024 and 4096 rows of x, and s8 or fp8 (bytes) for the classes of M above. What was measured serves
near shapes, numbers of rows and widths.

How FILE is used: set LOWLP_TUNED=FILE, or call lowlp.use_tuned("FILE"). LOWLP_TUNED names files, and folders of them,
with ':' between, as PATH does. For lowlp.linear, what was measured on the GPU in use goes before what others of its
architecture took, then the nearest shape counts; of equally near ones that of FILE goes before the shipped one.

A machine with a GPU and no compiler measures kernels that another one compiled:
  lowlp tune --prepare out/tune                   # no GPU
  lowlp tune --kernels out/tune --out h200.json
It needs lowlp_runtime and PyTorch, and this package's Python files. Both go on where they were interrupted.

examples:
  lowlp tune --out h200.json
  lowlp tune --types int4 --shapes 5120x5120 --m 16 --out mine.json
  lowlp tune --types int2 --activations int2,int8 --shapes 5120x5120 --budget-s 60 --out mine.json
  LOWLP_TUNED=mine.json python serve.py"""


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "tune",
        help="measure schedules of linear on the GPU",
        description="Compiles the schedules that are best by estimate, times each on the GPU, and writes the fastest "
        "of each problem into a file.",
        epilog=_EPILOG,
        formatter_class=output.HelpFormatter,
    )
    what = parser.add_argument_group("what is compiled; --kernels takes all of its folder")
    what.add_argument("--types", metavar="KIND,...", help="kinds of weights (default: all, listed below)")
    what.add_argument(
        "--activations", metavar="TYPE,...", help="types of x: f16, int8, uint4, f8e4m3, ... (default: f16)"
    )
    what.add_argument(
        "--path", choices=("planes", "s8", "fp8"), help="of quantised x alone (default: all that are exact)"
    )
    what.add_argument("--shapes", metavar="NxK,...", help="shapes of the weights (default: six of large models)")
    what.add_argument("--m", metavar="M,...", help="classes of M, by the largest (default: 16,32,64,128,256,1024)")
    what.add_argument("--group-size", type=number_from(1), metavar="G", help="of weights (default: 128)")
    what.add_argument("--candidates", type=number_from(1), metavar="N", help="of a problem, by estimate (default: 16)")
    what.add_argument("--arch", metavar="ARCH", help="of the GPU that --prepare is for (default: sm_90a)")
    what.add_argument("--multiprocessors", type=number_from(1), metavar="N", help="of that GPU (default: 132, an H200)")
    what.add_argument("--jobs", type=number_from(1), default=0, metavar="N", help="processes (default: all processors)")
    how = parser.add_argument_group("how")
    steps = how.add_mutually_exclusive_group()
    steps.add_argument("--prepare", metavar="DIR", help="only compile the kernels into this folder; needs no GPU")
    steps.add_argument("--kernels", metavar="DIR", help="measure the kernels of this folder, and compile nothing")
    how.add_argument("--out", metavar="FILE", help="measured schedules, JSON; what it has of other problems stays")
    how.add_argument("--budget-s", type=number_from(1), metavar="S", help="begin no problem after so many seconds")
    how.add_argument(
        "--anew", action="store_true", help="also measure problems that FILE has, but for those measured with these "
        "very kernels, so that it too goes on where it ended",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prepares, measures, or both; 1 where a problem has no candidate that can be measured."""
    if options.prepare:
        _refuse(options, ("out", "anew"), "is of measuring, not with --prepare")
        return _prepare(options, Path(options.prepare))
    if options.kernels:
        _refuse(options, _OF_PREPARING, "is of compiling, not with --kernels")
    else:
        _refuse(options, _OF_GPU, "is only with --prepare; else of the GPU that is here")
    if not options.out:
        raise LowlpValueError("--out: must name a file for the measured schedules, got none")
    return _measure(options)


def _refuse(options: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(options, name):
            raise LowlpValueError(f"--{name.replace('_', '-')}: {why}, got {getattr(options, name)}")


def _prepare(options: argparse.Namespace, folder: Path) -> int:
    from lowlp.benchmarks.preparing import MULTIPROCESSORS
    from lowlp.compiler.architectures import check_arch
    from lowlp.tuning.preparing import open_folder, prepare

    problems = _problems(options)
    arch = check_arch(options.arch or _ARCH, "--arch")
    prepared = open_folder(folder, arch, options.multiprocessors or MULTIPROCESSORS)
    status = _show(
        "compile", prepare(prepared, problems, options.candidates or _CANDIDATES, options.jobs), len(problems)
    )
    print(f"{len(problems)} problems for {arch} in {folder}")
    return status


def _measure(options: argparse.Namespace) -> int:
    from lowlp.benchmarks.session import why_not
    from lowlp.tuning.measured import MeasuredFile
    from lowlp.tuning.measuring import measure, until
    from lowlp.tuning.prepared import PreparedCandidates
    from lowlp_runtime.device import current_device, device_name

    missing = why_not()
    if missing:
        raise DeviceError(f"lowlp tune needs a GPU: {missing}")
    gpu = current_device()
    file = MeasuredFile(Path(options.out), device_name(gpu))
    if options.kernels:
        prepared = PreparedCandidates.load(Path(options.kernels))
        prepared.check_device(gpu)
        problems = prepared.problems()
        if not problems:
            raise LowlpValueError(f"--kernels: {options.kernels} has no problem that was prepared to its end")
        found = measure(prepared, problems, file, options.anew, until(options.budget_s))
        status = _show("tune", found, len(problems))
    else:
        status = _measure_here(options, file, gpu)
    print(options.out)
    return status


def _measure_here(options: argparse.Namespace, file: MeasuredFile, gpu: int) -> int:
    """Measures while it compiles, into a folder that is thrown away: the cache keeps the kernels."""
    from lowlp.compiler.architectures import arch_of
    from lowlp.tuning.measuring import measure, until
    from lowlp.tuning.preparing import open_folder, prepare
    from lowlp_runtime.device import multiprocessors

    problems = [problem for problem in _problems(options) if options.anew or not file.find(problem.key)]
    is_over = until(options.budget_s)
    with tempfile.TemporaryDirectory() as folder:
        prepared = open_folder(Path(folder), arch_of(gpu), multiprocessors(gpu))
        with closing(prepare(prepared, problems, options.candidates or _CANDIDATES, options.jobs)) as compiled:
            return _show("tune", measure(prepared, compiled, file, options.anew, is_over), len(problems))


def _problems(options: argparse.Namespace) -> list[AnyProblem]:
    from lowlp.benchmarks.cases import GROUP_SIZE, KINDS, SHAPES, parse_kinds, parse_shapes
    from lowlp.kernels.linear.activations import HALVES
    from lowlp.kernels.linear.candidates import CLASSES
    from lowlp.tuning.wanted import ROWS, Weights, problems_of

    activations = options.activations.split(",") if options.activations else ["f16"]
    is_quantised = not all(name in HALVES for name in activations)
    shapes = parse_shapes(options.shapes) if options.shapes else SHAPES
    rows = _classes(options.m, ROWS if is_quantised else CLASSES)
    group_size = options.group_size or (0 if is_quantised else GROUP_SIZE)
    names = _BYTES_OF_WEIGHTS if is_quantised else KINDS
    kinds = parse_kinds(options.types or ",".join(names))
    for shape in shapes:
        if group_size and shape.k % group_size:
            raise LowlpValueError(f"--group-size: must divide K = {shape.k}, got {group_size}")
    weights = [Weights(shape.n, shape.k, kind.codec_for(group_size)) for kind in kinds for shape in shapes]
    try:
        return problems_of(weights, activations, rows if options.m else None, options.path)
    except LowlpValueError as error:
        name, _, rest = str(error).partition(":")
        option = {"weights": "--types", "activation": "--activations"}.get(name, f"--{name}")
        raise LowlpValueError(f"{option}:{rest}") from error


def _classes(text: str | None, classes: tuple[int, ...]) -> tuple[int, ...]:
    if text is None:
        return classes
    names = {str(rows): rows for rows in classes}
    for word in text.split(","):
        if word not in names:
            raise LowlpValueError(f"--m: must be among {', '.join(names)}, got {word!r}")
    return tuple(dict.fromkeys(names[word] for word in text.split(",")))


def _show(what: str, problems: Iterator[PreparedProblem], total: int) -> int:
    """A progress bar of what is done; 1 where a problem has no kernel. Says so, and what did not compile of others."""
    from lowlp.tuning.prepared import SPILLS

    done = 0
    without: list[PreparedProblem] = []
    failed: list[tuple[PreparedProblem, list[str]]] = []
    with progress_bar(what) as show:
        for number, problem in enumerate(problems, 1):
            show(number, total, str(problem))
            done = number
            if all(candidate.problem for candidate in problem.candidates):
                without.append(problem)
            elif reasons := [one.problem for one in problem.candidates if one.problem not in ("", SPILLS)]:
                failed.append((problem, reasons))
    if done < total:
        print(f"lowlp: {total - done} of {total} problems are left: the budget is spent", file=sys.stderr)
    for problem, reasons in failed:
        count = f"{len(reasons)} of {len(problem.candidates)}"
        print(f"lowlp: {problem}: {count} candidates did not compile: {reasons[0]}", file=sys.stderr)
    for problem in without:
        reason = next((candidate.problem for candidate in problem.candidates), "no schedule fits")
        print(f"lowlp: {problem}: no kernel: {reason}", file=sys.stderr)
    return 1 if without else 0
