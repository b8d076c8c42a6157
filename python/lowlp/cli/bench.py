"""`lowlp bench`: times of `linear` beside the libraries that users could pick instead, and the report of them."""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lowlp_runtime.errors import DeviceError, LowlpValueError

from . import bench_activations, bench_attention, bench_experts, bench_models, output
from .bench_progress import progress_bar
from .output import number_from

if TYPE_CHECKING:
    from lowlp.benchmarks.results import Results

_KERNELS = "out/bench/kernels"
_RESULTS = "benchmarks/results"
_PAGE = "docs/performance.md"
_ARCH = "sm_90a"

_EPILOG = """kinds of weights:
  int4 int8 int6 f6e3m2 int3 f3e1m1 int5 f5e2m2 int7 int2 int1; uint4z, uint4 with zero points; nf4, a lookup table
  and where they are named: mxfp4 nvfp4, with bf16 activations
with --codebooks: aqlm-2x8 aqlm-1x8 gptvq-2 vec2 aqlm-3 aqlm-3-int8 aqlm-3-e4m3 quip-4 e8p aqlm-1x16;
  and, with codes by Zipf's law, aqlm-1x16-zipf, and with frequent entries in shared memory aqlm-1x16-zipf-frequent

A machine with a GPU and no compiler measures kernels that another one compiled:
  lowlp bench --prepare out/bench/kernels        # no GPU
  lowlp bench --kernels out/bench/kernels --peers --out r.json
It needs lowlp_runtime, numpy, ml_dtypes and PyTorch, and this package's Python files. --prepare fails where a kernel
cannot be compiled, spills registers, or has products of warpgroups for which the assembler adds waits; it lists them.

examples:
  lowlp bench --peers
  lowlp bench --quick --types int4,nf4 --shapes 8192x8192 --m 1,16
  lowlp bench --peers humming,torch --peers-only --out peers.json
  lowlp bench --codebooks --peers torch,aqlm
  lowlp bench --codebooks --ablation --m 1,16
  lowlp bench --report ours.json peers.json

"""
_EPILOG += bench_models.EPILOG + bench_attention.EPILOG + bench_activations.EPILOG + bench_experts.EPILOG


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "bench",
        help="time the kernels of linear on the GPU, beside other libraries",
        description="Times y = x @ w^T for many kinds of weights, shapes and numbers of rows on the GPU, and the same "
        "products of other libraries by the same function: random tensors, cold caches, medians. Every result is "
        "compared with float64 first; a wrong one has no time. Prints tables and writes JSON.",
        epilog=_EPILOG,
        formatter_class=output.HelpFormatter,
    )
    what = parser.add_argument_group("what is measured")
    what.add_argument(
        "--set", choices=("grid", "models"), default="grid", help="all kinds at all shapes and M (default); or random "
        "problems of ten models",
    )  # fmt: skip
    what.add_argument(
        "--codebooks", action="store_true", help="weights of codebooks, held to targets of their own, beside our int4: "
        "four shapes, M of 1,8,16,32,64,1024,4096",
    )  # fmt: skip
    what.add_argument(
        "--ablation", action="store_true", help="with --codebooks: GC, SC, O1 to O4 of VQ-LLM's table IV, of "
        "quip-4, aqlm-3 and gptvq-2, beside ours: two shapes, M of 1,16",
    )  # fmt: skip
    what.add_argument(
        "--attention", action="store_true", help="attention over all kinds of caches in place of linear; listed below"
    )
    what.add_argument(
        "--activations", action="store_true", help="products with quantised activations, by every path, in place of "
        "linear's with f16; listed below",
    )  # fmt: skip
    what.add_argument("--experts", action="store_true", help="products of experts, in place of linear's; listed below")
    what.add_argument("--models", metavar="NAME,...", help="with --experts: of which models (default: all)")
    what.add_argument("--types", metavar="KIND,...", help="kinds of weights (default: all, listed below)")
    what.add_argument("--shapes", metavar="NxK,...", help="shapes of the weights (default: six of large models)")
    what.add_argument("--m", metavar="M,...", help="rows of activations (default: 1,8,16,32,64,128,256,1024,4096)")
    what.add_argument(
        "--peers", nargs="?", const="all", metavar="NAME,...", help="also measure torch, humming, gemlite and "
        "bitsandbytes, and with --codebooks aqlm, or those named; those not installed are said to be absent",
    )  # fmt: skip
    what.add_argument("--peers-only", action="store_true", help="measure no kernels of ours")
    what.add_argument("--quick", action="store_true", help="two shapes, four M, fewer repeats")
    what.add_argument(
        "--measure-read", action="store_true", help="use the measured read bandwidth for floors, not 4.49 TB/s"
    )
    how = parser.add_argument_group("how")
    how.add_argument("--kernels", metavar="DIR", help="measure the kernels of this folder, and compile nothing")
    how.add_argument("--prepare", metavar="DIR", help="only compile the kernels into this folder; needs no GPU")
    how.add_argument("--arch", metavar="ARCH", help="what to compile for (default: the GPU, or sm_90a)")
    how.add_argument(
        "--jobs", type=number_from(1), default=0, metavar="N", help="processes that compile (default: all processors)"
    )
    how.add_argument(
        "--gpu", default="", metavar="NAME", help="that --prepare is for, as its driver names it: schedules that were "
        "measured there go first (default: none is known)",
    )  # fmt: skip
    how.add_argument(
        "--multiprocessors", type=number_from(1), metavar="N", help="of the GPU that --prepare is for (default: 132, "
        "an H200)",
    )  # fmt: skip
    how.add_argument(
        "--limit", type=number_from(1), metavar="S", help="seconds after which one row counts as hanging (default: "
        "300; 60 with --set models)",
    )  # fmt: skip
    how.add_argument(
        "--deadline", type=number_from(1), metavar="S", help="after so many seconds begin nothing more, and report"
    )
    how.add_argument("--out", metavar="FILE", help=f"the results as JSON (default: {_RESULTS}/DATE-GPU.json)")
    bench_models.add_arguments(parser)
    report = parser.add_argument_group("the report")
    report.add_argument(
        "--report", nargs="+", metavar="FILE", help="measure nothing: write plots beside the first of these results, "
        "and the page, of all of them together; needs no GPU",
    )  # fmt: skip
    report.add_argument("--page", default=_PAGE, metavar="FILE", help=f"the page of --report (default: {_PAGE})")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Prepares, measures or reports; 1 where something has no time, or is prepared as slow code."""
    if options.models and not options.experts:
        raise LowlpValueError("--models: is only with --experts")
    if options.gpu and not options.prepare:
        raise LowlpValueError("--gpu: is only with --prepare; kernels that are timed here are for the GPU that is here")
    if options.experts and not options.report:
        return bench_experts.run(options)
    if options.activations and not options.report:
        return bench_activations.run(options)
    if options.attention and not options.report:
        return bench_attention.run(options)
    if options.set == "models" and not options.report:
        return bench_models.run(options)
    bench_models.refuse(options)
    if options.ablation and not options.codebooks:
        raise LowlpValueError("--ablation: is only with --codebooks")
    if options.peers_only and not options.peers:
        raise LowlpValueError("--peers-only: needs --peers")
    if options.report:
        return _report(options)
    if options.prepare:
        return _prepare(options, Path(options.prepare), options.multiprocessors, options.gpu)
    return _measure(options)


def _selection(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Kinds, shapes and rows."""
    from lowlp.benchmarks import cases

    kinds: dict[str, cases.WeightKind] = cases.KINDS
    named = {} if options.codebooks else cases.FORMAT_KINDS
    shapes: tuple[cases.Shape, ...] = cases.SHAPES
    rows: tuple[int, ...] = cases.ROWS
    if options.codebooks:
        # Targets for many rows are factors over int4.
        kinds = {"int4": kinds["int4"], **cases.BOOK_KINDS, **cases.SKEWED_KINDS}
        shapes, rows = cases.BOOK_SHAPES, cases.BOOK_ROWS
    if options.ablation:
        return _versions(options)
    if options.quick:
        shapes, rows = cases.QUICK_SHAPES, cases.QUICK_ROWS
    return (
        cases.parse_kinds(options.types, {**kinds, **named}) if options.types else tuple(kinds.values()),
        cases.parse_shapes(options.shapes) if options.shapes else shapes,
        cases.parse_rows(options.m) if options.m else rows,
    )


