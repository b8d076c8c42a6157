"""The codes of the nearest vectors: of one book exactly, of several whose entries add up by a short search.

The distance of a vector x to an entry c, with weights h of its values, is sum h (x - c)^2. Least of that is highest of
the score x.c - |c|^2 / 2, with weights (h x).c - h.(c^2) / 2: one product of points [x, 1], or [h x, h], with a table
made of the entries. The lower index has ties. All of it is float64, so that entries can only tie on one device and not
on another where their distances agree to 1e-12.

Several books: each of the few nearest entries of the first book is followed by the nearest entry of each further book
to what is left over. The best of these sequences is then improved, as often as there are books: each code in turn
becomes the nearest with the others as they are.
"""

from typing import Any

from lowlp.numeric.vector_ops import Part, VectorOps

FEW = 8
"""How many entries of the first of several books are tried."""


class VectorSearch:
    """Nearest sums of entries, one of each book.

    books        float64 [problems, entries, values] each; their entries add up
    is_weighted  whether each value of a vector has a weight of its own
    """

    def __init__(self, ops: VectorOps, books: list[Any], is_weighted: bool) -> None:
        self._ops, self._books, self._is_weighted = ops, books, is_weighted
        self._tables = [self._table(book) for book in books]

    def codes(self, x: Any, weights: Any = None) -> list[Any]:
        """Of each book the codes, int64 [problems, vectors].

        x        float64 [problems, vectors, values]
        weights  of the same shape where `is_weighted`, else not read
        """
        problems, vectors, _ = x.shape
        found = [self._ops.integers((problems, vectors)) for _ in self._books]

        def work(part: Part) -> None:
            held = weights[part] if self._is_weighted else None
            for codes, of_part in zip(found, self._of_part(x[part], held, part[0]), strict=True):
                codes[part] = of_part

        self._ops.each_part(work, problems, vectors, int(self._books[0].shape[1]))
        return found

    def rest(self, x: Any, codes: list[Any]) -> Any:
        """What the entries leave of x."""
        for book, of_book in zip(self._books, codes, strict=True):
            x = x - self._ops.entries(book, of_book)
        return x

    def _of_part(self, x: Any, weights: Any, some: slice) -> list[Any]:
        points = self._points(x, weights)
        if len(self._books) == 1:
            return [self._ops.highest(points, self._tables[0][some], 1)[:, :, 0]]
        count = min(FEW, int(self._books[0].shape[1]))
        first = self._ops.highest(points, self._tables[0][some], count)
        best, rest, least = self._followed(x, weights, some, first[:, :, 0])
        for place in range(1, count):
            codes, left, error = self._followed(x, weights, some, first[:, :, place])
            is_less = error < least
            least = self._ops.select(is_less, error, least)
            best = [self._ops.select(is_less, new, old) for new, old in zip(codes, best, strict=True)]
            rest = self._ops.select(is_less[:, :, None], left, rest)
        for _ in self._books:
            rest = self._improve(best, rest, weights, some)
        return best

    def _followed(self, x: Any, weights: Any, some: slice, first: Any) -> tuple[list[Any], Any, Any]:
        """Codes that begin with `first`, what they leave, and its weighted square."""
        codes = [first]
        rest = x - self._ops.entries(self._books[0][some], first)
        for book, table in zip(self._books[1:], self._tables[1:], strict=True):
            codes.append(self._ops.highest(self._points(rest, weights), table[some], 1)[:, :, 0])
            rest = rest - self._ops.entries(book[some], codes[-1])
        return codes, rest, squares(rest, weights)

    def _improve(self, codes: list[Any], rest: Any, weights: Any, some: slice) -> Any:
        """Chooses each code anew, the others as they are; what is left then."""
        for place, (book, table) in enumerate(zip(self._books, self._tables, strict=True)):
            wanted = rest + self._ops.entries(book[some], codes[place])
            codes[place] = self._ops.highest(self._points(wanted, weights), table[some], 1)[:, :, 0]
            rest = wanted - self._ops.entries(book[some], codes[place])
        return rest

    def _table(self, book: Any) -> Any:
        half = book * book * -0.5
        bottom = half if self._is_weighted else half.sum(2)[:, :, None]
        return self._ops.permute(self._ops.join(book, bottom), (0, 2, 1))

    def _points(self, x: Any, weights: Any) -> Any:
        if self._is_weighted:
            return self._ops.join(x * weights, weights)
        return self._ops.join(x, self._ops.ones((*x.shape[:2], 1)))


def squares(rest: Any, weights: Any) -> Any:
    """The weighted sum of squares of each vector: [problems, vectors]."""
    squared = rest * rest
    return (squared if weights is None else squared * weights).sum(2)
