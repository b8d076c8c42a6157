"""How often entries of large books are accessed: as a sample of codes shows it, and as callers say it.

Where entries get about as many accesses each, or the first ones most, kernels for few rows keep the first in shared
memory; else L1 finds by itself which ones to keep (docs/adr/0115)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.vectors import Vectors

LEAST_BITS: Final = 13
"""Of codes whose books may not fit in shared memory."""
SAMPLE: Final = 1 << 18
"""Codes of a book that are looked at."""
_SKEWED: Final = 4.0
"""How many times as often as of codes all alike two are the same."""
_FIRST: Final = 8
_SHARE: Final = 1.5
"""The first entries, one of so many, get so many times their share where entries are in the order of their accesses."""


def are_skewed(codes: NDArray[np.unsignedinteger], entries: int) -> bool:
    """Whether some entries get many of the accesses, and these are not the first.

    codes  unsigned integers [rows, codes, R] of R books
    """
    for book in range(codes.shape[-1]):
        counts = np.bincount(codes[..., book].ravel(), minlength=entries).astype(np.float64)
        total = counts.sum()
        alike = (counts * (counts - 1)).sum() * entries / max(1.0, total * (total - 1))
        if alike >= _SKEWED and counts[: entries // _FIRST].sum() < _SHARE * total / _FIRST:
            return True
    return False


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
