"""What the kernels must reach, as data: factors of speed over a peer, fractions of the read bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from .cases import KINDS, Shape

LARGEST: Final = Shape(57344, 8192)


@dataclass(frozen=True)
class Timed:
    """Whose time: 'lowlp', 'torch', 'humming', ...; and of which weights."""

    who: str
    kind: str


@dataclass(frozen=True)
class Requirement:
    """At each M, and over all shapes, `factor` times the speed of the fastest of `against`.

    kind     name of the weights
    against  whose times; all must be there
    text     how tables name them
    factors  by M
    special  by shape: factors by M that hold there in place of the others
    """

    kind: str
    against: tuple[Timed, ...]
    text: str
    factors: Mapping[int, float]
    special: Mapping[Shape, Mapping[int, float]] = field(default_factory=lambda: MappingProxyType({}))

    def factor(self, shape: Shape, m: int) -> float:
        """The factor at one shape and M."""
        return self.special.get(shape, {}).get(m, self.factors[m])


def _factors(small: float, *larger: float) -> dict[int, float]:
    """`small` at M = 1, 8 and 16, the others at 32, 64 and 128."""
    return {1: small, 8: small, 16: small, **dict(zip((32, 64, 128), larger, strict=False))}


# Over humming at the same type.
_OVER_HUMMING: Final = {
    "int4": _factors(1.25, 1.4, 1.25, 1.0),
    "int8": _factors(1.08, 1.1, 1.1, 1.0),
    "int6": _factors(1.1, 1.2, 1.2, 1.0),
    "f6e3m2": _factors(1.2, 1.25, 1.2, 1.0),
    "int3": _factors(1.35, 1.3, 1.2, 1.0),
    "f3e1m1": _factors(1.35, 1.3, 1.2, 1.0),
    "int5": _factors(1.25, 1.3, 1.2, 1.0),
    "f5e2m2": _factors(1.25, 1.3, 1.2, 1.0),
    "int7": _factors(1.12, 1.3, 1.2, 1.0),
    "int2": _factors(1.6, 1.5, 1.2, 1.0),
    "int1": _factors(1.6, 1.5, 1.2, 1.0),
    "uint4z": _factors(1.3),
}
_MORE_WHERE_LARGEST: Final = {LARGEST: {1: 1.7, 8: 1.7, 16: 1.7}}
# "within 15 %" of a time is 1 / 1.15 of its speed.
_OVER_INT4: Final = {1: 1 / 1.15, 8: 1 / 1.15, 16: 1 / 1.15, 32: 1 / 1.2}
_OVER_BITSANDBYTES: Final = _factors(2.5, 3.0)
_OF_TORCH: Final = {1024: 0.97, 4096: 0.97}

_TORCH: Final = Timed("torch", "f16")


def _all() -> list[Requirement]:
    found = [
        Requirement(
            name,
            (Timed("humming", name),),
            f"humming {KINDS[name].label}",
            factors,
            _MORE_WHERE_LARGEST if name in ("int2", "int1") else {},
        )
        for name, factors in _OVER_HUMMING.items()
    ]
    found.append(Requirement("nf4", (Timed("lowlp", "int4"),), "our int4", _OVER_INT4))
    found.append(Requirement("nf4", (Timed("bitsandbytes", "nf4"),), "bitsandbytes NF4", _OVER_BITSANDBYTES))
    for name in KINDS:
        # humming has no tables.
        rivals = (_TORCH,) if name == "nf4" else (_TORCH, Timed("humming", name))
        text = "torch f16" if name == "nf4" else "the better of torch f16 and humming"
        found.append(Requirement(name, rivals, text, {256: 1.0}))
        found.append(Requirement(name, (_TORCH,), "torch f16", _OF_TORCH))
    return found


REQUIREMENTS: Final = tuple(_all())

FRACTION_ROWS: Final = (1, 8, 16)
"""The M at which the fraction of the bandwidth floor is asked for, at the largest shape."""


def least_fraction(bits: int) -> float | None:
    """The fraction of the read-bandwidth floor that weights of so many bits must reach; None: nothing is asked."""
    return 0.85 if bits >= 4 else {3: 0.75, 2: 0.65}.get(bits)
