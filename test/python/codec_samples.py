"""Quantised tensors of every kind at random, and their meaning computed slowly: for tests of codecs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from lowlp.numeric.dtypes import DType, all_dtypes
from lowlp.weights.quantized_tensor import QuantizedTensor

CODE_TYPES = [t for t in all_dtypes() if t.bits <= 8]
SCALES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "e8m0": ml_dtypes.float8_e8m0fnu,
    "e4m3": ml_dtypes.float8_e4m3fn,
}
EXTRAS = ["", "integer zeros", "float zeros", "offsets", "scale2", "zeros and scale2", "row scale2"]
TABLES = ["", "tensor", "channel", "group"]


def finite_codes(t: DType) -> Any:
    """Every code that means a number."""
    every = np.arange(1 << t.bits, dtype=np.uint8)
    return every[np.isfinite(t.decode(every))]


def random_tensor(
    rng: np.random.Generator,
    t: DType,
    n: int,
    groups: int,
    size: int,
    scale: str = "f16",
    extra: str = "",
    table: str = "",
    group: str = "",
) -> QuantizedTensor:
    """Codes, scales and the rest drawn at random.

    table  '', or the scope of tables of 2**t.bits values
    group  '', 'channel' or 'tensor'; `groups` is then 1
    """
    groups = 1 if group else groups
    per_group = (1, 1) if group == "tensor" else (n, groups)
    more: dict[str, Any] = {}
    if table:
        shape = {"tensor": (), "channel": (n,), "group": (n, groups)}[table]
        more["lut"] = rng.normal(size=(*shape, 1 << t.bits)).astype(rng.choice([np.float16, np.float32]))
        codes = rng.integers(0, 1 << t.bits, (n, groups * size))
    else:
        more["dtype"] = t
        codes = rng.choice(finite_codes(t), (n, groups * size))
    if "zeros" in extra and t.is_integer and not table:
        zeros = rng.uniform(-300, 300, per_group)
        more["zeros"] = zeros.astype(rng.choice([np.float16, np.float32]) if extra == "float zeros" else np.int16)
    if extra == "offsets":
        more["offsets"] = rng.normal(0, 3, per_group).astype(rng.choice([np.float16, np.float32]))
    if "scale2" in extra:
        more["scale2"] = rng.uniform(0.001, 2, (n,) if "row" in extra else ())
    scales = rng.uniform(0.01, 2, per_group) * (1 if scale == "e8m0" else rng.choice([-1, 1], per_group))
    return QuantizedTensor(
        codes.astype(np.uint8),
        scales=scales.astype(np.float32).astype(SCALES[scale]),
        group_size=(group if group == "tensor" else None) if group else size,
        **more,
    )


def recomputed(q: QuantizedTensor) -> Any:
    """The definition a step at a time in float64, each rounded to float32: sums and products of two float32 are exact
    or rounded once before that, which changes nothing."""

    def rounded(values: Any) -> Any:
        with np.errstate(over="ignore"):
            return values.astype(np.float32).astype(np.float64)

    n, k = q.shape

    def spread(part: Any) -> Any:
        groups = np.broadcast_to(part.astype(np.float64), (n, k // q.group_size))
        return np.repeat(groups, q.group_size, axis=1)

    if q.lut is None:
        values = q.dtype.decode(q.codes).astype(np.float64)
    else:
        values = np.empty((n, k))
        for row in range(n):
            for column in range(k):
                place = {1: (), 2: (row,), 3: (row, column // q.group_size)}[q.lut.ndim]
                values[row, column] = q.lut[place][q.codes[row, column]]
    if q.zeros is not None:
        values = rounded(values - spread(q.zeros))
    values = rounded(spread(q.scales) * values)
    if q.scale2 is not None:
        values = rounded(np.reshape(q.scale2, (-1, 1)).astype(np.float64) * values)
    return values if q.offsets is None else rounded(values + spread(q.offsets))
