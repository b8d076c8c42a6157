"""The products of `decode_model.py`, by kind of weights: random codes, made where they are used.

Codes are random bits, and scales such that a product of numbers of variance 1 has variance 1. No matrix is quantised,
which would take minutes and change no time.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from decode_layers import DEVICE, DTYPE, ON_GPU, Shape, silu_mul

import lowlp
import lowlp.torch
from lowlp.torch.products import placed_for

Product = Callable[[torch.Tensor], torch.Tensor]

OURS: dict[str, tuple[str, int | None, str | None]] = {
    "int8": ("int8", 128, None),
    "int4": ("int4", 128, None),
    "int3": ("int3", 128, None),
    "int2": ("int2", 128, None),
    "nf4": ("nf4", 128, None),
    "mxfp4": ("mxfp4", 32, None),
    "2x8": ("aqlm-2x8", None, None),
    "w8a8": ("int8", None, "int8"),
    "w4a8": ("int4", None, "int8"),
    "w2a2": ("int2", None, "int2"),
}
"""Kind -> the type for `lowlp.quantize`, its group, and the type of the activations."""


@functools.cache
def _sample(kind: str, k: int) -> Any:
    """A little weight of the kind, for its codec, its family and what is no code."""
    dtype, group, activation = OURS[kind]
    w = np.random.default_rng(0).normal(size=(64, k if activation else 256)).astype(np.float32)
    options = {} if dtype in ("mxfp4", "aqlm-2x8") else {"group_size": group}
    qw = lowlp.quantize(w, dtype, activation="bf16", **options)
    return placed_for(qw, activation, None, torch.device(DEVICE, 0) if ON_GPU else torch.device("cpu"))


def ours(kind: str, n: int, k: int, epilogue: str | None) -> Any:
    """`lowlp.torch.Linear` with random codes."""
    sample = _sample(kind, k if OURS[kind][2] else 0)
    stored = lowlp.torch.Linear.from_quantized(sample)
    module = lowlp.torch.Linear(
        k,
        n,
        sample.codec,
        bias=False,
        epilogue=epilogue,
        activation=OURS[kind][2],
        device=DEVICE,
        dtype=DTYPE,
        family=sample.family,
    ).eval()
    for part in module._names:
        tensor, held = module.get_buffer(part), stored.get_buffer(part)
        if part == "packed":
            tensor.random_(-(2**31), 2**31 - 1)
        elif part != "scales":
            tensor.copy_(held)
    scale = 1 / (_rms(kind, stored) * math.sqrt(k))
    scales = module.get_buffer("scales")
    if scales.dtype == torch.uint8:
        scales.fill_(127 + round(math.log2(scale)))
    else:
        scales.uniform_(0.75 * scale, 1.25 * scale)
    return module


def _rms(kind: str, stored: Any) -> float:
    """The root of the mean square of what random codes mean, before scales."""
    if "codebooks" in stored._names:
        books = stored.get_buffer("codebooks").float()
        return float(books.square().mean((-2, -1)).sum().sqrt())
    if "lut" in stored._names:
        return float(stored.get_buffer("lut").float().square().mean().sqrt())
    if kind == "mxfp4":
        return math.sqrt(2 * sum(x * x for x in (0.5, 1, 1.5, 2, 3, 4, 6)) / 16)
    return float(2 ** int(OURS[kind][0][-1]) / math.sqrt(12))


def bf16(n: int, k: int) -> Product:
    """PyTorch's own."""
    w = torch.empty(n, k, device=DEVICE, dtype=DTYPE).normal_(0, k**-0.5)
    return lambda x: torch.nn.functional.linear(x, w)


def tinygemm(n: int, k: int) -> Product:
    """PyTorch's 4-bit product, which torchao's int4 weights call."""
    w = torch.randint(0, 256, (n, k // 2), device=DEVICE, dtype=torch.uint8)
    packed = torch.ops.aten._convert_weight_to_int4pack(w, 8)
    scales = torch.full((k // 128, n, 2), 1 / (4.6 * math.sqrt(k)), device=DEVICE, dtype=DTYPE)
    scales[..., 1] = 0
    return lambda x: torch.ops.aten._weight_int4pack_mm(x, packed, 128, scales)


def bitsandbytes(n: int, k: int) -> Product:
    """bitsandbytes' NF4, in blocks of 128."""
    import bitsandbytes as bnb

    w = torch.empty(n, k, device=DEVICE, dtype=DTYPE).normal_(0, k**-0.5)
    packed, state = bnb.functional.quantize_4bit(w, blocksize=128, quant_type="nf4")
    return lambda x: bnb.matmul_4bit(x, packed.t(), quant_state=state)


PEERS: dict[str, Callable[[int, int], Product]] = {"bf16": bf16, "tinygemm": tinygemm, "bitsandbytes": bitsandbytes}


def product(kind: str, shape: Shape, name: str) -> Product:
    """A product of a layer, or the head, by the name in `Shape.products`."""
    n, k, epilogue = shape.products()[name]
    if kind in OURS:
        found: Product = ours(kind, n, k, epilogue)
        return found
    call = PEERS[kind](n, k)
    return (lambda x: silu_mul(call(x), shape.feed)) if epilogue else call


def compile_ahead(jobs: list[tuple[str, Shape, str, int]], report: Callable[[str], None]) -> None:
    """Fills the cache of kernels for (kind, shape, name, rows), in as many processes as there are processors."""
    if not ON_GPU or not jobs:
        return
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(jobs)), get_context("spawn")) as pool:
        for done in as_completed([pool.submit(_compile, *job) for job in jobs]):
            if done.result():
                report(done.result())


def _compile(kind: str, shape: Shape, name: str, rows: int) -> str:
    n, k, epilogue = shape.products()[name]
    try:
        torch.set_num_threads(1)
        with torch.no_grad():
            ours(kind, n, k, epilogue)(torch.zeros(rows, k, device=DEVICE, dtype=DTYPE))
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception as error:  # the kind's turn will say it again, and others go on
        return f"{kind} {name} M = {rows}: {type(error).__name__}: {str(error)[:200]}"
    return ""


def error_of(kind: str, shape: Shape, rows: int) -> float:
    """The relative error of a product against float64 with what its weights mean; y is poisoned by a NaN before."""
    n, k, _ = shape.products()["o"]
    module = ours(kind, n, k, None)
    x = torch.randn(rows, k, device=DEVICE, dtype=DTYPE)
    torch.full((rows, n), math.nan, device=DEVICE, dtype=DTYPE)  # memory that y may get
    y = module(x).double()
    meant = x
    if OURS[kind][2]:
        from lowlp.ops.activations import quantize_activations

        meant = torch.from_numpy(np.asarray(quantize_activations(x.cpu(), OURS[kind][2]).dequantize())).to(DEVICE)
    wanted = meant.double() @ module.dequantize().double().T
    return float((y - wanted).norm() / wanted.norm())
