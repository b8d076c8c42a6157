"""Decode plans: every code at every place of a unit, for every type that f16 or bf16 holds, by `mma.sync` with x = I."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lowlp
from cases.case import Case

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from packed_products import ACTIVATIONS, packed_product, packed_weights, values_of
from test_decode_plans import PAIRS, every_code


def cases(arch: str) -> Iterator[Case]:
    for weight, activation in PAIRS:
        codes = every_code(weight, activation)
        factor = lowlp.Codec(lowlp.dtype(weight), "channel").prescale(activation)
        assert factor
        arguments = {
            "x": np.eye(64, dtype=ACTIVATIONS[activation]),
            "weights": packed_weights(codes, weight, activation),
            "y": np.zeros((64, len(codes)), np.float32),
        }
        wanted = (values_of(codes, weight) * factor).T.astype(np.float32)
        kernel = lowlp.compile(packed_product(len(codes), 64, 64, weight, activation), arch)
        yield Case(f"plan_{weight}_{activation}", kernel, arguments, "y", wanted, 0.0, {"codec": weight})
