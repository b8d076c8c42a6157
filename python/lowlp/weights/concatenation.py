"""`lowlp.concat`: weights one below the other, as merged projections and tensor parallelism want them; and those of
experts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from lowlp.weights.boundaries import check_end
from lowlp.weights.group_arrays import read_only
from lowlp.weights.meaning import Meaning
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.second_scales import joined_scales
from lowlp.weights.words import Words, WordsForm, empty_words
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError


def concat(tensors: Sequence[QuantizedTensor]) -> QuantizedTensor:
    """Weights along N, [N1 + N2 + ..., K]: a merged q, k and v projection, for example. Words are copied.

    tensors  of one codec, K and family. All but the last end between units: their N is a multiple of 16, of 2 bits 32,
             of 1 bit 64; where K is no multiple of 64, of as many, twice or four times as many, up to 256. What there
             is one of for a whole tensor (a table, the scale of group_size='tensor') is the same in all, and so is the
             permutation. Second scales may differ: each row keeps its own. So may codebooks of whole tensors: the
             result has them by blocks of rows, as many as divide the N of all. Blocks of several rows end between
             tensors

    Raises `LowlpTypeError` and `LowlpValueError`, which name the tensor and what differs, or the next boundaries.
    """
    first = _all_alike(tensors)
    form = first.form.of(sum(tensor.shape[0] for tensor in tensors))
    for number, tensor in enumerate(tensors[:-1]):
        check_end(tensor.shape[0], form, first.meaning, f"tensors[{number}]")
    meaning = _joined_meaning(tensors)
    return QuantizedTensor.of_parts(replace(form, code=meaning.code), meaning, _joined_words(tensors, form))


def stack(tensors: Sequence[QuantizedTensor]) -> QuantizedTensor:
    """Matrices of experts [N, K] as weights [E, N, K]. Words are copied.

    tensors  of one codec, shape and family, with scalar codes. What there is one of for a whole tensor (a table, the
             scale of group_size='tensor') is the same in all, and so is the permutation

    Raises `LowlpTypeError` and `LowlpValueError`, which name the tensor and what differs.
    """
    first = _all_alike(tensors)
    if first.meaning.vectors is not None:
        raise LowlpValueError("tensors: codes of vectors have no kernels for experts; allowed: scalar codes")
    for number, tensor in enumerate(tensors):
        if tensor.shape != first.shape:
            raise LowlpValueError(
                f"tensors[{number}]: must have the shape of the first, {list(first.shape)}, got {list(tensor.shape)}"
            )
    form, meaning = replace(first.form, experts=len(tensors)), _joined_meaning(tensors)
    return QuantizedTensor.of_parts(replace(form, code=meaning.code), meaning, _joined_words(tensors, form))


def _all_alike(tensors: Sequence[QuantizedTensor]) -> QuantizedTensor:
    """The first of weights [N, K] of one codec, K and family."""
    if not isinstance(tensors, Sequence) or not all(isinstance(tensor, QuantizedTensor) for tensor in tensors):
        raise LowlpTypeError(f"tensors: expected a list of QuantizedTensor, got {tensors!r:.60}")
    if not tensors:
        raise LowlpValueError("tensors: expected at least one, got none")
    for number, tensor in enumerate(tensors):
        if len(tensor.shape) != 2:
            raise LowlpValueError(f"tensors[{number}]: expected weights [N, K], got shape {list(tensor.shape)}")
    first, *others = tensors
    for number, other in enumerate(others, 1):
        _check_alike(first, other, f"tensors[{number}]")
    return first


def _joined_words(tensors: Sequence[QuantizedTensor], form: WordsForm) -> Words:
    """The words of matrices one below the other, in units of `form`."""
    words, unit = empty_words(form.shape), 0
    for tensor in tensors:
        units = -(-tensor.shape[0] // form.unit_rows)
        if tensor.form.placement == form.placement:
            words[unit : unit + units] = tensor.packed
        else:
            words[unit : unit + units] = form.packed(tensor.form.all_codes(tensor.packed))
        unit += units
    return words


def _joined_meaning(tensors: Sequence[QuantizedTensor]) -> Meaning:
    first = tensors[0]
    joined: dict[str, Any] = {}
    for name, array in first.meaning.arrays():
        if name == "scale2":
            scales = [(cast(Any, tensor.scale2), tensor.shape[0]) for tensor in tensors]
            joined[name] = joined_scales(scales)
        elif first.meaning.is_by_row(name, array):
            joined[name] = read_only(np.concatenate([getattr(tensor.meaning, name) for tensor in tensors]))
    joined |= _joined_books(tensors)
    return replace(first.meaning, **cast(Any, joined))


def _joined_books(tensors: Sequence[QuantizedTensor]) -> dict[str, Any]:
    """Fields of `Meaning` for the books of weights one below the other: those that all share, or blocks of rows."""
    first = tensors[0].meaning
    parts = {name: [getattr(tensor.meaning, name) for tensor in tensors] for name in ("codebooks", "book_scales")}
    parts = {name: arrays for name, arrays in parts.items() if arrays[0] is not None}
    if first.codebooks is None or first.vectors is None:
        return {}
    if first.book_rows is not None:
        return {name: read_only(np.concatenate(arrays)) for name, arrays in parts.items()}
    if all(array.tobytes() == arrays[0].tobytes() for arrays in parts.values() for array in arrays):
        return {}
    rows = math.gcd(*(tensor.shape[0] for tensor in tensors))
    joined: dict[str, Any] = {"book_rows": rows, "vectors": first.vectors.with_book_per((rows, first.book_columns))}
    for name, arrays in parts.items():
        # [1, blocks of K, ...]: all rows of a tensor have the same.
        by_block = [array if first.book_columns else array[None, None] for array in arrays]
        repeated = [
            np.repeat(array, tensor.shape[0] // rows, axis=0) for array, tensor in zip(by_block, tensors, strict=True)
        ]
        joined[name] = read_only(np.concatenate(repeated))
    return joined


def _of_books(tensor: QuantizedTensor) -> tuple[str, ...]:
    """The arrays of books that need not be the same in all."""
    return () if tensor.meaning.codebooks is None else ("codebooks", "book_scales")


def _check_alike(first: QuantizedTensor, other: QuantizedTensor, name: str) -> None:
    for what, wanted, found in (
        ("codec", first.codec, other.codec),
        ("K", first.shape[1], other.shape[1]),
        ("family", first.family, other.family),
    ):
        if wanted != found:
            raise LowlpValueError(f"{name}: must have the {what} of the first, {wanted}, got {found}")
    for part, array in first.meaning.arrays():
        found = getattr(other, part)
        is_shared = part not in ("scale2", *_of_books(first)) and not first.meaning.is_by_row(part, array)
        if is_shared and (found is None or array.tobytes() != np.asarray(found).tobytes()):
            raise LowlpValueError(f"{name}: must have the {part} of the first, since all rows share it")
    if first.permutation is None and other.permutation is not None:
        raise LowlpValueError(f"{name}: must have its columns in their own order, as the first, got a permutation")
