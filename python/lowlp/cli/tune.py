"""`lowlp tune`: measures schedules of `linear` on the GPU and writes the table from which kernels are chosen."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lowlp_runtime.errors import LowlpValueError

from . import output
from .bench import progress_bar
from .output import number_from

_EPILOG = """kinds of weights:
  int4 int8 int6 f6e3m2 int3 f3e1m1 int5 f5e2m2 int7 int2 int1; uint4z, uint4 with zero points; nf4, a table

A problem is a kind of weights, a shape and a class of M. Problems that the table has are left out, so an interrupted
run goes on where it ended. Kernels are compiled in parallel and kept in the cache (`lowlp cache`).

examples:
  lowlp tune --out h200.json
  lowlp tune --types int4 --shapes 5120x5120 --m 16 --out mine.json"""


def add_parser(commands: Any) -> None:
    """Declares the arguments."""
    parser = commands.add_parser(
        "tune",
        help="measure schedules of linear on the GPU",
        description="Compiles the schedules that are best by estimate, times each on the GPU, and writes the fastest "
        "of each problem into a table.",
        epilog=_EPILOG,
        formatter_class=output.HelpFormatter,
    )
    parser.add_argument("--types", metavar="KIND,...", help="kinds of weights (default: all, listed below)")
    parser.add_argument("--shapes", metavar="NxK,...", help="shapes of the weights (default: six of large models)")
    parser.add_argument("--m", metavar="M,...", help="classes of M, by the largest (default: all: 16,32)")
    parser.add_argument("--group-size", type=number_from(1), default=128, metavar="G", help="of weights (default: 128)")
    parser.add_argument("--candidates", type=number_from(1), default=16, metavar="N", help="of a problem (default: 16)")
    parser.add_argument(
        "--jobs", type=number_from(1), default=0, metavar="N", help="processes (default: all processors)"
    )
    parser.add_argument("--out", metavar="FILE", required=True, help="the table, JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Carries out the command."""
    from lowlp.benchmarks.cases import KINDS, SHAPES, parse_kinds, parse_shapes
    from lowlp.compiler import current_arch
    from lowlp.kernels.linear_schedules import CLASSES
    from lowlp.kernels.linear_spec import LinearSpec
    from lowlp.tuning import Problem, tune

    kinds = parse_kinds(options.types) if options.types else tuple(KINDS.values())
    shapes = parse_shapes(options.shapes) if options.shapes else SHAPES
    rows = _classes(options.m, CLASSES)
    problems: list[Problem] = []
    for kind in kinds:
        for shape in shapes:
            if shape.k % options.group_size:
                raise LowlpValueError(f"--group-size: must divide K = {shape.k}, got {options.group_size}")
            spec = LinearSpec(
                n=shape.n,
                k=shape.k,
                weight=f"lut{kind.bits}" if kind.table else kind.dtype,
                group_size=options.group_size,
                zeros="uint8" if kind.zero_bytes else "",
                table="tensor" if kind.table else "",
                aligned=True,
            )
            problems.extend(Problem(spec, m) for m in rows)
    with progress_bar("tuning") as show:
        tune(problems, Path(options.out), current_arch(), options.candidates, options.jobs, show)
    print(options.out)
    return 0


def _classes(text: str | None, classes: tuple[int, ...]) -> tuple[int, ...]:
    if text is None:
        return classes
    names = {str(rows): rows for rows in classes}
    for word in text.split(","):
        if word not in names:
            raise LowlpValueError(f"--m: must be among {', '.join(names)}, got {word!r}")
    return tuple(dict.fromkeys(names[word] for word in text.split(",")))
