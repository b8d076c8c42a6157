"""Inner loops of products of bytes in the machine code: how many products, and how few instructions decode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_machine_code import needs_nvdisasm
from test_planes_machine_code import loop_with

import lowlp
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operands import spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.ops.linear_kernels import compile_for_gpu

WARPS = Schedule(stages=3, columns=16, warps=2, row_tiles=2, slices=8, steps=2, producer=True)
WARPGROUPS = Schedule(stages=3, columns=128, row_tiles=1, steps=4, producer=True, warpgroups=2, products_in_flight=4)
# Sums of 8-bit floats begin anew every 128 along K.
FLOATS = replace(WARPGROUPS, steps=2)
WEIGHTS_OF_FRAGMENT = 16
"""Of operand A, that a thread holds: 64 x 32 of a warpgroup, or 16 x 32 of a warp."""
DECODING = ("LOP3", "PRMT", "SHF", "IADD3", "IMAD", "HADD2", "HFMA2", "F2FP")


@needs_nvdisasm
@pytest.mark.parametrize(
    ("weight", "activation", "schedule", "opcode", "fragments", "columns", "most"),
    [
        # 2 rows of fragments, 2 x 64 along K; the plan of int4 takes 1 instruction for a register of 4 weights.
        ("int4", "int8", WARPS, "IMMA", 8, 2, 0.25),
        ("int4", "int8", WARPGROUPS, "IGMMA", 8, 1, 0.25),
        # A byte is a stored code as it is. What is left are addresses.
        ("int8", "int8", WARPGROUPS, "IGMMA", 8, 1, 0.2),
        # Warps rotate words that they share, half an instruction a register, and do not branch.
        ("int1", "int8", WARPGROUPS, "IGMMA", 8, 1, 0.65),
        ("int2", "int8", WARPGROUPS, "IGMMA", 8, 1, 0.65),
        ("int2", "f8e4m3", FLOATS, "QGMMA", 4, 1, 1.5),
        ("f4e2m1", "f8e4m3", FLOATS, "QGMMA", 4, 1, 0.75),
        ("f8e4m3", "f8e4m3", FLOATS, "QGMMA", 4, 1, 0.3),
    ],
)
def test_the_loop_decodes_by_few_instructions(
    weight: str, activation: str, schedule: Schedule, opcode: str, fragments: int, columns: int, most: float,
    tmp_path: Path,
) -> None:  # fmt: skip
    kernel = lowlp.compile_linear(
        n=512, k=1024, weight=weight, group_size=None, activation=activation, schedule=schedule
    )
    loop = loop_with(opcode, kernel, tmp_path / "kernel.cubin")
    assert loop[opcode] == fragments * columns
    assert sum(loop[name] for name in DECODING) <= most * fragments * WEIGHTS_OF_FRAGMENT
    assert not loop["BRX"] and not loop["BSSY"]
    assert kernel.spilled_bytes == 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_older_architectures_multiply_integers(arch: str) -> None:
    kernel = lowlp.compile_linear(n=256, k=512, weight="int4", group_size=None, activation="int8", target=arch)
    assert "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32" in kernel.ptx
    # `ptxas`, where there is one, has assembled it.
    assert kernel.resources is None or (kernel.resources.arch == arch and kernel.spilled_bytes == 0)


@pytest.mark.parametrize("weight", ["uint2", "uint8"])
def test_threads_hold_rows_of_x_that_are_not_aligned(weight: str) -> None:
    """Bytes come one by one where K is no multiple of 16: of 32 columns `ptxas` spilled 300 bytes and more."""
    weights = np.random.default_rng(0).normal(size=(520, 1000)).astype(np.float32)
    qw = lowlp.quantize(weights, weight, group_size=None, zero_point=True)
    spec = spec_for(qw, "int8", "f16", x_scale="token")
    schedule = schedule_for(spec, 64)
    assert not schedule.stages
    kernel = compile_for_gpu(spec, schedule, "sm_90a")
    assert kernel.resources is None or kernel.spilled_bytes == 0


def test_only_newer_ones_multiply_floats_of_8_bits() -> None:
    arguments = {"n": 256, "k": 512, "weight": "f4e2m1", "group_size": None, "activation": "f8e4m3"}
    assert (
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" in lowlp.compile_linear(**arguments, target="sm_89").ptx
    )
    for path in (None, "fp8"):
        with pytest.raises(LowlpValueError, match=r"activation: f8e4m3 is multiplied by .*sm_80 does not have"):
            lowlp.compile_linear(**arguments, target="sm_80", path=path)
