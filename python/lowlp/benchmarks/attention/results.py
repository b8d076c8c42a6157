"""Times of attention as JSON, and as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from lowlp.benchmarks.acceptance import ABSENT, MET, MISSED
from lowlp.benchmarks.report import markdown
from lowlp.benchmarks.results import Run
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.whole_file import write_whole

from .cases import APPEND, APPEND_BATCH, APPEND_US, CASES, KINDS, Case, may_us, must_us

MARK: Final = ".attention-"
"""In the names of files that the page of NAME.json shows: NAME.attention-1.json."""
FORMAT: Final = "lowlp attention 1"
OURS: Final = "lowlp"
KEYS_ONLY: Final = "keys only"
"""A kernel of ours that leaves values out: what is left of the time is scores and all that is fixed."""


@dataclass(frozen=True)
class AttentionRow:
    """One time.

    who       'lowlp', 'torch' or 'flashinfer'
    kind      type of the cache, or `APPEND` and it
    us        median of device time with cold caches, in microseconds; None where `problem` says why
    least_us  of the repeats
    variant   what was left out of the kernel, a version of VQ-LLM's table IV, or ''
    error     relative Frobenius error against float64 on the dequantised cache
    problem   what went wrong, or ''
    """

    who: str
    kind: str
    kv_heads: int
    batch: int
    tokens: int
    us: float | None
    least_us: float | None = None
    repeats: int = 0
    variant: str = ""
    error: float | None = None
    problem: str = ""

    @property
    def case(self) -> Case:
        return Case(self.kv_heads, self.batch, self.tokens)


class AttentionResults:
    """A run and its rows, in the order in which they were measured."""

    def __init__(self, run: Run, rows: Iterable[AttentionRow] = ()) -> None:
        self.run, self.rows = run, list(rows)

    def find(self, who: str, kind: str, case: Case, variant: str = "") -> AttentionRow | None:
        """The last such row."""
        found = [row for row in self.rows if (row.who, row.kind, row.case, row.variant) == (who, kind, case, variant)]
        return found[-1] if found else None

    def save(self, path: Path) -> None:
        """Writes the file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"format": FORMAT, "run": asdict(self.run), "rows": [asdict(row) for row in self.rows]}
        write_whole(path, (json.dumps(data, indent=1, allow_nan=False) + "\n").encode())

    @staticmethod
    def load(path: Path) -> AttentionResults:
        """Reads a file. Raises `LowlpValueError` where it holds no such results, `OSError`."""
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise LowlpValueError(f"{path}: expected {FORMAT!r}, got {data['format']!r:.40}")
            return AttentionResults(Run(**data["run"]), [AttentionRow(**row) for row in data["rows"]])
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, LowlpValueError):
                raise
            raise LowlpValueError(f"{path}: no results of `lowlp bench --attention`: {error}") from error


def status_of(row: AttentionRow | None, must: float | None) -> str:
    """'' where nothing is asked."""
    if row is None or row.us is None:
        return ABSENT
    return "" if must is None else MET if row.us <= must else MISSED


def decode_table(results: AttentionResults) -> str:
    """Times with what is allowed and the bytes' floor, and those of peers; '' where there are none."""
    rows = []
    for case in _cases(results):
        theirs = [results.find(who, "f16", case) for who in ("torch", "flashinfer")]
        cells = ["" if row is None else _us(row) for row in theirs]
        cells += [_cell(results.find(OURS, kind, case), kind, case, results.run) for kind in KINDS]
        rows.append([str(case), *cells])
    return markdown(["what:", "torch f16", "FlashInfer f16", *KINDS], rows) if rows else ""


def limits_table(results: AttentionResults) -> str:
    """What limits each: the share of the time that the bytes alone take, and the time without values."""
    rows = []
    for case in _cases(results):
        for kind in KINDS:
            row, keys = results.find(OURS, kind, case), results.find(OURS, kind, case, KEYS_ONLY)
            if row is None or row.us is None:
                continue
            floor = case.floor_us(kind, results.run.read_bytes_per_s)
            left = "" if keys is None else _us(keys)
            rows.append([str(case), kind, _number(row.us), _number(floor), f"{floor / row.us:.0%}", left])
    return markdown(["what:", "cache:", "us", "bytes", "of the time", KEYS_ONLY], rows) if rows else ""


def append_table(results: AttentionResults) -> str:
    """Appending a token of each sequence; '' where it was not measured."""
    empty = results.run.empty_us
    rows = []
    for row in results.rows:
        if not row.kind.startswith(APPEND):
            continue
        must = None if empty is None or row.batch != APPEND_BATCH else empty + APPEND_US
        asked = "" if must is None else f" ({_number(must)})"
        text = f"**{_us(row)} missed**" if status_of(row, must) == MISSED else _us(row)
        rows.append([row.kind.removeprefix(APPEND).strip(), str(row.kv_heads), str(row.batch), text + asked])
    return markdown(["cache:", "KV heads", "sequences", "us"], rows) if rows else ""


def _cases(results: AttentionResults) -> Sequence[Case]:
    """Those of decoding, the ones with targets first."""
    found = dict.fromkeys(row.case for row in results.rows if not row.kind.startswith(APPEND))
    return [*(case for case in CASES if case in found), *(case for case in found if case not in CASES)]


def _cell(row: AttentionRow | None, kind: str, case: Case, run: Run) -> str:
    """'71.2 (75, 45)', bold where it is missed."""
    if row is None:
        return ""
    must = must_us(kind, case, run.gpu, run.read_bytes_per_s)
    asked = ", ".join(_number(us) for us in (must, may_us(kind, case, run.gpu)) if us is not None)
    text = f"**{_us(row)} missed**" if status_of(row, must) == MISSED else _us(row)
    return f"{text} ({asked})" if asked else text


def _us(row: AttentionRow) -> str:
    return ABSENT if row.us is None else _number(row.us)


def _number(value: float) -> str:
    """Three digits, or as many as there are before the point."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
