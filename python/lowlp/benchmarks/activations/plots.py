"""The plot of `lowlp bench --activations`: effective operations a second by widths, of the path that `linear` takes."""

from __future__ import annotations

from lowlp.benchmarks.charts import COLORS, Series, bars
from lowlp.benchmarks.requirements import LARGEST
from lowlp.benchmarks.results import Results
from lowlp.drawing.picture import Picture

from .cases import INT_MM, KINDS, SCALED_MM, TORCH, ActivationKind, who
from .chosen import chosen_path

_ROWS = (256, 1024, 4096)
_PEERS = ((TORCH, "f16", "torch f16"), (INT_MM, "int8", "torch int8"), (SCALED_MM, "f8e4m3", "torch fp8"))


def tops(us: float | None, m: int) -> float | None:
    """10^12 operations a second, an addition and a multiplication for each weight and row, at the largest shape."""
    return None if us is None else 2 * m * LARGEST.n * LARGEST.k / us / 1e6


def effective_tops(results: Results) -> Picture | None:
    """Bars by kind, and of PyTorch's products; None where nothing was measured at the largest shape."""
    kinds = [kind for kind in KINDS.values() if any(_ours(results, kind, m) is not None for m in _ROWS)]
    if not kinds:
        return None
    series = []
    for m, color in zip(_ROWS, COLORS, strict=False):
        ours = [tops(_ours(results, kind, m), m) for kind in kinds]
        theirs = [tops(results.time(library, weights, LARGEST, m), m) for library, weights, _ in _PEERS]
        series.append(Series(f"M = {m}", tuple(_rounded(value) for value in (*ours, *theirs)), color))
    titles = [kind.title for kind in kinds] + [title for *_, title in _PEERS]
    return bars(f"Effective TOP/s by widths, N x K = {LARGEST}", titles, series, step=500.0)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(round(value))


def _ours(results: Results, kind: ActivationKind, m: int) -> float | None:
    times = {path: results.time(who(path), kind.name, LARGEST, m) for path in kind.paths}
    known = tuple(path for path, us in times.items() if us is not None)
    return times[chosen_path(kind, LARGEST, m, known)] if known else None
