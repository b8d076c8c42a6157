"""What `lowlp.autotune` found, on disk: one small file for each set of candidates, GPU and values of the key.

Files lie in `autotuned` in the folder of the kernel cache, and are trusted as kernels there are. What is damaged, or of
other candidates, counts as absent; where the folder cannot be written, all works as if it were empty.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lowlp.compiler.kernel_cache import compiler_version
from lowlp_runtime.cache import KernelCache
from lowlp_runtime.whole_file import read_regular, write_whole

FORMAT: Final = "lowlp autotuned 1"


@dataclass(frozen=True)
class Found:
    """What was measured.

    best      the number of the fastest candidate
    us        of each candidate, None where it has no time
    problems  of each candidate, '' where there is none
    by        'measured', or 'measured before'
    """

    best: int
    us: tuple[float | None, ...]
    problems: tuple[str, ...]
    by: str


def identity_of(trace_keys: Sequence[str], where: tuple[object, ...]) -> str:
    """Everything that a choice depends on: the candidates' programs, the compiler, the GPU's name and the numbers."""
    text = json.dumps([FORMAT, compiler_version(), list(trace_keys), list(where)])
    return hashlib.sha256(text.encode()).hexdigest()


def kept(identity: str, count: int) -> Found | None:
    """What was found before for so many candidates."""
    cache = KernelCache.from_environment()
    if cache is None:
        return None
    try:
        if not cache.is_safe():
            return None
        data: dict[str, Any] = json.loads(read_regular(_path(cache, identity)))
        us = tuple(None if one is None else float(one) for one in data["us"])
        found = Found(data["best"], us, tuple(map(str, data["problems"])), "measured before")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    is_whole = len(found.us) == len(found.problems) == count and found.best in range(count)
    return found if is_whole and data.get("identity") == identity and us[found.best] is not None else None


def keep(identity: str, found: Found, name: str, where: tuple[object, ...]) -> None:
    """Writes it, where this process can."""
    cache = KernelCache.from_environment()
    if cache is None:
        return
    path = _path(cache, identity)
    data = {
        "format": FORMAT,
        "identity": identity,
        "kernel": name,
        "where": list(where),
        "best": found.best,
        "us": [None if us is None else round(us, 3) for us in found.us],
        "problems": list(found.problems),
    }
    try:
        cache.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if cache.is_safe():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            write_whole(path, (json.dumps(data, indent=1) + "\n").encode())
    except OSError:  # a full disk or a home that is read-only: the next process measures again
        return


def _path(cache: KernelCache, identity: str) -> Path:
    return cache.folder / "autotuned" / f"{identity}.json"
