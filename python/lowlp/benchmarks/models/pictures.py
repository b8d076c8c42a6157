"""The plot of drawn problems: speed over the fastest peer, by rows of x and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lowlp.benchmarks.charts import COLORS, Series, curves
from lowlp.drawing.picture import Picture

from .judging import DECODE_MOST, Judged, judged, mean_of
from .model_results import ModelResults

_WIDTHS: Final = ((5, 8), (3, 4), (1, 2))
_LEAST_CELLS: Final = 3
"""Fewer problems have no mean that says anything."""


def _ranges() -> list[tuple[int, int]]:
    """Each power of two up to `DECODE_MOST` with what follows it."""
    lows = [1 << power for power in range(DECODE_MOST.bit_length() - 1)]
    return [(low, 2 * low - 1) for low in lows[:-1]] + [(lows[-1], DECODE_MOST)]


def drawn_picture(runs: Sequence[ModelResults]) -> Picture | None:
    """Geometric means over the problems of all these runs, of kinds that humming has, whose scales the activation type
    holds; None without any. A range of rows with fewer than three problems of a width has no point."""
    cells = [cell for run in runs for cell in judged(run) if not cell.is_apart and cell.kind.is_scaled_exactly]
    if not cells:
        return None
    ranges = _ranges()
    series = [
        Series(f"{low} to {high} bits", tuple(_mean(cells, (low, high), rows) for rows in ranges), color)
        for (low, high), color in zip(_WIDTHS, COLORS, strict=False)
    ]
    labels = [f"{low}" if low == high else f"{low} to {high}" for low, high in ranges]
    title = f"Random problems: speed over the faster of torch and humming, by rows of x; {len(cells)} problems"
    return curves(title, labels, series, step=0.25, rule=1.0)


def _mean(cells: Sequence[Judged], bits: tuple[int, int], rows: tuple[int, int]) -> float | None:
    inside = [cell for cell in cells if bits[0] <= cell.kind.bits <= bits[1] and rows[0] <= cell.problem.m <= rows[1]]
    return mean_of(inside, lambda cell: cell.plain).mean if len(inside) >= _LEAST_CELLS else None
