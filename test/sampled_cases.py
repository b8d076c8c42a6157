"""Which cases of a test are run where all of them would take too long: the marker `sampled` (`conftest.py`)."""

from __future__ import annotations

import dataclasses
import random
from typing import Any


def sample_of(cases: list[Any], count: int, seed: str) -> list[Any]:
    """Some of a test's cases, the same in each run: those with most values of parameters that none before them has."""
    left = random.Random(seed).sample(cases, len(cases))
    found: list[Any] = []
    seen = set[tuple[str, str]]()
    while left and len(found) < count:
        best = max(left, key=lambda case: len(values_of(case) - seen))
        found.append(best)
        left.remove(best)
        # When every value was taken, each counts again.
        seen = seen | values_of(best) if values_of(best) - seen else values_of(best)
    return found


def values_of(case: Any) -> set[tuple[str, str]]:
    """The parameters of a case; of dataclasses their fields too."""
    found = set[tuple[str, str]]()
    for name, value in case.callspec.params.items():
        found.add((name, repr(value)))
        if dataclasses.is_dataclass(value):
            found |= {(f"{name}.{field.name}", repr(getattr(value, field.name))) for field in dataclasses.fields(value)}
    return found
