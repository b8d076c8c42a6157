"""What `linear(..., batch_invariant=True)` costs: microseconds with and without it, as `lowlp bench` measures them.

    python benchmarks/batch_invariant.py                     # compiles for the GPU at hand, and measures
    python benchmarks/batch_invariant.py --prepare DIR       # only compiles; needs no GPU
    python benchmarks/batch_invariant.py --kernels DIR       # measures what another machine compiled

The last needs lowlp_runtime, numpy, ml_dtypes and PyTorch, and this package's Python files, but no compiler. Every
result is compared with float64 first; a wrong one has no time, and the status is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lowlp.benchmarks import program
from lowlp.benchmarks.cases import Shape, WeightKind, parse_kinds, parse_rows, parse_shapes
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.timing import Effort

FORMS = {"chosen": False, "invariant": True}


def prepare(
    folder: Path, arch: str, kinds: Sequence[WeightKind], shapes: Sequence[Shape], rows: Sequence[int], size: int
) -> bool:
    """Compiles the kernels of both into a folder each, for a GPU of `size` multiprocessors; whether all could be."""
    from lowlp.benchmarks import preparing

    for name, batch_invariant in FORMS.items():
        for _ in preparing.prepare(
            folder / name, arch, kinds, shapes, rows, multiprocessors=size, batch_invariant=batch_invariant
        ):
            pass
    return program.are_whole(folder / name for name in FORMS)


def measure(folder: Path, kinds: Sequence[WeightKind], shapes: Sequence[Shape], rows: Sequence[int]) -> bool:
    """Prints the table; whether all of it has times."""
    import torch

    import lowlp_runtime
    from lowlp.benchmarks.ours import OurProduct
    from lowlp_runtime.device import multiprocessors

    device = torch.device("cuda", torch.cuda.current_device())
    stream = int(torch.cuda.current_stream(device).cuda_stream)
    prepared = {name: PreparedKernels.load_index(folder / name) for name in FORMS}
    for kernels in prepared.values():
        kernels.check_device(multiprocessors(device.index))
    print(f"{lowlp_runtime.device_name()}, microseconds, medians with cold caches")
    print(f"{'weights':<8} {'N x K':<12} {'M':>5} {'chosen':>9} {'invariant':>9} {'ratio':>6}")
    problems = []
    for kind in kinds:
        for shape in shapes:
            products = [OurProduct(kernels, kind.name, shape, max(rows), device) for kernels in prepared.values()]
            for m in rows:
                # In turns, so that clocks are alike.
                found = [product.measure(m, stream, Effort()) for product in products]
                times = [row.us for row in found]
                cells = ["-" if us is None else f"{us:.1f}" for us in times]
                ratio = f"{times[1] / times[0]:.2f}" if times[0] and times[1] else "-"
                print(f"{kind.name:<8} {shape!s:<12} {m:>5} {cells[0]:>9} {cells[1]:>9} {ratio:>6}", flush=True)
                problems += [f"{kind.name} {shape}, M = {m}: {row.problem}" for row in found if row.problem]
            del products
            torch.cuda.empty_cache()
    for problem in problems:
        print(f"no time: {problem}", file=sys.stderr)
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser(description="time linear with and without batch_invariant")
    parser.add_argument("--types", default="int4,int8,int2", metavar="KIND,...", help="as for `lowlp bench`")
    program.add_arguments(parser, rows="1,16,64,256,1024")
    options = parser.parse_args()

    def what() -> tuple[Sequence[WeightKind], Sequence[Shape], Sequence[int]]:
        return parse_kinds(options.types), parse_shapes(options.shapes), parse_rows(options.m)

    return program.run(
        parser,
        options,
        "out/batch_invariant",
        lambda folder, arch, size: prepare(folder, arch, *what(), size),
        lambda folder: measure(folder, *what()),
    )


if __name__ == "__main__":
    sys.exit(main())
