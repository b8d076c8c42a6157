"""The exact meaning of codes of vectors, a band of rows at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.vectors import Vectors, lattice_vectors
from lowlp.weights.codebooks import codes_of_columns
from lowlp.weights.meaning import Meaning
from lowlp.weights.words import Words, WordsForm

# Elements that are worked on at a time: few enough to stay in a core's cache as float32.
_BLOCK_ELEMENTS = 1 << 18


def values_of_vectors(form: WordsForm, words: Words, meaning: Meaning, vectors: Vectors) -> NDArray[np.float32]:
    """float32 [N, K], or of all rows of [E, N, K], as `QuantizedTensor.dequantize` says."""
    result = np.empty((form.rows, form.k), np.float32)
    tables = _tables(meaning, vectors)
    groups = form.k // meaning.group_size
    columns = np.arange(form.k // vectors.vector, dtype=np.intp) * vectors.vector // (meaning.book_columns or form.k)
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in form.bands(_BLOCK_ELEMENTS):
            codes = codes_of_columns(form.codes(words, rows, num_threads=1), vectors)
            blocks = np.arange(rows.start, rows.stop, dtype=np.intp) // (meaning.book_rows or form.rows)
            # The tables of a book, block after block along K and then along N.
            first = blocks[:, None] * (columns[-1] + 1) + columns
            values = result[rows].reshape(codes.shape[0], -1, vectors.vector)
            for book, table in enumerate(tables):
                places = codes[..., book] + (first << vectors.bits)
                if book == 0:
                    np.take(table, places, axis=0, out=values, mode="clip")
                else:
                    values += np.take(table, places, axis=0, mode="clip")
            grouped = result[rows].reshape(codes.shape[0], groups, meaning.group_size)
            grouped *= meaning.factors("scales", groups, rows)[:, :, None]
    return result


def _tables(meaning: Meaning, vectors: Vectors) -> list[AnyArray]:
    """The entries of each book times its scale, in float32: [blocks of N, blocks of K, 2**b] by v."""
    tables = []
    for book in range(vectors.books):
        if meaning.codebooks is None:
            entries: AnyArray = lattice_vectors(vectors.lattices[book])
        else:
            entries = meaning.codebooks[..., book, :, :].astype(np.float32)
        if meaning.book_scales is not None:
            entries = entries * meaning.book_scales[..., book, None, None]
        tables.append(np.ascontiguousarray(entries.reshape(-1, vectors.vector), np.float32))
    return tables
