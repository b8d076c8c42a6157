"""What a block by warpgroups with codebooks takes of a multiprocessor: registers, stages, copies of books."""

from __future__ import annotations

from typing import Final, NamedTuple

from lowlp.schedules.device import Device

from ..operands import NUMPY_TYPES
from ..schedule import Schedule
from ..spec import LinearSpec
from ..warpgroup_layouts import bytes_of_cluster, tiles_of_warp
from .entries import bytes_of_entries, entry_bytes
from .wide import VectorPlan

_PASSES: Final = {16: (2.54, 2.37, 1.94, 1.0), 8: (2.92, 2.87, 2.64, 2.0, 1.0), 4: (3.15, 3.27, 3.22, 2.93, 2.0, 1.0)}
"""Passes of a phase that reads entries of so many bytes, by the logarithm of their copies (`lowlp-place-codebooks`)."""
SM_REGISTERS: Final = 65536
PRODUCER_THREADS: Final = 32
_BASE_REGISTERS: Final = 44
_MOST_REGISTERS: Final = 232
_OTHER_BYTES: Final = 3072
"""Of shared memory, for barriers and the like."""


class Books(NamedTuple):
    """How books lie in shared memory: copies, 0 where they do not fit; bytes of them all."""

    copies: int
    taken: int


def has_room(spec: LinearSpec, schedule: Schedule, device: Device) -> bool:
    """Whether registers hold what a thread that multiplies has, and shared memory the stages."""
    if registers_of(schedule, VectorPlan(spec, schedule)) > _most_registers(schedule, device):
        return False
    return room_for_books(spec, schedule, device) >= 0


def _most_registers(schedule: Schedule, device: Device) -> int:
    if schedule.exchanges_registers and device.gives_registers:
        return device.worker_registers(schedule.threads)
    return min(_MOST_REGISTERS, SM_REGISTERS // (-(-(schedule.threads + PRODUCER_THREADS) // 128) * 128))


def registers_of(schedule: Schedule, plan: VectorPlan) -> int:
    """Of a thread that multiplies."""
    accumulators = schedule.row_tiles * schedule.columns_of_block // 2
    of_piece = plan.tiles * plan.piece_k // 4
    # Codes of a stage, of more than 8 bits as numbers of 16, and of other parts of their units.
    bits = plan.vectors.bits if plan.vectors.bits <= 8 else 16
    codes = plan.parts * plan.tiles * schedule.stage_k // plan.step_k * 2 * plan.vectors.books * bits // 32
    # The assembler begins a second segment of a stage before it has scaled the first.
    sums = 1 if plan.is_one else 2 + (plan.segment_in_stage < schedule.stage_k)
    registers = _BASE_REGISTERS + accumulators * sums + 3 * of_piece + codes
    if schedule.column_tiles == 1:
        # Between products of two tiles of columns it has none of these.
        of_others = plan.tiles * plan.span_k // plan.step_k * plan.vectors.books * bits // 16
        registers += of_others * (plan.parts_of_unit - 1)
        registers += 2 * of_piece if plan.vectors.has_book_scales and plan.are_added else 0
        # Codes that are shifted and masked, of all parts of a unit, before one is selected.
        registers += 24 if plan.vectors.bits % 8 and not plan.vectors.lattices else 0
    return registers


def bytes_of_stages(spec: LinearSpec, schedule: Schedule) -> int:
    """Of shared memory that all stages take: x, codes of whole units, scales of groups."""
    vectors = spec.vectors
    assert vectors is not None
    codes = int(schedule.rows * max(schedule.stage_k, spec.unit_k) * vectors.bits_per_weight) // 8
    scales = 0
    if spec.groups > 1:
        scales = schedule.rows * max(1, schedule.stage_k // spec.group_size) * NUMPY_TYPES[spec.scale].itemsize
    return schedule.stages * (schedule.columns_of_block * schedule.stage_k * 2 + codes + scales)


def room_for_books(spec: LinearSpec, schedule: Schedule, device: Device) -> int:
    """What stages and the exchange of results leave of shared memory."""
    element = max(NUMPY_TYPES[kind].itemsize for kind in (spec.out, spec.residual) if kind)
    rows_of_part = 64 * schedule.warpgroups * tiles_of_warp(spec, schedule)
    exchange = rows_of_part * (schedule.columns // schedule.cluster * element + 16) + bytes_of_cluster(schedule)
    return device.shared_bytes - bytes_of_stages(spec, schedule) - exchange - _OTHER_BYTES


def books_of(spec: LinearSpec, schedule: Schedule, device: Device) -> Books:
    """The books of a block, as `lowlp-place-codebooks` places them."""
    sets = spec.products if spec.book_rows and spec.book_rows < spec.n else 1
    room, one = room_for_books(spec, schedule, device) // sets, bytes_of_entries(spec)
    passes = passes_of(spec)
    fitting = [1 << power for power in range(len(passes)) if one << power <= room]
    if not fitting:
        return Books(0, 0)
    copies = min(fitting, key=lambda count: (passes[count.bit_length() - 1], count))
    return Books(copies, sets * one * copies)


def passes_of(spec: LinearSpec) -> tuple[float, ...]:
    """Passes of a phase that reads the entries, by the logarithm of their copies."""
    return _PASSES[min(16, max(4, entry_bytes(spec)))]
