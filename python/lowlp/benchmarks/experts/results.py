"""Times of experts as JSON, and as tables with what is asked of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from lowlp.benchmarks.report import markdown
from lowlp.benchmarks.results import Run
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.whole_file import write_whole

from .cases import Case

MARK: Final = ".experts-"
"""In the names of files that the pages of NAME.json show: NAME.experts-1.json."""
FORMAT: Final = "lowlp experts 1"
OURS: Final = "lowlp"
LOOP: Final = "loop of linear"
TORCH: Final = "torch bf16"
HUMMING: Final = "humming"
OVER_FLOOR: Final = 1.15
"""Of the floor, beside an empty kernel, that decoding may take."""
MOST_DECODED: Final = 64
MOST_FASTER: Final = 256
FACTORS: Final = (1.1, 0.97)
"""Over bf16 and over humming, up to `MOST_FASTER` tokens and beyond."""


@dataclass(frozen=True)
class ExpertsRow:
    """One time.

    who      `OURS`, `TORCH` (`torch._grouped_mm`), `HUMMING` (its grouped product) or `LOOP` (`lowlp.linear` for each
             expert that has rows, which the host knows)
    us       median of device time with cold caches, in microseconds; None where `problem` says why
    error    relative Frobenius error of the expert with most rows against float64
    problem  what went wrong, or ''
    """

    who: str
    case: Case
    us: float | None = None
    least_us: float | None = None
    repeats: int = 0
    error: float | None = None
    problem: str = ""


class ExpertsResults:
    """A run and its rows, in the order in which they were measured."""

    def __init__(self, run: Run, rows: Iterable[ExpertsRow] = ()) -> None:
        self.run, self.rows = run, list(rows)

    def us(self, who: str, case: Case) -> float | None:
        """The time of a case; torch's of whatever weights of ours."""
        for row in self.rows:
            same = (row.case.model, row.case.product, row.case.tokens, row.case.routing)
            wanted = (case.model, case.product, case.tokens, case.routing)
            if row.who == who and same == wanted and (who == TORCH or row.case.kind == case.kind):
                return row.us
        return None

    def save(self, path: Path) -> None:
        """Writes the file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"format": FORMAT, "run": asdict(self.run), "rows": [asdict(row) for row in self.rows]}
        write_whole(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())

    @staticmethod
    def load(path: Path) -> ExpertsResults:
        """Reads a file. Raises `LowlpValueError` where it holds no such results, `OSError`."""
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise LowlpValueError(f"{path}: expected {FORMAT!r}, got {data['format']!r:.40}")
            rows = (ExpertsRow(**{**row, "case": Case(**row["case"])}) for row in data["rows"])
            return ExpertsResults(Run(**data["run"]), rows)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, LowlpValueError):
                raise
            raise LowlpValueError(f"{path}: no results of `lowlp bench --experts`: {error}") from error


def must_us(results: ExpertsResults, case: Case) -> float | None:
    """What a case may take; None where nothing is asked, or what it depends on was not measured."""
    limits = []
    if case.tokens <= MOST_DECODED and results.run.empty_us is not None:
        limits.append(results.run.empty_us + OVER_FLOOR * case.floor_us(results.run.read_bytes_per_s))
    for who in (TORCH, HUMMING):
        theirs = results.us(who, case)
        if theirs is not None:
            limits.append(theirs / FACTORS[case.tokens > MOST_FASTER])
    return min(limits, default=None)


def table(results: ExpertsResults) -> str:
    """Each time of ours with the floor, what is asked, and the others'; '' where there are none."""
    rows = []
    for row in results.rows:
        if row.who != OURS:
            continue
        case, must = row.case, must_us(results, row.case)
        is_missed = row.us is not None and must is not None and row.us > must
        floor = case.floor_us(results.run.read_bytes_per_s)
        times = floor and row.us and f"{row.us / floor:.2f}"
        others = [_us(results.us(who, case)) for who in (TORCH, HUMMING, LOOP)]
        ours = f"**{_us(row.us)} missed**" if is_missed else _us(row.us)
        what = f"{case.model} {case.product} {case.kind}"
        rows.append([what, case.routing, str(case.tokens), ours, _us(must), _us(floor), str(times or ""), *others])
    head = ["what:", "routing:", "tokens", "us", "asked", "floor", "of the floor", TORCH, HUMMING, LOOP]
    return markdown(head, rows) if rows else ""


def summary_table(results: ExpertsResults) -> str:
    """By model and kind, and by tokens: the geometric mean of what is asked over our time, and how many cases meet it.
    '' where there are none."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in results.rows:
        must = must_us(results, row.case)
        if row.who == OURS and row.us is not None and must is not None:
            by_tokens = found.setdefault(f"{row.case.model} {row.case.kind}", {})
            by_tokens.setdefault(row.case.tokens, []).append(must / row.us)
    columns = sorted({tokens for by_tokens in found.values() for tokens in by_tokens})
    rows = [[what, *(_mean(by_tokens.get(tokens, [])) for tokens in columns)] for what, by_tokens in found.items()]
    return markdown(["what:", *(f"{tokens} tokens" for tokens in columns)], rows) if rows else ""


def _mean(ratios: list[float]) -> str:
    """'0.95 (3 of 4)', rounded down."""
    if not ratios:
        return ""
    mean = math.floor(100 * math.exp(math.fsum(map(math.log, ratios)) / len(ratios))) / 100
    return f"{mean:.2f} ({sum(ratio >= 1 for ratio in ratios)} of {len(ratios)})"


def _us(us: float | None) -> str:
    return "" if us is None else f"{us:.1f}" if us < 1000 else f"{us:.0f}"
