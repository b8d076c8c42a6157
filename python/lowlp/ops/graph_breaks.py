"""Functions that `torch.compile` leaves alone: a call of one is a graph break, and nothing that it calls is traced.

`torch.compiler.disable` does the same, and imports a good part of PyTorch for it; this imports nothing, and does
nothing where PyTorch is not loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

_REASON = "lowlp computes it, with kernels of its own"
_functions: list[Callable[..., Any]] = []
_skipped: set[Callable[..., Any]] = set()


def outside_of_graphs(function: _Function) -> _Function:
    """Decorates such a function."""
    # What the tracer of a caller looks at (torch._dynamo.symbolic_convert, `check_inlineable`).
    function.__dict__.update(_torchdynamo_disable=True, _torchdynamo_disable_msg=_REASON)
    _functions.append(function)
    if "torch" in sys.modules:
        skip_frames()
    return function


def skip_frames() -> None:
    """Tells PyTorch, once it is loaded, not to trace the frames of such functions and those that begin in them."""
    if len(_skipped) == len(_functions):
        return
    torch: Any = sys.modules["torch"]
    for function in _functions:
        _skipped.add(function)
        try:
            eval_frame = torch._C._dynamo.eval_frame
            skip = eval_frame._FrameAction.SKIP
            eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(skip, skip))
        except AttributeError:
            # Versions before 2.6 trace what is called, and fall back where they cannot.
            return
