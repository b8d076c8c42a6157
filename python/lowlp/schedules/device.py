"""What the choice of a schedule knows of a GPU."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from lowlp.compiler.targets import target


@dataclass(frozen=True)
class Device:
    """What estimates know of a GPU: an H200 (its ceilings as measured by `lowlp bench`).

    gives_registers  a producer can give its registers to other warps (PTX ISA, `setmaxnreg`)
    """

    multiprocessors: int = 132
    bytes_per_us: float = 4.2e6
    cycles_per_us: float = 1750.0
    shared_bytes: int = 227 * 1024
    launch_us: float = 5.7
    gives_registers: bool = True


H200: Final = Device()


def device_like(arch: str) -> Device:
    """An H200 with as much shared memory as the architecture has, and its instructions."""
    described = target(arch)
    return dataclasses.replace(
        H200,
        shared_bytes=described.max_shared_bytes_per_block,
        # The compiler has both where it has either.
        gives_registers=bool(described.instructions["wgmma.mma_async"]),
    )
