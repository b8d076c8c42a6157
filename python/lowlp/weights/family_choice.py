"""For which products weights are packed: bits or bytes.

Words are of one family, so what is best for some numbers of rows serves all others too (`family_for_rows`). What both
take is known to the planner of kernels; the rates here are a part of what it says, and all where it says nothing.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Final, NamedTuple

from lowlp.activations.kinds import activation_kind
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import DType
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

from .families import FAMILIES, family_named


class PartsOfBytes(NamedTuple):
    """The time of products of planes over that of bytes: a part whatever the widths are, for results and the exchange
    of sums, and a part for each product of two planes."""

    fixed: float
    product: float


MANY_ROWS: Final = PartsOfBytes(0.14, 0.118)
"""By `wgmma`: W1A1 to W4A4, four shapes with 256 to 4096 rows on one H200 (docs/adr/0075)."""
FEW_ROWS: Final = PartsOfBytes(0.74, 0.016)
"""Of rows whose planes are at most `MOST_PLANES`, and their products with those of a weight `MOST_PRODUCTS`: the same
with 16 rows, where weights are what has to be read."""
MOST_PLANES: Final = 256
MOST_PRODUCTS: Final = 576
ONE_ROW: Final = PartsOfBytes(0.69, 0.0132)
"""The same with a single row (docs/adr/0085)."""
BY_WARPS: Final = PartsOfBytes(0.0, 0.125)
"""By `mma.sync`: rates of the instructions alone, 7600 and 950 x 10^12 operations a second."""
LEAST_GAIN: Final = 1.02
"""So much faster than bytes planes must be: about equal, bytes take scales of groups and any number of bits."""
_PLANNER: Final = "lowlp.kernels.linear.planner"
"""Which knows schedules and so stands above the weights: it is looked up when rows are given, and not imported here."""
_MOST_BITS: Final = 8
_PLANE_SCALES: Final = ("f16", "bf16", "f32")


def gain_of_planes(p: int, q: int, has_warpgroups: bool = True, rows: int | None = None) -> float:
    """How many times as fast as products of bytes are those of planes of p bits by q, whatever the shape is.

    rows  of x; None: many
    """
    parts = BY_WARPS if not has_warpgroups else MANY_ROWS
    if has_warpgroups and rows is not None and rows * q <= MOST_PLANES and rows * p * q <= MOST_PRODUCTS:
        parts = ONE_ROW if rows == 1 else FEW_ROWS
    return 1 / (parts.fixed + parts.product * p * q)


def obstacle_of_planes(codec: Codec, k: int) -> str:
    """Why products of planes do not take these weights; '' where they do."""
    code = codec.code
    if not isinstance(code, DType) or code.is_float or code.bits > _MOST_BITS:
        return f"planes are of integer and bipolar codes of 1 to {_MOST_BITS} bits, and these are {code}"
    if isinstance(codec.group, int) and codec.group < k:
        return f"planes take one scale for each row, and these have groups of {codec.group}"
    if codec.offsets or codec.scale2 or codec.super_scale or codec.scale not in _PLANE_SCALES:
        return f"planes take scales of {', '.join(_PLANE_SCALES)} and no others beside them, got '{codec}'"
    if codec.zeros and not codec.zeros.removeprefix("u").startswith("int"):
        return f"planes take zero points that are integers, got {codec.zeros}"
    return ""


def family_for_rows(codec: Codec, n: int, k: int, activation: object, rows: object) -> str:
    """The family in which weights are packed that are multiplied by so many rows of quantised x, on a GPU that has
    `wgmma`: 'b1' where planes gain more than they lose, by the geometric mean over both ends, else that of bytes.

    n, k        of the matrix, or of each of some
    activation  the type of x: 'int4', 'bipolar1', 'f8e4m3' and the like
    rows        of x, or the fewest and the most of them

    Raises `LowlpTypeError` and `LowlpValueError`, which name `rows` or `activation`.
    """
    ends = _ends(rows)
    family = family_named(activation)
    if (isinstance(activation, str) and activation in FAMILIES) or family in ("f16", "bf16"):
        raise LowlpValueError(
            "rows: choose among the families of a type of quantised activations, such as activation='int4', "
            f"got activation={str(activation)!r:.40}"
        )
    if family != "s8" or obstacle_of_planes(codec, k):
        return family
    planner: Any = import_module(_PLANNER)
    bits = activation_kind(activation).dtype.bits
    gains = [planner.planned_gain(codec, n, k, bits, end).times for end in ends]
    return "b1" if math.sqrt(gains[0] * gains[1]) >= LEAST_GAIN else family


def _ends(rows: object) -> tuple[int, int]:
    ends = rows if isinstance(rows, tuple) else (rows, rows)
    if len(ends) != 2 or any(isinstance(end, bool) or not isinstance(end, int) for end in ends):
        raise LowlpTypeError(f"rows: expected an int or a tuple of two, the fewest and the most, got {rows!r:.40}")
    low, high = ends
    if not 1 <= low <= high:
        raise LowlpValueError(f"rows: must be 1 or more, the fewest before the most, got {rows!r:.40}")
    return low, high
