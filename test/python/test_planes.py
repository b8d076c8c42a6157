"""Products of planes: exact in int32 for all widths and kinds of codes; their schedules; no decoding.

A seeded sample of pairs of widths and kinds; all of them with LOWLP_WHOLE_MATRIX=1.
"""

from __future__ import annotations

import itertools
import os
import random

import numpy as np
import pytest
from plane_products import FILLS, KINDS, Operands, dtype_of, kernel_of, sums_of, wrapped

import lowlp
from lowlp.errors import LowlpValueError
from lowlp.kernels.linear.planes.program import LinearCode, PlanesSpec
from lowlp.kernels.linear.planes.shapes import choose_schedule, shared_bytes, tile_shapes
from lowlp.kernels.linear.planes.streams import StreamSchedule, planes_held
from lowlp.kernels.linear.planes.warpgroups import WarpgroupSchedule, can_hold

WIDTHS = range(1, 9)


def pairs() -> list[tuple[str, str]]:
    kinds = itertools.product(KINDS, KINDS, WIDTHS, WIDTHS)
    found = {(dtype_of(w, p), dtype_of(x, q)) for w, x, p, q in kinds}
    return sorted(pair for pair in found if pair[1] != "int1")


ALL = pairs()
PINNED = [("uint1", "uint1"), ("int2", "int2"), ("bipolar3", "ternary"), ("ternary", "int8")]
SAMPLE = ALL if os.environ.get("LOWLP_WHOLE_MATRIX") else [*PINNED, *random.Random(20).sample(ALL, 2)]


@pytest.mark.parametrize(("weight", "activation"), SAMPLE)
def test_sums_are_exact(weight: str, activation: str) -> None:
    rng = np.random.default_rng(len(weight) * 100 + len(activation))
    spec = PlanesSpec(37, 600, weight, activation)
    stream = StreamSchedule(rows=8, warps=1, slices=2, steps=1, stages=2)
    wide = WarpgroupSchedule(columns=16, warpgroups=1, steps=2, stages=2, products_in_flight=2)
    for schedule in (stream, wide):
        kernel = kernel_of(spec, schedule)
        for m, fills in ((3, ("random", "random")), (11, (FILLS[rng.integers(4)], FILLS[rng.integers(4)]))):
            operands = Operands.make(rng, spec, m, fills)
            np.testing.assert_array_equal(sums_of(spec, schedule, operands, kernel), wrapped(operands.acc))


@pytest.mark.parametrize(
    ("spec", "schedule"),
    [
        (PlanesSpec(150, 3000, "int2", "uint1"), WarpgroupSchedule(8, 1, 1, 2, column_tiles=2, blocks=5)),
        (PlanesSpec(100, 5000, "ternary", "int2"), WarpgroupSchedule(16, 2, 2, 2, producer=False, blocks=3)),
    ],
)
def test_blocks_share_tiles(spec: PlanesSpec, schedule: WarpgroupSchedule) -> None:
    """One tile that all blocks have a part of, and tiles in waves with some left over."""
    kernel = kernel_of(spec, schedule)
    for m in (3, 45):
        operands = Operands.make(np.random.default_rng(m), spec, m)
        np.testing.assert_array_equal(sums_of(spec, schedule, operands, kernel), wrapped(operands.acc))


def rounded(acc: np.ndarray, spec: PlanesSpec, operands: Operands, bias: np.ndarray) -> np.ndarray:
    """The result in f32, one rounding a step."""
    y = acc.astype(np.int32).astype(np.float32) * operands.weights.scales[:, 0].astype(np.float32)
    return y * operands.x.scales + bias.astype(np.float32)


