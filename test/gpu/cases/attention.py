"""Decode attention: the two kernels of examples/flash_decoding.py, each for itself."""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import lowlp
from cases.case import EXAMPLES, Case

SHAPES = [  # batch, heads, group, capacity, d, splits
    (2, 2, 4, 200, 64, 3),
    (1, 2, 16, 64, 128, 2),
    (4, 1, 7, 1000, 128, 8),
    (8, 8, 4, 4096, 128, 8),
]

KEYS = 32  # taken at once by the first candidate, which is the one that is compiled


def partial_results(
    example: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray, lengths: np.ndarray, splits: int
) -> list[np.ndarray]:
    """What the first kernel leaves, in float64: weighted values, the largest score and the sum of the powers."""
    batch, heads, group, d = q.shape
    capacity = k.shape[2]
    part = math.ceil(capacity / splits / KEYS) * KEYS
    sums, largest, totals = example.make_partials(batch, heads, group, d, splits)
    sums, largest, totals = (array.astype(np.float64) for array in (sums, largest, totals))
    for split in range(splits):
        inside = slice(split * part, (split + 1) * part)
        keys, values = (x[:, :, inside].astype(np.float64) for x in (k, v))
        scores = q.astype(np.float64) @ keys.swapaxes(-1, -2) * math.log2(math.e) / math.sqrt(d)
        is_key = np.arange(capacity)[inside] < lengths[:, None, None, None]
        scores = np.where(is_key, scores, -np.inf)
        top = np.maximum(scores.max(axis=-1, keepdims=True, initial=-np.inf), example.LOWEST)
        powers = np.exp2(scores - top)
        sums[:, :, split] = powers @ values
        largest[:, :, split], totals[:, :, split] = top, powers.sum(axis=-1, keepdims=True)
    return [sums, largest, totals]


def cases(arch: str) -> Iterator[Case]:
    """Sequences that end within a part, and before it; the last shape is of a size that is worth timing."""
    sys.path.insert(0, str(EXAMPLES))
    example = importlib.import_module("flash_decoding")
    for batch, heads, group, capacity, d, splits in SHAPES:
        sizes = (batch, heads, group)
        q, k, v, lengths = example.make_inputs(*sizes, capacity, d)
        wanted = partial_results(example, q, k, v, lengths, splits)
        names = ("partial", "partial_largest", "partial_total")
        rooms = dict(zip(names, example.make_partials(*sizes, d, splits), strict=True))
        facts = {"shape": [batch * heads, group, capacity, d, splits]}
        kernel = lowlp.compile(example.make_attention(*sizes, capacity, d, splits).kernel_for(), arch)
        arguments: dict[str, Any] = {"q": q, "k": k, "v": v, "lengths": lengths, **rooms}
        text = f"{batch}_{heads}_{group}_{capacity}_{d}_{splits}"
        for name, array in zip(names, wanted, strict=True):
            yield Case(f"attention_{text}_{name}", kernel, arguments, name, array, 2e-3, facts)
        kernel = lowlp.compile(example.make_combine(*sizes, d, splits), arch)
        given = {name: array.astype(np.float32) for name, array in zip(names, wanted, strict=True)}
        arguments = {**given, "o": np.zeros(q.shape, np.float16)}
        result = example.reference(q, k, v, lengths)
        yield Case(f"combine_{text}", kernel, arguments, "o", result, 1e-3, facts)
