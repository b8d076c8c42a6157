"""Parts of stored weights: which rows and columns one of several GPUs has, and what of each array that is.

Arrays are cut as they are stored, so nothing else of them is read: of a file that is mapped, or of a tensor on a GPU.
Cuts lie where `boundaries` has them: between units of the packed format and blocks that share books, along K also
between groups and super-groups.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from lowlp.numeric.codec import Table
from lowlp.numeric.dtypes import named_dtype
from lowlp.numeric.group_codes import GROUP_CODE_TYPES, PACKED_CODE_TYPES, bytes_of_groups
from lowlp.numeric.host_array import AnyArray
from lowlp.weights.boundaries import check_part, columns_between_cuts, rows_between_cuts
from lowlp.weights.given_meaning import form_and_meaning
from lowlp.weights.meaning import Meaning
from lowlp.weights.quantized_tensor import QuantizedTensor
from lowlp.weights.stored_arrays import arguments_of, header_fields, stored_types, stored_vectors
from lowlp.weights.words import WordsForm, empty_words, form_for
from lowlp_runtime.errors import LowlpValueError

_OF_GROUPS: Final = ("scales", "zeros", "offsets")
_OF_BOOKS: Final = ("codebooks", "book_scales")
Index = tuple[slice, ...]


class Part(NamedTuple):
    """Some rows and columns of weights [N, K], or of each matrix of [E, N, K].

    rows      ranges, which lie one below the other afterwards: of gate and of up, for example
    columns   a range
    matrices  a range of [E, N, K]; None for [N, K]
    """

    rows: tuple[slice, ...]
    columns: slice
    matrices: slice | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the weights that it is."""
        n = sum(rows.stop - rows.start for rows in self.rows)
        matrix = (n, self.columns.stop - self.columns.start)
        return matrix if self.matrices is None else (self.matrices.stop - self.matrices.start, *matrix)


class Cuts(NamedTuple):
    """Multiples of so many rows, and so many columns, at which weights may be cut."""

    rows: int
    columns: int


def whole_of(header: str) -> Part:
    """The part that all weights with this header are."""
    *experts, n, k = header_fields(header)["shape"]
    return Part((slice(0, n),), slice(0, k), slice(0, experts[0]) if experts else None)


def cuts_of(header: str) -> Cuts:
    """Where weights with this header may be cut."""
    form, meaning = _outline(header)
    return Cuts(rows_between_cuts(form, meaning), columns_between_cuts(form, meaning))


