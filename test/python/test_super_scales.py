"""Scales in two levels: what they mean, their bytes, files, slices and errors; and products by the kernel without
stages, of integers whose bytes kernels with stages do not take."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from linear_matrix import TYPES, Config

import lowlp
from lowlp.cli import main
from lowlp.errors import LowlpTypeError, LowlpValueError
from lowlp.kernels.linear.choosing import kind_of, schedule_for
from lowlp.kernels.linear.fitting import weight_bytes
from lowlp.kernels.linear.operands import host_operands
from lowlp.kernels.linear.schedule import Schedule
from lowlp.kernels.linear.spec import LinearSpec
from lowlp.numeric.codec import Codec
from lowlp.numeric.group_codes import packed_codes, unpacked_codes
from lowlp_runtime.operand_arrays import host_operands as arrays_of_operands
from lowlp_runtime.product import Product
from lowlp_runtime.product_arguments import check_weights
from lowlp_runtime.stored_weights import StoredWeights

RNG = np.random.default_rng(0)
N, K = 64, 512


def k_quant(name: str) -> lowlp.QuantizedTensor:
    """Random weights of a type of GGUF."""
    bits, group = int(name[1]), 32 if name in ("Q4_K", "Q5_K") else 16
    low, high, kind = {"Q2_K": (0, 16, "uint4"), "Q3_K": (-32, 32, "int6"), "Q6_K": (-128, 128, "int8")}.get(
        name, (0, 64, "uint8")
    )
    supers = RNG.normal(0, 0.01, (2, N, K // 256)).astype(np.float16)
    scales, offsets = RNG.integers(low, high, (2, N, K // group)).astype(np.int8 if low else np.uint8)
    minima = {"offsets": offsets, "super_offsets": -abs(supers[1])} if name in ("Q2_K", "Q4_K", "Q5_K") else {}
    return lowlp.QuantizedTensor(
        RNG.integers(0, 1 << bits, (N, K)).astype(np.uint8),
        dtype=f"uint{bits}" if minima else f"int{bits}",
        scales=scales,
        super_scales=supers[0],
        super_group_size=256,
        scale_dtype=kind,
        group_size=group,
        **minima,
    )


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("group", "super_group"), [(96, 96), (80, 160), (112, 112), (144, 288), (32, 96), (96, 192)])
@pytest.mark.parametrize("m", [3, 20, 100])
def test_super_groups_begin_anywhere_in_a_unit(group: int, super_group: int, m: int) -> None:
    n, k = 144, 2 * super_group if super_group > 150 else 6 * super_group
    rng = np.random.default_rng(group)
    qw = lowlp.QuantizedTensor(
        rng.integers(0, 16, (n, k)).astype(np.uint8),
        dtype="uint4",
        scales=rng.integers(1, 127, (n, k // group)).astype(np.uint8),
        super_scales=rng.uniform(0.001, 0.01, (n, k // super_group)).astype(np.float16),
        group_size=group,
        super_group_size=super_group,
    )
    rows = rng.permutation(k)[:m]
    y = lowlp.linear(np.eye(k, dtype=np.float16)[rows], qw)
    np.testing.assert_array_equal(y, qw.dequantize()[:, rows].T.astype(np.float16))


# Bits a weight of a file, ggml-common.h; those of Q4_K and Q5_K have integers of 6 bits in bytes of 8 here.
FILE_BITS = {"Q2_K": 2.625, "Q3_K": 3.4375, "Q4_K": 4.5, "Q5_K": 5.5, "Q6_K": 6.5625}


@pytest.mark.parametrize("name", FILE_BITS)
def test_k_quants_take_the_bytes_of_their_files_and_are_kept_as_they_are(name: str) -> None:
    qw = k_quant(name)
    bits = 8 * qw.nbytes / (N * K)
    assert FILE_BITS[name] <= bits <= (1.03 if name in ("Q4_K", "Q5_K") else 1) * FILE_BITS[name]
    assert bits * N * K / 8 == weight_bytes(LinearSpec(N, K, qw.codec))
    assert lowlp.QuantizedTensor.from_arrays(*qw.to_arrays()) == qw
    exact = qw.dequantize()
    np.testing.assert_array_equal(qw[:32, 256:].dequantize(), exact[:32, 256:])
    np.testing.assert_array_equal(lowlp.concat([qw, qw[:32]]).dequantize(), np.concatenate([exact, exact[:32]]))
    with pytest.raises(LowlpValueError, match="units of 64 weights and super-groups of 256; the next boundaries are 0"):
        qw[:, 64:]


def block_of_q4_k(block: bytes) -> Any:
    """The 256 weights of 144 bytes, as dequantize_row_q4_K of ggml-quants.c has them, and d, dmin, the scales, minima
    and codes."""
    d, dmin = np.frombuffer(block[:4], np.float16)
    s, qs = np.frombuffer(block[4:16], np.uint8), np.frombuffer(block[16:], np.uint8).reshape(4, 32)
    scales = np.concatenate([s[:4] & 63, (s[8:] & 15) | (s[:4] >> 6 << 4)])
    minima = np.concatenate([s[4:8] & 63, (s[8:] >> 4) | (s[4:8] >> 6 << 4)])
    codes = np.stack([qs & 15, qs >> 4], axis=1).reshape(8, 32)
    d1, m1 = np.float32(d) * scales.astype(np.float32), np.float32(dmin) * minima.astype(np.float32)
    return (d1[:, None] * codes - m1[:, None]).reshape(256), d, dmin, scales, minima, codes.reshape(256)


def test_a_block_of_q4_k_means_what_ggml_computes() -> None:
    rows = []
    for _ in range(16):
        halves = RNG.normal(0, 0.1, 2).astype(np.float16).tobytes()
        rows.append(block_of_q4_k(halves + RNG.integers(0, 256, 140).astype(np.uint8).tobytes()))
    wanted, d, dmin, scales, minima, codes = (np.stack(part) for part in zip(*rows, strict=True))
    qw = lowlp.QuantizedTensor(
        codes,
        dtype="uint4",
        group_size=32,
        scales=scales,
        offsets=minima,
        super_scales=d[:, None],
        super_offsets=-dmin[:, None],
        super_group_size=256,
    )
    assert str(qw.codec) == "uint4 g32 uint8 offsets:uint8 super:f16:g256"
    np.testing.assert_array_equal(qw.dequantize(), wanted)


def test_products_round_before_they_multiply() -> None:
    """With super-scales of 24 bits (S * s) * q and S * (s * q) differ."""
    supers = RNG.uniform(1, 2, (256, 1)).astype(np.float32)
    qw = lowlp.QuantizedTensor(
        np.full((256, 1), 13, np.uint8), dtype="uint4", scales=np.full((256, 1), 201, np.uint8), super_scales=supers
    )
    wanted = supers * np.float32(201) * np.float32(13)
    np.testing.assert_array_equal(qw.dequantize(), wanted)
    assert (wanted != supers * np.float32(201 * 13)).any()
    assert qw.super_group_size == 1 and "super_scales=f32 of channel" in repr(qw)


@pytest.mark.parametrize("name", ["uint4", "int6"])
@pytest.mark.parametrize("groups", [1, 3, 4, 9])
def test_narrow_integers_lie_one_after_the_other(name: str, groups: int) -> None:
    kind = lowlp.dtype(name)
    codes = RNG.integers(int(kind.min), int(kind.max) + 1, (5, groups)).astype(np.int8 if kind.is_signed else np.uint8)
    stored = packed_codes(codes, name)
    whole = [
        sum((int(code) & (1 << kind.bits) - 1) << kind.bits * place for place, code in enumerate(row)) for row in codes
    ]
    assert [int.from_bytes(row.tobytes(), "little") for row in stored] == whole
    assert stored.shape == (5, -(-groups * kind.bits // 8))
    np.testing.assert_array_equal(unpacked_codes(stored, name, groups), codes)


@pytest.mark.parametrize(
    "config",
    [
        Config("uint4", 64, "f16", "offsets", "uint4"),
        Config("int3", 32, "bf16", "integer zeros", "int6"),
        Config("lut4 group", 32, "f16", "", "int8"),
        Config("f4e2m1", 8, "f16", "", "int6"),
        Config("uint4", 128, "bf16", "", "uint8"),
    ],
    ids=str,
)
def test_rows_of_the_identity_by_whatever_kernel_is_chosen(config: Config) -> None:
    k = 384
    qw = config.weights(70, k, seed=1)
    y = lowlp.linear(np.eye(k, dtype=TYPES[config.activation])[::29], qw)
    np.testing.assert_array_equal(y.T, qw.dequantize()[:, ::29].astype(y.dtype))


@pytest.mark.parametrize("codec", ["uint4 g32 uint8 offsets:uint8 super:f16:g256", "int6 g16 int8 super:f16:g256",
                                   "uint2 g16 uint4 offsets:uint4 super:f16:g256", "int3 g16 int6 super:f16:g256",
                                   "uint4 g128 uint8 zeros:uint8 super:f16:channel"])  # fmt: skip
def test_every_number_of_rows_has_a_kernel_with_stages(codec: str) -> None:
    spec = LinearSpec(4096, 14336, Codec.parse(codec), aligned=True)
    for m in (1, 24, 100, 4096):
        schedule = schedule_for(spec, m)
        assert schedule.stages and (schedule.warpgroups > 0 or m <= 32)
    assert kind_of(spec) != kind_of(LinearSpec(4096, 14336, Codec(spec.codec.code, spec.codec.group)))


@pytest.mark.parametrize(
    ("kind", "always", "many_rows", "never"),
    [
        ("uint4", (16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 224, 256, 288), (), ()),
        ("int6", (16, 48, 64, 80, 112, 128, 144, 192, 256), (32, 96), (160, 224, 288)),
    ],
)
def test_groups_of_narrow_integers_that_have_kernels_with_stages(
    kind: str, always: tuple[int, ...], many_rows: tuple[int, ...], never: tuple[int, ...]
) -> None:
    """As docs/codecs.md lists them."""
    for group in (*always, *many_rows, *never):
        spec = LinearSpec(4096, 16 * math.lcm(group, 256), Codec.parse(f"uint4 g{group} {kind} super:f16:channel"))
        found = tuple(schedule_for(replace(spec, aligned=True), m).stages > 0 for m in (1, 16, 64, 1024))
        assert found == (*[group in always] * 2, *[group not in never] * 2), group


GOOD = {
    "dtype": "uint4",
    "scales": np.ones((2, 4), np.uint8),
    "super_scales": np.ones((2, 2), np.float16),
    "group_size": 4,
    "super_group_size": 8,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scales": np.ones((2, 4), np.float16)}, "scales: expected elements of an integer type, which super_scales"),
        (
            {"scales": np.ones((2, 4), np.int32)},
            "scales: expected elements of uint8 or int8, or a scale_dtype, got int3",
        ),
        ({"scale_dtype": "f16"}, "scale_dtype: must be one of uint4, int6, uint8, int8, got 'f16'"),
        ({"scale_dtype": "uint4", "scales": GOOD["scales"] * 16}, r"scales: must be in 0..15 for uint4, got 16"),
        ({"scale_dtype": "int6", "scales": GOOD["scales"] * 32}, r"scales: must be in -32..31 for int6, got 32"),
        ({"super_group_size": 6}, "super_group_size: must be a multiple of group_size = 4, got 6"),
        ({"super_group_size": 2.5}, "super_group_size: expected an int, or None for a whole row, got 2.5"),
        ({"super_scales": np.ones((2, 3), np.float16)}, r"super_scales: expected shape .* = \[2, 2\], got \[2, 3\]"),
        (
            {"super_scales": GOOD["scales"]},
            "super_scales: expected elements of float16, bfloat16 or float32, got uint8",
        ),
        ({"super_scales": np.full((2, 2), np.inf, np.float16)}, r"super_scales: must be finite, got inf at \[0, 0\]"),
        ({"super_scales": None}, "super_group_size: goes with super_scales, which are not given; got 8"),
        ({"super_offsets": GOOD["super_scales"]}, "super_offsets: multiply offsets, which are not given"),
        (
            {"offsets": GOOD["scales"], "super_offsets": np.ones((2, 2), np.float32)},
            "super_offsets: expected elements of the type of super_scales, float16, got float32",
        ),
        ({"offsets": GOOD["scales"]}, "offsets: expected elements of float16, bfloat16 or float32, got uint8"),
        (
            {"offsets": np.ones((2, 4), np.float16), "super_offsets": GOOD["super_scales"]},
            "offsets: expected elements of an integer type, which super_offsets multiply, got float16",
        ),
        (
            {"super_scales": None, "super_group_size": None, "super_offsets": GOOD["super_scales"]},
            "super_offsets: goes with super_scales, which are not given; got ndarray$",
        ),
        (
            {"super_group_size": 4 * 10**30},
            r"super_group_size: must be a multiple of group_size = 4 of at most 2\^63 - 1, got 4000",
        ),
        ({"scale2": 2.0}, "scale2, super_scales: at most one of them may be given, got both"),
        (
            {
                "group_size": "tensor",
                "scales": np.ones((1, 1), np.uint8),
                "super_scales": np.ones((1, 1), np.float16),
                "super_group_size": None,
            },
            "super_scales: expected groups of rows, got one group for the whole tensor",
        ),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((LowlpTypeError, LowlpValueError), match=message):
        lowlp.QuantizedTensor(np.zeros((2, 16), np.uint8), **{**GOOD, **changes})


def test_super_groups_as_long_as_a_row_or_longer() -> None:
    codes, ones = np.arange(32, dtype=np.uint8).reshape(2, 16) % 16, np.ones((2, 1), np.uint8)
    arguments = {"dtype": "uint4", "scales": ones, "super_scales": ones.astype(np.float16)}
    row = lowlp.QuantizedTensor(codes, **arguments)
    for size in (16, 32):
        assert lowlp.QuantizedTensor(codes, **arguments, super_group_size=size) == row
    far = lowlp.QuantizedTensor(codes, **arguments, group_size=16, super_group_size=2**62)
    np.testing.assert_array_equal(far.dequantize(), codes)
    assert lowlp.quantize(codes.astype(np.float32), far.codec).codec == far.codec
    with pytest.raises(LowlpValueError, match=r"super_group: must be at most 2\^63 - 1, got an int of 100 bits"):
        Codec(lowlp.dtype("uint4"), 32, "uint8", super_scale="f16", super_group=10**30)


def test_types_of_integers_are_taken_by_name_and_as_they_are() -> None:
    qw = lowlp.QuantizedTensor(np.zeros((2, 16), np.uint8), **GOOD, scale_dtype=lowlp.dtype("uint4"))
    assert qw.codec.scale == "uint4"
    both = Codec.parse("uint4 g32 uint8 offsets:int8 super:f16:g64")
    assert lowlp.quantize(np.eye(16, 64, dtype=np.float32), both).codec == both


def test_a_compiled_kernel_has_integers_that_tensors_have() -> None:
    levels = {"scale_dtype": "uint8", "super_scale_dtype": "f16", "group_size": 32}
    with pytest.raises(LowlpValueError, match=r"offsets, with scales of uint8: must be one of .*int8, got 'uint4'"):
        lowlp.compile_linear(n=256, k=512, m=(1, 16), weight="uint4", offsets="uint4", **levels)
    with pytest.raises(LowlpValueError, match=r"super_group_size: must be .* at most 2\^63 - 1, got 3200"):
        lowlp.compile_linear(n=256, k=512, weight="uint4", super_group_size=32 * 10**30, **levels)


@pytest.mark.parametrize("name", ["int1", "uint1"])
def test_one_bit_needs_negative_scales(name: str) -> None:
    codec = Codec.parse(f"{name} g16 uint8 super:f16:g64")
    with pytest.raises(LowlpValueError, match=f"{name} without zero points needs negative scales, which uint8 has not"):
        lowlp.quantize(-np.eye(16, 64, dtype=np.float32), codec)


def test_a_header_says_what_is_wrong_with_it() -> None:
    arrays, header = k_quant("Q3_K").to_arrays()
    fields = json.loads(header)
    assert fields["scales"] == "int6" and fields["super"] == {"type": "f16", "group": 256}
    for super_field in ({"type": "int8", "group": 256}, {"type": "f16", "group": 0}, 5):
        with pytest.raises(LowlpValueError, match="header: super must be a type of f16, bf16, f32 and a group"):
            lowlp.QuantizedTensor.from_arrays(arrays, json.dumps({**fields, "super": super_field}))
    with pytest.raises(LowlpValueError, match=r"scales: expected shape \[64, 24\], got \[64, 23\]"):
        lowlp.QuantizedTensor.from_arrays({**arrays, "scales": arrays["scales"][:, :23]}, header)


def test_experts_and_torch() -> None:
    torch = pytest.importorskip("torch")
    qw = k_quant("Q2_K")
    parts = {name: getattr(qw, name) for name in ("scales", "offsets", "super_scales", "super_offsets")}
    both = {name: torch.from_numpy(np.stack([part, part])) for name, part in parts.items()}
    experts = lowlp.QuantizedTensor(
        torch.from_numpy(np.stack([qw.codes, qw.codes])),
        dtype="uint2",
        group_size=16,
        super_group_size=256,
        scale_dtype="uint4",
        **both,
    )
    assert experts[1] == qw and experts.scales.shape == (2, N, K // 16)
    assert experts.super_scales is not None and experts.super_scales.shape == (2, N, 2)
    assert lowlp.QuantizedTensor.from_arrays(*experts.to_arrays()) == experts


def test_a_compiled_kernel_takes_weights_of_its_levels_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    qw = k_quant("Q4_K")
    arguments = {"n": N, "k": K, "weight": "uint4", "group_size": 32, "schedule": Schedule()}
    levels = {"scale_dtype": "uint8", "offsets": "uint8", "super_scale_dtype": "f16", "super_group_size": 256}
    kernel = lowlp.compile_linear(**arguments, **levels)
    product = kernel.description.product
    assert product is not None and Product.from_json(product.to_json()) == product
    kernel.save(tmp_path / "k.lowlp")
    assert main(["inspect", str(tmp_path / "k.lowlp")]) == 0
    assert f"uint4 weights [{N}, {K}], groups of 32, super-groups of 256\n" in capsys.readouterr().out
    stored = StoredWeights.of(qw)
    check_weights(kernel.binary, product, stored)
    made = arrays_of_operands(product.operands, {name: stored.read(name) for name in stored.arrays})
    wanted = host_operands(qw, "f16")
    assert list(made) == list(wanted)
    for name, found in made.items():
        assert np.asarray(found).tobytes() == np.asarray(wanted[name]).tobytes(), name
    # As many super-scales, of other weights.
    other = replace(product, super_group_size=384)
    with pytest.raises(LowlpValueError, match=r"qw: its super-group size is 256, and kernel .* takes 384"):
        check_weights(kernel.binary, other, stored)
    with pytest.raises(LowlpValueError, match=r"qw: its super-group size is None, and kernel .* takes 256"):
        check_weights(kernel.binary, product, StoredWeights.of(lowlp.quantize(qw.dequantize(), "uint4", 32)))
    before = {name: value for name, value in product.to_json().items() if name != "super_group_size"}
    assert Product.from_json(before).super_group_size is None
    # A row that is shorter than a super-group has one super-scale.
    short = lowlp.compile_linear(**{**arguments, "k": 128}, **levels)
    assert short.description.product is not None
    check_weights(short.binary, short.description.product, StoredWeights.of(lowlp.quantize(np.eye(N, 128), qw.codec)))
    for change, message in (
        ({"super_scale_dtype": None}, "super_group_size: goes with super_scale_dtype, which is not given; got 256"),
        ({"scale_dtype": "f16"}, "scale_dtype: must be one of uint4, int6, uint8, int8, got 'f16'"),
        ({"super_group_size": 48}, "super_group_size: must be a multiple of group_size = 32, got 48"),
        ({"scale2": True}, "scale2, super_scales: at most one of them may be given, got both"),
    ):
        with pytest.raises(LowlpValueError, match=message):
            lowlp.compile_linear(**{**arguments, **levels, **change})


@pytest.mark.parametrize(
    "codec",
    [
        "uint4 g32 uint8 offsets:uint8 super:f16:g256",
        "uint5 g32 int8 offsets:int8 super:bf16:g128",
        "int6 g16 int8 super:f16:g256",
        "int3 g16 int6 super:f16:g256",
        "uint2 g16 uint4 offsets:uint4 super:f16:g256",
        "uint4 g32 uint8 zeros:uint8 super:f16:channel",
        "f4e2m1 g32 uint8 offsets:f16 super:f32:g64",
    ],
)
def test_quantize_puts_no_weight_out_of_range(codec: str) -> None:
    wanted = Codec.parse(codec)
    w = RNG.standard_t(5, (N, K)).astype(np.float32)
    w[3, 32:64] = w[5] = 0
    if wanted.offsets and not wanted.code.is_integer:  # type: ignore[union-attr]
        with pytest.raises(LowlpValueError, match="zero_point: allowed for integer types only"):
            lowlp.quantize(w, wanted)
        return
    qw = lowlp.quantize(w, wanted)
    assert qw.codec == wanted
    values = qw.dequantize()
    assert not values[5].any() and not values[3, 32:64].any()
    of_row = qw.super_group_size or K
    scales = np.repeat(qw.super_scales.astype(np.float32), of_row // qw.group_size, axis=1)  # type: ignore[union-attr]
    steps = np.abs(np.repeat(scales[:, : K // qw.group_size] * qw.scales.astype(np.float32), qw.group_size, axis=1))
    # int3 clips weights of one sign to 3/4 of the largest.
    slack = 1.0 if qw.dtype.name == "int3" else 0.501
    assert (np.abs(values - w) <= slack * steps + 1e-6).all()
    one_level = lowlp.quantize(
        w, str(wanted.code), wanted.group, bool(wanted.zeros) or (bool(wanted.offsets) and "offset")
    )  # type: ignore[arg-type]
    better = lowlp.quantize(w, wanted, search=True)
    errors = [float(np.linalg.norm(found.dequantize() - w)) for found in (qw, one_level, better)]
    assert errors[2] <= errors[0] <= 1.15 * errors[1]
