"""Measured schedules: files as `lowlp tune` writes them.

Three kinds of files are in use, in this order: those that `use_tuned` added, the last one first; those that the
environment variable LOWLP_TUNED names, files or folders with ':' between them, as in PATH, each read once; and those
that are shipped (`tuned/*.json`, one for each GPU).

Of what they have for a kind of weights, a class of M and an architecture, entries of the GPU in use go before those of
other GPUs, near shapes before far ones, and where two are equally near the order of files decides. So a file of one's
own is taken for the shapes that it has, and leaves shapes that were measured elsewhere alone.
"""

from __future__ import annotations

import functools
import math
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lowlp.compiler.targets import target
from lowlp.errors import LowlpError, LowlpValueError
from lowlp.schedules.measured_file import PLANES, SHIPPED, place_of, read_measured
from lowlp_runtime.errors import check_path, os_error

from .planes.shapes import FORMS, PlaneSchedule
from .schedule import Schedule

VARIABLE: Final = "LOWLP_TUNED"
_FAR: Final = 2.5
"""How far, in factors of two of N and K together, a measured shape may be away."""
_MOST_COLUMNS: Final = 128
"""Of a schedule that names none."""

_WIDTHS: Final = re.compile(rf"{PLANES} w([1-8])a([1-8])")

_lock = threading.Lock()
_added: tuple[MeasuredSchedules, ...] = ()


@dataclass(frozen=True)
class Entry:
    """The fastest schedule for a kind of weights (`choosing.kind_of`), a shape and a class of M, on a GPU.

    us  what it took for m rows; 0.0: the file does not say
    """

    kind: str
    n: int
    k: int
    m: int
    arch: str
    gpu: str
    schedule: Schedule
    us: float = 0.0

    def distance(self, n: int, k: int) -> float:
        """From another shape, in factors of two of N and K together."""
        return abs(math.log2(self.n / n)) + abs(math.log2(self.k / k))


@dataclass(frozen=True)
class PlaneEntry:
    """The fastest schedule for a product of planes: p of weights by q of activations, of a shape, for m rows of x.

    us  what it took
    """

    p: int
    q: int
    n: int
    k: int
    m: int
    arch: str
    gpu: str
    schedule: PlaneSchedule
    us: float


@dataclass(frozen=True, eq=False)
class MeasuredSchedules:
    """What a file holds. Two that were read apart differ, so that they may be the key of what was chosen by them.

    entries  of products of halves and of bytes
    planes   of products of bit planes
    """

    path: Path
    entries: tuple[Entry, ...]
    planes: tuple[PlaneEntry, ...] = ()


def use_tuned(path: str | os.PathLike[str]) -> None:
    """Chooses schedules of `linear` and `compile_linear` by what `lowlp tune --out` measured, from now on.

    path  a file, or a folder whose files, *.json, are taken in the order of their names

    It goes before files that were added earlier, before those of the environment variable LOWLP_TUNED, and before
    shipped ones. Of all of them, what was measured on the GPU in use counts most, then how near its shape is, then this
    order. A path that is given again is read again. Results change by roundings at most.
    Raises `LowlpTypeError` for what is no path, `OSError` where it cannot be read, and `LowlpValueError`, which names
    file, entry and key, for a file without measured schedules, and for a folder without files; then nothing is added.
    """
    check_path(path)
    try:
        found = _files_at(Path(path))
    except OSError as error:
        raise os_error(error, path) from error
    if not found:
        raise LowlpValueError(
            f"path: expected a file of measured schedules or a folder of such files, *.json, and {path} has none"
        )
    global _added
    with _lock:
        paths = {measured.path for measured in found}
        _added = (*found, *(measured for measured in _added if measured.path not in paths))


def added_schedules() -> tuple[MeasuredSchedules, ...]:
    """What `use_tuned` added: part of the key of whatever is kept and depends on the choice of a schedule."""
    return _added


def measured_schedules() -> tuple[MeasuredSchedules, ...]:
    """All in use, in their order. Raises `LowlpValueError` where LOWLP_TUNED names a file without any."""
    return (*_added, *_of_variable(os.environ.get(VARIABLE, "")), *_shipped())


def measured_gpus() -> list[str]:
    """The names of the GPUs that schedules in use were measured on."""
    gpus = {entry.gpu for measured in measured_schedules() for entry in measured.entries}
    return sorted(gpus | {entry.gpu for measured in measured_schedules() for entry in measured.planes})


