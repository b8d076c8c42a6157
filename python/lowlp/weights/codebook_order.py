"""Codebooks whose entries come in the order of their accesses (VQ-LLM, section V)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.numeric.vectors import Vectors

from .quantized_tensor import QuantizedTensor

Codes = npt.NDArray[np.unsignedinteger[Any]]


def order_by_frequency(codes: Codes, codebooks: npt.NDArray[Any]) -> tuple[Codes, npt.NDArray[Any], list[int]]:
    """The same vectors with each book's entries in the order of their accesses, most first; of equal ones as before.

    codes      unsigned integers [N, K / v, R]
    codebooks  [R, entries, v]

    Returns the codes and codebooks, both permuted alike, and how often the entries at each place are accessed, summed
    over the books: `frequencies` of `ll.load_codebook`. Raises LowlpValueError where the shapes do not fit, and for a
    code that names no entry.
    """
    if codes.ndim != 3 or codebooks.ndim != 3 or codes.shape[2] != codebooks.shape[0]:
        raise LowlpValueError(
            f"codes: must be [N, K / v, R] for codebooks [R, entries, v], got {list(codes.shape)} and "
            f"{list(codebooks.shape)}"
        )
    entries = codebooks.shape[1]
    if codes.size and int(codes.max()) >= entries:
        raise LowlpValueError(f"codes: must name one of {entries} entries, got {int(codes.max())}")
    ordered, books = np.empty_like(codes), np.empty_like(codebooks)
    frequencies = np.zeros(entries, dtype=np.int64)
    for number in range(codebooks.shape[0]):
        counts = np.bincount(codes[:, :, number].ravel(), minlength=entries)
        order = np.argsort(-counts, kind="stable")
        place = np.empty(entries, dtype=codes.dtype)
        place[order] = np.arange(entries, dtype=codes.dtype)
        ordered[:, :, number] = place[codes[:, :, number]]
        books[number] = codebooks[number][order]
        frequencies += counts[order]
    return ordered, books, [int(count) for count in frequencies]


def ordered_by_frequency(qw: QuantizedTensor) -> QuantizedTensor:
    """The same weights [N, K] with the entries of their books in the order of their accesses, most first. Of books that
    do not fit in shared memory `linear` keeps the first entries there, with up to 16 rows of x.

    Raises LowlpValueError for weights that have no books of entries for all of them.
    """
    vectors = qw.codec.vectors
    if vectors is None or vectors.lattices or vectors.block or len(qw.shape) != 2:
        raise LowlpValueError(
            f"qw: expected weights [N, K] with books of entries for all of them, got {list(qw.shape)} of {qw.codec}"
        )
    assert qw.codebooks is not None
    codes, books, _ = order_by_frequency(qw.codes, qw.codebooks)
    return QuantizedTensor(
        codes,
        codebooks=books,
        book_scales=qw.book_scales,
        scales=qw.scales,
        group_size=None if qw.codec.group == "channel" else qw.codec.group,
        activation=qw.family,
    )


def check_frequencies(vectors: Vectors, frequencies: object) -> None:
    """Checks how often each entry is said to be accessed, most first. Raises LowlpTypeError and LowlpValueError."""
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
