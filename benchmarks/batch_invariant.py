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

from lowlp.benchmarks import session
from lowlp.benchmarks.cases import Shape, WeightKind, parse_kinds, parse_rows, parse_shapes
from lowlp.benchmarks.prepared import PreparedKernels
from lowlp.benchmarks.timing import Effort
from lowlp_runtime.errors import LowlpError

FORMS = {"chosen": False, "invariant": True}
ARCH = "sm_90a"


def prepare(
    folder: Path, arch: str, kinds: Sequence[WeightKind], shapes: Sequence[Shape], rows: Sequence[int], size: int
) -> bool:
    """Compiles the kernels of both into a folder each, for a GPU of `size` multiprocessors; whether all could be."""
    from lowlp.benchmarks import preparing

    failed = []
    for name, batch_invariant in FORMS.items():
        for _ in preparing.prepare(
            folder / name, arch, kinds, shapes, rows, multiprocessors=size, batch_invariant=batch_invariant
        ):
            pass
        failed += [entry for entry in PreparedKernels.load_index(folder / name).kernels if entry.problem]
    for entry in failed:
        print(f"{entry.kind} {entry.n}x{entry.k}, M = {entry.rows}: {entry.problem}", file=sys.stderr)
    return not failed


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
    parser.add_argument("--shapes", default="8192x8192,57344x8192", metavar="NxK,...")
    parser.add_argument("--m", default="1,16,64,256,1024", metavar="M,...")
    parser.add_argument("--prepare", type=Path, metavar="DIR", help="only compile the kernels into this folder")
    parser.add_argument("--kernels", type=Path, metavar="DIR", help="measure the kernels of this folder")
    parser.add_argument("--arch", default=ARCH, help="what --prepare compiles for (default: %(default)s)")
    parser.add_argument("--multiprocessors", type=int, default=132, metavar="N", help="of the GPU of --prepare (132)")
    options = parser.parse_args()
    try:
        what = parse_kinds(options.types), parse_shapes(options.shapes), parse_rows(options.m)
        if options.prepare:
            return 0 if prepare(options.prepare, options.arch, *what, options.multiprocessors) else 1
        if missing := session.why_not():
            parser.error(f"needs a GPU: {missing}; --prepare does not")
        folder = options.kernels or Path("out/batch_invariant")
        if not options.kernels:
            from lowlp.compiler.compilation import current_arch
            from lowlp_runtime.device import multiprocessors

            prepare(folder, current_arch(), *what, multiprocessors())
        return 0 if measure(folder, *what) else 1
    except LowlpError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
