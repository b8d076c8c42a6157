"""The measured schedules that `lowlp tune` writes: for each problem the fastest, on one GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lowlp.schedules.measured_file import read_measured, write_measured
from lowlp_runtime.errors import LowlpValueError

Key = tuple[str, int, int, int]
"""What tells problems apart: kind of weights, N, K, and the largest M of a class."""


class MeasuredFile:
    """A file; read if it is there, and written after each change.

    argument  how errors call the path

    Raises `LowlpValueError` for a file of another GPU, and of another kind.
    """

    def __init__(self, path: Path, gpu: str, argument: str = "--out") -> None:
        self.path, self._gpu = path, gpu
        self._entries: dict[Key, dict[str, Any]] = {}
        if not path.exists():
            return
        try:
            found, entries = read_measured(path)
        except LowlpValueError as error:
            raise LowlpValueError(f"{argument}: {error}") from error
        if found != gpu:
            raise LowlpValueError(f"{argument}: {path} has schedules measured on {found}, and this GPU is {gpu}")
        self._entries = {(entry["kind"], entry["n"], entry["k"], entry["m"]): entry for entry in entries}

    def find(self, key: Key) -> dict[str, Any] | None:
        """The entry of a problem."""
        return self._entries.get(key)

    def put(self, key: Key, facts: dict[str, Any]) -> None:
        """Writes an entry, in the place of one that is there."""
        self._entries[key] = {**dict(zip(("kind", "n", "k", "m"), key, strict=True)), **facts}
        write_measured(self.path, self._gpu, self._entries.values())
