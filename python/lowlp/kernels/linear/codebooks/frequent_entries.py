"""How often entries are accessed, as callers say it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.vectors import Vectors


def checked_frequencies(vectors: Vectors, frequencies: object) -> list[int]:
    """How often each entry is accessed, most first. Raises `LowlpTypeError` and `LowlpValueError`."""
    if isinstance(frequencies, str) or not isinstance(frequencies, Sequence | np.ndarray):
        raise LowlpTypeError(f"frequencies: expected a sequence of ints, got {frequencies!r:.40}")
    counts = np.asarray(frequencies)
    if counts.dtype.kind not in "iu":
        raise LowlpTypeError(f"frequencies: expected ints, got {counts.dtype}")
    if vectors.lattices or vectors.block:
        raise LowlpValueError(f"frequencies: go with books of entries for all weights, not with {vectors}")
    if counts.shape != (1 << vectors.bits,):
        raise LowlpValueError(
            f"frequencies: expected one for each of the {1 << vectors.bits} entries, got shape {list(counts.shape)}"
        )
    if counts.min() < 0 or np.any(np.diff(counts.astype(np.int64)) > 0):
        raise LowlpValueError("frequencies: must not increase nor be negative; `order_by_frequency` orders entries so")
    return [int(count) for count in counts]
