"""The table that `lowlp tune` writes: for each problem the fastest schedule, on one GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.whole_file import write_whole

FORMAT: Final = 1


class Table:
    """A JSON file; read if it is there, and written after each change.

    Raises `LowlpValueError` for a table of another GPU and for another file.
    """

    def __init__(self, path: Path, gpu: str) -> None:
        self._path, self._gpu = path, gpu
        self._entries: dict[tuple[str, int, int, int], dict[str, Any]] = {}
        if not path.exists():
            return
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise ValueError(f"expected format {FORMAT}, got {data['format']!r:.40}")
            found = data["gpu"]
            self._entries = {(entry["kind"], entry["n"], entry["k"], entry["m"]): entry for entry in data["entries"]}
        except (ValueError, KeyError, TypeError) as error:
            raise LowlpValueError(f"--out: {path} is no table of schedules: {error!r}") from error
        if found != gpu:
            raise LowlpValueError(f"--out: {path} is a table of {found}, and this GPU is {gpu}")

    def find(self, key: tuple[str, int, int, int]) -> dict[str, Any] | None:
        """The entry of a problem: kind of weights, N, K, and the largest M of a class."""
        return self._entries.get(key)

    def put(self, key: tuple[str, int, int, int], facts: dict[str, Any]) -> None:
        """Writes an entry, in the place of one that is there."""
        self._entries[key] = {**dict(zip(("kind", "n", "k", "m"), key, strict=True)), **facts}
        lines = ",\n".join("    " + json.dumps(entry) for entry in self._entries.values())
        gpu = json.dumps(self._gpu)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        text = f'{{\n  "format": {FORMAT},\n  "gpu": {gpu},\n  "entries": [\n{lines}\n  ]\n}}\n'
        write_whole(self._path, text.encode())
