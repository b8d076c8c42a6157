"""The PTX of bit operations, gathers, warp exchange, output and early exit: it is what it should be, and assembles."""

from __future__ import annotations

import pytest

import lowlp
from lowlp import language as ll

LAYOUT = lowlp.spatial(32).local(4)


def everything(x, rows, y, n, f):
    """Each of the ops once."""
    (bi,) = ll.block_indices()
    limit = ll.load_scalar(ll.view_global(rows, shape=[n]), offsets=[bi])
    if limit < 1:
        ll.exit()
    first = ll.assume_divisible(limit, 8)
    ll.print("block", bi, "at", first, "with", f)
    index = ll.load_global(ll.view_global(rows, shape=[n]), offsets=[first], layout=LAYOUT)
    tile = ll.gather_global(ll.view_global(x, shape=[n]), index, dim=0, offsets=[0], layout=LAYOUT)
    tile = ll.funnel_shift(tile, index, 3, direction="left") ^ (tile << 5) | (tile >> index) & ~index
    tile = tile + ll.popcount(tile) * ll.count_leading_zeros(tile) + tile // 5 + index % (tile | 1)
    tile = ll.warp_shuffle(tile, "xor", 1)
    votes = ll.ballot(ll.cast(tile, "f16") > 0.0)
    ll.print_tile("votes", votes)
    table = ll.alloc_shared("int32", [128])
    ll.store_shared(tile, table, offsets=[0])
    ll.synchronize()
    tile = ll.lookup(table, tile & 127)
    ll.scatter_global(tile, ll.view_global(y, shape=[n]), index, dim=0, offsets=[0])


def compiled(arch: str) -> lowlp.compiler.CompiledKernel:
    parameters = {name: ll.pointer("int32", align=16) for name in ("x", "rows", "y")} | {"n": ll.i32, "f": ll.f32}
    kernel = ll.make_kernel(everything, name="everything", parameters=parameters, grid=(4,), num_threads=32)
    return lowlp.compile(kernel, arch)


def test_the_machine_has_instructions_for_it() -> None:
    ptx = compiled("sm_90a").ptx
    for instruction in ("shf.l.wrap.b32", "popc.b32", "clz.b32", "shfl.sync.bfly.b32", "vote.sync.ballot.b32", "vprintf"):
        assert instruction in ptx


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_it_assembles_for_every_architecture(arch: str) -> None:
    assert compiled(arch).cubin
