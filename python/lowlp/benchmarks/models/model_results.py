"""Results of a run on drawn problems as JSON: the draw, the kinds, the rows of times, and what was timed in turns."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from lowlp.benchmarks.cases import WeightKind
from lowlp.benchmarks.prepared import kind_of_json
from lowlp.benchmarks.results import Results, Row, Run
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.whole_file import write_whole

from .folder import Problem, problem_of

FORMAT: Final = 1
SET: Final = "models"
MODELS_MARK: Final = ".models-"
"""In names of files that belong to NAME.json and are shown on its page: NAME.models-1.json."""


@dataclass(frozen=True)
class Turns:
    """Times of one problem that were taken in turns with those of its rival, in microseconds.

    problem  its number in the draw
    rival    the peer's name
    """

    problem: int
    rival: str
    ours_us: tuple[float, ...]
    rival_us: tuple[float, ...]


@dataclass
class ModelResults:
    """One run.

    seed           of the draw
    with_measured  whether schedules were chosen by measured ones too
    turns          of the problems that were timed again
    """

    seed: int
    with_measured: bool
    problems: tuple[Problem, ...]
    kinds: dict[str, WeightKind]
    results: Results
    turns: list[Turns] = field(default_factory=list)

    @property
    def run(self) -> Run:
        """When and where."""
        return self.results.runs[0]

    def save(self, path: Path) -> None:
        """Writes the file, whole or not at all."""
        head = {
            "format": FORMAT,
            "set": SET,
            "seed": self.seed,
            "with_measured": self.with_measured,
            "run": asdict(self.run),
            "kinds": [asdict(kind) for kind in self.kinds.values()],
            "turns": [asdict(one) for one in self.turns],
        }
        lists = {
            "problems": [asdict(problem) for problem in self.problems],
            "rows": [row.to_json() for row in self.results.rows],
        }
        text = json.dumps(head, indent=1, allow_nan=False).removesuffix("\n}")
        for name, entries in lists.items():
            lines = ",\n  ".join(json.dumps(entry, allow_nan=False) for entry in entries)
            text += f',\n "{name}": [\n  {lines}\n ]'
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (text + "\n}\n").encode())

    @staticmethod
    def load(path: Path) -> ModelResults:
        """Reads a file. Raises `LowlpValueError` where it holds no such results, `OSError`."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if (data["set"], data["format"]) != (SET, FORMAT):
                raise LowlpValueError(f"{path}: expected results of --set models of format {FORMAT}")
            return ModelResults(
                data["seed"],
                data["with_measured"],
                tuple(problem_of(problem) for problem in data["problems"]),
                {kind["name"]: kind_of_json(kind) for kind in data["kinds"]},
                Results([Run(**data["run"])], [Row(**row) for row in data["rows"]]),
                [_turns(one) for one in data["turns"]],
            )
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, LowlpValueError):
                raise
            raise LowlpValueError(f"{path}: no results of `lowlp bench --set models`: {error!r}") from error


def is_of_models(path: Path) -> bool:
    """Whether a file holds such results, by its first lines. Raises `OSError`."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return f'"set": "{SET}"' in file.read(200)


def _turns(data: dict[str, Any]) -> Turns:
    return Turns(data["problem"], data["rival"], tuple(data["ours_us"]), tuple(data["rival_us"]))