def nearest(
    among: Iterable[MeasuredSchedules], kind: str, n: int, k: int, m: int, arch: str, gpu: str = ""
) -> list[Entry]:
    """What was measured near a shape for such weights, class of M and architecture, the best first.

    gpu  the name of the GPU in use; '': none is known, and all of the architecture count alike
    """
    near = [
        entry
        for measured in among
        for entry in measured.entries
        if (entry.kind, entry.m, entry.arch) == (kind, m, arch) and entry.distance(n, k) < _FAR
    ]
    return sorted(near, key=lambda entry: (bool(gpu) and entry.gpu != gpu, entry.distance(n, k)))


# --- files ------------------------------------------------------------------------------------------------------------


@functools.cache
def _shipped() -> tuple[MeasuredSchedules, ...]:
    """The file with the most entries first, which decides where no GPU is known."""
    return tuple(sorted(_files_at(SHIPPED), key=lambda file: len(file.entries), reverse=True))


@functools.lru_cache(maxsize=8)
def _of_variable(text: str) -> tuple[MeasuredSchedules, ...]:
    """What the files that a value of LOWLP_TUNED names hold."""
    try:
        return tuple(found for path in text.split(os.pathsep) if path for found in _files_at(Path(path)))
    except OSError as error:
        raise LowlpValueError(f"{VARIABLE}: {error.filename}: {error.strerror}") from error
    except LowlpValueError as error:
        raise LowlpValueError(f"{VARIABLE}: {error}") from error


def _files_at(path: Path) -> tuple[MeasuredSchedules, ...]:
    """Of a file or a folder. Raises `OSError`, `LowlpValueError`."""
    return tuple(map(_load, sorted(path.glob("*.json")) if path.is_dir() else [path]))


def kind_of_planes(p: int, q: int) -> str:
    """How files name products of p planes of weights by q of activations."""
    return f"{PLANES} w{p}a{q}"


def _load(path: Path) -> MeasuredSchedules:
    gpu, entries = read_measured(path)
    plain, planes = [], []
    for number, entry in enumerate(entries, 1):
        where = place_of(path, number)
        if entry["kind"].startswith(PLANES):
            planes.append(_plane_entry(entry, gpu, where))
        else:
            plain.append(_entry(entry, gpu, where))
    return MeasuredSchedules(path.absolute(), tuple(plain), tuple(planes))


def _entry(data: dict[str, Any], gpu: str, where: str) -> Entry:
    _check_arch(data, where)
    schedule = _schedule(Schedule, {"columns": min(data["m"], _MOST_COLUMNS)}, data["schedule"], where)
    us = _us_of(data)
    return Entry(data["kind"], data["n"], data["k"], data["m"], data["arch"], gpu, schedule, us or 0.0)


def _plane_entry(data: dict[str, Any], gpu: str, where: str) -> PlaneEntry:
    _check_arch(data, where)
    widths = _WIDTHS.fullmatch(data["kind"])
    if not widths:
        raise LowlpValueError(f"{where}: kind: expected '{PLANES} w1a1' to 'w8a8', got {data['kind']!r:.40}")
    fields = dict(data["schedule"])
    form = fields.pop("form", None)
    if form not in FORMS:
        raise LowlpValueError(f"{where}: schedule: form: must be one of {', '.join(FORMS)}, got {form!r:.40}")
    us = _us_of(data)
    if us is None:
        raise LowlpValueError(
            f"{where}: us: expected microseconds for {data['m']} rows, got {data.get('us', 'none')!r:.40}"
        )
    schedule = _schedule(FORMS[form], {}, fields, where)
    p, q = (int(bits) for bits in widths.groups())
    return PlaneEntry(p, q, data["n"], data["k"], data["m"], data["arch"], gpu, schedule, us)


def _us_of(data: dict[str, Any]) -> float | None:
    """What an entry says that its schedule took for the largest number of rows; None where it does not."""
    times = data.get("us")
    us = times.get(str(data["m"])) if isinstance(times, dict) else None
    return float(us) if isinstance(us, int | float) and not isinstance(us, bool) and us > 0 else None


def _check_arch(data: dict[str, Any], where: str) -> None:
    try:
        target(data["arch"])
    except LowlpError as error:
        raise LowlpValueError(f"{where}: arch: {str(error).removeprefix('target: ')}") from error


def _schedule(kind: Any, defaults: dict[str, Any], fields: dict[str, Any], where: str) -> Any:
    for name in fields:
        if name not in kind.__dataclass_fields__:
            names = ", ".join(kind.__dataclass_fields__)
            raise LowlpValueError(f"{where}: schedule: has no field {name!r:.40}; known are {names}")
    try:
        return kind(**{**defaults, **fields})
    except LowlpError as error:
        raise LowlpValueError(f"{where}: schedule: {error}") from error
