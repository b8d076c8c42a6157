"""Quantisation of weights by codebooks that are learnt from them: vectors along K, each the sum of entries.

    scales   of each group (as a rule a row) the root mean square of its weights, in the type of scales; 1 for zeros
    books    learnt (`k_means`) from w / s, of the tensor or of each block of it: of all vectors up to 2^18, or up to
             256 for each entry of a book, 2^20 at most, else of as many that a seed draws. Then rounded to the type
             of their entries
    codes    nearest for the rounded books (`vector_search`), of all vectors

Errors are those of w / s, so that rows count alike whatever their size; `importance` weights their squares.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.array_ops import row_slices
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.scale_types import round_up
from lowlp.numeric.vector_ops import VectorOps
from lowlp.numeric.vectors import Vectors
from lowlp.weights.codebooks import ENTRY_DTYPES
from lowlp.weights.quantize.k_means import BookLearner, rounds_for
from lowlp.weights.quantize.progress_bar import shown
from lowlp.weights.quantize.vector_search import VectorSearch
from lowlp_runtime.errors import LowlpValueError

_VECTORS_OF_AN_ENTRY = 256
_LEAST_SAMPLE, _LARGEST_SAMPLE = 1 << 18, 1 << 20
# Of entries whose books have scales, by which the largest is this.
_LARGEST_ENTRIES = {"int8": 127.0, "f8e4m3": 448.0}
_F16_MAX = 65504.0


@dataclass(frozen=True)
class LearntCodebooks:
    """Quantised weights [N, K] as arrays of the host.

    codes        uint8 or, of more than 8 bits, uint16 [N, K / vector, books]
    codebooks    [books, 2**bits, vector], or of blocks [ceil(N / rows), ceil(K / columns), books, 2**bits, vector]
    scales       [N, K / group_size]
    book_scales  of int8 and f8e4m3 entries float32 [books], or of blocks [.., .., books]; else None
    """

    codes: AnyArray
    codebooks: AnyArray
    scales: AnyArray
    book_scales: NDArray[np.float32] | None


def learn_codebooks(
    ops: VectorOps,
    w: Any,
    vectors: Vectors,
    *,
    block: tuple[int, int] | None = None,
    group_size: int,
    scale: str = "f16",
    importance: AnyArray | None = None,
    seed: int = 0,
    progress: bool = False,
) -> LearntCodebooks:
    """Weights [N, K] as codes of learnt books.

    block       rows and columns that share books; None: all of them
    group_size  divides K, a multiple of the vector
    scale       'f16', 'bf16' or 'f32'
    importance  of squared errors, shares as `k_means` has them, [1, K] or [N, K]; or None
    """
    job = _Job(ops, w, vectors, group_size, importance, progress)
    job.find_scales(scale)
    if block is None:
        books, book_scales = job.of_tensor(seed)
    else:
        books, book_scales = job.of_blocks(block, seed)
    return LearntCodebooks(job.codes, books, job.scales, book_scales)


def sample_size(vectors: int, entries: int) -> int:
    """How many of so many vectors books are learnt from."""
    return min(vectors, max(_LEAST_SAMPLE, _VECTORS_OF_AN_ENTRY * entries), _LARGEST_SAMPLE)


def rounded_books(books: NDArray[np.float64], entries: str) -> tuple[AnyArray, NDArray[np.float32] | None]:
    """Books [..., entries, values] in the type that is stored; those of 8 bits with the scales of the books [...]."""
    kind, most = ENTRY_DTYPES[entries], _LARGEST_ENTRIES.get(entries)
    if most is None:
        limit = _F16_MAX if entries == "f16" else np.inf
        return books.clip(-limit, limit).astype(np.float32).astype(kind), None
    largest = abs(books).max((-2, -1)).astype(np.float32)
    scales = np.where(largest > 0, largest / np.float32(most), np.float32(1))
    shares = (books / scales[..., None, None]).clip(-most, most)
    return (np.rint(shares) if entries == "int8" else shares.astype(np.float32)).astype(kind), scales


def values_of(books: AnyArray, scales: NDArray[np.float32] | None) -> NDArray[np.float64]:
    """What stored entries stand for."""
    values = books.astype(np.float64)
    return values if scales is None else values * scales[..., None, None]


class _Job:
    """One matrix, whose codes are found a few rows at a time."""

    def __init__(
        self, ops: VectorOps, w: Any, vectors: Vectors, size: int, importance: AnyArray | None, progress: bool
    ) -> None:
        self._ops, self._w, self._vectors, self._size = ops, w, vectors, size
        self._n, self._k = (int(extent) for extent in w.shape)
        self._importance, self._progress = importance, progress
        self._entries = 1 << vectors.bits
        self.codes = np.empty((self._n, self._k // vectors.vector, vectors.books), vectors.code_dtype)
        self.scales: AnyArray = np.empty((0, 0))
        self._steps: Any = None

    def find_scales(self, scale: str) -> None:
        """Raises `LowlpValueError` for weights that are not finite or too large for the type of scales."""
        mean = np.empty((self._n, self._k // self._size))
        slices = row_slices(self._n, self._k, self._ops.block_elements)
        for rows in shown(slices, "scales", len(slices), self._progress):
            block = self._ops.doubles(self._ops.floats(self._w, rows))
            squared = (block * block).reshape(len(block), -1, self._size)
            mean[rows] = self._ops.host(squared.sum(2)) / self._size
            if not np.isfinite(mean[rows]).all():
                self._refuse(rows, self._ops.host(block))
        exact = np.sqrt(mean).astype(np.float32)
        smallest = np.finfo(np.float32).smallest_subnormal
        self.scales = round_up(np.where(mean == 0, np.float32(1), np.maximum(exact, smallest)), scale)
        self._steps = self._ops.put(self.scales.astype(np.float32))

    def of_tensor(self, seed: int) -> tuple[AnyArray, NDArray[np.float32] | None]:
        """One set of books, and all codes."""
        places = np.random.default_rng(seed)
        length = self._k // self._vectors.vector
        size = sample_size(self._n * length, self._entries)
        drawn = np.arange(size) if size == self._n * length else np.sort(places.choice(self._n * length, size, False))
        x, weights = self._drawn(drawn // length, drawn % length)
        learner = self._learner(seed, size, self._progress)
        stored, scales, search = self._stored(learner.learn(x, weights))
        at_once = self._ops.vectors_at_once * 4 * self._ops.workers
        slices = row_slices(self._n, length, at_once)
        for rows in shown(slices, "codes", len(slices), self._progress):
            found = search.codes(*self._block(rows, slice(0, self._k), 1))
            self._store(found, rows, slice(0, self._k))
        return stored[0], None if scales is None else scales[0]

    def of_blocks(self, block: tuple[int, int], seed: int) -> tuple[AnyArray, NDArray[np.float32] | None]:
        """Books of each block, and all codes."""
        grid = (math.ceil(self._n / block[0]), math.ceil(self._k / block[1]))
        kept: list[AnyArray] = []
        kept_scales: list[NDArray[np.float32]] = []
        bands = list(_bands(self._n, self._k, block))
        for rows, columns, problems in shown(bands, "blocks", len(bands), self._progress):
            x, weights = self._block(rows, columns, problems)
            learner = self._learner(seed, self._n * self._k // self._vectors.vector)
            stored, scales, search = self._stored(learner.learn(*self._sampled(x, weights, seed)))
            kept.append(stored)
            kept_scales += [] if scales is None else [scales]
            self._store(search.codes(x, weights), rows, columns)
        books = np.concatenate(kept).reshape(*grid, *kept[0].shape[1:])
        return books, np.concatenate(kept_scales).reshape(*grid, -1) if kept_scales else None

    def _learner(self, seed: int, vectors: int, progress: bool = False) -> BookLearner:
        """What learns from so many vectors, of all blocks together."""
        rounds = rounds_for(vectors, self._entries, self._vectors.books)
        return BookLearner(self._ops, self._entries, self._vectors.books, rounds, seed, progress)

    def _stored(self, books: list[Any]) -> tuple[AnyArray, NDArray[np.float32] | None, VectorSearch]:
        """The books of all problems in their type, [problems, books, entries, values], and a search in these."""
        exact = np.stack([self._ops.host(book) for book in books], axis=1)
        stored, scales = rounded_books(exact, str(self._vectors.entries))
        values = values_of(stored, scales)
        found = [self._ops.put(np.ascontiguousarray(values[:, place])) for place in range(len(books))]
        return stored, scales, VectorSearch(self._ops, found, self._importance is not None)

    def _sampled(self, x: Any, weights: Any, seed: int) -> tuple[Any, Any]:
        size = sample_size(int(x.shape[1]), self._entries)
        if size == x.shape[1]:
            return x, weights
        drawn = self._ops.put(np.sort(np.random.default_rng(seed).choice(int(x.shape[1]), size, False)))
        return x[:, drawn], None if weights is None else weights[:, drawn]

    def _drawn(self, rows: NDArray[np.int64], vectors: NDArray[np.int64]) -> tuple[Any, Any]:
        """Some vectors of the whole tensor, as those of one problem."""
        vector = self._vectors.vector
        columns = vectors[:, None] * vector + np.arange(vector)
        row, column, group = (self._ops.put(index) for index in (rows[:, None], columns, columns // self._size))
        x = self._ops.doubles(self._ops.floats(self._w[row, column], slice(None)) / self._steps[row, group])[None]
        if self._importance is None:
            return x, None
        weights = self._importance[rows[:, None] if len(self._importance) > 1 else 0, columns]
        return x, self._ops.put(weights)[None]

    def _block(self, rows: slice, columns: slice, problems: int) -> tuple[Any, Any]:
        """Vectors of some rows and columns, [problems, vectors, values], and their weights; problems lie side by
        side."""
        block = self._ops.floats(self._w[:, columns], rows)
        shape = (len(block), -1, self._vectors.vector)
        groups = self._ops.put(np.arange(columns.start, columns.stop) // self._size)
        x = self._split(self._ops.doubles(block / self._steps[rows][:, groups]), problems)
        if self._importance is None:
            return x, None
        one = len(self._importance) == 1
        part = self._importance[slice(0, 1) if one else rows, columns]
        weights = self._ops.put(np.broadcast_to(part, (len(block), part.shape[1])))
        return x, self._split(weights.reshape(shape), problems)

    def _split(self, block: Any, problems: int) -> Any:
        vector = self._vectors.vector
        parts = self._ops.permute(block.reshape(len(block), problems, -1, vector), (1, 0, 2, 3))
        return parts.reshape(problems, -1, vector)

    def _store(self, found: list[Any], rows: slice, columns: slice) -> None:
        vector = self._vectors.vector
        for book, codes in enumerate(found):
            held = self._ops.host(codes).reshape(len(codes), rows.stop - rows.start, -1)
            place = slice(columns.start // vector, columns.stop // vector)
            self.codes[rows, place, book] = held.transpose(1, 0, 2).reshape(held.shape[1], -1)

    def _refuse(self, rows: slice, block: AnyArray) -> None:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(block))[0])
        found = float(self._w[row + rows.start, column])
        raise LowlpValueError(f"w: must be finite in float32, got {found} at [{row + rows.start}, {column}]")


def _bands(n: int, k: int, block: tuple[int, int]) -> Iterator[tuple[slice, slice, int]]:
    """Rows, columns and number of blocks that are learnt together: all whole ones of a band of rows, and the last."""
    whole = k // block[1] * block[1]
    for start in range(0, n, block[0]):
        rows = slice(start, min(start + block[0], n))
        if whole:
            yield rows, slice(0, whole), whole // block[1]
        if whole < k:
            yield rows, slice(whole, k), 1
