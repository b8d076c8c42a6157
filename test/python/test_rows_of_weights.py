"""Some rows of weights, as several GPUs have them, give the bits that all rows give."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

import lowlp
from lowlp.benchmarks.models.shapes import MODELS
from lowlp.errors import LowlpError
from lowlp.kernels.linear.candidates import has_program
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.fitting import fits
from lowlp.kernels.linear.invariant import order_of
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.schedules.device import H200, Device

A100 = Device("sm_80", 108, 1.5e6, 1410.0)
CODECS = (
    "int4 g128 f16",
    "int8 channel f16",
    "uint4 g128 f16 zeros:uint8",
    "f4e2m1 g32 e8m0",
    "int4 g16 f16",
    "int1 g64 f16",
)


def test_bits_are_those_of_the_whole() -> None:
    random_ = np.random.default_rng(5)
    qw = lowlp.quantize(random_.normal(size=(512, 1024)).astype(np.float32), "int4", group_size=128)
    x = random_.normal(size=(3, 1024)).astype(np.float16)
    bias = random_.normal(size=512).astype(np.float32)
    options = {"out_dtype": "f32"}
    whole = lowlp.linear(x, qw, bias=bias, batch_invariant=True, **options)
    part = lowlp.linear(x, qw[448:], bias=bias[448:], batch_invariant=512, **options)
    assert np.array_equal(part, whole[:, 448:])
    alone = lowlp.linear(x, qw[448:], bias=bias[448:], batch_invariant=True, **options)
    assert not np.array_equal(alone, part), "then this test says nothing"


@pytest.mark.parametrize("path", ["s8", "f16"])
def test_bits_of_quantised_x_are_those_of_the_whole(path: str) -> None:
    random_ = np.random.default_rng(6)
    qw = lowlp.quantize(random_.normal(size=(64, 128)).astype(np.float32), "int4", group_size=64)
    qw = qw.pack_for("int8" if path == "s8" else "f16")
    x = random_.normal(size=(2, 128)).astype(np.float32)
    whole = lowlp.linear(x, qw, activation="int8", path=path, batch_invariant=True)
    part = lowlp.linear(x, qw[32:], activation="int8", path=path, batch_invariant=64)
    assert np.array_equal(part, whole[:, 32:])


def order(spec: LinearSpec, schedule: Schedule) -> object:
    """What the order of sums follows from."""
    if schedule.warpgroups:
        return order_of(spec, schedule)
    assert not schedule.share_tiles or not schedule.stages
    return schedule.stages > 0, schedule.slices, schedule.units, schedule.steps, schedule.splits


@pytest.mark.parametrize("seed", range(10))
def test_schedules_keep_the_order_of_the_whole(seed: int) -> None:
    draw = random.Random(seed)
    ranks = draw.choice((2, 4, 8))
    product = draw.choice([p for model in MODELS for p in model.products(1) if p.shape.n % (64 * ranks) == 0])
    epilogue = draw.choice(("", "silu_mul"))
    whole = LinearSpec(
        product.shape.n, product.shape.k, draw.choice(CODECS), out=draw.choice(("f16", "f32")), epilogue=epilogue
    )
    part = dataclasses.replace(whole, n=whole.n // ranks)
    device = draw.choice((H200, H200, H200, A100))
    for m in draw.sample((1, 7, 16, 40, 100, 300, 2000), 2):
        all_rows = schedule_for(whole, m, device, batch_invariant=True)
        some = schedule_for(part, m, device, batch_invariant=whole.n)
        assert order(part, some) == order(whole, all_rows), (product, whole, ranks, m)
        assert has_program(part, some, m) and fits(part, some, device)


def test_books_are_divided_as_those_of_the_whole() -> None:
    whole = LinearSpec(8192, 8192, "vec8:2x8:f16 channel f16", aligned=True)
    part = dataclasses.replace(whole, n=1024)
    wanted = schedule_for(whole, 5, H200, batch_invariant=True).splits
    assert schedule_for(part, 5, H200, batch_invariant=8192).splits == wanted
    assert schedule_for(part, 5, H200, batch_invariant=True).splits != wanted, "then this test says nothing"


@pytest.mark.parametrize(
    "value, message",
    [
        (15, r"^batch_invariant: as a number .* 16 rows are some, so at least 16, got 15$"),
        (1.5, r"^batch_invariant: expected a bool, or the N of the weights .*, got 1\.5$"),
    ],
)
def test_mistakes_are_named(value: object, message: str) -> None:
    qw = lowlp.quantize(np.ones((16, 64), np.float32), "int4", group_size=64)
    for options in ({}, {"activation": "int8"}):
        with pytest.raises(LowlpError, match=message):
            lowlp.linear(np.ones((1, 64), np.float16), qw, batch_invariant=value, **options)
