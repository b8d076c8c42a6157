"""What orders blocks, as the GPU gets it (docs/adr/0016-an-addition-that-releases-is-written-as-ptx.md)."""

import re

import lowlp
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec


def test_additions_that_release_keep_their_order_in_ptx() -> None:
    spec = LinearSpec(n=1024, k=1024, codec="int4 g128 f16", aligned=True)
    schedule = Schedule(columns=8, warps=2, row_tiles=2, stages=3)
    ptx = lowlp.compile(linear_kernel(spec, schedule), "sm_90a", assemble=False).ptx
    assert "red.release.gpu.global.add.u32" in ptx
    assert "ld.acquire.gpu.global" in ptx
    assert "st.release.gpu.global" in ptx
    assert not re.search(r"\batom\.", ptx)
