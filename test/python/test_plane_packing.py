"""The family b1 of the packed format: planes of stored codes, as operand A of 1-bit products takes them."""

from __future__ import annotations

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpValueError
from lowlp.numeric.bit_planes import BIT_OF_CODE, planes_of
from lowlp.packing import find_placement, pack, packed_shape, unpack

RANDOM = np.random.default_rng(20)


def stored(codes: np.ndarray, dtype: str) -> np.ndarray:
    bits = lowlp.dtype(dtype).bits
    return codes ^ (1 << (bits - 1)) if dtype.startswith("int") else codes


@pytest.mark.parametrize("dtype", ["uint1", "int2", "bipolar3", "uint5", "int8"])
def test_words_are_planes_in_the_order_of_operand_a(dtype: str) -> None:
    n, k = 37, 600
    codes = RANDOM.integers(0, 1 << (bits := lowlp.dtype(dtype).bits), (n, k), dtype=np.uint8)
    packed = pack(codes, k, dtype, "b1")
    assert packed.shape == packed_shape(n, k, k, find_placement(dtype, "b1")) == (3, 3, bits, 32, 4)
    np.testing.assert_array_equal(unpack(packed, n, k, k, dtype, "b1"), codes)
    padded = np.zeros((48, 768), np.uint8)
    padded[:n, :k] = codes
    planes = planes_of(stored(padded, dtype), bits)
    lane, slot = np.arange(32)[:, None], np.arange(4)
    rows = 16 * np.arange(3)[:, None, None, None, None] + 8 * (slot % 2) + lane // 4
    words = 8 * np.arange(3)[:, None, None, None] + lane % 4 + 4 * (slot // 2)
    np.testing.assert_array_equal(packed, planes[rows, np.arange(bits)[:, None, None], words])


def test_the_order_of_bits_is_that_of_activations() -> None:
    placement = find_placement("int3", "b1")
    assert (placement.unit_rows, placement.unit_k, placement.parts, placement.slots) == (16, 256, 32, 4)
    for part in (0, 1, 5, 31):
        assert [placement.place(2, part, bit) for bit in range(3)] == [(4 * b + 2, BIT_OF_CODE[part]) for b in range(3)]
    assert placement.for_matrix(7, 100).name == "int3.b1"


def test_tensors_go_there_and_back() -> None:
    codes = RANDOM.integers(0, 8, (48, 1024), dtype=np.uint8)
    scales = RANDOM.uniform(0.5, 1.0, (48, 1)).astype(np.float16)
    qw = lowlp.QuantizedTensor(codes, dtype="int3", scales=scales)
    planes = qw.pack_for("b1")
    assert (planes.family, planes.packed.shape) == ("b1", (3, 4, 3, 32, 4))
    np.testing.assert_array_equal(planes.codes, codes)
    np.testing.assert_array_equal(planes.dequantize(), qw.dequantize())
    assert planes.pack_for("f16") == qw
    assert planes == lowlp.QuantizedTensor(codes, dtype="int3", scales=scales, activation="b1")
    assert lowlp.QuantizedTensor.from_arrays(*planes.to_arrays()) == planes
    assert lowlp.concat([planes[:16], planes[16:]]) == planes
    part = planes[16:32, 256:768]
    np.testing.assert_array_equal(part.codes, codes[16:32, 256:768])
    counted = stored(codes, "int3").astype(np.int32)
    np.testing.assert_array_equal(planes.code_sums[:, 0], counted.sum(1))
    np.testing.assert_array_equal(part.code_sums[:, 0], counted[16:32, 256:768].sum(1))
    with pytest.raises(LowlpValueError, match="units of 256 weights"):
        planes[:, :128]


def test_sums_by_groups_and_of_experts() -> None:
    codes = RANDOM.integers(0, 4, (2, 20, 600), dtype=np.uint8)
    scales = np.ones((2, 20, 3), np.float16)
    qw = lowlp.QuantizedTensor(codes, dtype="uint2", scales=scales, group_size=200, activation="b1")
    expected = codes.reshape(40, 3, 200).sum(2, dtype=np.int32)
    np.testing.assert_array_equal(qw.code_sums, expected)
    assert qw.code_sums is qw.code_sums
    assert not qw.code_sums.flags.writeable


def test_codes_that_are_no_integers_have_no_planes() -> None:
    w = RANDOM.normal(size=(16, 256)).astype(np.float32)
    with pytest.raises(LowlpValueError, match="no placement of f4e2m1 for family b1"):
        lowlp.quantize(w, "f4e2m1", activation="b1")
    with pytest.raises(LowlpValueError, match="code_sums: only codes of integers and bipolar types have sums"):
        lowlp.quantize(w, "f4e2m1").code_sums  # noqa: B018
