"""Products of 2-bit weights and 2-bit activations by ABQ-LLM's own kernels: checked, then timed with cold caches.

    git clone https://github.com/bytedance/ABQ-LLM
    python benchmarks/abq_products.py --build ABQ-LLM/engine libabq.so [--arch 90]
    python benchmarks/abq_products.py --library libabq.so --out benchmarks/results/abq-h200.json

Building needs nvcc and no GPU. ABQ-LLM has 356 divisions of a product of 2 by 2 signed bits, all with `mma.sync`
m8n8k128 and tiles of at most 8 rows of x, and its users search among them; `divisions` takes those with tiles of 32 to
256 columns of y that differ in more than depth, and the fastest of them at each shape and M counts; from 64 rows on
only the four that were fastest with fewer are tried. Results are sums in int32 without scales. Times are those of
packed planes to sums: the packing of x is not in them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from lowlp.benchmarks.activations.cases import ROWS, SHAPES
from lowlp.benchmarks.cases import Shape

_INSTANCES: Final = re.compile(r"AQ_INSTANTIATE_FUN\(AqBMMA, 2, 2, true, ([\d, ]+)\)")
_SOURCE: Final = "mma_any/aq_bmma_impl/aq_bmma_w2a2.cu"
_MANY_ROWS: Final = 16
"""After which only a few divisions are tried."""
_CODE: Final = """\
#include "common/base.h"
#include "mma_any/aq_bmma_op.h"
using Q = QuantType<2, 2, true>;
struct Division { AqBMMAInitFn_t init; AqBMMAExecFn_t exec; };
static const Division kAll[] = {
%s
};
static AqBMMAOpState state;
static int chosen;
extern "C" int abq_init(int which, int *x, int *w, int m, int n, int k, int *d) {
  cudaGetLastError();
  chosen = which;
  state = kAll[which].init(x, w, m, n, k, d, nullptr, false);
  return state.initSuccess ? (int)cudaGetLastError() : -1;
}
extern "C" int abq_exec(void *stream) {
  kAll[chosen].exec(state, (cudaStream_t)stream);
  return (int)cudaGetLastError();
}
"""


def divisions(engine: Path) -> list[tuple[int, ...]]:
    """Those that are taken of ABQ-LLM's: (rows, columns, K of a block), (of a warp), (of an instruction), stages."""
    text = (engine / _SOURCE).read_text()
    every = sorted({tuple(map(int, found[1].split(","))) for found in _INSTANCES.finditer(text)})
    return [
        one
        for one in every
        if one[1] in (32, 64, 128, 256)
        and one[2] in (256, 512)
        and one[3] == 2 * one[0]
        and (one[9] == 4 or (one[9] == 3 and one[1] >= 128 and one[2] == 512))
    ]


def build(engine: Path, library: Path, arch: str) -> int:
    """Compiles a library of the divisions; returns how many there are."""
    taken = divisions(engine)
    lines = []
    for one in taken:
        shapes = ", ".join(f"ShapeBase<{','.join(map(str, one[at : at + 3]))}>" for at in (0, 3, 6))
        lines.append(f"  {{&AqBMMAInitFn<Q, {shapes}, {one[9]}>, &AqBMMAExecFn<Q, {shapes}, {one[9]}>}},")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "abq.cu"
        source.write_text(_CODE % "\n".join(lines))
        code = f"arch=compute_{arch},code=sm_{arch}"
        options = ["-std=c++17", "-O3", "-w", "-DGPU_ARCH=80", "-gencode", code, "-shared", "-Xcompiler", "-fPIC"]
        subprocess.run(["nvcc", *options, "-I", str(engine), "-o", str(library), str(source)], check=True)
    library.with_suffix(".json").write_text(json.dumps(taken))
    return len(taken)


def planes_of(codes: Any) -> Any:
    """int32 [2, rows, K / 32], the first code in the highest bit, of codes -2 .. 1."""
    import torch

    weights = 2 ** torch.arange(31, -1, -1, device=codes.device, dtype=torch.int64)
    found = []
    for bit in range(2):
        bits = ((codes.to(torch.int64) >> bit) & 1).reshape(len(codes), -1, 32)
        found.append((bits * weights).sum(2))
    words = torch.stack(found)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


