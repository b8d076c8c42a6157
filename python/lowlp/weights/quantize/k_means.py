"""Books learnt from vectors: weighted Lloyd, and for books that add up rounds of both.

    one book       starts from vectors drawn by a seed. A round gives each vector its nearest entry, and each entry the
                   mean of its vectors (weighted: of each value the weighted mean, which is its least-squares choice).
                   An entry without vectors becomes the vector of largest error.
    several books  each begins as the one book of what those before it leave over. A refinement chooses all codes anew
                   (`vector_search`), and then in turn each book's entries, by least squares, the others as they are.

The arithmetic is in whole numbers: of each problem the unit is 2^-22 of the power of two above its largest magnitude,
and entries are rounded to it. So sums are exact, in the order of any device; distances without weights are exact too.
The same vectors and seed give the same books on the CPU and on GPUs, in numpy and PyTorch, to the bit; with weights
but for entries that are nearer to a tie than 1e-12.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.vector_ops import VectorOps
from lowlp.weights.quantize.progress_bar import shown
from lowlp.weights.quantize.vector_search import VectorSearch, squares
from lowlp_runtime.errors import LowlpValueError

_ROUNDS, _MOST_ROUNDS = 20, 60
_SCORES_OF_CHEAP_ROUNDS = 1 << 32
_REFINEMENTS = 4
_SWEEPS = 2
_UNIT_BITS = 22
# Products of weights, at most 1, and whole numbers are rounded to this many bits after the point, and the weights
# themselves to more: sums of 2^20 terms then stay within 2^53.
_PRODUCT_BITS = 11
_WEIGHT_BITS = 32


class BookLearner:
    """Learns books of one shape.

    entries      of a book
    count        of books that add up
    rounds       of each book by itself, fewer where nothing changes any more
    seed         of the start
    progress     show bars
    """

    def __init__(
        self, ops: VectorOps, entries: int, count: int, rounds: int, seed: int, progress: bool = False
    ) -> None:
        self._ops, self._entries, self._count = ops, entries, count
        self._rounds, self._progress = rounds, progress
        self._generator = np.random.default_rng(seed)

    def learn(self, x: Any, weights: Any = None) -> list[Any]:
        """The books, float64 [problems, entries, values] each.

        x        float64 [problems, vectors, values], at most 2^20 vectors
        weights  of the same shape or None: 0 to 1, multiples of 2^-32
        """
        low, high = self._ops.extremes(x.reshape(len(x), -1), 1)
        unit = self._ops.put(unit_of(np.maximum(high, -low)))[:, None, None]
        rest = x = self._ops.whole(x / unit)
        books: list[Any] = []
        for place in range(self._count):
            books.append(self._one_book(rest, weights, f"book {place + 1} of {self._count}"))
            search = VectorSearch(self._ops, books[-1:], weights is not None)
            rest = search.rest(rest, search.codes(rest, weights))
        if self._count > 1:
            for _ in shown(range(_REFINEMENTS), "books together", _REFINEMENTS, self._progress, "round"):
                self._refine(x, weights, books)
        return [book * unit for book in books]

    def _one_book(self, x: Any, weights: Any, name: str) -> Any:
        book = self._ops.entries(x, self._start(x.shape[:2]))
        last = None
        for _ in shown(range(self._rounds), name, self._rounds, self._progress, "round"):
            codes = VectorSearch(self._ops, [book], weights is not None).codes(x, weights)[0]
            if last is not None and bool((codes == last).all()):
                break
            book, last = self._means(x, weights, codes, book), codes
        return book

    def _start(self, shape: tuple[int, int]) -> Any:
        """Which vectors a book starts from, all different where there are as many: the same of all problems."""
        problems, vectors = shape
        drawn = self._generator.permutation(vectors)[np.arange(self._entries) % vectors]
        return self._ops.put(np.tile(drawn, (problems, 1)))

    def _refine(self, x: Any, weights: Any, books: list[Any]) -> None:
        search = VectorSearch(self._ops, books, weights is not None)
        codes = search.codes(x, weights)
        rest = search.rest(x, codes)
        for _ in range(_SWEEPS):
            for place, book in enumerate(books):
                wanted = rest + self._ops.entries(book, codes[place])
                books[place] = self._means(wanted, weights, codes[place], book)
                rest = wanted - self._ops.entries(books[place], codes[place])

    def _means(self, x: Any, weights: Any, codes: Any, book: Any) -> Any:
        """The entries that fit the vectors with their codes best; those that no vector has, from the worst vectors."""
        number = self._ops.sums(codes, self._ops.ones((*x.shape[:2], 1)), self._entries)
        total, norm = x, number
        if weights is not None:
            scale = float(1 << _PRODUCT_BITS)
            total, norm = self._ops.whole(x * weights * scale) / scale, self._ops.sums(codes, weights, self._entries)
        total = self._ops.sums(codes, total, self._entries)
        mean = self._ops.whole(total / self._ops.select(norm > 0, norm, norm + 1))
        found = self._ops.select(norm > 0, mean, book)
        counts = self._ops.host(number[:, :, 0])
        for problem in np.flatnonzero((counts == 0).any(1)):
            self._restart(found, x, weights, codes, int(problem), np.flatnonzero(counts[problem] == 0))
        return found

    def _restart(self, book: Any, x: Any, weights: Any, codes: Any, problem: int, empty: NDArray[np.intp]) -> None:
        """Puts the vectors that are worst off in place of the entries that nothing is near to."""
        one = slice(problem, problem + 1)
        rest = x[one] - self._ops.entries(book[one], codes[one])
        errors = squares(rest, None if weights is None else weights[one])[0]
        worst = self._ops.largest(errors, len(empty))
        worst = worst[errors[worst] > 0]
        book[problem, self._ops.put(empty[: len(worst)])] = x[problem, worst]


def rounds_for(vectors: int, entries: int, count: int) -> int:
    """Rounds for so many vectors, of all problems: 20; more, up to 60, of one book where they are cheap."""
    if count > 1:
        return _ROUNDS
    return max(_ROUNDS, min(_MOST_ROUNDS, _SCORES_OF_CHEAP_ROUNDS // (vectors * entries)))


def unit_of(largest: AnyArray) -> NDArray[np.float64]:
    """The unit of each problem, from its largest magnitude; 1 for nothing but zeros."""
    exponent = np.frexp(largest)[1] - _UNIT_BITS
    return np.where(largest > 0, np.ldexp(1.0, exponent), 1.0)


def shares_of(importance: AnyArray) -> NDArray[np.float64]:
    """Weights for `learn`: importance over the largest, as multiples of 2^-32. Raises `LowlpValueError` where one is
    negative or not finite, or all are 0."""
    array = importance.astype(np.float64)
    least, most = float(array.min()), float(array.max())
    if not (least >= 0 and np.isfinite(most)):
        raise LowlpValueError(f"importance: must be finite and at least 0, got {least if least < 0 else most:g}")
    if most == 0:
        raise LowlpValueError("importance: must not be 0 everywhere")
    return rounded_shares(array / most)


def rounded_shares(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers of 0 to 1 as multiples of 2^-32."""
    found: NDArray[np.float64] = np.ldexp(np.rint(np.ldexp(shares, _WEIGHT_BITS)), -_WEIGHT_BITS)
    return found
