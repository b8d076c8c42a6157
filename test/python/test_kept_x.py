"""Blocks that keep few rows of x in place of stages of 8: the same bits, in shared memory that is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from linear_matrix import TYPES, Config
from test_linear_fitting import MUCH_BYTES, SPARE_BYTES, laid_out

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.fitting import other_bytes, stage_bytes
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.streaming_layouts import can_stream, units_side_by_side


@pytest.mark.parametrize(
    ("rows", "config", "share_tiles"),
    [
        (1, Config("int4", 64, "bf16"), False),
        (2, Config("uint2", 16, "f16", "offsets", "uint4"), True),
        (4, Config("int6", 128, "f16"), False),
        (8, Config("f4e2m1", 32, "bf16", "", "e8m0"), True),
    ],
    ids=str,
)
@pytest.mark.parametrize("aligned", [False, True])
def test_the_same_bits_as_by_stages(rows: int, config: Config, share_tiles: bool, aligned: bool) -> None:
    n, k = 80, 640
    qw, kind = config.weights(n, k), TYPES[config.activation]
    spec = spec_for(qw, config.activation, config.activation, aligned=aligned)
    division = Schedule(8, row_tiles=2, slices=2, stages=2, share_tiles=share_tiles)
    results = []
    for schedule in (division, replace(division, kept_rows=rows)):
        assert can_stream(spec, schedule)
        kernel, product = compile_cpu(linear_kernel(spec, schedule)), product_of(spec, schedule)
        for m in {1, rows // 2 + 1, rows}:
            x = np.random.default_rng(m).normal(size=(m, k)).astype(kind)
            y: Any = np.full((m, n), np.nan, kind)
            numbers = product.by_name(product.launch_numbers(m, k, None, multiprocessors=2))
            kernel(x=x, **host_operands(qw, config.activation), y=y, **numbers)
            results.append(y.tobytes())
    half = len(results) // 2
    assert results[:half] == results[half:]


def test_rows_are_kept_where_that_takes_least() -> None:
    def kept(n: int, k: int, m: int, codec: str = "int4 g128 f16") -> int:
        return schedule_for(LinearSpec(n, k, codec, aligned=True), m).kept_rows

    assert [kept(4096, 4096, m) for m in (1, 2, 16)] == [1, 0, 0]
    assert kept(4096, 28672, 1) == kept(28672, 4096, 1) == 0
    assert kept(4096, 4096, 1, "lut4:f16:tensor g128 f16") == 0
    spec = LinearSpec(4096, 4096, "int4 g128 f16", aligned=True)
    schedule = schedule_for(spec, 1)
    counted = schedule.stages * stage_bytes(spec, schedule) + other_bytes(spec, schedule)
    assert counted - MUCH_BYTES <= laid_out(spec, schedule)[2] <= counted + SPARE_BYTES
    # For more rows than columns of a tile, or than a thread has registers for, there is no program.
    assert not can_stream(spec, replace(schedule, columns=16))
    assert not can_stream(LinearSpec(4096, 65536, "int4 g128 f16"), replace(schedule, kept_rows=8))
    with pytest.raises(LowlpValueError, match="kept_rows: must be one of 0, 1, 2, 4, 8, got 3"):
        Schedule(kept_rows=3)


@pytest.mark.parametrize("m", [1, 11])
@pytest.mark.parametrize(("activation", "units", "slices"), [("int8", 1, 4), ("f8e4m3", 2, 1), ("uint8", 2, 2)])
def test_units_side_by_side_and_stages_of_one_row_have_the_same_bits(
    activation: str, units: int, slices: int, m: int
) -> None:
    n, k, rng = 48, 768, np.random.default_rng(m)
    qw = lowlp.quantize(rng.normal(size=(n, k)), "int4", group_size=None, activation=activation)
    spec = spec_for(qw, activation, "f16", aligned=True, x_scale="token")
    # Small integers, whose sums are exact in any order.
    x = rng.integers(0 if activation == "uint8" else -8, 9, (m, k))
    kind = {"int8": np.int8, "uint8": np.uint8, "f8e4m3": ml_dtypes.float8_e4m3fn}[activation]
    given = {"x": x.astype(kind).view(np.int8), "x_scales": np.ones(m, np.float32), "x_sums": x.sum(1, dtype=np.int32)}
    schedule = Schedule(8 if m == 1 else 16, row_tiles=1, slices=slices, units=units, stages=2)
    narrow = replace(schedule, units=1, slices=1)
    assert [units_side_by_side(spec, each) for each in (schedule, narrow)] == [2, 1]
    results = []
    for each in (schedule, narrow, *([replace(schedule, staged_rows=1)] if m == 1 else [])):
        assert can_stream(spec, each)
        kernel, product = compile_cpu(linear_kernel(spec, each)), product_of(spec, each)
        y: Any = np.full((m, n), np.nan, np.float16)
        numbers = product.launch_numbers(m, k, None, multiprocessors=2)
        of_x = {name: array for name, array in given.items() if product.operand(name)}
        kernel(**product.by_name({**of_x, "y": y, **numbers}), **host_operands(qw, activation))
        results.append(y.tobytes())
    assert len(set(results)) == 1 and np.isfinite(np.frombuffer(results[0], np.float16)).all()


def test_bytes_of_one_row_come_alone() -> None:
    spec = LinearSpec(4096, 4096, "int4 channel f16", activation="int8", aligned=True, x_scale="token")
    assert [schedule_for(spec, m).staged_rows for m in (1, 2, 16)] == [1, 0, 0]
    assert schedule_for(LinearSpec(4096, 28672, "int4 g128 f16", aligned=True), 1).staged_rows == 0
    alone, schedule = schedule_for(spec, 1), schedule_for(spec, 2)
    assert replace(alone, stages=schedule.stages, staged_rows=0) == schedule
    assert not can_stream(spec, replace(alone, columns=16))
    with pytest.raises(LowlpValueError, match="staged_rows: must be one of 0, 1, 2, 4, got 3"):
        Schedule(staged_rows=3)
