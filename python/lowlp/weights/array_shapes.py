"""The arrays that weights of a codec and shape are stored as, before there are any: for modules that wait for them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from lowlp.numeric.codec import Codec
from lowlp.numeric.group_codes import GROUP_CODE_TYPES, bytes_of_groups
from lowlp.numeric.vectors import Vectors
from lowlp.weights.meaning import group_size_of, shape_of_words
from lowlp.weights.stored_arrays import header_of, stored_types
from lowlp.weights.words import form_for
from lowlp_runtime.errors import LowlpValueError


class ArrayShape(NamedTuple):
    """Extents, and the elements as numpy stores them."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def array_shapes(
    codec: Codec,
    shape: tuple[int, ...],
    activation: object = None,
    *,
    permutation: bool = False,
    row_scale2: bool = False,
) -> tuple[dict[str, ArrayShape], str]:
    """What `QuantizedTensor.to_arrays` gives for weights (N, K) or (E, N, K) of this codec: the arrays by name, and the
    header.

    activation   the family, as `QuantizedTensor` has it
    permutation  with a permutation of the columns
    row_scale2   the second scale is one for each row

    Raises `LowlpTypeError` and `LowlpValueError`, which name `shape`, `codec` or `activation`.
    """
    extents = shape_of_words(shape)
    *outer, k = extents
    if not isinstance(codec.group, str) and k % codec.group:
        raise LowlpValueError(f"codec: its groups of {codec.group} must divide K = {k}")
    size = k if isinstance(codec.group, str) else group_size_of(k, codec.group)
    form = form_for(extents, size, codec.code, activation)
    dtype = codec.vectors.code_dtype.name if codec.vectors else f"uint{codec.bits}" if codec.table else str(codec.code)
    header = header_of(codec, extents, form.family, dtype, permutation)
    groups = k // size
    of_groups = (1, 1) if codec.group == "tensor" else (*outer, groups)
    supers = (*outer, math.ceil(k / codec.super_group) if isinstance(codec.super_group, int) else 1)
    shapes: dict[str, tuple[int, ...]] = {
        "packed": tuple(form.public_shape),
        "scales": _of_numbers(codec.scale, of_groups),
        "zeros": of_groups,
        "offsets": _of_numbers(codec.offsets, of_groups),
        "scale2": tuple(outer) if row_scale2 else (1,),
        "lut": _of_tables(codec, outer[-1], groups),
        "permutation": (k,),
        "super_scales": supers,
        "super_offsets": supers,
    }
    if codec.vectors is not None:
        books = (*_blocks(codec.vectors, extents), codec.vectors.books)
        shapes |= {"codebooks": (*books, 1 << codec.vectors.bits, codec.vectors.vector), "book_scales": books}
    return {name: ArrayShape(shapes[name], kind) for name, kind in stored_types(header).items()}, header


def _of_numbers(kind: str | None, of_groups: tuple[int, ...]) -> tuple[int, ...]:
    *rows, groups = of_groups
    return (*rows, bytes_of_groups(kind, groups)) if kind in GROUP_CODE_TYPES else of_groups


def _of_tables(codec: Codec, n: int, groups: int) -> tuple[int, ...]:
    scope = "tensor" if codec.table is None else codec.table.scope
    return (*{"tensor": (), "channel": (n,), "group": (n, groups)}[scope], 1 << codec.bits)


def _blocks(vectors: Vectors, shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many blocks share books along N and K; () where all weights do."""
    block = vectors.block
    if len(block) > len(shape):
        raise LowlpValueError(f"codec: books of {vectors} are of experts, and shape is {list(shape)}")
    block = (0,) * (len(shape) - len(block)) + block
    if not any(block):
        return ()
    return tuple(math.ceil(extent / size) if size else 1 for extent, size in zip(shape, block, strict=True))
