"""Rows by their numbers: on the host, and the kernel of GPUs on the CPU target, against `dequantize` bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.compiler.compilation import compile_cpu
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.rows import rows_kernel
from lowlp.ops.row_operands import row_operands, rows_spec

random = np.random.default_rng(4)
N, K = 90, 192
BITS = [int(bits) for bits in random.integers(1, 9, 3)]


def table(*shape: int) -> Any:
    return np.sort(random.normal(size=shape), -1).astype(np.float32)


CODECS: dict[str, dict[str, Any]] = {
    "ints": {"dtype": f"int{BITS[0]}", "group_size": 32},
    "zeros": {"dtype": f"uint{BITS[1]}", "group_size": 48, "zero_point": True, "scale_dtype": "bf16"},
    "offsets": {"dtype": f"uint{BITS[2]}", "group_size": None, "zero_point": "offset", "scale_dtype": "f32"},
    "nvfp4": {"dtype": "nvfp4"},
    "mxfp6": {"dtype": "mxfp6e3m2"},
    "bipolar": {"dtype": "bipolar3", "group_size": "tensor"},
    "nf4": {"dtype": "nf4", "group_size": 64},
    "tables of rows": {"lut": table(N, 8), "group_size": 64},
    "tables of groups": {"lut": table(N, 3, 4), "group_size": 64},
    "two levels": {"dtype": lowlp.Codec.parse("uint4 g32 uint4 offsets:uint4 super:f16:g96")},
    "books of blocks": {"vq": lowlp.vq(vector=4, bits=4), "book_per": (32, 64)},
    "two books": {"vq": lowlp.vq(vector=8, bits=9, books=2)},
}


@pytest.mark.parametrize("kind", CODECS)
def test_rows_of_every_codec(kind: str) -> None:
    qw = lowlp.quantize(random.normal(size=(N, K)).astype(np.float32), **CODECS[kind])
    values, ids = qw.dequantize(), random.integers(0, N, (3, 4))
    np.testing.assert_array_equal(lowlp.embedding(ids, qw, out_dtype="f32"), values[ids])
    np.testing.assert_array_equal(qw.dequantize(slice(7, 70)), values[7:70])


def rows_by_kernel(qw: lowlp.QuantizedTensor, ids: Any, out: str) -> Any:
    """By the kernel, on the CPU target with its checks."""
    kernel = compile_cpu(rows_kernel(rows_spec(qw, ids.dtype == np.int64, out)))
    y = np.zeros((ids.size, qw.shape[1]), np.float32 if out == "f32" else np.float16)
    packed = np.asarray(qw.packed).reshape(-1)
    kernel(ids=ids.view(np.int32), packed=packed, y=y, tokens=ids.size, **row_operands(qw), undefined=["y"])
    return y


@pytest.mark.parametrize("kind", [list(CODECS)[int(place)] for place in random.permutation(len(CODECS))[:5]])
def test_the_kernel_gives_the_bits_of_dequantize(kind: str) -> None:
    qw = lowlp.quantize(random.normal(size=(N, K)).astype(np.float32), **CODECS[kind])
    ids = np.array([0, 89, 17, -1, 90, 1 << 32, 17], np.int64)
    found, inside = rows_by_kernel(qw, ids, "f32"), [0, 1, 2, 6]
    np.testing.assert_array_equal(found[inside], qw.dequantize()[ids[inside]])
    assert np.isnan(found[3:6]).all()


def test_the_kernel_with_columns_in_another_order_and_computed_books() -> None:
    order = random.permutation(K)
    codes = random.integers(0, 8, (N, 1056), dtype=np.uint8)
    order = random.permutation(1056)
    # More columns than a block has, units 32 wide, and second scales of rows.
    scales, second = np.ones((N, 33), np.float16) * 0.5, random.uniform(1, 2, N).astype(np.float32)
    qw = lowlp.QuantizedTensor(codes, dtype="int3", scales=scales, group_size=32, scale2=second, permutation=order)
    ids = random.integers(0, N, 3).astype(np.int32)
    wanted = qw.dequantize()[ids]
    np.testing.assert_array_equal(rows_by_kernel(qw, ids, "f32"), wanted)
    np.testing.assert_array_equal(rows_by_kernel(qw, ids, "f16"), wanted.astype(np.float16))
    # Two books of 16 and 8 bits.
    books = np.stack([random.integers(0, 1 << 16, (32, 8)), random.integers(0, 256, (32, 8))], -1).astype(np.uint16)
    computed = lowlp.QuantizedTensor(books, codebooks="e8p+e81b")
    np.testing.assert_array_equal(rows_by_kernel(computed, ids % 32, "f32"), computed.dequantize()[ids % 32])


def test_mistakes() -> None:
    qw = lowlp.quantize(np.ones((4, 64), np.float32), "int4", group_size=64)
    for ids, message in ((np.array([4]), "must be in 0..3, got 4"), (np.array([[0, -1]]), "must be in 0..3, got -1")):
        with pytest.raises(LowlpValueError, match=f"ids: {message}"):
            lowlp.embedding(ids, qw)
    with pytest.raises(LowlpTypeError, match="ids: expected integers, got float64"):
        lowlp.embedding(np.zeros(2), qw)
    with pytest.raises(LowlpValueError, match=r"rows: must be in 0..3, got 4"):
        qw.dequantize(np.array([0, 4]))
    with pytest.raises(LowlpTypeError, match="rows: expected a slice or integers of one dimension"):
        qw.dequantize(np.zeros((2, 2), int))
