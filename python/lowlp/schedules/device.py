"""What the choice of a schedule knows of a GPU."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lowlp.compiler.architectures import arch_of
from lowlp.compiler.targets import target
from lowlp_runtime.device import attribute, cuda_device_count, current_device, device_name

_OF_BANDWIDTH: Final = 0.854
"""The part of what memory clock and bus come to that a sum over much memory reads (an H200)."""
_OF_CLOCK: Final = 0.884
"""The part of the highest clock that long kernels run at (an H200)."""
_ATTRIBUTES: Final = (
    "MULTIPROCESSOR_COUNT",
    "MEMORY_CLOCK_RATE",
    "GLOBAL_MEMORY_BUS_WIDTH",
    "CLOCK_RATE",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
)
"""Of a device, as the driver names them: kHz, bits, bytes."""


@dataclass(frozen=True)
class Device:
    """What estimates know of a GPU: an H200 unless said otherwise (its ceilings as `lowlp bench` measured them).

    What the architecture decides is the compiler's to say, see `lowlp.targets.Target`.
    """

    arch: str = "sm_90a"
    multiprocessors: int = 132
    bytes_per_us: float = 4.2e6
    cycles_per_us: float = 1750.0
    launch_us: float = 5.7
    block_bytes: int = 0
    """The most shared memory that the driver gives a block; 0: as much as the architecture has."""

    @property
    def shared_bytes(self) -> int:
        """The most shared memory that a block may have."""
        most = target(self.arch).max_shared_bytes_per_block
        return min(most, self.block_bytes) if self.block_bytes else most

    @property
    def gives_registers(self) -> bool:
        """Whether a producer can give its registers to other warps (PTX ISA, `setmaxnreg`)."""
        return bool(target(self.arch).worker_registers)

    def worker_registers(self, threads: int) -> int:
        """Registers of each of so many threads, 128 to 512, beside a producer's warpgroup that gives its own away."""
        return target(self.arch).worker_registers[threads]


H200: Final = Device()


_MEASURED: Final = {
    "NVIDIA H200": H200,
    "NVIDIA H100 80GB HBM3": dataclasses.replace(H200, bytes_per_us=2.9e6),
}
"""By the names of GPUs, those whose figures were measured."""


def device_like(arch: str) -> Device:
    """An H200 of another architecture."""
    return dataclasses.replace(H200, arch=arch)


def device_from(arch: str, attributes: Mapping[str, int]) -> Device:
    """A GPU by its attributes, of those that the driver tells: `MULTIPROCESSOR_COUNT`; `MEMORY_CLOCK_RATE` and
    `CLOCK_RATE` in kHz, `GLOBAL_MEMORY_BUS_WIDTH` in bits, `MAX_SHARED_MEMORY_PER_BLOCK_OPTIN` in bytes. What is 0 or
    not among them is as on an H200."""
    known = {name: number for name, number in attributes.items() if number > 0}
    found = device_like(arch)
    if {"MEMORY_CLOCK_RATE", "GLOBAL_MEMORY_BUS_WIDTH"} <= known.keys():
        # Two words a cycle.
        peak = 2e-3 * known["MEMORY_CLOCK_RATE"] * known["GLOBAL_MEMORY_BUS_WIDTH"] / 8
        found = dataclasses.replace(found, bytes_per_us=_OF_BANDWIDTH * peak)
    if "CLOCK_RATE" in known:
        found = dataclasses.replace(found, cycles_per_us=1e-3 * _OF_CLOCK * known["CLOCK_RATE"])
    return dataclasses.replace(
        found,
        multiprocessors=known.get("MULTIPROCESSOR_COUNT", found.multiprocessors),
        block_bytes=known.get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", 0),
    )


@functools.cache
def device_of(ordinal: int) -> Device:
    """A CUDA device: as measured where GPUs of its name were, else by what the driver tells. Raises `DeviceError`, or
    `LowlpValueError` where it is not there."""
    measured = _MEASURED.get(device_name(ordinal))
    return measured or device_from(arch_of(ordinal), {name: attribute(name, ordinal) for name in _ATTRIBUTES})


def device_ahead(arch: str, multiprocessors: int, gpu: str = "") -> Device:
    """The GPU that kernels are compiled ahead for: the one that is here if `gpu` is its name; else the one of that name
    that was measured, or like an H200, with so many multiprocessors."""
    if gpu and cuda_device_count() and device_name(current_device()) == gpu:
        return device_of(current_device())
    if gpu in _MEASURED and _MEASURED[gpu].arch == arch:
        return dataclasses.replace(_MEASURED[gpu], multiprocessors=multiprocessors)
    return dataclasses.replace(device_like(arch), multiprocessors=multiprocessors)
