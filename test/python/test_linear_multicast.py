"""`linear` whose blocks copy x for each other, two and two: on the CPU target, which has no clusters, and PTX."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.compiler import compilation
from lowlp.errors import LowlpError
from lowlp.kernels.linear.candidates import with_multicast
from lowlp.kernels.linear.estimates import estimated_us
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.tiles import blocks_for, tiles_of, tiling
from lowlp.kernels.linear.warpgroup_layouts import can_go_wide

SCHEDULE = Schedule(16, stages=3, warpgroups=1, row_tiles=1, producer=True, multicast=2)
K, M = 320, 40


def weights(n: int) -> lowlp.QuantizedTensor:
    w = np.random.default_rng(n).normal(size=(n, K)).astype(np.float32)
    return lowlp.quantize(w, "int4", group_size=64)


def product(qw: lowlp.QuantizedTensor, schedule: Schedule, blocks: int) -> Any:
    """y for M rows of x, by so many blocks, or pairs of blocks."""
    x = np.random.default_rng(5).normal(size=(M, K)).astype(np.float16)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    assert can_go_wide(spec, schedule)
    y = np.full((M, qw.shape[0]), np.nan, np.float16)
    operands = host_operands(qw, "f16", schedule=schedule)
    compilation.compile_cpu(linear_kernel(spec, schedule))(x=x, **operands, y=y, m=M, x_stride=K, blocks=blocks)
    return y


@pytest.mark.parametrize("n", [200, 64], ids=["two pairs", "half of a pair"])
def test_the_same_bits_by_tiles_of_their_own(n: int) -> None:
    """The last pair of tiles has one that lies below the weights, and one that ends there."""
    qw, pairs = weights(n), replace(SCHEDULE, share_tiles=False)
    alone = replace(pairs, multicast=1)
    spec = spec_for(qw, "f16", "f16", aligned=True)
    y = product(qw, pairs, tiles_of(spec, pairs, M))
    assert np.array_equal(y, product(qw, alone, tiles_of(spec, alone, M)))


@pytest.mark.parametrize("aligned_shares", [False, True], ids=["equal", "aligned"])
def test_shared_tiles(aligned_shares: bool) -> None:
    """Three pairs of blocks share six pairs of tiles, or four share them: each block has parts of its own."""
    qw = weights(200)
    schedule = replace(SCHEDULE, aligned_shares=aligned_shares)
    x = np.random.default_rng(5).normal(size=(M, K)).astype(np.float16)
    wanted = x.astype(np.float64) @ qw.dequantize().astype(np.float64).T
    whole, shared = (product(qw, schedule, blocks) for blocks in (3, 4))
    for y in (whole, shared):
        assert np.linalg.norm(y - wanted) < 5e-4 * np.linalg.norm(wanted)
    assert not np.array_equal(whole, shared)


def test_machine_code() -> None:
    """Copies of x go to both blocks, weights to one; warps arrive at both; the cluster meets once."""
    spec = LinearSpec(n=4096, k=4096, codec="int4 g128 f16", aligned=True)
    schedule = Schedule(128, stages=5, warpgroups=2, row_tiles=1, scales_on="weights", multicast=2, aligned_shares=True)
    kernel = compilation.compile(linear_kernel(spec, schedule), "sm_90a")
    note = kernel.description.notes["pipelines"]
    assert re.search(r"5 stages of .*, 1 of \d by multicast to 2 blocks", str(note))
    copies = re.findall(r"cp\.async\.bulk\.tensor\.\S+", kernel.ptx)
    of_both = [copy for copy in copies if copy.endswith(".multicast::cluster")]
    assert of_both and len(of_both) < len(copies)
    assert kernel.ptx.count("mbarrier.arrive.shared::cluster.b64 _, [there];") == 1
    assert kernel.ptx.count("barrier.cluster.arrive.relaxed") == 1
    assert re.findall(r"\.reqnctapercluster (\d+)", kernel.ptx) == ["2"]


def test_what_has_none() -> None:
    spec = LinearSpec(n=4096, k=4096, codec="int4 g128 f16", aligned=True)
    assert can_go_wide(spec, SCHEDULE)
    for fields in ({"producer": False}, {"columns": 8}, {"cluster": 2, "columns": 32}):
        assert not can_go_wide(spec, replace(SCHEDULE, **fields)), fields
    assert not can_go_wide(replace(spec, aligned=False), SCHEDULE)
    with pytest.raises(LowlpError, match=r"multicast: must be one of 1, 2, got 3"):
        replace(SCHEDULE, multicast=3)
    for fields, message in (
        ({"multicast": 9}, "must be 1 to 8, found 9"),
        ({"multicast": 2}, "needs a producer"),
        ({"multicast": 2.0}, "must be an int, found float 2.0"),
    ):
        with pytest.raises(LowlpError, match=f"multicast: {message}"):
            ll.range(4, stages=2, **fields)


def test_pairs_count_as_blocks() -> None:
    spec = LinearSpec(n=5120, k=5120, codec="int4 g128 f16", aligned=True)
    schedule = Schedule(128, stages=4, warpgroups=2, row_tiles=1, scales_on="weights", column_tiles=2)
    pairs = with_multicast(spec, schedule, 2048)
    assert pairs == replace(schedule, multicast=2)
    assert tiles_of(spec, pairs, 2048) == 20 * 8 == tiles_of(spec, schedule, 2048) // 2
    assert blocks_for(spec, pairs, 2048, 132) == 66 == tiling(spec, pairs).blocks(2048, 132)
    # They take a little less where tiles are shared.
    assert 0.9 < estimated_us(spec, pairs, 2048) / estimated_us(spec, schedule, 2048) < 1
    assert with_multicast(replace(spec, n=128), schedule, 2048) is None
