"""Lookup tables: the values of codes that no formula gives (FLUTE, arXiv 2407.10960)."""

import operator
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray, as_host_array
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

TABLE_TYPES: Final[dict[str, np.dtype[Any]]] = {"f16": np.dtype(np.float16), "f32": np.dtype(np.float32)}
_SIZES = {1 << bits: bits for bits in range(1, 9)}


def nf(b: int) -> NDArray[np.float32]:
    """The NormalFloat table of b bits, float32 [2**b]: ascending from -1 to 1, with 0 at 2**(b-1) - 1.

    b  2 to 8

    FLUTE, section 4.2: with delta = (1/30 + 1/32) / 2 the probabilities are 2**(b-1) evenly spaced ones from delta to
    1/2 and 2**(b-1) + 1 from 1/2 to 1 - delta, the shared 1/2 once; the values are their quantiles in the normal
    distribution over the last of these. Computed in float64 and rounded once. The delta is the same for every b.

    `nf(4)` is QLoRA's NF4 by that definition. The constants that bitsandbytes has for NF4 were computed in lower
    precision and differ from it in 12 of the 16 entries by at most 2e-7: weights of bitsandbytes want its own table
    as `lut`. Raises `LowlpTypeError` and `LowlpValueError` for another b.
    """
    if isinstance(b, bool | np.bool_):
        raise LowlpTypeError(f"b: expected an int, got {b!r}")
    try:
        bits = operator.index(b)
    except TypeError:
        raise LowlpTypeError(f"b: expected an int, got {b!r:.40}") from None
    if not 2 <= bits <= 8:
        raise LowlpValueError(f"b: must be in 2..8, got {bits}")
    delta = (1 / 30 + 1 / 32) / 2
    half = 1 << (bits - 1)
    # The lower half is the mirror of evenly spaced quantiles above 1/2, so that 0 and -1 are exact.
    lower = [-_quantile(0.5 + (0.5 - delta) * i / (half - 1)) for i in range(half - 1, 0, -1)]
    upper = [_quantile(0.5 + (0.5 - delta) * i / half) for i in range(half + 1)]
    values = np.array([*lower, *upper])
    table: NDArray[np.float32] = (values / values[-1]).astype(np.float32)
    return table


def _quantile(p: float) -> float:
    return NormalDist().inv_cdf(p)


def table_of(lut: object) -> AnyArray:
    """`lut` as an array whose last dimension holds the 2**b values of a table, b = 1..8.

    lut  float16 or float32, numpy or PyTorch on the CPU; or a list of numbers, which becomes float32

    Raises `LowlpTypeError` for another type and `LowlpValueError` for another length or a value that is not finite.
    """
    if isinstance(lut, list | tuple):
        try:
            with np.errstate(over="ignore"):
                array: AnyArray = np.asarray(lut, np.float64).astype(np.float32)
        except (TypeError, ValueError):
            raise LowlpTypeError(f"lut: expected an array or a list of numbers, got {lut!r:.60}") from None
    else:
        array = as_host_array(lut, "lut")
    if array.dtype not in TABLE_TYPES.values():
        raise LowlpTypeError(f"lut: expected elements of float16 or float32, got {array.dtype}")
    if array.ndim not in (1, 2, 3) or 0 in array.shape or array.shape[-1] not in _SIZES:
        raise LowlpValueError(
            "lut: expected shape [2**b], [N, 2**b] or [N, K / group_size, 2**b] with b in 1..8, "
            f"got {list(array.shape)}"
        )
    finite = np.isfinite(array)
    if not finite.all():
        place = [int(index) for index in np.argwhere(~finite)[0]]
        raise LowlpValueError(f"lut: must be finite, got {float(array[tuple(place)])} at {place}")
    return array


def table_bits(table: AnyArray) -> int:
    """b, for tables of 2**b values."""
    return _SIZES[table.shape[-1]]


def check_table_shape(table: AnyArray, n: int, groups: int) -> None:
    """Raises `LowlpValueError` unless there is one table, one a channel, or one a group of `groups` in each row."""
    size = table.shape[-1]
    allowed = ((size,), (n, size), (n, groups, size))
    if table.shape not in allowed:
        raise LowlpValueError(
            f"lut: expected shape {', '.join(str(list(shape)) for shape in allowed[:2])} or {list(allowed[2])} "
            f"([2**b], [N, 2**b] or [N, K / group_size, 2**b]), got {list(table.shape)}"
        )


def sorted_tables(table: AnyArray) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """What finds the nearest entry of each table: codes [..., 2**b] by ascending value, and limits [..., 2**b].

    A number x has the entry that is as many places up as there are limits below x: so a number midway between two
    entries takes the lower one. Of equal entries only the lowest code is found. The last limit is infinite.
    """
    values = table.astype(np.float32)
    order = np.argsort(values, axis=-1, kind="stable").astype(np.uint8)
    ascending = np.take_along_axis(values, order.astype(np.intp), axis=-1).astype(np.float64)
    for i in range(1, values.shape[-1]):
        same = ascending[..., i] == ascending[..., i - 1]
        order[..., i] = np.where(same, order[..., i - 1], order[..., i])
    low, high = ascending[..., :-1], ascending[..., 1:]
    # The limit is the largest float32 at most (low + high) / 2; `error` is what the sum in float64 lacks (TwoSum).
    total = low + high
    part = total - low
    error = (low - (total - part)) + (high - part)
    middle = total / 2
    limits = np.full(values.shape, np.inf, np.float32)
    nearest = middle.astype(np.float32)
    above = (nearest > middle) | ((nearest == middle) & (error < 0))
    limits[..., :-1] = np.where(above, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return order, limits
