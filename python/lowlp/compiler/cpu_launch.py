"""Launching a kernel on the CPU target: numpy arrays checked against the kernel's description, then run."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from lowlp.errors import CpuTargetError, LowlpTypeError, LowlpValueError
from lowlp_runtime.arguments import bind, check_integer, strided
from lowlp_runtime.description import KernelDescription, Parameter
from lowlp_runtime.workspace import ALIGNMENT_BYTES, WorkspaceLayout

ELEMENTS: Final[dict[str, np.dtype[Any]]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
} | {f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4)}
"""Element of a pointer -> numpy's type for an array of it."""

CHECKS = ("bounds", "races", "uninitialised", "all")


def run(
    description: KernelDescription,
    program: Any,
    positional: Sequence[object],
    named: Mapping[str, object],
    *,
    seed: int,
    workers: int,
    checks: bool | str,
    undefined: Collection[str],
    sites: bool,
) -> dict[str, Any]:
    """Runs `program` and returns the executor's counters; see `CpuKernel.__call__`."""
    if positional and named:
        raise LowlpTypeError("arguments: give all by position or all by name")
    flags = _check_flags(checks)
    _check_undefined(description, undefined)
    values = bind(description, named or positional)
    arguments: list[tuple[str, int | float]] = []
    allocations: list[tuple[int, int, str, bool, bool]] = []
    integers: dict[str, int] = {}
    for parameter, value in zip(description.parameters, values, strict=True):
        if parameter.is_pointer:
            allocations.append((*_allocation(parameter, value), parameter.name not in undefined))
            arguments.append(("ptr", _address(value)))
        elif parameter.is_integer:
            integers[parameter.name] = _integer(parameter, value)
            arguments.append((parameter.kind, integers[parameter.name]))
        else:
            arguments.append((parameter.kind, float(value)))  # type: ignore[arg-type]
    grid = description.evaluate_grid(integers)
    if 0 in grid:
        return {}
    layout = description.lay_out_workspace(integers)
    workspace = _make_workspace(layout)
    if description.workspace:
        allocations.extend(_part_allocations(layout, _address(workspace)))
        arguments.append(("ptr", _address(workspace) + layout.zeroed_bytes))
    # The CPU target knows the tensors of tensor copies without their maps.
    arguments += [("ptr", 0)] * len(description.tensor_maps)
    try:
        counters: dict[str, Any] = program.run(
            description.name,
            grid,
            description.block,
            description.shared_bytes,
            arguments,
            allocations,
            seed,
            workers,
            flags,
            sites,
        )
    except RuntimeError as error:
        raise CpuTargetError(str(error)) from error
    _check_left_zero(description, layout, workspace)
    return counters


def _make_workspace(layout: WorkspaceLayout) -> np.ndarray:
    """Zeros, at an address like those of device memory."""
    size = layout.zeroed_bytes + layout.scratch_bytes
    buffer = np.zeros(size + ALIGNMENT_BYTES, np.uint8)
    skipped = -_address(buffer) % ALIGNMENT_BYTES
    return buffer[skipped : skipped + size]


def _part_allocations(layout: WorkspaceLayout, begin: int) -> list[tuple[int, int, str, bool, bool]]:
    pointer = begin + layout.zeroed_bytes
    return [(pointer + placed.offset_bytes, placed.size_bytes, placed.part.name, True, placed.part.zeroed)
            for placed in layout.parts]  # fmt: skip


def _check_left_zero(description: KernelDescription, layout: WorkspaceLayout, workspace: np.ndarray) -> None:
    for part, offset, size in layout.parts:
        begin = layout.zeroed_bytes + offset
        left = np.flatnonzero(workspace[begin : begin + size])
        if part.zeroed and len(left):
            at = int(left[0])
            raise CpuTargetError(
                f"{part.name}: must be zero again when the kernel ends, but kernel {description.name!r} leaves "
                f"{int(workspace[begin + at])} in the byte at offset {at}, and {len(left)} of {size} bytes not zero"
            )


def _check_flags(checks: object) -> int:
    """The executor's bits for the argument `checks`."""
    from lowlp._mlir._mlir_libs import _compiler

    bits = {
        "bounds": _compiler.CHECK_BOUNDS,
        "races": _compiler.CHECK_RACES,
        "uninitialised": _compiler.CHECK_UNINITIALISED,
    }
    wanted = {True: "all", False: "bounds"}[checks] if isinstance(checks, bool) else checks
    if wanted not in CHECKS:
        allowed = ", ".join(repr(name) for name in CHECKS)
        raise LowlpValueError(f"checks: expected True, False or one of {allowed}, got {checks!r}")
    names = bits if wanted == "all" else {"bounds", wanted}
    return sum(int(bits[name]) for name in names)


def _check_undefined(description: KernelDescription, undefined: Collection[str]) -> None:
    pointers = [parameter.name for parameter in description.parameters if parameter.is_pointer]
    for name in [undefined] if isinstance(undefined, str) else undefined:
        if isinstance(undefined, str) or name not in pointers:
            raise LowlpValueError(f"undefined: expected names of arrays, a list of {pointers}, got {undefined!r}")


def _address(value: object) -> int:
    assert isinstance(value, np.ndarray)
    return int(value.__array_interface__["data"][0])


def _allocation(parameter: Parameter, value: object) -> tuple[int, int, str, bool]:
    """Address, bytes, name and writability of the memory that an array spans."""
    if not isinstance(value, np.ndarray):
        raise LowlpTypeError(f"{parameter.name}: expected a numpy array, got {type(value).__name__}")
    if isinstance(value, np.ma.MaskedArray):
        raise LowlpTypeError(
            f"{parameter.name}: masked arrays are not supported; pass x.filled(value), or x.data without the mask"
        )
    wanted = ELEMENTS[parameter.element]
    both_integers = wanted.kind in "iu" and value.dtype.kind in "iu" and value.dtype.isnative
    if value.dtype != wanted and not (both_integers and value.dtype.itemsize == wanted.itemsize):
        raise LowlpTypeError(f"{parameter.name}: expected elements of type {wanted}, got {value.dtype}")
    if not value.flags.c_contiguous:
        strides = [step // value.itemsize for step in value.strides]
        raise strided(parameter.name, value.shape, strides, "np.ascontiguousarray(x)")
    if parameter.writable and not value.flags.writeable:
        raise LowlpValueError(f"{parameter.name}: the kernel writes to it, and the array is read-only")
    if _address(value) % parameter.alignment_bytes:
        raise LowlpValueError(
            f"{parameter.name}: address {_address(value):#x} must be a multiple of {parameter.alignment_bytes} bytes"
        )
    return _address(value), value.nbytes, parameter.name, parameter.writable and bool(value.flags.writeable)


def _integer(parameter: Parameter, value: object) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise LowlpTypeError(f"{parameter.name}: expected an int, got {type(value).__name__}") from None
    check_integer(parameter, number)
    return number
