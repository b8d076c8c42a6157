"""QuantizedTensor with tables, small scales, a second scale and one scale for all: exact meaning, and every refusal."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from codec_samples import CODE_TYPES, EXTRAS, SCALES, TABLES, random_tensor, recomputed
from hypothesis import given, settings
from hypothesis import strategies as st

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError


@given(
    st.sampled_from(CODE_TYPES),
    st.sampled_from(list(SCALES)),
    st.sampled_from(EXTRAS),
    st.sampled_from(TABLES),
    st.sampled_from(["", "channel", "tensor"]),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 17),
    st.integers(0, 2**32),
)
@settings(max_examples=300, deadline=None)
def test_dequantize_is_its_definition(
    t: Any, scale: str, extra: str, table: str, group: str, n: int, groups: int, size: int, seed: int
) -> None:
    q = random_tensor(np.random.default_rng(seed), t, n, groups, size, scale, extra, table, group)
    result = q.dequantize()
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, recomputed(q))
    assert q.codec.scale == scale
    assert q.codec.group == (group or size)


def test_every_scale_of_the_small_types() -> None:
    """All codes of the scale types that mean a positive number, against ml_dtypes' own conversion."""
    for kind, low, high in ((ml_dtypes.float8_e8m0fnu, 0, 255), (ml_dtypes.float8_e4m3fn, 0, 127)):
        scales = np.arange(low, high, dtype=np.uint8).view(kind)
        q = lowlp.QuantizedTensor(np.ones((scales.size, 1), np.uint8), dtype="int2", scales=scales[:, None])
        np.testing.assert_array_equal(q.dequantize()[:, 0], scales.astype(np.float32))
    assert scales.astype(np.float32).max() == 448


def test_the_second_scale_comes_last() -> None:
    """A case where (s2 * s) * q rounds otherwise than s2 * (s * q)."""
    found = 0
    for seed in range(50):
        s2 = np.float32(np.random.default_rng(seed).uniform(1e-3, 1e-2))
        scales = np.array([[1.125]], ml_dtypes.float8_e4m3fn)
        q = lowlp.QuantizedTensor(np.array([[5]], np.uint8), dtype="f4e2m1", scales=scales, scale2=s2)
        assert q.dequantize()[0, 0] == s2 * np.float32(1.125 * 3)
        found += s2 * np.float32(1.125 * 3) != (s2 * np.float32(1.125)) * np.float32(3)
    assert found


def test_blocks_of_rows_do_not_show() -> None:
    for table in ("", "tensor", "channel", "group"):
        q = random_tensor(np.random.default_rng(3), CODE_TYPES[3], 5, 3, 40_000, "e4m3", "", table)
        whole = q.dequantize()
        assert whole.shape == (5, 120_000)
        groups = np.repeat(q.scales.astype(np.float32), 40_000, axis=1)
        if q.lut is None:
            values = q.dtype.decode(q.codes)
        else:
            tables = np.broadcast_to(
                q.lut if table == "group" else q.lut.reshape(-1, 1, q.lut.shape[-1]), (5, 3, 1 << q.bits)
            )
            values = np.take_along_axis(tables, q.codes.reshape(5, 3, -1).astype(int), 2).reshape(5, -1)
        np.testing.assert_array_equal(whole, values.astype(np.float32) * groups)


@pytest.mark.parametrize(("lut", "table_bytes"), [(lowlp.nf(4), 64), (np.zeros((2, 16), np.float16), 64)])
def test_nbytes_and_repr(lut: Any, table_bytes: int) -> None:
    q = lowlp.QuantizedTensor(
        np.zeros((2, 8), np.uint8), lut=lut, scales=np.ones((1, 1), np.float16), group_size="tensor"
    )
    assert q.nbytes == q.packed.nbytes + 2 + table_bytes
    assert q.dtype.name == "uint4"
    assert repr(q) == (
        f"QuantizedTensor(lut {list(lut.shape)}, shape=(2, 8), group_size='tensor', scales=float16, family=f16, "
        f"nbytes={q.nbytes})"
    )
    q = lowlp.QuantizedTensor(np.zeros((2, 8), np.uint8), dtype="uint4", scales=np.ones((2, 1), np.float16), scale2=2)
    assert q.nbytes == q.packed.nbytes + 4 + 4
    assert "scales=float16, scale2, family=f16" in repr(q)


def test_tables_are_read_only_and_lists_become_float32() -> None:
    q = lowlp.QuantizedTensor(
        np.array([[0, 1]], np.uint8), lut=[0.1, 2], scales=np.ones((1, 1), np.float32), dtype="uint1"
    )
    assert q.lut is not None
    assert q.lut.dtype == np.float32
    np.testing.assert_array_equal(q.dequantize(), np.array([[0.1, 2]], np.float32))
    with pytest.raises(ValueError, match="read-only"):
        q.lut[0] = 1


@pytest.mark.parametrize("value", [0.1, np.float32(0.1), np.array([0.1], np.float32), np.array(0.1, np.float16), 3])
def test_second_scales(value: Any) -> None:
    q = lowlp.QuantizedTensor(
        np.zeros((1, 2), np.uint8), dtype="int4", scales=np.ones((1, 1), np.float32), scale2=value
    )
    assert q.scale2 is not None
    assert q.scale2.dtype == np.float32
    assert q.scale2 == np.float32(np.asarray(value).reshape(()))


