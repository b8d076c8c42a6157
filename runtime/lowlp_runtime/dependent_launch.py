"""Programmatic dependent launch: a kernel starts while the one in front of it on the stream still runs.

Such a kernel sets itself up and fetches what no kernel writes, such as packed weights, and then waits for the kernel in
front of it, all of it (PTX ISA, `griddepcontrol`). Its description says that it does.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lowlp_runtime.module import split_arch

# CUDA programming guide, "Programmatic Dependent Launch": compute capability 9.0. Code for less has no way to wait.
_FIRST_CAPABILITY = (9, 0)

_allowed: ContextVar[bool] = ContextVar("lowlp_runtime_dependent_launch", default=True)


@contextmanager
def no_dependent_launch() -> Iterator[None]:
    """Within the block, or the function that this decorates, every kernel waits for the one in front before it starts.

    Needed where the kernel in front writes what the next one takes to be constant: the packed weights. `lowlp.linear`
    does it by itself for weights that were uploaded just now. Holds for this thread, or asyncio task.
    """
    token = _allowed.set(False)
    try:
        yield
    finally:
        _allowed.reset(token)


# False within `no_dependent_launch`. Without a function of its own, since every launch asks.
is_allowed: Callable[[], bool] = _allowed.get


def code_waits(arch: str) -> bool:
    """Whether code for the architecture, of a kernel that waits by itself, does so."""
    major, minor, _ = split_arch(arch)
    return (major, minor) >= _FIRST_CAPABILITY
