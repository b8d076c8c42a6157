"""Codes that users give, checked: unpacked ones, and those in packed words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.dtypes import DType
from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp.weights.words import BAND_ELEMENTS, Words, WordsForm
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_ALIGN_BYTES = 16


def checked_codes(codes: object, dtype: DType) -> NDArray[np.uint8]:
    """The codes as a numpy array [N, K] or [E, N, K] in the same memory. Raises as `QuantizedTensor` says, but for
    codes that are no number."""
    array = as_host_array(codes, "codes")
    if array.dtype != np.uint8:
        raise LowlpTypeError(f"codes: expected uint8 (the low {dtype.bits} bits), got {array.dtype}")
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise LowlpValueError(f"codes: expected shape [N, K] with N, K >= 1, got {list(array.shape)}; or [E, N, K]")
    largest = int(array.max())
    if largest >= 1 << dtype.bits:
        mask = (1 << dtype.bits) - 1
        raise LowlpValueError(
            f"codes: must be in 0..{mask} for {dtype.name}, got {largest}; mask with `& {mask:#x}` to keep the low bits"
        )
    return array


def checked_words(packed: object, form: WordsForm, dtype: DType, has_table: bool) -> Words:
    """Packed words of this form, aligned as kernels need them; a copy only where they are not."""
    words = as_host_array(packed, "packed")
    if words.dtype != np.uint32:
        raise LowlpTypeError(f"packed: expected uint32, got {words.dtype}")
    if words.shape != form.public_shape:
        raise LowlpValueError(
            f"packed: expected shape {list(form.public_shape)} for {form.placement.name} of [{form.n}, {form.k}] in "
            f"groups of {form.group_size}, got {list(words.shape)}"
        )
    if words.__array_interface__["data"][0] % _ALIGN_BYTES:
        words = words.copy()
    if form.experts is not None:
        words = words.reshape(form.shape)
    if not has_table and codes_without_number(dtype).size:
        for rows in form.bands(BAND_ELEMENTS):
            refuse_codes_without_number(form.codes(words, rows), dtype, form, rows.start)
    return words


def codes_without_number(dtype: DType) -> NDArray[np.uint8]:
    """The codes of a type that mean NaN or infinity."""
    every = np.arange(1 << dtype.bits, dtype=np.uint8)
    found: NDArray[np.uint8] = every[~np.isfinite(dtype.decode(every))]
    return found


def refuse_codes_without_number(codes: AnyArray, dtype: DType, form: WordsForm, first_row: int) -> None:
    """Raises `LowlpValueError` for a code that means NaN or infinity in some rows, the first of which is given."""
    # These codes are few: compare with each.
    for code in codes_without_number(dtype):
        found = np.argwhere(codes == code)
        if found.size:
            place = form.place(int(found[0][0]) + first_row, int(found[0][1]))
            raise LowlpValueError(f"codes: {place} is {int(code):#x}, NaN or infinity in {dtype.name}")