CODES, SCALES_2 = np.zeros((2, 8), np.uint8), np.ones((2, 2), np.float16)
NAN_E8M0 = np.full((2, 2), 255, np.uint8).view(ml_dtypes.float8_e8m0fnu)
NAN_E4M3 = np.full((2, 2), 0x7F, np.uint8).view(ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scales": SCALES_2.astype(np.uint8)}, "got uint8; a view of bytes as one of the last two makes them scales"),
        ({"offsets": NAN_E8M0}, "offsets: expected elements of float16, bfloat16 or float32, got float8_e8m0fnu"),
        ({"zeros": NAN_E4M3}, "zeros: expected elements of .* or an integer type, got float8_e4m3fn"),
        ({"dtype": None}, "dtype: expected a name such as 'int6' or a DType, or a lut instead, got None"),
        (
            {"group_size": "row"},
            "group_size: expected an int, or None for a whole row, got 'row'; the one name is 'ten",
        ),
        ({"scale2": True}, "scale2: expected a number, or an array with one for each row, got True"),
        ({"scale2": "1"}, "scale2: expected a number, .* got '1'"),
        ({"scale2": [1.0, 2.0]}, r"scale2: expected .* array with one for each row, got \[1.0, 2.0\]"),
        ({"scale2": np.array(["1"])}, "scale2: expected a number, got elements of <U1"),
        ({"lut": np.zeros(4), "dtype": None}, "lut: expected elements of float16 or float32, got float64"),
    ],
)
def test_refuses_types(changes: dict[str, Any], message: str) -> None:
    arguments = {"codes": CODES, "dtype": "int6", "scales": SCALES_2, "group_size": 4, **changes}
    with pytest.raises(LowlpTypeError, match=message):
        lowlp.QuantizedTensor(arguments.pop("codes"), **arguments)


TABLE = np.zeros(4, np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scales": NAN_E8M0}, r"scales: must be finite, got nan at \[0, 0\]"),
        ({"scales": NAN_E4M3}, r"scales: must be finite, got nan at \[0, 0\]"),
        ({"scale2": math.nan}, "scale2: must be finite in float32, got nan"),
        ({"scale2": np.array([1, math.inf])}, r"scale2: must be finite in float32, got inf at \[1\]"),
        ({"scale2": 1e39}, r"scale2: must be finite in float32, got 1e\+39"),
        ({"scale2": 2**200}, r"scale2: must be finite in float32, got 1.6069\d*e\+60$"),
        ({"scale2": -(10**5000)}, "scale2: must be finite in float32, got an int of 16610 bits$"),
        ({"scale2": SCALES_2}, r"scale2: expected one number, or one for each row, \[N\] = \[2\], got shape \[2, 2\]"),
        ({"scale2": 1.0, "offsets": SCALES_2}, "scale2, offsets: at most one of them may be given, got both"),
        (
            {"group_size": "tensor"},
            r"scales: expected shape \[1, 1\] with group_size='tensor' = \[1, 1\], got \[2, 2\]",
        ),
        (
            {"group_size": "tensor", "scales": SCALES_2[:1, :1], "zeros": SCALES_2},
            r"zeros: expected shape \[1, 1\] with",
        ),
        ({"lut": TABLE}, "dtype: must be None or uint2 with a lut of 4 values, got int6; the lut gives the values"),
        ({"lut": TABLE, "dtype": "uint2", "codes": CODES + 4}, r"codes: must be in 0\.\.3 for uint2, got 4"),
        (
            {"lut": TABLE, "dtype": None, "zeros": SCALES_2},
            "zeros: allowed for integer types only, got dtype 2-bit table",
        ),
        (
            {"lut": np.zeros((3, 4), np.float32), "dtype": None},
            r"lut: expected shape \[4\], \[2, 4\] or \[2, 2, 4\] \(\[2\*\*b\], .*\), got \[3, 4\]",
        ),
        ({"lut": np.zeros((2, 3, 4), np.float32), "dtype": None}, r"lut: expected shape .*, got \[2, 3, 4\]"),
        ({"lut": TABLE + np.float32(np.inf), "dtype": None}, r"lut: must be finite, got inf at \[0\]"),
    ],
)
def test_refuses_values(changes: dict[str, Any], message: str) -> None:
    arguments = {"codes": CODES, "dtype": "int6", "scales": SCALES_2, "group_size": 4, **changes}
    with pytest.raises(LowlpValueError, match=message):
        lowlp.QuantizedTensor(arguments.pop("codes"), **arguments)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    scales = torch.tensor([[0.5], [0.25]])
    codes = torch.tensor([[1, 2], [7, 0]], dtype=torch.uint8)
    for kind in ("float8_e8m0fnu", "float8_e4m3fn"):
        q = lowlp.QuantizedTensor(
            codes, dtype="f4e2m1", scales=scales.to(getattr(torch, kind)), scale2=torch.tensor(2.0), lut=None
        )
        assert q.scales.dtype == getattr(ml_dtypes, kind)
        np.testing.assert_array_equal(q.dequantize(), [[0.5, 1], [3, 0]])
