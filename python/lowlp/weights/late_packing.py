"""Weights whose codes come a band of rows at a time, so that those of a whole matrix need not exist at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from lowlp.numeric.host_array import AnyArray
from lowlp.weights.codebooks import books_of, columns_of_codes, given_books
from lowlp.weights.codes import codes_without_number, refuse_codes_without_number
from lowlp.weights.meaning import Meaning, meaning_of, vector_meaning_of
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.words import WordsForm, form_for

_OF_SCALARS: Final = ("dtype", "scales", "zeros", "offsets", "group_size", "scale2", "lut")


def meaning_of_arguments(shape: tuple[int, ...], arguments: Mapping[str, Any]) -> Meaning:
    """What codes of weights (N, K) or (E, N, K) mean, of the arguments of `QuantizedTensor` but `codes` and
    `activation`. Raises as that does."""
    if arguments.get("codebooks") is None:
        return meaning_of(shape, **(dict.fromkeys(_OF_SCALARS) | dict(arguments)))
    books = books_of(
        given_books(arguments["codebooks"]), arguments.get("book_scales"), arguments.get("book_per"), shape
    )
    return vector_meaning_of(shape, books, scales=arguments.get("scales"), group_size=arguments.get("group_size"))


def packed_late(
    shape: tuple[int, ...],
    read: Callable[[slice], AnyArray],
    activation: object = None,
    **arguments: Any,
) -> QuantizedTensor:
    """A `QuantizedTensor` whose codes are read while they are packed.

    shape       (N, K) or (E, N, K)
    read        the codes of some rows of one matrix, uint8 [rows, K], or of vectors [rows, K / v, R]; rows of experts
                count on, so that those of matrix e begin at e N. Each below 2**bits
    activation  as `QuantizedTensor` takes it, and so the other arguments

    Raises as `QuantizedTensor` does.
    """
    meaning = meaning_of_arguments(shape, arguments)
    form = form_for(shape, meaning.group_size, meaning.code, activation)
    return QuantizedTensor.of_parts(
        form, meaning, form.pack_from(lambda rows: packed_order(read(rows), meaning, form, rows.start))
    )


def packed_order(codes: AnyArray, meaning: Meaning, form: WordsForm, first: int) -> AnyArray:
    """Codes of the rows from `first` on, as `packed_late` reads them, as the matrix that is packed. Raises
    `LowlpValueError` for codes that are no number."""
    if meaning.vectors is not None:
        return columns_of_codes(codes, meaning.vectors)
    if meaning.lut is None and codes_without_number(meaning.dtype).size:
        refuse_codes_without_number(codes, meaning.dtype, form, first)
    return codes if meaning.permutation is None else np.take(codes, meaning.permutation, axis=1)
