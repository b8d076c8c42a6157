"""The arguments of `QuantizedTensor` and `from_packed`, as what words are and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from lowlp.weights.codebooks import GivenBooks, books_of, given_books
from lowlp.weights.meaning import Meaning, meaning_of, shape_of_words, vector_meaning_of
from lowlp.weights.words import WordsForm, form_for
from lowlp_runtime.errors import LowlpValueError

_BOOKS: Final = ("codebooks", "book_scales", "book_per")
_SCALARS_ALONE: Final = (
    *("dtype", "zeros", "offsets", "scale2", "lut", "g_idx", "permutation"),
    *("super_scales", "super_offsets", "super_group_size", "scale_dtype"),
)
_MEANINGS: Final = ("scales", "group_size", *_SCALARS_ALONE, *_BOOKS)


def form_and_meaning(
    shape: object, *, activation: object = None, is_spread: bool = False, **arguments: Any
) -> tuple[WordsForm, Meaning]:
    """What words of a tensor of this shape are, and what they mean: the arguments of `QuantizedTensor.from_packed`, all
    but the words. Raises as that."""
    extents = shape_of_words(shape)
    arguments = {**dict.fromkeys(_MEANINGS), **arguments}
    given = books_alone(arguments)
    if given is not None:
        books = books_of(given, arguments["book_scales"], arguments["book_per"], extents)
        meaning = vector_meaning_of(extents, books, scales=arguments["scales"], group_size=arguments["group_size"])
    else:
        meaning = meaning_of(extents, **{name: arguments[name] for name in _MEANINGS if name not in _BOOKS})
    if is_spread:
        if meaning.vectors is None or not meaning.vectors.can_spread:
            raise LowlpValueError(f"is_spread: must be False for {meaning.codec}")
        meaning = replace(meaning, vectors=meaning.vectors.as_spread())
    return form_for(extents, meaning.group_size, meaning.code, activation), meaning


def books_alone(arguments: Mapping[str, object]) -> GivenBooks | None:
    """The argument `codebooks`, with which many others are refused; None without it, where those of books are."""
    if arguments["codebooks"] is None:
        for name in ("book_scales", "book_per"):
            if arguments[name] is not None:
                raise LowlpValueError(f"{name}: goes with codebooks, which are not given")
        return None
    for name in _SCALARS_ALONE:
        if arguments[name] is not None:
            raise LowlpValueError(f"{name}: not allowed with codebooks, whose codes have scales only")
    return given_books(arguments["codebooks"])
