"""Rates by which products of bits or of bytes are chosen; no compiler is needed to read them."""

from __future__ import annotations

from typing import Final

WITH_WARPGROUPS: Final = {"planes": 11400.0, "s8": 1400.0}
"""10^12 operations in a second that kernels reach of `wgmma` (an H200: three quarters of its rate), of one plane."""
BY_WARPS: Final = {"planes": 7600.0, "s8": 950.0}
"""The same of `mma.sync`."""
LEAST_GAIN: Final = 1.1
"""So much faster than bytes planes must be: about equal, bytes take scales of groups and any number of bits."""


def gain_of_planes(p: int, q: int, has_warpgroups: bool = True) -> float:
    """How many times as fast as products of bytes are those of planes of p bits by q, with many rows of x."""
    rates = WITH_WARPGROUPS if has_warpgroups else BY_WARPS
    return rates["planes"] / (p * q * rates["s8"])
