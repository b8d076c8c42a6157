"""Which processes may compile: none that was forked while another thread of its parent compiled.

Of its parent's threads a forked process has the one that forked. What the others held, locks of LLVM and of MLIR among
it, is held for ever, and what they were changing stays half changed. A compilation there would hang or crash.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from lowlp.errors import LowlpRuntimeError

_P = ParamSpec("_P")
_T = TypeVar("_T")

_depths: dict[int, int] = {}
"""How many compilations are running in each thread that has any. No lock guards it, as a fork would keep that too:
a thread changes its own entry alone."""
_cut_off = False


def _after_fork() -> None:
    global _cut_off
    here = threading.get_ident()
    _cut_off = _cut_off or any(thread != here for thread in tuple(_depths))
    for thread in tuple(_depths):
        if thread != here:
            del _depths[thread]


os.register_at_fork(after_in_child=_after_fork)


def check_may_compile() -> None:
    """Raises `LowlpRuntimeError` in a process that may not compile."""
    if _cut_off:
        raise LowlpRuntimeError(
            "this process was forked while another thread of its parent compiled a kernel, and cannot compile; fork "
            "when no thread compiles, or start processes by 'spawn' or 'forkserver'"
        )


def compiles(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Marks a function that compiles, and raises what `check_may_compile` does."""

    @functools.wraps(function)
    def marked(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        check_may_compile()
        here = threading.get_ident()
        depth = _depths.get(here, 0)
        _depths[here] = depth + 1
        try:
            return function(*args, **kwargs)
        finally:
            if depth:
                _depths[here] = depth
            else:
                _depths.pop(here, None)

    return marked
