"""The scales, zero points and offsets of groups, from the extremes of their weights (formulas: `quantization.py`)."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.dtypes import DType
from lowlp.numeric.host_array import FLOAT_DTYPES, AnyArray
from lowlp.numeric.scale_types import E4M3_MAX, SCALE_DTYPES, is_mx, is_nvfp4, mx_scale, round_to_e4m3, round_up
from lowlp_runtime.errors import LowlpValueError

Floats = NDArray[np.float32]
_SMALLEST = np.finfo(np.float32).smallest_subnormal
# Widths of signed integers for which the lowest code is used.
_WHOLE_RANGE_BITS = (2, 3)


class Extremes(NamedTuple):
    """Of each group, float32 [N, groups] or [1, 1]: the least weight, the greatest, the mean magnitude or None."""

    low: Floats
    high: Floats
    mean: Floats | None

    @property
    def largest(self) -> Floats:
        """The largest magnitudes."""
        return np.maximum(self.high, -self.low)

    def of_tensor(self) -> "Extremes":
        """Those of all groups together, [1, 1]."""
        mean = None if self.mean is None else self.mean.mean(keepdims=True, dtype=np.float64).astype(np.float32)
        return Extremes(self.low.min(keepdims=True), self.high.max(keepdims=True), mean)

    def shrunk(self, factor: Floats | float, about_zero: bool) -> "Extremes":
        """As if all weights were `factor` times as far from zero, or from the middle of their group."""
        by = np.float32(factor) if isinstance(factor, float) else factor
        mean = None if self.mean is None else self.mean * by
        if about_zero:
            return Extremes(self.low * by, self.high * by, mean)
        half = self.high * np.float32(0.5) - self.low * np.float32(0.5)
        middle = self.low + half
        keep = by == 1
        low, high = np.where(keep, self.low, middle - half * by), np.where(keep, self.high, middle + half * by)
        return Extremes(low, high, mean)


class Level(NamedTuple):
    """Integers of groups, int8 or uint8 [N, groups], and the floats of their super-groups."""

    integers: AnyArray
    supers: AnyArray


class GroupScales(NamedTuple):
    """What groups have, in the types that are stored; each of the shape of the extremes. In two levels, scales and
    offsets are products in float32, of which `level` and `level_of_offsets` are stored, of all rows."""

    scales: AnyArray
    zeros: AnyArray | None = None
    offsets: AnyArray | None = None
    scale2: np.float32 | None = None
    level: Level | None = None
    level_of_offsets: Level | None = None

    def of_rows(self, rows: slice) -> "GroupScales":
        """The part for some rows; what is one for the whole tensor stays."""
        if self.scales.shape[0] == 1:
            return self
        zeros = None if self.zeros is None else self.zeros[rows]
        offsets = None if self.offsets is None else self.offsets[rows]
        return self._replace(scales=self.scales[rows], zeros=zeros, offsets=offsets)

    @property
    def steps(self) -> Floats:
        """The scales as float32 numbers, the second one multiplied in; of two levels the least number in place of 0."""
        scales = self.scales.astype(np.float32)
        if self.level is not None:
            return np.where(scales == 0, _SMALLEST, scales)
        if self.scale2 is None:
            return scales
        product = scales * self.scale2
        return np.where((product == 0) & (scales != 0), np.copysign(_SMALLEST, scales), product)


@dataclass(frozen=True)
class ScaleRule:
    """How the extremes of a group become its scale.

    method   'symmetric', 'magnitudes', 'zeros', 'float zeros' or 'offsets' for integers; 'type' for floats and bipolar
             types; 'table'
    dtype    type of the codes
    scale    type of the scales
    table    for 'table': the values, [2**b], [N, 2**b] or [N, groups, 2**b]
    tensor   one scale for all weights
    """

    method: str
    dtype: DType
    scale: str
    table: AnyArray | None = None
    tensor: bool = False

    def __post_init__(self) -> None:
        if not self.are_scales_signed and self.dtype.is_integer and self.dtype.bits == 1 and self.method == "symmetric":
            raise LowlpValueError(
                f"scale_dtype: {self.dtype.name} without zero points needs negative scales, which "
                f"{self.stored_scale} has not"
            )

    @property
    def stored_scale(self) -> str:
        """The type of what a group has."""
        return self.scale

    @property
    def are_scales_signed(self) -> bool:
        """Whether that has negative numbers."""
        return self.scale != "e8m0"

    @property
    def has_negative_scales(self) -> bool:
        """Whether the lowest code stands for the weight of largest magnitude, of whichever sign: by a scale that is
        negative where that weight is positive. Up to 3 bits the lowest code is too much to leave unused."""
        allowed = self.method == "symmetric" and self.are_scales_signed
        return allowed and (self.dtype.bits == 1 or (self.dtype.is_signed and self.dtype.bits in _WHOLE_RANGE_BITS))

    @property
    def largest_step(self) -> int:
        """How many steps from 0 the weight of largest magnitude is, for 'symmetric'."""
        half = 1 << (self.dtype.bits - 1)
        return half if self.has_negative_scales else half - 1

    @property
    def steps(self) -> int:
        """Steps from the least code to the greatest."""
        return (1 << self.dtype.bits) - 1

    def scale2(self, extremes: Extremes) -> np.float32 | None:
        """The second scale, by which the largest e4m3 scale is 448; None for other types of scales."""
        if self.scale != "e4m3":
            return None
        exact = float(self._exact(extremes).max()) / E4M3_MAX
        if not math.isfinite(exact):
            raise LowlpValueError("scale_dtype: the span of the weights is out of range of float32; make them smaller")
        return max(np.float32(exact), _SMALLEST) if exact else np.float32(1)

    def choose(self, extremes: Extremes, scale2: np.float32 | None) -> GroupScales:
        """The scales and what goes with them. Raises `LowlpValueError` where one is out of range."""
        offsets = (
            round_down(extremes.low, self.scale if self.scale in FLOAT_DTYPES else "f32")
            if self.method == "offsets"
            else None
        )
        if offsets is not None:
            extremes = extremes._replace(low=offsets.astype(np.float32))
        exact = self._exact(extremes)
        scales = self._stored(extremes, exact, scale2)
        if self.has_negative_scales:
            scales = np.where(extremes.high == extremes.largest, -scales, scales)
        return self.with_zeros(GroupScales(scales, offsets=offsets, scale2=scale2), extremes)

    def with_zeros(self, found: GroupScales, extremes: Extremes) -> GroupScales:
        """The scales with the zero points that go with them."""
        half = 1 << (self.dtype.bits - 1)
        if self.method == "symmetric":
            if not self.dtype.is_signed:
                found = found._replace(zeros=np.full(found.scales.shape, half, np.uint8))
        elif self.method in ("zeros", "float zeros"):
            zeros = np.clip(-np.minimum(extremes.low, 0) / found.steps, 0, self.steps)
            if self.method == "zeros":
                zeros = np.rint(zeros)
            if self.dtype.is_signed:
                zeros -= half
            whole = np.int8 if self.dtype.is_signed else np.uint8
            # bfloat16 would round zero points of 8 bits by half a step.
            broken = np.float16 if self.scale == "f16" else np.float32
            found = found._replace(zeros=zeros.astype(whole if self.method == "zeros" else broken))
        return found

    def _exact(self, extremes: Extremes) -> NDArray[np.float64]:
        """The least scales by which no weight is out of range (for bipolar1 the best ones), unrounded: quotients of
        float32 numbers in float64, which float32 rounds as it would the quotients themselves."""
        low, high, mean = extremes
        if self.method == "symmetric":
            exact = extremes.largest / np.float64(self.largest_step)
        elif self.method == "magnitudes":
            exact = high / np.float64(self.steps)
        elif self.method in ("zeros", "float zeros"):
            with np.errstate(over="ignore"):
                exact = (np.maximum(high, 0) - np.minimum(low, 0)) / np.float64(self.steps)
        elif self.method == "offsets":
            with np.errstate(over="ignore"):
                exact = (high - low) / np.float64(self.steps)
        elif self.table is not None:
            exact = _table_scale(low, high, self.table)
            if self.tensor:
                exact = exact.max(keepdims=True)
        else:
            exact = extremes.largest / np.float64(self.dtype.max) if mean is None else mean.astype(np.float64)
        found: NDArray[np.float64] = exact
        return found

    def _stored(self, extremes: Extremes, exact: NDArray[np.float64], scale2: np.float32 | None) -> AnyArray:
        """The scales as they are stored; 1 for groups of zeros, and 0 where the codes have no zero."""
        name = "table" if self.table is not None else self.dtype.name
        empty = exact == 0
        if self.method not in ("offsets", "table"):
            empty = extremes.largest == 0
        if self.method in ("type", "symmetric") and is_mx(name, self.scale):
            scales = mx_scale(extremes.largest, name)
        else:
            if scale2 is not None:
                exact = exact / scale2
            with np.errstate(over="ignore"):
                wanted = np.where(empty, np.float32(1), np.maximum(exact.astype(np.float32), _SMALLEST))
            scales = round_to_e4m3(wanted) if is_nvfp4(name, self.scale) else round_up(wanted, self.scale)
        if self.dtype.name.startswith("bipolar"):
            none = np.full((), 2.0**-127 if self.scale == "e8m0" else 0, np.float32).astype(SCALE_DTYPES[self.scale])
            scales = np.where(empty, none, scales)
        return scales


def _table_scale(low: Floats, high: Floats, table: AnyArray) -> NDArray[np.float64]:
    """The least scale by which all weights of a sign that the table has lie within it; 0 where there are none."""
    least, greatest = table.min(axis=-1).astype(np.float64), table.max(axis=-1).astype(np.float64)
    if table.ndim == 2:
        least, greatest = least[:, None], greatest[:, None]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        below = np.where(least < 0, np.minimum(low, 0) / least, 0.0)
        above = np.where(greatest > 0, np.maximum(high, 0) / greatest, 0.0)
    return np.maximum(below, above)


def round_down(values: Floats, kind: str) -> AnyArray:
    """The greatest numbers of a float type that are at most the values."""
    dtype = FLOAT_DTYPES[kind]
    with np.errstate(over="ignore"):
        nearest = values.astype(dtype)
        below = np.where(nearest.astype(np.float32) > values, np.nextafter(nearest, dtype.type(-np.inf)), nearest)
    if not np.isfinite(below).all():
        raise LowlpValueError(f"scale_dtype: an offset of {float(values.min()):g} is out of range of {kind}; use 'f32'")
    return below.astype(dtype)
