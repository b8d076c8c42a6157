"""Weights are packed: families, slices, concatenations, copies, and arrays for files."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pytest

import lowlp
from lowlp.errors import LowlpTypeError, LowlpValueError, RepackWarning
from lowlp.weights.families import FAMILIES, are_placed_alike
from lowlp_runtime.stored_weights import StoredWeights

RANDOM = np.random.default_rng(0)


def gaussian(n: int, k: int) -> Any:
    return RANDOM.normal(0, 0.02, (n, k)).astype(np.float32)


KINDS: dict[str, dict[str, Any]] = {
    "int1": {"dtype": "int1"},
    "int2 e4m3": {"dtype": "int2", "scale_dtype": "e4m3"},
    "int3 bf16": {"dtype": "int3", "scale_dtype": "bf16", "activation": "bf16"},
    "uint4 zeros": {"dtype": "uint4", "zero_point": True},
    "uint5 float zeros": {"dtype": "uint5", "zero_point": "float", "scale_dtype": "bf16"},
    "uint6 offsets": {"dtype": "uint6", "zero_point": "offset", "scale_dtype": "f32"},
    "mxfp4": {"dtype": "f4e2m1", "scale_dtype": "e8m0", "group_size": 32},
    "f8e6m1": {"dtype": "f8e6m1", "scale_dtype": "bf16"},
    "tensor": {"dtype": "int8", "group_size": "tensor"},
    "channel": {"dtype": "f6e3m2", "group_size": None},
    "nf4": {"lut": lowlp.nf(4)},
    "tables of rows": {"lut": RANDOM.normal(size=(192, 8)).astype(np.float16)},
    "tables of groups": {"lut": RANDOM.normal(size=(192, 6, 4)).astype(np.float32)},
    "s8": {"dtype": "int4", "activation": "int8"},
}
MADE = {name: lowlp.quantize(gaussian(192, 384), **{"group_size": 64, **kind}) for name, kind in KINDS.items()}
every_kind = pytest.mark.parametrize("name", KINDS)


def test_a_tensor_costs_its_words_and_scales() -> None:
    tracemalloc.start()
    try:
        qw = lowlp.quantize(np.ones((512, 4096), np.float16), "int4")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert qw.nbytes == 512 * 4096 // 2 + 512 * 32 * 2
    assert held < qw.nbytes * 1.02 + 20_000
    assert qw.codes is not qw.codes


@every_kind
def test_words_are_what_pack_makes_of_the_codes(name: str) -> None:
    qw = MADE[name]
    assert qw.family == {"int3 bf16": "bf16", "f8e6m1": "bf16", "s8": "s8"}.get(name, "f16")
    arguments = (qw.group_size, qw.codec.code, FAMILIES[qw.family])
    np.testing.assert_array_equal(lowlp.pack(qw.codes, *arguments), qw.packed)
    np.testing.assert_array_equal(lowlp.unpack(qw.packed, *qw.shape, *arguments), qw.codes)


@every_kind
def test_copies_are_equal_and_keep_nothing_else(name: str) -> None:
    qw = MADE[name]
    qw.derived("kept", lambda: {"zeros": np.zeros(100)})
    arrays, header = qw.to_arrays()
    for made in (pickle.loads(pickle.dumps(qw)), copy.deepcopy(qw), copy.copy(qw), qw.from_arrays(arrays, header)):
        assert made == qw and hash(made) == hash(qw) and made.codec == qw.codec
        assert made.nbytes == qw.nbytes - 800
        np.testing.assert_array_equal(made.dequantize(), qw.dequantize())


def test_what_makes_tensors_differ() -> None:
    qw = MADE["uint4 zeros"]
    arrays, header = qw.to_arrays()
    for name, array in arrays.items():
        changed = array.copy()
        changed.reshape(-1).view(np.uint8)[0] ^= 1
        assert lowlp.QuantizedTensor.from_arrays({**arrays, name: changed}, header) != qw
    assert qw.pack_for("bf16") != qw and qw[:96] != qw and qw != 3


@every_kind
def test_slices_mean_parts_of_the_weights(name: str) -> None:
    qw, whole = MADE[name], MADE[name].dequantize()
    for rows, columns in (
        (slice(64, 128), slice(None)),
        (slice(-64, None), slice(128, 256)),
        (slice(None), slice(192)),
    ):
        part = qw[rows, columns]
        np.testing.assert_array_equal(part.dequantize(), whole[rows, columns])
        assert np.shares_memory(part.packed, qw.packed)
        assert part == pickle.loads(pickle.dumps(part))
    halves = lowlp.concat([qw[:64], qw[64:]])
    assert halves == qw


def test_products_of_slices() -> None:
    qw = lowlp.quantize(gaussian(48, 256), "int4", 64)
    x = RANDOM.normal(size=(3, 256)).astype(np.float16)
    whole = lowlp.linear(x, qw)
    np.testing.assert_array_equal(lowlp.linear(x, qw[16:]), whole[:, 16:])
    part = lowlp.linear(x[:, 64:192], qw[:, 64:192], out_dtype="f32")
    exact = x[:, 64:192].astype(float) @ qw.dequantize()[:, 64:192].T.astype(float)
    np.testing.assert_allclose(part, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::lowlp.errors.PaddingWarning")
def test_scales_that_begin_anywhere() -> None:
    x = RANDOM.normal(size=(3, 192)).astype(np.float16)
    scales = RANDOM.uniform(0.5, 2, (1, 8)).astype(np.float16)
    parts: dict[str, Any] = {"dtype": "uint4", "group_size": 32}
    row = lowlp.QuantizedTensor(np.ones((1, 256), np.uint8), scales=scales, **parts)[:, 64:]
    same = lowlp.QuantizedTensor(np.ones((1, 192), np.uint8), scales=scales[:, 2:].copy(), **parts)
    np.testing.assert_array_equal(lowlp.linear(x, row), lowlp.linear(x, same))
    column = RANDOM.uniform(0.5, 2, 33).astype(np.float16)[1:].reshape(32, 1)
    assert column.ctypes.data % 16
    results = [
        lowlp.linear(x, lowlp.QuantizedTensor(np.ones((32, 192), np.uint8), dtype="uint4", scales=given))
        for given in (column, column.copy())
    ]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (np.s_[:20], LowlpValueError, "rows: 20 is not between units of 16 rows; the next boundaries are 16 and 32"),
        (np.s_[40:45], LowlpValueError, "rows: 40 is not between .* are 32 and 45"),
        (
            np.s_[:, 32:],
            LowlpValueError,
            "columns: 32 is not between units of 64 weights and groups of 32; .* 0 and 64",
        ),
        (np.s_[:, :270], LowlpValueError, "columns: 270 is not between .*; the next boundaries are 256 and 288"),
        (np.s_[16:16], LowlpValueError, "rows: expected at least one, got 16:16 of 45"),
        (np.s_[::2], LowlpValueError, "rows: expected a slice without a step, got one of 2"),
        (3, LowlpTypeError, r"index: expected qw\[a:b\] or qw\[a:b, c:d\], got 3"),
        (np.s_["a":], LowlpTypeError, "rows: expected a slice of ints"),
    ],
)
def test_refused_slices(index: Any, error: type[Exception], message: str) -> None:
    qw = lowlp.quantize(gaussian(45, 288), "int6", 32)
    with pytest.raises(error, match=message):
        qw[index]


def test_refused_concatenations() -> None:
    qw, small = MADE["nf4"], lowlp.quantize(gaussian(20, 384), lut=lowlp.nf(4), group_size=64)
    assert lowlp.concat([qw, small]).shape == (212, 384)
    for tensors, message in (
        ([small, qw], r"tensors\[0\]: .* units of 16 rows, .* got 20 rows; the next boundaries are 16 and 32"),
        ([qw, qw.pack_for("bf16")], r"tensors\[1\]: must have the family of the first, f16, got bf16"),
        ([qw, MADE["int1"]], r"tensors\[1\]: must have the codec of the first, lut4"),
        ([qw, qw[:, :128]], r"tensors\[1\]: must have the K of the first, 384, got 128"),
        ([MADE["tensor"], lowlp.quantize(gaussian(64, 384), "int8", "tensor")], "the scales of the first"),
        ([], "tensors: expected at least one"),
    ):
        with pytest.raises(LowlpValueError, match=message):
            lowlp.concat(tensors)
    with pytest.raises(LowlpTypeError, match="tensors: expected a list of QuantizedTensor"):
        lowlp.concat([qw, 3])  # type: ignore[list-item]


def test_words_of_another_family_are_made_once_and_counted() -> None:
    qw = lowlp.quantize(gaussian(48, 256), "int6", 64)
    x = RANDOM.normal(size=(3, 256)).astype(
        lowlp.quantize(gaussian(1, 64), "int4", 64, scale_dtype="bf16").scales.dtype
    )
    before = qw.nbytes
    bytes_kept = qw.packed.nbytes
    with pytest.warns(RepackWarning, match=f"packed for f16 and used with bf16 .* {bytes_kept} more bytes") as caught:
        y = lowlp.linear(x, qw)
    assert caught[0].filename == __file__
    assert qw.nbytes >= before + bytes_kept
    repacked = qw.pack_for("bf16")
    assert repacked.family == "bf16" and repacked.pack_for("f16") == qw
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(lowlp.linear(x, qw), y)
        np.testing.assert_array_equal(lowlp.linear(x, repacked), y)


def test_families_that_place_alike_share_words() -> None:
    assert are_placed_alike(lowlp.dtype("int6"), "f16", "bf16") is False
    assert are_placed_alike(lowlp.dtype("int8"), "f16", "bf16") is True
    qw = lowlp.quantize(gaussian(16, 64), "int8", 64)
    assert np.shares_memory(qw.pack_for("bf16").packed, qw.packed)
    assert np.shares_memory(qw.packed_for("bf16"), qw.packed)


@pytest.mark.parametrize(
    ("activation", "error", "message"),
    [
        ("f32", LowlpValueError, "activation: must be one of f16, bf16, s8, e4m3, b1, or .*, got 'f32'"),
        (3, LowlpTypeError, "activation: expected the name of a family"),
        ("s8", LowlpValueError, "activation: the packed format has no placement of f6e3m2 for family s8"),
    ],
)
def test_refused_families(activation: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lowlp.quantize(gaussian(16, 64), "f6e3m2", 64, activation=activation)
    with pytest.raises(error, match=message):
        MADE["channel"].pack_for(activation)


def test_packed_words_are_checked() -> None:
    qw = MADE["uint4 zeros"]
    arguments: dict[str, Any] = {"dtype": "uint4", "scales": qw.scales, "zeros": qw.zeros, "group_size": 64}
    made = lowlp.QuantizedTensor.from_packed(qw.packed, qw.shape, **arguments)
    assert made == qw and np.shares_memory(made.packed, qw.packed)
    shifted = np.zeros(qw.packed.nbytes + 20, np.uint8)[4 : 4 + qw.packed.nbytes].view(np.uint32)
    shifted[:] = qw.packed.reshape(-1)
    shifted = shifted.reshape(qw.packed.shape)
    aligned = lowlp.QuantizedTensor.from_packed(shifted, qw.shape, **arguments)
    assert aligned == qw and aligned.packed.ctypes.data % 16 == 0
    with pytest.raises(LowlpTypeError, match="packed: expected uint32, got int32"):
        qw.from_packed(qw.packed.view(np.int32), qw.shape, **arguments)
    with pytest.raises(
        LowlpValueError, match=r"packed: expected shape \[11, 6, 1, 32, 4\] for int4.f16 of \[176, 384\]"
    ):
        qw.from_packed(qw.packed, (176, 384), **{**arguments, "scales": qw.scales[:176], "zeros": None})
    with pytest.raises(LowlpTypeError, match=r"shape: expected \(N, K\) or \(E, N, K\), got 3"):
        qw.from_packed(qw.packed, 3, **arguments)  # type: ignore[arg-type]
    codes = np.zeros((40, 64), np.uint8)
    codes[37, 5] = 0x7F
    with pytest.raises(LowlpValueError, match=r"codes: \[37, 5\] is 0x7f, NaN or infinity in f8e4m3"):
        qw.from_packed(
            lowlp.pack(codes, 64, "f8e4m3", "f16"), (40, 64), dtype="f8e4m3", scales=np.ones((40, 1), np.float16)
        )


def test_headers_and_arrays_are_checked() -> None:
    arrays, header = MADE["int3 bf16"].to_arrays()
    fields = json.loads(header)
    assert {name: array.dtype.name for name, array in arrays.items()} == {"packed": "uint32", "scales": "uint16"}
    load = lowlp.QuantizedTensor.from_arrays
    for changes, message in (
        ({"version": 7}, "header: version 7 is not known; this lowlp reads 1"),
        ({"packed_format": 1}, "header: packed_format 1 is not known; this lowlp reads"),
        ({"kind": "other"}, "header: expected an object whose kind is 'lowlp.QuantizedTensor'"),
        ({"scales": "f64"}, "header: scales must be one of .*, got 'f64'"),
        ({"scales": "f16"}, "scales: expected float16 for f16, got uint16"),
        ({"zeros": "uint8"}, "arrays: expected packed, scales, zeros, got packed, scales"),
        ({"family": "f16", "shape": [176, 384]}, "scales: expected shape"),
    ):
        with pytest.raises((LowlpValueError, LowlpTypeError), match=message):
            load(arrays, json.dumps({**fields, **changes}))
    del fields["family"]
    for wrong, message in (
        ("{", "header: no JSON"),
        ("[]", "header: expected an object"),
        (json.dumps(fields), "lacks"),
    ):
        with pytest.raises(LowlpValueError, match=message):
            load(arrays, wrong)
    with pytest.raises(LowlpValueError, match=r"arrays: expected packed, scales, got packed$"):
        load({"packed": arrays["packed"]}, header)


@pytest.mark.parametrize(
    ("name", "values", "allowed"),
    [
        ("group", (0, -1, "x", 1.5, [32], 100, 768), "a positive int that divides K = 384, 'channel' or 'tensor'"),
        (
            "shape",
            ([192], [0, 384], [192, True], "x", [[2], 384], [10**30, 384]),
            r"\[N, K\] or \[E, N, K\] of positive ints",
        ),
        ("scales", (None, ["f16"], {}), "one of f16, .*bf16"),
        ("zeros", (["f16"], "x", 0), "one of .*uint8.* or null"),
        ("offsets", (["u"], {}), "one of .*f16.* or null"),
        ("lut", ({}, ["f16"], "x"), "one of .*f16.* or null"),
        ("scale2", ({}, None, 1), "true or false"),
        ("dtype", (["int3"], None), "a str"),
        ("permutation", (None, ["int32"]), "int32"),
        ("super", [{"type": "f16", "group": group} for group in (0, -5, 1.5, 96)], "a type of f16, .* and a group"),
        ("super", (5, {}, {"type": ["bf16"], "group": 64}), "a type of f16, .* and a group"),
    ],
)
def test_malformed_fields_of_headers(name: str, values: tuple[object, ...], allowed: str) -> None:
    arrays, header = MADE["int3 bf16"].to_arrays()
    for value in values:
        changed = json.dumps({**json.loads(header), name: value})
        for load in (lowlp.QuantizedTensor.from_arrays, lambda *pair: StoredWeights.of(pair)):
            with pytest.raises(LowlpValueError, match=rf"header: {name} must be {allowed}.*, got "):
                load(arrays, changed)


def test_torch_reads_what_was_stored() -> None:
    torch = pytest.importorskip("torch")
    for name in ("int3 bf16", "mxfp4", "int2 e4m3"):
        arrays, header = MADE[name].to_arrays()
        tensors = {part: torch.from_numpy(array.copy()) for part, array in arrays.items()}
        assert lowlp.QuantizedTensor.from_arrays(tensors, header) == MADE[name]


@pytest.mark.parametrize("n", [32, 20])
@pytest.mark.parametrize(
    "kind",
    [
        {"dtype": "int6"},
        {"dtype": "uint4", "zero_point": True},
        {"dtype": "f4e2m1", "scale_dtype": "e4m3"},
        {"dtype": "int2", "group_size": "tensor"},
        {"lut": lowlp.nf(3)},
    ],
    ids=str,
)
def test_experts_are_their_matrices(kind: dict[str, Any], n: int) -> None:
    w = RANDOM.normal(size=(3, n, 128)).astype(np.float32)
    arguments = {"group_size": 64, **kind}
    qw = lowlp.quantize(w, **arguments)
    # All rows share what there is one of for a tensor, as if they were of one matrix.
    flat = lowlp.quantize(w.reshape(-1, 128), **arguments)
    assert qw.shape == (3, n, 128) and qw.packed.shape == (3, *qw[0].packed.shape)
    np.testing.assert_array_equal(qw.dequantize(), flat.dequantize().reshape(w.shape))
    np.testing.assert_array_equal(qw.codes.reshape(-1, 128), flat.codes)
    assert qw.scales.shape == ((1, 1) if flat.scales.shape == (1, 1) else (3, n, 2))
    for e in range(3):
        np.testing.assert_array_equal(qw[e].dequantize(), qw.dequantize()[e])
        assert np.shares_memory(qw[e].packed, qw.packed) and qw[e - 3] == qw[e]
    assert qw[1:].shape == (2, n, 128) and qw[1:][0] == qw[1]
    parts = {name: getattr(qw, name) for name in ("scales", "zeros", "scale2", "lut")}
    made = lowlp.QuantizedTensor(
        qw.codes, dtype=qw.dtype, group_size="tensor" if qw.codec.group == "tensor" else 64, **parts
    )
    assert made == qw == pickle.loads(pickle.dumps(qw)) == qw.pack_for("bf16").pack_for("f16")


def test_what_experts_are_not_for() -> None:
    qw = lowlp.quantize(RANDOM.normal(size=(3, 20, 128)).astype(np.float32), "f8e4m3", 64)
    with pytest.raises(LowlpValueError, match=r"qw: expected weights \[N, K\], got \[3, 20, 128\] of experts"):
        lowlp.linear(np.zeros((1, 128), np.float16), qw)
    with pytest.raises(LowlpValueError, match=r"qw: expected weights \[N, K\], got \[3, 20, 128\] of experts"):
        StoredWeights.of(qw)
    with pytest.raises(LowlpValueError, match=r"tensors\[0\]: expected weights \[N, K\], got shape \[3, 20, 128\]"):
        lowlp.concat([qw, qw])
    with pytest.raises(LowlpTypeError, match=r"index: expected qw\[e\] or qw\[a:b\] of weights \[E, N, K\]"):
        qw[0, :16]
    with pytest.raises(LowlpValueError, match=r"index: must be in -3..2, got 3"):
        qw[3]
    with pytest.raises(LowlpValueError, match=r"lut: expected one table .* got shape \[20, 4\]"):
        lowlp.quantize(np.zeros((3, 20, 128), np.float32), lut=np.zeros((20, 4), np.float32), group_size=64)
    with pytest.raises(LowlpValueError, match=r"scales: expected shape \[E, N, K / group_size\] = \[3, 20, 2\]"):
        lowlp.QuantizedTensor(qw.codes, dtype="f8e4m3", scales=qw.scales[0], group_size=64)
    codes = qw.codes.copy()
    codes[1, 3, 5] = 0x7F
    with pytest.raises(LowlpValueError, match=r"codes: \[1, 3, 5\] is 0x7f, NaN or infinity in f8e4m3"):
        lowlp.QuantizedTensor(codes, dtype="f8e4m3", scales=qw.scales, group_size=64)
