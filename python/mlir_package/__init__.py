"""MLIR's Python bindings, with the dialects of lowlp: the package `lowlp._mlir`.

The modules that every compilation loads are loaded with the package, all or none. Loading registers types and
operations with the process, which cannot be done twice, so Ctrl-C in between would leave bindings that neither work nor
can be loaded again. It waits until they are complete. Dialects beyond those are loaded when they are first used.
"""

import importlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def _interrupted_later() -> Iterator[None]:
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


with _interrupted_later():
    for _name in ("ir", "passmanager", "_mlir_libs._compiler", "dialects.lowlp", "dialects.gpu"):
        importlib.import_module(f".{_name}", __name__)
