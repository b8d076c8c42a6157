"""The power of two that brings scaled weights into the range of f16.

Kernels that scale weights before they multiply round them to the activation type. f16 has infinity beyond 65504 and
loses bits below 2^-14, so those kernels multiply weights by 2^-p, and the accumulators by 2^p:

    p = 0    where f16 holds the largest weight and weights are not tiny: results are those of no factor, bit by bit
    else     2^-p brings the largest weight to the top of the range, at least 2^15. Weights of 2^-29 of the largest and
             more keep 11 significant bits

The largest weight is not looked for among the codes: it is bounded by the largest scale and the largest unscaled value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHATS: Final = ("weights", "scales", "entries")
_TEXT = re.compile(rf"fit ({'|'.join(WHATS)}) (\S+)")

_OVERFLOW: Final = 65520.0
"""The least number that f16 rounds to infinity."""
_TINY: Final = 2.0**-12
"""Weights whose bounds are less than this in the mean are tiny. f16 as it is holds weights below 2^-14 to 2^-25, which
is 1e-3 of weights that are 1/8 of such bounds."""
LEAST_EXPONENT_OF_SCALES: Final = -14
"""By which all scales of f16 are normal numbers, and f16 holds the factor and its double."""
_PACKED_INTEGERS: Final = {"uint4": 15.0, "int6": 32.0}
"""Types of scales that are fields of bytes, and the largest of them."""
# So that f32 holds both powers.
_MOST_EXPONENT: Final = 126


@dataclass(frozen=True)
class Fit:
    """What of a kernel's weights is multiplied by 2^-p, as the transform of operands says it: 'fit scales 8.0'.

    what     'weights', made in f32; 'scales', of f16; or 'entries' of a table of the tensor, of f16
    largest  the largest absolute value of a code without zero point; of tables 1, times the largest entry
    """

    what: str
    largest: float

    def __str__(self) -> str:
        return f"fit {self.what} {self.largest!r}"

    @staticmethod
    def parse(text: str) -> Fit | None:
        """The inverse of `str`; None for another text."""
        found = _TEXT.fullmatch(text)
        try:
            largest = float(found[2]) if found else 0.0
        except ValueError:
            return None
        return Fit(found[1], largest) if found and 0 < largest < math.inf else None


@dataclass(frozen=True)
class WeightRange:
    """Bounds of scaled weights in absolute value.

    largest  of all of them
    mean     the root of the mean square of the bounds of groups
    """

    largest: float
    mean: float

    @property
    def is_tiny(self) -> bool:
        """Whether f16 would hold few bits of most weights."""
        return 0 < self.mean < _TINY

    @property
    def exponent(self) -> int:
        """p, for weights that are made in f32."""
        if not self.is_tiny and self.largest < _OVERFLOW:
            return 0
        return top_exponent(self.largest)


def top_exponent(largest: float) -> int:
    """The least p for which f16 holds `largest` times 2^-p."""
    exponent = math.frexp(largest)[1] - 16
    exponent += math.ldexp(largest, -exponent) >= _OVERFLOW
    return max(-_MOST_EXPONENT, min(exponent, _MOST_EXPONENT))


class Bounds(NamedTuple):
    """Of numbers in absolute value.

    largest, mean  the largest, and the root of the mean square
    least          the least that is not 0
    """

    largest: float
    mean: float
    least: float


def range_of(fit: Fit, elements: Mapping[str, str], stored: Mapping[str, Any]) -> WeightRange:
    """The range of weights that are stored as `stored`.

    elements  types of the stored arrays, by name
    stored    arrays by name (`stored_weights`), those that there are
    """
    scales, unscaled = bounds_of("scales", elements, stored), fit.largest
    unscaled += bounds_of("zeros", elements, stored).largest if stored.get("zeros") is not None else 0.0
    largest, mean = scales.largest * unscaled, scales.mean * unscaled
    for name in ("super_scales", "lut", "scale2"):
        if stored.get(name) is not None:
            found = bounds_of(name, elements, stored)
            largest *= found.largest
            mean *= found.largest if name == "lut" else found.mean
    offset = 0.0
    if stored.get("offsets") is not None:
        offset = bounds_of("offsets", elements, stored).largest
        if stored.get("super_offsets") is not None:
            offset *= bounds_of("super_offsets", elements, stored).largest
    return WeightRange(largest + offset, mean + offset)


def bounds_of(name: str, elements: Mapping[str, str], stored: Mapping[str, Any]) -> Bounds:
    """Of a stored array. Numbers that are not finite do not count."""
    import numpy as np

    element = elements.get(name, "")
    if element in _PACKED_INTEGERS:
        # Fields of bytes.
        largest = _PACKED_INTEGERS[element]
        return Bounds(largest, largest, 1.0)
    values = magnitudes(stored[name], element)
    values = values[np.isfinite(values)]
    largest = float(values.max(initial=0.0))
    if largest == 0:
        return Bounds(0.0, 0.0, math.inf)
    # Squares of what is at most 1, of which none that counts underflows.
    mean = largest * math.sqrt(float(np.mean(np.square(values / np.float32(largest)))))
    return Bounds(largest, mean, float(values.min(initial=math.inf, where=values > 0)))


def magnitudes(array: Any, element: str) -> NDArray[Any]:
    """The absolute values of stored numbers, float32, which holds all of them."""
    import numpy as np

    array = np.asarray(array)
    found: NDArray[Any] = array
    if array.dtype.kind == "u":
        # The bits of a type that numpy lacks.
        if element == "e8m0":
            found = np.ldexp(np.ones(array.shape, np.float32), array.astype(np.int32) - 127)
        elif element == "e4m3":
            # As f16 has them, whose exponents have a bias that is larger by 8.
            found = ((array & 0x7F).astype(np.uint16) << 7).view(np.float16).astype(np.float32) * np.float32(256.0)
        elif element == "bf16":
            found = (array.astype(np.uint32) << 16).view(np.float32)
    magnitude: NDArray[Any] = np.abs(found.astype(np.float32))
    return magnitude
