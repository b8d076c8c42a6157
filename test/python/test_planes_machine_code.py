"""Inner loops of products of planes in the machine code: bits are multiplied as they are loaded, from `nvdisasm`."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from plane_products import kernel_of
from test_machine_code import NVDISASM, OPCODE, needs_nvdisasm

import lowlp
from lowlp.errors import CompileError
from lowlp.kernels.linear.planes.program import PlanesSpec
from lowlp.kernels.linear.planes.shapes import choose_schedule
from lowlp.kernels.linear.planes.streams import StreamSchedule
from lowlp.kernels.linear.planes.warpgroups import WarpgroupSchedule

SPEC = PlanesSpec(8192, 8192, "int2", "uint3", scale="f16", x_scale=True, out="f16")
# Addresses and counters of the loop; what takes codes apart is among the last ones, of which it has none in a vector.
DECODING = {"PRMT", "SHF", "HFMA2", "HADD2", "I2F", "I2FP", "SEL"}


def loop_with(opcode: str, kernel: Any, path: Path) -> Counter[str]:
    """The instructions between the first and the last with this opcode: no more than the body of the loop."""
    path.write_bytes(kernel.cubin)
    assert NVDISASM
    listing = subprocess.run([NVDISASM, "-c", path], capture_output=True, text=True, check=True).stdout
    found = OPCODE.findall(listing)
    first = found.index(opcode)
    last = len(found) - found[::-1].index(opcode)
    return Counter(found[first:last])


@needs_nvdisasm
@pytest.mark.parametrize(
    ("schedule", "opcode", "count"),
    [
        # 2 planes of weights by 2 x 4 columns of planes of x and one row of their tiles, of 2 x 256 of K.
        (StreamSchedule(rows=8, warps=2, slices=2, steps=2, stages=3), "BMMA", 2 * 3 * 2),
        # 2 x 3 planes by 4 x 256 of K.
        (WarpgroupSchedule(columns=64, warpgroups=2, steps=4, stages=3), "BGMMA", 2 * 3 * 4),
    ],
)
def test_the_loop_multiplies_what_it_loads(schedule: Any, opcode: str, count: int, tmp_path: Path) -> None:
    kernel = lowlp.compile(kernel_of(SPEC, schedule), "sm_90a")
    loop = loop_with(opcode, kernel, tmp_path / "kernel.cubin")
    assert loop[opcode] == count
    assert not DECODING & set(loop)
    assert sum(loop.values()) < 2.5 * count + 12
    assert kernel.spilled_bytes == 0


@pytest.mark.parametrize(
    ("weight", "activation", "m"),
    [("uint1", "uint1", 4096), ("int4", "int4", 4096), ("int8", "int8", 300), ("int8", "int8", 16)],
)
def test_registers_suffice(weight: str, activation: str, m: int) -> None:
    spec = PlanesSpec(4096, 4096, weight, activation, scale="f16", x_scale=True, out="bf16")
    kernel = lowlp.compile(kernel_of(spec, choose_schedule(spec, m)), "sm_90a")
    assert kernel.spilled_bytes == 0
    assert "wgmma.mma_async.sync.aligned" in kernel.ptx or m == 16


@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_older_architectures_multiply_by_warps(arch: str) -> None:
    kernel = lowlp.compile(
        kernel_of(SPEC, choose_schedule(SPEC, 64, has_warpgroups=False, shared_limit=99 * 1024)), arch
    )
    assert re.search(r"mma\.sync\.aligned\.m16n8k256\.row\.col\.s32\.b1\.b1\.s32\.and\.popc", kernel.ptx)
    assert "wgmma" not in lowlp.compile(kernel_of(SPEC, WarpgroupSchedule(columns=16, steps=1, stages=2)), arch).ptx


def test_products_of_bits_by_warpgroups_are_refused_where_they_are_absent() -> None:
    a = "!lowlp.tile<64x256xui1, spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 32)>"
    b = "!lowlp.shared<8x8xui32, swizzle(local(8, 2), dim=1, log_step=2).local(1, 4)>"
    sums = "64x8xsi32, spatial(4, 1).local(2, 1).spatial(8, 4).local(1, 2)"
    words = "!lowlp.tile<4x32x4xui32, spatial(4, 32, 1).local(1, 1, 4)>"
    text = f"""lowlp.kernel @bits(%p: !lowlp.ptr<ui32>) attributes
        {{grid = affine_map<() -> (1)>, num_threads = 128 : i64}} {{
      %c0 = arith.constant 0 : index
      %v = lowlp.view_global %p shape [4, 32, 4] : !lowlp.ptr<ui32> -> !lowlp.global<4x32x4xui32>
      %w = lowlp.load_global %v[%c0, %c0, %c0] : !lowlp.global<4x32x4xui32> -> {words}
      %a = lowlp.view %w : {words} -> {a}
      %b = lowlp.alloc_shared : {b}
      %s = lowlp.wgmma %a, %b[%c0, %c0] : {a}, {b} -> !lowlp.accumulators<{sums}>
      lowlp.wgmma_commit
      %d = lowlp.wgmma_wait 0 takes %s : (!lowlp.accumulators<{sums}>) -> !lowlp.tile<{sums}>
      lowlp.print_tile "d", %d : !lowlp.tile<{sums}>
      lowlp.return
    }}"""
    pattern = r"needs wgmma.mma_async.m64nNk256 b1 and.popc, which sm_90 does not have; it is on sm_90a"
    with pytest.raises(CompileError, match=pattern):
        lowlp.compile(text, "sm_90")
