"""Scales and offsets of groups in two levels, from the extremes of their weights.

    scales   S = max s / largest integer, over the groups of a super-group, rounded up to its type; then s / S rounded
             up. s is the scale that the group would have by itself; integers with a sign take that of s
    offsets  the same with o = min(w) in place of s, rounded down: of unsigned integers o = min(w, 0), and B is negative

So no weight is out of range, as with scales of one level. A group of zeros has the integer 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import dtype
from lowlp.numeric.group_codes import GROUP_CODE_TYPES
from lowlp.numeric.host_array import AnyArray
from lowlp.numeric.scale_types import SCALE_DTYPES, round_up
from lowlp.weights.quantize.group_scales import Extremes, Floats, GroupScales, Level, ScaleRule, round_down

# What a quotient may exceed an integer by and be rounded to it: less than float32's own noise.
_NOISE = 2.0**-20


@dataclass(frozen=True)
class TwoLevelRule(ScaleRule):
    """How extremes become integers and floats.

    codec             the types of both levels
    groups_of_super   groups that share a super-scale
    """

    codec: Codec | None = None
    groups_of_super: int = 1

    @property
    def _levels(self) -> Codec:
        assert self.codec is not None
        return self.codec

    @property
    def stored_scale(self) -> str:
        """The type of the integers."""
        return self._levels.scale

    @property
    def are_scales_signed(self) -> bool:
        """Whether integers have a sign."""
        return dtype(self._levels.scale).is_signed

    def choose(self, extremes: Extremes, scale2: np.float32 | None) -> GroupScales:
        """The scales and what goes with them, multiplied, and their levels."""
        offsets: AnyArray | None = None
        of_offsets = None
        if self.method == "offsets":
            kind = self._levels.offsets
            assert kind is not None
            if kind in GROUP_CODE_TYPES:
                of_offsets = self._level_of_offsets(extremes.low, kind)
                offsets = self._product(of_offsets)
            else:
                offsets = round_down(extremes.low, kind)
            extremes = extremes._replace(low=offsets.astype(np.float32))
        exact = self._exact(extremes)
        if self.method != "offsets":
            exact = np.where(extremes.largest == 0, 0.0, exact)
        level = self._level(exact, self._levels.scale)
        if self.has_negative_scales:
            negative = extremes.high == extremes.largest
            level = level._replace(integers=np.where(negative, -level.integers, level.integers))
        found = GroupScales(self._product(level), offsets=offsets, level=level, level_of_offsets=of_offsets)
        return self.with_zeros(found, extremes)

    def _level(self, exact: NDArray[np.float64], kind: str) -> Level:
        """Of numbers of groups, at least 0."""
        largest = dtype(kind).max
        name = self._levels.super_scale
        assert name is not None
        groups = exact.shape[1]
        starts = np.arange(0, groups, self.groups_of_super)
        wanted = (np.maximum.reduceat(exact, starts, axis=1) / largest).astype(np.float32)
        supers = np.where(wanted > 0, round_up(wanted, name), np.zeros((), SCALE_DTYPES[name]))
        spread = self._spread(supers, groups).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = np.where(spread > 0, exact / spread, 0.0)
        integers = np.clip(np.ceil(quotient * (1 - _NOISE)), 0, largest)
        return Level(integers.astype(np.int8 if dtype(kind).is_signed else np.uint8), supers)

    def _level_of_offsets(self, low: Floats, kind: str) -> Level:
        """Of numbers that are at most the least weights."""
        down = self._level(np.maximum(-low.astype(np.float64), 0.0), kind)
        # Integers with a sign leave offsets above 0 at 0, as those without do.
        return down._replace(supers=-down.supers)

    def _product(self, level: Level) -> Floats:
        """As `dequantize` multiplies them."""
        groups = level.integers.shape[1]
        return level.integers.astype(np.float32) * self._spread(level.supers, groups).astype(np.float32)

    def _spread(self, supers: AnyArray, groups: int) -> AnyArray:
        spread: AnyArray = np.repeat(supers, min(self.groups_of_super, groups), axis=1)[:, :groups]
        return spread
