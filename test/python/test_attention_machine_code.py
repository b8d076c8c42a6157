"""What the assembler makes of attention: nothing spilled, and an inner loop without barriers, and without shared memory
but for lookups."""

from __future__ import annotations

import re
from typing import Any

import pytest

import lowlp
from lowlp.kernels.attention.append import append_kernel
from lowlp.kernels.attention.append_spec import AppendSpec
from lowlp.kernels.attention.decode import attention_kernel
from lowlp.kernels.attention.spec import AttentionSpec, default_schedule


def blocks_of_loop(ptx: str) -> list[str]:
    """The basic blocks of the loop with products; all else, between them, masks the end of a sequence, or scales
    accumulators down."""
    return [block for block in re.split(r"\n\$L__BB", ptx) if "mma.sync" in block]


@pytest.mark.parametrize("kind", ["f16", "int8", "int4"])
def test_a_tile_goes_from_wide_loads_to_products(kind: str) -> None:
    spec = AttentionSpec("f16", kind, 128, 8, 64, 4)
    schedule = default_schedule(spec)
    kernel = lowlp.compile(attention_kernel(spec, schedule), "sm_90a")
    assert kernel.spilled_bytes == 0
    blocks = blocks_of_loop(kernel.ptx)
    assert blocks
    assert not [block for block in blocks if re.search(r"bar\.sync|\.shared|\.local", block)]
    loads_of_tile = 2 * schedule.tokens * 128 * spec.kind.bits // 8 // 512
    assert kernel.ptx.count("ld.global.v4.b32") >= loads_of_tile


@pytest.mark.parametrize(("kind", "group"), [("cq-4", 1), ("cq-2", 4)])
def test_a_lookup_is_one_prmt_and_one_load(kind: str, group: int) -> None:
    spec = AttentionSpec("f16", kind, 128, 32 // group, 64, group)
    schedule = default_schedule(spec)
    kernel = lowlp.compile(attention_kernel(spec, schedule), "sm_90a")
    assert kernel.spilled_bytes == 0
    blocks = blocks_of_loop(kernel.ptx)
    assert blocks
    assert not [block for block in blocks if re.search(r"bar\.sync|st\.shared|\.local", block)]
    lookups = 2 * schedule.tokens * 128 // spec.kind.vector // 32
    load = "ld.shared.b32" if spec.kind.vector == 2 else "ld.shared.v2.b32"
    assert sum(block.count(load) for block in blocks) == lookups
    # Each has the code as byte 1 of its address.
    addresses = re.findall(r"prmt\.b32 .*, 30(?:468|484|500|516);", kernel.ptx)
    assert len(addresses) == lookups
    passes = [float(found) for found in re.findall(r"([\d.]+) passes a phase", kernel.report())]
    assert passes == ([2.0, 1.0] if kind == "cq-4" else [1.0, 1.0])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "dim", "group", "options"),
    [
        ("cq-4", 128, 4, {"ordered": True}),
        ("cq-2", 128, 8, {}),
        ("cq-2", 64, 8, {}),
        ("cq-4", 64, 4, {}),
        ("int4", 64, 24, {}),
        ("int8", 128, 16, {"lse": True}),
        ("f8e4m3", 128, 4, {"queries": 4}),
        ("f16", 64, 32, {}),
    ],
)
def test_queries_as_rows_fit_the_registers(kind: str, dim: int, group: int, options: dict[str, Any]) -> None:
    spec = AttentionSpec("f16", kind, dim, 8, 64, group, **options)
    assert spec.queries_are_rows
    assert lowlp.compile(attention_kernel(spec, default_schedule(spec)), "sm_90a").spilled_bytes == 0


@pytest.mark.parametrize("source", ["f16", "bf16"])
@pytest.mark.parametrize("kind", ["cq-4", "cq-2"])
def test_books_of_appended_tokens_are_read_once(kind: str, source: str) -> None:
    """With tokens of the type of the entries by products of these, two operands by 32 tokens; else by distances."""
    kernel = lowlp.compile(append_kernel(AppendSpec(source, kind, 128, 8, 64, few_tokens=False)), "sm_90a")
    assert kernel.spilled_bytes == 0
    loops = re.findall(r"\n(\$L__BB\d+_\d+):(.*?)bra[.\w]* *\t?\1;", kernel.ptx, re.S)
    assert loops and not [loop for _, loop in loops if "ld.global.v4.b32" in loop]
    products = [loop.count("mma.sync") for _, loop in loops]
    assert max(products) == (8 if source == "f16" else 0)
    if source == "f16":
        # Codes of neighbouring groups lie side by side, in whatever order a token has them.
        stores = re.findall(r"st\.global\S+", kernel.ptx)
        assert stores and set(stores) == {"st.global.b32"}
