"""What a folder of prepared problems holds beside the kernels: the draw, and what the choice of each schedule thought.
Read without the compiler."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from lowlp.benchmarks.cases import Shape
from lowlp.benchmarks.prepared import KernelEntry, entry_of
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.whole_file import write_whole

FORMAT: Final = 1
PROBLEMS: Final = "problems.json"
SLABS: Final = "slabs"


@dataclass(frozen=True)
class Candidate:
    """A kernel with another schedule that fits, and what it would take by estimate."""

    entry: KernelEntry
    estimated_us: float


@dataclass(frozen=True)
class Problem:
    """A drawn problem.

    kind          name of the weights
    twin          name of those in groups of 128, which are timed beside them, or ''
    products      which have the shape, in words
    estimated_us  what the chosen kernel would take by estimate; None for one without stages, of which there is none
    by            what chose it: 'measured' where estimates alone would have chosen another, 'estimate', 'no choice'
                  for a kernel without stages, or `SLABS` where estimates chose to decode the weights to memory
    by_estimate   number of the kernel that estimates alone would choose: 0 for the chosen one, 1 for the first
                  candidate
    candidates    other kernels to hold it against
    """

    kind: str
    n: int
    k: int
    m: int
    twin: str = ""
    products: str = ""
    estimated_us: float | None = None
    by: str = ""
    by_estimate: int = 0
    candidates: tuple[Candidate, ...] = ()

    @property
    def shape(self) -> Shape:
        return Shape(self.n, self.k)

    def __str__(self) -> str:
        return f"{self.kind} {self.shape} M={self.m}"


@dataclass(frozen=True)
class PreparedProblems:
    """The draw of a folder.

    with_measured  whether schedules were chosen by measured ones too, and not by estimate alone
    """

    seed: int
    with_measured: bool = True
    problems: tuple[Problem, ...] = field(default=())

    def save(self, folder: Path) -> None:
        """Writes the file."""
        data = {"format": FORMAT, **asdict(self)}
        write_whole(folder / PROBLEMS, json.dumps(data, indent=1).encode())

    @staticmethod
    def load(folder: Path) -> PreparedProblems:
        """Reads the file. Raises `LowlpValueError` where there is none of this format, `OSError`."""
        path = folder / PROBLEMS
        if not path.is_file():
            raise LowlpValueError(
                f"--kernels: {folder} has no {PROBLEMS}; make it with `lowlp bench --set models --prepare {folder}`"
            )
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise LowlpValueError(f"{path}: expected format {FORMAT}, got {data['format']!r:.40}")
            problems = tuple(problem_of(problem) for problem in data["problems"])
            return PreparedProblems(data["seed"], data["with_measured"], problems)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, LowlpValueError):
                raise
            raise LowlpValueError(f"{path}: no problems of `lowlp bench --set models`: {error!r}") from error


def problem_of(data: dict[str, Any]) -> Problem:
    """The inverse of `asdict`. Raises `KeyError`, `TypeError` for other data."""
    candidates = tuple(Candidate(entry_of(one["entry"]), one["estimated_us"]) for one in data["candidates"])
    return Problem(**{**data, "candidates": candidates})
