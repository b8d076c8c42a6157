"""Codebooks that users give, and the codes that are their indices: checked, and as `Meaning` and packed words have
them."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp.numeric.vectors import BookPer, Vectors, vq
from lowlp.weights.group_arrays import check_finite, read_only
from lowlp.weights.spread_codes import gathered_codes, spread_codes
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

ENTRY_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "f16": FLOAT_DTYPES["f16"],
    "bf16": FLOAT_DTYPES["bf16"],
    "int8": np.dtype(np.int8),
    "f8e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
}
"""Type of entries -> the numpy type of an array of codebooks."""

# QuIP#'s factors of the second book (arXiv 2402.04396; constants of its code).
_LATTICE_SCALES: Final = {"e8p": (1.0,), "e8p+e81b": (1.0, 1 / 2.04), "e8p+e8p": (1.0, 1 / 3.45)}
_SHAPES: Final = "[R, 2**b, v] for all weights or [blocks of N, blocks of K, R, 2**b, v], of experts with E in front"


class GivenBooks(NamedTuple):
    """The argument `codebooks`, checked by itself.

    vectors  what their codes are; with books for all weights so far
    entries  of that type, in the shape that was given; None where they are computed
    """

    vectors: Vectors
    entries: AnyArray | None


def given_books(codebooks: object) -> GivenBooks:
    """Raises `LowlpTypeError` and `LowlpValueError` as `QuantizedTensor` says."""
    if isinstance(codebooks, str):
        return GivenBooks(Vectors.lattice(codebooks), None)
    array = as_host_array(codebooks, "codebooks")
    kind = next((name for name, dtype in ENTRY_DTYPES.items() if dtype == array.dtype), None)
    if kind is None:
        raise LowlpTypeError(
            f"codebooks: expected elements of float16, bfloat16, int8 or float8_e4m3fn, got {array.dtype}"
        )
    if array.ndim not in (3, 5, 6) or 0 in array.shape:
        raise LowlpValueError(f"codebooks: expected shape {_SHAPES}, got {list(array.shape)}")
    books, size, vector = array.shape[-3:]
    bits = size.bit_length() - 1
    if size != 1 << bits or not 1 <= bits <= 16:
        raise LowlpValueError(f"codebooks: expected 2**b entries in each book with b in 1..16, got {size}")
    try:
        vectors = vq(vector, bits, books, kind)
    except LowlpValueError as error:
        raise LowlpValueError(f"codebooks: expected shape {_SHAPES}, got {list(array.shape)}: {error}") from None
    if kind != "int8":
        check_finite(array, "codebooks")
    return GivenBooks(vectors, array)


def checked_vector_codes(codes: object, vectors: Vectors) -> AnyArray:
    """Codes [N, K / v, R] or [E, N, K / v, R] as a numpy array in the same memory. Raises as `QuantizedTensor` says."""
    array = as_host_array(codes, "codes")
    if array.dtype != vectors.code_dtype:
        raise LowlpTypeError(f"codes: expected {vectors.code_dtype} for {vectors}, got {array.dtype}")
    if array.ndim not in (3, 4) or 0 in array.shape or array.shape[-1] != vectors.books:
        raise LowlpValueError(
            f"codes: expected shape [N, K / {vectors.vector}, {vectors.books}] or [E, N, K / {vectors.vector}, "
            f"{vectors.books}] for {vectors}, got {list(array.shape)}"
        )
    for book, bits in enumerate(vectors.bits_of_books):
        largest = int(array[..., book].max())
        if largest >= 1 << bits:
            raise LowlpValueError(f"codes: must be in 0..{(1 << bits) - 1} for book {book} of {vectors}, got {largest}")
    return array


def columns_of_codes(codes: AnyArray, vectors: Vectors) -> AnyArray:
    """Codes [rows, K / v, R], whose first row is that of a unit, as the matrix that is packed: those of a vector side
    by side, with a bit more where they are spread; byte by byte, the low one first, where books have codes of several
    widths."""
    rows = codes.shape[0]
    if vectors.spread:
        entry_bytes = vectors.vector * (1 if vectors.has_book_scales else 2)
        spread: AnyArray = spread_codes(codes, vectors.bits, entry_bytes, vectors.spread).astype(np.uint16)
        return spread.reshape(rows, -1)
    if len(set(vectors.bits_of_books)) == 1:
        return codes.reshape(rows, -1)
    parts = [codes[..., book] >> shift & 255 for book, shift in _bytes_of_books(vectors)]
    return np.stack(parts, axis=-1).astype(np.uint8).reshape(rows, -1)


def codes_of_columns(columns: AnyArray, vectors: Vectors) -> AnyArray:
    """The inverse of `columns_of_codes`."""
    rows = columns.shape[0]
    if vectors.spread:
        return gathered_codes(columns.reshape(rows, -1, vectors.books), vectors.bits, vectors.spread)
    if len(set(vectors.bits_of_books)) == 1:
        return columns.reshape(rows, -1, vectors.books)
    places = _bytes_of_books(vectors)
    parts = columns.reshape(rows, -1, len(places))
    codes = np.zeros((*parts.shape[:2], vectors.books), vectors.code_dtype)
    for part, (book, shift) in enumerate(places):
        codes[..., book] |= parts[..., part].astype(codes.dtype) << shift
    return codes


def check_exchanged(columns: AnyArray, vectors: Vectors, first_row: int) -> None:
    """Raises `LowlpValueError` for stored codes of two books that are one, both of which name entries of one half."""
    halves = columns.reshape(len(columns), -1, 2) >> vectors.bits
    wrong = np.argwhere(halves[..., 0] == halves[..., 1])
    if wrong.size:
        row, vector = int(wrong[0][0]) + first_row, int(wrong[0][1])
        raise LowlpValueError(
            f"packed: both codes of vector {vector} of row {row} name entries of one book of {vectors}"
        )


def parts_of_books(vectors: Vectors) -> tuple[int, tuple[tuple[tuple[int, int], ...], ...]]:
    """How many columns of the packed matrix a vector has, and for each book the columns that hold its code, with the
    lowest bit of each."""
    if len(set(vectors.bits_of_books)) == 1:
        return vectors.books, tuple(((book, 0),) for book in range(vectors.books))
    places = _bytes_of_books(vectors)
    parts = tuple(
        tuple((column, shift) for column, (of_book, shift) in enumerate(places) if of_book == book)
        for book in range(vectors.books)
    )
    return len(places), parts


def _bytes_of_books(vectors: Vectors) -> list[tuple[int, int]]:
    """The book and the lowest bit of each byte of a vector's codes."""
    return [(book, shift) for book, bits in enumerate(vectors.bits_of_books) for shift in range(0, bits, 8)]


