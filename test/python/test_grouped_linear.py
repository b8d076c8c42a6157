"""`lowlp.grouped_linear` on the CPU target, with all checks, against float64."""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import lowlp
from lowlp.errors import LowlpError
from lowlp.kernels.linear.experts import most_tiles_of_columns
from lowlp.kernels.linear.experts_choosing import MOST_MEAN, schedule_for_experts
from lowlp.kernels.linear.experts_estimates import tiles_of_columns
from lowlp.kernels.linear.experts_measured import MEASURED, measured_schedule
from lowlp.kernels.linear.fitting import stage_bytes
from lowlp.kernels.linear.operands import for_weights, spec_for
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.ops.linear_kernels import cpu_kernel

RANDOM = np.random.default_rng(20261123)


def weights(shape: tuple[int, int, int], dtype: Any, group_size: int, **more: Any) -> lowlp.QuantizedTensor:
    w = (RANDOM.normal(size=shape) / np.sqrt(shape[-1])).astype(np.float32)
    named: dict[str, Any] = {"lut": lowlp.nf(4)} if dtype == "nf4" else {"dtype": dtype}
    return lowlp.quantize(w, group_size=group_size, **named, **more)


def offsets_of(rows: list[int]) -> NDArray[np.int32]:
    return np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)


def expected(x: Any, qw: lowlp.QuantizedTensor, offsets: Any, bias: Any, residual: Any, epilogue: str) -> Any:
    w, n = qw.dequantize().astype(np.float64), qw.shape[1]
    parts = []
    for e in range(len(w)):
        y = x[offsets[e] : offsets[e + 1]].astype(np.float64) @ w[e].T
        y = y if bias is None else y + bias[e].astype(np.float64)
        if epilogue == "silu_mul":
            y = y[:, : n // 2] / (1 + np.exp(-y[:, : n // 2])) * y[:, n // 2 :]
        parts.append(np.maximum(y, 0) if epilogue == "relu" else y)
    y = np.concatenate(parts)
    return y if residual is None else y + residual.astype(np.float64)


F16, BF16 = np.float16, ml_dtypes.bfloat16
# Shape, rows of each expert, type, group, and other arguments of `quantize`; then what the product has.
CASES: dict[str, tuple[Any, ...]] = {
    "empty experts": ((6, 48, 128), [0, 9, 0, 0, 4, 0], "int4", 64, {}, {"bias": F16}),
    "one expert": ((1, 40, 96), [5], "uint6", 32, {"zero_point": True}, {"residual": F16}),
    "512 experts": ((512, 32, 64), [0] * 300 + [17] + [0] * 210 + [3], "f4e2m1", 32, {"scale_dtype": "e8m0"}, {}),
    "many rows of one": ((5, 128, 256), [0, 150, 0, 0, 0], "int4", 128, {}, {"bias": np.float32}),
    "rows by warpgroups": ((3, 136, 192), [70, 1, 33], "uint3", 64, {}, {"x": BF16, "residual": BF16}),
    "gate and up": ((2, 128, 128), [3, 8], "nf4", 64, {}, {"epilogue": "silu_mul", "bias": F16, "residual": F16}),
    "gate and up, many rows": ((2, 128, 128), [40, 20], "int8", 128, {}, {"epilogue": "silu_mul", "bias": BF16}),
    "no stages": ((3, 50, 120), [2, 0, 11], "uint5", 24, {}, {"epilogue": "relu", "bias": F16, "out": "f32"}),
    "one scale": ((4, 64, 64), [1, 2, 0, 3], "int2", "tensor", {}, {"x": BF16}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_rows_meet_their_experts(case: tuple[Any, ...]) -> None:
    shape, rows, dtype, group, more, product = case
    x_type, epilogue = product.get("x", F16), product.get("epilogue", "")
    qw = weights(shape, dtype, group, **more, activation="bf16" if x_type is BF16 else "f16")
    offsets = offsets_of(rows)
    m, columns = int(offsets[-1]), shape[1] // (2 if epilogue == "silu_mul" else 1)
    # Rows that lie apart, as in a part of a wider tensor.
    x = RANDOM.normal(size=(m, shape[2] + 8)).astype(x_type)[:, : shape[2]]
    bias = RANDOM.normal(size=shape[:2]).astype(product["bias"]) if "bias" in product else None
    residual = RANDOM.normal(size=(m, columns)).astype(product["residual"]) if "residual" in product else None
    y = lowlp.grouped_linear(
        x, qw, offsets, bias=bias, residual=residual, epilogue=epilogue or None, out_dtype=product.get("out")
    )
    want = expected(x, qw, offsets, bias, residual, epilogue)
    assert y.shape == want.shape and y.dtype == (np.float32 if "out" in product else x_type)
    error = np.linalg.norm(y.astype(np.float64) - want) / np.linalg.norm(want)
    assert error < (1.1e-2 if x_type is BF16 else 2e-3)


def test_a_row_depends_on_no_other_row() -> None:
    qw = weights((4, 64, 128), "int4", 64)
    x = RANDOM.normal(size=(4 * MOST_MEAN, 128)).astype(F16)
    for m in (5, 4 * MOST_MEAN):
        alone = lowlp.grouped_linear(x[:1], qw, offsets_of([0, 0, 1, 0]))
        others = x[:m].copy()
        others[1:] = np.nan
        y = lowlp.grouped_linear(others, qw, offsets_of([0, 0, 1, m - 1]))
        assert (y[0] == alone[0]).all() and np.isnan(y[1:]).all()
        both = lowlp.grouped_linear(x[:m], qw, offsets_of([0, 0, m, 0]))
        assert (both[0] == alone[0]).all()


def test_columns_in_another_order_and_second_scales() -> None:
    codes = RANDOM.integers(0, 16, size=(3, 48, 128)).astype(np.uint8)
    scales = RANDOM.uniform(0.5, 1.5, size=(3, 48, 2)).astype(F16)
    more = {"scale2": RANDOM.uniform(0.01, 0.02, size=(3, 48)).astype(np.float32)}
    qw = lowlp.QuantizedTensor(
        codes, dtype="uint4", scales=scales, group_size=64, g_idx=RANDOM.permutation(128) // 64, **more
    )
    x, offsets = RANDOM.normal(size=(9, 128)).astype(F16), offsets_of([4, 0, 5])
    want = expected(x, qw, offsets, None, None, "")
    assert np.linalg.norm(lowlp.grouped_linear(x, qw, offsets) - want) < 2e-3 * np.linalg.norm(want)


@pytest.mark.parametrize(
    ("activation", "dtype", "group", "rows"),
    [("int8", "int4", 64, [3, 0, 9]), ("uint8", "int8", None, [40, 1, 30]), ("f8e4m3", "f4e2m1", 32, [0, 7, 0])],
)
def test_quantised_rows(activation: str, dtype: str, group: int | None, rows: list[int]) -> None:
    qw = weights((3, 64, 128), dtype, group or 128, activation="e4m3" if activation == "f8e4m3" else "s8")
    offsets = offsets_of(rows)
    x = lowlp.quantize_activations(
        RANDOM.normal(size=(offsets[-1], 128)).astype(F16), activation, symmetric=activation != "uint8"
    )
    want = expected(x.dequantize(), qw, offsets, None, None, "")
    assert np.linalg.norm(lowlp.grouped_linear(x, qw, offsets) - want) < 2e-3 * np.linalg.norm(want)
    if group is None:
        sums = lowlp.grouped_linear(x, qw, offsets, out_dtype="s32")
        parts = [(x.dequantize() / x.scales)[slice(*offsets[e : e + 2])] @ (qw[e].dequantize() / qw[e].scales).T
                 for e in range(3)]  # fmt: skip
        assert (sums == np.rint(np.concatenate(parts))).all()


@pytest.mark.parametrize("least", [-20, -27, -127])
def test_scales_of_e8m0_round_once_by_warpgroups(least: int) -> None:
    # Times 2^-p they are numbers of f16; or, of those that f16 lacks, accumulators are scaled, or weights are 0.
    codes = RANDOM.integers(0, 16, size=(2, 128, 128)).astype(np.uint8)
    scales = RANDOM.integers(107, 130, size=(2, 128, 4)).astype(np.uint8)
    scales[:, ::2, ::2] = 127 + least
    qw = lowlp.QuantizedTensor(codes, dtype="f4e2m1", scales=scales.view(ml_dtypes.float8_e8m0fnu), group_size=32)
    x = np.concatenate([np.eye(128), np.eye(128)]).astype(F16)
    spec = for_weights(spec_for(qw, "f16", "f16"), qw)
    schedule = schedule_for_experts(spec, 256)
    assert (schedule.warpgroups > 0 and schedule.scales_on == "weights") == (least != -27)
    y = lowlp.grouped_linear(x, qw, offsets_of([128, 128]))
    want = np.concatenate([qw.dequantize()[e].astype(np.float64).astype(F16).T for e in range(2)])
    assert np.array_equal(y, want)


def test_rows_of_no_expert_are_left_and_none_are_no_rows() -> None:
    qw = weights((2, 32, 64), "int4", 64)
    x = RANDOM.normal(size=(7, 64)).astype(F16)
    offsets = np.array([2, 3, 5], np.int32)
    y = lowlp.grouped_linear(x, qw, offsets)
    want = expected(x, qw, offsets, None, None, "")
    assert np.linalg.norm(y[2:5] - want) < 2e-3 * np.linalg.norm(want) and not y[:2].any() and not y[5:].any()
    assert lowlp.grouped_linear(x[:0], qw, np.zeros(3, np.int32)).shape == (0, 32)


def test_schedules_follow_the_number_of_rows_alone() -> None:
    spec = LinearSpec(n=5760, k=2880, codec="f4e2m1 g32 e8m0", aligned=True, experts=128)
    few = [schedule_for_experts(spec, m) for m in (1, 4, 256, 128 * MOST_MEAN)]
    orders = {(s.rows, s.warps, s.row_tiles, s.slices, s.units, s.steps, s.warpgroups) for s in few}
    assert len(orders) == 1 and [s.columns for s in few] == [8, 8, 8, 16] and few[0].producer
    assert schedule_for_experts(spec, 128 * 256).warpgroups > 0
    # Of four rows that choose among many experts nearly all have a tile of their own.
    assert 3.9 < tiles_of_columns(128, 4, 8) < 4.0 and most_tiles_of_columns(128, 4, 8) == 4
    assert most_tiles_of_columns(2, 20, 8) == 4 and most_tiles_of_columns(5, 0, 8) == 0


def test_tiles_are_counted_as_rows_fall() -> None:
    for routing, weights_of_experts in (("uniform", np.ones(64)), ("zipf", 1 / np.arange(1, 65))):
        rows = RANDOM.poisson(300 * weights_of_experts / weights_of_experts.sum(), size=(2000, 64))
        for columns in (8, 24, 1 << 30):
            wanted = (-(-rows // columns)).sum(1).mean()
            assert tiles_of_columns(64, 300, columns, routing) == pytest.approx(wanted, rel=0.02), (routing, columns)


def test_what_was_measured_goes_before_estimates() -> None:
    for (experts, n, k, codec), measured in MEASURED.items():
        spec = LinearSpec(n=n, k=k, codec=codec, aligned=True, experts=experts)
        for rows, draft in measured.items():
            found = schedule_for_experts(spec, max(1, rows) * experts)
            assert dataclasses.replace(found, columns=draft.columns, stages=2) == draft, (spec, rows)
        # Of other numbers of rows, and of other types, estimates speak.
        assert schedule_for_experts(spec, 5000 * experts).stages
        assert measured_schedule(dataclasses.replace(spec, n=n + 64), 0) is None


def test_what_several_parts_need_is_copied_once() -> None:
    spec = LinearSpec(n=512, k=256, codec="f4e2m1 g32 e8m0", aligned=True, experts=4)
    form = Schedule(stages=3, warpgroups=2, row_tiles=2, columns=16, steps=2, scales_on="weights", share_tiles=False)
    pipelines = str(cpu_kernel(spec, form).description.notes["pipelines"])
    assert f"3 stages of {stage_bytes(spec, form)} bytes by tensor copies of a producer warp" in pipelines


def test_mistakes_are_named() -> None:
    qw, x = weights((2, 32, 64), "int4", 64), np.zeros((4, 64), F16)
    offsets = offsets_of([3, 1])
    wrong: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
        (x, (qw[0], offsets), {}, r"^qw: expected weights of experts \[E, N, K\], got \[32, 64\]; use lowlp.linear"),
        (x[:, :32], (qw, offsets), {}, r"^x: must have shape \[M, K = 64\], got \[4, 32\]"),
        (x.astype(np.float32), (qw, offsets), {}, r"^x: expected float16 or bfloat16, got float32"),
        (x, (qw, offsets[:2]), {}, r"^offsets: must have shape \[E \+ 1\] = \[3\], got \[2\]"),
        (x, (qw, offsets.astype(np.int64)), {}, r"^offsets: expected a numpy array of int32, got int64"),
        (x, (qw, np.array([0, 3, 5], np.int32)), {}, r"^offsets: must not fall, and lie in 0..4, .* got 5 at 2"),
        (x, (qw, np.array([0, 3, 2], np.int32)), {}, r"^offsets: must not fall, and lie in 0..4, .* got 2 at 2"),
        (x, (qw, np.array([-1, 3, 4], np.int32)), {}, r"^offsets: must not fall, and lie in 0..4, .* got -1 at 0"),
        (x, (qw, offsets), {"bias": np.zeros(32, F16)}, r"^bias: must have shape \[2, 32\], got \[32\]"),
        (x, (qw, offsets), {"residual": np.zeros((3, 32), F16)}, r"^residual: must have the shape of the result"),
        (x, (qw, offsets), {"epilogue": "tanh"}, r"^epilogue: must be None or one of relu"),
        (x, (qw, offsets), {"stream": 1}, r"^stream: allowed for CUDA tensors only"),
        ([1], (qw, offsets), {}, r"^x: expected a numpy array or a tensor of PyTorch, got list"),
    ]
    for given, arguments, more, message in wrong:
        with pytest.raises(LowlpError, match=message):
            lowlp.grouped_linear(given, *arguments, **more)
    with pytest.raises(
        LowlpError, match=r"^epilogue: silu_mul of experts needs a multiple of 16 rows of gate and of up"
    ):
        lowlp.grouped_linear(x, weights((2, 40, 64), "int4", 64), offsets, epilogue="silu_mul")
    with pytest.raises(LowlpError, match=r"^experts: must be 0 to 512, got 513"):
        LinearSpec(n=32, k=64, codec="int4 g64 f16", experts=513)
