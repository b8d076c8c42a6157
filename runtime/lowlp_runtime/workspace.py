"""Workspaces: memory that the blocks of a launch share, beside its arguments.

A kernel's description lists the parts. Their sizes depend on integer arguments; each lies at a multiple of 256 bytes.
The kernel gets one pointer, after its other parameters, which divides the memory:

    ... | zeroed 1 | zeroed 0 | scratch 0 | scratch 1 | ...
                              ^ the pointer

Zeroed parts are zero when a kernel starts, and every kernel leaves them so. That is why all kernels that run one after
the other may share a workspace, and why none of them needs a memset.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lowlp_runtime import grid as grids
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError

# The compiler's Workspace.cpp computes the same places in the kernel.
ALIGNMENT_BYTES = 256


@dataclass(frozen=True)
class WorkspacePart:
    """One allocation of a kernel.

    name        how errors call it
    size_bytes  an expression over the integer parameters (see `lowlp_runtime.grid`)
    zeroed      zero when the kernel starts, and left so by it; else it starts with anything

    Raises `LowlpTypeError` and `LowlpValueError` for anything else.
    """

    name: str
    size_bytes: grids.GridExpression
    zeroed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.zeroed, bool):
            raise LowlpTypeError(f"workspace: name must be a str and zeroed a bool, got {self.name!r}, {self.zeroed!r}")
        object.__setattr__(self, "size_bytes", grids.freeze(self.size_bytes))


class PlacedPart(NamedTuple):
    """A part with its bytes, and where it begins, counted from the pointer."""

    part: WorkspacePart
    offset_bytes: int
    size_bytes: int


class WorkspaceLayout(NamedTuple):
    """A workspace for one launch: bytes before the pointer, bytes from it on, and the parts in order."""

    zeroed_bytes: int
    scratch_bytes: int
    parts: tuple[PlacedPart, ...]


def lay_out(parts: tuple[WorkspacePart, ...], values: Mapping[str, int]) -> WorkspaceLayout:
    """Where the parts lie for these integer arguments. Raises `LowlpValueError` where a size is negative."""
    zeroed, scratch, placed = 0, 0, []
    for part in parts:
        size = grids.evaluate(part.size_bytes, values)
        if size < 0:
            given = ", ".join(f"{name}={value}" for name, value in values.items())
            raise LowlpValueError(f"workspace: {part.name} has {size} bytes for {given or 'constants'}")
        aligned = -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        if part.zeroed:
            zeroed += aligned
            placed.append(PlacedPart(part, -zeroed, size))
        else:
            placed.append(PlacedPart(part, scratch, size))
            scratch += aligned
    return WorkspaceLayout(zeroed, scratch, tuple(placed))
