"""Two examples that `lowlp.autotune` tunes, beside PyTorch and lowlp's own functions, on the GPU at hand.

    python benchmarks/autotuned_examples.py [--out FILE]

`examples/plain_matmul.py --packed`, weights of int4, beside `torch.matmul` in f16 and `lowlp.linear`; and
`examples/flash_decoding.py`, both of its kernels, beside PyTorch's attention in f16. Microseconds, medians with cold
caches, as `lowlp bench` measures. Each result is compared with float64 first; the status is 1 where one is wrong. With
--out what was measured of all candidates goes to a file too.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import lowlp
from lowlp.benchmarks.timing import Effort, time_call
from lowlp.compiler.architectures import current_arch
from lowlp_runtime.dependent_launch import no_dependent_launch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
plain_matmul: Any = importlib.import_module("plain_matmul")
flash_decoding: Any = importlib.import_module("flash_decoding")

PRODUCTS = ((4096, 4096), (8192, 8192), (28672, 4096))
ROWS = (1, 16, 64, 256)
CACHES = ((8, 8, 4, 4096, 16), (1, 8, 4, 32768, 64), (32, 8, 4, 1024, 4))
"""Sequences, heads of keys and values, query heads of each, keys, parts."""
HEAD_DIM = 128
LIMIT = 2e-3


def time_us(run: Callable[[], object]) -> float:
    """The median time."""
    with no_dependent_launch():
        return time_call(run, int(torch.cuda.current_stream().cuda_stream), Effort(budget_ms=25.0)).median_us


def error_of(found: torch.Tensor, wanted: np.ndarray) -> float:
    """The relative Frobenius error."""
    return float(np.linalg.norm(found.double().cpu().numpy() - wanted) / np.linalg.norm(wanted))


def product(n: int, k: int) -> list[dict[str, Any]]:
    """Rows of the table, for one shape of weights."""
    generator = torch.Generator("cuda").manual_seed(n + k)
    codes = torch.randint(0, 16, (n, k), dtype=torch.uint8, device="cuda", generator=generator).cpu().numpy()
    scales = torch.empty(n, k // 128, device="cuda").uniform_(0.5, 2, generator=generator).half()
    qw = lowlp.QuantizedTensor(codes, dtype="int4", group_size=128, scales=scales.cpu().numpy())
    words = torch.from_numpy(lowlp.packing.pack(codes, 128, "int4", "f16").view(np.int32)).cuda().view(torch.uint32)
    scale_rows, w = scales.t().contiguous(), torch.from_numpy(qw.dequantize().astype(np.float16)).cuda()
    kernel = plain_matmul.make_packed_matmul(n, k)
    rows = []
    for m in ROWS:
        x = torch.randn(m, k, dtype=torch.float16, device="cuda", generator=generator)
        y = torch.full((m, n), math.nan, dtype=torch.float16, device="cuda")
        begin = time.monotonic()
        kernel(words, scale_rows, x, y, m)
        torch.cuda.synchronize()
        tuning_s = time.monotonic() - begin
        wanted = (x.double() @ w.double().t()).cpu().numpy()
        times = {
            "example": time_us(lambda x=x, y=y, m=m: kernel(words, scale_rows, x, y, m)),
            "lowlp": time_us(lambda x=x: lowlp.linear(x, qw)),
            "torch f16": time_us(lambda x=x: torch.matmul(x, w.t())),
        }
        best = str(kernel.best(words, scale_rows, x, y, m))
        what = f"int4 {n}x{k} M = {m}"
        rows.append({"what": what, "us": times, "error": error_of(y, wanted), "tuning_s": tuning_s, "best": best})
        show(rows[-1])
    print(kernel.report())
    return rows


def attention(batch: int, heads: int, group: int, length: int, splits: int) -> dict[str, Any]:
    """A row of the table, for one cache of f16 whose sequences are all of one length."""
    generator = torch.Generator("cuda").manual_seed(length)
    q = torch.randn(batch, heads, group, HEAD_DIM, dtype=torch.float16, device="cuda", generator=generator)
    k, v = (
        torch.randn(batch, heads, length, HEAD_DIM, dtype=torch.float16, device="cuda", generator=generator)
        for _ in range(2)
    )
    lengths = torch.full((batch,), length, dtype=torch.int32, device="cuda")
    partials = [torch.full((batch, heads, splits, group, wide), math.nan, device="cuda") for wide in (HEAD_DIM, 1, 1)]
    o = torch.full_like(q, math.nan)
    parts = flash_decoding.make_attention(batch, heads, group, length, HEAD_DIM, splits)
    # Compiled once: a call of a kernel traces it each time, and takes the host longer than the device.
    combine = lowlp.compile(flash_decoding.make_combine(batch, heads, group, HEAD_DIM, splits), current_arch())

    def run() -> None:
        parts(q, k, v, lengths, *partials)
        combine(*partials, o)

    begin = time.monotonic()
    run()
    torch.cuda.synchronize()
    tuning_s = time.monotonic() - begin
    found = o.clone()
    wanted = flash_decoding.reference(*(one.cpu().numpy() for one in (q, k, v, lengths)))
    queries = q.view(batch, heads * group, 1, HEAD_DIM)
    times = {
        "example": time_us(run),
        "torch f16": time_us(lambda: torch.nn.functional.scaled_dot_product_attention(queries, k, v, enable_gqa=True)),
    }
    what = f"attention {batch} x {length}, {heads} heads of keys, {splits} parts"
    best = str(parts.best(q, k, v, lengths, *partials))
    row = {"what": what, "us": times, "error": error_of(found, wanted), "tuning_s": tuning_s, "best": best}
    show(row)
    print(parts.report())
    return row


def show(row: dict[str, Any]) -> None:
    """One line."""
    times = ", ".join(f"{name} {us:.1f}" for name, us in row["us"].items())
    wrong = "" if row["error"] <= LIMIT else "  WRONG"
    print(f"{row['what']}: {times} us; tuned in {row['tuning_s']:.1f} s: {row['best']}{wrong}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FILE", help="times as JSON")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("needs a GPU")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    rows: list[dict[str, Any]] = []
    for measured in (*((product, one) for one in PRODUCTS), *((attention, one) for one in CACHES)):
        found = measured[0](*measured[1])
        rows += found if isinstance(found, list) else [found]
        if options.out:
            text = json.dumps({"gpu": torch.cuda.get_device_name(), "rows": rows}, indent=1)
            options.out.write_text(text + "\n", encoding="utf-8")
    return int(any(not row["error"] <= LIMIT for row in rows))


if __name__ == "__main__":
    sys.exit(main())
