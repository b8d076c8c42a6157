"""What a checkpoint's weights are, found without reading their codes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lowlp.checkpoints.checkpoint import Checkpoint
from lowlp.numeric.dtypes import DType
from lowlp.weights.meaning import Meaning
from lowlp.weights.words import WordsForm, form_for

_BAND_NUMBERS = 1 << 20


@dataclass(frozen=True)
class LayerSummary:
    """Weights in a few numbers.

    name, shape, format  as `Layer` has them
    codec         as text, 'int4 g128 f16'
    bits          of a weight, with all that groups have, and padding
    nbytes        that they take in memory, packed
    stored_bytes  that they take in the file
    error_bound   how far a weight within the range of the codes was moved by rounding at most: half of the largest
                  distance between numbers of its group. None for codebooks, which have no such bound
    """

    name: str
    shape: tuple[int, ...]
    format: str
    codec: str
    bits: float
    nbytes: int
    stored_bytes: int
    error_bound: float | None


def summaries(checkpoint: Checkpoint) -> Iterator[LayerSummary]:
    """One for each quantised layer, in their order; what groups have is read, and codes are not. Raises
    `CheckpointError`."""
    for name, layer in checkpoint.layers.items():
        meaning = layer.meaning()
        form = form_for(layer.shape, meaning.group_size, meaning.code, None)
        nbytes = 4 * math.prod(form.shape) + sum(array.nbytes for _, array in meaning.arrays())
        yield LayerSummary(
            name,
            layer.shape,
            layer.format,
            str(meaning.codec),
            8 * nbytes / math.prod(layer.shape),
            nbytes,
            checkpoint.stored_bytes(name),
            error_bound(meaning, form),
        )
        checkpoint.release(name)


def error_bound(meaning: Meaning, form: WordsForm) -> float | None:
    """As `LayerSummary.error_bound`."""
    if meaning.vectors is not None:
        return None
    groups = form.k // meaning.group_size
    largest = 0.0
    rows = max(1, _BAND_NUMBERS // groups)
    for start in range(0, form.rows, rows):
        band = slice(start, min(start + rows, form.rows))
        scales = np.abs(meaning.factors("scales", groups, band)).max(axis=1)
        if meaning.scale2 is not None:
            scales = scales * np.abs(np.broadcast_to(meaning.scale2, (form.rows,))[band][: scales.size])
        largest = max(largest, float(scales.max()))
    return largest * _largest_gap(meaning) / 2


def _largest_gap(meaning: Meaning) -> float:
    """The largest distance between neighbouring numbers that codes mean, before scales."""
    if meaning.lut is not None:
        return float(np.diff(np.sort(meaning.lut.astype(np.float64), axis=-1), axis=-1).max())
    assert isinstance(meaning.dtype, DType)
    numbers = meaning.dtype.decode(np.arange(1 << meaning.dtype.bits, dtype=np.uint8)).astype(np.float64)
    return float(np.diff(np.unique(numbers[np.isfinite(numbers)])).max())
