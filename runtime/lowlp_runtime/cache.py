"""Compiled kernels on disk, by what they were compiled from.

One file a kernel, in the format of `KernelBinary.save`, named by its key, which it ends with: a file under another
name counts as absent. Any number of processes may share a folder and may be killed at any time: files appear whole or
not at all, writing one twice gives the same file, and what is damaged or of another version counts as absent.

A kernel runs with the rights of who launches it, so a folder that others can write to is not used: one that everybody
can, or that belongs to another user than this one and root.

Two environment variables say where and how much:

    LOWLP_CACHE_DIR        the folder; empty: nothing is kept on disk
    LOWLP_CACHE_MAX_BYTES  how many bytes of kernels are kept; 1 GiB if it is not set
"""

import hashlib
import json
import os
import re
import stat
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Optional

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import FORMAT_VERSION
from lowlp_runtime.errors import KernelFileError, LowlpTypeError, LowlpValueError
from lowlp_runtime.whole_file import read_regular, write_whole

FOLDER_VARIABLE = "LOWLP_CACHE_DIR"
BOUND_VARIABLE = "LOWLP_CACHE_MAX_BYTES"
DEFAULT_MAX_BYTES = 1 << 30

_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".lowlp"
# What a process that was killed left half written; a write takes far less time.
_LEFT_OVER_SECONDS = 3600
_warned: set[Path] = set()


def cache_key(parts: Mapping[str, object]) -> str:
    """SHA-256, in hexadecimal, over JSON values by name: everything that changes the code must be among them (the
    compiler's build, the pipeline's text, target, options, source). The order of names does not matter; the format
    version of saved kernels is always part of it. Raises `LowlpTypeError` for what is not JSON."""
    try:
        text = json.dumps({"format_version": FORMAT_VERSION, "parts": dict(parts)}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LowlpTypeError(f"parts: expected JSON values by name: {error}") from error
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def default_folder() -> Path:
    """LOWLP_CACHE_DIR; or where this platform keeps a user's caches: below XDG_CACHE_HOME or ~/.cache, or LOCALAPPDATA
    on Windows. Raises `RuntimeError` where there is no home."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "lowlp" / "kernels"


class Entry(NamedTuple):
    """A file of the cache: its key, size in bytes, and when it was last used, in seconds since 1970."""

    key: str
    size: int
    used: float


class KernelCache:
    """A folder of compiled kernels.

    folder     made when first written to; None: `default_folder()`
    max_bytes  after a write the files longest unused go until the rest fits

    Raises `LowlpValueError` for a bound that is not positive.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        if max_bytes < 1:
            raise LowlpValueError(f"max_bytes: must be at least 1, got {max_bytes}")
        self.folder = default_folder() if folder is None else Path(folder)
        self.max_bytes = max_bytes

    @staticmethod
    def from_environment() -> Optional["KernelCache"]:
        """The cache that the environment variables name; None where LOWLP_CACHE_DIR is empty or there is no home.

        Raises `LowlpValueError` for a LOWLP_CACHE_MAX_BYTES that is no positive number.
        """
        if os.environ.get(FOLDER_VARIABLE) == "":
            return None
        bound = os.environ.get(BOUND_VARIABLE, str(DEFAULT_MAX_BYTES))
        if not bound.isascii() or not bound.isdigit() or int(bound) < 1:
            raise LowlpValueError(f"{BOUND_VARIABLE}: expected a positive number of bytes, got {bound!r}")
        try:
            return KernelCache(max_bytes=int(bound))
        except RuntimeError:  # Path.home() where the user has none
            return None

    def _path(self, key: str) -> Path:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise LowlpValueError(f"key: expected 64 hexadecimal digits, as cache_key gives, got {key!r}")
        return self.folder / f"{key}{_SUFFIX}"

    def get(self, key: str, *, mark_used: bool = True) -> KernelBinary | None:
        """The kernel stored under the key; None where there is none, or none that can be read.

        mark_used  it goes later when the cache is full
        """
        path = self._path(key)
        try:
            if not self._is_trusted():
                return None
            data = read_regular(path)
            kernel = KernelBinary.from_bytes(data, source=str(path)) if data.endswith(key.encode()) else None
        except (KernelFileError, OSError):
            return None
        if kernel is None:
            return None
        if mark_used:
            try:
                os.utime(path)
            except OSError:  # a read-only cache works, it only forgets what was used last
                return kernel
        return kernel

    def put(self, key: str, kernel: KernelBinary) -> None:
        """Stores the kernel, unless others can write to the folder. Raises `OSError` where this process cannot."""
        path = self._path(key)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_trusted():
            return
        write_whole(path, kernel.to_bytes(comment=key.encode()))
        self._trim(keep=path)

    def is_safe(self) -> bool:
        """Whether nobody else, but a group that the owner chose, puts files here. Raises `OSError`."""
        if not hasattr(os, "geteuid"):
            return True
        facts = self.folder.stat()
        return facts.st_uid in (os.geteuid(), 0) and not facts.st_mode & stat.S_IWOTH

    def _is_trusted(self) -> bool:
        """As `is_safe`, with a warning, once, where it is not."""
        if self.is_safe():
            return True
        if self.folder not in _warned:
            _warned.add(self.folder)
            warnings.warn(
                f"{self.folder}: compiled kernels are not kept there: others can write to it; name another folder in "
                f"{FOLDER_VARIABLE}, or take it for yourself with chmod 700",
                RuntimeWarning,
                stacklevel=2,
            )
        return False

    def entries(self) -> list[Entry]:
        """All kernels of the folder, the one used last first."""
        found = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            if _KEY.fullmatch(path.stem):
                try:
                    facts = path.stat()
                except OSError:  # another process was faster
                    continue
                found.append(Entry(path.stem, facts.st_size, facts.st_mtime_ns / 1e9))
        return sorted(found, key=lambda entry: (-entry.used, entry.key))

    def clear(self) -> None:
        """Removes every kernel of the folder, and what killed processes left. Raises `OSError` where it may not."""
        for entry in self.entries():
            self._path(entry.key).unlink(missing_ok=True)
        for path in self._half_written():
            path.unlink(missing_ok=True)

    def _half_written(self) -> list[Path]:
        return list(self.folder.glob(f".*{_SUFFIX}.*.tmp"))

    def _trim(self, keep: Path) -> None:
        entries = self.entries()
        total = sum(entry.size for entry in entries)
        for entry in reversed(entries):
            if total <= self.max_bytes:
                break
            if entry.key != keep.stem:
                _remove(self._path(entry.key))
                total -= entry.size
        for path in self._half_written():
            try:
                is_old = time.time() - path.stat().st_mtime > _LEFT_OVER_SECONDS
            except OSError:
                continue
            if is_old:
                _remove(path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # not ours to remove
        return
