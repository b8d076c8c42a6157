"""Packed integers as scales of groups that are whole units, in kernels with stages: rows of I give `dequantize()`."""

from __future__ import annotations

import numpy as np
import pytest
from linear_matrix import TYPES, Config

from lowlp.compiler.compilation import compile_cpu
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import for_weights, host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.streaming_layouts import can_stream
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide


def _streamed(**fields: int) -> Schedule:
    return Schedule(**{"columns": 8, "stages": 2, "row_tiles": 4, "producer": False, **fields})


def _wide(scales_on: str, steps: int) -> Schedule:
    return Schedule(
        16, stages=2, warpgroups=1, row_tiles=4, steps=steps, producer=False, scales_on=scales_on, share_tiles=False
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("config", "k", "schedule"),
    [
        # Slices with a group each, whose fields are one byte, or parts of it, or several times 3 bytes.
        (Config("uint4", 64, "f16", "offsets", "uint4"), 512, _streamed(slices=4)),
        (Config("int3", 64, "f16", "", "uint4"), 320, _streamed(slices=2)),
        (Config("int4", 64, "bf16", "", "int6"), 768, _streamed(slices=8, row_tiles=1)),
        (Config("uint4", 64, "f16", "offsets", "int6"), 512, _streamed(slices=2, steps=2)),
        # A group for all slices, which the next step may have too.
        (Config("uint2", 64, "f16", "", "int6"), 512, _streamed(steps=3)),
        (Config("int4", 128, "f16", "integer zeros", "uint4"), 640, _streamed(slices=2)),
        (Config("int4", 192, "f16", "", "int6"), 768, _streamed(units=3)),
        (Config("lut4 tensor", 256, "f16", "", "uint4"), 768, _streamed(slices=2)),
        # By warpgroups: stages whose groups fill bytes, stages with others, and stages that are parts of groups.
        (Config("uint4", 64, "f16", "offsets", "uint4"), 512, _wide("weights", 2)),
        (Config("int4", 64, "f16", "", "int6"), 512, _wide("accumulators", 4)),
        (Config("int4", 64, "bf16", "", "int6"), 512, _wide("accumulators", 2)),
        (Config("uint4", 192, "f16", "offsets", "int6"), 768, _wide("weights", 1)),
        (Config("int3", 128, "f16", "integer zeros", "uint4"), 384, _wide("weights", 2)),
    ],
    ids=lambda value: "" if isinstance(value, Schedule) else str(value),
)
def test_rows_of_the_identity(config: Config, k: int, schedule: Schedule) -> None:
    n, rows = 70, 40
    qw = config.weights(n, k, seed=1)
    kind = TYPES[config.activation]
    spec = for_weights(spec_for(qw, config.activation, config.activation, aligned=True), qw)
    assert (can_go_wide if schedule.warpgroups else can_stream)(spec, schedule)
    kernel, product = compile_cpu(linear_kernel(spec, schedule)), product_of(spec, schedule)
    # Of all groups some columns.
    chosen = np.sort(np.random.default_rng(0).permutation(k)[:rows])
    y = np.full((rows, n), np.nan, kind)
    kernel(
        x=np.eye(k, dtype=kind)[chosen],
        **host_operands(qw, config.activation, schedule=schedule),
        y=y,
        **product.by_name(product.launch_numbers(rows, k, None, multiprocessors=2)),
    )
    np.testing.assert_array_equal(y.T, qw.dequantize()[:, chosen].astype(kind))


@pytest.mark.parametrize("kind", ["uint4", "int6"])
@pytest.mark.parametrize("group", [64, 128, 192, 256])
def test_every_number_of_rows_has_a_kernel_with_stages(kind: str, group: int) -> None:
    spec = LinearSpec(4096, 6144, f"uint4 g{group} {kind} offsets:{kind} super:f16:g{2 * group}", aligned=True)
    assert all(schedule_for(spec, m).stages for m in (1, 16, 24, 100, 300, 5000))
    # Bytes of fields that rows end within are for the kernel without stages.
    short = LinearSpec(4096, 6144 + 2 * group, f"uint4 g{group} int6 super:f16:channel", aligned=True)
    assert not can_stream(short, Schedule(8, stages=2))
    # So is one group, whose field of 6 bits is less than the bytes that four fill.
    one = LinearSpec(256, 96, "int5 g96 int6 super:f16:channel", aligned=True)
    assert not any(can_stream(one, Schedule(8, stages=2, row_tiles=tiles)) for tiles in (1, 2, 4))