@pytest.mark.parametrize("out", ["f16", "f32"])
def test_results_are_numpys_to_the_bit(out: str) -> None:
    rng = np.random.default_rng(3)
    spec = PlanesSpec(
        70, 300, "uint3", "uint2", zeros=True, x_zeros=True, scale="f16", x_scale=True, bias="f32", out=out
    )
    operands, bias = Operands.make(rng, spec, 9), rng.normal(size=70).astype(np.float32)
    wanted = rounded(operands.acc, spec, operands, bias)
    schedules = {
        "f16": StreamSchedule(rows=4, warps=2, slices=1, stages=2),
        "f32": WarpgroupSchedule(columns=8, steps=1, stages=2, products_in_flight=4),
    }
    y = np.zeros((9, 70), {"f16": np.float16, "f32": np.float32}[out])
    kernel_of(spec, schedules[out])(**operands.arguments(spec, bias), y=y, m=9)
    np.testing.assert_array_equal(y, wanted.astype(y.dtype))


def test_sums_wrap_on_the_way() -> None:
    """D is beyond 2^32, the sums of signed codes are not beyond 2^31."""
    spec = PlanesSpec(16, 66304, "int8", "int8")
    operands = Operands.make(np.random.default_rng(4), spec, 1, ("most", "most"))
    assert 255 * 255 * spec.k > 2**32 > 2 * operands.acc.max()
    found = sums_of(spec, StreamSchedule(rows=1, warps=1, slices=8, steps=2, stages=2), operands)
    np.testing.assert_array_equal(found, operands.acc)


def test_codes_of_weights_are_products_with_the_identity() -> None:
    spec = PlanesSpec(20, 40, "int4", "uint1")
    operands = Operands.make(np.random.default_rng(5), spec, 1)
    operands.x = lowlp.QuantizedActivations(np.eye(40, dtype=np.uint8), dtype="uint1", scales=1.0)
    operands.acc = np.zeros((40, 20), np.int64)
    found = sums_of(spec, StreamSchedule(rows=8, warps=2, slices=1, stages=2), operands)
    signed = (operands.weights.codes.astype(np.int8) ^ 8) - 8
    np.testing.assert_array_equal(found, signed.T)


@pytest.mark.parametrize("m", [1, 3, 16, 64, 200, 4096])
def test_chosen_schedules_satisfy_the_relation_of_tile_shapes(m: int) -> None:
    for p, q in itertools.product(WIDTHS, WIDTHS):
        spec = PlanesSpec(4096, 4096, f"uint{p}", f"uint{q}")
        for has_warpgroups in (False, True):
            schedule = choose_schedule(spec, m, has_warpgroups=has_warpgroups)
            shapes = tile_shapes(spec, schedule)
            assert shapes.agree and not shapes._replace(warps=shapes.warps + 1).agree
            assert shared_bytes(spec, schedule) <= 227 * 1024
            if isinstance(schedule, WarpgroupSchedule):
                assert m * q > 128 and has_warpgroups and can_hold(spec, schedule)


def test_planes_fill_columns() -> None:
    assert [planes_held(q, 1) for q in (1, 2, 3, 5, 8)] == [8, 8, 8, 8, 8]
    assert [planes_held(q, 2) for q in (1, 2, 3, 4, 5)] == [4, 4, 4, 4, 8]
    assert [planes_held(q, 8) for q in WIDTHS] == list(WIDTHS)


def test_what_is_refused() -> None:
    with pytest.raises(LowlpValueError, match=r"codes of planes are int1 to int8, .* or ternary, got f8e4m3"):
        LinearCode.of("f8e4m3")
    with pytest.raises(LowlpValueError, match="out: must be one of f16, bf16, f32, int32, got 'f64'"):
        PlanesSpec(16, 256, "int2", "int2", out="f64")
    with pytest.raises(LowlpValueError, match="out: exact sums, 'int32', have no scales, bias, epilogue and residual"):
        PlanesSpec(16, 256, "int2", "int2", scale="f16")
    with pytest.raises(LowlpValueError, match="k: must be at least 1, got 0"):
        PlanesSpec(16, 0, "int2", "int2")
    with pytest.raises(LowlpValueError, match="rows: must be one of 1, 2, 4, 8, 16, 24, 32, 64, got 5"):
        StreamSchedule(rows=5)
    with pytest.raises(LowlpValueError, match="warps, slices: a block has at most 16 warps, got 8 x 8"):
        StreamSchedule(warps=8, slices=8)
    with pytest.raises(LowlpValueError, match=r"columns: must be one of 8, 16, .* got 40"):
        WarpgroupSchedule(columns=40)


