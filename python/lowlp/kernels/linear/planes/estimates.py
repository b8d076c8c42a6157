"""What a product of planes takes on a GPU, in us, by coefficients that fit what an H200 took.

Schedules are ranked by it before they are measured, and what was measured is carried over to other shapes and widths.
"""

from __future__ import annotations

import math
from typing import Final

from lowlp.schedules.device import H200, Device

from .fitting import registers
from .program import STEP_K, PlanesSpec
from .shapes import PlaneSchedule, shared_bytes, tile_shapes
from .streams import INSTRUCTION_COLUMNS, StreamSchedule, planes_held
from .warpgroups import WarpgroupSchedule

# Fitted to 336 kernels on an H200, which took 6 % more or less (median of ratios to the fastest ones).
# Cycles of an SM for an instruction: m16n8k256; a column of m64nNk256, and the least of one (docs/adr/0060).
_BY_WARP: Final = 1.66
_BY_COLUMN: Final = 0.516
_LEAST: Final = 14.3
# Cycles of a quarter of an SM to load the fragments of operand A and of B for an instruction by a warp.
_LOAD_A: Final = 3.5
_LOAD_B: Final = 13.9
# Cycles for each stage of a loop: of warps that wait for their own copies, and of warpgroups.
_STAGE_OF_STREAM: Final = 279.0
_STAGE_OF_WARPGROUPS: Final = 97.0
# Cycles to begin and end a tile, and for each of its results of a thread.
_TILE: Final = 2710.0
_RESULT: Final = 31.0
_RESULT_OF_STREAM: Final = 104.0
# To leave accumulators of shared tiles to other blocks, and to add them.
_SHARING_US: Final = 2.0
# Times what memory gives an SM the L2 cache gives it: all that its blocks read.
_FROM_L2: Final = 2.79
_STREAM_FROM_L2: Final = 2.86
_LATENCY_US: Final = 1.0
"""From a request to memory to its answer, while much is asked for."""
_SHARED_PER_SM: Final = 228 * 1024
_MOST_BLOCKS: Final = 8


def weight_bytes(spec: PlanesSpec) -> float:
    """Of all planes of the weights, and of scales."""
    return spec.n * (spec.units_k * STEP_K * spec.w_code.bits / 8 + 4)


def estimated_us(spec: PlanesSpec, schedule: PlaneSchedule, m: int, device: Device = H200) -> float:
    """What the kernel would take for m rows of x, in microseconds, from cold caches."""
    if isinstance(schedule, WarpgroupSchedule):
        return _by_warpgroups(spec, schedule, m, device)
    return _by_streams(spec, schedule, m, device)


def resident(spec: PlanesSpec, schedule: PlaneSchedule) -> int:
    """Blocks that a multiprocessor has at a time."""
    if isinstance(schedule, WarpgroupSchedule):
        return 1
    by_registers = 64 * 1024 // (-(-registers(spec, schedule) // 8) * 8 * schedule.threads)
    return max(1, min(_MOST_BLOCKS, by_registers, _SHARED_PER_SM // shared_bytes(spec, schedule)))


def _memory_us(spec: PlanesSpec, m: int, device: Device) -> float:
    y = 4 if spec.out in ("f32", "int32") else 2
    x = m * spec.x_code.bits * spec.words * 4
    return (weight_bytes(spec) + x + m * spec.n * y) / device.bytes_per_us


def _by_streams(spec: PlanesSpec, schedule: StreamSchedule, m: int, device: Device) -> float:
    tiles = -(-spec.n // schedule.rows_of_w) * -(-m // schedule.rows)
    at_once = min(resident(spec, schedule), -(-tiles // device.multiprocessors))
    of_sm = -(-tiles // device.multiprocessors)
    columns = schedule.rows * planes_held(spec.x_code.bits, schedule.rows) // INSTRUCTION_COLUMNS
    rows = spec.w_code.bits * schedule.row_tiles
    steps = -(-spec.units_k // schedule.slices)
    stages = -(-steps // schedule.steps)
    warps = schedule.warps * schedule.slices
    # A quarter of an SM issues what a quarter of the warps need.
    of_step = 4 * _BY_WARP * rows * columns + _LOAD_A * rows + _LOAD_B * columns
    busy = of_sm * warps / 4 * steps * of_step
    alone = math.ceil(of_sm / at_once) * (stages * (_STAGE_OF_STREAM + schedule.steps * of_step))
    results = schedule.rows_of_w * schedule.rows / schedule.threads
    ending = math.ceil(of_sm / at_once) * _RESULT_OF_STREAM * results * schedule.slices
    shapes = tile_shapes(spec, schedule)
    stage_bytes = schedule.slices * (shapes.weight_rows + shapes.x_columns) * schedule.steps * STEP_K // 8
    in_flight = at_once * max(1, schedule.stages - 1) * stage_bytes * min(of_sm, at_once) / at_once
    wanted = device.bytes_per_us / device.multiprocessors * _LATENCY_US
    from_l2 = of_sm * stages * stage_bytes / (_STREAM_FROM_L2 * device.bytes_per_us / device.multiprocessors)
    memory = max(_memory_us(spec, m, device), from_l2) * math.pow(max(1.0, wanted / in_flight), 0.7)
    # The last blocks of a wave have a part of the memory's rate.
    compute = max(busy, alone) / device.cycles_per_us
    return device.launch_us + max(memory, compute) + 0.1 * min(memory, compute) + 0.5 * ending / device.cycles_per_us


def _by_warpgroups(spec: PlanesSpec, schedule: WarpgroupSchedule, m: int, device: Device) -> float:
    tiles = -(-spec.n // schedule.rows_of_w) * -(-m // schedule.columns_of_block)
    # Blocks that share tiles have equal work, where others have whole waves of it.
    stages = -(-spec.units_k // schedule.steps)
    of_sm: float = -(-tiles // device.multiprocessors)
    if schedule.blocks:
        of_sm = max(tiles / device.multiprocessors, 1 / stages)
    pairs = spec.w_code.bits * spec.x_code.bits * schedule.column_tiles
    products = schedule.warpgroups * schedule.steps * pairs * max(_LEAST, _BY_COLUMN * schedule.columns)
    # One warpgroup alone waits for its own products.
    waiting = _STAGE_OF_WARPGROUPS * (2.0 if schedule.warpgroups == 1 else 1.0) * (1.0 if schedule.producer else 1.3)
    waiting *= 1.0 + 1.0 / schedule.products_in_flight
    shapes = tile_shapes(spec, schedule)
    stage_bytes = (shapes.weight_rows + shapes.x_columns) * schedule.steps * STEP_K // 8
    rate = device.bytes_per_us / device.multiprocessors
    copied = stage_bytes / (_FROM_L2 * rate) * device.cycles_per_us
    latency = _LATENCY_US * device.cycles_per_us / max(1, schedule.stages - 1)
    cycles = max(products + waiting, copied, latency)
    ending = _TILE + _RESULT * schedule.columns_of_block / 2
    compute = of_sm * (stages * cycles + ending) / device.cycles_per_us
    busy = 1.0 if schedule.blocks else min(1.0, tiles / device.multiprocessors)
    in_flight = max(1, schedule.stages - 1) * stage_bytes * busy
    memory = _memory_us(spec, m, device) * math.pow(max(1.0, rate * _LATENCY_US / in_flight), 0.7)
    sharing = _SHARING_US if schedule.blocks else 0.0
    return device.launch_us + max(memory, compute) + 0.06 * min(memory, compute) + sharing
