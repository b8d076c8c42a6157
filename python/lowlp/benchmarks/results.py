"""Results as JSON: runs, each with its GPU, versions and the time of an empty kernel; and rows of times."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.timing import Timing
from lowlp_runtime.whole_file import write_whole

from .cases import SHAPES, Shape

FORMAT: Final = 1
PLAIN: Final = "plain"
PLAIN_RIVAL: Final = "linear beside plain"
"""Of the kernel of `examples/plain_matmul.py`, and of `linear` in turns with it (`benchmarks/plain_matmul.py`)."""


@dataclass(frozen=True)
class Row:
    """One product of one library.

    who        'lowlp', 'torch', 'humming', 'gemlite' or 'bitsandbytes'; `PLAIN` or `PLAIN_RIVAL`
    kind       name of the weights; 'f16' for torch
    us         median of the repeats, in microseconds, device time with cold caches; None where `problem` says why
    least_us   of the repeats
    repeats    how many
    error      relative Frobenius error against float64 of what was timed
    tolerance  of that error; above it there is a problem and no time
    problem    what went wrong, or ''
    run        index of the run in `Results.runs`
    detail     what else a peer says of itself, its block size for example
    """

    who: str
    kind: str
    n: int
    k: int
    m: int
    us: float | None
    least_us: float | None = None
    repeats: int = 0
    error: float | None = None
    tolerance: float | None = None
    problem: str = ""
    run: int = 0
    detail: str = ""

    @property
    def shape(self) -> Shape:
        return Shape(self.n, self.k)

    @property
    def key(self) -> tuple[str, str, int, int, int]:
        """What a later measurement replaces."""
        return self.who, self.kind, self.n, self.k, self.m

    def to_json(self) -> dict[str, Any]:
        """The fields that say something; the inverse of `Row(**data)`."""
        bare = Row(self.who, self.kind, self.n, self.k, self.m, None)
        return {
            name: value
            for name, value in asdict(self).items()
            if name in ("who", "kind", "n", "k", "m", "us") or value != getattr(bare, name)
        }


@dataclass(frozen=True)
class Run:
    """One start of the bench.

    date              of its beginning, ISO 8601, UTC
    gpu, driver       as the driver names them
    versions          of packages, by name; peers that are absent have ''
    empty_us          an empty kernel by the same function, or None where none was timed
    read_bytes_per_s  what floors are computed with
    measured_read     bytes per second of a sum over 2 GiB, where that was asked for
    host_us           the host's least time for a cached call of `linear`, or None
    module_us         the same of a module of `lowlp.torch.Linear`, with a bias
    notes             what could not be done, in words
    """

    date: str
    gpu: str
    driver: str
    versions: dict[str, str]
    empty_us: float | None
    read_bytes_per_s: float
    measured_read: float | None = None
    host_us: float | None = None
    module_us: float | None = None
    notes: list[str] = field(default_factory=list)


class Results:
    """Rows by their key, with the runs they are from."""

    def __init__(self, runs: Sequence[Run] = (), rows: Iterable[Row] = ()) -> None:
        self.runs = list(runs)
        self._rows = {row.key: row for row in rows}

    @property
    def rows(self) -> list[Row]:
        """All rows, in a fixed order."""
        order = {shape: number for number, shape in enumerate(SHAPES)}
        return sorted(
            self._rows.values(), key=lambda row: (order.get(row.shape, len(order)), row.shape, row.who, row.kind, row.m)
        )

    def add(self, row: Row) -> None:
        """Adds a row in place of the one with the same key."""
        self._rows[row.key] = row

    def find(self, who: str, kind: str, shape: Shape, m: int) -> Row | None:
        """The row of that key."""
        return self._rows.get((who, kind, shape.n, shape.k, m))

    def time(self, who: str, kind: str, shape: Shape, m: int) -> float | None:
        """Microseconds, or None where there are none."""
        row = self.find(who, kind, shape, m)
        return None if row is None else row.us

    def run_of(self, row: Row) -> Run:
        return self.runs[row.run]

    def save(self, path: Path) -> None:
        """Writes the file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        runs = [asdict(run) for run in self.runs]
        rows = [json.dumps(row.to_json(), allow_nan=False) for row in self.rows]
        head = json.dumps({"format": FORMAT, "runs": runs}, indent=1, allow_nan=False)
        text = head.removesuffix("\n}") + ',\n "rows": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n"
        write_whole(path, text.encode())

    @staticmethod
    def load(path: Path) -> Results:
        """Reads a file. Raises `LowlpValueError` where it holds no results of this format, `OSError`."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise LowlpValueError(f"{path}: expected results of format {FORMAT}, got {data['format']!r:.40}")
            return Results([Run(**run) for run in data["runs"]], [Row(**row) for row in data["rows"]])
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, LowlpValueError):
                raise
            raise LowlpValueError(f"{path}: no results of `lowlp bench`: {error}") from error


def merged(parts: Sequence[Results]) -> Results:
    """All in one. Of rows with the same key the last one with a time is kept, or the last one."""
    result = Results()
    for part in parts:
        first = len(result.runs)
        result.runs += part.runs
        for row in part.rows:
            before = result.find(row.who, row.kind, row.shape, row.m)
            if before is None or row.us is not None or before.us is None:
                result.add(replace(row, run=row.run + first))
    return result


def rounded(value: float | None, digits: int = 5) -> float | None:
    """To significant digits, so that files can be read; None for what is no finite number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{digits}g}")


def with_times(row: Row, timing: Timing) -> Row:
    """The row with its times."""
    return replace(row, us=rounded(timing.median_us), least_us=rounded(timing.min_us), repeats=len(timing.samples_us))
