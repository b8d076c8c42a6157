"""Kernels that were compiled before: in memory, and on disk for later processes.

A kernel is found again by everything that changes it: the program's text, the architecture, the options, the notes that
are kept with it, and the identity of compiler and assembler. Locations in the program are left out, since they change
no code. Where the folder on disk cannot be read or written, all works as if it were empty.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lowlp import __version__
from lowlp_runtime.assemble import assembler_identity
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.cache import KernelCache, cache_key
from lowlp_runtime.errors import LowlpValueError
from lowlp_runtime.product import Product

from .forks import check_may_compile

_PACKAGE = Path(__file__).parents[1]
_LIBRARY = re.compile(r"/\S*/lib(?:LLVM|MLIR)[^/\s]*\.so[^/\s]*")
_FIRST_PAGE = 4096

_log = logging.getLogger("lowlp.cache")


class Once:
    """Makes each value once, also when several threads ask for it; the `max_values` used last are kept."""

    def __init__(self, max_values: int = 1024) -> None:
        self._max_values = max_values
        self._lock = threading.Lock()
        self._locks: dict[object, threading.Lock] = {}
        self._values: OrderedDict[object, Any] = OrderedDict()

    def get(self, key: object, make: Callable[[], Any]) -> Any:
        """The value for the key; `make()` where there is none, and nothing is kept where that raises. Raises
        `LowlpRuntimeError` in a process in which it might wait for a thread that a fork has left behind."""
        check_may_compile()
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            with self._lock:
                if key in self._values:
                    return self._values[key]
            value = make()
            with self._lock:
                self._values[key] = value
                self._locks.pop(key, None)
                while len(self._values) > self._max_values:
                    self._values.popitem(last=False)
        return value

    def has(self, key: object) -> bool:
        """Whether there is a value for the key."""
        with self._lock:
            return key in self._values

    def clear(self) -> None:
        """Forgets all values."""
        with self._lock:
            self._values.clear()


def kernel_key(
    program: str,
    *,
    arch: str,
    opt_level: int,
    assemble: bool,
    assembler: str | None = None,
    notes: Mapping[str, object] | None = None,
    product: Product | None = None,
) -> str:
    """The key of the kernel that `lowlp.compile` makes of these arguments here and now.

    program  the text of the block dialect, without locations

    Raises `LowlpValueError` for notes that are not JSON.
    """
    try:
        json.dumps(dict(notes or {}), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise LowlpValueError(f"notes: not JSON: {error}") from error
    return cache_key(
        {
            "program": program,
            "arch": arch,
            "opt_level": opt_level,
            "notes": dict(notes or {}),
            "product": product and product.to_json(),
            "compiler": compiler_identity(),
            "assembler": assembler_identity(assembler) if assemble else None,
        }
    )


@functools.cache
def compiler_identity() -> dict[str, str]:
    """What tells this compiler from every other: its version, hashes of its Python sources and of its own libraries,
    and of the first page of LLVM's and MLIR's, which holds their build ids."""
    import lowlp_runtime
    from lowlp._mlir import ir

    runtime = Path(lowlp_runtime.__file__).parent
    with ir.Context():  # loads the libraries
        pass
    return {
        "version": __version__,
        "sources": hash_of_files([*files_below(_PACKAGE, ".py"), *files_below(runtime, ".py")]),
        "libraries": hash_of_files(files_below(_PACKAGE, ".so")),
        "llvm": hash_of_files(loaded_llvm_libraries(), first_bytes=_FIRST_PAGE),
    }


def compiler_version() -> str:
    """lowlp's version and a hash of all that makes its code."""
    identity = json.dumps(compiler_identity(), sort_keys=True).encode()
    return f"{__version__}+{hashlib.sha256(identity).hexdigest()[:12]}"


def files_below(folder: Path, suffix: str) -> list[Path]:
    """All files of this suffix, in a fixed order. Links are followed: a build tree consists of them."""
    found = []
    for root, _, names in os.walk(folder, followlinks=True):
        found += [Path(root, name) for name in names if name.endswith(suffix)]
    return sorted(found)


def hash_of_files(paths: Iterable[Path], first_bytes: int = -1) -> str:
    """SHA-256 over names, sizes and contents, or the first bytes of the contents."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            data = file.read(first_bytes)
        digest.update(f"{path.name} {path.stat().st_size} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def loaded_llvm_libraries() -> list[Path]:
    """The shared libraries of LLVM and MLIR in this process; none where lowlp's own library contains them."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return sorted({Path(name) for name in _LIBRARY.findall(maps)})


_memory = Once(max_values=256)


def cached(key: str, make: Callable[[], KernelBinary]) -> KernelBinary:
    """The kernel of this key: from memory, from disk, or by `make()`, whose result is kept in both."""

    def find_or_make() -> KernelBinary:
        disk = KernelCache.from_environment()
        found = disk.get(key) if disk else None
        if found is None:
            found = make()
            if disk:
                _keep(disk, key, found)
        return found

    kernel: KernelBinary = _memory.get(key, find_or_make)
    return kernel


def forget() -> None:
    """Empties the cache in memory; what is on disk stays."""
    _memory.clear()


def _keep(disk: KernelCache, key: str, kernel: KernelBinary) -> None:
    try:
        disk.put(key, kernel)
    except OSError as error:  # a full disk or a home that is read-only must not keep anyone from compiling
        _log.info("the kernel is not kept on disk: %s", error)
