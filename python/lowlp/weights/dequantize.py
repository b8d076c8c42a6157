"""The exact meaning of packed weights: of all rows, of a range of them or of single ones, a band at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray
from lowlp.weights.meaning import Meaning
from lowlp.weights.packing import stored_form
from lowlp.weights.second_scales import SecondScale
from lowlp.weights.vector_values import fill_with_vectors, tables_of_books
from lowlp.weights.words import Words, WordsForm
from lowlp_runtime.errors import LowlpValueError

# Elements that are worked on at a time: few enough to stay in a core's cache as float32.
BLOCK_ELEMENTS = 1 << 18


def values_of_rows(form: WordsForm, words: Words, meaning: Meaning, rows: slice) -> NDArray[np.float32]:
    """float32 [rows, K] of a range of all rows, as `QuantizedTensor.dequantize` says."""
    result = np.empty((rows.stop - rows.start, form.k), np.float32)
    tables = _tables_of(meaning)
    for band in form.bands(BLOCK_ELEMENTS, rows):
        part = result[band.start - rows.start : band.stop - rows.start]
        _fill(part, form.codes(words, band, num_threads=1), meaning, tables, band)
    return result


def values_at(form: WordsForm, words: Words, meaning: Meaning, rows: NDArray[np.intp]) -> NDArray[np.float32]:
    """The same of rows by their numbers, in this order; each unit that one of them is in is unpacked once."""
    result = np.empty((rows.size, form.k), np.float32)
    units, at = np.unique(rows // form.unit_rows, return_inverse=True)
    order = np.argsort(at, kind="stable")
    at_once = max(1, BLOCK_ELEMENTS // (form.k * form.unit_rows))
    for first in range(0, units.size, at_once):
        start, stop = np.searchsorted(at[order], (first, first + at_once))
        taken = order[start:stop]
        codes = form.codes_of_units(words, units[first : first + at_once])
        codes = codes[(at[taken] - first) * form.unit_rows + rows[taken] % form.unit_rows]
        part = np.empty((taken.size, form.k), np.float32)
        meaning_of_part = meaning.at_rows(rows[taken])
        _fill(part, codes, meaning_of_part, _tables_of(meaning_of_part), slice(0, taken.size))
        result[taken] = part
    return result


def _tables_of(meaning: Meaning) -> list[AnyArray]:
    """The values that codes stand for, unscaled, in float32: a list of one table, or one for each book."""
    return [_unscaled(meaning)] if meaning.vectors is None else tables_of_books(meaning, meaning.vectors)


def _fill(result: NDArray[np.float32], codes: AnyArray, meaning: Meaning, tables: list[AnyArray], rows: slice) -> None:
    """The values of the codes of these rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if meaning.vectors is None:
            # A code of b bits is within the table; 'clip' spares numpy its own check.
            np.take(tables[0], _places(meaning, codes, rows), out=result, mode="clip")
        else:
            fill_with_vectors(result, codes, meaning, meaning.vectors, tables, rows)
        _scale(result, meaning, rows)
    if meaning.permutation is not None:
        result[...] = result[:, np.argsort(meaning.permutation)]


def _scale(values: NDArray[np.float32], meaning: Meaning, rows: slice) -> None:
    groups = values.shape[1] // meaning.group_size
    grouped = values.reshape(values.shape[0], groups, meaning.group_size)
    if meaning.zeros is not None:
        grouped -= meaning.factors("zeros", groups, rows)[:, :, None]
    grouped *= meaning.factors("scales", groups, rows)[:, :, None]
    if meaning.scale2 is not None:
        grouped *= _second_scale(meaning.scale2, rows)
    if meaning.offsets is not None:
        grouped += meaning.factors("offsets", groups, rows)[:, :, None]


def sums_of_codes(form: WordsForm, words: Words, meaning: Meaning) -> NDArray[np.int32]:
    """int32 [rows, K / group_size], read-only, as `QuantizedTensor.code_sums` says. Raises `LowlpValueError`."""
    if meaning.vectors is not None or meaning.lut is not None or meaning.dtype.is_float:
        raise LowlpValueError(f"code_sums: only codes of integers and bipolar types have sums, got {form.code}")
    groups, flip = form.k // meaning.group_size, np.uint8(stored_form(form.code)[1])
    result = np.empty((form.rows, groups), np.int32)
    for rows in form.bands(BLOCK_ELEMENTS):
        stored = form.codes(words, rows, num_threads=1) ^ flip
        stored.reshape(len(stored), groups, meaning.group_size).sum(axis=2, dtype=np.int32, out=result[rows])
    result.setflags(write=False)
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
