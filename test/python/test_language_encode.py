"""`ll.encode`: bit planes of codes, on the CPU target, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

import lowlp
from lowlp import language as ll
from lowlp.numeric.bit_planes import planes_of
from lowlp_runtime.errors import LowlpError

WORDS = lowlp.local(1, 2, 1).spatial(2, 16, 1).local(1, 1, 32)  # [2, 32, 32], two words a thread


def planes_kernel(count: int) -> ll.Kernel:
    def body(codes: ll.Pointer, planes: ll.Pointer) -> None:
        source = ll.view_global(codes, shape=[2, 32, 32])
        result = ll.view_global(planes, shape=[2, count, 32])
        tile = ll.load_global(source, offsets=[0, 0, 0], layout=WORDS)
        ll.store_global(ll.encode(tile, planes=count), result, offsets=[0, 0, 0])

    parameters = {"codes": ll.pointer("uint8"), "planes": ll.pointer("uint32")}
    return ll.make_kernel(body, name="planes", parameters=parameters, grid=lambda: (1,), num_threads=32)


@pytest.mark.parametrize("count", [1, 3, 6, 8])
def test_planes_hold_the_bits_of_codes(count: int) -> None:
    codes = np.random.default_rng(count).integers(0, 256, (2, 1024), np.uint8)
    planes = np.empty((2, count, 32), np.uint32)
    lowlp.compile_cpu(planes_kernel(count))(codes.reshape(-1), planes.reshape(-1))
    assert np.array_equal(planes, planes_of(codes, count))


@pytest.mark.parametrize(
    ("dtype", "layout", "planes", "message"),
    [
        ("uint16", WORDS, 4, "codes: must be a tile of int8 or uint8, found a tile of uint16"),
        ("uint8", lowlp.spatial(32, 1).local(1, 64), 4, r"of which the last is 32, found \[32, 64\]"),
        ("uint8", lowlp.spatial(8, 4).local(4, 8), 4, "a thread must hold the 32 codes of a word side by side"),
        ("uint8", WORDS, 9, "planes: must be from 1 to 8, found 9"),
        ("uint8", WORDS, "4", "planes: must be an int"),
    ],
)
def test_mistakes_are_named(dtype: str, layout: lowlp.Layout, planes: object, message: str) -> None:
    def body(codes: ll.Pointer) -> None:
        view = ll.view_global(codes, shape=list(layout.shape))
        tile = ll.load_global(view, offsets=[0] * layout.rank, layout=layout)
        ll.encode(tile, planes=planes)  # type: ignore[arg-type]

    kernel = ll.make_kernel(
        body, name="wrong", parameters={"codes": ll.pointer(dtype)}, grid=lambda: (1,), num_threads=32
    )
    with pytest.raises(LowlpError, match=message):
        kernel.module()
