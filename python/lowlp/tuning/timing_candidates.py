"""Times several kernels on copies of the same arguments, and compares what they write."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any, Final

import lowlp_runtime
from lowlp.compiler.compiled_kernel import CompiledKernel
from lowlp_runtime.errors import LowlpValueError

_MOST_OFF: Final = 0.02
"""The relative difference of two results, in the Frobenius norm, above which they are not of the same program."""
_REPEATS, _WARMUPS, _FILLS = 15, 2, 3


def can_measure() -> bool:
    """Whether there is PyTorch, whose copies of arrays are measured on, and no graph is being captured."""
    if importlib.util.find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available() and not torch.cuda.is_current_stream_capturing())


def times_of(
    kernels: Sequence[CompiledKernel | None],
    arguments: Mapping[str, object],
    constant: frozenset[str],
    stream: object,
    names: Sequence[str],
) -> list[float | None]:
    """Medians in microseconds with cold caches.

    kernels    which all take `arguments`, by name; None has no time
    constant   names of arrays that are only read, and are not copied
    names      of the kernels, for errors

    Raises `LowlpValueError` where results differ, and what launching raises.
    """
    import torch

    stream = torch.cuda.current_stream() if stream is None else stream
    times: list[float | None] = []
    first: tuple[str, dict[str, Any]] | None = None
    for kernel, name in zip(kernels, names, strict=True):
        if kernel is None:
            times.append(None)
            continue
        copies = {key: _copy(value, key in constant) for key, value in arguments.items()}

        def run(kernel: CompiledKernel = kernel, copies: dict[str, Any] = copies) -> None:
            kernel(**copies, stream=stream)

        torch.cuda.synchronize()
        run()
        torch.cuda.synchronize()
        written = {key: value for key, value in copies.items() if key not in constant and torch.is_tensor(value)}
        if first is None:
            first = name, {key: value.clone() for key, value in written.items()}
        else:
            _compare(first, (name, written), arguments)
        with lowlp_runtime.no_dependent_launch():
            timing = lowlp_runtime.measure(run, _REPEATS, _WARMUPS, stream=stream, fills=_FILLS)
        times.append(timing.median_us)
    return times


def _copy(value: Any, is_constant: bool) -> Any:
    """A copy of an array; numbers, and arrays that are only read, as they are."""
    import torch

    if isinstance(value, int | float) or not hasattr(value, "__dlpack__"):
        return value
    tensor = value.detach() if torch.is_tensor(value) else torch.from_dlpack(value)
    return tensor if is_constant else tensor.clone()


def _compare(first: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]], before: Mapping[str, Any]) -> None:
    """Refuses results in floats that differ; the order of sums may. What neither has changed does not count."""
    import torch

    for key, wanted in first[1].items():
        found = other[1][key]
        if not wanted.is_floating_point() or wanted.element_size() == 1:
            continue
        old = _copy(before[key], is_constant=True)
        changed = (wanted != old) | (found != old)
        wanted, found = (torch.nan_to_num(one[changed].float(), posinf=0.0, neginf=0.0) for one in (wanted, found))
        off, norm = float(torch.linalg.vector_norm(found - wanted)), float(torch.linalg.vector_norm(wanted))
        if not off <= _MOST_OFF * norm:
            raise LowlpValueError(
                f"candidates: {first[0]} and {other[0]} write other numbers to {key!r}: they differ by {off:.3g}, and "
                f"their norm is {norm:.3g}; all candidates must compute the same"
            )
