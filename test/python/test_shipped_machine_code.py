"""The inner loops of shipped schedules in the machine code: what a register of weights costs. One instruction more for
each would be found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from test_machine_code import ALU, needs_nvdisasm
from test_streaming_machine_code import listing_of

from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.scaled_weights import fit_of
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.warpgroup_layouts import is_ping_pong
from lowlp.ops.linear_kernels import gpu_kernel

FMA = {"HFMA2", "HMUL2", "HADD2"}
WORDS_OF_LOAD = {"LDS": 1, "LDS.64": 2, "LDS.128": 4}


class Decoding(NamedTuple):
    """What a register of two weights takes.

    lop3, alu   LOP3, and all instructions of the ALU
    fma         of the FMA pipe, on pairs of f16
    load        the widest load that a lane's words of a unit divide into
    has_offset  whether decoded codes have an offset, which a product with ones takes off the accumulators
    lookups     loads of a table
    """

    lop3: float
    alu: float
    fma: float
    load: str = "LDS.128"
    has_offset: bool = True
    lookups: int = 0


FEW_ROWS = {
    "int2": Decoding(1, 1.125, 0),
    "int3": Decoding(1.125, 1.3125, 0.375, "LDS"),
    "int6": Decoding(1.125, 1.5, 0.375, "LDS.64"),
    "f6e3m2": Decoding(1.25, 2.125, 0, "LDS.64", has_offset=False),
    "lut4": Decoding(1, 1.75, 0, has_offset=False, lookups=1),
}
# Offsets are taken off the weights, and in the second case scales go there too.
BY_WARPGROUPS = {
    ("int4", "accumulators"): Decoding(0.75, 1, 1.25),
    ("int4", "weights"): Decoding(1, 1.25, 2),
    ("int8", "accumulators"): Decoding(0.5, 1, 1),
    ("int8", "weights"): Decoding(0.5, 1, 2),
}
# Addresses, bounds of loops and the like, more where few rows have one loop over the stages of all tiles. Each is less
# than there are registers in a stage.
FEW_MORE, MORE_OF_SHARED = 20, 31


def loop_of(listing: list[str], product: str) -> list[str]:
    """From the wait for a full place to the first branch after the products."""
    products = [place for place, name in enumerate(listing) if name.startswith(product)]
    begin = max(place for place in range(products[0]) if "TRYWAIT" in listing[place])
    return listing[begin : listing.index("BRA", products[-1])]


def check_decoding(spec: LinearSpec, schedule: Schedule, registers: int, loop: list[str], cost: Decoding) -> None:
    """Loads and decoding of so many registers of weights, two in each."""
    count = Counter(loop)
    words = registers * spec.bits // 16
    loads = Counter({cost.load: words // WORDS_OF_LOAD[cost.load]}) + Counter({"LDS": cost.lookups * registers})
    assert {name: count[name] for name in WORDS_OF_LOAD if count[name]} == loads
    alu = sum(name.split(".")[0] in ALU for name in loop)
    # HADD2.F32 brings a scale to f32.
    fma = sum(name.split(".")[0] in FMA and name != "HADD2.F32" for name in loop)
    print(f"{spec.weight}: {count['LOP3.LUT']} LOP3, {alu} ALU, {fma} FMA for {registers} registers")
    more = FEW_MORE if schedule.has_tile_each or schedule.warpgroups else MORE_OF_SHARED
    assert more < registers
    assert cost.lop3 * registers <= count["LOP3.LUT"] <= cost.lop3 * registers + more
    assert cost.alu * registers <= alu <= cost.alu * registers + more
    # Scales that go on weights are fitted to f16, those of two rows at once.
    scales = schedule.row_tiles * max(1, schedule.stage_k // spec.group_size) if fit_of(spec, schedule) else 0
    assert fma == cost.fma * registers + scales
    assert not [name for name in loop if name.startswith(("LDG", "STG", "STS", "LDL", "STL"))]


@pytest.mark.sampled(5)
@needs_nvdisasm
@pytest.mark.parametrize("weight", FEW_ROWS)
@pytest.mark.parametrize(("n", "k", "m"), [(57344, 8192, 16), (4096, 4096, 2)])
def test_few_rows(weight: str, n: int, k: int, m: int, tmp_path: Path) -> None:
    codec = "lut4:f32:tensor g128 f16" if weight == "lut4" else f"{weight} g128 f16"
    spec = LinearSpec(n=n, k=k, codec=codec, aligned=True)
    schedule, cost = schedule_for(spec, m), FEW_ROWS[weight]
    assert schedule.producer and schedule.has_tile_each and not schedule.warpgroups
    listing = listing_of(spec, schedule, tmp_path / "kernel.cubin")
    loop = loop_of(listing, "HMMA")
    count = Counter(loop)
    steps = 4 * schedule.units * schedule.steps  # of 16 along K
    registers = 4 * steps * schedule.row_tiles
    tiles = schedule.columns // 8
    check_decoding(spec, schedule, registers, loop, cost)
    products = registers // 4 * tiles
    # Sums of x, of two steps each.
    assert count["HMMA.16816.F32"] == products + cost.has_offset * steps * tiles // 2
    # x: a matrix instruction takes two tiles of 8 x 8 of it, and a load brings four.
    assert count["LDSM.16.M88.4"] == steps * tiles // 2
    assert sum("SETMAXREG" in name for name in listing) == 2 * schedule.exchanges_registers
    assert not [name for name in loop if name.startswith(("BAR", "WARPSYNC"))]
    assert not [name for name in listing if name.startswith(("LDL", "STL"))]


@pytest.mark.sampled(2)
@needs_nvdisasm
@pytest.mark.parametrize(
    ("weight", "n", "k", "m"),
    [("int4", 57344, 8192, 64), ("int4", 4096, 4096, 256), ("int8", 57344, 8192, 256), ("int8", 4096, 4096, 64)],
)
def test_warpgroups(weight: str, n: int, k: int, m: int, tmp_path: Path) -> None:
    """With a producer, which gives its registers away unless there is one warpgroup; the smaller shape by clusters."""
    spec = LinearSpec(n=n, k=k, codec=f"{weight} g128 f16", aligned=True)
    schedule = schedule_for(spec, m)
    assert schedule.producer and schedule.warpgroups
    assert (schedule.cluster == 2) == (n == 4096) and schedule.exchanges_registers == (schedule.warpgroups == 2)
    listing = listing_of(spec, schedule, tmp_path / "kernel.cubin")
    loop = loop_of(listing, "HGMMA")
    registers = 16 * schedule.row_tiles * schedule.steps
    check_decoding(spec, schedule, registers, loop, BY_WARPGROUPS[weight, schedule.scales_on])
    count = Counter(name.split(".")[0] for name in loop)
    assert count["HGMMA"] == registers // 4 * schedule.column_tiles
    assert count["LDSM"] == 0
    # Turns are taken and given once.
    assert count["BAR"] == 2 * is_ping_pong(spec, schedule)
    assert sum("SETMAXREG" in name for name in listing) == 2 * schedule.exchanges_registers
    assert not [name for name in listing if name.startswith(("LDL", "STL"))]


@pytest.mark.parametrize(("codec", "turns"), [("int8 channel f16", 0), ("int8 g128 f16", 2)])
def test_warpgroups_take_turns_where_decoding_is_long(codec: str, turns: int) -> None:
    spec = LinearSpec(n=8192, k=8192, codec=codec, aligned=True)
    schedule = schedule_for(spec, 4096)
    assert schedule.warpgroups == 2 and schedule.columns >= 128
    ptx = gpu_kernel(spec, schedule, "sm_90a").ptx
    # One is given before the first is taken, and one in the loop.
    assert ptx.count("bar.arrive") == turns
