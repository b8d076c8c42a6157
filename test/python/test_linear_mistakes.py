"""Waits that are taken out of the kernels of `linear`, or come too late: the CPU target reports each, whatever the
order of threads and blocks. `test_linear_streaming` leaves out those of a loop with stages in one block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from lowlp._mlir import ir
from test_linear_streaming import BY_PRODUCER, ERROR_LIMITS, PLAIN, error_of, random_x, run, weights

import lowlp
from lowlp.compiler import compilation, pipelines
from lowlp.errors import CpuTargetError
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.tiles import tiles_of

SEEDS = range(3)
BLOCKS = 3
"""Of 2 tiles, with shared ones: the middle block has parts of both."""
HAZARD = "race|uninitialised read|was not waited for|that a product still reads"
Ops = list[Any]
Edit = Callable[[Ops], None]

ACCUMULATORS = Schedule(32, stages=2, steps=2, warpgroups=2, row_tiles=1, producer=False)
WITH_PRODUCER = replace(ACCUMULATORS, producer=True)
SCALED = replace(WITH_PRODUCER, columns=128, scales_on="weights")
"""Two warpgroups take turns, and get the producer's registers."""
ALONE = replace(WITH_PRODUCER, columns=64, share_tiles=False)
PAIR = replace(ACCUMULATORS, warpgroups=1, cluster=2)
SCALED_PAIR = replace(WITH_PRODUCER, columns=64, scales_on="weights", cluster=2)
WIDE = {
    "accumulators": ACCUMULATORS,
    "producer": WITH_PRODUCER,
    "scaled": SCALED,
    "alone": ALONE,
    "pair": PAIR,
    "scaled pair": SCALED_PAIR,
}


def spoiled(schedule: Schedule, qw: lowlp.QuantizedTensor, last: str, edit: Edit) -> compilation.CpuKernel:
    """The kernel, in which `edit` changes the ops that there are after the pass `last`."""
    module = compilation.open_program(linear_kernel(spec_for(qw, "f16", "f16", aligned=True), schedule))
    passes = pipelines.passes_of("lowlp-to-cpu{arch=sm_90a opt-level=2}", module.context)
    names = [pipelines.name_of(entry) for entry in passes]
    compilation.run_pipeline(module, ",".join(passes[: names.index(last) + 1]))
    found: Ops = []

    def visit(operation: Any) -> Any:
        found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    edit(found)
    return compilation.compile_cpu(module.operation.get_asm(enable_debug_info=True))


def the(ops: Ops, name: str, place: int) -> Any:
    return [operation for operation in ops if operation.name == name][place]


def nothing(ops: Ops) -> None:
    """Changes nothing."""


def erased(name: str, place: int) -> Edit:
    return lambda ops: the(ops, name, place).erase()


def moved(name: str, place: int, before: str, place_of_that: int) -> Edit:
    return lambda ops: the(ops, name, place).move_before(the(ops, before, place_of_that))


def last_wait_leaves_one(ops: Ops) -> None:
    """The wait for all products, which gives the accumulators to the program, lets one go on."""
    wait = the(ops, "lowlp.wgmma_wait", -1)
    assert ir.IntegerAttr(wait.attributes["n"]).value == 0 and len(wait.results) == 1
    with wait.context:
        wait.attributes["n"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 1)


def runs_of(schedule: Schedule, last: str, edit: Edit, m: int) -> Iterator[Callable[[], float]]:
    """A function for each seed, which runs the kernel and returns the error of its result."""
    qw, x = weights(2 * schedule.rows, 1024, "int4"), random_x(m, 1024)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    blocks = tiles_of(spec, schedule, m) if schedule.has_tile_each else BLOCKS
    kernel = spoiled(schedule, qw, last, edit)
    for seed in SEEDS:
        yield lambda seed=seed: error_of(run(kernel, qw, x, blocks, seed, schedule=schedule), x, qw)


def check_reported(schedule: Schedule, last: str, edit: Edit, m: int, text: str) -> None:
    for run_once in runs_of(schedule, last, edit, m):
        with pytest.raises(CpuTargetError, match=text):
            run_once()


