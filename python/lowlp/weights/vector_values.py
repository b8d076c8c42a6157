"""The unscaled values of codes of vectors: sums of entries of books."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.vectors import Vectors, lattice_vectors
from lowlp.weights.codebooks import codes_of_columns
from lowlp.weights.meaning import Meaning


def fill_with_vectors(
    result: NDArray[np.float32],
    columns: AnyArray,
    meaning: Meaning,
    vectors: Vectors,
    tables: list[AnyArray],
    rows: slice,
) -> None:
    """Fills float32 [rows, K] with the sums of the entries that codes of these rows name, unscaled.

    columns  the codes, as `codebooks.columns_of_codes` has them
    tables   of `tables_of_books`
    """
    k = result.shape[1]
    blocks_of_k = np.arange(k // vectors.vector, dtype=np.intp) * vectors.vector // (meaning.book_columns or k)
    codes = codes_of_columns(columns, vectors)
    blocks = np.arange(rows.start, rows.stop, dtype=np.intp) // (meaning.book_rows or rows.stop)
    # The tables of a book, block after block along K and then along N.
    first = blocks[:, None] * (blocks_of_k[-1] + 1) + blocks_of_k
    values = result.reshape(codes.shape[0], -1, vectors.vector)
    for book, table in enumerate(tables):
        places = codes[..., book] + (first << vectors.bits)
        if book == 0:
            np.take(table, places, axis=0, out=values, mode="clip")
        else:
            values += np.take(table, places, axis=0, mode="clip")


def tables_of_books(meaning: Meaning, vectors: Vectors) -> list[AnyArray]:
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


def tables_of_stored_codes(meaning: Meaning, vectors: Vectors) -> list[AnyArray]:
    """As `tables_of_books`, by the codes that packed words have: [blocks of N, blocks of K, 2**stored_bits] by v."""
    tables = tables_of_books(meaning, vectors)
    if not vectors.spread:
        return tables
    by_block = [table.reshape(-1, 1 << vectors.bits, vectors.vector) for table in tables]
    if vectors.spread == "exchange":
        # Both codes of a vector name entries of either book.
        both = np.concatenate(by_block, axis=1).reshape(-1, vectors.vector)
        return [both, both]
    stored = np.arange(1 << vectors.stored_bits, dtype=np.uint16).reshape(1, -1, 1).repeat(vectors.books, axis=2)
    codes = codes_of_columns(stored.reshape(1, -1), vectors)
    return [table[:, codes[0, :, book]].reshape(-1, vectors.vector) for book, table in enumerate(by_block)]
