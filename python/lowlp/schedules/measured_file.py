"""A file of measured schedules: for each problem the fastest on one GPU. `lowlp tune` writes such
files, and kernels are chosen by them. Read and written without the compiler.

    {"format": 1, "gpu": NAME, "entries": [{"kind": ..., "n": ..., "k": ..., "m": ..., "arch": ..., "schedule": {...}}]}

`kind` names a kind of weights, `m` the largest number of rows of a class. An entry may say more, as what it took.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.whole_file import write_whole

FORMAT: Final = 1
PLANES: Final = "planes"
"""How kinds of products of bit planes begin, and what notes of their kernels call their problem."""
SHIPPED: Final = Path(__file__).parent / "tuned"
"""The folder of the files that come with the package."""


def read_measured(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """The name of the GPU, and the entries, whose fields have the types that they must have.

    Raises `LowlpValueError`, which names file, entry and key, for a file of another kind; `OSError`.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise LowlpValueError(f"{path}: no measured schedules: {error}") from error
    if not isinstance(data, dict):
        raise LowlpValueError(f"{path}: no measured schedules: expected an object, got {_brief(data)}")
    found = _field(data, "format", int, str(path))
    if found != FORMAT:
        raise LowlpValueError(f"{path}: format: expected {FORMAT}, got {found}")
    gpu = _field(data, "gpu", str, str(path))
    entries = _field(data, "entries", list, str(path))
    for number, entry in enumerate(entries, 1):
        _check_entry(entry, place_of(path, number))
    return gpu, entries


def write_measured(path: Path, gpu: str, entries: Iterable[Mapping[str, Any]]) -> None:
    """Writes a file, an entry a line, in the place of a file that is there. Raises `OSError`."""
    lines = ",\n".join("    " + json.dumps(entry) for entry in entries)
    text = f'{{\n  "format": {FORMAT},\n  "gpu": {json.dumps(gpu)},\n  "entries": [\n{lines}\n  ]\n}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())


def place_of(path: Path, number: int) -> str:
    """How errors name an entry, which are counted from 1."""
    return f"{path}: entry {number}"


def _check_entry(entry: Any, where: str) -> None:
    if not isinstance(entry, dict):
        raise LowlpValueError(f"{where}: expected an object, got {_brief(entry)}")
    for name in ("kind", "arch"):
        _field(entry, name, str, where)
    for name in ("n", "k", "m"):
        if _field(entry, name, int, where) < 1:
            raise LowlpValueError(f"{where}: {name}: must be at least 1, got {entry[name]}")
    _field(entry, "schedule", dict, where)


def _field(data: dict[str, Any], key: str, kind: type, where: str) -> Any:
    if key not in data:
        raise LowlpValueError(f"{where}: {key}: missing")
    value = data[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        names = {int: "a whole number", str: "a text", list: "a list", dict: "an object"}
        raise LowlpValueError(f"{where}: {key}: expected {names[kind]}, got {_brief(value)}")
    return value


def _brief(value: object) -> str:
    return f"{value!r:.40}"
