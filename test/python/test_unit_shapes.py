"""Rows that are no multiple of 64: units of packed weights 32 and 16 wide, in tensors, in `linear` and in kernels."""

from __future__ import annotations

import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import lowlp
from lowlp import language as ll
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.choosing import schedule_for
from lowlp.kernels.linear.operand_list import product_of
from lowlp.kernels.linear.operands import host_operands, spec_for
from lowlp.kernels.linear.plain import linear_kernel
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.kernels.linear.streaming_layouts import can_stream
from lowlp.numeric.codec import Codec

TYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}


def gaussian(n: int, k: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng([n, k, seed]).normal(size=(n, k)).astype(np.float32)


@pytest.mark.parametrize(("k", "group"), [(96, 32), (96, 48), (80, 16), (4112, None), (1056, 96)])
def test_rows_take_no_more_than_their_codes(k: int, group: int | None) -> None:
    qw = lowlp.quantize(gaussian(256, k), "int4", group_size=group)
    assert qw.nbytes == 256 * k // 2 + qw.scales.nbytes


# (K, group, type, activation, rows of x): units of each shape, whole groups and parts of them, steps with zeros of x.
PRODUCTS = [
    (16, 16, "int4", "f16", 16),
    (32, 16, "uint3", "bf16", 32),
    (48, 48, "int5", "f16", 20),
    (80, 16, "f6e3m2", "f16", 5),
    (96, 32, "int4", "f16", 70),
    (96, 48, "int7", "bf16", 20),
    (96, 96, "int1", "f16", 5),
    (100, 100, "int6", "bf16", 20),
    (160, 32, "f4e2m1", "f16", 5),
    (160, 160, "int2", "f16", 20),
    (336, 48, "int3", "f16", 5),
    (336, 336, "int8", "bf16", 1),
    (1056, 96, "int4", "f16", 1),
    (1056, 1056, "uint2", "f16", 5),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("k", "group", "code", "activation", "rows"), PRODUCTS)
def test_products_with_the_identity_are_the_weights(k: int, group: int, code: str, activation: str, rows: int) -> None:
    rows_of_wide = 64 if code == "int1" else 32 if code.endswith("2") else 16
    n = (4 if k < 200 else 2) * rows_of_wide
    qw = lowlp.quantize(gaussian(n, k), code, group_size=group, activation=activation)
    assert qw.form.unit_k < 64
    # The last columns, where padding would be seen.
    first = max(0, k - rows)
    x = np.eye(k, dtype=TYPES[activation])[first:]
    y = lowlp.linear(x, qw, out_dtype="f32")
    np.testing.assert_array_equal(y, qw.dequantize()[:, first:].T)


@pytest.mark.parametrize("share_tiles", [True, False])
@pytest.mark.parametrize(
    ("k", "code", "activation"),
    [(96, "int4", "f16"), (160, "uint3", "bf16"), (336, "int2", "f16"), (272, "int6", "f16")],
)
def test_rows_that_are_one_group_are_streamed(k: int, code: str, activation: str, share_tiles: bool) -> None:
    n = 380
    qw = lowlp.quantize(gaussian(n, k), code, group_size=None, activation=activation)
    spec = spec_for(qw, activation, "f32", aligned=True)
    assert spec.unit_k < 64
    # The last of 2 or 3 stages ends after the row does; the last tile after the matrix.
    tiles = spec.rows_of_unit // 16
    schedule = Schedule(
        8, warps=1, slices=1 if k < 128 else 2, row_tiles=tiles, stages=2, producer=share_tiles, share_tiles=share_tiles
    )
    assert can_stream(spec, schedule)
    kernel, product = compile_cpu(linear_kernel(spec, schedule)), product_of(spec, schedule)
    rows = np.array([0, 15, 31, 32, k // 2, k - 17, k - 16, k - 2, k - 1])
    numbers = product.by_name(product.launch_numbers(len(rows), k, None, multiprocessors=2))
    y = np.full((len(rows), n), np.nan, np.float32)
    kernel(x=np.eye(k, dtype=TYPES[activation])[rows], **host_operands(qw, activation), y=y, **numbers)
    np.testing.assert_array_equal(y.T, qw.dequantize()[:, rows])


@pytest.mark.parametrize(("codec", "k"), [("int4 channel f16", 4128), ("uint3 channel f16 zeros:uint8", 4112)])
@pytest.mark.parametrize("m", [1, 16, 32])
def test_the_kernel_with_stages_is_chosen(codec: str, k: int, m: int) -> None:
    assert schedule_for(LinearSpec(4096, k, Codec.parse(codec), aligned=True), m).stages


def test_gate_and_up_have_the_units_of_both() -> None:
    # 48 rows each are no whole units of 32 rows, which 96 are.
    qw = lowlp.quantize(gaussian(96, 96), "int4", group_size=32)
    assert qw.form.unit_rows == 32
    x = gaussian(3, 96, 1).astype(np.float16)
    y = lowlp.linear(x, qw, epilogue="silu_mul", out_dtype="f32")
    gate, up = np.split(x.astype(np.float64) @ qw.dequantize().T.astype(np.float64), 2, axis=1)
    np.testing.assert_allclose(y, gate / (1 + np.exp(-gate)) * up, rtol=1e-3, atol=1e-3)


def test_slices_are_packed_in_the_units_of_their_shape() -> None:
    qw = lowlp.quantize(gaussian(104, 160), "int6", group_size=32)
    whole = qw.dequantize()
    for rows, columns, unit_k in (
        (slice(32, 64), slice(None), 32),
        (slice(96, 104), slice(None), 64),
        (slice(None), slice(32, 96), 64),
        (slice(32, None), slice(96, None), 64),
        (slice(0, 64), slice(64, None), 32),
    ):
        part = qw[rows, columns]
        assert part.form.unit_k == unit_k and part == pickle.loads(pickle.dumps(part))
        assert np.shares_memory(part.packed, qw.packed) == (unit_k == 32)
        np.testing.assert_array_equal(part.dequantize(), whole[rows, columns])
    with pytest.raises(LowlpValueError, match=r"rows: 16 is not between units of 32 rows; the next .* are 0 and 32"):
        qw[:16]
    with pytest.raises(LowlpValueError, match="columns: 16 is not between units of 32 weights and groups of 32"):
        qw[:, 16:]


def test_concat_has_the_units_of_the_sum() -> None:
    parts = [lowlp.quantize(gaussian(n, 96, n), "uint2", group_size=96) for n in (64, 128, 20)]
    assert [part.form.unit_k for part in parts] == [32, 32, 64]
    joined = lowlp.concat(parts)
    assert joined.form.unit_k == 32
    np.testing.assert_array_equal(joined.dequantize(), np.concatenate([part.dequantize() for part in parts]))
    with pytest.raises(LowlpValueError, match=r"tensors\[0\]: must end between units of 32 rows"):
        lowlp.concat([parts[2], parts[0]])


def _product(n: int, k: int, unit_k: int | None, rows: int) -> Any:
    @ll.kernel(grid=(1,), num_threads=32)
    def product(w: ll.pointer("uint32"), y: ll.pointer("f16")) -> None:  # type: ignore[valid-type]
        view = ll.view_packed(w, shape=[n, k], codec="int4", family="f16", unit_k=unit_k)
        tile = ll.cast(ll.load_packed(view, offsets=[0, 0], shape=[rows, k]), "f16")
        ll.store_global(tile, ll.view_global(y, shape=[n, k]), offsets=[0, 0])

    return product


@pytest.mark.parametrize("unit_k", [None, 32])
def test_kernels_see_the_units_that_pack_makes(unit_k: int | None) -> None:
    codes = np.random.default_rng(0).integers(0, 16, (64, 96), np.uint8)
    words = lowlp.pack(codes, 96, "int4", "f16")
    y = np.zeros((64, 96), np.float16)
    lowlp.compile_cpu(_product(64, 96, unit_k, 64))(words, y)
    np.testing.assert_array_equal(y, lowlp.int4.decode(codes).astype(np.float16))


def test_refused_units() -> None:
    for unit_k, rows, message in (
        (48, 64, "unit_k: must be one of 64, 32, 16, found 48"),
        (32, 16, "int4.f16.k32 has units of 32 rows by 32 along K, which do not divide 16 x 96"),
        (64, 64, "int4.f16 has units of 16 rows by 64 along K, which do not divide 64 x 96"),
    ):
        with pytest.raises(LowlpValueError, match=message):
            lowlp.compile_cpu(_product(64, 96, unit_k, rows))