def ranges(extent: int, count: int, multiple: int, what: str) -> list[slice]:
    """`extent` in `count` ranges that begin at multiples of `multiple`, as equal as that allows: the first have one
    multiple more than the last, and what is no whole multiple is the end of the last. Raises `LowlpValueError`, which
    names `what`, where one would be empty."""
    steps = -(-extent // multiple)
    if steps < count:
        raise LowlpValueError(
            f"{what}: {extent} can be cut at multiples of {multiple} only, into at most {steps} parts, and {count} "
            "ranks want one each"
        )
    each, more = divmod(steps, count)
    ends = [multiple * (number * each + min(number, more)) for number in range(count)]
    return [slice(start, stop) for start, stop in itertools.pairwise([*ends, extent])]


def part_header(header: str, part: Part) -> str:
    """The header of a part of weights. Raises `LowlpValueError` for places where they cannot be cut."""
    fields = header_fields(header)
    *_, n, k = fields["shape"]
    cuts = cuts_of(header)
    for number, rows in enumerate(part.rows):
        check_part(rows, n, cuts.rows, "rows", is_last=number == len(part.rows) - 1)
    check_part(part.columns, k, cuts.columns, "columns")
    is_cut_along_k = part.columns != slice(0, k)
    if fields.get("permutation") and is_cut_along_k:
        raise LowlpValueError(
            "columns: weights with a permutation (act-order) are packed in another order; a part of K has the columns "
            "that `permutation` names there"
        )
    changed = {**json.loads(header), "shape": list(part.shape)}
    return json.dumps(changed)


def without_permutation(header: str) -> str:
    """The header of the same words for columns in the order in which they are packed."""
    fields = json.loads(header)
    fields.pop("permutation", None)
    return json.dumps(fields)


def pieces(name: str, shape: Sequence[int], header: str, part: Part) -> tuple[list[Index], int]:
    """Which pieces of the stored array `name` a part has, and along which axis they are joined.

    shape   of the array, as it is stored
    header  of the whole weights
    """
    form, meaning = _outline(header)
    columns = part.columns
    lead: Index = () if part.matrices is None else (part.matrices,)
    axis = len(lead)
    by_row: list[Index]
    if name == "packed":
        k_units = slice(columns.start // form.unit_k, -(-columns.stop // form.unit_k))
        by_row = [(_steps(rows, form.unit_rows), k_units) for rows in part.rows]
    elif name in _OF_BOOKS:
        if meaning.book_rows is None and meaning.book_columns is None:
            return [()], 0
        across = _steps(columns, meaning.book_columns) if meaning.book_columns else slice(None)
        # Of all rows of a matrix there is one block.
        of_all = form.n if meaning.book_rows is None else meaning.book_rows
        spans = [_steps(rows, of_all) for rows in part.rows] if of_all < form.n else [slice(0, 1)]
        by_row = [(span, across) for span in spans]
    elif _is_shared(name, shape, meaning):
        return [()], 0
    else:
        by_row = [(rows, *_along_k(name, meaning, columns)) for rows in part.rows]
    return [(*lead, *index) for index in by_row], axis


def part_of_arrays(read: Callable[[str], AnyArray], header: str, part: Part) -> QuantizedTensor:
    """The part of stored weights, in memory of its own.

    read  a stored array by its name, of the types of `stored_types`; nothing but the part is read of it

    Raises `LowlpValueError` for places where weights cannot be cut, and as `QuantizedTensor.from_arrays`.
    """
    arrays = {}
    for name in stored_types(header):
        array = read(name)
        indices, axis = pieces(name, array.shape, header, part)
        found = [array[index] for index in indices]
        arrays[name] = np.array(found[0], order="C") if len(found) == 1 else np.concatenate(found, axis)
    return part_of_pieces(arrays, header, part)


def part_of_pieces(arrays: Mapping[str, AnyArray], header: str, part: Part) -> QuantizedTensor:
    """The same, of arrays that are cut already; `header` is that of the whole. Words are packed anew where a matrix of
    the part's shape has units of another shape."""
    cut = part_header(header, part)
    whole = _outline(header)[0].placement
    if whole == _outline(cut)[0].placement:
        return QuantizedTensor.from_arrays(arrays, cut)
    held = np.broadcast_to(np.zeros((), np.uint32), (1,))
    arguments = arguments_of({**arrays, "packed": held}, cut)
    del arguments["packed"]
    form, meaning = form_and_meaning(**arguments)
    words = _in_units_of(form, np.ascontiguousarray(arrays["packed"]), whole)
    return QuantizedTensor.of_parts(form, meaning, words)


def packed_shape_of(header: str) -> tuple[int, ...]:
    """The shape of the words of weights with this header."""
    return _outline(header)[0].public_shape


def _in_units_of(form: WordsForm, words: AnyArray, placement: Any) -> AnyArray:
    if form.experts is None:
        return form.in_units_of(words, placement)
    one = replace(form, experts=None)
    packed = empty_words(form.public_shape)
    for matrix, found in zip(packed, words, strict=True):
        matrix[...] = one.in_units_of(found, placement)
    return packed.reshape(form.shape)


def _outline(header: str) -> tuple[WordsForm, Meaning]:
    """The form of stored weights, and their meaning without its arrays."""
    fields = header_fields(header)
    shape, vectors = tuple(fields["shape"]), stored_vectors(fields)
    n, k = shape[-2:]
    dtype, group = named_dtype(fields["dtype"], "dtype"), fields["group"]
    size = group if isinstance(group, int) else k
    code: Any = vectors or dtype
    if fields["lut"] is not None:
        code = Table(dtype.bits, fields["lut"], "channel")
    nothing = np.empty((0, 0), np.float32)
    supers = fields.get("super") or {}
    has_two_offsets = bool(supers) and fields["offsets"] in GROUP_CODE_TYPES
    block = (0, 0, *(() if vectors is None else vectors.block))[-2:]
    # Experts have books of their own, so those of all rows are of the rows of one.
    of_experts = len(shape) == 3 and vectors is not None and bool(vectors.block)
    meaning = Meaning(
        dtype,
        size,
        group,
        nothing,
        offsets=None if fields["offsets"] is None else nothing,
        super_scales=nothing if supers else None,
        super_offsets=nothing if has_two_offsets else None,
        super_group=supers.get("group"),
        packed_type=fields["scales"] if fields["scales"] in PACKED_CODE_TYPES else "",
        vectors=vectors,
        book_rows=block[0] or (n if of_experts else None),
        book_columns=block[1] or None,
    )
    return form_for(shape, size, code, fields["family"]), meaning


def _along_k(name: str, meaning: Meaning, columns: slice) -> tuple[slice, ...]:
    """What of a row some columns have, of an array with something for each row."""
    if name == "scale2" or not isinstance(meaning.group, int):
        return ()
    if name.startswith("super_"):
        return (_steps(columns, meaning.super_group),) if isinstance(meaning.super_group, int) else ()
    groups = slice(columns.start // meaning.group_size, columns.stop // meaning.group_size)
    if meaning.is_packed(name):
        return (slice(*(bytes_of_groups(meaning.packed_type, end) for end in (groups.start, groups.stop))),)
    return (groups,) if name in (*_OF_GROUPS, "lut") else ()


def _is_shared(name: str, shape: Sequence[int], meaning: Meaning) -> bool:
    """Whether there is one for all rows."""
    if name in ("lut", "scale2"):
        return len(shape) == 1 if name == "lut" else tuple(shape) == (1,)
    return name == "permutation" or meaning.group == "tensor"


def _steps(within: slice, step: int) -> slice:
    return slice(within.start // step, -(-within.stop // step))
