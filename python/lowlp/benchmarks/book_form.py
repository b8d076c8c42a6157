"""What codes of vectors are, read from the text that codecs have for it, where no extension is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lowlp_runtime.errors import LowlpValueError

from .cases import Shape

_BOOKS: Final = re.compile(r"vec(\d+):(\d+)x(\d+):(f16|int8|f8e4m3)(?::(\d+)x(\d+))?")
_ENTRY_BYTES: Final = {"": 0, "f16": 2, "int8": 1, "f8e4m3": 1}
_COMPUTED: Final = re.compile(r"e8p(\+e8p)?")


@dataclass(frozen=True)
class BookForm:
    """Books of one kind.

    vector   weights of a code
    count    books that add up
    bits     of a code of each
    entries  'f16', 'int8' or 'f8e4m3' with a scale for each book, or '' where they are computed
    rows, columns  of the block that has books of its own; 0: one set for all weights
    """

    vector: int
    count: int
    bits: int
    entries: str
    rows: int = 0
    columns: int = 0

    def shape_in(self, shape: Shape) -> tuple[int, ...]:
        """Of the books of weights of a shape."""
        one = (self.count, 1 << self.bits, self.vector)
        return (-(-shape.n // self.rows), -(-shape.k // self.columns), *one) if self.rows else one

    def book_bytes(self, shape: Shape) -> int:
        """Of all entries."""
        total = _ENTRY_BYTES[self.entries]
        for extent in self.shape_in(shape):
            total *= extent
        return total


def book_form(text: str) -> BookForm:
    """The form that 'vec8:2x8:f16' or 'e8p' stands for. Raises `LowlpValueError` for what the bench does not draw."""
    if found := _COMPUTED.fullmatch(text):
        return BookForm(8, 2 if found[1] else 1, 16, "")
    found = _BOOKS.fullmatch(text)
    if found is None:
        raise LowlpValueError(f"vectors: the bench draws books of f16, int8 and f8e4m3, and e8p, not {text!r}")
    vector, count, bits, rows, columns = (int(found[place] or 0) for place in (1, 2, 3, 5, 6))
    return BookForm(vector, count, bits, found[4], rows, columns)
