"""The inner loop of products by warpgroups in the machine code: what two more steps of a stage add, from `nvdisasm`."""

from __future__ import annotations

import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from test_machine_code import NVDISASM, OPCODE, needs_nvdisasm

from lowlp.compiler import compilation
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec

ALU = {"LOP3", "PRMT", "SHF", "SEL", "SGXT", "BMSK", "PLOP3"}
FMA = {"HFMA2", "HMUL2", "HADD2"}
STEPS_OF_K16 = 8  # in two steps of 64
ON_WEIGHTS = Schedule(64, stages=2, warpgroups=2, row_tiles=1, scales_on="weights")


def opcodes(spec: LinearSpec, schedule: Schedule, path: Path) -> Counter[str]:
    path.write_bytes(compilation.compile(linear_kernel(spec, schedule), "sm_90a").cubin)
    assert NVDISASM
    listing = subprocess.run([NVDISASM, "-c", path], capture_output=True, text=True, check=True).stdout
    return Counter(OPCODE.findall(listing))


@pytest.mark.sampled(2)
@needs_nvdisasm
@pytest.mark.parametrize(
    ("weight", "scales_on", "alu", "fma"),
    [
        # For each of 4 registers of 16 weights along K: masks, and what takes offsets off or puts scales on.
        ("int4", "accumulators", 5, 5),
        ("int4", "weights", 5, 8),
        ("uint8", "accumulators", 4, 0),
        ("int8", "weights", 4, 8),
    ],
)
def test_two_more_steps(weight: str, scales_on: str, alu: int, fma: int, tmp_path: Path) -> None:
    spec = LinearSpec(n=1024, k=1024, codec=f"{weight} g256 f16", aligned=True)
    few, many = (
        opcodes(
            spec,
            Schedule(64, stages=2, steps=steps, warpgroups=2, row_tiles=1, scales_on=scales_on, producer=False),
            tmp_path / "kernel.cubin",
        )
        for steps in (2, 4)
    )
    more = {name: many[name] - few[name] for name in many}
    assert more["HGMMA"] == STEPS_OF_K16
    words = {"int4": 1, "uint8": 2, "int8": 2}[weight]
    assert more["LDS"] == 2 * words
    found_alu, found_fma = (sum(more.get(name, 0) for name in names) for names in (ALU, FMA))
    print(f"{weight} {scales_on}: {found_alu / STEPS_OF_K16} ALU and {found_fma / STEPS_OF_K16} FMA for 16 along K")
    # Addresses, and copies of two more steps, take a few in all.
    assert found_alu <= alu * STEPS_OF_K16 + 16
    assert found_fma <= fma * STEPS_OF_K16 + 4
    assert many["LDL"] == many["STL"] == 0


@needs_nvdisasm
@pytest.mark.parametrize("codec", ["lut4:f32:tensor g256 f16", "int4 g16 f16"])
def test_a_product_takes_one_sum_for_its_descriptor(codec: str, tmp_path: Path) -> None:
    """Where each product is of weights with a scale of their own, too."""
    spec = LinearSpec(n=1024, k=1024, codec=codec, aligned=True)
    few, many = (opcodes(spec, replace(ON_WEIGHTS, steps=steps), tmp_path / "kernel.cubin") for steps in (2, 4))
    uniform = {name: many[name] - few[name] for name in many if name.startswith("U")}
    assert STEPS_OF_K16 <= sum(uniform.values()) <= STEPS_OF_K16 + 3, uniform