def products(weight: str, activation: str, out: str, path: str | None, **parts: object) -> np.ndarray:
    rng = np.random.default_rng(6)
    spec = PlanesSpec(40, 300, weight, activation, zeros=weight.startswith("uint"), scale="f16", out="f32")
    operands = Operands.make(rng, spec, 5)
    return lowlp.linear(operands.x, operands.weights, out_dtype=out, path=path, **parts)


@pytest.mark.filterwarnings("ignore::lowlp.errors.RepackWarning")
@pytest.mark.parametrize(("weight", "activation"), [("uint2", "bipolar2")])
def test_linear_gives_the_same_by_planes_and_by_bytes(weight: str, activation: str) -> None:
    rng = np.random.default_rng(7)
    parts = {"bias": rng.normal(size=40).astype(np.float16), "residual": rng.normal(size=(5, 40)).astype(np.float32)}
    for out, more in (("s32", {}), ("f32", {**parts, "epilogue": "relu"})):
        by_planes, chosen, by_bytes = (
            products(weight, activation, out, path, **more) for path in ("planes", None, "s8")
        )
        np.testing.assert_array_equal(by_planes, by_bytes)
        np.testing.assert_array_equal(chosen, by_planes)


def test_linear_says_why_planes_do_not_serve() -> None:
    codes = np.zeros((32, 512), np.uint8)
    xq = lowlp.QuantizedActivations(np.zeros((2, 512), np.int8), dtype="int2", scales=1.0)
    grouped = lowlp.QuantizedTensor(
        codes, dtype="int2", scales=np.ones((32, 4), np.float16), group_size=128, activation="b1"
    )
    with pytest.raises(LowlpValueError, match="'planes' does not serve: planes take one scale for each row"):
        lowlp.linear(xq, grouped, path="planes")
    whole = lowlp.QuantizedTensor(codes, dtype="int2", scales=np.ones((32, 1), np.float16), activation="b1")
    with pytest.raises(LowlpValueError, match="epilogue: products of planes have none named 'silu_mul'"):
        lowlp.linear(xq, whole, path="planes", epilogue="silu_mul")
    with pytest.raises(LowlpValueError, match="bias: must have shape"):
        lowlp.linear(xq, whole, bias=np.zeros(31, np.float32))
    with pytest.raises(LowlpValueError, match="x: the last dimension must be K = 512"):
        lowlp.linear(lowlp.QuantizedActivations(np.zeros((2, 256), np.int8), dtype="int2", scales=1.0), whole)
    assert lowlp.linear(xq, whole, out_dtype="s32").shape == (2, 32)
    empty = lowlp.QuantizedActivations(np.zeros((0, 512), np.int8), dtype="int2", scales=1.0)
    assert lowlp.linear(empty, whole).shape == (0, 32)


def test_permuted_columns_come_in_the_order_of_the_words() -> None:
    rng = np.random.default_rng(8)
    w, order = rng.integers(0, 4, (16, 96)).astype(np.uint8), rng.permutation(96)
    qw = lowlp.QuantizedTensor(
        w, dtype="uint2", scales=np.ones((16, 1), np.float16), permutation=order, activation="b1"
    )
    xq = lowlp.QuantizedActivations(rng.integers(-2, 2, (3, 96)).astype(np.int8), dtype="int2", scales=1.0)
    found = lowlp.linear(xq, qw, out_dtype="s32")
    np.testing.assert_array_equal(found, xq.codes.astype(np.int64) @ w.T.astype(np.int64))
