"""The kernel of `examples/plain_matmul.py --packed`, in which no layout is named, beside `lowlp.linear`.

    python benchmarks/plain_matmul.py                     # compiles for the GPU at hand, and measures
    python benchmarks/plain_matmul.py --prepare DIR       # only compiles; needs no GPU
    python benchmarks/plain_matmul.py --kernels DIR       # measures what another machine compiled

Both as `lowlp bench` measures, in turns. With --out the times go to a file, for `lowlp bench --report`.
The last needs lowlp_runtime, numpy, ml_dtypes and PyTorch, and this package's Python files, but no compiler. Every
result is compared with float64 first; a wrong one has no time, and the status is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lowlp.benchmarks import program, session
from lowlp.benchmarks.cases import KINDS, Shape, parse_rows, parse_shapes
from lowlp.benchmarks.ours import OurProduct
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.results import PLAIN, PLAIN_RIVAL, Results, Row
from lowlp.benchmarks.timing import Effort
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.dependent_launch import no_dependent_launch

KIND = "int4"
TURNS = 3
EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "plain_matmul.py"


def prepare(folder: Path, arch: str, shapes: Sequence[Shape], rows: Sequence[int], size: int) -> bool:
    """Compiles both kernels of each product, for a GPU of `size` multiprocessors; whether all could be."""
    from lowlp.benchmarks import preparing

    for _ in preparing.prepare(folder, arch, [KINDS[KIND]], shapes, rows, multiprocessors=size):
        pass
    prepare_plain(folder, arch, shapes, rows)
    return program.are_whole([folder])


def prepare_plain(folder: Path, arch: str, shapes: Sequence[Shape], rows: Sequence[int]) -> None:
    """Compiles the example's kernels."""
    import lowlp

    spec = importlib.util.spec_from_file_location("plain_matmul_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for shape in shapes:
        for m in rows:
            # What is taken where nothing can be measured.
            kernel = example.make_packed_matmul(shape.n, shape.k).kernel_for(m=m)
            lowlp.compile(kernel, arch).save(_file(folder, shape, m))


def _file(folder: Path, shape: Shape, m: int) -> Path:
    return folder / f"plain-{shape}-m{m}.lowlp"


@no_dependent_launch()
def measure_plain(folder: Path, linear: OurProduct, m: int, stream: int) -> Row:
    """The example's kernel on the weights and activations of `linear`."""
    words, scales = linear.operands["weights"], linear.operands["scales"]

    def arguments(y: Any) -> dict[str, Any]:
        return {"w": words, "scales": scales, "x": linear.x[:m], "y": y, "m": m}

    kernel = KernelBinary.load(_file(folder, linear.shape, m))
    return linear.measure_kernel(PLAIN, kernel, arguments, m, stream, Effort())


def measure(folder: Path, shapes: Sequence[Shape], rows: Sequence[int]) -> Results:
    """Prints the table; the rows of both."""
    import torch

    import lowlp_runtime
    from lowlp_runtime.device import multiprocessors

    device = torch.device("cuda", torch.cuda.current_device())
    stream = int(torch.cuda.current_stream(device).cuda_stream)
    prepared = PreparedKernels.load_index(folder)
    prepared.check_device(multiprocessors(device.index))
    results = Results([session.run_of_this_machine()])
    print(f"{lowlp_runtime.device_name()}, microseconds, medians with cold caches")
    print(f"{'N x K':<12} {'M':>5} {'plain':>8} {'linear':>8} {'ratio':>6}")
    for shape in shapes:
        linear = OurProduct(prepared, KIND, shape, max(rows), device)
        for m in rows:
            # In turns, so that clocks are alike.
            found = [
                (measure_plain(folder, linear, m, stream), linear.measure(m, stream, Effort())) for _ in range(TURNS)
            ]
            both = [_middle(turns) for turns in zip(*found, strict=True)]
            both[1] = replace(both[1], who=PLAIN_RIVAL)
            for row in both:
                results.add(row)
            cells = ["-" if row.us is None else f"{row.us:.1f}" for row in both]
            ratio = f"{both[0].us / both[1].us:.2f}" if both[0].us and both[1].us else "-"
            print(f"{shape!s:<12} {m:>5} {cells[0]:>8} {cells[1]:>8} {ratio:>6}", flush=True)
        del linear
        torch.cuda.empty_cache()
    return results


def _middle(turns: Sequence[Row]) -> Row:
    """The row of the median time; the first that has none, if there is one."""
    failed = [row for row in turns if row.us is None]
    if failed:
        return failed[0]
    middle = statistics.median_low([row.us for row in turns if row.us is not None])
    return next(row for row in turns if row.us == middle)


def main() -> int:
    parser = argparse.ArgumentParser(description="time a kernel without layouts beside linear")
    program.add_arguments(parser, rows="8,16,256")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the results as JSON, for `lowlp bench --report`")
    options = parser.parse_args()

    def compile_into(folder: Path, arch: str, size: int) -> bool:
        return prepare(folder, arch, parse_shapes(options.shapes), parse_rows(options.m), size)

    def measure_in(folder: Path) -> bool:
        results = measure(folder, parse_shapes(options.shapes), parse_rows(options.m))
        if options.out:
            results.save(options.out)
        for row in session.failures(results):
            print(f"no time: {row.who} {row.shape}, M = {row.m}: {row.problem}", file=sys.stderr)
        return not session.failures(results)

    return program.run(parser, options, "out/plain_matmul", compile_into, measure_in)


if __name__ == "__main__":
    sys.exit(main())
