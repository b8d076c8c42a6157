"""Threads of the CPU target have stacks on which the frames of their compiled code have room."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import compile_cpu
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule

BF16 = ml_dtypes.bfloat16


def test_a_thread_may_hold_more_than_a_stack_of_the_usual_size() -> None:
    def body(a: ll.Pointer, b: ll.Pointer, y: ll.Pointer) -> None:
        total = ll.full(0.0, "f32", layout=lowlp.column_local(2, 32).spatial(8, 4).local(1, 2))
        for _ in ll.range(2):
            left = ll.load_global(ll.view_global(a, shape=[16, 32]), offsets=[0, 0], shape=[16, 32])
            right = ll.load_global(ll.view_global(b, shape=[32, 256]), offsets=[0, 0], shape=[32, 256])
            total = ll.dot(left, right, total)
        ll.store_global(total, ll.view_global(y, shape=[16, 256]), offsets=[0, 0])

    parameters = {"a": ll.pointer("bf16"), "b": ll.pointer("bf16"), "y": ll.pointer("f32")}
    product = ll.make_kernel(body, name="product", parameters=parameters, grid=(1,), num_threads=32)
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, shape).astype(BF16) for shape in ((16, 32), (32, 256)))
    y = np.zeros((16, 256), np.float32)
    product(a, b, y)
    np.testing.assert_array_equal(y, 2 * a.astype(np.float32) @ b.astype(np.float32))


def test_linear_with_many_columns_of_y_in_one_warp() -> None:
    qw = lowlp.quantize(np.random.default_rng(0).standard_normal((16, 64), np.float32), "int4", group_size=64)
    x = np.random.default_rng(1).standard_normal((256, 64), np.float32).astype(BF16)
    results = []
    for schedule in (Schedule(columns=256, warps=1), Schedule(columns=8, warps=1)):
        y = np.zeros((256, 16), np.float32)
        kernel = compile_cpu(linear_kernel(spec_for(qw, "bf16", "f32"), schedule))
        kernel(x=x, **host_operands(qw, "bf16"), y=y, m=256, x_stride=64)
        results.append(y)
    np.testing.assert_array_equal(*results)
    assert results[0].any()
