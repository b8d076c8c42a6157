"""`vq`: codes that stand for several weights, as entries of codebooks whose sum is the vector.

    value = s * (C_0[q_0] + C_1[q_1] + ...)

AQLM (arXiv 2401.06118) has one or two books for all weights, GPTVQ (arXiv 2402.15319) one for each block of rows and K,
CQ (arXiv 2405.03917) one for each group of channels of a head. The vectors of QuIP# (arXiv 2402.04396) are computed
from their codes: `e8p` and `e81b` (dialect/include/lowlp/Numeric/Lattice.h).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from lowlp import _layout
from lowlp.numeric.dtypes import DType, named_dtype
from lowlp.numeric.native_view import NativeView
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

ENTRY_TYPES: Final[tuple[str, ...]] = tuple(_layout.ENTRY_TYPES)
"""The types of the entries of books."""
LATTICES: Final = ("e8p", "e8p+e81b", "e8p+e8p")
"""Computed books, of 2, 3 and 4 bits a weight."""

Spread = Literal["", "copies", "exchange"]
BookPer = Literal["tensor"] | tuple[int | None, ...]
"""Which weights share books: all, or blocks, by their extents along the last axes; None is all of an axis."""


class Vectors(NativeView):
    """What codes of vectors are, without the books; immutable, and equal to another exactly when all its fields are.
    `vq` and `Vectors.lattice` make them.

    Printed, `vec8:2x8:f16`, `vec4:1x8:int8:256x256`, `vec8:2x12+1:f16`, `e8p+e8p`.
    """

    __slots__ = ("_fields",)
    _fields: tuple[Any, ...]

    @staticmethod
    def lattice(name: str) -> Vectors:
        """Computed books by name: 'e8p' (2 bits a weight), 'e8p+e81b' (3), 'e8p+e8p' (4). Raises `LowlpValueError`."""
        if name not in LATTICES:
            raise LowlpValueError(f"codebooks: computed ones are {', '.join(LATTICES)}, got {name!r:.40}")
        return vectors_of(_layout.CodecField.of_lattices(name.split("+")))

    def with_book_per(self, book_per: BookPer) -> Vectors:
        """The same, with books for `book_per`. Raises `LowlpTypeError` and `LowlpValueError`."""
        if self.lattices:
            if book_per != "tensor":
                raise LowlpValueError(f"book_per: must be 'tensor' for computed books {self}, got {book_per!r:.40}")
            return self
        return self._with(_block_of(book_per), bool(self.spread))

    @property
    def can_spread(self) -> bool:
        """Whether packed codes can have a bit more, by which lanes read different banks of shared memory."""
        return bool(self._held.can_spread)

    def as_spread(self) -> Vectors:
        """The same with packed codes that are spread, as `QuantizedTensor.spread` has; itself where they cannot be."""
        return self._with(self.block, True) if self.can_spread else self

    def as_packed(self) -> Vectors:
        """The same with packed codes of their own width."""
        return self._with(self.block, False) if self.spread else self

    def _with(self, block: Sequence[int], is_spread: bool) -> Vectors:
        return _made(self.vector, self.bits, self.books, str(self.entries), block, is_spread)

    @property
    def vector(self) -> int:
        """Weights of a row that a code of each book stands for."""
        return int(self._fields[0])

    @property
    def bits(self) -> int:
        """Bits of a code of a book; of computed books of several widths the most."""
        return int(self._fields[1])

    @property
    def books(self) -> int:
        """Books whose entries add up."""
        return int(self._fields[2])

    @property
    def entries(self) -> str | None:
        """The type of the entries; None where they are computed."""
        entries: str | None = self._fields[3]
        return entries

    @property
    def lattices(self) -> tuple[str, ...]:
        """What computes the vectors of each book; empty where they are entries."""
        return tuple(self._fields[4])

    @property
    def block(self) -> tuple[int, ...]:
        """Which weights share books: extents along the last axes, 0 for all of an axis; empty for all weights."""
        return tuple(self._fields[5])

    @property
    def book_per(self) -> BookPer:
        """The same as `quantize` takes it."""
        return tuple(extent or None for extent in self.block) or "tensor"

    @property
    def has_book_scales(self) -> bool:
        """Whether each book has a float32 number by which its entries are multiplied."""
        return bool(self._held.has_book_scales)

    @property
    def spread(self) -> Spread:
        """How packed codes have a bit more, by which lanes read different banks: 'copies', each book has its entries
        twice; 'exchange', two books are one, of which codes name two entries in any order; '', they have none
        (docs/packed-format.md)."""
        return cast(Spread, self._fields[6])

    @property
    def stored_bits(self) -> int:
        """Bits of a packed code of a book."""
        return self.bits + (1 if self.spread else 0)

    @property
    def bits_per_weight(self) -> float:
        """Bits of codes for a weight."""
        return sum(self.bits_of_books) / self.vector

    @property
    def stored_bits_per_weight(self) -> float:
        """Bits of packed codes for a weight."""
        return self.stored_bits * self.books / self.vector if self.spread else self.bits_per_weight

    @property
    def bits_of_books(self) -> tuple[int, ...]:
        """Bits of the code of each book."""
        return tuple(8 if name == "e81b" else self.bits for name in self.lattices or ("",) * self.books)

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """uint8, or uint16 for codes of more than 8 bits: the elements of matrices of codes."""
        return np.dtype(np.uint8 if self.bits <= 8 else np.uint16)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        if self.lattices:
            return Vectors.lattice, (str(self),)
        return _made, (self.vector, self.bits, self.books, self.entries, self.block, bool(self.spread))

    def __repr__(self) -> str:
        return f"Vectors({self})"

    def __str__(self) -> str:
        return str(self._held.text)


def vq(vector: int, bits: int, books: int = 1, entries: str | DType = "f16") -> Vectors:
    """What codes of vectors are, without their books: `lowlp.vq(vector=8, bits=8, books=2)`, AQLM's 2x8, which VQ-LLM
    calls <8, 8, 2>.

    vector   weights of a row that a code stands for: 2, 4, 8 or 16
    bits     of a code, 1 to 16: a book has 2**bits entries
    books    whose entries add up, 1 to 4; each has its codes
    entries  their type: 'f16', 'bf16', 'int8' or 'f8e4m3'. Books of the last two have a scale each

    Raises `LowlpTypeError` and `LowlpValueError`, which name the argument.
    """
    try:
        kind = named_dtype(entries, "entries").name
    except LowlpValueError:
        kind = str(entries)
    return _made(_int(vector, "vector"), _int(bits, "bits"), _int(books, "books"), kind, ())


def vectors_of(held: Any) -> Vectors:
    """The view of a field of the C++ library; for the library itself."""
    vectors = object.__new__(Vectors)
    object.__setattr__(vectors, "_held", held)
    # Schedules are chosen by these, and are many.
    object.__setattr__(vectors, "_fields", (*held.vectors, held.spread))
    return vectors


@functools.cache
def lattice_vectors(name: str) -> NDArray[np.float32]:
    """The vectors of all codes of a computed book, 'e8p' or 'e81b', exactly: float32 [codes, 8], read-only."""
    values: NDArray[np.float32] = _layout.lattice_vectors(name)
    values.setflags(write=False)
    return values


def _made(vector: int, bits: int, books: int, entries: str, block: Sequence[int], is_spread: bool = False) -> Vectors:
    try:
        return vectors_of(_layout.CodecField.of_vectors(vector, bits, books, entries, list(block), is_spread))
    except ValueError as error:
        raise LowlpValueError(str(error)) from None


def _block_of(book_per: object) -> list[int]:
    if isinstance(book_per, str) and book_per == "tensor":
        return []
    if not isinstance(book_per, tuple | list):
        raise LowlpTypeError(f"book_per: expected 'tensor' or a tuple such as (256, 256), got {book_per!r:.40}")
    extents = [0 if extent is None else _int(extent, "book_per") for extent in book_per]
    for extent, given in zip(extents, book_per, strict=True):
        if given is not None and extent < 1:
            raise LowlpValueError(f"book_per: extents must be at least 1, or None for all of an axis, got {extent}")
    return extents


def _int(value: object, argument: str) -> int:
    if not isinstance(value, bool | np.bool_):
        try:
            number = operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
        else:
            if number.bit_length() > 63:
                raise LowlpValueError(f"{argument}: must be a number of 64 bits, got {number:.3e}")
            return number
    raise LowlpTypeError(f"{argument}: expected an int, got {value!r:.40}")
