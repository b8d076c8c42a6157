"""Codes of vectors loaded from packed weights into tiles, on the CPU target."""

from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp import compile_cpu
from lowlp import language as ll
from lowlp.language.source import KernelTypeError, KernelValueError
from lowlp.numeric.codec import Codec
from lowlp.weights.codebooks import columns_of_codes


def loading(codec: str, n: int, k: int, layout: str, unit_k: int, warps: int, book: int, step: int = 0) -> ll.Kernel:
    """Codes [n, k / v] of a book, as int32, a block for each tile."""
    held = lowlp.layout(layout)
    rows, codes = held.shape
    vectors = Codec.parse(codec).vectors
    assert vectors is not None

    def body(words, found):  # type: ignore[no-untyped-def]
        row, at = ll.block_indices()
        view = ll.view_packed(words, shape=[n, k], codec=codec, family="f16", unit_k=unit_k)
        out = ll.view_global(found, shape=[n, k // vectors.vector])
        k_of_unit = at * (codes * vectors.vector) // unit_k * unit_k if step == 0 else at * unit_k
        tile = ll.load_packed(view, offsets=[row * rows, k_of_unit], layout=held, book=book, first_step=step)
        ll.store_global(ll.cast(tile, "int32"), out, offsets=[row * rows, k_of_unit // vectors.vector + 4 * step])

    grid = (-(-n // rows), -(-k // max(unit_k, codes * vectors.vector)))
    parameters = {"words": ll.pointer("uint32", align=16), "found": ll.pointer("int32")}
    return ll.make_kernel(body, name="loading", parameters=parameters, grid=lambda: grid, num_threads=32 * warps)


@pytest.mark.parametrize(
    ("codec", "unit_k", "layout", "warps", "step"),
    [
        ("vec8:2x8:f16", 128, "local(1, 4).local(2, 1).spatial(8, 4)", 1, 0),
        ("vec8:1x8:f16", 64, "spatial(4, 1).local(1, 2).local(2, 1).spatial(8, 4)", 4, 0),
        ("vec8:1x16:f16", 128, "spatial(2, 1).local(1, 4).local(2, 1).spatial(8, 4)", 2, 0),
        ("vec4:3x10:f16", 64, "local(4, 4).local(2, 1).spatial(8, 4)", 1, 0),
        ("vec2:1x12:f16", 128, "local(1, 4).local(2, 1).spatial(8, 4)", 1, 12),
        ("vec16:2x5:f16", 256, "local(4, 4).local(2, 1).spatial(8, 4)", 1, 0),
        ("e8p+e81b", 256, "local(1, 8).local(2, 1).spatial(8, 4)", 1, 0),
    ],
)
def test_tiles_have_the_codes_of_a_book(codec: str, unit_k: int, layout: str, warps: int, step: int) -> None:
    """Matrices with tails along N and K; what is beyond K is not stored."""
    vectors = Codec.parse(codec).vectors
    assert vectors is not None
    n, k, v = 84, 400 if vectors.vector < 16 else 528, vectors.vector
    random = np.random.default_rng(unit_k)
    codes = np.stack([random.integers(0, 1 << bits, (n, k // v)) for bits in vectors.bits_of_books], axis=-1)
    columns = columns_of_codes(codes.astype(vectors.code_dtype), vectors)
    placement = lowlp.packing.find_placement(vectors, "f16").with_unit_k(unit_k)
    words = placement.pack(columns, 0, 1)
    parts = columns.reshape(n, k // v, -1)
    for book in range(parts.shape[-1]):
        found = np.full((n, k // v), -1, np.int32)
        compile_cpu(loading(codec, n, k, layout, unit_k, warps, book, step))(words, found)
        wanted = parts[..., book].astype(np.int32)
        if step:
            # Steps 12 to 15 of each unit only.
            within = np.arange(k // v) % (unit_k // v) // 4
            wanted = np.where((within >= step) & (within < step + 4), wanted, -1)
        assert np.array_equal(found, wanted)


def test_refusals() -> None:
    def traced(**more: Any) -> None:
        def body(words):  # type: ignore[no-untyped-def]
            view = ll.view_packed(
                words, shape=[16, 128], codec="vec8:2x8:f16", family="f16", unit_k=more.pop("unit_k", 128)
            )
            ll.load_packed(view, offsets=[0, 0], **more)

        parameters = {"words": ll.pointer("uint32")}
        ll.make_kernel(body, name="refused", parameters=parameters, grid=lambda: (1,), num_threads=32).mlir()

    with pytest.raises(KernelTypeError, match="book: must be an int or None, found"):
        traced(layout="local(1, 4).local(2, 1).spatial(8, 4)", book=1.5)
    with pytest.raises(KernelValueError, match="layout: must be given for codes of vectors, vec8-2x8"):
        traced(shape=[16, 16])
    with pytest.raises(KernelValueError, match="unit_k: must be one of 128, 64, 32, found 16"):
        traced(unit_k=16)


def test_drawing_of_places(capsys: pytest.CaptureFixture[str]) -> None:
    from lowlp.cli import main

    assert main(["layout", "vec8-2x8.f16.k128"]) == 0
    shown = capsys.readouterr().out
    assert "16 x 128 weights in vectors of 8, 2 codes of 8 bits each" in shown
    assert "slot 3: w[8, 32..39]   1.16-23 | 1.24-31" in shown
