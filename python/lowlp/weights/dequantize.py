"""The exact meaning of packed weights, a band of rows at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray
from lowlp.weights.meaning import Meaning
from lowlp.weights.second_scales import SecondScale
from lowlp.weights.words import Words, WordsForm

# Elements that are worked on at a time: few enough to stay in a core's cache as float32.
BLOCK_ELEMENTS = 1 << 18


def values_of_words(form: WordsForm, words: Words, meaning: Meaning) -> NDArray[np.float32]:
    """float32 [N, K], or of all rows of [E, N, K], as `QuantizedTensor.dequantize` says."""
    result = np.empty((form.rows, form.k), np.float32)
    table = _unscaled(meaning)
    groups = form.k // meaning.group_size
    inverse = None if meaning.permutation is None else np.argsort(meaning.permutation)
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in form.bands(BLOCK_ELEMENTS):
            values = result[rows]
            places = _places(meaning, form.codes(words, rows, num_threads=1), rows)
            # A code of b bits is within the table; 'clip' spares numpy its own check.
            np.take(table, places, out=values, mode="clip")
            grouped = values.reshape(values.shape[0], groups, meaning.group_size)
            if meaning.zeros is not None:
                grouped -= meaning.factors("zeros", groups, rows)[:, :, None]
            grouped *= meaning.factors("scales", groups, rows)[:, :, None]
            if meaning.scale2 is not None:
                grouped *= _second_scale(meaning.scale2, rows)
            if meaning.offsets is not None:
                grouped += meaning.factors("offsets", groups, rows)[:, :, None]
            if inverse is not None:
                result[rows] = values[:, inverse]
    return result


def _second_scale(scale: SecondScale, rows: slice) -> SecondScale:
    """For these rows, a number or [rows, 1, 1]."""
    return scale[rows, None, None] if isinstance(scale, np.ndarray) else scale


def _unscaled(meaning: Meaning) -> NDArray[np.float32]:
    """The unscaled values by code, of all tables one after the other."""
    if meaning.lut is not None:
        return meaning.lut.astype(np.float32).reshape(-1)
    every = np.arange(1 << meaning.dtype.bits, dtype=np.uint8)
    return np.ascontiguousarray(meaning.dtype.decode(every), np.float32)


def _places(meaning: Meaning, codes: AnyArray, rows: slice) -> AnyArray:
    """Where in `_unscaled` the values of codes of these rows are."""
    if meaning.lut is None or meaning.lut.ndim == 1:
        return codes
    tables_per_row = 1 if meaning.lut.ndim == 2 else meaning.lut.shape[1]
    first = np.arange(rows.start * tables_per_row, rows.stop * tables_per_row, dtype=np.intp) << meaning.dtype.bits
    grouped = codes.reshape(codes.shape[0], tables_per_row, -1)
    places: AnyArray = (grouped + first.reshape(-1, tables_per_row, 1)).reshape(codes.shape)
    return places
