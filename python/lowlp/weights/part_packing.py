"""Some rows and columns of weights, packed by themselves: what one of several processes has of a layer.

`QuantizedTensor.__getitem__` gives views, and cuts where units of the packed format end. Here codes are packed anew, so
that rows end anywhere and columns where a group does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lowlp.numeric.host_array import AnyArray
from lowlp.weights.boundaries import check_part, columns_between_groups
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
    check_part(rows, n, meaning.book_rows or 1, "rows")
    check_part(columns, k, 1, "columns")
    if rows != slice(0, n):
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
    check_part(columns, k, columns_between_groups(meaning), "columns")
    return meaning.of_columns(columns)
