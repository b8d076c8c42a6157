"""How the modules of this package are loaded: each whole or not at all.

Loading registers types and operations with the process, which cannot be done twice, so Ctrl-C in between would leave
bindings that neither work nor can be loaded again. It waits until the module that was asked for, and all that this one
loads, are complete. A complete module is kept: where Ctrl-C comes at its end, the import fails, and Python forgets the
module; the next import finds it here.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any

_complete: dict[str, ModuleType] = {}


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Calls the handler of SIGINT at the end where the signal comes before. Python handles it in the main thread."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if came:
        handler(*came[0])


class _Loader:
    """Loads a module as another loader does, without being interrupted, and once."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = _complete.get(spec.name) or self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ in _complete:
            return
        with interrupted_later():
            self._loader.exec_module(module)
            _complete[module.__name__] = module


class _Finder:
    """Finds the modules below a package."""

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(self._prefix):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


sys.meta_path.insert(0, _Finder(__package__))  # type: ignore[arg-type]
