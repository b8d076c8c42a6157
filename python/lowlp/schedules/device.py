"""What the choice of a schedule knows of a GPU."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from lowlp.compiler.targets import target


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

    @property
    def shared_bytes(self) -> int:
        """The most shared memory that a block may have."""
        return target(self.arch).max_shared_bytes_per_block

    @property
    def gives_registers(self) -> bool:
        """Whether a producer can give its registers to other warps (PTX ISA, `setmaxnreg`)."""
        return bool(target(self.arch).worker_registers)

    def worker_registers(self, threads: int) -> int:
        """Registers of each of so many threads, 128 to 512, beside a producer's warpgroup that gives its own away."""
        return target(self.arch).worker_registers[threads]


H200: Final = Device()


def device_like(arch: str) -> Device:
    """An H200 of another architecture."""
    return dataclasses.replace(H200, arch=arch)
