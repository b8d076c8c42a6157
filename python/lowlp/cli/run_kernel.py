"""What `lowlp run` does: arguments made, the kernel run, its outputs summed up."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lowlp_runtime
from lowlp.compiler.architectures import current_arch
from lowlp.compiler.compilation import compile, compile_cpu
from lowlp_runtime.binary import KernelBinary
from lowlp_runtime.description import KernelDescription
from lowlp_runtime.errors import LowlpValueError

from .output import count
from .run_arguments import Argument, read_arguments


@dataclass
class Run:
    """A run that is over; arrays hold what the kernel left in them."""

    description: KernelDescription
    arguments: list[Argument]
    grid: tuple[int, int, int]
    counters: Mapping[str, int] = field(default_factory=dict)
    traffic: Sequence[Mapping[str, Any]] = ()
    checks: str = ""
    median_us: float | None = None

    def outputs(self) -> dict[str, NDArray[Any]]:
        """The arrays that the kernel writes, by name."""
        return {
            argument.parameter.name: argument.value
            for argument in self.arguments
            if argument.parameter.writable and isinstance(argument.value, np.ndarray)
        }

    def arguments_in_words(self) -> Iterator[tuple[str, str]]:
        """Name, and type, shape and origin or value."""
        for argument in self.arguments:
            if isinstance(argument.value, np.ndarray):
                yield argument.parameter.name, f"{_type_of(argument.value)}, {argument.origin}"
            else:
                yield argument.parameter.name, f"{argument.value}"

    def outputs_in_words(self) -> Iterator[tuple[str, str]]:
        """Name and summary of each output."""
        for name, array in self.outputs().items():
            yield name, summary(array)

    def traffic_table(self) -> str:
        """What each op moved, and how well: sectors of 32 bytes a request, and passes lost to bank conflicts."""
        head = ("accesses", "bytes", "requests", "sectors", "extra passes", "op")
        rows = [
            (
                *(count(site[key]) for key in ("accesses", "bytes", "requests", "sectors", "extra_passes")),
                str(site["site"]),
            )
            for site in self.traffic
        ]
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head) - 1)]
        return "\n".join(
            "  " + "  ".join([f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False)] + [row[-1]])
            for row in [head, *rows]
        )


def _type_of(array: NDArray[Any]) -> str:
    return f"{array.dtype} {' x '.join(str(extent) for extent in array.shape)}"


def summary(array: NDArray[Any]) -> str:
    """Type and shape; least, largest and mean value; how many are no numbers; a hash; the first values."""
    values = array.astype(np.float64)
    finite = values[np.isfinite(values)]
    parts = [_type_of(array)]
    if finite.size:
        parts.append(f"min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}")
    if finite.size < values.size:
        parts.append(f"{count(values.size - finite.size)} not finite")
    parts.append(f"sha256 {hashlib.sha256(array.tobytes()).hexdigest()[:12]}")
    first = ", ".join(f"{value:.6g}" for value in values.reshape(-1)[:4])
    return "; ".join([*parts, f"begins {first}"])


def run_on_cpu(program: Any, given: Sequence[str], seed: int, checks: str) -> Run:
    """Runs on the CPU target, and counts by op. Raises `LowlpError`."""
    if isinstance(program, KernelBinary):
        if "block" not in program.ir:
            held = ", ".join(program.ir) or "none"
            raise LowlpValueError(
                f"the CPU target runs IR of level block, and the saved kernel holds none; held: {held}"
            )
        program = program.ir["block"]
    kernel = compile_cpu(program)
    arguments = read_arguments(kernel.description, given, seed)
    undefined = [argument.parameter.name for argument in arguments if argument.is_undefined]
    values = [argument.value for argument in arguments]
    counters = kernel(*values, seed=seed, checks=checks, undefined=undefined, sites=True)
    traffic = counters.pop("sites", ())
    return Run(kernel.description, arguments, _grid(kernel.description, arguments), counters, traffic, checks)


def _grid(description: KernelDescription, arguments: Sequence[Argument]) -> tuple[int, int, int]:
    integers = {a.parameter.name: a.value for a in arguments if isinstance(a.value, int)}
    return description.evaluate_grid(integers)


def run_on_gpu(program: Any, given: Sequence[str], seed: int) -> Run:
    """Runs once on the current GPU for the outputs, then several times for the time. Raises `LowlpError`."""
    import torch

    binary = program if isinstance(program, KernelBinary) else compile(program, current_arch()).binary
    arguments = read_arguments(binary.description, given, seed)

    def upload(value: NDArray[Any]) -> Any:
        data = torch.from_numpy(np.ascontiguousarray(value).view(np.uint8).reshape(-1)).cuda()
        # PyTorch has few unsigned types, and a launch takes signed ones for them.
        names = {"uint16": "int16", "uint32": "int32"}
        return data.view(getattr(torch, names.get(value.dtype.name, value.dtype.name))).reshape(value.shape)

    values: list[Any] = [upload(a.value) if isinstance(a.value, np.ndarray) else a.value for a in arguments]
    lowlp_runtime.launch(binary, values)
    torch.cuda.synchronize()
    for argument, value in zip(arguments, values, strict=True):
        array = argument.value
        if isinstance(array, np.ndarray) and argument.parameter.writable:
            raw = value.reshape(-1).view(torch.uint8).cpu().numpy()
            array.view(np.uint8).reshape(-1)[...] = raw
    timing = lowlp_runtime.measure(lambda: lowlp_runtime.launch(binary, values), stream=torch.cuda.current_stream())
    grid = _grid(binary.description, arguments)
    return Run(binary.description, arguments, grid, median_us=timing.median_us)


def save_outputs(done: Run, path: str) -> None:
    """Writes the outputs to a .npz file; bfloat16 as pairs of bytes, as numpy does. Raises `OSError`."""
    with Path(path).open("wb") as file:
        np.savez(file, **done.outputs())  # type: ignore[arg-type]
