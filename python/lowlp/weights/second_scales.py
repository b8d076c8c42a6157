"""Second scales: one number for all weights, or a number for each row.

They are kept as a float32 number where all rows have the same, and else as float32 [rows]: so a slice of merged weights
whose rows share a second scale is equal to the weights that it was made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray, as_host_array
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

SecondScale = np.float32 | AnyArray
"""Of a tensor: a number, or float32 [rows], read-only."""


def second_scale_of(value: object, outer: tuple[int, ...]) -> SecondScale:
    """The argument `scale2` of `QuantizedTensor` for weights [*outer, K], outer (N,) or (E, N), as it is kept. Raises
    `LowlpTypeError` and `LowlpValueError`."""
    if isinstance(value, bool | np.bool_ | str | list | tuple):
        raise LowlpTypeError(f"scale2: expected a number, or an array with one for each row, got {value!r:.40}")
    array = _array_of_number(value) if isinstance(value, float | int) else as_host_array(value, "scale2")
    if array.dtype.kind not in "fiu" and array.dtype != FLOAT_DTYPES["bf16"]:
        raise LowlpTypeError(f"scale2: expected a number, got elements of {array.dtype}")
    if array.size != 1 and array.shape != outer:
        rows = "[N]" if len(outer) == 1 else "[E, N]"
        raise LowlpValueError(
            f"scale2: expected one number, or one for each row, {rows} = {list(outer)}, got shape {list(array.shape)}"
        )
    with np.errstate(over="ignore"):
        numbers = array.reshape(-1).astype(np.float32)
    finite = np.isfinite(numbers)
    if not finite.all():
        row = int(np.argmin(finite))
        place = f" at {[int(index) for index in np.unravel_index(row, outer)]}" if array.size > 1 else ""
        raise LowlpValueError(f"scale2: must be finite in float32, got {array.reshape(-1)[row]}{place}")
    return kept_scale(numbers)


def _array_of_number(value: float) -> AnyArray:
    array = np.asarray(value)
    try:
        # numpy keeps ints beyond 64 bits as objects.
        return np.asarray(float(value)) if array.dtype == object else array
    except OverflowError:
        bits = int(value).bit_length()
        raise LowlpValueError(f"scale2: must be finite in float32, got an int of {bits} bits") from None


def kept_scale(numbers: AnyArray) -> SecondScale:
    """The second scales of rows, float32, as they are kept."""
    bits = numbers.view(np.uint32)
    if (bits == bits[0]).all():
        return np.float32(numbers[0])
    kept = np.ascontiguousarray(numbers)
    kept.setflags(write=False)
    return kept


def joined_scales(parts: Sequence[tuple[SecondScale, int]]) -> SecondScale:
    """The second scales of weights one below the other, from those of each and its number of rows."""
    return kept_scale(np.concatenate([np.broadcast_to(scale, (rows,)) for scale, rows in parts]))
