"""Schedules of products with codebooks that were measured: whose they are, and what is made of them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from test_linear_codebooks import vectors_of

from lowlp.kernels.linear import measured
from lowlp.kernels.linear.choosing import reason_for, schedule_for
from lowlp.kernels.linear.codebooks.choosing import kind_of_books
from lowlp.kernels.linear.codebooks.schedules import _cycles, codebook_schedule, codebook_us
from lowlp.kernels.linear.measured import Entry, MeasuredSchedules
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.schedules.device import H200, device_like

GPU = "NVIDIA H200"
FEW = Schedule(16, 4, stages=3, row_tiles=2, steps=2, splits=2, blocks_per_sm=2)
WIDE = Schedule(64, stages=2, steps=2, warpgroups=2, row_tiles=1, scales_on="weights", share_tiles=True)


def spec_of(text: str, n: int = 4096, k: int = 4096) -> LinearSpec:
    vectors = vectors_of(text)
    return LinearSpec(n, k, Codec(vectors, "channel", "f32" if vectors.lattices else "f16"), aligned=True)


def among(*schedules: tuple[int, Schedule]) -> tuple[MeasuredSchedules, ...]:
    entries = [
        Entry("books vec8:2x8:f16 g0", 4096, 4096, m, "sm_90a", GPU, schedule, 12.5) for m, schedule in schedules
    ]
    return (MeasuredSchedules(Path("a"), tuple(entries)),)


def test_what_was_measured_is_taken() -> None:
    """With as many parts of K for all rows; other shapes, two products, and other GPUs go by estimate."""
    spec, files = spec_of("vec8:2x8:f16"), among((16, FEW), (64, WIDE))
    assert schedule_for(spec, 8, batch_invariant=True, among=()).splits > FEW.splits
    for activation in ("f16", "bf16"):
        typed = dataclasses.replace(spec, activation=activation)
        assert schedule_for(typed, 9, among=files) == schedule_for(typed, 16, among=files, batch_invariant=True) == FEW
        assert {schedule_for(typed, m, among=files).splits for m in (3, 8)} == {FEW.splits}
        assert {schedule_for(typed, m, among=files, batch_invariant=True).splits for m in (1, 64)} == {FEW.splits}
        assert schedule_for(typed, 40, among=files) == dataclasses.replace(WIDE, columns=40)
    assert reason_for(spec, 16, among=files) == f"measured on {GPU} for this shape, M <= 16: 12.5 us"
    assert re.fullmatch(r"by estimate, \d+\.\d us: by warpgroups", reason_for(spec, 17, among=files))
    slower = dataclasses.replace(H200, multiprocessors=100)
    for other, device in ((dataclasses.replace(spec, n=4112), H200), (spec, slower), (spec, device_like("sm_80"))):
        assert schedule_for(other, 16, device, among=files) == schedule_for(other, 16, device, among=())
    assert schedule_for(spec, 16, slower, gpu=GPU, among=files) == FEW
    gated = dataclasses.replace(spec, epilogue="silu_mul")
    assert schedule_for(gated, 16, among=files) == schedule_for(gated, 16, among=())


def test_few_rows_have_parts_alike() -> None:
    """An entry for other parts of K than those of 16 rows is not taken."""
    spec = spec_of("vec8:2x8:f16")
    files = among((8, dataclasses.replace(FEW, columns=8, splits=4)), (16, FEW))
    assert schedule_for(spec, 8, among=files).splits == FEW.splits
    us = codebook_us(spec, 8, H200, FEW.splits)
    assert reason_for(spec, 8, among=files) == f"by estimate, {us:.1f} us: without warpgroups"
    assert us > codebook_us(spec, 8, H200)
    # Nor does it keep more rows from warpgroups.
    assert schedule_for(spec, 20, among=among((32, FEW))) == schedule_for(spec, 20, among=())


def test_no_rows() -> None:
    """Of x have the schedule of one."""
    for text in ("vec2:1x8:f16", "vec8:2x12:f16", "vec8:1x8:f16"):
        assert schedule_for(spec_of(text), 0) == schedule_for(spec_of(text), 1)
        assert reason_for(spec_of(text), 0) == reason_for(spec_of(text), 1)


def test_few_rows_go_as_those_of_16_do() -> None:
    """By warpgroups, if these were measured so; what was measured so for 8 rows alone is not taken."""
    spec, wide = spec_of("vec8:2x8:f16"), dataclasses.replace(WIDE, columns=16)
    for m, columns in ((3, 8), (8, 8), (9, 16)):
        assert schedule_for(spec, m, among=among((16, wide))) == dataclasses.replace(wide, columns=columns)
    assert schedule_for(spec, 8, among=among((8, wide))) == schedule_for(spec, 8, among=())
    assert reason_for(spec, 5, among=among((16, wide))) == f"measured on {GPU} for this shape, M <= 16: 12.5 us"
    assert reason_for(spec, 8, among=among((8, wide))) == reason_for(spec, 8, among=())
    invariant = schedule_for(spec, 8, batch_invariant=True, among=among((16, wide)))
    assert invariant == schedule_for(spec, 8, batch_invariant=True, among=())


@pytest.mark.parametrize("m", [16, 32, 64])
def test_what_is_shipped_is_taken(m: int) -> None:
    shipped = [entry for of_gpu in measured._shipped() for entry in of_gpu.entries]
    books = [entry for entry in shipped if entry.kind.startswith("books ") and entry.m == m]
    assert books
    for entry in books:
        spec = spec_of(entry.kind.split()[1], entry.n, entry.k)
        assert kind_of_books(spec) == entry.kind
        taken = schedule_for(spec, m)
        assert dataclasses.replace(taken, kept_entries=0) == entry.schedule, entry
        assert reason_for(spec, m).startswith("measured on NVIDIA H200 for this shape")


@pytest.mark.parametrize("text", ["vec8:1x8:f16", "vec8:2x8:f16", "vec4:1x8:f16:256x256"])
@pytest.mark.parametrize("m", [128, 2048, 16384])
def test_many_rows_of_gate_and_up_take_warpgroups(text: str, m: int) -> None:
    """A block without warpgroups makes both products, so it takes as long as for one of twice the rows of weights."""
    gated = dataclasses.replace(spec_of(text, 57344, 8192), epilogue="silu_mul")
    assert schedule_for(gated, m, among=()).warpgroups
    one, schedule = dataclasses.replace(gated, epilogue=""), codebook_schedule(gated, m, H200, 1)
    assert _cycles(gated, schedule, m, H200) == pytest.approx(_cycles(one, schedule, m, H200), rel=0.25)
