"""Kernels of `linear` launched on the GPU as `linear_forms.Product` divides them, into results that are poisoned first.

Needs a GPU: modules that import it are skipped where there is none.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import lowlp
from lowlp.compiler.architectures import current_arch
from lowlp.ops.linear_kernels import gpu_kernel
from lowlp.ops.linear_launch import columns_of_y, device_operands
from lowlp_runtime import launch
from lowlp_runtime.device import multiprocessors

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from linear_forms import Product

ARCH = current_arch()
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}


def operands_of(product: Product, m: int, device: torch.device) -> dict[str, Any]:
    """What the kernel for m rows takes of the weights, on the GPU; the same that `lowlp.linear` keeps."""
    return device_operands(product.weights, product.activation, device, product.epilogue, product.schedule(m, ARCH))


@functools.lru_cache(maxsize=8)
def random_x(k: int, rows: int, activation: str = "f16") -> torch.Tensor:
    """Normal numbers, the same at every call."""
    generator = torch.Generator("cuda").manual_seed(k)
    return torch.randn(rows, k, device="cuda", generator=generator).to(TYPES[activation])


def exact_product(product: Product) -> torch.Tensor:
    """x @ w^T in float64, for the rows of `random_x` of which the product has most."""
    return _exact_product(replace(product, form="", follows=False))


@functools.lru_cache(maxsize=2)
def _exact_product(product: Product) -> torch.Tensor:
    x = random_x(product.k, max(product.rows), product.activation).double()
    return x @ torch.from_numpy(product.weights.dequantize()).cuda().double().T


def poisoned(product: Product, *extents: int) -> torch.Tensor:
    """NaN, of [extents, columns of y]."""
    shape = (*extents, columns_of_y(product.weights, product.epilogue))
    return torch.full(shape, float("nan"), device="cuda", dtype=TYPES[product.out or product.activation])


def launch_of(product: Product, x: torch.Tensor, *added: torch.Tensor) -> Callable[..., None]:
    """What launches the product's kernel for the rows of x, which lie one after the other, at little cost to the host:
    called with the result, and a stream, or None for the current one.

    added  the bias and the residual, those that the product has
    """
    operands, size = operands_of(product, x.shape[0], x.device), multiprocessors(torch.cuda.current_device())
    binary = gpu_kernel(*product.kernel(x.shape[0], ARCH)).binary
    kept = {**operands, **product.numbers(x.shape[0], ARCH, size)}
    kept.update(zip([name for name in ("bias", "residual") if getattr(product, name)], added, strict=True))

    def run(y: torch.Tensor, stream: Any = None) -> None:
        launch(binary, {"x": x, "y": y, **kept}, stream)

    return run


def multiply(product: Product, x: torch.Tensor, *added: torch.Tensor) -> torch.Tensor:
    """The result of one launch, which was NaN before."""
    y = poisoned(product, x.shape[0])
    launch_of(product, x, *added)(y)
    return y


def relative_error(y: torch.Tensor, exact: torch.Tensor) -> float:
    """The Frobenius error against float64; NaN where y has one."""
    return float(torch.linalg.norm(y.double() - exact) / torch.linalg.norm(exact))


def check_chain(chain: Callable[[], torch.Tensor], times: int = 5) -> None:
    """A chain of products, each of which reads what the one before it has written: launches that begin early, and a
    graph of them, give what launches one after the other do, to the bit, each so many times."""
    with lowlp.no_dependent_launch():
        wanted = chain()
    torch.cuda.synchronize()
    assert torch.isfinite(wanted).all()
    for _ in range(times):
        assert torch.equal(chain(), wanted)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = chain()
    for _ in range(times):
        captured.zero_()
        graph.replay()
        assert torch.equal(captured, wanted)