def _versions(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """The same of versions: each kind, and after it its versions."""
    from lowlp.benchmarks import cases

    among = {name: cases.BOOK_KINDS[name] for name in cases.ABLATED}
    bases = cases.parse_kinds(options.types, among) if options.types else tuple(among.values())
    names = [cases.version_name(base.name, version) for base in bases for version in ("", *cases.VERSIONS)]
    shapes = cases.parse_shapes(options.shapes) if options.shapes else cases.ABLATION_SHAPES
    rows = cases.parse_rows(options.m) if options.m else cases.ABLATION_ROWS
    return tuple(cases.ALL_KINDS[name] for name in names), shapes, rows


def _prepare_here(options: argparse.Namespace, folder: Path) -> None:
    """For the GPU of this machine. What cannot be compiled is found again as rows without a time."""
    from lowlp.compiler.architectures import current_arch
    from lowlp_runtime.device import device_name, multiprocessors

    options.arch = options.arch or current_arch()
    _prepare(options, folder, multiprocessors(), device_name())


def _prepare(options: argparse.Namespace, folder: Path, size: int | None, gpu: str = "") -> int:
    """`size` is the number of multiprocessors, `gpu` the name of the GPU if it is known."""
    from lowlp.benchmarks.prepared import PreparedKernels
    from lowlp.benchmarks.preparing import MULTIPROCESSORS, prepare

    kinds, shapes, rows = _selection(options)
    arch = options.arch or _ARCH
    with progress_bar("compile") as show:
        for step in prepare(folder, arch, kinds, shapes, rows, options.jobs, size or MULTIPROCESSORS, gpu):
            show(*step)
    entries = PreparedKernels.load_index(folder).kernels
    failed = [entry for entry in entries if entry.problem]
    slow = [entry for entry in entries if entry.slow_code]
    for entry in (*failed, *slow):
        what = entry.problem or entry.slow_code
        print(f"lowlp: {entry.kind} {entry.n}x{entry.k}, M = {entry.rows}: {what}", file=sys.stderr)
    counts = {
        "failed": len(failed),
        "spill registers": sum(entry.spilled_bytes > 0 for entry in slow),
        "make products wait": sum(entry.product_remarks > 0 for entry in slow),
    }
    told = ", ".join(f"{count} {what}" for what, count in counts.items())
    print(f"{len(entries) - len(failed)} kernels for {arch} in {folder}, {told}")
    return 1 if failed or slow else 0


def _measure(options: argparse.Namespace) -> int:
    from lowlp.benchmarks import report, session
    from lowlp.benchmarks.peers import parse_peers
    from lowlp.benchmarks.timing import QUICK, Effort
    from lowlp.benchmarks.worker import Settings

    missing = session.why_not()
    if missing:
        raise DeviceError(f"lowlp bench needs a GPU: {missing}")
    kinds, shapes, rows = _selection(options)
    folder = None if options.peers_only else Path(options.kernels or _KERNELS)
    if folder is not None and not options.kernels:
        _prepare_here(options, folder)
    plan = session.Plan(
        kinds=tuple(kind.name for kind in kinds),
        shapes=shapes,
        rows=rows,
        peers=parse_peers(options.peers) if options.peers else (),
        with_ours=not options.peers_only,
        settings=Settings(
            folder, QUICK if options.quick else Effort(), options.measure_read, host_cost=not options.peers_only
        ),
        limit_s=options.limit or session.LIMIT_S,
        deadline_s=options.deadline,
    )
    out = Path(options.out) if options.out else _default_out()
    with progress_bar("bench") as show:
        results = session.run(plan, out, show)
    print(report.short_table(results))
    _print_summary(results)
    print(f"\nresults in {out}; `lowlp bench --report {out}` makes the page")
    return 1 if session.failures(results) else 0


def _print_summary(results: Results) -> None:
    from lowlp.benchmarks import ablation, book_targets, report

    for run in results.runs:
        print(f"\n{run.gpu}, driver {run.driver}, {run.date}")
        facts = [("versions", ", ".join(f"{name} {version or 'absent'}" for name, version in run.versions.items()))]
        for name, value in (
            ("empty kernel", run.empty_us),
            ("cached linear, host", run.host_us),
            ("cached module, host", run.module_us),
        ):
            if value is not None:
                facts.append((name, f"{value:.2f} us"))
        print(output.aligned([*facts, *(("note", note) for note in run.notes)]))
    counts = report.summary(results)
    print("cells: " + ", ".join(f"{count} {status}" for status, count in sorted(counts.items())))
    if table := book_targets.book_table(results):
        print(f"\ncodebooks, microseconds (allowed, at best; AQLM)\n{table}")
    if table := book_targets.skewed_table(results):
        print(f"\nAQLM 1x16, skewed codes, microseconds\n{table}")
    if table := ablation.ablation_table(results):
        print(f"\nversions of VQ-LLM's table IV, microseconds (part of GC's)\n{table}")
    for line in report.problems(results):
        print(f"no time: {line}")


def _report(options: argparse.Namespace) -> int:
    from lowlp.benchmarks.models.model_results import MODELS_MARK, is_of_models
    from lowlp.benchmarks.pages.writing import write_report
    from lowlp.benchmarks.results import Results, merged

    files = [Path(name) for name in options.report]
    for path in files:
        if is_of_models(path):
            raise LowlpValueError(
                f"--report: {path} is of --set models; the page of NAME.json shows what is beside it as "
                f"NAME{MODELS_MARK}1.json and so on"
            )
    results = merged([Results.load(path) for path in files])
    if len(files) > 1:
        if options.out is None:
            raise LowlpValueError("--report: several files are put together into the one that --out names; give it")
        results.save(Path(options.out))
        files.insert(0, Path(options.out))
    for path in write_report(results, files[0], Path(options.page)):
        print(path)
    return 0


def _default_out() -> Path:
    import lowlp_runtime

    gpu = re.sub(r"[^a-z0-9]+", "-", lowlp_runtime.device_name().lower().removeprefix("nvidia ")).strip("-")
    return Path(_RESULTS) / f"{datetime.date.today().isoformat()}-{gpu}.json"
