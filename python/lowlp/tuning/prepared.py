"""A folder of compiled candidates: an index, a file for each problem, and saved kernels. Read without the compiler."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.device import compute_capability, multiprocessors
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.module import cubin_runs_on
from lowlp_runtime.whole_file import write_whole

from .prepared_folder import INDEX, load_index

FORMAT: Final = 2
SPILLS: Final = "it spills"
"""The problem of a candidate that compiles, and is left out for what it would cost."""


@dataclass(frozen=True)
class Kernel:
    """What a candidate launches for m rows of x; what it takes is in its description."""

    m: int
    file: str


@dataclass(frozen=True)
class Candidate:
    """A division of the work.

    schedule  of it, as a file of measured schedules has it
    kernels   one for each number of rows that is measured
    problem   why they are of no use, or ''
    """

    schedule: dict[str, Any]
    kernels: tuple[Kernel, ...]
    problem: str = ""


@dataclass(frozen=True)
class PreparedProblem:
    """An entry that a file of measured schedules is to have: weights and a class of M.

    candidates  in the order of what they take by estimate
    """

    kind: str
    n: int
    k: int
    m: int
    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.n}x{self.k} M<={self.m}"

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What tells entries apart."""
        return self.kind, self.n, self.k, self.m

    @property
    def file(self) -> str:
        """In the folder."""
        return f"{self.kind.replace(' ', '-')}-{self.n}x{self.k}-m{self.m}.json"

    @staticmethod
    def load(path: Path) -> PreparedProblem:
        """Reads a file. Raises `LowlpValueError` where it holds something else, `OSError`."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            candidates = tuple(_candidate(**candidate) for candidate in data.pop("candidates"))
            return PreparedProblem(**data, candidates=candidates)
        except (ValueError, KeyError, TypeError) as error:
            raise LowlpValueError(f"{path}: no candidates of `lowlp tune`: {error!r}") from error


def _candidate(schedule: dict[str, Any], kernels: list[dict[str, Any]], problem: str) -> Candidate:
    return Candidate(schedule, tuple(Kernel(one["m"], one["file"]) for one in kernels), problem)


@dataclass(frozen=True)
class PreparedCandidates:
    """A folder, and what its kernels are for.

    version          of the compiler
    multiprocessors  of the GPU that the kernels divide their work for
    """

    folder: Path
    arch: str
    version: str
    multiprocessors: int

    def __str__(self) -> str:
        return f"{self.arch} with {self.multiprocessors} multiprocessors, by lowlp {self.version}"

    def save(self) -> None:
        """Writes the index."""
        facts = {"arch": self.arch, "lowlp": self.version, "multiprocessors": self.multiprocessors}
        write_whole(self.folder / INDEX, json.dumps({"format": FORMAT, **facts}).encode())

    @staticmethod
    def load(folder: Path) -> PreparedCandidates:
        """Reads the index. Raises `LowlpValueError` where the folder has none of this format, `OSError`."""
        return load_index(
            folder,
            "tune",
            "candidates",
            FORMAT,
            lambda data: PreparedCandidates(folder, data["arch"], data["lowlp"], data["multiprocessors"]),
        )

    def check_device(self, ordinal: int) -> None:
        """Raises `LowlpValueError` for a GPU that the kernels are not for."""
        capability, size = compute_capability(ordinal), multiprocessors(ordinal)
        if not cubin_runs_on(self.arch, capability) or size != self.multiprocessors:
            raise LowlpValueError(
                f"--kernels: {self.folder} is for {self.arch} with {self.multiprocessors} multiprocessors, and this "
                f"GPU has compute capability {capability[0]}.{capability[1]} and {size}; prepare with --arch and "
                "--multiprocessors"
            )

    def problems(self) -> list[PreparedProblem]:
        """All problems whose candidates are compiled."""
        return [PreparedProblem.load(path) for path in sorted(self.folder.glob("*.json")) if path.name != INDEX]

    def save_problem(self, problem: PreparedProblem) -> None:
        """Writes a problem whose kernels are there."""
        write_whole(self.folder / problem.file, json.dumps(asdict(problem)).encode())

    def load_kernel(self, kernel: Kernel) -> KernelBinary:
        """Reads a kernel."""
        return KernelBinary.load(self.folder / kernel.file)

    def identity(self, problem: PreparedProblem) -> str:
        """What tells its kernels from those of another compiler, and from other candidates."""
        text = json.dumps([str(self), asdict(problem)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]
