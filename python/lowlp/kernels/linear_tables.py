"""Tables of schedules that were measured: the files `tuned/*.json`, which `lowlp tune` writes."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .linear_spec import Schedule

_SHIPPED = Path(__file__).parent / "tuned"
_FAR: Final = 2.5
"""How far, in factors of two of N and K together, a measured shape may be away."""
_MOST_COLUMNS: Final = 128
"""Of a schedule that names none."""


@dataclass(frozen=True)
class Entry:
    """The fastest schedule for a kind of weights (`linear_schedules.kind_of`), a shape and a class of M."""

    kind: str
    n: int
    k: int
    m: int
    arch: str
    schedule: Schedule

    def distance(self, n: int, k: int) -> float:
        """From another shape, in factors of two of N and K together."""
        return abs(math.log2(self.n / n)) + abs(math.log2(self.k / k))


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Of all tables."""
    return tuple(
        _entry(data) for path in sorted(_SHIPPED.glob("*.json")) for data in json.loads(path.read_text())["entries"]
    )


def nearest(kind: str, n: int, k: int, m: int, arch: str) -> Iterator[Entry]:
    """What was measured near a shape for such weights, class of M and architecture; the nearest first."""
    of_kind = [entry for entry in entries() if (entry.kind, entry.m, entry.arch) == (kind, m, arch)]
    yield from sorted(
        (entry for entry in of_kind if entry.distance(n, k) < _FAR), key=lambda entry: entry.distance(n, k)
    )


def _entry(data: dict[str, Any]) -> Entry:
    schedule = Schedule(**{"columns": min(data["m"], _MOST_COLUMNS), **data["schedule"]})
    return Entry(data["kind"], data["n"], data["k"], data["m"], data["arch"], schedule)
