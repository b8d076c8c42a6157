"""Which version of PTX a driver compiles.

Machine code of the assembler that comes with lowlp, which is CUDA 13's, is loaded by drivers of CUDA 13. An older one
compiles the kernel's PTX itself, where it knows that version of PTX: each architecture has PTX of the least version
that its instructions need. Source: PTX ISA, "Release Notes", table "PTX Release History".
"""

import re
from typing import Final

Version = tuple[int, int]

ASSEMBLER_CUDA: Final[Version] = (13, 0)
"""Of the assembler that comes with lowlp: drivers from there on load its machine code."""
_DRIVERS: Final[dict[Version, Version]] = {
    **{(7, minor): (11, minor) for minor in range(9)},
    **{(8, minor): (12, minor) for minor in range(6)},
    (8, 6): (12, 7),
    (8, 7): (12, 8),
    (8, 8): (12, 9),
    (9, 0): (13, 0),
    (9, 1): (13, 1),
}
"""The first CUDA whose driver compiles a version of PTX."""


def cuda_of(number: int) -> Version:
    """The CUDA version that `cuDriverGetVersion` means: 12040 is (12, 4)."""
    return number // 1000, number % 1000 // 10


def newest_ptx(cuda: Version) -> Version:
    """The newest version of PTX, of those that lowlp knows, that a driver of this CUDA compiles; (0, 0) for none."""
    return max((ptx for ptx, first in _DRIVERS.items() if first <= cuda), default=(0, 0))


def cuda_for(ptx: Version) -> Version | None:
    """The first CUDA whose driver compiles this version of PTX; None for a version that lowlp does not know."""
    return _DRIVERS.get(ptx)


def version_of(ptx: str) -> Version | None:
    """The version that a module's text declares; None where it declares none."""
    found = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", ptx, re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


def dotted(version: Version) -> str:
    """'12.4' of (12, 4)."""
    return ".".join(map(str, version))
