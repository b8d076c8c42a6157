"""docs/codecs.md: its table of codecs and compute types, and a codec that is added as the page says."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import ml_dtypes
import numpy as np

import lowlp
from lowlp.numeric.codec import COMPUTE_TYPES, Codec
from lowlp.numeric.dtypes import all_dtypes

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "codecs.md").read_text(encoding="utf-8")
START, END = "<!-- pairs: start -->\n", "<!-- pairs: end -->"


def codec_of(table: np.ndarray) -> Codec:
    """The codec of weights with this table."""
    return lowlp.QuantizedTensor(np.zeros((1, 1), np.uint8), lut=table, scales=np.ones((1, 1), np.float16)).codec


def cell(codec: Codec, compute: str) -> str:
    """How a compute type holds a codec's values: as they are, times a power of two, or not."""
    factor = codec.prescale(compute)
    if factor is None:
        return "-"
    return "yes" if factor == 1 else f"times 2^{int(math.log2(factor))}"


def pairs_table() -> str:
    """The table in Markdown: neighbours whose cells are the same share a row."""
    codecs = [(t.name, Codec(t, 128)) for t in all_dtypes() if t.bits <= 8]
    codecs += [(f"nf({bits})", codec_of(lowlp.nf(bits))) for bits in range(2, 9)]
    codecs += [(f"nf({bits}).astype(float16)", codec_of(lowlp.nf(bits).astype(np.float16))) for bits in range(2, 9)]
    rows = [(name, tuple(cell(codec, compute) for compute in COMPUTE_TYPES)) for name, codec in codecs]
    lines = [f"| Codes | {' | '.join(COMPUTE_TYPES)} |", "|---" * (len(COMPUTE_TYPES) + 1) + "|"]
    for cells, members in itertools.groupby(rows, key=lambda row: row[1]):
        lines.append(f"| {', '.join(f'`{name}`' for name, _ in members)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_pairs_is_right() -> None:
    table = PAGE.partition(START)[2].partition(END)[0]
    assert table == pairs_table(), f"docs/codecs.md should have\n{pairs_table()}"


def test_a_codec_is_added_in_a_few_lines() -> None:
    """Additive powers of two (APoT), 4 bits: a sign and a sum of two powers, which no type of lowlp has. Nothing but
    what stands here knows of it, and it is quantised, packed, compiled and multiplied like any other."""
    sums = [a + b for a in (0, 2**0, 2**-2, 2**-4) for b in (0, 2**-1)]
    apot = np.array([sign * value for sign in (1, -1) for value in sums], np.float16)
    w = np.random.default_rng(0).normal(0, 0.02, (16, 128)).astype(np.float32)
    qw = lowlp.quantize(w, lut=apot, group_size=64)
    assert qw.bits == 4
    assert qw.codec.exact_in == ("f16", "bf16", "int8", "f8e4m3")
    # Every weight is a value of the table times its scale, and no other value is nearer.
    values = np.repeat(qw.scales.astype(np.float32), 64, axis=1)[:, :, None] * apot.astype(np.float32)
    found = qw.dequantize()
    assert (found[:, :, None] == values).any(axis=2).all()
    np.testing.assert_allclose(np.abs(found - w), np.abs(values - w[:, :, None]).min(axis=2), rtol=1e-3, atol=1e-7)
    # `linear` multiplies by exactly these numbers, with either type of activations.
    for kind in (np.float16, ml_dtypes.bfloat16):
        y = lowlp.linear(np.eye(128, dtype=kind), qw, out_dtype="f32")
        np.testing.assert_array_equal(y.T, found)
    x = np.random.default_rng(1).normal(size=(3, 128)).astype(np.float16)
    wanted = x.astype(np.float64) @ found.astype(np.float64).T
    assert np.linalg.norm(lowlp.linear(x, qw).astype(np.float64) - wanted) <= 2e-3 * np.linalg.norm(wanted)
    kernel = lowlp.compile_linear(n=16, k=128, weight="lut4", table="tensor", group_size=64)
    assert kernel.description.notes["plan"]["placement"] == "lut4.f16"  # type: ignore[index]
