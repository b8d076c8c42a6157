"""What each GPU architecture has: the compiler's own list, for planning and for reading."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lowlp.errors import LowlpValueError


@dataclass(frozen=True)
class Target:
    """One architecture. What only a device knows, such as its number of SMs, is not here.

    chip                        as PTX names it ('sm_90a')
    ptx_version                 of the PTX that is written for it, times ten
    max_shared_bytes_per_block  the most shared memory that a block may have
    shared_bytes_per_sm         shared memory of one SM
    max_warps_per_sm            warps that may be resident on one SM
    max_blocks_per_sm           blocks that may be resident on one SM
    f32_lanes_per_sm            results of an f32 multiply-add per clock of one SM
    bit_lanes_per_sm            the same of LOP3, PRMT and shifts
    half_pair_lanes_per_sm      the same of multiply-adds of f16x2 and bf16x2, pairs of results
    conversion_lanes_per_sm     the same of conversions of two f32 to f16x2
    worker_registers            registers of a thread by how many threads a block has beside the producer's warpgroup,
                                which gives its own away; empty where the architecture cannot
    instructions                how many machine instructions carry out one of PTX: 0 where it is absent, 1 where it
                                is native, more where ptxas emulates it; by its name, such as 'cp.async'
    """

    chip: str
    ptx_version: int
    max_shared_bytes_per_block: int
    shared_bytes_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    f32_lanes_per_sm: int
    bit_lanes_per_sm: int
    half_pair_lanes_per_sm: int
    conversion_lanes_per_sm: int
    worker_registers: Mapping[int, int] = field(hash=False)
    instructions: Mapping[str, int] = field(hash=False)


@functools.cache
def targets() -> tuple[Target, ...]:
    """All architectures that lowlp compiles for, from the oldest."""
    from lowlp._mlir._mlir_libs import _compiler

    rows = json.loads(_compiler.describe_targets())
    for row in rows:
        row["instructions"] = MappingProxyType(row["instructions"])
        row["worker_registers"] = MappingProxyType({int(key): value for key, value in row["worker_registers"].items()})
    return tuple(Target(**row) for row in rows)


def target(chip: str) -> Target:
    """The architecture of this name. Raises `LowlpValueError` for one that lowlp does not know."""
    for known in targets():
        if known.chip == chip:
            return known
    names = ", ".join(known.chip for known in targets())
    raise LowlpValueError(f"target: unknown architecture {chip!r:.40}; known are {names}")