class Products:
    """Of weights of one shape on the GPU, by any division of a library."""

    def __init__(self, library: Path, shape: Shape) -> None:
        import torch

        self.library = ctypes.CDLL(str(library.resolve()))
        self.divisions = json.loads(library.with_suffix(".json").read_text())
        self.shape = shape
        self.codes = torch.randint(-2, 2, (shape.n, shape.k), device="cuda", dtype=torch.int8)
        self.planes = torch.cat([planes_of(part) for part in self.codes.split(4096)], 1).contiguous()

    def times(self, m: int, among: Sequence[int]) -> dict[int, float]:
        """Microseconds by divisions, of three calls, but for those that do not launch or whose sums are not exact."""
        import torch

        from lowlp.benchmarks.timing import Effort

        x = torch.randint(-2, 2, (m, self.shape.k), device="cuda", dtype=torch.int8)
        self.x = planes_of(x)
        columns = torch.arange(0, self.shape.n, max(1, self.shape.n // 256), device="cuda")
        wanted = (x.double() @ self.codes[columns].double().T).to(torch.int32)
        found: dict[int, float] = {}
        for which in among:
            y = self.begin(which, m)
            if y is not None and torch.equal(y[:, columns], wanted):
                found[which] = self.time(Effort(1.0, 3, 3))
        return found

    def begin(self, which: int, m: int) -> Any:
        """The result of one call; None where it does not launch."""
        import torch

        self.y = torch.full((m, self.shape.n), -7, dtype=torch.int32, device="cuda")
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (self.x, self.planes, self.y)]
        failed = self.library.abq_init(which, *pointers[:2], m, self.shape.n, self.shape.k, pointers[2])
        failed = failed or self.library.abq_exec(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        torch.cuda.synchronize()
        return None if failed else self.y

    def time(self, effort: Any) -> float:
        """Of what was begun last."""
        import torch

        from lowlp.benchmarks.timing import time_call

        stream = int(torch.cuda.current_stream().cuda_stream)
        return float(time_call(lambda: self.library.abq_exec(ctypes.c_void_p(stream)), stream, effort).median_us)


def measure(library: Path, out: Path, most_rows: int) -> None:
    """Writes and shows the fastest division at each shape and M; small shapes first."""
    from lowlp.benchmarks.timing import QUICK

    rows: list[dict[str, Any]] = []
    for shape in sorted(SHAPES, key=lambda shape: shape.n * shape.k):
        products = Products(library, shape)
        among = list(range(len(products.divisions)))
        for m in (m for m in ROWS if m <= most_rows):
            times = products.times(m, among)
            best = sorted(times, key=times.__getitem__)
            wrong = len(among) - len(times)
            if not best:
                print(f"{shape} M = {m}: no division is right", flush=True)
                continue
            products.begin(best[0], m)
            us, division = round(products.time(QUICK), 2), products.divisions[best[0]]
            rows.append({"n": shape.n, "k": shape.k, "m": m, "us": us, "division": division, "not_right": wrong})
            out.write_text(json.dumps(rows, indent=1))
            print(f"{shape} M = {m}: {us:.1f} us, {division}, {wrong} of {len(among)} not right", flush=True)
            if m >= _MANY_ROWS:
                among = best[:4]


def main() -> None:
    parser = argparse.ArgumentParser(description="time ABQ-LLM's products of 2 by 2 bits")
    parser.add_argument("--build", nargs=2, type=Path, metavar=("ENGINE", "LIBRARY"))
    parser.add_argument("--arch", default="90")
    parser.add_argument("--library", type=Path)
    parser.add_argument("--most-rows", type=int, default=ROWS[-1])
    parser.add_argument("--out", type=Path, default=Path("abq.json"))
    options = parser.parse_args()
    if options.build:
        print(f"{build(*options.build, options.arch)} divisions in {options.build[1]}")
    if options.library:
        measure(options.library, options.out, options.most_rows)


if __name__ == "__main__":
    main()
