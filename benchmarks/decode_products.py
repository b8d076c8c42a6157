"""The products of `decode_model.py`, by kind of weights: random codes, made where they are used.

Codes are random bits, and scales such that a product of numbers of variance 1 has variance 1. No matrix is quantised,
which would take minutes and change no time.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from decode_layers import DEVICE, DTYPE, ON_GPU, PagedCaches, Shape, silu_mul

import lowlp
import lowlp.torch

Product = Callable[[torch.Tensor], torch.Tensor]

OURS: dict[str, tuple[str, int | None, str | None]] = {
    "int8": ("int8", 128, None),
    "int4": ("int4", 128, None),
    "int3": ("int3", 128, None),
    "int2": ("int2", 128, None),
    "nf4": ("nf4", 128, None),
    "mxfp4": ("mxfp4", 32, None),
    "2x8": ("aqlm-2x8", None, None),
    "gptvq-2": ("gptvq-2", None, None),
    "quip-4": ("e8p+e8p channel f16", None, None),
    "w8a8": ("int8", None, "int8"),
    "w4a8": ("int4", None, "int8"),
    "w2a2": ("int2", None, "int2"),
}
"""Kind -> the type for `lowlp.quantize`, or a codec; its group; and the type of the activations."""
_NAMED = ("mxfp4", "aqlm-2x8", "gptvq-2")


@functools.cache
def _sample(kind: str, k: int, of: torch.dtype) -> Any:
    """A module of little weights of the kind, for its codec, its family and its table."""
    dtype, group, activation = OURS[kind]
    if " " in dtype:
        return lowlp.torch.Linear(256, 256, dtype, bias=False, dtype=of)
    dense = torch.nn.Linear(k, 256, bias=False, dtype=of)
    dense.weight.data.normal_(generator=torch.Generator().manual_seed(0))
    options = {} if dtype in _NAMED else {"group_size": group}
    dense.to(torch.device(DEVICE, torch.cuda.current_device()) if ON_GPU else "cpu")
    return lowlp.torch.Linear.from_linear(dense, dtype, activation=activation, **options)


def ours(
    kind: str, n: int, k: int, epilogue: str | None, dtype: torch.dtype = DTYPE, batch_invariant: bool | int = False
) -> Any:
    """`lowlp.torch.Linear` with random codes, for x of a type."""
    activation = OURS[kind][2]
    sample = _sample(kind, k if activation else 256, dtype)
    module = lowlp.torch.Linear(
        k,
        n,
        sample.codec,
        bias=False,
        epilogue=epilogue,
        activation=activation,
        batch_invariant=batch_invariant,
        device=DEVICE,
        dtype=dtype,
        family=sample.quantized.family,
    ).eval()
    parts = {part: module.get_buffer(part) for part in module._names}
    parts["packed"].random_(-(2**31), 2**31 - 1)
    rms = 1.0
    if "codebooks" in parts:
        parts["codebooks"].normal_(0, parts["codebooks"].shape[0] ** -0.5 if kind == "2x8" else 1)
    elif "book_scales" in parts:
        # Of lattices: each refines what those before it leave. Their values are about 1.
        parts["book_scales"].copy_(torch.tensor([0.25**number for number in range(len(parts["book_scales"]))]))
    elif "lut" in parts:
        parts["lut"].copy_(sample.get_buffer("lut"))
        rms = float(parts["lut"].float().square().mean().sqrt())
    elif kind == "mxfp4":
        rms = math.sqrt(2 * sum(x * x for x in (0.5, 1, 1.5, 2, 3, 4, 6)) / 16)
    else:
        rms = 2 ** int(OURS[kind][0][-1]) / math.sqrt(12)
    scale = 1 / (rms * math.sqrt(k))
    if parts["scales"].dtype == torch.uint8:
        parts["scales"].fill_(127 + round(math.log2(scale)))
    else:
        parts["scales"].uniform_(0.75 * scale, 1.25 * scale)
    return module


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


Job = tuple[str, Shape, str, int] | tuple[str, Shape, str, int, str, dict[str, Any]]


def compile_ahead(
    jobs: Sequence[Job], of_caches: list[tuple[str, Shape, int, int, int]], report: Callable[[str], None]
) -> None:
    """Fills the cache of kernels for (kind, shape, name, rows), perhaps with the type of sums and options of `ours`,
    and (type of cache, shape, batch, tokens, length), in as many processes as there are processors."""
    if not ON_GPU or not (jobs or of_caches):
        return
    with ProcessPoolExecutor(min(os.cpu_count() or 1, len(jobs) + len(of_caches)), get_context("spawn")) as pool:
        begun = [pool.submit(_compile_cache, *job) for job in of_caches]
        begun += [pool.submit(_compile, *job) for job in jobs]
        for done in as_completed(begun):
            if done.result():
                report(done.result())


def _compile_cache(kv: str, shape: Shape, batch: int, tokens: int, length: int) -> str:
    try:
        torch.set_num_threads(1)
        with torch.no_grad():
            paged = PagedCaches(replace(shape, layers=1), kv, batch, tokens, length if tokens == 1 else tokens)
            q = torch.zeros(batch, shape.heads, tokens, shape.head, device=DEVICE, dtype=DTYPE)
            k, v = torch.zeros(2, batch * tokens, shape.kv_heads, shape.head, device=DEVICE, dtype=DTYPE)
            paged.attend(q, k, v, 0)
        torch.cuda.synchronize()
    except Exception as error:  # the turn of the kind will say it again
        return f"cache {kv} {batch} x {tokens}: {type(error).__name__}: {str(error)[:200]}"
    return ""


def _compile(
    kind: str, shape: Shape, name: str, rows: int, sums: str = "x", options: dict[str, Any] | None = None
) -> str:
    n, k, epilogue = shape.products()[name]
    try:
        torch.set_num_threads(1)
        with torch.no_grad():
            module = ours(kind, n, k, epilogue, **(options or {}))
            module.sums = sums
            module(torch.zeros(rows, k, device=DEVICE, dtype=module.dtype))
        torch.cuda.synchronize()
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
