"""Figures of the Tilus paper."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator

import numpy as np

import lowlp
from cases.case import EXAMPLES, Case
from lowlp.compiler import compilation


def figures_2_and_8(arch: str) -> Iterator[Case]:
    """Figures 8 and 2 of the Tilus paper, the second on what the first makes."""
    rng = np.random.default_rng(0)
    codes = rng.integers(-32, 32, (1024, 1024))
    bits = ((codes[..., None] & 63) >> np.arange(6)) & 1
    b = np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little")
    transform = (EXAMPLES / "transform_b.mlir").read_text()
    transformed = np.zeros(64 * 128 * 96, np.uint8)
    compilation.compile_cpu(transform)(b, transformed)
    arguments = {"b": b, "transformed_b": np.zeros_like(transformed)}
    yield Case("transform_b", lowlp.compile(transform, arch), arguments, "transformed_b", transformed, 0.0)

    a = rng.standard_normal((1024, 1024)).astype(np.float16)
    wanted = a.astype(np.float64) @ codes.astype(np.float64)
    arguments = {"a": a, "transformed_b": transformed, "c": np.zeros((1024, 1024), np.float16)}
    yield Case("fig2", lowlp.compile((EXAMPLES / "fig2.mlir").read_text(), arch), arguments, "c", wanted, 2e-3)


def figure14(arch: str) -> Iterator[Case]:
    """Figure 14 of the Tilus paper: shared memory, swizzled, and asynchronous copies."""
    sys.path.insert(0, str(EXAMPLES))
    fig14 = importlib.import_module("fig14")
    m, n, k = 48, 1024, 2048
    a = np.random.default_rng(14).standard_normal((m, k)).astype(np.float16)
    for dtype in ("int6", "uint6", "uint2", "f4e2m1", "f8e4m3"):
        codes = fig14.random_codes(k, n, dtype)
        kernel = lowlp.compile(fig14.make_matmul(m, n, k, dtype), arch)
        arguments = {"a": a, "transformed_b": fig14.transform(codes, dtype), "c": np.zeros((m, n), np.float16)}
        wanted = a.astype(np.float64) @ lowlp.dtype(dtype).decode(codes).astype(np.float64)
        yield Case(f"fig14_{dtype}", kernel, arguments, "c", wanted, 2e-3, {"dtype": dtype, "shape": [m, n, k]})


def cases(arch: str) -> Iterator[Case]:
    yield from figures_2_and_8(arch)
    yield from figure14(arch)
