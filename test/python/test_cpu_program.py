"""`_compiler.CpuProgram`: kernels of the thread level, run on the CPU target from Python."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from lowlp._mlir import ir
from lowlp._mlir._mlir_libs import _compiler
from lowlp._mlir.passmanager import PassManager

from lowlp.compiler import compilation

ADD = """
module attributes {gpu.container_module} { gpu.module @kernels {
  gpu.func @add(%p: !simt.ptr<global>, %n: i32, %s: f32) kernel attributes {known_block_size = array<i32: 32, 1, 1>} {
    %thread = gpu.thread_id x
    %index = arith.index_cast %thread : index to i64
    %four = arith.constant 4 : i64
    %offset = arith.muli %index, %four : i64
    %v = simt.load %p[%offset] align 4 : !simt.ptr<global> -> f32 loc("lowlp.load_global"("add.py":3:5))
    %f = arith.sitofp %n : i32 to f32
    %w = arith.mulf %v, %s : f32
    %x = arith.addf %w, %f : f32
    simt.store %x, %p[%offset] align 4 : f32, !simt.ptr<global>
    gpu.return
  }
} }
"""


def compile_add() -> Any:
    with ir.Context():
        module = ir.Module.parse(ADD)
        PassManager.parse("builtin.module(lowlp-to-cpu)").run(module.operation)
        return _compiler.CpuProgram(module.operation, 2)


def run_add(program: Any, values: np.ndarray, readable_bytes: int | None = None) -> dict[str, int]:
    address = values.ctypes.data
    allocation = (address, values.nbytes if readable_bytes is None else readable_bytes, "values", True, True)
    arguments = [("ptr", address), ("i32", 5), ("f32", 0.5)]
    counters: dict[str, int] = program.run("add", (1, 1, 1), (32, 1, 1), 0, arguments, [allocation], 7, 1)
    return counters


def test_runs_and_counts() -> None:
    values = np.arange(32, dtype=np.float32)
    counters = run_add(compile_add(), values)
    np.testing.assert_array_equal(values, np.arange(32, dtype=np.float32) * np.float32(0.5) + 5)
    assert (counters["loads"], counters["stores"], counters["blocks"]) == (32, 32, 1)


def test_violation_names_op_and_place() -> None:
    with pytest.raises(RuntimeError, match=r"^lowlp\.load_global at add\.py:3:5.*'values' \(64 bytes\)"):
        run_add(compile_add(), np.zeros(32, np.float32), readable_bytes=64)


def test_runs_from_several_threads() -> None:
    program = compile_add()
    arrays = [np.zeros(32, np.float32) for _ in range(4)]
    threads = [threading.Thread(target=run_add, args=(program, array)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((array == 5).all() for array in arrays)


def test_unknown_kernel_and_kind() -> None:
    program = compile_add()
    with pytest.raises(RuntimeError, match="there is no kernel 'sub'"):
        program.run("sub", (1, 1, 1), (32, 1, 1), 0, [], [])
    with pytest.raises(ValueError, match="must be 'ptr', 'i32', 'i64' or 'f32', but is 'u8'"):
        program.run("add", (1, 1, 1), (32, 1, 1), 0, [("u8", 1)], [])


def test_module_that_is_not_lowered() -> None:
    with ir.Context():
        module = ir.Module.parse("module {}")
        with pytest.raises(RuntimeError, match="it did not go through lowlp-to-cpu"):
            _compiler.CpuProgram(module.operation)


@pytest.mark.parametrize("opt_level", range(4))
def test_bf16_is_moved_as_bits(opt_level: int) -> None:
    """A load that may lie outside is a value that two basic blocks give; a signalling NaN must come through."""
    tile = "!lowlp.tile<64xbf16, local(2).spatial(32)>"
    kernel = compilation.compile_cpu(
        f"""
        lowlp.kernel @f(%p: !lowlp.ptr<bf16>) attributes {{grid = affine_map<() -> (1)>, num_threads = 32 : i64}} {{
          %from = arith.constant 0 : index
          %to = arith.constant 64 : index
          %v = lowlp.view_global %p shape [128] : !lowlp.ptr<bf16> -> !lowlp.global<128xbf16>
          %t = lowlp.load_global %v[%from] : !lowlp.global<128xbf16> -> {tile}
          lowlp.store_global %t, %v[%to] : {tile}, !lowlp.global<128xbf16>
          lowlp.return
        }}""",
        opt_level=opt_level,
    )
    bits = np.repeat(np.array([0x7F81, 0], np.uint16), 64)
    kernel(bits.view(ml_dtypes.bfloat16))
    assert (bits == 0x7F81).all()
