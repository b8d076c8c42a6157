"""Products with every kind of codebooks on a GPU: numbers of rows, activations, groups, shapes with tails, epilogues.

A seeded sample; with LOWLP_WHOLE_MATRIX=1 every codec with every number of rows, in a random choice of the others."""

from __future__ import annotations

import itertools
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lowlp

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from test_linear_codebooks import LIMITS, vectors_of, weights  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
CODECS = (
    "vec8:1x8:f16",
    "vec8:2x8:f16",
    "vec8:1x16:f16",
    "vec8:2x12:f16",
    "vec8:2x12:int8",
    "vec8:2x12:f8e4m3",
    "vec8:2x12:f16:32x*",
    "vec8:2x12+1:f16",
    "vec8:2x12+1:int8",
    "vec8:2x12+1:f8e4m3:32x*",
    "vec8:2x12+1:f16:32x*",
    "vec4:1x10+1:f8e4m3",
    "vec2:1x12+1:f16",
    "vec4:1x8:f16:256x256",
    "vec4:1x8:int8:32x256",
    "vec4:1x10:f16",
    "vec2:1x8:f16",
    "vec2:4x4:bf16",
    "vec16:2x8:bf16",
    "vec16:1x4:int8",
    "e8p",
    "e8p+e81b",
    "e8p+e8p",
)
ROWS = (1, 2, 7, 8, 9, 16, 17, 32, 40, 64, 65, 130, 300)
SHAPES = ((64, 512), (1024, 1024), (272, 520), (520, 2048), (300, 776), (2056, 4096))
ALL = random.Random(76).sample(list(itertools.product(CODECS, ROWS)), len(CODECS) * len(ROWS))
SAMPLE = ALL if os.environ.get("LOWLP_WHOLE_MATRIX") else ALL[:8]


@pytest.mark.parametrize(("codec", "m"), SAMPLE)
def test_products(codec: str, m: int) -> None:
    """Against float64 with the dequantised weights, and three times the same."""
    drawn, random_numbers = random.Random(f"{codec} {m}"), np.random.default_rng(m)
    vectors, (n, k) = vectors_of(codec), drawn.choice(SHAPES)
    k -= k % (16 * vectors.vector if vectors.block else vectors.vector)
    group = k if drawn.random() < 0.5 or k % 128 else 128
    activation, epilogue = drawn.choice(["f16", "bf16"]), drawn.choice([None, None, "gelu", "silu_mul"])
    if epilogue == "silu_mul" and n % 64:
        epilogue = None
    if vectors.block:
        n = -(-n // 256) * 256
    if vectors.lattices:
        group = k
    qw = weights(random_numbers, vectors, n, k, group, np.float32 if vectors.lattices else np.float16)
    element = torch.float16 if activation == "f16" else torch.bfloat16
    x = torch.from_numpy(random_numbers.standard_normal((m, k))).to("cuda", element)
    bias = torch.from_numpy(random_numbers.standard_normal(n)).to("cuda", torch.float32)
    options: dict[str, Any] = {"bias": bias, "out_dtype": "f32", **({"epilogue": epilogue} if epilogue else {})}
    found = [lowlp.linear(x, qw, **options) for _ in range(3)]
    y = x.double() @ torch.from_numpy(qw.dequantize().astype(np.float64)).cuda().T + bias
    if epilogue == "gelu":
        y = torch.nn.functional.gelu(y)
    elif epilogue:
        gate, up = y.chunk(2, dim=1)
        y = torch.nn.functional.silu(gate) * up
    assert float((found[0] - y).norm()) <= LIMITS[activation] * float(y.norm())
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
