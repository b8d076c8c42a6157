"""The constraint of tile shapes of products of planes against what the compiler accepts.

A seeded sample of shapes of tiles and widths; more of them with LOWLP_WHOLE_MATRIX=1.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator

import pytest
from plane_products import kernel_of

import lowlp
from lowlp.errors import CompileError, LowlpError
from lowlp.kernels.linear.planes.fitting import most_registers, obstacle, registers
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import PlaneSchedule, shared_bytes
from lowlp.kernels.linear.planes.streams import ROW_TILES, ROWS, SLICES, STEPS, WARPS, StreamSchedule
from lowlp.kernels.linear.planes.warpgroups import COLUMNS, WARPGROUPS, WarpgroupSchedule
from lowlp.schedules.device import H200

DRAWS = 100 if os.environ.get("LOWLP_WHOLE_MATRIX") else 6
# What is refused takes so many more registers, or bytes, by the estimate, that the compiler must refuse it or spill:
# estimates are not exact, and what is only just too large may still compile.
SURELY_REGISTERS, SURELY_BYTES = 48, 20 * 1024


def drawn(rng: random.Random) -> Iterator[tuple[PlanesSpec, PlaneSchedule]]:
    while True:
        p, q = rng.randint(1, 8), rng.randint(1, 8)
        more = {"residual": "f16"} if rng.random() < 0.2 else {"bias": "f32", "zeros": True}
        spec = PlanesSpec(1024, 4096, f"uint{p}", f"bipolar{q}", scale="f16", x_scale=True, out="f16", **more)
        stages = rng.choice((2, 3, 4))
        try:
            if rng.random() < 0.5:
                rows, tiles, steps = rng.choice(ROWS), rng.choice(ROW_TILES), rng.choice(STEPS)
                yield spec, StreamSchedule(rows, rng.choice(WARPS), tiles, rng.choice(SLICES), steps, stages)
            else:
                groups, steps, at_once = rng.choice(WARPGROUPS), rng.choice((1, 2, 4)), rng.choice((2, 8))
                producer, tiles, blocks = rng.random() < 0.6, rng.choice((1, 1, 2)), rng.choice((0, 0, 132))
                columns = rng.choice(COLUMNS)
                yield spec, WarpgroupSchedule(columns, groups, steps, stages, producer, at_once, tiles, blocks)
        except LowlpError:
            continue


def is_close_to_limits(spec: PlanesSpec, schedule: PlaneSchedule) -> bool:
    """Where estimates go wrong if they do."""
    need, most = registers(spec, schedule), most_registers(schedule)
    return need > 0.8 * most or shared_bytes(spec, schedule) > 0.8 * H200.shared_bytes


def sample(seed: int, wanted: bool) -> list[tuple[PlanesSpec, PlaneSchedule]]:
    found: list[tuple[PlanesSpec, PlaneSchedule]] = []
    for spec, schedule in drawn(random.Random(seed)):
        if bool(obstacle(spec, schedule)) == wanted:
            excess = registers(spec, schedule) - most_registers(schedule)
            is_sure = excess > SURELY_REGISTERS or shared_bytes(spec, schedule) > H200.shared_bytes + SURELY_BYTES
            if is_sure if wanted else is_close_to_limits(spec, schedule):
                found.append((spec, schedule))
        if len(found) == DRAWS:
            return found
    raise AssertionError("unreachable")


def compiles(spec: PlanesSpec, schedule: PlaneSchedule) -> bool:
    """Whether there is machine code that spills no registers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return lowlp.compile(kernel_of(spec, schedule), "sm_90a").spilled_bytes == 0
        except (CompileError, lowlp.errors.AssembleError):
            return False


@pytest.mark.parametrize(("spec", "schedule"), sample(66, wanted=False), ids=str)
def test_what_fits_compiles_without_spilling(spec: PlanesSpec, schedule: PlaneSchedule) -> None:
    assert compiles(spec, schedule)


@pytest.mark.parametrize(("spec", "schedule"), sample(67, wanted=True)[:: 1 if DRAWS > 6 else 2], ids=str)
def test_what_surely_does_not_fit_is_refused_by_the_compiler_or_spills(
    spec: PlanesSpec, schedule: PlaneSchedule
) -> None:
    assert not compiles(spec, schedule)
