"""y = gate and up of rows multiplied apart: what ends a product of many rows by a launch of its own.

A kernel by warpgroups that multiplies gate and up has the accumulators of both, so a tile has half as many columns, and
each weight is decoded twice as often. With many rows that costs more than to store both products in f32 and read them
again. Values are those of the epilogue: f32, rounded once.

    block  a row of y, and `PART` of its columns
"""

from __future__ import annotations

from typing import Any, Final

from lowlp import language as ll
from lowlp.kernels.epilogues import applied
from lowlp.layouts.register_layout import local, spatial
from lowlp.schedules.device import Device

from .estimates import estimated_us
from .schedule import Schedule
from .spec import LinearSpec

PART: Final = 2048
_THREADS: Final = 256
_AT_ONCE: Final = 4
"""Neighbours of a thread, 16 bytes in f32."""
_LEAST_ROWS: Final = 256
_MOST_BYTES: Final = 1 << 30
"""Of both products in f32."""
_GAIN: Final = 0.95
"""Part of the time of the kernel that multiplies both from which two launches are taken."""
_LAUNCH_US: Final = 3.0


def gating_kernel(columns: int, epilogue: str, out: str, dependent_launch: bool) -> ll.Kernel:
    """The block program: y [m, columns] in `out` of x [m, 2 * columns] in f32, with gates in front of the others."""
    layout = local(PART // (_THREADS * _AT_ONCE)) * spatial(_THREADS) * local(_AT_ONCE)

    def body(x: Any, y: Any, m: Any) -> None:
        if dependent_launch:
            ll.launch_dependents()
        row, part = ll.block_indices()
        x_view = ll.view_global(x, shape=[m, 2, columns])
        y_view = ll.view_global(y, shape=[m, columns])
        if dependent_launch:
            ll.wait_for_dependencies()
        gate, up = (ll.load_global(x_view, offsets=[row, which, part * PART], layout=layout) for which in range(2))
        ll.store_global(ll.cast(applied(epilogue, (gate, up)), out), y_view, offsets=[row, part * PART])

    return ll.make_kernel(
        body,
        name=f"{epilogue}_of_rows",
        parameters={"x": ll.pointer("f32", align=16), "y": ll.pointer(out, align=16), "m": ll.i32},
        grid=lambda m: (m, -(-columns // PART)),
        num_threads=_THREADS,
    )


def has_room_apart(spec: LinearSpec, m: int) -> bool:
    """Whether both products of m rows are few enough bytes."""
    return 4 * m * spec.n <= _MOST_BYTES


def takes_less_apart(
    spec: LinearSpec, schedule: Schedule, apart: LinearSpec, division: Schedule, m: int, device: Device
) -> bool:
    """Whether m rows of gate and up take less time by the product `apart` and a launch after it than by `schedule`."""
    if m < _LEAST_ROWS or not has_room_apart(spec, m) or not division.warpgroups:
        return False
    # Both products are read, and y is written; the estimate of `apart` has 2 bytes of the 4 of a number.
    after = (4 * m * spec.n + 2 * m * spec.n + m * spec.n) / device.bytes_per_us + _LAUNCH_US
    together = estimated_us(spec, schedule, m, device)
    return estimated_us(apart, division, m, device) + after <= _GAIN * together
