"""The machine code of kernels with stages: what the inner loop is made of."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from test_decode_plans import MOST_ALU
from test_machine_code import ALU, NVDISASM, OPCODE, needs_nvdisasm

from lowlp.compiler import compilation
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.schedules.device import device_like

FULL_OPCODE = re.compile(OPCODE.pattern.replace("[A-Z0-9]+", "[A-Z0-9.]+"), re.MULTILINE)


def listing_of(spec: LinearSpec, schedule: Schedule, path: Path) -> list[str]:
    """The instructions, each by its name with all its suffixes."""
    path.write_bytes(compilation.compile(linear_kernel(spec, schedule), "sm_90a").cubin)
    assert NVDISASM
    text = subprocess.run([NVDISASM, "-c", path], capture_output=True, text=True, check=True).stdout
    return FULL_OPCODE.findall(text)


def inner_loop(listing: list[str], end: str = "SYNCS.ARRIVE") -> list[str]:
    """From the wait for a full place to where the warp says that it has read it, or to the `end` of the loop."""
    products = [place for place, name in enumerate(listing) if name.startswith("HMMA")]
    begin = max(place for place in range(products[0]) if "TRYWAIT" in listing[place])
    return listing[begin : next(place for place in range(products[-1], len(listing)) if end in listing[place])]


@pytest.mark.sampled(2)
@needs_nvdisasm
@pytest.mark.parametrize("producer", [False, True])
@pytest.mark.parametrize("share_tiles", [False, True])
def test_the_inner_loop_of_int4(share_tiles: bool, producer: bool, tmp_path: Path) -> None:
    """A warp has 64 rows and 64 of K in an iteration: 64 bytes of weights a lane, 64 pairs of them."""
    spec = LinearSpec(n=4096, k=4096, codec="int4 g128 f16", aligned=True)
    schedule = Schedule(columns=8, warps=2, row_tiles=4, slices=2, stages=3, producer=producer, share_tiles=share_tiles)
    listing = listing_of(spec, schedule, tmp_path / "kernel.cubin")
    loop = inner_loop(listing)
    count = Counter(loop)
    assert count["LDS.128"] == 4
    assert count["LDSM.16.M88.4"] == 2
    # 4 tiles of rows in 4 steps of K; and the sum of x, which the offsets of int4 need, of two steps at once.
    assert count["HMMA.16816.F32"] == 4 * 4 + 2
    pairs = 64
    alu = sum(name.split(".")[0] in ALU for name in loop)
    print(f"{alu / pairs:.3f} instructions of the ALU a pair of weights, {count['LOP3.LUT'] / pairs:.3f} LOP3")
    # A few of them compute addresses, more where the loop holds the end of a tile too.
    addresses = 10 if share_tiles else 0
    assert count["LOP3.LUT"] <= pairs + addresses
    assert alu <= MOST_ALU["uint4"] * pairs + addresses
    assert not [name for name in loop if name.startswith(("LDG", "STG", "STS", "BAR"))]
    assert not [name for name in listing if name.startswith(("LDL", "STL"))]


@pytest.mark.sampled(4)
@needs_nvdisasm
@pytest.mark.parametrize(
    ("codec", "products", "most"),
    [
        # Sums of x begin each group of int4: 2 products for each of two groups, and a multiplication of an accumulator.
        ("int4 g32 f16", 4 * 4 + 4, 224),
        # Its plan takes 1.75 instructions of the ALU; scales of e8m0 are shifted and compared; codes have no offset.
        ("f4e2m1 g32 e8m0", 4 * 4, 289),
        ("f4e2m1 g16 e4m3 scale2", 4 * 4, 337),
        # Scales and minima in two levels: a conversion and a product for each, by one of the four threads that have the
        # row; then a shuffle for each, and two FFMA for an accumulator. Powers of two of the plans go to super-scales.
        ("uint4 g32 uint8 offsets:uint8 super:f16:g256", 4 * 4 + 4, 270),
        ("uint2 g16 uint4 offsets:uint4 super:f16:g256", 4 * 4 + 4, 397),
        ("int3 g16 int6 super:f16:g256", 4 * 4 + 4, 340),
        ("int6 g16 int8 super:f16:g256", 4 * 4 + 4, 337),
    ],
)
def test_the_inner_loop_of_small_groups(codec: str, products: int, most: int, tmp_path: Path) -> None:
    """As above, with the scales of two or four groups: accumulators of each are scaled, and nothing else is done.

    most  instructions for a step of 64 x 64 weights, of which a thread has 128
    """
    spec = LinearSpec(n=4096, k=4096, codec=codec, aligned=True)
    schedule = Schedule(columns=8, warps=2, row_tiles=4, slices=2, stages=3, share_tiles=False)
    listing = listing_of(spec, schedule, tmp_path / "kernel.cubin")
    loop = inner_loop(listing, end="BRA")
    count = Counter(loop)
    print(f"{codec}: {len(loop)} instructions, {len(loop) / 128:.2f} a weight; {dict(count)}")
    assert count["HMMA.16816.F32"] == products
    assert len(loop) <= most
    assert not [name for name in loop if name.startswith(("LDG", "STG", "STS", "BAR"))]
    assert not [name for name in listing if name.startswith(("LDL", "STL"))]


@pytest.mark.sampled(2)
@needs_nvdisasm
@pytest.mark.parametrize(
    ("codec", "columns", "most"),
    [("int4 g16 f16", 8, 22), ("int4 g16 f16", 16, 22), ("int4 g32 f16", 16, 20), ("uint2 g16 f16 zeros:uint8", 8, 30)],
)
def test_the_inner_loop_of_scaled_weights(codec: str, columns: int, most: int, tmp_path: Path) -> None:
    """Instructions for 16 x 16 weights, products not counted: no accumulators are scaled, and no sums of x made."""
    spec = LinearSpec(n=4096, k=4096, codec=codec, aligned=True)
    schedule = Schedule(columns, warps=2, row_tiles=4, slices=2, stages=3, share_tiles=False, scales_on="weights")
    loop = inner_loop(listing_of(spec, schedule, tmp_path / "kernel.cubin"))
    count = Counter(name.split(".")[0] for name in loop)
    assert count["HMMA"] == 4 * 4 * columns // 8
    assert not count["FFMA"] and not count["FMUL"] and not count["I2F"]
    each = (len(loop) - count["HMMA"]) / 16
    print(f"{codec}, {columns} columns: {each:.1f} instructions for 16 x 16 weights")
    assert each <= most


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a"])
@pytest.mark.parametrize(("weight", "n", "k", "m"), [("int2", 57344, 8192, 16), ("int4", 14336, 4096, 32)])
def test_no_spills_where_nothing_was_measured(weight: str, n: int, k: int, m: int, arch: str) -> None:
    """Of what is best by estimate, on architectures where a producer cannot give its registers away."""
    spec = LinearSpec(n=n, k=k, codec=f"{weight} g128 f16", aligned=True)
    schedule = schedule_for(spec, m, device_like(arch))
    assert schedule.stages and not schedule.warpgroups
    assert compilation.compile(linear_kernel(spec, schedule), arch).spilled_bytes == 0


@pytest.mark.sampled(3)
@needs_nvdisasm
@pytest.mark.parametrize(
    ("bits", "loads", "alu"),
    [
        # Slices of 16 pairs or codes are put together in 15 to 27 instructions, and PRMT or a shift and LOP3 take each
        # out; half a PRMT joins two entries. The assembler does some of the shifts by IMAD.
        (3, 0.5, 1.05),
        (5, 1, 2.5),
        (6, 1, 2.45),
        (7, 1, 2.85),
        (8, 1, 2.4),
    ],
)
def test_the_inner_loop_of_tables(bits: int, loads: float, alu: float, tmp_path: Path) -> None:
    """128 weights a lane as above: loads of the table and instructions of the ALU for one."""
    spec = LinearSpec(n=4096, k=4096, codec=f"lut{bits}:f32:tensor g128 f16", aligned=True)
    schedule = Schedule(columns=8, warps=2, row_tiles=4, slices=2, stages=3, share_tiles=False)
    loop = inner_loop(listing_of(spec, schedule, tmp_path / "kernel.cubin"))
    count = Counter(name.split(".")[0] for name in loop)
    weights = 128
    found = sum(count[name] for name in ALU) / weights
    print(f"lut{bits}: {found:.2f} instructions of the ALU a weight, {count['LDS'] / weights:.2f} loads; {dict(count)}")
    words = bits * weights // 32  # loaded as they lie, by accesses of 1 to 4 words
    assert loads * weights <= count["LDS"] <= loads * weights + words + 8
    assert found <= alu
