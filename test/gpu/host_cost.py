"""What a call costs the host, in microseconds: `lowlp.linear`, and a launch of a saved kernel.

    python test/gpu/host_cost.py                          # lowlp.linear; needs lowlp
    python test/gpu/host_cost.py --prepare linear.lowlp   # compiles and saves a kernel; needs lowlp and no GPU
    python test/gpu/host_cost.py --saved linear.lowlp     # launches it; needs no compiler

Beside them stands what allocating a result and a product of PyTorch cost. How it is measured, and why there are two
numbers, says `lowlp.benchmarks.host_cost`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lowlp.benchmarks.host_cost import host_costs

N = K = 4096
ROWS = (1, 16)
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


def calls_of_torch() -> dict[str, Callable[[], object]]:
    """What there is to compare with."""
    import torch

    dense = torch.zeros(K, N, device="cuda", dtype=torch.float16)
    calls: dict[str, Callable[[], object]] = {}
    for m in ROWS:
        x = torch.randn(m, K, device="cuda").half()
        calls[f"torch.empty of [{m}, {N}]"] = lambda m=m: torch.empty((m, N), dtype=torch.float16, device="cuda")
        calls[f"torch matmul M={m}"] = lambda x=x: x @ dense
    return calls


def calls_of_linear(weight: str) -> dict[str, Callable[[], object]]:
    """`lowlp.linear` for each number of rows."""
    import numpy as np
    import torch

    import lowlp

    qw = lowlp.quantize(np.random.default_rng(0).normal(size=(N, K)).astype(np.float32), weight, group_size=128)
    bias = torch.zeros(N, device="cuda", dtype=torch.float16)
    module = lowlp.torch.Linear.from_quantized(qw, bias, device="cuda").requires_grad_(False)
    calls: dict[str, Callable[[], object]] = {}
    for m in ROWS:
        x = torch.randn(m, K, device="cuda").half()
        calls[f"linear {weight} M={m}"] = lambda x=x: lowlp.linear(x, qw)
        calls[f"linear {weight} M={m}, with bias"] = lambda x=x: lowlp.linear(x, qw, bias=bias)
        calls[f"lowlp.torch.Linear {weight} M={m}"] = lambda x=x: module(x)
    return calls


def prepare(path: Path, weight: str) -> None:
    """Compiles and saves a kernel of `linear`."""
    import lowlp

    lowlp.compile_linear(n=N, k=K, weight=weight, m=(1, 16)).save(path)


def calls_of_saved(path: Path) -> dict[str, Callable[[], object]]:
    """A launch of a saved kernel of `linear`, with everything zero."""
    import torch

    import lowlp_runtime

    kernel = lowlp_runtime.KernelBinary.load(path)
    calls: dict[str, Callable[[], object]] = {}
    for m in ROWS:
        numbers = {"m": m, "x_stride": K}
        arguments: list[Any] = [
            torch.zeros(N * K, device="cuda", dtype=getattr(torch, TORCH_TYPES[parameter.element]))
            if parameter.is_pointer
            else numbers.get(parameter.name, 1)
            for parameter in kernel.description.parameters
        ]
        addresses = [argument if isinstance(argument, int) else argument.data_ptr() for argument in arguments]
        calls[f"launch of {path.name} M={m}"] = lambda a=arguments: lowlp_runtime.launch(kernel, a)
        calls[f"launch of {path.name} M={m}, by address"] = lambda a=addresses: lowlp_runtime.launch(
            kernel, a, stream=torch.cuda.current_stream().cuda_stream
        )
    return calls


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

    calls = calls_of_saved(options.saved) if options.saved else calls_of_linear(options.weight)
    calls |= calls_of_torch()
    costs = dict(zip(calls, host_costs(list(calls.values())), strict=True))
    print(f"host, {torch.cuda.get_device_name()}, torch {torch.__version__}: microseconds a call, least and median")
    for name, cost in costs.items():
        print(f"  {name:<44} {cost.least:7.2f} {cost.median:7.2f}")
    if options.json:
        options.json.write_text(json.dumps({name: cost._asdict() for name, cost in costs.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
