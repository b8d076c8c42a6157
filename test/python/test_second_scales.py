"""Second scales of rows: gate and up of one NVFP4 file have one each, and are merged by `lowlp.concat`."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from linear_matrix import ERROR_LIMITS

import lowlp
from lowlp.kernels.linear.operand_list import operands_of_weights
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.spec import LinearSpec
from lowlp_runtime.errors import LowlpTypeError, LowlpValueError
from lowlp_runtime.operand_arrays import host_operands as arrays_of_operands

RANDOM = np.random.default_rng(44)
K = 128
GATE, UP = (lowlp.quantize(RANDOM.normal(0, width, (64, K)).astype(np.float32), "nvfp4") for width in (0.02, 0.5))
BOTH = lowlp.concat([GATE, UP])


def test_concatenated_weights_keep_their_second_scales() -> None:
    assert GATE.scale2 != UP.scale2
    np.testing.assert_array_equal(BOTH.scale2, np.repeat(np.array([GATE.scale2, UP.scale2]), 64))
    np.testing.assert_array_equal(BOTH.dequantize(), np.vstack([GATE.dequantize(), UP.dequantize()]))
    assert BOTH.codec == GATE.codec and BOTH != GATE
    # A slice whose rows share one number has a number again.
    assert BOTH[:64] == GATE and BOTH[64:] == UP and lowlp.concat([BOTH[:32], BOTH[32:]]) == BOTH
    assert lowlp.concat([GATE, GATE]).scale2 == GATE.scale2
    with pytest.raises(ValueError, match="read-only"):
        BOTH.scale2[0] = 1  # type: ignore[index, call-overload]


def test_files_hold_second_scales_of_rows() -> None:
    arrays, header = BOTH.to_arrays()
    assert arrays["scale2"].shape == (128,) and json.loads(header)["scale2"] is True
    assert lowlp.QuantizedTensor.from_arrays(arrays, header) == pickle.loads(pickle.dumps(BOTH)) == BOTH
    with pytest.raises(LowlpValueError, match=r"scale2: expected one number, or one for each row, \[N\] = \[128\]"):
        lowlp.QuantizedTensor.from_arrays({**arrays, "scale2": arrays["scale2"][:3]}, header)
    experts = lowlp.QuantizedTensor(
        np.stack([GATE.codes, UP.codes]),
        dtype="f4e2m1",
        scales=np.stack([GATE.scales, UP.scales]),
        group_size=16,
        scale2=np.repeat(np.array([[GATE.scale2], [UP.scale2]]), 64, axis=1),
    )
    assert experts[0] == GATE and experts[1] == UP
    assert lowlp.QuantizedTensor.from_arrays(*experts.to_arrays()) == experts


@pytest.mark.parametrize("m", [3, 40])
def test_gate_and_up_of_different_second_scales(m: int) -> None:
    x = RANDOM.normal(size=(m, K)).astype(np.float16)
    y = lowlp.linear(x, BOTH, epilogue="silu_mul").astype(np.float64)
    gate, up = (x.astype(np.float64) @ part.dequantize().astype(np.float64).T for part in (GATE, UP))
    exact = gate / (1 + np.exp(-gate)) * up
    assert np.linalg.norm(y - exact) <= ERROR_LIMITS["f16"] * np.linalg.norm(exact)


def test_a_kernel_for_rows_takes_one_number_and_not_the_other_way() -> None:
    one, rows = (spec_for(qw, "f16", "f16") for qw in (GATE, BOTH[32:96]))
    assert not one.row_scale2 and rows.row_scale2
    stored = {name: getattr(GATE, name) for name in ("packed", "scales", "scale2")}
    made = arrays_of_operands(operands_of_weights(rows), stored)
    np.testing.assert_array_equal(made["scale2"], np.full(64, GATE.scale2))
    with pytest.raises(LowlpValueError, match=r"qw: its scale2 are \[64\], one for each row, .*scale2='row'"):
        arrays_of_operands(operands_of_weights(one), {**stored, "scale2": BOTH[32:96].scale2})
    assert host_operands(BOTH, "f16")["scale2"].shape == (128,)


def test_arguments_that_ask_for_second_scales() -> None:
    kernel = lowlp.compile_linear(n=64, k=K, weight="f4e2m1", group_size=16, scale_dtype="e4m3", scale2="row")
    operand = kernel.description.product.required("scale2")  # type: ignore[union-attr]
    assert operand.shape == (64,) and operand.transform == "by_row"
    with pytest.raises(LowlpTypeError, match="scale2: expected a bool or 'row', got 'column'"):
        lowlp.compile_linear(n=64, k=K, weight="int4", scale2="column")
    with pytest.raises(LowlpValueError, match="row_scale2: expected a codec with a second scale, got int4 g128 f16"):
        LinearSpec(64, K, "int4 g128 f16", row_scale2=True)  # type: ignore[arg-type]