# --- blocks that share tiles ------------------------------------------------------------------------------------------

STREAMED = {"plain": PLAIN, "producer": BY_PRODUCER, "slices": replace(BY_PRODUCER, slices=2)}


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "schedule", [*STREAMED.values(), ACCUMULATORS, SCALED], ids=[*STREAMED, "wgmma", "scaled wgmma"]
)
@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (erased("lowlp.semaphore_acquire", 0), HAZARD),
        (erased("lowlp.semaphore_release", 0), "deadlock: .* at lowlp.semaphore_acquire"),
        # The next launch would find the count of this one.
        (erased("lowlp.semaphore_release", 1), "must be zero again when the kernel ends"),
        # Accumulators that are stored after the release which tells of them.
        (moved("lowlp.semaphore_release", 0, "lowlp.store_global", 1), HAZARD),
    ],
    ids=["no acquire", "no release", "no reset", "early release"],
)
def test_blocks_that_share_tiles(schedule: Schedule, edit: Edit, text: str) -> None:
    check_reported(schedule, "lowlp-use-warpgroups", edit, 3, text)


# --- products by warpgroups -------------------------------------------------------------------------------------------


@pytest.mark.sampled(6)
@pytest.mark.parametrize("schedule", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("last", ["lowlp-expand-clusters", "lowlp-use-warpgroups"])
def test_an_unspoiled_kernel_is_right(schedule: Schedule, last: str) -> None:
    for run_once in runs_of(schedule, last, nothing, 35):
        assert run_once() < ERROR_LIMITS["f16"]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("schedule", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize(
    ("edit", "text"),
    [
        (last_wait_leaves_one, "lowlp.wgmma_wait at .* the accumulators are not there yet"),
        (erased("lowlp.mbarrier_wait", 0), f"{HAZARD}|one arrival too many|phase misuse"),
        (erased("lowlp.mbarrier_wait", 1), HAZARD),
        (erased("lowlp.mbarrier_arrive", 0), "deadlock"),
        # A place is given back before products have read it: the last one, and all.
        (moved("lowlp.mbarrier_arrive", 0, "lowlp.wgmma_wait", -1), HAZARD),
        (moved("lowlp.mbarrier_arrive", 0, "lowlp.wgmma", 0), HAZARD),
    ],
    ids=[
        "accumulators too early",
        "no empty place",
        "no full place",
        "no arrival",
        "arrival before wait",
        "arrival before all",
    ],
)
def test_products_by_warpgroups(schedule: Schedule, edit: Edit, text: str) -> None:
    check_reported(schedule, "lowlp-use-warpgroups", edit, 35, text)


def test_a_wait_that_a_later_one_covers_may_go() -> None:
    """The first wait bounds how many products are in flight; without it the last waits for all of them."""
    for run_once in runs_of(ACCUMULATORS, "lowlp-use-warpgroups", erased("lowlp.wgmma_wait", 0), 35):
        assert run_once() < ERROR_LIMITS["f16"]


# --- clusters ---------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(6)
@pytest.mark.parametrize("schedule", [PAIR, SCALED_PAIR, replace(PAIR, cluster=4)], ids=["pair", "scaled", "four"])
@pytest.mark.parametrize(
    ("edit", "text"),
    [
        # The barrier of the cluster, between what its blocks store for each other and what they load.
        (erased("scf.if", 0), HAZARD),
        (moved("lowlp.store_global", 0, "lowlp.load_global", -1), HAZARD),
        # A block goes on as soon as the first one says so, which waits for the others no more.
        (erased("lowlp.semaphore_acquire", 2), HAZARD),
        (erased("lowlp.semaphore_release", 1), "deadlock"),
    ],
    ids=["no barrier", "late store", "no acquire", "no release"],
)
def test_clusters(schedule: Schedule, edit: Edit, text: str) -> None:
    check_reported(schedule, "lowlp-expand-clusters", edit, 35, text)
