"""The tables that kernels compute vectors of QuIP#'s lattices from (`dialect/include/lowlp/Numeric/Lattice.h`).

A vector of 8 values is a word of 8 nibbles n, of which field f has element i with f = P[i], P = 0 4 1 5 2 6 3 7:

    value[i] = n / 2 - 15/4     e8p: the words of signs and of absolute values, combined by XOR
    value[i] = n / 2 - 4        e81b: one word

The sign of an e8p value turns the upper three bits of n, and 1/4 that is added or taken off is its lowest one. Words
are rotated by one bit, as `lattice_books.py` takes them.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.vectors import Vectors, lattice_vectors

_FIELD_OF: Final = (0, 4, 1, 5, 2, 6, 3, 7)
SHIFTS: Final = {"e8p": 3.75, "e81b": 4.0}
"""What is taken off half of a nibble."""
TABLES: Final = {"e8p": 2, "e81b": 1}
"""Of 256 words each, one for each byte of a code: of e8p the signs, the low byte, and the absolute values."""
WORD_BYTES: Final = 4


def bytes_of_codes(vectors: Vectors) -> int:
    """Of all books' codes of a vector."""
    return sum(TABLES[name] for name in vectors.lattices)


def stored_codes(vectors: Vectors) -> int:
    """Of a vector, as they are packed: one of each book, or the bytes of all where these have several widths."""
    return bytes_of_codes(vectors) if len(set(vectors.bits_of_books)) > 1 else vectors.books


def first_tables(vectors: Vectors) -> dict[str, int]:
    """Of each lattice that vectors have the number of its first table."""
    first, number = {}, 0
    for name in dict.fromkeys(vectors.lattices):
        first[name] = number
        number += TABLES[name]
    return first


def shape_of_tables(vectors: Vectors) -> tuple[int, int, int]:
    """Of `lattice_tables`: tables, words, bytes."""
    return sum(TABLES[name] for name in first_tables(vectors)), 256, WORD_BYTES


def lattice_tables(vectors: Vectors) -> NDArray[np.int8]:
    """The words of computed books, as bytes."""
    return np.concatenate([_tables(name) for name in first_tables(vectors)])


@functools.cache
def _tables(name: str) -> NDArray[np.int8]:
    values = lattice_vectors(name)
    if name == "e81b":
        words = _words(values, name)[None]
    else:
        # What signs turn of the first word without, and the words without signs.
        words = np.stack([_words(values[:256], name), _words(values[::256], name)])
        words[0] ^= words[0, 0]
    return np.ascontiguousarray(words).view(np.int8).reshape(-1, 256, WORD_BYTES)


def _words(values: NDArray[np.float32], name: str) -> NDArray[np.uint32]:
    """The words of vectors, rotated by one bit to the left."""
    nibbles = (2 * (values + np.float32(SHIFTS[name]))).astype(np.uint32)
    words = np.zeros(len(values), np.uint32)
    for element, field in enumerate(_FIELD_OF):
        words |= nibbles[:, element] << np.uint32(4 * field)
    return words << np.uint32(1) | words >> np.uint32(31)
