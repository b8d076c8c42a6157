"""Some rows and columns of weights, packed by themselves: what one of several processes has of a layer.

`QuantizedTensor.__getitem__` gives views, and cuts where units of the packed format end. Here codes are packed anew, so
that rows end anywhere and columns where a group does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lowlp.numeric.group_codes import groups_of_whole_bytes
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.late_packing import meaning_of_arguments, packed_order
from lowlp.weights.meaning import Meaning
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.words import form_for
from lowlp_runtime.errors import LowlpValueError


def packed_part(
    shape: tuple[int, int],
    read: Callable[[slice], AnyArray],
    rows: slice,
    columns: slice,
    activation: object = None,
    **arguments: Any,
) -> QuantizedTensor:
    """Rows and columns of weights (N, K) whose codes are read while they are packed.

    rows, columns  `slice(start, stop)` within N and K
    The other arguments are those of `lowlp.weights.late_packing.packed_late`, of the whole weights; only codes of these
    rows are read. Raises as that does, and `LowlpValueError` for columns that begin or end within a group, and for some
    columns of weights with a permutation.
    """
    meaning = meaning_of_part(meaning_of_arguments(shape, arguments), shape, rows, columns)
    form = form_for(
        (rows.stop - rows.start, columns.stop - columns.start), meaning.group_size, meaning.code, activation
    )
    vector = 1 if meaning.vectors is None else meaning.vectors.vector
    within = slice(columns.start // vector, columns.stop // vector)

    def band(some: slice) -> AnyArray:
        first = rows.start + some.start
        codes = read(slice(first, rows.start + some.stop))
        if meaning.permutation is None:
            codes = codes[:, within]
        return packed_order(codes, meaning, form, first)

    return QuantizedTensor.of_parts(form, meaning, form.pack_from(band))


def repacked_part(qw: QuantizedTensor, rows: slice, columns: slice, activation: object = None) -> QuantizedTensor:
    """Rows and columns of packed weights [N, K]; views where units of the packed format end there. The arguments and
    errors are those of `packed_part`; `activation` None: the family of `qw`."""
    meaning = meaning_of_part(qw.meaning, (qw.shape[0], qw.shape[1]), rows, columns)
    try:
        found = qw[rows, columns]
    except LowlpValueError:
        if meaning.vectors is not None:
            raise
        extents = (rows.stop - rows.start, columns.stop - columns.start)
        form = form_for(extents, meaning.group_size, meaning.code, qw.family)
        words = form.pack_from(
            lambda some: qw.form.codes(qw.packed, slice(rows.start + some.start, rows.start + some.stop))[:, columns]
        )
        found = QuantizedTensor.of_parts(form, meaning, words)
    return found if activation is None else found.pack_for(activation)


def meaning_of_part(meaning: Meaning, shape: tuple[int, int], rows: slice, columns: slice) -> Meaning:
    """What codes of some rows and columns mean. Raises as `packed_part`."""
    n, k = shape
    for name, part, extent in (("rows", rows, n), ("columns", columns, k)):
        if not 0 <= part.start < part.stop <= extent:
            raise LowlpValueError(f"{name}: must be a part of 0:{extent}, got {part.start}:{part.stop}")
    if rows != slice(0, n):
        if meaning.book_rows and (rows.start % meaning.book_rows or (rows.stop % meaning.book_rows and rows.stop != n)):
            raise LowlpValueError(
                f"rows: {rows.start}:{rows.stop} cuts blocks of {meaning.book_rows} rows that share books"
            )
        meaning = meaning.of_rows(rows)
    if columns == slice(0, k):
        return meaning
    if meaning.permutation is not None:
        raise LowlpValueError(
            f"columns: {columns.start}:{columns.stop} of {k} are no groups of their own, since the groups of a "
            "permutation (act-order) have columns from all over a row"
        )
    if meaning.group == k:
        meaning = replace(meaning, group="channel")
    step = _columns_between_groups(meaning)
    for end in (columns.start, columns.stop):
        if end % step and end != k:
            raise LowlpValueError(f"columns: {columns.start}:{columns.stop} of {k} cuts groups of {step}")
    return meaning.of_columns(columns)


def _columns_between_groups(meaning: Meaning) -> int:
    """The distance of the places along K where the codes of a row may be cut."""
    step = math.lcm(meaning.book_columns or 1, 1 if meaning.vectors is None else meaning.vectors.vector)
    if not isinstance(meaning.group, int):
        return step
    if meaning.packed_type:
        step = math.lcm(step, meaning.group_size * groups_of_whole_bytes(meaning.packed_type))
    if isinstance(meaning.super_group, int):
        step = math.lcm(step, meaning.super_group)
    return math.lcm(step, meaning.group_size)
