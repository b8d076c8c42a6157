"""Softmax and RMSNorm."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import EXAMPLES, Case


def cases(arch: str) -> Iterator[Case]:
    """Programs that reduce rows, with one row and several rows a warp."""
    rng = np.random.default_rng(1)
    sys.path.insert(0, str(EXAMPLES))
    make_softmax = importlib.import_module("softmax").make_softmax
    make_rmsnorm = importlib.import_module("rmsnorm").make_rmsnorm
    w = rng.uniform(0.5, 1.5, 1000).astype(np.float16)
    x = rng.standard_normal((37, 1000)).astype(np.float16)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    softmax = powers / powers.sum(axis=1, keepdims=True)
    rmsnorm = wide * w / np.sqrt(np.mean(wide**2, axis=1, keepdims=True) + 1e-5)
    for count in (1, 8):
        arguments: dict[str, Any] = {"x": x, "y": np.zeros_like(x), "m": 37}
        kernel = lowlp.compile(make_softmax(1000, count), arch)
        yield Case(f"softmax_{count}", kernel, arguments, "y", softmax, 1e-3)
        arguments = {"x": x, "w": w, "y": np.zeros_like(x), "m": 37}
        kernel = lowlp.compile(make_rmsnorm(1000, count), arch)
        yield Case(f"rmsnorm_{count}", kernel, arguments, "y", rmsnorm, 1e-3)
