"""What the DSL refuses of mbarriers and bulk copies, with the line that is to blame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from refused_kernels import refused

from lowlp import language as ll

CASES: list[tuple[Callable[[Any, Any, Any], Any], str]] = [
    (lambda v, s, b: ll.alloc_mbarriers(0, arrivals=1), "count: must be an int from 1 to 1024, found int 0"),
    (lambda v, s, b: ll.alloc_mbarriers(1, arrivals=2**20), "arrivals: must be an int from 1 to 1048575, found"),
    (lambda v, s, b: ll.mbarrier_arrive(s, 0), "barriers: must be made by ll.alloc_mbarriers, found a shared tile"),
    (lambda v, s, b: ll.mbarrier_arrive(b, 2), "index: must be 0 to 1, found 2"),
    (lambda v, s, b: ll.mbarrier_expect_bytes(b, 0, bytes=0), "bytes: must be an int from 1 to 1048575, found int 0"),
    (lambda v, s, b: ll.mbarrier_wait(b, 0, parity="even"), "parity: "),
    (
        lambda v, s, b: ll.copy_bulk(s, s, view_offsets=[0], offsets=[0], shape=[8], barriers=b, index=0),
        "view: must be a view made by ll.view_global, found a shared tile",
    ),
    (
        lambda v, s, b: ll.copy_bulk(v, v, view_offsets=[0, 0], offsets=[0], shape=[8], barriers=b, index=0),
        "destination: must be a tile made by ll.alloc_shared, found a view",
    ),
    (
        lambda v, s, b: ll.copy_tensor(
            v, ll.alloc_shared("bf16", [8]), view_offsets=[0, 0], offsets=[0], shape=[8], barriers=b, index=0
        ),
        "view: element types must match: it holds f16, shared memory bf16",
    ),
    (
        lambda v, s, b: ll.copy_bulk_to_global(s, v, offsets=[0, 0], view_offsets=[0], shape=[4, 64]),
        "view_offsets: expected one for each of the 2 dimensions, found 1",
    ),
    (
        lambda v, s, b: ll.copy_bulk_to_global(s, v, offsets=[0, 0], view_offsets=[0, 0], shape=[8, 64]),
        "shape: [8, 64] is larger than the shared tile, [4, 64]",
    ),
    (lambda v, s, b: ll.copy_bulk_wait(8), "n: must be an int from 0 to 7, found int 8"),
]


@pytest.mark.parametrize(("make", "text"), CASES)
def test_wrong_arguments_are_refused(make: Callable[[Any, Any, Any], Any], text: str) -> None:
    def body(x: Any, b: Any, m: Any, f: Any) -> None:
        view = ll.view_global(x, shape=[m, 64])
        tile = ll.alloc_shared("f16", [4, 64])
        barriers = ll.alloc_mbarriers(2, arrivals=1)
        make(view, tile, barriers)  # here

    with pytest.raises(ll.KernelError) as caught:
        ll.make_kernel(
            body,
            name="kernel",
            parameters={"x": ll.pointer("f16"), "b": ll.pointer("uint8"), "m": ll.i32, "f": ll.f32},
            grid=(1, 1),
            num_threads=32,
        ).module()
    assert text in caught.value.message
    assert caught.value.filename == __file__


def test_mbarriers_stand_in_no_loop() -> None:
    def body(x: Any, b: Any, m: Any, f: Any) -> None:
        for _ in ll.range(m):
            ll.alloc_mbarriers(2, arrivals=1)  # here

    refused(body, ll.VerificationError, "must stand in the body of the kernel itself, but is in a scf.for")


def test_rows_must_be_whole_units() -> None:
    def body(x: Any, b: Any, m: Any, f: Any) -> None:
        view = ll.view_global(x, shape=[m, 64])
        tile = ll.alloc_shared("f16", [4, 64])
        barriers = ll.alloc_mbarriers(2, arrivals=1)
        ll.copy_bulk(view, tile, view_offsets=[0, 0], offsets=[0, 0], shape=[4, 4], barriers=barriers, index=0)  # here

    refused(body, ll.VerificationError, "a row of the part must take a multiple of 16 bytes, but takes 64 bits")
