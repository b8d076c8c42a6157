"""Sums of shared tiles that blocks of `linear` leave for each other as f16, on the CPU target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.compiler import compilation
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec

SCHEDULES = {
    "streamed": Schedule(8, 2, stages=3, row_tiles=2),
    "slices": Schedule(16, 1, stages=3, row_tiles=4, slices=2),
    "wide": Schedule(32, stages=3, warpgroups=1, row_tiles=1, steps=2),
}
# No divisor of the tiles, so that blocks share some.
BLOCKS = 5


def run(schedule: Schedule, qw: lowlp.QuantizedTensor, x: Any, seed: int = 0) -> tuple[Any, compilation.CpuKernel]:
    spec = spec_for(qw, "f16", "f16", aligned=True)
    kernel = compilation.compile_cpu(linear_kernel(spec, schedule))
    (m, k), n = x.shape, qw.shape[0]
    y = np.full((m, n), np.nan, np.float16)
    kernel(x=x, **host_operands(qw, "f16", schedule=schedule), y=y, m=m, x_stride=k, blocks=BLOCKS, seed=seed)
    return y, kernel


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SCHEDULES)
def test_parts_of_f16_are_rounded_once_each(name: str) -> None:
    rng = np.random.default_rng(1)
    qw = lowlp.quantize(rng.normal(size=(130, 1024)).astype(np.float32), "int4", group_size=128)
    x = rng.normal(size=(9, 1024)).astype(np.float16)
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    schedule = replace(SCHEDULES[name], parts_type="f16")
    y, kernel = run(schedule, qw, x)
    assert np.linalg.norm(y - wanted) <= 1e-3 * np.linalg.norm(wanted)
    again, _ = run(schedule, qw, x, seed=5)
    np.testing.assert_array_equal(again, y)
    whole, plain = run(SCHEDULES[name], qw, x)
    assert np.any(whole != y)
    values = {"m": 9, "x_stride": 1024, "blocks": BLOCKS}
    scratch = [made.description.lay_out_workspace(values).scratch_bytes for made in (kernel, plain)]
    assert 0 < scratch[0] < 0.6 * scratch[1]


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(
    "changes",
    [{"out": "f32"}, {"codec": "int4 g128 f16 scale2"}, {"codec": "lut4:f32:tensor g128 f16"}, {"out": "bf16"}],
)
def test_what_f16_may_not_hold_is_refused(name: str, changes: dict[str, Any]) -> None:
    spec = LinearSpec(**{"n": 130, "k": 1024, "codec": "int4 g128 f16", "aligned": True, **changes})
    linear_kernel(spec, SCHEDULES[name])
    with pytest.raises(LowlpValueError, match=r"schedule: no kernel with stages takes .* parts_type='f16'"):
        linear_kernel(spec, replace(SCHEDULES[name], parts_type="f16"))


def test_types_of_parts() -> None:
    with pytest.raises(LowlpValueError, match=r"parts_type: must be one of f32, f16, got 'bf16'"):
        Schedule(parts_type="bf16")
