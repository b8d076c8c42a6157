"""The index of a folder of kernels that another machine compiled, whatever else it holds. Read without the compiler."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from lowlp_runtime.errors import LowlpValueError

INDEX: Final = "index.json"

_Index = TypeVar("_Index")


def load_index(
    folder: Path, command: str, holds: str, expected: int, parse: Callable[[dict[str, Any]], _Index]
) -> _Index:
    """Reads the index.

    command   that prepares the folder, 'bench' or 'tune'
    holds     what the folder holds, as errors say it
    expected  number of the format
    parse     makes what is returned of the JSON

    Raises `LowlpValueError` where the folder has none of this format, `OSError`.
    """
    path = folder / INDEX
    if not path.is_file():
        raise LowlpValueError(f"--kernels: {folder} has no {INDEX}; make it with `lowlp {command} --prepare {folder}`")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != expected:
            raise LowlpValueError(f"{path}: expected format {expected}, got {data['format']!r:.40}")
        return parse(data)
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, LowlpValueError):
            raise
        raise LowlpValueError(f"{path}: no index of {holds}: {error!r}") from error
