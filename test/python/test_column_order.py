"""A permutation of K, as GPTQ's act-order has one: columns stay where they are, and are packed by groups."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from linear_matrix import ERROR_LIMITS, TYPES, relative_error
from test_linear_fitting import MUCH_BYTES, SPARE_BYTES, laid_out

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.kernels.linear.choosing import ordered_within, schedule_for
from lowlp.kernels.linear.fitting import other_bytes, stage_bytes
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.permuting import permuting_kernel
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.segments import units_of_period
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.numeric.dtypes import dtype
from lowlp.schedules.device import H200
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.ordered_rows import launch_numbers, row_stride

N, K, GROUP = 80, 256, 32


def parts(name: str = "int4", group: int = GROUP, k: int = K, seed: int = 0) -> dict[str, Any]:
    """The arguments of random weights whose columns belong to groups at random."""
    rng = np.random.default_rng(seed)
    return {
        "codes": rng.integers(0, 1 << dtype(name).bits, (N, k), dtype=np.uint8),
        "dtype": name,
        "scales": rng.uniform(0.5, 2, (N, k // group)).astype(np.float16),
        "group_size": group,
        "g_idx": rng.permutation(np.repeat(np.arange(k // group), group)),
    }


def act_order(activation: str = "f16", **more: Any) -> lowlp.QuantizedTensor:
    return lowlp.QuantizedTensor(**parts(**more), activation=activation)


def test_columns_stay_where_they_are() -> None:
    given = parts()
    qw = lowlp.QuantizedTensor(**given)
    np.testing.assert_array_equal(qw.codes, given["codes"])
    scales = given["scales"].astype(np.float32)[:, given["g_idx"]]
    np.testing.assert_array_equal(qw.dequantize(), dtype("int4").decode(given["codes"]) * scales)
    order = np.argsort(given["g_idx"], kind="stable")
    np.testing.assert_array_equal(qw.permutation, order)
    assert qw.permutation is not None and qw.permutation.dtype == np.int32
    del given["g_idx"]
    assert lowlp.QuantizedTensor(**given, permutation=order) == qw != lowlp.QuantizedTensor(**given)
    # Groups of neighbours, in order, are no permutation.
    assert lowlp.QuantizedTensor(**given, g_idx=np.arange(K) // GROUP) == lowlp.QuantizedTensor(**given)


def test_what_is_made_of_permuted_weights_keeps_their_order() -> None:
    qw = act_order()
    assert lowlp.concat([qw[:32], qw[32:]]) == qw
    np.testing.assert_array_equal(qw[32:64].dequantize(), qw.dequantize()[32:64])
    np.testing.assert_array_equal(qw.pack_for("bf16").dequantize(), qw.dequantize())
    order = np.argsort(parts()["g_idx"], kind="stable")
    given = {"dtype": "int4", "scales": qw.scales, "group_size": GROUP}
    by_group, by_column = ({"g_idx": parts()["g_idx"]}, {"permutation": order})
    assert qw.from_packed(qw.packed, qw.shape, **given, **by_group) == qw
    assert qw.from_packed(qw.packed, qw.shape, **given, **by_column) == qw
    with pytest.raises(LowlpValueError, match="g_idx, permutation: at most one of them"):
        qw.from_packed(qw.packed, qw.shape, **given, **by_group, **by_column)
    arrays, header = qw.to_arrays()
    assert lowlp.QuantizedTensor.from_arrays(arrays, header) == pickle.loads(pickle.dumps(qw)) == qw
    # Headers of before have no such field, and those of weights without permutation are as they were.
    assert "permutation" not in json.loads(lowlp.quantize(qw.dequantize(), "int4", 32).to_arrays()[1])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"g_idx": np.zeros(K, int)},
            LowlpValueError,
            "g_idx: every group must have .* 32 columns, got 256 in group 0",
        ),
        ({"g_idx": np.arange(K)}, LowlpValueError, "g_idx: must be the numbers of groups, 0 to 7, got 8"),
        ({"g_idx": np.zeros(7, int)}, LowlpValueError, r"g_idx: expected shape \[K\] = \[256\], got \[7\]"),
        ({"g_idx": np.zeros(K)}, LowlpTypeError, "g_idx: expected integers, got elements of float64"),
        ({"permutation": np.arange(K)}, LowlpValueError, "g_idx, permutation: at most one of them may be given"),
        ({"g_idx": None, "permutation": np.zeros(K, int)}, LowlpValueError, "once, but column 0 is in 256 places"),
        ({"g_idx": None, "permutation": np.arange(-1, K - 1)}, LowlpValueError, "each of 0 to 255 once, got -1"),
    ],
)
def test_refused_permutations(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lowlp.QuantizedTensor(**{**parts(), **changes})


def test_refused_cuts_and_concatenations() -> None:
    qw, plain = act_order(), lowlp.quantize(np.ones((N, K), np.float32), "int4", GROUP)
    with pytest.raises(LowlpValueError, match=r"columns: .* permutation .* cut along N only, got 0:64 of 256"):
        qw[:, :64]
    for tensors, message in (
        ([qw, act_order(seed=1)], r"tensors\[1\]: must have the permutation of the first"),
        ([qw, plain], r"tensors\[1\]: must have the permutation of the first"),
        ([plain, qw], r"tensors\[1\]: must have its columns in their own order, as the first"),
    ):
        with pytest.raises(LowlpValueError, match=message):
            lowlp.concat(tensors)


@pytest.mark.parametrize(
    ("name", "group", "activation", "m"),
    [("int4", 32, "f16", 5), ("uint3", 128, "bf16", 16), ("int8", 32, "bf16", 40), ("int4", 128, "f16", 256)],
)
def test_rows_of_the_identity(name: str, group: int, activation: str, m: int) -> None:
    qw, rows = act_order(activation, name=name, group=group, seed=m), np.random.default_rng(m).permutation(K)[:m]
    x = np.eye(K, dtype=TYPES[activation])[rows]
    np.testing.assert_array_equal(lowlp.linear(x, qw).T, qw.dequantize()[:, rows].astype(x.dtype))


@pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
def test_rows_of_any_stride_and_length() -> None:
    qw = act_order("bf16", k=100, group=20)
    memory = np.random.default_rng(1).normal(size=(3, 131)).astype(ml_dtypes.bfloat16)
    x = memory[:, 1:101]
    assert relative_error(lowlp.linear(x, qw), x, qw) <= ERROR_LIMITS["bf16"]


def test_a_row_has_the_same_bits_in_batches_of_up_to_16() -> None:
    qw, x = act_order(group=128), np.random.default_rng(3).normal(size=(16, K)).astype(np.float16)
    batch = lowlp.linear(x, qw)
    for m in (1, 2, 3):
        np.testing.assert_array_equal(lowlp.linear(x[:m], qw), batch[:m])


def test_gate_and_up_of_one_order() -> None:
    x = np.random.default_rng(2).normal(size=(6, K)).astype(np.float16)
    qw = act_order()
    gate, up = np.split(x.astype(np.float64) @ qw.dequantize().astype(np.float64).T, 2, axis=1)
    exact = gate / (1 + np.exp(-gate)) * up
    y = lowlp.linear(x, qw, epilogue="silu_mul")
    assert np.linalg.norm(y - exact) <= ERROR_LIMITS["f16"] * np.linalg.norm(exact)


@pytest.mark.parametrize(("k", "aligned"), [(100, False), (4104, True), (20_000, True), (130_000, True)])
def test_rows_in_another_order(k: int, aligned: bool) -> None:
    """Also of several parts, and of more elements than shared memory holds."""
    rng = np.random.default_rng(k)
    kernel, order = compile_cpu(permuting_kernel(k, aligned, True, "sm_90a")), rng.permutation(k).astype(np.int32)
    for m in (1, 3):
        x = rng.integers(0, 1 << 16, (m, k), dtype=np.uint16)
        y = np.zeros((m, row_stride(k)), np.uint16)
        numbers: dict[str, Any] = launch_numbers(k, m, k, 132 if m == 1 else 1, gathers=True)
        kernel(x=x.reshape(-1), permutation=order, y=y, **numbers)
        np.testing.assert_array_equal(y[:, :k], x[:, order])


@pytest.mark.parametrize(
    ("rows", "group", "activation"), [(1, 64, "bf16"), (2, 32, "f16"), (4, 128, "f16"), (8, 48, "f16")]
)
def test_kernels_that_put_few_rows_in_order_themselves(rows: int, group: int, activation: str) -> None:
    """Of one row, whose accumulators all columns share, and of pairs; rows that are not there are zeros."""
    k = 384
    qw = act_order(activation, group=group, k=k, seed=rows)
    period = units_of_period(spec_for(qw, activation, activation))
    division = Schedule(8, row_tiles=4, slices=1 if period > 1 else 4, units=period, stages=2, share_tiles=rows > 2)
    spec = replace(spec_for(qw, activation, activation, aligned=rows > 1), ordered_rows=rows)
    kernel, product = compile_cpu(linear_kernel(spec, division)), product_of(spec, division)
    given = {**host_operands(qw, activation), "permutation": qw.permutation}
    for m in {1, rows // 2 + 1, rows}:
        places = np.random.default_rng(m).permutation(k)[:m]
        x, y = np.eye(k, dtype=TYPES[activation])[places], np.full((m, N), np.nan, TYPES[activation])
        kernel(x=x, **given, y=y, **product.by_name(product.launch_numbers(m, k, None, multiprocessors=2)))
        np.testing.assert_array_equal(y.T, qw.dequantize()[:, places].astype(y.dtype))


def test_rows_are_put_in_order_where_that_takes_least() -> None:
    def within(n: int, k: int, m: int) -> int:
        spec = LinearSpec(n, k, Codec.parse("int4 g128 f16"), aligned=True)
        schedule = schedule_for(spec, m)
        found = ordered_within(spec, schedule, m, H200)
        if not found:
            return 0
        # Sums are those of a kernel whose x comes in order: all but the stages is the same.
        assert replace(found[1], stages=schedule.stages) == replace(schedule, kept_rows=0)
        return found[0].ordered_rows

    assert [within(4096, 4096, m) for m in (1, 2, 3, 8, 64)] == [1, 2, 4, 0, 0]
    for m in (1, 4):
        spec = LinearSpec(4096, 4096, Codec.parse("int4 g128 f16"), aligned=True)
        found = ordered_within(spec, schedule_for(spec, m), m, H200)
        assert found
        # All of it is counted, of rows as they come and in order.
        counted = found[1].stages * stage_bytes(*found) + other_bytes(*found)
        assert counted - MUCH_BYTES <= laid_out(*found)[2] <= counted + SPARE_BYTES
    assert within(5120, 13824, 1) == 1 and within(5120, 13824, 8) == 0
    with pytest.raises(LowlpValueError, match="ordered_rows: must be one of 0, 1, 2, 4, 8, got 3"):
        LinearSpec(64, 64, Codec.parse("int4 g64 f16"), ordered_rows=3)
