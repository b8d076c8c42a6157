"""Slabs of weights on the CPU target: the numbers of `dequantize()` rounded once; and when products take them."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from linear_cover import CASES

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import operands_as_meant
from lowlp.kernels.linear.operands import host_operands, slabs_of, spec_for
from lowlp.kernels.linear.slab_estimates import parts_of_slabs, product_us, slabs_take_less
from lowlp.kernels.linear.slabs import blocks_for_slab, slab_kernel, slab_schedule, slab_spec
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.schedules.device import H200

_TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def check(qw: lowlp.QuantizedTensor, activation: str, first: int = 0, rows: int = 0, blocks: int = 2) -> bool:
    """Whether there is a kernel; its slab has every bit that is wanted, and nothing beyond is written."""
    spec = slab_spec(spec_for(qw, activation, activation))
    schedule = slab_schedule(spec)
    if schedule is None:
        return False
    rows = rows or qw.shape[0] - first
    names = {operand.name for operand in operands_as_meant(spec, schedule)}
    operands = host_operands(qw, activation, schedule=schedule)
    y = np.full((rows + 1, qw.shape[1]), np.nan, _TYPES[activation])
    given = {name: operands[name] for name in names}
    compile_cpu(slab_kernel(spec, schedule))(**given, slab=y[:rows], first=first, rows=rows, blocks=blocks)
    with np.errstate(over="ignore"):
        wanted = qw.dequantize()[first : first + rows].astype(_TYPES[activation])
    np.testing.assert_array_equal(y[:rows].astype(np.float32), wanted.astype(np.float32))
    assert np.isnan(y[rows].astype(np.float32)).all()
    return True


def test_slabs_of_the_covering_cases() -> None:
    """A sample of all codecs, groups and forms of scales."""
    made = 0
    for case in random.Random("slabs").sample(CASES, 40):
        made += check(case.weights(), case.config.activation)
    assert made >= 25


@pytest.mark.parametrize(
    ("codec", "n", "k"),
    [
        ("vec8:2x8:f16 channel f16", 80, 512),
        ("vec4:1x8:f16:256x256 channel f16", 512, 1024),
        ("vec8:2x12:int8 channel f16", 80, 512),
        ("vec8:2x12:f16 channel f16", 300, 264),  # units of 128 rows
        ("vec8:1x16:f16 g64 f16", 80, 512),
        ("vec8:2x8:f16:64x* channel f16", 150, 768),  # books of rows alone
    ],
)
def test_slabs_of_codebooks(codec: str, n: int, k: int) -> None:
    """Books of blocks, of more entries than shared memory has, and with scales of their own."""
    rng, found = np.random.default_rng(1), Codec.parse(codec)
    assert check(_random_books(rng, found, n, k), "f16", blocks=5)


def _random_books(rng: np.random.Generator, codec: Codec, n: int, k: int) -> lowlp.QuantizedTensor:
    vectors = codec.vectors
    assert vectors is not None
    sizes = [size or extent for size, extent in zip(vectors.block, (n, k), strict=False)]
    blocks = (-(-extent // size) for extent, size in zip((n, k), sizes, strict=False))
    shape = (*blocks, vectors.books, 1 << vectors.bits, vectors.vector)
    codes = rng.integers(0, 1 << vectors.bits, (n, k // vectors.vector, vectors.books)).astype(vectors.code_dtype)
    groups = k // codec.group if isinstance(codec.group, int) else 1
    scales = rng.uniform(0.5, 1, (n, groups)).astype(np.float16)
    options: dict[str, Any] = {"group_size": None if groups == 1 else k // groups}
    if vectors.has_book_scales:
        books = rng.integers(-128, 128, shape).astype(np.int8)
        options["book_scales"] = rng.uniform(0.001, 0.002, shape[:-2]).astype(np.float32)
    else:
        books = rng.normal(0, 0.5, shape).astype(np.float16)
    if vectors.block:
        options["book_per"] = vectors.book_per
    return lowlp.QuantizedTensor(codes, codebooks=books, scales=scales, **options)


def test_a_slab_that_begins_and_ends_within_the_weights() -> None:
    w = np.random.default_rng(0).normal(0, 0.02, (300, 512))
    assert check(lowlp.quantize(w, "int4", group_size=64), "f16", first=64, rows=130, blocks=5)


def test_slabs_have_all_rows_once() -> None:
    for n, k in ((57344, 8192), (100, 64), (28672, 16384), (300000, 64)):
        parts = parts_of_slabs(n, k)
        assert [part.start for part in parts] == [0, *(part.stop for part in parts[:-1])] and parts[-1].stop == n
        assert all(
            part.start % 256 == 0 and 2 * (part.stop - part.start) * k <= (256 << 20) + 512 * k for part in parts
        )


@pytest.mark.parametrize(
    ("codec", "m", "wanted"),
    [
        ("int4 g128 f16", 256, False),
        ("int4 g128 f16", 1024, False),
        ("uint4 g32 f16 zeros:f16", 6144, True),
        ("vec8:1x16:f16 channel f16", 2048, True),
        ("vec8:2x8:f16 channel f16", 512, False),
        ("vec8:2x12:f16 channel f16", 1024, True),
        ("vec8:2x12:int8 channel f16", 1024, False),
        ("vec8:1x8:f16 channel f16", 1024, False),
        ("e8p+e8p channel f16", 4096, True),
    ],
)
def test_when_slabs_take_less(codec: str, m: int, wanted: bool) -> None:
    spec = LinearSpec(8192, 8192, Codec.parse(codec), "f16", "f16", aligned=True)
    assert slabs_take_less(spec, schedule_for(spec, m), m) == wanted


@pytest.mark.parametrize(
    ("codec", "n", "blocks"),
    [
        ("vec8:2x12:f16 channel f16", 8192, 132),  # 128 KiB of books, which each block takes into shared memory
        ("vec8:2x8:f16 channel f16", 8192, 528),
        ("vec8:1x16:f16 channel f16", 8192, 528),
        ("vec4:1x8:f16:256x256 channel f16", 8192, 2112),
        ("int4 g128 f16", 8192, 2112),
        ("vec8:2x8:f16 channel f16", 256, 32),  # shares
    ],
)
def test_blocks_of_a_slab(codec: str, n: int, blocks: int) -> None:
    spec = slab_spec(LinearSpec(n, 8192, Codec.parse(codec), "f16", "f16", aligned=True))
    schedule = slab_schedule(spec)
    assert schedule is not None and blocks_for_slab(spec, schedule, n, H200) == blocks


@pytest.mark.parametrize(("n", "m", "wanted"), [(8192, 1024, False), (8192, 4096, True), (57344, 4096, False)])
def test_books_by_block_take_slabs_where_they_take_less(n: int, m: int, wanted: bool) -> None:
    """An H200, 4096 rows: 813 us and 755 to 785 by slabs of 8192 x 8192, 5858 and 6004 to 6215 of 57344 x 8192."""
    spec = LinearSpec(n, 8192, Codec.parse("vec4:1x8:f16:256x256 channel f16"), "f16", "f16", aligned=True)
    assert slabs_take_less(spec, schedule_for(spec, m), m) == wanted


def test_short_rows_do_not_hide_what_results_take() -> None:
    """An H200: by slabs NF4 took 31 us, and a library's product of halves alone 18."""
    spec = LinearSpec(7168, 256, "lut4:f32:tensor g16 bf16", "bf16", "bf16", aligned=True)
    assert not slabs_take_less(spec, schedule_for(spec, 1669), 1669)
    assert product_us(spec, 1669, H200) == pytest.approx(18, abs=1)


def test_which_weights_f16_holds() -> None:
    """Scales of f32 may lead beyond it, and to what is tiny there; bf16 holds them."""
    w = np.random.default_rng(0).normal(0, 0.02, (64, 256))
    for factor, wanted in ((1.0, True), (1e7, False), (1e-5, False)):
        qw = lowlp.quantize(w * factor, "int8", group_size=128, scale_dtype="f32")
        assert (slabs_of(spec_for(qw, "f16", "f16"), qw) is not None) == wanted
        assert slabs_of(spec_for(qw, "bf16", "bf16"), qw) is not None
