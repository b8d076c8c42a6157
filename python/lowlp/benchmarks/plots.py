"""The plots of a report: speed-up by width, fraction of the floor by width, times over M."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lowlp.drawing.picture import Picture

from .ablation import OURS, PAPERS_MEAN, measured_products, us_of
from .acceptance import fraction, speedup, speedup_over_best
from .cases import BOOK_KINDS, KINDS, ROWS, VERSIONS, Shape, WeightKind
from .charts import COLORS, Series, bars, curves
from .peers import NAMES as PEERS
from .requirements import FRACTION_ROWS, LARGEST, Timed
from .results import Results

_SPEEDUP_ROWS: Final = (1, 16, 64, 128)
_BEST_ROWS: Final = (1, 8, 16, 32, 64, 128, 256)
_CURVES: Final = ("int8", "int4", "int2")


def plots(results: Results) -> dict[str, Picture]:
    """The pictures by the end of their file's name; those without any value are left out."""
    kinds = sorted(KINDS.values(), key=lambda kind: -kind.bits)
    found = {}
    for who in ("humming", "torch"):
        series = [
            Series(f"M = {m}", _speedups(results, kinds, who, m), color)
            for m, color in zip(_SPEEDUP_ROWS, COLORS, strict=False)
        ]
        title, step = ("torch f16", 1.0) if who == "torch" else (f"{who}, same type", 0.5)
        found[f"speedup-over-{who}"] = _if_any(
            f"Speed over {title}: geometric mean over the shapes",
            kinds,
            series,
            rule=1.0,
            step=step,
        )
    found["speedup-over-best"] = _over_best(results)
    series = [
        Series(f"M = {m}", tuple(fraction(results, kind.name, LARGEST, m).value for kind in kinds), color)
        for m, color in zip(FRACTION_ROWS, COLORS, strict=False)
    ]
    found["fraction-of-floor"] = _if_any(
        f"Fraction of the read-bandwidth floor, N x K = {LARGEST}", kinds, series, rule=1.0, step=0.2
    )
    found["time-over-m"] = _times(results)
    found["codebook-versions"] = ablation_picture(results)
    return {name: picture for name, picture in found.items() if picture is not None}


def ablation_picture(results: Results) -> Picture | None:
    """Bars of the same parts at the largest shape, a group for each product; None where none was measured."""
    found = [case for case in measured_products(results) if us_of(results, case[0], VERSIONS[0], *case[1:])]
    cases = [case for case in found if case[1] == LARGEST]
    if not cases:
        return None

    def part(version: str, kind: str, shape: Shape, m: int) -> float | None:
        us, of_gc = us_of(results, kind, version, shape, m), us_of(results, kind, VERSIONS[0], shape, m)
        return us / of_gc if us and of_gc else None

    series = [
        Series(version.upper() or OURS, tuple(part(version, *case) for case in cases), color)
        for version, color in zip((*VERSIONS[1:], ""), COLORS, strict=True)
    ]
    labels = [f"{BOOK_KINDS[kind].label}, M = {m}" for kind, _, m in cases]
    title = f"Part of the time of GC, N x K = {LARGEST}; the line: the paper's best versions on average, on an RTX 4090"
    return bars(title, labels, series, rule=PAPERS_MEAN, step=0.25)


def _over_best(results: Results) -> Picture | None:
    """A line for each width over M, against whichever library was fastest: torch in f16, or any with that type."""
    names = [f"int{bits}" for bits in (8, 6, 5, 4, 3, 2)]
    series = []
    for name, color in zip(names, COLORS, strict=True):
        rivals = [Timed("torch", "f16"), *(Timed(who, name) for who in PEERS if who != "torch")]
        values = tuple(speedup_over_best(results, name, rivals, m) for m in _BEST_ROWS)
        series.append(Series(name, values, color))
    series = [one for one in series if any(value is not None for value in one.values)]
    title = "Speed over the fastest alternative at each shape: geometric mean over the shapes"
    return curves(title, [f"M = {m}" for m in _BEST_ROWS], series, step=0.25, rule=1.0) if series else None


def _speedups(results: Results, kinds: Sequence[WeightKind], who: str, m: int) -> tuple[float | None, ...]:
    return tuple(speedup(results, kind.name, Timed(who, "f16" if who == "torch" else kind.name), m) for kind in kinds)


def _if_any(
    title: str, kinds: Sequence[WeightKind], series: Sequence[Series], rule: float, step: float
) -> Picture | None:
    if all(value is None for one in series for value in one.values):
        return None
    # A kind that has no values at all leaves no gap.
    present = [place for place in range(len(kinds)) if any(one.values[place] is not None for one in series)]
    labels = [kinds[place].label.replace(" with zero points", " + zp").removesuffix(" table") for place in present]
    shown = [replace(one, values=tuple(one.values[place] for place in present)) for one in series]
    return bars(title, labels, shown, rule, step)


def _times(results: Results) -> Picture | None:
    """Ours, humming's and torch's times over M at the largest shape."""
    series = [Series("torch f16", _over_rows(results, "torch", "f16"), "#1f2328")]
    for name, color in zip(_CURVES, COLORS, strict=False):
        series.append(Series(f"lowlp {name}", _over_rows(results, "lowlp", name), color))
        series.append(Series(f"humming {name} (thin)", _over_rows(results, "humming", name), color, faint=True))
    series = [one for one in series if any(value is not None for value in one.values)]
    if not series:
        return None
    return curves(f"Microseconds over M, N x K = {LARGEST}", [f"M = {m}" for m in ROWS], series)


def _over_rows(results: Results, who: str, kind: str) -> tuple[float | None, ...]:
    return tuple(results.time(who, kind, LARGEST, m) for m in ROWS)
