"""The argument `batch_invariant` of `lowlp.linear`."""

from __future__ import annotations

import numpy as np

from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

_MOST_ROWS = 2**31 - 1


def invariance_of(value: object, n: int, has_two_products: bool) -> int:
    """`batch_invariant` as a number: 0 for False, 1 for True, or the rows of weights of which these N are some. Raises
    `LowlpTypeError` and `LowlpValueError`.

    has_two_products  the rows are those of gate and up, so there is an even number of them
    """
    if isinstance(value, bool | np.bool_):
        return int(value)
    if not isinstance(value, int | np.integer):
        raise LowlpTypeError(
            f"batch_invariant: expected a bool, or the N of the weights of which these are some rows, got {value!r:.40}"
        )
    if not n <= value <= _MOST_ROWS:
        raise LowlpValueError(
            f"batch_invariant: as a number it is the N of the weights of which these {n} rows are some, so at least "
            f"{n}, got {value}"
        )
    if has_two_products and value % 2:
        raise LowlpValueError(f"batch_invariant: rows of gate and up are an even number, got {value}")
    return int(value)


def argument_of(invariance: int) -> bool | int:
    """What `invariance_of` makes this number of."""
    return invariance if invariance > 1 else bool(invariance)
