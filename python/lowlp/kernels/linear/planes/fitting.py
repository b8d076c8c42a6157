"""What of a schedule of planes fits an SM: registers, shared memory, and what its program allows.

`obstacle` is the constraint under which schedules are searched. It is tested against the compiler: what it lets through
compiles without spilling registers, and little that would is refused.
"""

from __future__ import annotations

from typing import Final

from lowlp.compiler.targets import target
from lowlp.schedules.device import H200, Device

from .program import PlanesSpec
from .shapes import PlaneSchedule, shared_bytes, tile_shapes
from .streams import planes_held
from .warpgroups import WarpgroupSchedule, accumulators_of

WGMMA: Final = "wgmma.mma_async.m64nNk256 b1 and.popc"
_REGISTERS: Final = 64 * 1024
_MOST_REGISTERS: Final = 255
_RESULT: Final = 0.42
"""Registers for a column of a tile by warpgroups as it is stored."""
_OF_RESIDUAL: Final = 16
_WIDE: Final = 2
_OF_SHARING: Final = 24
"""Registers for the work that is left of shared tiles, of more warpgroups than two, where `ptxas` has none to spare."""
_OF_SIDE_BY_SIDE: Final = 16
"""Registers of long stages of tiles side by side, whose products of one begin before those of the other end, where
p + q is more than `_FEW_PLANES`: with fewer the shipped table has some that were measured, and do not spill."""
_LONG_STAGE: Final = 4
_FEW_PLANES: Final = 4
_OF_MANY_LEVELS: Final = 8
"""Registers of many levels, of more warpgroups than two or without a producer's: `ptxas` makes products wait or spills
where it lacks them."""
_MANY_LEVELS: Final = 6


def has_warpgroups(device: Device) -> bool:
    """Whether the architecture multiplies bits by warpgroups."""
    return bool(target(device.arch).instructions[WGMMA])


def accumulators(spec: PlanesSpec, schedule: PlaneSchedule) -> int:
    """Of a thread: those of all levels, or of all planes of weights."""
    if isinstance(schedule, WarpgroupSchedule):
        return accumulators_of(spec, schedule.columns_of_block)
    columns = schedule.rows * planes_held(spec.x_code.bits, schedule.rows)
    return spec.w_code.bits * schedule.row_tiles * columns // 2


def registers(spec: PlanesSpec, schedule: PlaneSchedule) -> int:
    """An estimate of what a thread that multiplies needs, at most a few fewer than `ptxas` takes (730 schedules)."""
    held = accumulators(spec, schedule)
    if isinstance(schedule, WarpgroupSchedule):
        # Planes of weights of a stage; at the end results, and addresses of what is stored.
        ending = int(_RESULT * schedule.columns)
        if spec.residual:
            ending += schedule.columns // 2 + _OF_RESIDUAL
        if schedule.blocks and schedule.warpgroups > _WIDE:
            ending += _OF_SHARING
        planes = spec.w_code.bits + spec.x_code.bits
        if schedule.column_tiles > 1 and schedule.steps >= _LONG_STAGE and planes > _FEW_PLANES:
            held += _OF_SIDE_BY_SIDE
        is_tight = schedule.warpgroups > _WIDE or not schedule.producer
        if is_tight and planes > _MANY_LEVELS:
            held += _OF_MANY_LEVELS
        return held + max(26 + 8 * schedule.steps, 30 + ending)
    columns = schedule.rows * planes_held(spec.x_code.bits, schedule.rows)
    ending = schedule.rows // 2 if spec.residual else 0
    return int(1.17 * held) + 36 + schedule.steps * (4 * schedule.row_tiles + columns // 8) + ending


def most_registers(schedule: PlaneSchedule, device: Device = H200) -> int:
    """How many a thread that multiplies may have, of one block on a multiprocessor."""
    if isinstance(schedule, WarpgroupSchedule) and schedule.producer and device.gives_registers:
        return device.worker_registers(schedule.threads)
    threads = -(-schedule.threads // 128) * 128
    return min(_MOST_REGISTERS, _REGISTERS // threads // 8 * 8)


def obstacle(spec: PlanesSpec, schedule: PlaneSchedule, device: Device = H200) -> str:
    """Why a GPU cannot run the schedule as it is meant, '' where it can: the relation of tile shapes, instructions that
    the architecture has, shared memory, and registers without spilling."""
    if not tile_shapes(spec, schedule).agree:
        return "its warps do not divide its tile"
    if isinstance(schedule, WarpgroupSchedule) and not has_warpgroups(device):
        return f"{device.arch} multiplies no bits by warpgroups"
    if (taken := shared_bytes(spec, schedule)) > device.shared_bytes:
        return f"it takes {taken} bytes of shared memory, and a block has {device.shared_bytes}"
    if (needed := registers(spec, schedule)) > (most := most_registers(schedule, device)):
        return f"it takes about {needed} registers, and a thread has {most}"
    return ""


def fits(spec: PlanesSpec, schedule: PlaneSchedule, device: Device = H200) -> bool:
    """Whether nothing is in its way."""
    return not obstacle(spec, schedule, device)
