"""Products whose accumulators are scaled in place of their weights."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lowlp
from cases.case import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from folded_products import CASES, K, N, operands, product
from packed_products import ACTIVATIONS

# Of f32 sums of up to 256 products, whose offsets may cancel.
TOLERANCE = 3e-6


def cases(arch: str) -> Iterator[Case]:
    for weight, activation, form in CASES:
        given, values = operands(weight, activation, form)
        x = np.random.default_rng(5).standard_normal((21, K)).astype(ACTIVATIONS[activation])
        names = ("weights", "scales", "zeros")[: len(given)]
        y = np.zeros((len(x), N), np.float32)
        arguments = {"x": x, **dict(zip(names, given, strict=True)), "y": y, "m": len(x)}
        kernel = lowlp.compile(product(weight, activation, form), arch)
        yield Case(
            f"folded_{weight}_{activation}_{form}", kernel, arguments, "y", x.astype(np.float64) @ values.T, TOLERANCE
        )
