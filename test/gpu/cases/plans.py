"""Decode plans: every code at every place, for every type that f16 or bf16 holds, by `mma.sync` with x = I."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import lowlp
from cases.case import Case
from lowlp.compiler.targets import target

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from packed_products import (
    ACTIVATIONS,
    packed_product,
    packed_weights,
    valid_codes,
    values_of,
    warpgroup_product,
)
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

    # The same packed words by `mma.sync` with 8 rows of x, and by `wgmma`, where there is that, with 128.
    has_wgmma = target(arch).instructions["wgmma.mma_async"]
    random = np.random.default_rng(5)
    for weight in ("uint1", "uint3", "uint4", "uint6", "uint8", "f6e3m2"):
        codes = random.choice(valid_codes(weight), (512, 1024))
        packed = packed_weights(codes, weight, "f16")
        for name, m, program in (
            ("mma", 8, packed_product(512, 1024, 8, weight, "f16")),
            ("wgmma", 128, warpgroup_product(512, 1024, weight, "f16")),
        ):
            if name == "wgmma" and not has_wgmma:
                continue
            x = random.standard_normal((m, 1024)).astype(np.float16)
            wanted = x.astype(np.float64) @ values_of(codes, weight).T
            kernel = lowlp.compile(program, arch)
            assert "spilled bytes per thread 0" in kernel.report()
            arguments = {"x": x, "weights": packed, "y": np.zeros((m, 512), np.float32)}
            yield Case(f"{name}_{weight}", kernel, arguments, "y", wanted, 1e-5, {"codec": weight})
