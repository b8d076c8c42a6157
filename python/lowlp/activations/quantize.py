"""Quantising of activations: what it means, in numpy. All numbers are float32, each step is rounded to nearest even.

    x1 = x * (1 / smooth)                          with `smooth`: SmoothQuant (arXiv 2211.10438), equation 3
    x2 = round(hadamard(x1))                       with `hadamard`, rounded to the type of x, as `lowlp.hadamard` does
    s  = max|x2| * clip / largest                  of a row, or a group of it; at least 2^-126; 1 where max|x2| is 0
    t  = x2 * (1 / s)

    int, ternary       q = clamp(rint(t), -largest, largest); with a given s down to -largest - 1 (ternary: -1)
    uint               q = clamp(rint(t) + 2^(b-1), 0, 2^b - 1), zero point 2^(b-1)
    int, uint with symmetric=False
                       low = min(x2, 0), high = max(x2, 0), s = (high - low) * clip / (2^b - 1),
                       z = least + clamp(rint(-(low * clip) * (1 / s)), 0, 2^b - 1), q = clamp(rint(t) + z, least, most)
    bipolar            q = clamp(rint((t + (2^b - 1)) * 0.5), 0, 2^b - 1)
    floats             q = clamp(t, -largest, largest), rounded to the type

rint takes of two equally near integers the even one. A row, or group, with a NaN or an infinity has the codes of zeros
and a scale of NaN, and leaves the others as they are; with scale='tensor' its numbers do not count for the scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lowlp.numeric.host_array import AnyArray

from .hadamard import transformed
from .kinds import ActivationKind

LEAST_SCALE: Final = np.float32(2.0**-126)
"""So that the inverse of a scale is finite."""
_ONE: Final = np.float32(1)


@dataclass(frozen=True)
class Rule:
    """How numbers become codes.

    scale       'token', 'tensor', or 'given'
    symmetric   no zero point of each row
    clip        the part of max|x| that the largest code stands for
    hadamard    numbers of a block of the transform, or 0
    group_size  numbers that share a scale; None: all of a row
    """

    kind: ActivationKind
    scale: str
    symmetric: bool
    clip: float
    hadamard: int
    group_size: int | None

    @property
    def has_zeros(self) -> bool:
        """Codes have zero points."""
        return not self.symmetric or self.kind.is_unsigned

    @property
    def least(self) -> int:
        """The least code."""
        kind = self.kind
        if kind.ternary or (self.symmetric and self.scale != "given" and kind.dtype.is_signed):
            return -kind.largest
        return kind.low


def quantized_rows(
    x: AnyArray, rule: Rule, smooth: NDArray[np.float32] | None, given: NDArray[np.float32] | None
) -> tuple[AnyArray, NDArray[np.float32], NDArray[np.int32] | None]:
    """Codes [M, K], scales and zero points [M, groups] of x [M, K]; `given` are scales [M, groups]."""
    values = x.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if smooth is not None:
            values *= _ONE / smooth
        if rule.hadamard:
            values = transformed(values, rule.hadamard).astype(x.dtype).astype(np.float32)
        m, k = values.shape
        size = rule.group_size or k
        grouped = values.reshape(m, k // size, size)
        magnitudes = np.abs(grouped).max(axis=2)
        bad = ~(magnitudes < np.inf)
        grouped = np.where(bad[..., None], np.float32(0), grouped)
        low, high = _range_of(grouped, rule)
        scales = _scales(low, high, rule) if given is None else given
        inverse = _ONE / scales
        codes, zeros = _codes(grouped, low, inverse, rule)
        marked = np.where(bad | ~np.isfinite(scales), np.float32(np.nan), scales)
    return codes.reshape(x.shape), marked.astype(np.float32, copy=False), zeros


def _range_of(grouped: AnyArray, rule: Rule) -> tuple[AnyArray, AnyArray]:
    """The least and the largest number that a scale is made for, of finite groups [M, groups, numbers]."""
    if rule.symmetric:
        high = np.abs(grouped).max(axis=2)
        low = np.zeros_like(high)
    else:
        low, high = np.minimum(grouped.min(axis=2), 0), np.maximum(grouped.max(axis=2), 0)
    if rule.scale == "tensor" and low.size:
        low, high = np.full_like(low, low.min()), np.full_like(high, high.max())
    return low, high


def _scales(low: AnyArray, high: AnyArray, rule: Rule) -> AnyArray:
    span = high if rule.symmetric else high - low
    steps = rule.kind.largest if rule.symmetric else rule.kind.high - rule.kind.low
    scales = np.maximum(span * np.float32(rule.clip) / np.float32(steps), LEAST_SCALE)
    return np.where(span == 0, _ONE, scales)


def _codes(grouped: AnyArray, low: AnyArray, inverse: AnyArray, rule: Rule) -> tuple[AnyArray, Any]:
    kind = rule.kind
    exact = grouped * inverse[..., None]
    if kind.is_float:
        return np.clip(exact, -np.float32(kind.largest), np.float32(kind.largest)).astype(kind.stored), None
    if kind.is_bipolar:
        halves = np.rint((exact + np.float32(kind.high)) * np.float32(0.5))
        return np.clip(halves, 0, kind.high).astype(kind.stored), None
    zeros = None
    rounded = np.rint(exact)
    if not rule.symmetric:
        steps = np.float32(kind.high - kind.low)
        zeros = np.clip(np.rint(-(low * np.float32(rule.clip)) * inverse), 0, steps) + np.float32(kind.low)
    elif kind.is_unsigned:
        zeros = np.full_like(inverse, 1 << (kind.dtype.bits - 1))
    if zeros is not None:
        rounded += zeros[..., None]
    most = 1 if kind.ternary else kind.high
    codes = np.clip(rounded, np.float32(rule.least), np.float32(most)).astype(kind.stored)
    return codes, None if zeros is None else zeros.astype(np.int32)