class Books(NamedTuple):
    """Codebooks of weights of a known shape.

    vectors  what the codes are, with the blocks that share books
    entries  [R, 2**b, v], or [blocks of rows, blocks of K, R, 2**b, v], with the rows of experts one after the other,
             read-only; None where they are computed
    scales   float32 [R] or [blocks of rows, blocks of K, R], read-only; None for entries without
    rows, columns  of a block; None for all
    """

    vectors: Vectors
    entries: AnyArray | None
    scales: NDArray[np.float32] | None
    rows: int | None
    columns: int | None


def books_of(given: GivenBooks, book_scales: object, book_per: BookPer | None, shape: tuple[int, ...]) -> Books:
    """The arguments `codebooks`, `book_scales` and `book_per` for weights (N, K) or (E, N, K). Raises `LowlpTypeError`
    and `LowlpValueError`, which name the argument."""
    if shape[-1] % given.vectors.vector:
        raise LowlpValueError(
            f"shape: K must be a multiple of the {given.vectors.vector} weights of a code, got {list(shape)}"
        )
    counts = () if given.entries is None else given.entries.shape[:-3]
    if counts and len(counts) != len(shape):
        raise LowlpValueError(
            f"codebooks: expected shape {_SHAPES}, got {list(_shape_of(given))} for weights {list(shape)}"
        )
    block = _block(counts, book_per, shape, given.vectors)
    # Blocks of which there is one are all weights.
    per: BookPer = block if any(block) else "tensor"
    vectors = given.vectors.with_book_per(tuple(extent or None for extent in per) if per != "tensor" else per)
    scales = _scales(book_scales, vectors, counts)
    entries = None if given.entries is None else given.entries
    if not any(block):
        return Books(
            vectors,
            None if entries is None else read_only(entries.reshape(entries.shape[-3:])),
            None if scales is None else read_only(scales.reshape(-1)),
            None,
            None,
        )
    assert entries is not None
    rows = block[-2] or (shape[-2] if len(shape) == 3 else None)
    return Books(
        vectors,
        read_only(entries.reshape(-1, *entries.shape[-4:])),
        None if scales is None else read_only(scales.reshape(-1, *scales.shape[-2:])),
        rows,
        block[-1] or None,
    )


