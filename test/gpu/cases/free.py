"""Kernels that name no layout: products, with stages and without, by warps and by warpgroups, and attention."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lowlp
from cases.case import Case
from lowlp.packing import pack

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from free_kernels import attention, packed_product, plain_product

HALF_TOLERANCE = 2e-3


def plain_case(
    arch: str, name: str, stages: int, *, transposed: bool, unit: str = "warp", bn: int = 64, bk: int = 64
) -> Case:
    """With edges in all three dimensions; `bn` and `bk` of 128 make rows of stages of two panels."""
    m, n, k = 1000, 712, 520
    random = np.random.default_rng(1)
    a = random.standard_normal((m, k)).astype(np.float16)
    b = random.standard_normal((n, k) if transposed else (k, n)).astype(np.float16)
    bias = random.standard_normal(n).astype(np.float32)
    kernel = plain_product(stages, transposed=transposed, matrix_unit=unit, bn=bn, bk=bk)
    wanted = a.astype(np.float64) @ (b.T if transposed else b).astype(np.float64) / 2 + bias
    arguments = {"a": a, "b": b, "bias": bias, "c": np.zeros((m, n), np.float16), "m": m, "n": n, "k": k}
    return Case(f"free_{name}", lowlp.compile(kernel, arch), arguments, "c", wanted, HALF_TOLERANCE)


def packed_case(arch: str) -> Case:
    m, n, k, group = 37, 512, 1024, 128
    random = np.random.default_rng(2)
    codes = random.integers(-8, 8, (n, k))
    scales = random.uniform(0.5, 2, (k // group, n)).astype(np.float16)
    x = random.standard_normal((m, k)).astype(np.float16)
    weights = codes * np.repeat(scales.T.astype(np.float64), group, axis=1)
    arguments = {
        "w": pack((codes & 15).astype(np.uint8), group, "int4", "f16"),
        "s": scales,
        "x": x,
        "y": np.zeros((m, n), np.float16),
        "m": m,
    }
    kernel = lowlp.compile(packed_product(n, k, group, 3), arch)
    return Case("free_packed", kernel, arguments, "y", x.astype(np.float64) @ weights.T, HALF_TOLERANCE)


def attention_case(arch: str) -> Case:
    n = 1003
    random = np.random.default_rng(3)
    q, k, v = (random.standard_normal((rows, 64)).astype(np.float16) for rows in (64, n, n))
    scores = q.astype(np.float64) @ k.astype(np.float64).T / 8
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    wanted = powers @ v.astype(np.float64) / powers.sum(axis=1, keepdims=True)
    arguments = {"q": q, "k": k, "v": v, "o": np.zeros((64, 64), np.float16), "n": n}
    return Case("free_attention", lowlp.compile(attention(3), arch), arguments, "o", wanted, HALF_TOLERANCE)


def cases(arch: str) -> Iterator[Case]:
    for transposed in (False, True):
        way = "transposed" if transposed else "plain"
        for stages in (0, 3):
            yield plain_case(arch, f"{way}_{stages}", stages, transposed=transposed)
        yield plain_case(arch, f"{way}_panels", 3, transposed=transposed, bn=128, bk=128 if transposed else 64)
    if arch == "sm_90a":
        for bk in (64, 128):
            yield plain_case(arch, f"warpgroup_{bk}", 3, transposed=True, unit="warpgroup", bk=bk)
    yield packed_case(arch)
    yield attention_case(arch)
