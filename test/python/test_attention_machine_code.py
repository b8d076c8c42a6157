"""What the assembler makes of attention: nothing spilled, and an inner loop without barriers and shared memory."""

from __future__ import annotations

import re

import pytest

import lowlp
from lowlp.kernels.attention.decode import attention_kernel
from lowlp.kernels.attention.spec import AttentionSpec, default_schedule


@pytest.mark.parametrize("kind", ["f16", "int4"])
def test_a_tile_goes_from_wide_loads_to_products(kind: str) -> None:
    spec = AttentionSpec("f16", kind, 128, 8, 64, 4)
    schedule = default_schedule(spec)
    kernel = lowlp.compile(attention_kernel(spec, schedule), "sm_90a")
    assert kernel.spilled_bytes == 0
    # The basic blocks of the loop are those with products; all else, between them, masks the end of a sequence.
    blocks = [block for block in re.split(r"\n\$L__BB", kernel.ptx) if "mma.sync" in block and "ex2.approx" in block]
    assert blocks
    assert not [block for block in blocks if re.search(r"bar\.sync|\.shared|\.local", block)]
    loads_of_tile = 2 * schedule.tokens * 128 * spec.kind.bits // 8 // 512
    assert kernel.ptx.count("ld.global.v4.b32") >= loads_of_tile