def _shape_of(given: GivenBooks) -> tuple[int, ...]:
    return () if given.entries is None else given.entries.shape


def _block(
    counts: tuple[int, ...], book_per: BookPer | None, shape: tuple[int, ...], vectors: Vectors
) -> tuple[int, ...]:
    """The extents of a block along all axes, 0 for all of one."""
    if not counts:
        if book_per is not None and not (isinstance(book_per, str) and book_per == "tensor"):
            raise LowlpValueError(
                f"book_per: must be 'tensor' for codebooks of all weights, got {book_per!r:.40}; those of blocks have "
                f"shape [blocks of N, blocks of K, R, 2**b, v]"
            )
        return (0,) * len(shape)
    if book_per is None:
        block = tuple(
            _extent_of_blocks(axis, extent, count, shape, vectors.vector if axis == len(shape) - 1 else 1)
            for axis, (extent, count) in enumerate(zip(shape, counts, strict=True))
        )
    else:
        given = vectors.with_book_per(book_per).block
        if len(given) > len(shape):
            raise LowlpValueError(f"book_per: expected at most {len(shape)} extents, got {book_per!r:.40}")
        block = (0,) * (len(shape) - len(given)) + given
        wanted = tuple(math.ceil(extent / size) if size else 1 for extent, size in zip(shape, block, strict=True))
        if wanted != counts:
            raise LowlpValueError(
                f"book_per: blocks of {book_per!r:.40} are {_times(wanted)} in weights {list(shape)}, and codebooks "
                f"are for {_times(counts)}"
            )
    if len(shape) == 3:
        _check_experts(block, shape)
    return block


def _check_experts(block: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuses blocks that go over experts, or whose rows do not count on from one expert to the next."""
    if not any(block):
        return
    if block[0] != 1 and shape[0] > 1:
        raise LowlpValueError(
            f"book_per: books of blocks are of one expert each, so the first extent must be 1, got {block[0] or None}"
        )
    if block[1] and shape[1] % block[1]:
        raise LowlpValueError(f"book_per: rows of a block must divide N = {shape[1]} of experts, got {block[1]}")


def _extent_of_blocks(axis: int, extent: int, count: int, shape: tuple[int, ...], multiple: int) -> int:
    # One expert is a block of its own, so that experts can be taken out and put together.
    if count == 1 and not (len(shape) == 3 and axis == 0):
        return 0
    size, rest = divmod(extent, count)
    if rest or size % multiple:
        raise LowlpValueError(
            f"book_per: must be given where blocks are not all alike: {count} along an extent of {extent} of weights "
            f"{list(shape)}" + (f", whole codes of {multiple} weights each" if multiple > 1 else "")
        )
    return size


def _times(counts: tuple[int, ...]) -> str:
    return " x ".join(map(str, counts))


def _of_numbers(value: list[object] | tuple[object, ...]) -> AnyArray:
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise LowlpTypeError(f"book_scales: expected floats, got {value!r:.40}") from None


def _scales(value: object, vectors: Vectors, counts: tuple[int, ...]) -> AnyArray | None:
    shape = (*counts, vectors.books)
    if value is None:
        if vectors.lattices:
            return np.asarray(_LATTICE_SCALES[str(vectors)], np.float32)
        return np.ones(shape, np.float32) if vectors.has_book_scales else None
    if not vectors.has_book_scales:
        raise LowlpValueError(f"book_scales: go with entries of int8 and f8e4m3 and with computed books, not {vectors}")
    array = _of_numbers(value) if isinstance(value, list | tuple) else as_host_array(value, "book_scales")
    if array.dtype.kind not in "f" and array.dtype not in FLOAT_DTYPES.values():
        raise LowlpTypeError(f"book_scales: expected floats, got elements of {array.dtype}")
    if array.shape != shape:
        text = "[R]" if not counts else "[.., blocks of N, blocks of K, R]"
        raise LowlpValueError(f"book_scales: expected shape {text} = {list(shape)}, got {list(array.shape)}")
    with np.errstate(over="ignore"):
        scales: AnyArray = array.astype(np.float32)
    check_finite(scales, "book_scales")
    return scales
