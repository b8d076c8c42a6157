"""What a call costs the host, in microseconds: `lowlp.linear`, and a launch of a saved kernel.

    python test/gpu/host_cost.py                          # lowlp.linear; needs lowlp
    python test/gpu/host_cost.py --prepare linear.lowlp   # compiles and saves a kernel; needs lowlp and no GPU
    python test/gpu/host_cost.py --saved linear.lowlp     # launches it; needs lowlp_runtime and PyTorch only

Calls are put on the stream in batches that its queue holds, so none waits for the GPU; the median over batches of the
mean of a batch is printed, beside what allocating a result and a product of PyTorch cost.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

N = K = 4096
ROWS = (1, 16)
CALLS = 200
BATCHES = 50
TORCH_TYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "u8": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "u32": "int32",
}


def microseconds(call: Callable[[], object]) -> float:
    """The median, over batches, of the host's time for a call."""
    import torch

    found = []
    for _ in range(BATCHES + 5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append(1e6 * (time.perf_counter() - start) / CALLS)
    torch.cuda.synchronize()
    return statistics.median(found[5:])  # the first batches load, compile and fill caches


def cost_of_linear(weight: str) -> dict[str, float]:
    """`lowlp.linear` for each number of rows."""
    import numpy as np
    import torch

    import lowlp

    qw = lowlp.quantize(np.random.default_rng(0).normal(size=(N, K)).astype(np.float32), weight, group_size=128)
    bias = torch.zeros(N, device="cuda", dtype=torch.float16)
    dense = torch.zeros(K, N, device="cuda", dtype=torch.float16)
    costs = {}
    for m in ROWS:
        x = torch.randn(m, K, device="cuda").half()
        costs[f"linear {weight} M={m}"] = microseconds(lambda x=x: lowlp.linear(x, qw))
        costs[f"linear {weight} M={m}, with bias"] = microseconds(lambda x=x: lowlp.linear(x, qw, bias=bias))
        costs[f"torch.empty of [{m}, {N}]"] = microseconds(
            lambda m=m: torch.empty((m, N), dtype=torch.float16, device="cuda")
        )
        costs[f"torch matmul M={m}"] = microseconds(lambda x=x: x @ dense)
    return costs


def prepare(path: Path, weight: str) -> None:
    """Compiles and saves a kernel of `linear`."""
    import lowlp

    lowlp.compile_linear(n=N, k=K, weight=weight, m=(1, 16)).save(path)


def cost_of_saved(path: Path) -> dict[str, float]:
    """A launch of a saved kernel of `linear`, with everything zero."""
    import torch

    import lowlp_runtime

    kernel = lowlp_runtime.KernelBinary.load(path)
    costs = {}
    for m in ROWS:
        numbers = {"m": m, "x_stride": K}
        arguments: list[Any] = [
            torch.zeros(N * K, device="cuda", dtype=getattr(torch, TORCH_TYPES[parameter.element]))
            if parameter.is_pointer
            else numbers.get(parameter.name, 1)
            for parameter in kernel.description.parameters
        ]
        costs[f"launch of {path.name} M={m}"] = microseconds(lambda a=arguments: lowlp_runtime.launch(kernel, a))
        addresses = [argument if isinstance(argument, int) else argument.data_ptr() for argument in arguments]
        costs[f"launch of {path.name} M={m}, by address"] = microseconds(
            lambda a=addresses: lowlp_runtime.launch(kernel, a, stream=torch.cuda.current_stream().cuda_stream)
        )
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description="what a call costs the host, in microseconds")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="compile and save a kernel, and end")
    parser.add_argument("--saved", type=Path, metavar="FILE", help="time launches of a saved kernel")
    parser.add_argument("--weight", default="int4", help="type of the weights (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to a file too")
    options = parser.parse_args()
    if options.prepare:
        prepare(options.prepare, options.weight)
        return
    import torch

    costs = cost_of_saved(options.saved) if options.saved else cost_of_linear(options.weight)
    print(f"host, {torch.cuda.get_device_name()}, torch {torch.__version__}: microseconds a call")
    for name, cost in costs.items():
        print(f"  {name:<44} {cost:7.2f}")
    if options.json:
        options.json.write_text(json.dumps(costs, indent=1) + "\n")


if __name__ == "__main__":
    main()
