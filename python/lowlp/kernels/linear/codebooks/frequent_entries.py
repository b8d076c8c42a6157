"""How many entries of large books are kept in shared memory: the first, where entries come in the order of their
accesses (`lowlp.weights.codebook_order`) and these get many of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.vectors import Vectors

_KEPT_BYTES: Final = 128 << 10
"""Of shared memory, for entries; the rest is for x, and for L1, which has the others."""
_SHARE: Final = 1.5
"""They are kept if they get so many times the accesses of as many entries on average, as `lowlp-place-codebooks` has
it."""
_ENTRY_BYTES: Final = {"f16": 2, "bf16": 2, "int8": 1, "f8e4m3": 1}


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


def hot_entries(vectors: Vectors, frequencies: Sequence[int]) -> int:
    """How many of the first entries are kept in shared memory; 0: those of all places fit, or pay as little."""
    entry_bytes = vectors.vector * _ENTRY_BYTES[str(vectors.entries)] * vectors.books
    entries = 1 << vectors.bits
    kept = _KEPT_BYTES // entry_bytes
    total = sum(frequencies)
    if kept >= entries or total == 0:
        return 0
    return kept if sum(frequencies[:kept]) * entries >= _SHARE * kept * total else 0
