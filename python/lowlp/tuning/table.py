"""The table that `lowlp tune` writes: for each problem the fastest schedule, on one GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lowlp.schedules.table_file import read_table, write_table
from lowlp_runtime.errors import LowlpValueError

Key = tuple[str, int, int, int]
"""What tells problems apart: kind of weights, N, K, and the largest M of a class."""


class Table:
    """A file; read if it is there, and written after each change.

    Raises `LowlpValueError` for a table of another GPU and for another file.
    """

    def __init__(self, path: Path, gpu: str) -> None:
        self._path, self._gpu = path, gpu
        self._entries: dict[Key, dict[str, Any]] = {}
        if not path.exists():
            return
        try:
            found, entries = read_table(path)
        except LowlpValueError as error:
            raise LowlpValueError(f"--out: {error}") from error
        if found != gpu:
            raise LowlpValueError(f"--out: {path} is a table of {found}, and this GPU is {gpu}")
        self._entries = {(entry["kind"], entry["n"], entry["k"], entry["m"]): entry for entry in entries}

    def find(self, key: Key) -> dict[str, Any] | None:
        """The entry of a problem."""
        return self._entries.get(key)

    def put(self, key: Key, facts: dict[str, Any]) -> None:
        """Writes an entry, in the place of one that is there."""
        self._entries[key] = {**dict(zip(("kind", "n", "k", "m"), key, strict=True)), **facts}
        write_table(self._path, self._gpu, self._entries.values())
