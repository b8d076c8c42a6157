"""What products with codebooks must take at the most, in microseconds on an H200, and the table that holds times to it.

At the largest shape a target is a number for each M. At others it is that number's bound, scaled by the weights, and
what is not bound by them: an empty kernel, and the beginning and end of a pipeline. For many rows a target is a factor
over the time of our int4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from .cases import BOOK_KINDS, BOOK_ROWS, BOOK_SHAPES, FREQUENT, UNIFORM, ZIPF, Shape
from .floor import TARGET_GPU
from .report import markdown
from .requirements import LARGEST
from .results import Results

_EMPTY_US: Final = 3.7
_AROUND_US: Final = 12.0
_LEAST_AROUND_US: Final = 6.0
_INT4: Final = "int4"
SKEWED_OVER: Final = (0.6, 0.85)
"""What may be taken with skewed codes over codes all alike, and with frequent entries in shared memory over that."""
MET, MISSED, ABSENT = "met", "missed", "not measured"


@dataclass(frozen=True)
class BookTarget:
    """Of one kind: by M at the largest shape what must be reached, and what may be; by M factors over int4."""

    must: Mapping[int, float]
    may: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    over_int4: float | None = None

    def must_us(self, shape: Shape, m: int, int4_us: float | None) -> float | None:
        """The longest time; None where nothing is asked, or int4 has no time."""
        if m >= _MANY_ROWS:
            return None if self.over_int4 is None or int4_us is None else self.over_int4 * int4_us
        return scaled_us(self.must[m], shape) if m in self.must else None

    def may_us(self, shape: Shape, m: int) -> float | None:
        """The time that the tables allow at best; None where nothing is said."""
        return scaled_us(self.may[m], shape) if m in self.may else None


_MANY_ROWS: Final = 1024


def scaled_us(us: float, shape: Shape) -> float:
    """A target at the largest shape as one at another."""
    part = shape.n * shape.k / (LARGEST.n * LARGEST.k)
    if part == 1:
        return us
    return (us - _EMPTY_US - _AROUND_US) * part + _EMPTY_US + max(_LEAST_AROUND_US, _AROUND_US * part)


def _by_rows(few: float, *more: float) -> dict[int, float]:
    """`few` at M = 1 and 8, the others at 16, 32 and 64."""
    return {1: few, 8: few, **dict(zip((16, 32, 64), more, strict=False))}


TARGETS: Final = {
    "aqlm-2x8": BookTarget(_by_rows(88, 100, 125, 150), {1: 42, 8: 72, 16: 80}, 1.05),
    "aqlm-1x8": BookTarget(_by_rows(50, 64, 88, 118), {1: 26, 8: 42}, 1.05),
    "gptvq-2": BookTarget(_by_rows(60, 72, 95, 122), {1: 46}, 1.05),
    "vec2": BookTarget(_by_rows(68, 76, 92, 122)),
    "aqlm-3": BookTarget(_by_rows(180, 185, 205, 225), over_int4=1.2),
    "aqlm-3-int8": BookTarget(_by_rows(112, 115, 130, 145), over_int4=1.2),
    "aqlm-3-e4m3": BookTarget(_by_rows(112, 115, 130, 145), over_int4=1.2),
    "quip-4": BookTarget({1: 115, 8: 115, 16: 115, 64: 150}, over_int4=1.1),
    "e8p": BookTarget({1: 65, 8: 65, 16: 65, 64: 115}, over_int4=1.1),
    "aqlm-1x16": BookTarget({1: 365, 8: 365, 16: 365}, {1: 180}),
}


@dataclass(frozen=True)
class BookCell:
    """A time and what it is held against, in microseconds; None where there is none."""

    kind: str
    shape: Shape
    m: int
    us: float | None
    must_us: float | None
    may_us: float | None
    aqlm_us: float | None

    @property
    def status(self) -> str:
        """'' where nothing is asked."""
        if self.us is None:
            return ABSENT
        return "" if self.must_us is None else MET if self.us <= self.must_us else MISSED


def book_cells(results: Results, shapes: tuple[Shape, ...] = BOOK_SHAPES) -> list[BookCell]:
    """Of all kinds, shapes and M that ours or AQLM were measured at."""
    found = []
    for kind, target in TARGETS.items():
        for shape in shapes:
            for m in BOOK_ROWS:
                row, theirs = results.find("lowlp", kind, shape, m), results.time("aqlm", kind, shape, m)
                if row is None and theirs is None:
                    continue
                must = target.must_us(shape, m, results.time("lowlp", _INT4, shape, m))
                may = target.may_us(shape, m)
                if row is not None and results.run_of(row).gpu != TARGET_GPU:
                    # Only what is held against times of the same GPU is asked of others.
                    must, may = (must if m >= _MANY_ROWS else None), None
                us = None if row is None else row.us
                found.append(BookCell(kind, shape, m, us, must, may, theirs))
    return found


def book_table(results: Results) -> str:
    """Times with their targets, and times of AQLM; '' where no codebooks were measured."""
    by_row: dict[tuple[str, Shape], dict[int, str]] = {}
    for cell in book_cells(results):
        by_row.setdefault((cell.kind, cell.shape), {})[cell.m] = _text(cell)
    rows = [
        [BOOK_KINDS[kind].label, str(shape), *(found.get(m, "") for m in BOOK_ROWS)]
        for (kind, shape), found in by_row.items()
    ]
    return markdown(["what:", "N x K:", *(f"M = {m}" for m in BOOK_ROWS)], rows) if rows else ""


def skewed_table(results: Results) -> str:
    """Times of AQLM 1x16 with codes by Zipf's law, over those with all entries alike, and with the frequent entries in
    shared memory over those without; '' where none was measured."""
    rows = []
    for shape in BOOK_SHAPES:
        for m in BOOK_ROWS:
            times = [results.time("lowlp", kind, shape, m) for kind in (UNIFORM, ZIPF, FREQUENT)]
            if times[1] is None and times[2] is None:
                continue
            limits = (None, *SKEWED_OVER)
            cells = [
                _over(us, before, limit) for us, before, limit in zip(times, (None, *times[:2]), limits, strict=True)
            ]
            rows.append([str(shape), str(m), *cells])
    return markdown(["N x K:", "M", "alike:", "Zipf (over alike):", "by frequency (over Zipf):"], rows) if rows else ""


def _over(us: float | None, before: float | None, limit: float | None) -> str:
    if us is None:
        return ABSENT
    if before is None or limit is None:
        return _microseconds(us)
    told = f"{_microseconds(us)} ({us / before:.2f} of {limit})"
    return told if us <= limit * before else f"**{told} missed**"


def _text(cell: BookCell) -> str:
    """'71.2 (88, 42; AQLM 180)', bold where it is missed."""
    asked = [", ".join(_microseconds(us) for us in (cell.must_us, cell.may_us) if us is not None)]
    asked += [] if cell.aqlm_us is None else [f"AQLM {_microseconds(cell.aqlm_us)}"]
    us = ABSENT if cell.us is None else _microseconds(cell.us)
    us = f"**{us} missed**" if cell.status == MISSED else us
    told = "; ".join(part for part in asked if part)
    return f"{us} ({told})" if told else us


def _microseconds(value: float) -> str:
    """Three digits, or as many as there are before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
