"""Accesses and copies of 16 bytes at once, for every element type, where alignment is known."""

from __future__ import annotations

import pytest

from lowlp.compiler.compilation import open_program, run_pipeline
from lowlp.numeric import dtypes

# Elements of which some fill 16 bytes.
TYPES = [dtype for dtype in dtypes.all_dtypes() if 128 % dtype.bits == 0 and not dtype.name.startswith("bipolar")]


def thread_text(element: str, run: int, align: int) -> str:
    """A row of 4 `run` elements for each thread, through registers and by a copy, into shared memory and out of it."""
    columns = 4 * run
    dims = f"32x{columns}x{element}"
    tile = f"!lowlp.tile<{dims}, local(1, 4).spatial(32, 1).local(1, {run})>"
    text = f"""
    lowlp.kernel @move(%x: !lowlp.ptr<{element}> {{lowlp.align = {align} : i64}},
                       %y: !lowlp.ptr<{element}> {{lowlp.align = {align} : i64}})
        attributes {{grid = affine_map<() -> (1)>, num_threads = 32 : i64}} {{
      %c0 = arith.constant 0 : index
      %s = lowlp.alloc_shared : !lowlp.shared<{dims}>
      %u = lowlp.alloc_shared : !lowlp.shared<{dims}>
      %from = lowlp.view_global %x shape [32, {columns}] : !lowlp.ptr<{element}> -> !lowlp.global<{dims}>
      %to = lowlp.view_global %y shape [32, {columns}] : !lowlp.ptr<{element}> -> !lowlp.global<{dims}>
      %a = lowlp.load_global %from[%c0, %c0] : !lowlp.global<{dims}> -> {tile}
      lowlp.copy_async %from[%c0, %c0] to %u[%c0, %c0] shape [32, {columns}]
        : !lowlp.global<{dims}> to !lowlp.shared<{dims}>
      lowlp.copy_async_commit
      lowlp.copy_async_wait 0
      lowlp.store_shared %a, %s[%c0, %c0] : {tile}, !lowlp.shared<{dims}>
      %b = lowlp.load_shared %s[%c0, %c0] : !lowlp.shared<{dims}> -> {tile}
      lowlp.store_global %b, %to[%c0, %c0] : {tile}, !lowlp.global<{dims}>
      lowlp.return
    }}"""
    module = open_program(text).operation
    run_pipeline(module, "lowlp-to-thread")
    return str(module)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_every_type_moves_16_bytes_at_once(dtype: dtypes.DType) -> None:
    lines = thread_text(dtype.mlir, 128 // dtype.bits, 16).splitlines()
    for op in ("simt.load", "simt.store"):
        for space in ("<global>", "<shared>"):
            found = [line for line in lines if op in line and space in line and "copy" not in line]
            # A copy stores zeros where there is nothing to copy.
            assert len(found) in (4, 5) and all("align 16" in line for line in found), (op, space, found)
    assert any("simt.copy_async" in line and "bytes 16" in line for line in lines)


@pytest.mark.parametrize("align", [4, 8, 16])
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
def test_copies_are_as_wide_as_the_pointer_is_aligned(dtype: dtypes.DType, align: int) -> None:
    lines = thread_text(dtype.mlir, 128 // dtype.bits, align).splitlines()
    assert [line for line in lines if f"bytes {align} " in line and "simt.copy_async" in line]
