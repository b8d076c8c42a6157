"""Runs kernels of the DSL where their arrays are: numpy's on the CPU target, CUDA arrays on their GPU."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.dlpack import DEVICE_NAMES

from .architectures import current_arch
from .compilation import compile, compile_cpu
from .kernel_cache import Once

_compiled = Once()


def is_host_array(value: object) -> bool:
    """True for numpy arrays, which run on the CPU target."""
    return isinstance(value, np.ndarray)


def launch(
    program: Any,
    arguments: Sequence[object],
    *,
    stream: object = None,
    seed: int = 0,
    checks: bool | str = True,
    undefined: Collection[str] = (),
    sites: bool = False,
    **named: object,
) -> dict[str, Any] | None:
    """Runs a kernel of the DSL where its arrays are: numpy's on the CPU target, CUDA arrays on their GPU.

    The kernel's arguments are given by position or by name; one that is named like an option of this call, by position.
    `seed`, `checks`, `undefined` and `sites` are the CPU target's: see `CpuKernel.__call__`.

    Compiled once per architecture and trace. Returns the CPU target's counters, or None on a GPU.
    """
    arguments = in_order(program, arguments, named)
    for parameter, value in zip(program.parameters, arguments, strict=True):
        if parameter.kind != "pointer" and not isinstance(value, int | float | np.number):
            raise LowlpTypeError(f"{parameter.name}: expected a number, got {type(value).__name__}")
        if parameter.kind == "pointer":
            _check_not_on_host(parameter.name, value)
    arrays = [value for value in arguments if not isinstance(value, int | float | np.number)]
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise LowlpValueError(f"seed: expected an int in 0..2**64 - 1, got {seed!r:.40}")
    host = [is_host_array(value) for value in arrays]
    if any(host) and not all(host):
        other = type(arrays[host.index(False)]).__name__
        raise LowlpTypeError(
            f"arguments: arrays must be all of numpy or all on a GPU in one launch, got numpy arrays and {other}"
        )
    if all(host) and host:
        # With locations, which errors of the CPU target name.
        key = program.trace_key(locations=True)
        kernel = _compiled.get((key, "cpu"), functools.partial(compile_cpu, program))
        counters: dict[str, Any] = kernel(*arguments, seed=seed, checks=checks, undefined=undefined, sites=sites)
        return counters
    arch = current_arch()
    compiled = _compiled.get((program.trace_key(), arch), functools.partial(compile, program, arch))
    compiled(*arguments, stream=stream)
    return None


def _check_not_on_host(name: str, value: object) -> None:
    """Refuses an array of another library than numpy that lies in the host's memory, a CPU tensor of PyTorch's say: no
    target reads it."""
    if is_host_array(value) or not hasattr(value, "__dlpack_device__"):
        return
    kind = int(value.__dlpack_device__()[0])
    if DEVICE_NAMES.get(kind) == "CPU":
        raise LowlpValueError(
            f"{name}: expected a numpy array, for the CPU target, or an array on a CUDA device, got a "
            f"{type(value).__name__} on the CPU; numpy.asarray shares its memory"
        )


def in_order(program: Any, arguments: Sequence[object], named: Mapping[str, object]) -> list[object]:
    """The value of each parameter. Raises `LowlpTypeError`, which names what is missing, unknown or given twice."""
    names = [parameter.name for parameter in program.parameters]
    signature = f"arguments of {program.name}({', '.join(names)})"
    for name in named:
        if name not in names:
            options = "stream, seed, checks, undefined and sites"
            raise LowlpTypeError(f"{signature}: there is no {name!r}; the call itself takes {options}")
        if name in names[: len(arguments)]:
            raise LowlpTypeError(f"{signature}: {name!r} is given both by position and by name")
    missing = [name for name in names[len(arguments) :] if name not in named]
    if missing or len(arguments) > len(names):
        lacking = f"; missing: {', '.join(missing)}" if missing else ""
        raise LowlpTypeError(f"{signature}: expected {len(names)}, got {len(arguments) + len(named)}{lacking}")
    return [*arguments, *(named[name] for name in names[len(arguments) :])]
