"""How long quantising activations takes beside the time of its bytes, in microseconds, medians with cold caches.

    python benchmarks/quantize_activations.py [--m 1,16,64,256,1024,4096] [--k 8192]

Needs a GPU. Bytes are those of x, codes, scales, sums and planes, at the bandwidth that the GPU is known to reach.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch

import lowlp
import lowlp_runtime
from lowlp.benchmarks.timing import Effort, time_call
from lowlp.schedules.device import device_of


def kernels(x: Any, both: Any, weight: Any) -> dict[str, tuple[int, Callable[[], object]]]:
    """Of each name what it reads and writes in bits a number, and the call."""
    return {
        "int8": (24, lambda: lowlp.quantize_activations(x)),
        "int8, planes": (32, lambda: lowlp.quantize_activations(x, planes=True)),
        "int4, planes": (28, lambda: lowlp.quantize_activations(x, "int4", planes=True)),
        "f8e4m3": (24, lambda: lowlp.quantize_activations(x, "f8e4m3")),
        "int4, hadamard of 128": (24, lambda: lowlp.quantize_activations(x, "int4", hadamard=128)),
        "int4, hadamard of 1024": (24, lambda: lowlp.quantize_activations(x, "int4", hadamard=1024)),
        "hadamard of 1024": (32, lambda: lowlp.hadamard(x, 1024)),
        "rms_norm, int8": (56, lambda: lowlp.rms_norm_quant(x, weight, 1e-6, x)),
        "silu_mul, int8": (40, lambda: lowlp.silu_mul_quant(both)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="time the kernels that quantise activations")
    parser.add_argument("--m", default="1,16,64,256,1024,4096", metavar="ROWS,...")
    parser.add_argument("--k", type=int, default=8192)
    options = parser.parse_args()
    device = torch.device("cuda", torch.cuda.current_device())
    stream = int(torch.cuda.current_stream(device).cuda_stream)
    bandwidth = device_of(device.index).bytes_per_us
    print(f"{lowlp_runtime.device_name()}, microseconds, medians with cold caches")
    print(f"{'what':<24} {'M':>5} {'time':>8} {'bytes':>8} {'ratio':>6}")
    weight = torch.ones(options.k, dtype=torch.float16, device=device)
    for m in (int(rows) for rows in options.m.split(",")):
        x = torch.randn(m, options.k, device=device).half()
        both = torch.randn(m, 2 * options.k, device=device).half()
        for name, (bits, run) in kernels(x, both, weight).items():
            us = time_call(run, stream, Effort()).median_us
            least = m * options.k * bits / 8 / bandwidth
            print(f"{name:<24} {m:>5} {us:>8.1f} {least:>8.1f} {us / least:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
