"""Where weights may be cut: codes between groups and blocks that share books, packed words between units too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.group_codes import groups_of_whole_bytes
from lowlp.weights.meaning import Meaning
from lowlp.weights.words import WordsForm
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError


def cut_of(index: object, form: WordsForm, meaning: Meaning) -> tuple[slice, slice]:
    """The rows and columns that `qw[index]` means. Raises `LowlpTypeError` for what are no slices, and
    `LowlpValueError` for none or a step, and inside of a unit, naming the boundaries next to it."""
    parts = index if isinstance(index, tuple) else (index,)
    if not 1 <= len(parts) <= 2 or not all(isinstance(part, slice) for part in parts):
        raise LowlpTypeError(f"index: expected qw[a:b] or qw[a:b, c:d], got {index!r:.60}")
    rows, columns = parts[0], parts[1] if len(parts) == 2 else slice(None)
    found = (
        _range(rows, form.n, rows_between_cuts(form, meaning), "rows", _name_of_rows(form, meaning)),
        _range(columns, form.k, columns_between_cuts(form, meaning), "columns", _name_of_columns(form, meaning)),
    )
    if meaning.permutation is not None and found[1] != slice(0, form.k):
        raise LowlpValueError(
            f"columns: weights with a permutation are packed in another order, and are cut along N only, got "
            f"{found[1].start}:{found[1].stop} of {form.k}"
        )
    return found


def matrices_of(index: object, experts: int) -> tuple[int, int | None]:
    """The first matrix of [E, N, K] that `qw[index]` means, and how many; None for one by its number, whose weights are
    [N, K]. Raises `LowlpTypeError` and `LowlpValueError` for other indices."""
    if isinstance(index, slice):
        part = _range(index, experts, 1, "experts", "experts")
        return part.start, part.stop - part.start
    if not isinstance(index, int | np.integer) or isinstance(index, bool):
        raise LowlpTypeError(f"index: expected qw[e] or qw[a:b] of weights [E, N, K], got {index!r:.60}")
    if not -experts <= index < experts:
        raise LowlpValueError(f"index: must be in {-experts}..{experts - 1}, got {index}")
    return int(index) % experts, None


def rows_of(rows: object, shape: tuple[int, ...]) -> slice | NDArray[np.intp]:
    """The rows of weights (N, K) that are asked for: a range or numbers. Raises `LowlpTypeError` and
    `LowlpValueError`, which name `rows`."""
    if len(shape) != 2:
        raise LowlpValueError(f"rows: allowed for weights [N, K], got {list(shape)} of experts; take one with qw[e]")
    if isinstance(rows, slice):
        return _range(rows, shape[0], 1, "rows", "rows")
    found = np.asarray(rows)
    if found.dtype.kind not in "iu" or found.ndim != 1:
        raise LowlpTypeError(f"rows: expected a slice or integers of one dimension, got {rows!r:.60}")
    if found.size and not (found.min() >= 0 and found.max() < shape[0]):
        wrong = found[(found < 0) | (found >= shape[0])][0]
        raise LowlpValueError(f"rows: must be in 0..{shape[0] - 1}, got {wrong}")
    return found.astype(np.intp)


def rows_between_cuts(form: WordsForm, meaning: Meaning) -> int:
    """The distance in rows of the places along N where weights may be cut."""
    return math.lcm(form.unit_rows, meaning.book_rows or 1)


def columns_between_cuts(form: WordsForm, meaning: Meaning) -> int:
    """The distance in weights of the places along K where a row may be cut."""
    return math.lcm(columns_between_groups(meaning), form.unit_k)


def columns_between_groups(meaning: Meaning) -> int:
    """The same, of codes that are packed anew."""
    step = math.lcm(meaning.book_columns or 1, 1 if meaning.vectors is None else meaning.vectors.vector)
    if not isinstance(meaning.group, int):
        return step
    group: int = meaning.group_size
    if meaning.packed_type:
        group *= groups_of_whole_bytes(meaning.packed_type)
    return math.lcm(step, group, meaning.super_group if isinstance(meaning.super_group, int) else 1)


def check_part(part: slice, extent: int, step: int, name: str, is_last: bool = True) -> None:
    """Raises `LowlpValueError`, which names `name`, for no part of 0..extent, and unless it begins and ends at
    multiples of `step`, or, the last of several, at the end of all."""
    if not 0 <= part.start < part.stop <= extent:
        raise LowlpValueError(f"{name}: must be a part of 0:{extent}, got {part.start}:{part.stop}")
    for place in (part.start, part.stop):
        if place % step and not (is_last and place == extent):
            raise LowlpValueError(
                f"{name}: {part.start}:{part.stop} of {extent} cannot be cut at {place}, only at multiples of {step}; "
                f"the next {_next_to(place, step, None)}"
            )


def check_end(rows: int, form: WordsForm, meaning: Meaning, name: str) -> None:
    """Raises `LowlpValueError`, which names `name`, unless these rows are whole units, and whole blocks that share
    books."""
    step = rows_between_cuts(form, meaning)
    if rows % step:
        raise LowlpValueError(
            f"{name}: must end between {_name_of_rows(form, meaning)}, since others follow, got {rows} rows; the next "
            f"{_next_to(rows, step, None)}"
        )


def _name_of_rows(form: WordsForm, meaning: Meaning) -> str:
    units = f"units of {form.unit_rows} rows"
    return f"{units} and blocks of {meaning.book_rows} rows that share books" if meaning.book_rows else units


def _name_of_columns(form: WordsForm, meaning: Meaning) -> str:
    units = f"units of {form.unit_k} weights"
    if meaning.book_columns:
        units += f", blocks of {meaning.book_columns} that share books"
    if isinstance(meaning.super_group, int):
        return f"{units} and super-groups of {meaning.super_group}"
    return f"{units} and groups of {meaning.group_size}" if isinstance(meaning.group, int) else units


def _range(part: Any, extent: int, step: int, argument: str, what: str) -> slice:
    if part.step not in (None, 1):
        raise LowlpValueError(f"{argument}: expected a slice without a step, got one of {part.step}")
    try:
        start, stop, _ = part.indices(extent)
    except TypeError:
        raise LowlpTypeError(f"{argument}: expected a slice of ints, got {part!r:.60}") from None
    if start >= stop:
        raise LowlpValueError(f"{argument}: expected at least one, got {part.start}:{part.stop} of {extent}")
    for end in (start, stop):
        if end % step and end != extent:
            raise LowlpValueError(f"{argument}: {end} is not between {what}; the next {_next_to(end, step, extent)}")
    return slice(start, stop)


def _next_to(place: int, step: int, extent: int | None) -> str:
    below = place // step * step
    above = below + step if extent is None else min(below + step, extent)
    return f"boundaries are {below} and {above}"
