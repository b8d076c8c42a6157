"""Compiled kernels on disk, by what they were compiled from.

One file a kernel, in the format of `KernelBinary.save`, named by its key. Any number of processes may share a
folder: files appear whole or not at all, writing one twice gives the same file, and what is damaged or of another
version counts as absent.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import FORMAT_VERSION
from lowlp_runtime.errors import KernelFileError, LowlpTypeError, LowlpValueError

_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIX = ".lowlp"


def cache_key(parts: Mapping[str, object]) -> str:
    """SHA-256, in hexadecimal, over JSON values by name: everything that changes the code must be among them (the
    compiler's build, the pipeline's text, target, options, source). The order of names does not matter; the format
    version of saved kernels is always part of it. Raises `LowlpTypeError` for what is not JSON."""
    try:
        text = json.dumps({"format_version": FORMAT_VERSION, "parts": dict(parts)}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LowlpTypeError(f"parts: expected JSON values by name: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()


def default_folder() -> Path:
    """Where this platform keeps a user's caches: below XDG_CACHE_HOME or ~/.cache, or LOCALAPPDATA on Windows."""
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "lowlp" / "kernels"


class KernelCache:
    """A folder of compiled kernels.

    folder     made when first written to; None: `default_folder()`
    max_bytes  after a write the files longest unused go until the rest fits

    Raises `LowlpValueError` for a bound that is not positive.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, max_bytes: int = 1 << 30) -> None:
        if max_bytes < 1:
            raise LowlpValueError(f"max_bytes: must be at least 1, got {max_bytes}")
        self.folder = default_folder() if folder is None else Path(folder)
        self.max_bytes = max_bytes

    def _path(self, key: str) -> Path:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise LowlpValueError(f"key: expected 64 hexadecimal digits, as cache_key gives, got {key!r}")
        return self.folder / f"{key}{_SUFFIX}"

    def get(self, key: str) -> KernelBinary | None:
        """The kernel stored under the key; None where there is none, or none that can be read."""
        path = self._path(key)
        try:
            kernel = KernelBinary.load(path)
        except (KernelFileError, OSError):
            return None
        try:
            os.utime(path)
        except OSError:  # a read-only cache works, it only forgets what was used last
            return kernel
        return kernel

    def put(self, key: str, kernel: KernelBinary) -> None:
        """Stores the kernel. Raises `OSError` where the folder cannot be written."""
        path = self._path(key)
        self.folder.mkdir(parents=True, exist_ok=True)
        kernel.save(path)
        self._trim(keep=path)

    def clear(self) -> None:
        """Removes every kernel of the folder."""
        for path in self.folder.glob(f"*{_SUFFIX}"):
            path.unlink(missing_ok=True)

    def _trim(self, keep: Path) -> None:
        files = []
        for path in self.folder.glob(f"*{_SUFFIX}"):
            try:
                facts = path.stat()
            except FileNotFoundError:  # another process was faster
                continue
            files.append((facts.st_mtime_ns, facts.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self.max_bytes:
                return
            if path != keep:
                path.unlink(missing_ok=True)
                total -= size
